#include "curate/wiki/wiki_dump.h"

#include <inttypes.h>
#include <stdlib.h>

enum { STEP = 256 << 10, LOOK_AHEAD = 32 };
#define NOWHERE UINT64_MAX

struct wiki_dump {
    struct xml_input in;
    size_t max_page;
    char *buf;      /* [at, n) is not looked at yet */
    size_t at, n, cap;
    uint64_t base;  /* offset of buf[0] in the stream */
    bool ended, broken_end; /* the stream is over; by damage behind which nothing is */
    bool rooted;    /* inside <mediawiki> */
    bool lost;      /* behind damage: all up to the next <page> belongs to it */
    struct buf head;
};

static int fault_at(const struct wiki_dump *d, uint64_t offset, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": %s", d->in.name, offset, what);
}

/* Reads more behind n; what is before d->at goes, and *at moves with it.  1: there is more,
 * 0: the end. */
static int more(struct wiki_dump *d, size_t *at, struct err *e)
{
    ssize_t k;

    if (d->ended)
        return 0;
    if (d->at && (d->cap - d->n < STEP || d->at == d->n)) {
        memmove(d->buf, d->buf + d->at, d->n - d->at);
        d->base += d->at;
        *at -= d->at;
        d->n -= d->at;
        d->at = 0;
    }
    if (d->cap - d->n < STEP) {
        char *p = realloc(d->buf, d->cap * 2);
        if (!p)
            return err_set(e, ERR_NOMEM, "out of memory for a page of '%s'", d->in.name);
        d->buf = p;
        d->cap *= 2;
    }
    k = d->in.read(d->in.of, d->buf + d->n, STEP, e);
    if (k > 0) {
        d->n += (size_t)k;
        return 1;
    }
    if (k == 0)
        d->ended = true;
    if (k == ERR_FORMAT) { /* what was begun is lost */
        struct err why;
        int rc = d->in.resume(d->in.of, &why);
        if (rc < 0 && rc != ERR_FORMAT) {
            *e = why;
            return rc;
        }
        d->at = *at = d->n;
        d->lost = true;
        if (rc != 1)
            d->ended = d->broken_end = true;
    }
    return (int)k;
}

static bool is(const struct wiki_dump *d, size_t at, const char *what)
{
    size_t n = strlen(what);

    return d->n - at >= n && memcmp(d->buf + at, what, n) == 0;
}

/* Whether a tag of this name is at `at`. */
static bool tag(const struct wiki_dump *d, size_t at, const char *name)
{
    size_t n = strlen(name);

    return is(d, at, name) && d->n - at > n && d->buf[at + n] && strchr(" \t\r\n>/", d->buf[at + n]);
}

/* Makes LOOK_AHEAD bytes behind *at there, unless the stream ends before. */
static int look_ahead(struct wiki_dump *d, size_t *at, struct err *e)
{
    while (d->n - *at < LOOK_AHEAD && !d->ended)
        TRY(more(d, at, e));
    return 0;
}

/* The next c at or behind *at, in at most max bytes behind d->at: 1, or 0 if there is none. */
static int find(struct wiki_dump *d, size_t *at, char c, size_t max, struct err *e)
{
    for (;;) {
        const char *p = memchr(d->buf + *at, c, d->n - *at);
        int rc;

        if (p) {
            *at = (size_t)(p - d->buf);
            TRY(look_ahead(d, at, e));
            return *at - d->at <= max;
        }
        *at = d->n;
        if (*at - d->at > max)
            return 0;
        rc = more(d, at, e);
        if (rc <= 0)
            return rc;
    }
}

/* As find, for all of mark; *at is then behind it. */
static int find_mark(struct wiki_dump *d, size_t *at, const char *mark, size_t max, struct err *e)
{
    for (;; (*at)++) {
        int rc = find(d, at, mark[0], max, e);
        if (rc <= 0)
            return rc;
        if (is(d, *at, mark)) {
            *at += strlen(mark);
            return 1;
        }
    }
}

/* Takes what goes up to mark into the head. */
static int take_head(struct wiki_dump *d, const char *mark, struct err *e)
{
    size_t at = d->at;
    uint64_t began = d->base + d->at;
    int rc = find_mark(d, &at, mark, WIKI_HEAD_MAX - d->head.n, e);

    if (rc == 1) {
        rc = buf_put(&d->head, d->buf + d->at, at - d->at);
        d->at = at;
        return rc < 0 ? err_set(e, rc, "out of memory for a header") : 0;
    }
    if (rc == 0) {
        d->at = at;
        d->lost = true;
        rc = fault_at(d, began, "the header has no end, or one too far away", e);
    }
    return rc;
}

