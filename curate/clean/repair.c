#include "curate/clean/repair.h"

#include <stdlib.h>

#include "base/isa.h"
#include "base/utf8.h"
#include "curate/text/chars.h"
#include "curate/clean/repair_marks.h"

enum { SEGMENT = 1000000 /* code points */ };

ISA_DECLARE(size_t, repair_scan, (const unsigned char *p, size_t from, size_t n, uint32_t *bits, size_t *next));

void repair_free(struct repair *r)
{
    mojibake_free(&r->mojibake);
    free(r->text.p);
    free(r->orig.p);
    free(r->next.p);
    buf_free(&r->out);
    memset(r, 0, sizeof *r);
}

/* ---- one segment ---- */

/* The rules, again and again until nothing changes.  r->text is the text. */
static int repair_segment(struct repair *r, const struct repair_conf *conf, bool unescape)
{
    struct cps *t = &r->text;

    r->mojibake.budget = (int64_t)t->n * 64 + (1 << 16);
    for (;;) {
        r->orig.n = 0;
        TRY(cps_put(&r->orig, t->p, t->n));
        if ((r->mojibake.budget -= (int64_t)t->n) < 0)
            return ERR_LIMIT;
        if (unescape)
            TRY(marks_unescape(t, &r->next));
        if (conf->mojibake) {
            TRY(mojibake_undo(&r->mojibake, t));
            mojibake_fix_c1(t);
        }
        if (conf->ligatures)
            TRY(marks_plain(t, &r->next, MARKS_LIGATURE));
        if (conf->width)
            TRY(marks_plain(t, &r->next, MARKS_WIDTH));
        if (conf->quotes)
            marks_quotes(t);
        if (conf->terminal_escapes)
            marks_terminal(t);
        if (t->n == r->orig.n && (!t->n || !memcmp(t->p, r->orig.p, t->n * sizeof *t->p)))
            return 0;
    }
}

static int put_segment(struct repair *r, const struct repair_conf *conf, struct span s, bool unescape)
{
    int rc, n;

    TRY(cps_reserve(&r->text, s.n));
    r->text.n = 0;
    for (const char *p = s.p, *end = s.p + s.n; p < end; p += n)
        r->text.p[r->text.n++] = chars_decode(p, &n);
    rc = repair_segment(r, conf, unescape);
    if (rc == ERR_LIMIT)
        return buf_put_span(&r->out, s);
    TRY(rc);
    TRY(buf_reserve(&r->out, r->text.n * 4));
    for (size_t i = 0; i < r->text.n; i++)
        r->out.n += (size_t)utf8_put(r->out.p + r->out.n, r->text.p[i]);
    return 0;
}

/* The length of the first segment of a line. */
static size_t segment_length(struct span line)
{
    size_t i = 0, n = 0;

    if (line.n <= SEGMENT)
        return line.n;
    for (; i < line.n; i++)
        if (((unsigned char)line.p[i] & 0xC0) != 0x80 && n++ == SEGMENT)
            break;
    return i;
}

/* ---- which lines need work ---- */

/* The character at p[i] and three on each side: true if it is mojibake there. */
static bool is_bad_around(const char *p, size_t i, size_t n)
{
    uint32_t t[7];
    size_t from = i, k = 0;
    int len;

    for (int back = 0; back < 3 && from; back++)
        do
            from--;
        while (from && ((unsigned char)p[from] & 0xC0) == 0x80);
    for (int after = 0; after < 4 && from < n && k < 7; from += (size_t)len) {
        after += from >= i;
        t[k++] = chars_decode(p + from, &len);
    }
    return mojibake_is_bad(t, k);
}

