#include "curate/wiki/wiki_dump.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LOOK_AHEAD = 32 };
#define NOWHERE UINT64_MAX

struct wiki_dump {
    struct xml_stream s;
    size_t max_page;
    bool broken_end; /* the stream is over, by damage behind which nothing is */
    bool rooted;     /* inside <mediawiki> */
    bool lost;       /* behind damage: all up to the next <page> belongs to it */
    struct buf head;
};

static int fault_at(const struct wiki_dump *d, uint64_t offset, const char *what, struct err *e)
{
    return xml_stream_fault(&d->s, offset, what, e);
}

/* What a search has returned; where the stream was damaged meanwhile, what was begun is lost. */
static int searched(struct wiki_dump *d, uint64_t n_damaged, int rc)
{
    if (d->s.n_damaged != n_damaged) {
        d->s.at = d->s.buf.n;
        d->lost = true;
        d->broken_end = d->s.ended;
    }
    return rc;
}

/* Makes LOOK_AHEAD bytes behind *at there, unless the stream ends before. */
static int look_ahead(struct wiki_dump *d, size_t *at, struct err *e)
{
    uint64_t n_damaged = d->s.n_damaged;
    int rc = searched(d, n_damaged, xml_stream_need(&d->s, at, LOOK_AHEAD, e));

    return rc < 0 ? rc : 0;
}

/* As xml_stream_find_mark. */
static int find_mark(struct wiki_dump *d, size_t *at, const char *mark, size_t max, struct err *e)
{
    uint64_t n_damaged = d->s.n_damaged;

    return searched(d, n_damaged, xml_stream_find_mark(&d->s, at, mark, max, e));
}

static bool is(const struct wiki_dump *d, size_t at, const char *what)
{
    return xml_stream_is(&d->s, at, what);
}

/* Whether a tag of this name is at `at`. */
static bool tag(const struct wiki_dump *d, size_t at, const char *name)
{
    size_t n = strlen(name);

    return is(d, at, name) && d->s.buf.n - at > n && d->s.buf.p[at + n] && strchr(" \t\r\n>/", d->s.buf.p[at + n]);
}

/* Takes what goes up to mark into the head. */
static int take_head(struct wiki_dump *d, const char *mark, struct err *e)
{
    size_t at = d->s.at;
    uint64_t began = d->s.base + d->s.at;
    int rc = find_mark(d, &at, mark, WIKI_HEAD_MAX - d->head.n, e);

    if (rc == 1) {
        rc = buf_put(&d->head, d->s.buf.p + d->s.at, at - d->s.at);
        d->s.at = at;
        return rc < 0 ? err_set(e, rc, "out of memory for a header") : 0;
    }
    if (rc < 0 && rc != ERR_LIMIT)
        return rc;
    d->s.at = at;
    d->lost = true;
    return fault_at(d, began, "the header has no end, or one too far away", e);
}

/* The page at d->s.at. */
static int take_page(struct wiki_dump *d, struct wiki_piece *piece, struct err *e)
{
    uint64_t began = d->s.base + d->s.at;
    size_t at = d->s.at + 5;
    int rc;

    d->lost = true; /* until its end is found */
    for (;;) {
        rc = find_mark(d, &at, "<", d->max_page, e);
        if (rc == ERR_LIMIT) {
            d->s.at = at;
            return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": the page is longer than %zu bytes", d->s.in.name, began,
                           d->max_page);
        }
        if (rc < 0)
            return rc;
        at -= rc == 1; /* back to the mark */
        TRY(look_ahead(d, &at, e));
        if (rc == 0 || is(d, at, "</mediawiki") || tag(d, at, "<page")) {
            d->s.at = at;
            d->rooted = d->rooted && rc; /* one fault is enough */
            return fault_at(d, began, rc ? "a page without an end" : "the page is cut short", e);
        }
        if (is(d, at, "</page>"))
            break;
        if (is(d, at, "<!--"))
            rc = find_mark(d, &at, "-->", d->max_page, e);
        else if (is(d, at, "<![CDATA["))
            rc = find_mark(d, &at, "]]>", d->max_page, e);
        else
            at++;
        if (rc < 0 && rc != ERR_LIMIT)
            return rc;
    }
    *piece = (struct wiki_piece){.offset = began, .head = buf_span(&d->head),
                                 .page = {d->s.buf.p + d->s.at, at + 7 - d->s.at}};
    d->s.at = at + 7;
    d->lost = false;
    return 1;
}