/* The page at d->at. */
static int take_page(struct wiki_dump *d, struct wiki_piece *piece, struct err *e)
{
    uint64_t began = d->base + d->at;
    size_t at = d->at + 5;
    int rc;

    d->lost = true; /* until its end is found */
    for (;;) {
        rc = find(d, &at, '<', d->max_page, e);
        if (rc < 0)
            return rc;
        if (rc == 0 && !d->ended) {
            d->at = at;
            return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": the page is longer than %zu bytes", d->in.name,
                           began, d->max_page);
        }
        if (rc == 0 || is(d, at, "</mediawiki") || tag(d, at, "<page")) {
            d->at = at;
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
        if (rc < 0)
            return rc;
    }
    *piece = (struct wiki_piece){.offset = began, .head = buf_span(&d->head), .page = {d->buf + d->at, at + 7 - d->at}};
    d->at = at + 7;
    d->lost = false;
    return 1;
}

/* What is at d->at, a '<'.  1: a page, 0: passed over, 2: no part of an export. */
static int take_tag(struct wiki_dump *d, struct wiki_piece *piece, struct err *e)
{
    if (tag(d, d->at, "<page"))
        return take_page(d, piece, e);
    if (tag(d, d->at, "<mediawiki")) {
        buf_clear(&d->head);
        d->rooted = true;
        d->lost = false;
        return take_head(d, ">", e);
    }
    if (tag(d, d->at, "<siteinfo"))
        return take_head(d, "</siteinfo>", e);
    if (tag(d, d->at, "</mediawiki")) {
        d->rooted = d->lost = false;
        d->at += strlen("</mediawiki>");
        return 0;
    }
    if (is(d, d->at, "<!--") || is(d, d->at, "<?")) {
        size_t at = d->at;
        int rc = find_mark(d, &at, is(d, d->at, "<?") ? "?>" : "-->", WIKI_HEAD_MAX, e);
        d->at = at;
        return rc < 0 ? rc : 0;
    }
    if (is(d, d->at, "<!DOCTYPE")) { /* declares nothing that is used: all up to the root is passed */
        d->lost = true;
        d->at++;
        return 0;
    }
    d->at++;
    return 2;
}

/* Moves d->at to the next '<': 1, or 0 at the end.  *stray: where the first byte that is
 * not white space was passed, if one was. */
static int to_tag(struct wiki_dump *d, uint64_t *stray, struct err *e)
{
    for (;; d->at++) {
        int rc;

        if (d->at == d->n) {
            size_t at = d->at;
            rc = more(d, &at, e);
            if (rc <= 0)
                return rc;
        }
        char c = d->buf[d->at];
        if (c == '<')
            break;
        if (d->lost || *stray != NOWHERE) { /* faster */
            const char *p = memchr(d->buf + d->at, '<', d->n - d->at);
            d->at = p ? (size_t)(p - d->buf) - 1 : d->n - 1;
        } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            *stray = d->base + d->at;
        }
    }
    size_t at = d->at;
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
        if (stray != NOWHERE && (rc == 0 || tag(d, d->at, "<page") || tag(d, d->at, "</mediawiki")))
            return fault_at(d, stray, "bytes that belong to no page", e);
        if (rc == 0) {
            if (!d->rooted || d->broken_end)
                return 0;
            d->rooted = false;
            return fault_at(d, d->base + d->n, "the dump ends without </mediawiki>", e);
        }
        uint64_t at = d->base + d->at;
        rc = take_tag(d, piece, e);
        if (rc == 2 && !d->lost && stray == NOWHERE)
            stray = at;
        if (rc < 0 || rc == 1)
            return rc;
    }
}

int wiki_dump_open(struct wiki_dump **out, const struct xml_input *in, size_t max_page, struct err *e)
{
    struct wiki_dump *d = calloc(1, sizeof *d);

    *out = d;
    if (d) {
        d->in = *in;
        d->max_page = max_page;
        d->cap = 2 * STEP;
        d->buf = malloc(d->cap);
    }
    if (d && d->buf)
        return 0;
    wiki_dump_close(d);
    *out = NULL;
    return err_set(e, ERR_NOMEM, "out of memory");
}

void wiki_dump_close(struct wiki_dump *d)
{
    if (!d)
        return;
    buf_free(&d->head);
    free(d->buf);
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
