/* Values as Python writes them. */
#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "tokenize/tasks/parts.h"

enum { LEVELS = 50 };

struct reader {
    struct arena *a;
    const char *p, *end;
    int levels;
    struct err *e;
};

static int wrong(struct reader *r)
{
    return err_set(r->e, ERR_FORMAT, "'%.*s' is no literal of Python",
                   (int)(r->end - r->p < 40 ? r->end - r->p : 40), r->p);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && ascii_is_space(*r->p))
        r->p++;
}

/* An escape behind its backslash, to out; how many bytes of out. */
static int escape(struct reader *r, char *out)
{
    static const char from[] = "ntrabfv\\'\"0", to[] = "\n\t\r\a\b\f\v\\'\"";
    int digits = *r->p == 'x' ? 2 : *r->p == 'u' ? 4 : *r->p == 'U' ? 8 : 0;
    const char *at = memchr(from, *r->p, sizeof from - 1);
    char hex[9] = {0}, *rest;
    unsigned long cp;

    if (!digits && !at)
        return wrong(r);
    if (!digits) {
        out[0] = to[at - from];
        r->p++;
        return 1;
    }
    if (r->end - r->p <= digits)
        return wrong(r);
    memcpy(hex, r->p + 1, (size_t)digits);
    cp = strtoul(hex, &rest, 16);
    if (*rest || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return wrong(r);
    r->p += digits + 1;
    return utf8_put(out, (uint32_t)cp);
}

static int text(struct reader *r, struct node *n)
{
    char quote = *r->p++, *out = arena_alloc(r->a, (size_t)(r->end - r->p) + 4);
    size_t len = 0;

    if (!out)
        return err_set(r->e, ERR_NOMEM, "out of memory");
    while (r->p < r->end && *r->p != quote) {
        if (*r->p == '\\' && r->p + 1 < r->end) {
            int more;

            r->p++;
            more = escape(r, out + len);
            if (more < 0)
                return more;
            len += (size_t)more;
        } else {
            out[len++] = *r->p++;
        }
    }
    if (r->p == r->end)
        return wrong(r);
    r->p++;
    out[len] = 0;
    n->type = NODE_STR;
    n->str = (struct span){out, len};
    return 0;
}

static int value(struct reader *r, struct node **out);

static int list(struct reader *r, struct node *n)
{
    char close = *r->p++ == '[' ? ']' : ')';
    struct node **last = &n->child;

    n->type = NODE_LIST;
    if (++r->levels > LEVELS)
        return wrong(r);
    for (skip_space(r); r->p < r->end && *r->p != close; skip_space(r)) {
        TRY(value(r, last));
        last = &(*last)->next;
        n->count++;
        skip_space(r);
        if (r->p < r->end && *r->p == ',')
            r->p++;
        else if (r->p < r->end && *r->p != close)
            return wrong(r);
    }
    r->levels--;
    return r->p < r->end ? (r->p++, 0) : wrong(r);
}

static int word(struct reader *r, struct node *n)
{
    static const struct {
        const char *name;
        enum node_type type;
        int64_t value;
    } words[] = {{"True", NODE_BOOL, 1}, {"False", NODE_BOOL, 0}, {"None", NODE_NULL, 0}};
    char digits[24] = {0}, *rest;
    size_t len = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((size_t)(r->end - r->p) >= strlen(words[i].name) && memcmp(r->p, words[i].name, strlen(words[i].name)) == 0) {
            r->p += strlen(words[i].name);
            n->type = words[i].type;
            n->integer = words[i].value;
            return 0;
        }
    while (r->p + len < r->end && len < sizeof digits - 1 && (ascii_is_digit(r->p[len]) || (!len && r->p[len] == '-')))
        len++;
    memcpy(digits, r->p, len);
    n->type = NODE_INT;
    n->integer = strtoll(digits, &rest, 10);
    if (len == 0 || *rest || rest == digits)
        return wrong(r);
    n->num = (double)n->integer;
    r->p += len;
    return 0;
}

static int value(struct reader *r, struct node **out)
{
    struct node *n = *out = arena_calloc(r->a, 1, sizeof *n);

    if (!n)
        return err_set(r->e, ERR_NOMEM, "out of memory");
    skip_space(r);
    if (r->p == r->end)
        return wrong(r);
    if (*r->p == '\'' || *r->p == '"')
        return text(r, n);
    return *r->p == '[' || *r->p == '(' ? list(r, n) : word(r, n);
}

int task_literal(struct arena *a, struct span s, struct node **n, struct err *e)
{
    struct reader r = {.a = a, .p = s.p, .end = s.p + s.n, .e = e};

    TRY(value(&r, n));
    skip_space(&r);
    return r.p == r.end ? 0 : wrong(&r);
}
