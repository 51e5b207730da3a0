#include "curate/xml/xml_cut.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"

enum { STEP = 256 << 10, WIDE_STEP = 64 << 10 };

/* How a stream's characters are written, where not in bytes. */
struct wide {
    int width; /* 0: bytes; 2, 4 */
    bool big;
};

struct xml_cut {
    struct xml_input in;
    const char *const *records;
    size_t max;
    struct buf buf, head, name; /* name: the record's, as it is written */
    size_t at;                  /* of buf; what lies before is done */
    uint64_t base;              /* of buf in the stream */
    bool ended, told, begun;
    bool rooted; /* a record came, and no end tag behind it */
    bool headed; /* a record came: the head is whole */
    bool lost;   /* in the rest of a document that is too long */
    struct wide wide;
    unsigned char raw[WIDE_STEP];
    size_t n_raw;
};

/* ---- UTF-16 and UTF-32 ---- */

static struct wide wide_of(const unsigned char *p, size_t n)
{
    if (n < 4)
        return (struct wide){0};
    if ((p[0] == 0xFF && p[1] == 0xFE && !p[2] && !p[3]) || (p[0] == '<' && !p[1] && !p[2] && !p[3]))
        return (struct wide){4, false};
    if ((!p[0] && !p[1] && p[2] == 0xFE && p[3] == 0xFF) || (!p[0] && !p[1] && !p[2] && p[3] == '<'))
        return (struct wide){4, true};
    if ((p[0] == 0xFF && p[1] == 0xFE) || (p[0] == '<' && !p[1] && p[2] && !p[3]))
        return (struct wide){2, false};
    if ((p[0] == 0xFE && p[1] == 0xFF) || (!p[0] && p[1] == '<' && !p[2] && p[3]))
        return (struct wide){2, true};
    return (struct wide){0};
}

static uint32_t unit(const unsigned char *p, struct wide w)
{
    uint32_t c = 0;

    for (int i = 0; i < w.width; i++)
        c = c << 8 | p[w.big ? i : w.width - 1 - i];
    return c;
}

/* Appends as UTF-8 what of p is whole; the bytes that were used. */
static ssize_t narrow(const unsigned char *p, size_t n, struct wide w, struct buf *out)
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
    struct wide w = wide_of((const unsigned char *)start.p, start.n);

    if (!w.width)
        return 0;
    return narrow((const unsigned char *)start.p, start.n, w, out) < 0 ? ERR_NOMEM : 1;
}

/* ---- bytes ---- */

/* Moves what is whole of raw to buf, as UTF-8. */
static int take_raw(struct xml_cut *c)
{
    ssize_t used = narrow(c->raw, c->n_raw, c->wide, &c->buf);

    if (used < 0)
        return (int)used;
    memmove(c->raw, c->raw + used, c->n_raw -= (size_t)used);
    return 0;
}

