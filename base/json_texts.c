/* The strings of an object whose keys are plain, which most lines are, in one pass over the bytes. */
#include "base/isa.h"
#include "base/json.h"
#include "base/json_shim.h"
#include "base/json_walk.h"

ISA_DECLARE(size_t, json_take_run, (char *dst, const char *src, size_t n, size_t *used, bool *ascii));

enum { KEYS_MAX = 16, DEEPEST = 16 };

struct line {
    const char *p, *end;
    struct span key[KEYS_MAX];
    size_t n; /* keys */
};

static void skip_blanks(struct line *l)
{
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\n' || *l->p == '\r'))
        l->p++;
}

/* Goes behind c if it is the next byte but for blanks. */
static bool take_byte(struct line *l, char c)
{
    skip_blanks(l);
    if (l->p == l->end || *l->p != c)
        return false;
    l->p++;
    return true;
}

/* A key without escapes, of ASCII, and the colon. */
static bool take_key(struct line *l)
{
    const char *begin;

    if (l->n == KEYS_MAX || !take_byte(l, '"'))
        return false;
    for (begin = l->p; l->p < l->end && *l->p != '"'; l->p++)
        if (*l->p == '\\' || (unsigned char)(*l->p - 0x20) >= 0x60)
            return false;
    l->key[l->n++] = (struct span){begin, (size_t)(l->p - begin)};
    return take_byte(l, '"') && take_byte(l, ':');
}

/* What stands behind a quote, up to the one that ends it, unescaped to dst. */
static bool take_string(struct line *l, char *dst, size_t *n)
{
    size_t (*run)(char *, const char *, size_t, size_t *, bool *) = ISA_PICK(json_take_run);
    const char *begin = l->p;
    bool ascii = true;
    char *o = dst;

    for (;;) {
        size_t used;
        o += run(o, l->p, (size_t)(l->end - l->p), &used, &ascii);
        l->p += used;
        if (l->p == l->end || *l->p != '\\')
            break;
        used = json_put_escape(l->p, l->end, &o);
        if (!used)
            return false;
        l->p += used;
    }
    *n = (size_t)(o - dst);
    return l->p < l->end && *l->p++ == '"' && (ascii || json_valid_utf8(begin, (size_t)(l->p - begin)));
}

/* A number or a word. */
static bool take_plain(struct line *l)
{
    const char *begin = l->p;

    while (l->p < l->end && !memchr(" \t\n\r,}]", *l->p, 7))
        l->p++;
    return json_is_plain((struct span){begin, (size_t)(l->p - begin)});
}

/* A value of any kind, `depth` levels down, which is passed over; dst is room for its strings. */
static bool take_any(struct line *l, char *dst, int depth)
{
    bool object, string = take_byte(l, '"');
    size_t size;

    if (string)
        return take_string(l, dst, &size);
    object = take_byte(l, '{');
    if (!object && !take_byte(l, '['))
        return take_plain(l);
    if (take_byte(l, object ? '}' : ']'))
        return true;
    if (depth == DEEPEST)
        return false;
    do {
        if (object && !(take_byte(l, '"') && take_string(l, dst, &size) && take_byte(l, ':')))
            return false;
        if (!take_any(l, dst, depth + 1))
            return false;
    } while (take_byte(l, ','));
    return take_byte(l, object ? '}' : ']');
}

static bool take_value(struct line *l, const char *const *keys, int n, char **dst, struct span *texts)
{
    char *o = *dst;
    size_t size;

    skip_blanks(l);
    if (l->p == l->end || *l->p != '"')
        return take_any(l, o, 1);
    l->p++;
    if (!take_string(l, o, &size))
        return false;
    for (int k = 0; k < n; k++)
        if (span_is(l->key[l->n - 1], keys[k])) {
            texts[k] = (struct span){o, size};
            *dst = o + size;
        }
    return true;
}

bool json_read_texts(struct span line, const char *const *keys, int n, char *dst, struct span *texts)
{
    struct line l = {.p = line.p, .end = line.p + line.n};

    for (int k = 0; k < n; k++)
        texts[k].p = NULL;
    if (!take_byte(&l, '{'))
        return false;
    do
        if (!take_key(&l) || !take_value(&l, keys, n, &dst, texts))
            return false;
    while (take_byte(&l, ','));
    if (!take_byte(&l, '}'))
        return false;
    skip_blanks(&l);
    for (int k = 0; k < n; k++)
        if (!texts[k].p)
            return false;
    return l.p == l.end && !json_find_twin(l.key, l.n);
}
