#include "curate/xml/xml_stream.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { STEP = 256 << 10, WIDE_STEP = 64 << 10 };

/* ---- UTF-16 and UTF-32 ---- */

static struct xml_wide wide_of(const unsigned char *p, size_t n)
{
    if (n < 4)
        return (struct xml_wide){0};
    if ((p[0] == 0xFF && p[1] == 0xFE && !p[2] && !p[3]) || (p[0] == '<' && !p[1] && !p[2] && !p[3]))
        return (struct xml_wide){4, false};
    if ((!p[0] && !p[1] && p[2] == 0xFE && p[3] == 0xFF) || (!p[0] && !p[1] && !p[2] && p[3] == '<'))
        return (struct xml_wide){4, true};
    if ((p[0] == 0xFF && p[1] == 0xFE) || (p[0] == '<' && !p[1] && p[2] && !p[3]))
        return (struct xml_wide){2, false};
    if ((p[0] == 0xFE && p[1] == 0xFF) || (!p[0] && p[1] == '<' && !p[2] && p[3]))
        return (struct xml_wide){2, true};
    return (struct xml_wide){0};
}

static uint32_t unit(const unsigned char *p, struct xml_wide w)
{
    uint32_t c = 0;

    for (int i = 0; i < w.width; i++)
        c = c << 8 | p[w.big ? i : w.width - 1 - i];
    return c;
}

/* Appends as UTF-8 what of p is whole; the bytes that were used. */
static ssize_t narrow(const unsigned char *p, size_t n, struct xml_wide w, struct buf *out)
{
    size_t at = 0, width = (size_t)w.width;

    TRY(buf_reserve(out, n * 2 + 4));
    while (n - at >= width) {
        uint32_t c = unit(p + at, w);
        size_t used = width;
        if (w.width == 2 && c >= 0xD800 && c < 0xDC00) {
            if (n - at < 4)
                break;
            uint32_t low = unit(p + at + 2, w);
            if (low >= 0xDC00 && low < 0xE000) {
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
                used = 4;
            }
        }
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            c = 0xFFFD;
        out->n += c == 0xFEFF ? 0 : (size_t)utf8_put(out->p + out->n, c);
        at += used;
    }
    return (ssize_t)at;
}

int xml_wide_start(struct span start, struct buf *out)
{
    struct xml_wide w = wide_of((const unsigned char *)start.p, start.n);

    if (!w.width)
        return 0;
    return narrow((const unsigned char *)start.p, start.n, w, out) < 0 ? ERR_NOMEM : 1;
}

/* ---- reading ---- */

static int no_memory(const struct xml_stream *s, struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for '%s'", s->in.name);
}

/* Moves what is whole of raw to buf, as UTF-8. */
static int take_raw(struct xml_stream *s)
{
    ssize_t used = narrow(s->raw, s->n_raw, s->wide, &s->buf);

    if (used < 0)
        return (int)used;
    memmove(s->raw, s->raw + used, s->n_raw -= (size_t)used);
    return 0;
}

/* After damage: whether the stream goes on.  e keeps what told of the damage, unless resuming fails for another reason. */
static int pass_damage(struct xml_stream *s, struct err *e)
{
    struct err why;
    int rc = s->in.resume(s->in.of, &why);

    if (rc < 0 && rc != ERR_FORMAT) {
        *e = why;
        return rc;
    }
    s->n_damaged++;
    s->ended = rc != 1;
    return ERR_FORMAT;
}

