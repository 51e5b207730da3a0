#include "curate/xml/xml_cut.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/ascii.h"

struct xml_cut {
    struct xml_stream s;
    const char *const *records;
    size_t max;
    struct buf head, name; /* name: the record's, as it is written */
    bool rooted; /* a record came, and no end tag behind it */
    bool headed; /* a record came: the head is whole */
    bool lost;   /* in the rest of a document that is too long */
};

static int too_long(struct xml_cut *c, struct err *e)
{
    err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": a record longer than %zu bytes", c->s.in.name, c->s.base + c->s.at, c->max);
    return ERR_LIMIT;
}

/* Looks on in the stream as xml_stream_find and xml_stream_find_mark do, to c->max behind the record's start.  ERR_LIMIT has a
 * message. */
static int find(struct xml_cut *c, size_t *p, char b, struct err *e)
{
    int rc = xml_stream_find(&c->s, p, b, c->max, e);

    return rc == ERR_LIMIT ? too_long(c, e) : rc;
}

static int find_mark(struct xml_cut *c, size_t *p, const char *mark, struct err *e)
{
    int rc = xml_stream_find_mark(&c->s, p, mark, c->max, e);

    return rc == ERR_LIMIT ? too_long(c, e) : rc;
}

static bool is(const struct xml_cut *c, size_t p, const char *what)
{
    return xml_stream_is(&c->s, p, what);
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

    while (to < c->s.buf.n && !is_end_of_name(c->s.buf.p[to]) && to - from < 64)
        if (c->s.buf.p[to++] == ':')
            local = to;
    if (to == c->s.buf.n || !is_end_of_name(c->s.buf.p[to]))
        return false;
    for (int i = 0; c->records[i]; i++)
        if (span_is((struct span){c->s.buf.p + local, to - local}, c->records[i])) {
            buf_clear(&c->name);
            return buf_put(&c->name, c->s.buf.p + from, to - from) == 0;
        }
    return false;
}

/* Moves *p from behind a quote in a tag behind the other one: 1.  Where a record begins before that, a quote is missing: *p is
 * there then. */