/* Most neighbours beyond ASCII are two letters, or have no role. */
static bool is_harmless(const char *p, size_t i, size_t end)
{
    const uint32_t letters = ROLE_LOWER_ACCENTED | ROLE_UPPER_COMMON | ROLE_LOWER_COMMON | ROLE_FIRST_OF_2 |
                             ROLE_FIRST_OF_3 | ROLE_FIRST_OF_4 | ROLE_CONT | ROLE_CONT_STRICT;
    struct span before = {p, i};
    uint32_t c, a, b;
    int n;

    c = chars_decode(p + i, &n);
    if (!i || (unsigned char)p[i - 1] < 0x80 || c < 0xA0 || c == 0x402 || c == 0x152 || c == 0x153)
        return false;
    if ((c == 0xC2 || c == 0xC3) && i + 2 < end && p[i + 2] == ' ')
        return false;
    a = mojibake_roles(chars_last(before, &n));
    b = mojibake_roles(c);
    return !a || !((a | b) & ~letters);
}

/* A text on its way through: lt is where its first '<' is, SIZE_MAX while unknown. */
struct scan {
    const struct repair_conf *conf;
    struct span s;
    size_t lt;
};

static size_t first_lt(struct scan *c)
{
    if (c->lt == SIZE_MAX) {
        const char *p = memchr(c->s.p, '<', c->s.n);
        c->lt = p ? (size_t)(p - c->s.p) : c->s.n;
    }
    return c->lt;
}

static bool unescapes(struct scan *c, size_t to)
{
    return c->conf->unescape == UNESCAPE_ON || (c->conf->unescape == UNESCAPE_AUTO && first_lt(c) >= to);
}

/* True if something at p[i], which the scan found, needs repair. */
static bool is_dirty(struct scan *c, size_t i)
{
    const char *p = c->s.p;
    size_t n = c->s.n;

    if (p[i] == '&')
        return marks_is_entity(p + i, n - i) && unescapes(c, i);
    if (p[i] == 0x1B)
        return c->conf->terminal_escapes && i + 1 < n && p[i + 1] == '[';
    return c->conf->mojibake && !is_harmless(p, i, n) && is_bad_around(p, i, n);
}

/* The first place from `from` on at which something needs repair, or n. */
static size_t next_dirty(struct scan *c, size_t from)
{
    size_t (*look)(const unsigned char *, size_t, size_t, uint32_t *, size_t *) = ISA_PICK(repair_scan);
    const struct repair_conf *conf = c->conf;
    size_t n = c->s.n, found = n, next;
    uint32_t bits;

    for (size_t at = from; found == n && (at = look((const unsigned char *)c->s.p, at, n, &bits, &next)) < n; at = next)
        for (; bits && found == n; bits &= bits - 1)
            if (is_dirty(c, at + (size_t)__builtin_ctz(bits)))
                found = at + (size_t)__builtin_ctz(bits);
    if (conf->quotes || conf->ligatures || conf->width)
        found = repair_marks_find(c->s, from, found, conf->quotes, conf->ligatures, conf->width);
    return found;
}

int repair_text(struct repair *r, const struct repair_conf *conf, struct span text, struct span *out)
{
    struct scan c = {conf, text, SIZE_MAX};
    size_t done = 0, at;

    mojibake_init();
    *out = text;
    at = next_dirty(&c, 0);
    if (at == text.n)
        return 0;
    buf_clear(&r->out);
    while (at < text.n) {
        const char *nl = memrchr(text.p + done, '\n', at - done);
        size_t from = nl ? (size_t)(nl + 1 - text.p) : done, to;

        nl = memchr(text.p + at, '\n', text.n - at);
        to = nl ? (size_t)(nl + 1 - text.p) : text.n;
        TRY(buf_put(&r->out, text.p + done, from - done));
        while (from < to) {
            struct span s = {text.p + from, to - from};
            s.n = segment_length(s);
            from += s.n;
            TRY(put_segment(r, conf, s, unescapes(&c, from)));
        }
        done = to;
        at = next_dirty(&c, done);
    }
    TRY(buf_put(&r->out, text.p + done, text.n - done));
    if (!span_eq(buf_span(&r->out), text))
        *out = buf_span(&r->out);
    return 0;
}