/* Reads on behind buf: 1, or 0 at the end. */
static int more(struct xml_cut *c, struct err *e)
{
    ssize_t k;

    if (c->ended)
        return 0;
    if (c->at > STEP) { /* what is done goes */
        memmove(c->buf.p, c->buf.p + c->at, c->buf.n - c->at);
        c->buf.n -= c->at;
        c->base += c->at;
        c->at = 0;
    }
    if (buf_reserve(&c->buf, STEP) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for '%s'", c->in.name);
    if (c->wide.width)
        k = c->in.read(c->in.of, c->raw + c->n_raw, WIDE_STEP - c->n_raw, e);
    else
        k = c->in.read(c->in.of, c->buf.p + c->buf.n, STEP, e);
    if (k < 0) {
        struct err why = *e;
        int rc = k == ERR_FORMAT ? c->in.resume(c->in.of, e) : 0;
        if (rc < 0)
            return rc;
        *e = why;
        c->ended = rc == 0;
        c->told = true;
        return (int)k;
    }
    c->ended = k == 0;
    if (!c->wide.width) {
        c->buf.n += (size_t)k;
        return k > 0;
    }
    c->n_raw += (size_t)k;
    if (take_raw(c) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for '%s'", c->in.name);
    return k > 0;
}

/* Makes n bytes behind *p readable unless the stream ends: 1, 0, or less.  *p moves with what is there. */
static int need(struct xml_cut *c, size_t *p, size_t n, struct err *e)
{
    while (c->buf.n - *p < n) {
        size_t at = c->at;
        int rc = more(c, e);
        *p -= at - c->at;
        if (rc <= 0)
            return rc;
    }
    return 1;
}

static int too_long(struct xml_cut *c, struct err *e)
{
    uint64_t offset = c->base + c->at;

    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": a record longer than %zu bytes", c->in.name, offset, c->max);
}

/* Moves *p to the next byte b at or behind it: 1; 0 at the end of the stream, with *p there.  ERR_LIMIT: it would be more than
 * max bytes behind c->at, with *p where reading goes on. */
static int find(struct xml_cut *c, size_t *p, char b, struct err *e)
{
    for (;;) {
        const char *hit = memchr(c->buf.p + *p, b, c->buf.n - *p);
        *p = hit ? (size_t)(hit - c->buf.p) : c->buf.n;
        if (*p - c->at > c->max) {
            too_long(c, e);
            return ERR_LIMIT;
        }
        if (hit)
            return 1;
        int rc = need(c, p, 1, e);
        if (rc <= 0)
            return rc;
    }
}

static bool is(const struct xml_cut *c, size_t p, const char *what)
{
    size_t n = strlen(what);

    return c->buf.n - p >= n && memcmp(c->buf.p + p, what, n) == 0;
}

/* As find, for mark; *p is then behind it. */
static int find_mark(struct xml_cut *c, size_t *p, const char *mark, struct err *e)
{
    for (;; (*p)++) {
        int rc = find(c, p, mark[0], e);
        if (rc <= 0)
            return rc;
        rc = need(c, p, strlen(mark), e);
        if (rc < 0)
            return rc;
        if (is(c, *p, mark)) {
            *p += strlen(mark);
            return 1;
        }
    }
}

/* ---- records ---- */

static bool is_end_of_name(char b)
{
    return ascii_is_space(b) || b == '>' || b == '/';
}

/* Whether an element's start at p is a record's; its name, as it is written, is taken then. */
static bool is_record(struct xml_cut *c, size_t p)
{
    size_t from = p + 1, to = from, local = from;

    while (to < c->buf.n && !is_end_of_name(c->buf.p[to]) && to - from < 64)
        if (c->buf.p[to++] == ':')
            local = to;
    if (to == c->buf.n || !is_end_of_name(c->buf.p[to]))
        return false;
    for (int i = 0; c->records[i]; i++)
        if (span_is((struct span){c->buf.p + local, to - local}, c->records[i])) {
            buf_clear(&c->name);
            return buf_put(&c->name, c->buf.p + from, to - from) == 0;
        }
    return false;
}

/* Moves *p from behind a quote in a tag behind the other one: 1.  Where a record begins before that, a quote is missing: *p is
 * there then. */
static int pass_quoted(struct xml_cut *c, size_t *p, char quote, struct err *e)
{
    size_t begun = *p - c->at;
    int rc = find(c, p, quote, e);

    if (rc < 0 && rc != ERR_LIMIT)
        return rc;
    for (size_t at = c->at + begun; at < *p; at++) {
        const char *lt = memchr(c->buf.p + at, '<', *p - at);
        at = lt ? (size_t)(lt - c->buf.p) : *p;
        if (lt && is_record(c, at)) {
            *p = at;
            return 1;
        }
    }
    *p += rc == 1;
    return rc;
}

/* Moves *p from a tag's name behind its '>': 1; *empty: it closes itself. */
static int pass_tag(struct xml_cut *c, size_t *p, bool *empty, struct err *e)
{
    for (;;) {
        if (*p == c->buf.n) {
            int rc = need(c, p, 1, e);
            if (rc <= 0)
                return rc;
        }
        if (*p - c->at > c->max) {
            too_long(c, e);
            return ERR_LIMIT;
        }
        char b = c->buf.p[*p];
        if (b == '<') { /* damaged: the next tag begins */
            *empty = false;
            return 1;
        }
        ++*p;
        if (b == '>') {
            *empty = c->buf.p[*p - 2] == '/';
            return 1;
        }
        if (b == '"' || b == '\'') {
            int rc = pass_quoted(c, p, b, e);
            if (rc <= 0)
                return rc;
        }
    }
}

/* Passes a comment, CDATA or an instruction at *p: 1; 2: there is none. */
static int pass_other(struct xml_cut *c, size_t *p, struct err *e)
{
    const char *mark = is(c, *p, "<!--") ? "-->" : is(c, *p, "<![CDATA[") ? "]]>" : is(c, *p, "<?") ? "?>" : NULL;

    if (!mark)
        return 2;
    *p += 2;
    return find_mark(c, p, mark, e);
}

static int fault(struct xml_cut *c, uint64_t offset, const char *why, struct err *e)
{
    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": %s", c->in.name, offset, why);
}

/* Ends a search that found nothing: what was read goes, and e says why. */
static int give_up(struct xml_cut *c, size_t p, int rc, const char *why, struct err *e)
{
    uint64_t offset = c->base + c->at;

    c->at = p;
    if (rc == 0) {
        c->rooted = false;
        return c->told ? 0 : fault(c, offset, why, e);
    }
    return rc == ERR_LIMIT ? (e->code = ERR_FORMAT) : rc;
}

/* The record that begins at c->at. */
static int take_record(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    size_t p = c->at + 1;
    bool empty = false;
    int rc = pass_tag(c, &p, &empty, e);

    while (rc == 1 && !empty) {
        rc = find(c, &p, '<', e);
        if (rc <= 0)
            break;
        rc = need(c, &p, 80, e);
        if (rc < 0)
            break;
        rc = pass_other(c, &p, e);
        if (rc <= 1)
            continue;
        rc = 1;
        if (is(c, p, "</") && c->buf.n - p > c->name.n + 2 &&
            memcmp(c->buf.p + p + 2, c->name.p, c->name.n) == 0 && is_end_of_name(c->buf.p[p + 2 + c->name.n])) {
            p += 2 + c->name.n;
            rc = find_mark(c, &p, ">", e);
            break;
        }
        if (is_record(c, p)) {
            uint64_t offset = c->base + c->at;
            c->at = p;
            return fault(c, offset, "a record without an end", e);
        }
        p++;
    }
    if (rc != 1)
        return give_up(c, p, rc, "the file ends in a record", e);
    *piece = (struct xml_piece){.offset = c->base + c->at, .head = buf_span(&c->head), .utf8 = c->wide.width != 0,
                                .record = {c->buf.p + c->at, p - c->at}};
    c->at = p;
    c->rooted = c->headed = true;
    return 1;
}

