/* Reading JSON: the grammar over the tokens that simdjson finds. */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/isa.h"
#include "base/json_walk.h"
#include "base/utf8.h"

ISA_DECLARE(size_t, json_find_hard, (const char *src, size_t n));
ISA_DECLARE(size_t, json_unescape_run, (char *dst, const char *src, size_t n, size_t *used));

/* ---- scalars ---- */

static int hex4(const char *p)
{
    int v = 0;

    for (int i = 0; i < 4; i++) {
        int d = ascii_hex(p[i]);

        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* The offset of a bad escape in the string raw, or -1.  Its end, its control bytes
 * and its UTF-8 have been seen to. */
static ptrdiff_t bad_escape(struct span raw)
{
    size_t (*find)(const char *, size_t) = ISA_PICK(json_find_hard);
    const char *p = raw.p + 1, *end = raw.p + raw.n - 1;

    while ((p += find(p, (size_t)(end - p))) < end) {
        if (end - p < 6 || p[1] != 'u' || hex4(p + 2) < 0)
            return p - raw.p;
        p += 6;
    }
    return -1;
}

static bool valid_number(struct span s)
{
    const char *p = s.p, *end = s.p + s.n;

    if (p < end && *p == '-')
        p++;
    if (p == end || !ascii_is_digit(*p))
        return false;
    if (*p++ != '0')
        while (p < end && ascii_is_digit(*p))
            p++;
    if (p < end && *p == '.') {
        if (++p == end || !ascii_is_digit(*p))
            return false;
        while (p < end && ascii_is_digit(*p))
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        if (++p < end && (*p == '+' || *p == '-'))
            p++;
        if (p == end || !ascii_is_digit(*p))
            return false;
        while (p < end && ascii_is_digit(*p))
            p++;
    }
    return p == end;
}

static bool is_word(struct span s)
{
    return span_is(s, "null") || span_is(s, "true") || span_is(s, "false");
}

bool json_is_plain(struct span s)
{
    return valid_number(s) || is_word(s);
}

/* ---- the walk ---- */

enum { VALUE, FIRST_KEY, KEY, FIRST_ITEM, AFTER, DONE };

static size_t bad_utf8_at(struct span s)
{
    const char *p = s.p, *end = s.p + s.n;

    while (p < end) {
        uint32_t cp;
        int n = utf8_next(p, end, &cp);
        if (cp == 0xFFFD && !(n == 3 && (unsigned char)*p == 0xEF))
            break;
        p += n;
    }
    return (size_t)(p - s.p);
}

int json_walk_start(struct json_walk *w, struct json_scanner *s, struct span text, struct err *e)
{
    w->text = text;
    w->next = 0;
    w->state = VALUE;
    w->depth = 0;
    switch (json_scan(s, text.p, text.n, &w->at, &w->count)) {
    case JSON_SCAN_OK:
        return 0;
    case JSON_SCAN_UTF8:
        return err_set(e, ERR_FORMAT, "invalid UTF-8 at byte %zu", bad_utf8_at(text));
    case JSON_SCAN_UNCLOSED:
        return err_set(e, ERR_FORMAT, "a string does not end");
    case JSON_SCAN_CONTROL:
        return err_set(e, ERR_FORMAT, "a control character in a string");
    case JSON_SCAN_TOO_LONG:
        return err_set(e, ERR_LIMIT, "4 GiB or more of JSON");
    case JSON_SCAN_NOMEM:
        return err_set(e, ERR_NOMEM, "out of memory");
    default:
        return err_set(e, ERR_FORMAT, "empty, not JSON");
    }
}

static int bad(size_t at, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s at byte %zu", what, at);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int scalar(struct json_walk *w, struct json_token *t, struct err *e)
{
    size_t end = w->next < w->count ? w->at[w->next] : w->text.n;
    const char *p = w->text.p + t->at;
    ptrdiff_t esc;

    while (end > t->at + 1 && is_blank(w->text.p[end - 1]))
        end--;
    t->event = JSON_SCALAR;
    t->raw = (struct span){p, end - t->at};
    if (*p == '"') {
        t->type = JSON_STRING;
        if (t->raw.n < 2 || p[t->raw.n - 1] != '"')
            return bad(t->at, "a string does not end", e);
        esc = bad_escape(t->raw);
        return esc < 0 ? 1 : bad(t->at + (size_t)esc, "a bad escape", e);
    }
    if (*p == '-' || ascii_is_digit(*p)) {
        t->type = JSON_NUMBER;
        return valid_number(t->raw) ? 1 : bad(t->at, "a bad number", e);
    }
    t->type = *p == 'n' ? JSON_NULL : JSON_BOOL;
    if (is_word(t->raw))
        return 1;
    return bad(t->at, "unexpected characters", e);
}

static bool in_object(const struct json_walk *w)
{
    int d = w->depth - 1;
    return w->is_object[d / 64] >> (d % 64) & 1;
}

static int open_bracket(struct json_walk *w, struct json_token *t, struct err *e)
{
    bool object = *t->raw.p == '{';
    int d = w->depth++;

    if (d == JSON_DEPTH)
        return bad(t->at, "nesting deeper than 1,000", e);
    w->is_object[d / 64] &= ~(1ULL << (d % 64));
    w->is_object[d / 64] |= (uint64_t)object << (d % 64);
    w->state = object ? FIRST_KEY : FIRST_ITEM;
    t->event = JSON_OPEN;
    t->type = object ? JSON_OBJECT : JSON_ARRAY;
    return 1;
}

static int close_bracket(struct json_walk *w, struct json_token *t)
{
    t->event = JSON_CLOSE;
    t->type = in_object(w) ? JSON_OBJECT : JSON_ARRAY;
    w->state = --w->depth ? AFTER : DONE;
    return 1;
}

static int key(struct json_walk *w, struct json_token *t, struct err *e)
{
    if (*t->raw.p != '"')
        return bad(t->at, "expected a key in quotes", e);
    TRY(scalar(w, t, e));
    t->event = JSON_KEY;
    if (w->next == w->count || w->text.p[w->at[w->next]] != ':')
        return bad(t->at + t->raw.n, "expected ':'", e);
    w->next++;
    w->state = VALUE;
    return 1;
}

int json_walk_next(struct json_walk *w, struct json_token *t, struct err *e)
{
    char c;

    for (;;) {
        if (w->next == w->count)
            return w->state == DONE ? 0 : bad(w->text.n, "the text ends too early", e);
        t->at = w->at[w->next++];
        c = w->text.p[t->at];
        t->raw = (struct span){w->text.p + t->at, 1};
        switch (w->state) {
        case FIRST_KEY:
            if (c == '}')
                return close_bracket(w, t);
            return key(w, t, e);
        case KEY:
            return key(w, t, e);
        case FIRST_ITEM:
            if (c == ']')
                return close_bracket(w, t);
            break;
        case AFTER:
            if (c == (in_object(w) ? '}' : ']'))
                return close_bracket(w, t);
            if (c != ',')
                return bad(t->at, in_object(w) ? "expected ',' or '}'" : "expected ',' or ']'", e);
            w->state = in_object(w) ? KEY : VALUE;
            continue;
        case DONE:
            return bad(t->at, "something follows the value", e);
        default:
            break;
        }
        if (c == '{' || c == '[')
            return open_bracket(w, t, e);
        w->state = w->depth ? AFTER : DONE;
        return scalar(w, t, e);
    }
}

/* ---- rows ---- */

/* What the tokens of an item are: '0' is a number, '?' a string or a word, the comma may be the closing bracket. */
#define ROW_MEMBER "\":0,"
#define ROW_STRING "\","
#define ROW_NUMBER "[\",0],"
#define ROW_STRINGS "[\",\"],"
#define ROW_RANK "{\":0,\":\",\":?},"

static inline bool is_token(char c, char want)
{
    if (want == '?')
        return c == '"' || (c >= 'a' && c <= 'z');
    return want == '0' ? c == '-' || ascii_is_digit(c) : c == want;
}

/* The items from the walk's place on if they are of this form to the end; else 0. */
static inline __attribute__((always_inline)) size_t count_rows(const struct json_walk *w, const char *form, size_t width)
{
    const uint32_t *at = w->at + w->next, *end = w->at + w->count;
    char close = in_object(w) ? '}' : ']';

    for (size_t n = 1; (size_t)(end - at) >= width; at += width, n++) {
        char last = w->text.p[at[width - 1]];
        for (size_t k = 0; k + 1 < width; k++)
            if (!is_token(w->text.p[at[k]], form[k]))
                return 0;
        if (last == close)
            return n;
        if (last != ',')
            return 0;
    }
    return 0;
}

bool json_walk_rows(struct json_walk *w, struct json_rows *r)
{
    *r = (struct json_rows){.text = w->text.p, .at = w->at + w->next, .plain = w->text.p, .plain_end = w->text.p};
    if (in_object(w)) {
        r->n = count_rows(w, ROW_MEMBER, r->width = sizeof ROW_MEMBER - 1);
    } else {
        r->n = count_rows(w, ROW_STRING, r->width = sizeof ROW_STRING - 1);
        if (!r->n)
            r->n = count_rows(w, ROW_STRINGS, r->width = sizeof ROW_STRINGS - 1);
        if (!r->n)
            r->n = count_rows(w, ROW_NUMBER, r->width = sizeof ROW_NUMBER - 1);
        if (!r->n)
            r->n = count_rows(w, ROW_RANK, r->width = sizeof ROW_RANK - 1);
    }
    if (!r->n)
        return false;
    w->next += (uint32_t)(r->n * r->width);
    w->state = --w->depth ? AFTER : DONE;
    return true;
}

int json_rows_number(const struct json_rows *r, size_t token, struct span *s, struct err *e)
{
    *s = json_rows_token(r, token);
    return valid_number(*s) ? 0 : bad(r->at[token], "a bad number", e);
}

/* Makes r->plain and r->plain_end hold a token, or as much of it as comes before a backslash, and what there is before the next
 * backslash, but no more than is still in the cache when it is read.  Tokens may come from the last one to the first. */
static void find_plain(struct json_rows *r, struct span raw)
{
    enum { LOOK_AHEAD = 16 << 10 };
    const char *end = r->text + r->at[r->n * r->width - 1], *found;
    size_t most = raw.n > LOOK_AHEAD ? raw.n : LOOK_AHEAD;
    bool before = raw.p < r->plain && (size_t)(r->plain - raw.p) <= most;

    if (before)
        end = r->plain;
    else if ((size_t)(end - raw.p) > most)
        end = raw.p + most;
    found = memchr(raw.p, '\\', (size_t)(end - raw.p));
    if (found || !before)
        r->plain_end = found ? found : end;
    r->plain = raw.p;
}

int json_rows_string_slowly(struct json_rows *r, size_t token, struct buf *room, struct span *s, struct err *e)
{
    struct span raw = json_rows_token(r, token);

    if (raw.n < 2 || raw.p[raw.n - 1] != '"')
        return bad(r->at[token], "a string does not end", e);
    find_plain(r, raw);
    if (raw.p + raw.n <= r->plain_end)
        return 0;
    if (bad_escape(raw) >= 0)
        return bad(r->at[token], "a bad escape", e);
    buf_clear(room);
    TRY(json_unescape(raw, room, e));
    *s = buf_span(room);
    return 0;
}

/* ---- objects ---- */

struct json_reader {
    struct json_scanner *scanner;
    struct json_walk walk;
    struct arena keys; /* those that had escapes */
    struct buf key;
    struct json_field *field;
    struct span *sorted; /* keys, to find one that occurs twice */
    int n, cap;
};

struct json_reader *json_reader_new(void)
{
    struct json_reader *r = calloc(1, sizeof *r);

    if (r && !(r->scanner = json_scanner_new())) {
        free(r);
        return NULL;
    }
    return r;
}

void json_reader_free(struct json_reader *r)
{
    if (!r)
        return;
    json_scanner_free(r->scanner);
    arena_free(&r->keys);
    buf_free(&r->key);
    free(r->field);
    free(r->sorted);
    free(r);
}

static int add_field(struct json_reader *r, struct span quoted, struct err *e)
{
    struct span k = {quoted.p + 1, quoted.n - 2};

    if (r->n == r->cap) {
        int cap = r->cap ? r->cap * 2 : 32;
        struct json_field *f = realloc(r->field, (size_t)cap * sizeof *f);
        if (f)
            r->field = f;
        struct span *s = realloc(r->sorted, (size_t)cap * sizeof *s);
        if (s)
            r->sorted = s;
        if (!f || !s)
            return err_set(e, ERR_NOMEM, "out of memory");
        r->cap = cap;
    }
    if (k.n && memchr(k.p, '\\', k.n)) {
        buf_clear(&r->key);
        TRY(json_unescape(quoted, &r->key, e));
        k = arena_dup(&r->keys, buf_span(&r->key));
        if (!k.p)
            return err_set(e, ERR_NOMEM, "out of memory");
    }
    r->field[r->n++].key = k;
    return 0;
}

static int span_order(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->n ? memcmp(x->p, y->p, x->n) : 0;
}

struct key_slot {
    uint64_t hash;
    const struct span *key; /* NULL: free */
};

/* Finds a twin by a table of hashes, all free, of at least 2n slots, a power of two; false: too many lie together. */
static bool find_by_hash(struct key_slot *slots, size_t size, const struct span *key, size_t n, const struct span **twin)
{
    size_t steps = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t hash = hash_xxh3_64(key[i]), at = hash & (size - 1);
        for (; slots[at].key; at = (at + 1) & (size - 1)) {
            if (slots[at].hash == hash && span_eq(*slots[at].key, key[i])) {
                *twin = &key[i];
                return true;
            }
            if (++steps > 8 * n)
                return false;
        }
        slots[at] = (struct key_slot){hash, &key[i]};
    }
    *twin = NULL;
    return true;
}

const struct span *json_find_twin(struct span *key, size_t n)
{
    struct key_slot *slots;
    const struct span *twin;
    size_t i, j, size = 1;
    bool found;

    if (n <= 16) {
        for (i = 1; i < n; i++)
            for (j = 0; j < i; j++)
                if (span_eq(key[i], key[j]))
                    return &key[i];
        return NULL;
    }
    while (size < 2 * n)
        size *= 2;
    slots = calloc(size, sizeof *slots);
    found = slots && find_by_hash(slots, size, key, n, &twin);
    free(slots);
    if (found)
        return twin;
    qsort(key, n, sizeof *key, span_order);
    for (i = 1; i < n; i++)
        if (span_eq(key[i], key[i - 1]))
            return &key[i];
    return NULL;
}

static int refuse_twins(struct json_reader *r, struct err *e)
{
    const struct span *twin;

    for (int i = 0; i < r->n; i++)
        r->sorted[i] = r->field[i].key;
    twin = json_find_twin(r->sorted, (size_t)r->n);
    return twin ? err_set(e, ERR_FORMAT, "the key '%.*s' occurs twice",
                          (int)(twin->n < 100 ? twin->n : 100), twin->p)
                : 0;
}

int json_read_object(struct json_reader *r, struct span line, const struct json_field **fields,
                     struct err *e)
{
    struct json_walk *w = &r->walk;
    struct json_token t = {0};
    int rc;

    r->n = 0;
    arena_reset(&r->keys);
    TRY(json_walk_start(w, r->scanner, line, e));
    TRY(json_walk_next(w, &t, e));
    if (t.event != JSON_OPEN || t.type != JSON_OBJECT)
        return bad(t.at, "not an object", e);
    while ((rc = json_walk_next(w, &t, e)) > 0) {
        if (w->depth > 1 && t.event != JSON_OPEN)
            continue;
        if (t.event == JSON_KEY) {
            TRY(add_field(r, t.raw, e));
        } else if (w->depth >= 1) { /* a value of the object begins or, ']', ends */
            struct json_field *f = &r->field[r->n - 1];
            if (t.event == JSON_SCALAR || (t.event == JSON_OPEN && w->depth == 2)) {
                f->raw = t.raw;
                f->type = t.type;
            } else if (t.event == JSON_CLOSE) {
                f->raw.n = (size_t)(t.raw.p + 1 - f->raw.p);
            }
        }
    }
    TRY(rc);
    TRY(refuse_twins(r, e));
    *fields = r->field;
    return r->n;
}

/* ---- strings ---- */

size_t json_put_escape(const char *p, const char *end, char **dst)
{
    int first = end - p < 6 || p[1] != 'u' ? -1 : hex4(p + 2);
    uint32_t c = (uint32_t)first, low;

    if (first < 0)
        return 0;
    if (c < 0xD800 || c > 0xDFFF) {
        *dst += utf8_put(*dst, c);
        return 6;
    }
    if (c > 0xDBFF || end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    low = (uint32_t)hex4(p + 8);
    if (low < 0xDC00 || low > 0xDFFF)
        return 0;
    *dst += utf8_put(*dst, 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00));
    return 12;
}

int json_unescape(struct span raw, struct buf *out, struct err *e)
{
    size_t (*run)(char *, const char *, size_t, size_t *) = ISA_PICK(json_unescape_run);
    const char *p = raw.p + 1, *end = raw.p + raw.n - 1;
    char *o;

    if (buf_reserve(out, raw.n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    o = out->p + out->n;
    for (;;) {
        size_t k;
        o += run(o, p, (size_t)(end - p), &k);
        p += k;
        if (p == end)
            break;
        k = json_put_escape(p, end, &o);
        if (k == 0)
            return err_set(e, ERR_FORMAT, "half of a surrogate pair, \\%.5s, in a string", p + 1);
        p += k;
    }
    *o = '\0';
    out->n = (size_t)(o - out->p);
    return 0;
}

int json_lacks_text(const struct json_field *f, int n, const char *key, const char *hint, struct err *e)
{
    char others[160] = "";
    int named = 0;

    for (int i = 0; i < n && named < 4; i++) {
        size_t at = strlen(others);
        if (span_is(f[i].key, "messages") && f[i].type == JSON_ARRAY)
            return err_set(e, ERR_FORMAT, "no \"%s\" in the document but \"messages\", a chat: join its turns into one "
                           "\"%s\" first%s", key, key, hint);
        if (f[i].type != JSON_STRING || f[i].key.n > 32 || span_is(f[i].key, "id") || span_is(f[i].key, "url"))
            continue;
        snprintf(others + at, sizeof others - at, "%s\"%.*s\"", named ? ", " : " but ", (int)f[i].key.n, f[i].key.p);
        named++;
    }
    return err_set(e, ERR_FORMAT, "no \"%s\" in the document%s%s", key, others, named ? hint : "");
}