static int pass_quoted(struct xml_cut *c, size_t *p, char quote, struct err *e)
{
    size_t begun = *p - c->s.at;
    int rc = find(c, p, quote, e);

    if (rc < 0 && rc != ERR_LIMIT)
        return rc;
    for (size_t at = c->s.at + begun; at < *p; at++) {
        const char *lt = memchr(c->s.buf.p + at, '<', *p - at);
        at = lt ? (size_t)(lt - c->s.buf.p) : *p;
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
        if (*p == c->s.buf.n) {
            int rc = xml_stream_need(&c->s, p, 1, e);
            if (rc <= 0)
                return rc;
        }
        if (*p - c->s.at > c->max)
            return too_long(c, e);
        char b = c->s.buf.p[*p];
        if (b == '<') { /* damaged: the next tag begins */
            *empty = false;
            return 1;
        }
        ++*p;
        if (b == '>') {
            *empty = c->s.buf.p[*p - 2] == '/';
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

/* Ends a search that found nothing: what was read goes, and e says why. */
static int give_up(struct xml_cut *c, size_t p, int rc, const char *why, struct err *e)
{
    uint64_t offset = c->s.base + c->s.at;

    c->s.at = p;
    if (rc == 0) {
        c->rooted = false;
        return c->s.n_damaged ? 0 : xml_stream_fault(&c->s, offset, why, e);
    }
    return rc == ERR_LIMIT ? (e->code = ERR_FORMAT) : rc;
}

/* The record that begins at c->s.at. */
static int take_record(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    size_t p = c->s.at + 1;
    bool empty = false;
    int rc = pass_tag(c, &p, &empty, e);

    while (rc == 1 && !empty) {
        rc = find(c, &p, '<', e);
        if (rc <= 0)
            break;
        rc = xml_stream_need(&c->s, &p, 80, e);
        if (rc < 0)
            break;
        rc = pass_other(c, &p, e);
        if (rc <= 1)
            continue;
        rc = 1;
        if (is(c, p, "</") && c->s.buf.n - p > c->name.n + 2 &&
            memcmp(c->s.buf.p + p + 2, c->name.p, c->name.n) == 0 && is_end_of_name(c->s.buf.p[p + 2 + c->name.n])) {
            p += 2 + c->name.n;
            rc = find_mark(c, &p, ">", e);
            break;
        }
        if (is_record(c, p)) {
            uint64_t offset = c->s.base + c->s.at;
            c->s.at = p;
            return xml_stream_fault(&c->s, offset, "a record without an end", e);
        }
        p++;
    }
    if (rc != 1)
        return give_up(c, p, rc, "the file ends in a record", e);
    *piece = (struct xml_piece){.offset = c->s.base + c->s.at, .head = buf_span(&c->head), .utf8 = c->s.wide.width != 0,
                                .record = {c->s.buf.p + c->s.at, p - c->s.at}};
    c->s.at = p;
    c->rooted = c->headed = true;
    return 1;
}

/* The next element of the names. */
static int next_record(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    for (;;) {
        size_t p = c->s.at;
        int rc = find(c, &p, '<', e);

        if (rc == ERR_LIMIT) { /* much that is no record */
            c->s.at = p;
            continue;
        }
        if (rc == 1) {
            rc = xml_stream_need(&c->s, &p, 80, e);
        }
        if (rc < 0)
            return rc;
        if (p == c->s.buf.n) {
            bool cut = c->rooted && !c->s.n_damaged;
            c->rooted = false;
            c->s.at = p;
            return cut ? xml_stream_fault(&c->s, c->s.base + p, "the file ends without the end of its root", e) : 0;
        }
        if (is_record(c, p)) {
            c->s.at = p;
            return take_record(c, piece, e);
        }
        if (is(c, p, "</"))
            c->rooted = false;
        size_t from = c->s.at;
        c->s.at = p;
        rc = pass_other(c, &p, e);
        if (rc == 2)
            p++;
        if (!c->headed && c->s.at >= from && c->head.n + (p - from) < XML_HEAD_MAX &&
            buf_put(&c->head, c->s.buf.p + from, p - from) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for '%s'", c->s.in.name);
        c->s.at = p;
        if (rc < 0 && rc != ERR_LIMIT)
            return rc;
    }
}

/* The next document: up to a declaration, or the end. */
static int next_document(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    size_t p = c->s.at;
    int rc = xml_stream_need(&c->s, &p, 1, e);

    if (rc < 0 || (rc == 0 && c->s.at == c->s.buf.n))
        return rc;
    p = c->s.at + !c->lost;
    for (;;) {
        if (c->lost)
            c->s.at = p;
        rc = find(c, &p, '<', e);
        if (rc == 1) {
            rc = xml_stream_need(&c->s, &p, 16, e);
            rc = rc < 0 ? rc : 1;
        }
        if (rc == 1 && is(c, p, "<?xml") && c->s.buf.n - p > 5 && ascii_is_space(c->s.buf.p[p + 5])) {
            if (!c->lost)
                break;
            c->lost = false;
            c->s.at = p++;
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
        c->s.at = p;
        return 0;
    }
    *piece = (struct xml_piece){.offset = c->s.base + c->s.at, .utf8 = c->s.wide.width != 0,
                                .record = {c->s.buf.p + c->s.at, p - c->s.at}};
    c->s.at = p;
    return 1;
}

int xml_cut_next(struct xml_cut *c, struct xml_piece *piece, struct err *e)
{
    return c->records ? next_record(c, piece, e) : next_document(c, piece, e);
}

void xml_cut_close(struct xml_cut *c)
{
    if (!c)
        return;
    xml_stream_close(&c->s);
    buf_free(&c->head);
    buf_free(&c->name);
    free(c);
}

int xml_cut_open(struct xml_cut **out, const struct xml_input *in, const char *const *records, size_t max, struct err *e)
{
    struct xml_cut *c = *out = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return err_set(e, ERR_NOMEM, "out of memory");
    c->records = records;
    c->max = max;
    rc = xml_stream_open(&c->s, in, e);
    if (rc < 0) {
        xml_cut_close(c);
        *out = NULL;
    }
    return rc;
}