/* The next element of the names. */
static int next_record(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    for (;;) {
        size_t p = c->at;
        int rc = find(c, &p, '<', e);

        if (rc == ERR_LIMIT) { /* much that is no record */
            c->at = p;
            continue;
        }
        if (rc == 1) {
            rc = need(c, &p, 80, e);
        }
        if (rc < 0)
            return rc;
        if (p == c->buf.n) {
            bool cut = c->rooted && !c->told;
            c->rooted = false;
            c->at = p;
            return cut ? fault(c, c->base + p, "the file ends without the end of its root", e) : 0;
        }
        if (is_record(c, p)) {
            c->at = p;
            return take_record(c, piece, e);
        }
        if (is(c, p, "</"))
            c->rooted = false;
        size_t from = c->at;
        c->at = p;
        rc = pass_other(c, &p, e);
        if (rc == 2)
            p++;
        if (!c->headed && c->at >= from && c->head.n + (p - from) < XML_HEAD_MAX &&
            buf_put(&c->head, c->buf.p + from, p - from) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for '%s'", c->in.name);
        c->at = p;
        if (rc < 0 && rc != ERR_LIMIT)
            return rc;
    }
}

/* The next document: up to a declaration, or the end. */
static int next_document(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    size_t p = c->at;
    int rc = need(c, &p, 1, e);

    if (rc < 0 || (rc == 0 && c->at == c->buf.n))
        return rc;
    p = c->at + !c->lost;
    for (;;) {
        if (c->lost)
            c->at = p;
        rc = find(c, &p, '<', e);
        if (rc == 1) {
            rc = need(c, &p, 16, e);
            rc = rc < 0 ? rc : 1;
        }
        if (rc == 1 && is(c, p, "<?xml") && c->buf.n - p > 5 && ascii_is_space(c->buf.p[p + 5])) {
            if (!c->lost)
                break;
            c->lost = false;
            c->at = p++;
            continue;
        }
        if (rc == 1)
            rc = pass_other(c, &p, e);
        if (rc == ERR_LIMIT && c->lost)
            continue;
        if (rc < 0) {
            c->lost = rc == ERR_LIMIT;
            return give_up(c, p, rc, "", e);
        }
        if (rc == 0) /* the end: a comment that is open, if any, is the document's */
            break;
        p += rc == 2;
    }
    if (c->lost) {
        c->at = p;
        return 0;
    }
    *piece = (struct xml_piece){.offset = c->base + c->at, .utf8 = c->wide.width != 0,
                                .record = {c->buf.p + c->at, p - c->at}};
    c->at = p;
    return 1;
}

/* Reads the first bytes, and makes them UTF-8 if they are not bytes of characters. */
static int begin(struct xml_cut *c, struct err *e)
{
    struct buf first = {0};
    int rc = 1;

    while (c->buf.n < 4 && rc > 0)
        rc = more(c, e);
    if (rc < 0)
        return rc;
    c->begun = true;
    c->wide = wide_of((const unsigned char *)c->buf.p, c->buf.n);
    if (!c->wide.width)
        return 0;
    rc = buf_put(&first, c->buf.p, c->buf.n);
    c->buf.n = 0;
    for (size_t from = 0; rc == 0 && from < first.n;) { /* in pieces that raw holds */
        size_t n = first.n - from < WIDE_STEP - c->n_raw ? first.n - from : WIDE_STEP - c->n_raw;
        memcpy(c->raw + c->n_raw, first.p + from, n);
        from += n;
        c->n_raw += n;
        rc = take_raw(c);
    }
    buf_free(&first);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for '%s'", c->in.name) : 0;
}

int xml_cut_next(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    if (!c->begun)
        TRY(begin(c, e));
    return c->records ? next_record(c, piece, e) : next_document(c, piece, e);
}

void xml_cut_close(struct xml_cut *c)
{
    if (!c)
        return;
    buf_free(&c->buf);
    buf_free(&c->head);
    buf_free(&c->name);
    free(c);
}

int xml_cut_open(struct xml_cut **out, const struct xml_input *in, const char *const *records, size_t max, struct err *e)
{
    struct xml_cut *c = *out = calloc(1, sizeof *c);

    if (!c)
        return err_set(e, ERR_NOMEM, "out of memory");
    c->in = *in;
    c->records = records;
    c->max = max;
    if (buf_reserve(&c->buf, STEP) == 0)
        return 0;
    xml_cut_close(c);
    *out = NULL;
    return err_set(e, ERR_NOMEM, "out of memory");
}