/* What is at d->s.at, a '<'.  1: a page, 0: passed over, 2: no part of an export. */
static int take_tag(struct wiki_dump *d, struct wiki_piece *piece, struct err *e)
{
    if (tag(d, d->s.at, "<page"))
        return take_page(d, piece, e);
    if (tag(d, d->s.at, "<mediawiki")) {
        buf_clear(&d->head);
        d->rooted = true;
        d->lost = false;
        return take_head(d, ">", e);
    }
    if (tag(d, d->s.at, "<siteinfo"))
        return take_head(d, "</siteinfo>", e);
    if (tag(d, d->s.at, "</mediawiki")) {
        d->rooted = d->lost = false;
        d->s.at += strlen("</mediawiki>");
        return 0;
    }
    if (is(d, d->s.at, "<!--") || is(d, d->s.at, "<?")) {
        size_t at = d->s.at;
        int rc = find_mark(d, &at, is(d, d->s.at, "<?") ? "?>" : "-->", WIKI_HEAD_MAX, e);
        if (rc < 0 && rc != ERR_LIMIT)
            return rc;
        d->s.at = at;
        return 0;
    }
    if (is(d, d->s.at, "<!DOCTYPE")) { /* declares nothing that is used: all up to the root is passed */
        d->lost = true;
        d->s.at++;
        return 0;
    }
    d->s.at++;
    return 2;
}

/* Moves d->s.at to the next '<': 1, or 0 at the end.  *stray: where the first byte that is
 * not white space was passed, if one was. */
static int to_tag(struct wiki_dump *d, uint64_t *stray, struct err *e)
{
    for (;; d->s.at++) {
        if (d->s.at == d->s.buf.n) {
            size_t at = d->s.at;
            TRY(look_ahead(d, &at, e));
            if (d->s.at == d->s.buf.n)
                return 0;
        }
        char c = d->s.buf.p[d->s.at];
        if (c == '<')
            break;
        if (d->lost || *stray != NOWHERE) { /* faster */
            const char *p = memchr(d->s.buf.p + d->s.at, '<', d->s.buf.n - d->s.at);
            d->s.at = p ? (size_t)(p - d->s.buf.p) - 1 : d->s.buf.n - 1;
        } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            *stray = d->s.base + d->s.at;
        }
    }
    size_t at = d->s.at;
    TRY(look_ahead(d, &at, e));
    return 1;
}

int wiki_dump_next(struct wiki_dump *d, struct wiki_piece *piece, struct err *e)
{
    uint64_t stray = NOWHERE;

    for (;;) {
        int rc = to_tag(d, &stray, e);

        if (rc < 0)
            return rc;
        /* Bytes of no page are reported where the next thing begins. */
        if (stray != NOWHERE && (rc == 0 || tag(d, d->s.at, "<page") || tag(d, d->s.at, "</mediawiki")))
            return fault_at(d, stray, "bytes that belong to no page", e);
        if (rc == 0) {
            if (!d->rooted || d->broken_end)
                return 0;
            d->rooted = false;
            return fault_at(d, d->s.base + d->s.buf.n, "the dump ends without </mediawiki>", e);
        }
        uint64_t at = d->s.base + d->s.at;
        rc = take_tag(d, piece, e);
        if (rc == 2 && !d->lost && stray == NOWHERE)
            stray = at;
        if (rc < 0 || rc == 1)
            return rc;
    }
}

int wiki_dump_open(struct wiki_dump **out, const struct xml_input *in, size_t max_page, struct err *e)
{
    struct wiki_dump *d = *out = calloc(1, sizeof *d);
    int rc;

    if (!d)
        return err_set(e, ERR_NOMEM, "out of memory");
    d->max_page = max_page;
    rc = xml_stream_open(&d->s, in, e);
    if (rc < 0) {
        wiki_dump_close(d);
        *out = NULL;
    }
    return rc;
}

void wiki_dump_close(struct wiki_dump *d)
{
    if (!d)
        return;
    xml_stream_close(&d->s);
    buf_free(&d->head);
    free(d);
}

bool wiki_dump_is(struct span s)
{
    const char *p = s.p, *end = s.p + s.n;

    if (s.n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    for (;;) {
        const char *mark = NULL;

        while (p < end && strchr(" \t\r\n", *p) && *p)
            p++;
        size_t n = (size_t)(end - p);
        if (n >= 10 && memcmp(p, "<mediawiki", 10) == 0)
            return true;
        if (n >= 6 && memcmp(p, "<page>", 6) == 0)
            return memmem(p, n, "<title>", 7) != NULL;
        if (n >= 4 && memcmp(p, "<!--", 4) == 0)
            mark = "-->";
        else if (n >= 2 && memcmp(p, "<?", 2) == 0)
            mark = "?>";
        else if (n >= 9 && memcmp(p, "<!DOCTYPE", 9) == 0)
            return memmem(p, n, "<mediawiki", 10) != NULL;
        if (mark)
            p = memmem(p, n, mark, strlen(mark));
        if (!mark || !p)
            return false;
        p += strlen(mark);
    }
}