/* Reads on behind what is there: 1, or 0 at the end. */
static int more(struct xml_stream *s, size_t *p, struct err *e)
{
    ssize_t k;

    if (s->ended)
        return 0;
    if (s->at > STEP || s->at == s->buf.n) { /* what is done goes */
        memmove(s->buf.p, s->buf.p + s->at, s->buf.n - s->at);
        s->buf.n -= s->at;
        s->base += s->at;
        *p -= s->at;
        s->at = 0;
    }
    if (buf_reserve(&s->buf, STEP) < 0)
        return no_memory(s, e);
    if (s->wide.width)
        k = s->in.read(s->in.of, s->raw + s->n_raw, WIDE_STEP - s->n_raw, e);
    else
        k = s->in.read(s->in.of, s->buf.p + s->buf.n, STEP, e);
    if (k < 0)
        return k == ERR_FORMAT ? pass_damage(s, e) : (int)k;
    s->ended = k == 0;
    if (!s->wide.width) {
        s->buf.n += (size_t)k;
        return k > 0;
    }
    s->n_raw += (size_t)k;
    return take_raw(s) < 0 ? no_memory(s, e) : k > 0;
}

/* Reads the first bytes, and makes them UTF-8 if they are not bytes of characters. */
static int begin(struct xml_stream *s, struct err *e)
{
    struct buf first = {0};
    size_t p = 0;
    int rc = 1;

    s->begun = true;
    while (s->buf.n < 4 && rc > 0)
        rc = more(s, &p, e);
    if (rc < 0)
        return rc;
    s->wide = wide_of((const unsigned char *)s->buf.p, s->buf.n);
    if (!s->wide.width)
        return 0;
    s->raw = malloc(WIDE_STEP);
    rc = s->raw ? buf_put(&first, s->buf.p, s->buf.n) : ERR_NOMEM;
    s->buf.n = 0;
    for (size_t from = 0; rc == 0 && from < first.n;) { /* in pieces that raw holds */
        size_t n = first.n - from < WIDE_STEP - s->n_raw ? first.n - from : WIDE_STEP - s->n_raw;
        memcpy(s->raw + s->n_raw, first.p + from, n);
        from += n;
        s->n_raw += n;
        rc = take_raw(s);
    }
    buf_free(&first);
    return rc < 0 ? no_memory(s, e) : 0;
}

int xml_stream_need(struct xml_stream *s, size_t *p, size_t n, struct err *e)
{
    if (!s->begun)
        TRY(begin(s, e));
    while (s->buf.n - *p < n) {
        int rc = more(s, p, e);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

/* ---- looking ---- */

bool xml_stream_is(const struct xml_stream *s, size_t p, const char *what)
{
    size_t n = strlen(what);

    return s->buf.n - p >= n && memcmp(s->buf.p + p, what, n) == 0;
}

int xml_stream_find(struct xml_stream *s, size_t *p, char b, size_t max, struct err *e)
{
    for (;;) {
        const char *hit = memchr(s->buf.p + *p, b, s->buf.n - *p);
        int rc;

        *p = hit ? (size_t)(hit - s->buf.p) : s->buf.n;
        if (*p - s->at > max)
            return ERR_LIMIT;
        if (hit)
            return 1;
        rc = xml_stream_need(s, p, 1, e);
        if (rc <= 0)
            return rc;
    }
}

int xml_stream_find_mark(struct xml_stream *s, size_t *p, const char *mark, size_t max, struct err *e)
{
    for (;; (*p)++) {
        int rc = xml_stream_find(s, p, mark[0], max, e);
        if (rc <= 0)
            return rc;
        TRY(xml_stream_need(s, p, strlen(mark), e));
        if (xml_stream_is(s, *p, mark)) {
            *p += strlen(mark);
            return 1;
        }
    }
}

int xml_stream_fault(const struct xml_stream *s, uint64_t offset, const char *why, struct err *e)
{
    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": %s", s->in.name, offset, why);
}

int xml_stream_open(struct xml_stream *s, const struct xml_input *in, struct err *e)
{
    *s = (struct xml_stream){.in = *in};
    return buf_reserve(&s->buf, STEP) < 0 ? no_memory(s, e) : 0;
}

void xml_stream_close(struct xml_stream *s)
{
    buf_free(&s->buf);
    free(s->raw);
    s->raw = NULL;
}
