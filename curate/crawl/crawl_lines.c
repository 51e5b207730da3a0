#include "curate/crawl/crawl_lines.h"

#include <inttypes.h>

#include "base/json.h"

enum { AT_ONCE = 256 << 10 };

/* Reads more behind what is there: 1; 0: the end. */
static int more(struct crawl_lines *l, struct err *e)
{
    ssize_t k;

    if (l->at) {
        memmove(l->buf.p, l->buf.p + l->at, l->buf.n - l->at);
        l->buf.n -= l->at;
        l->at = 0;
    }
    if (buf_reserve(&l->buf, AT_ONCE + JSON_PADDING) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a line");
    k = l->read(l->arg, l->buf.p + l->buf.n, AT_ONCE, e);
    if (k < 0) {
        l->damaged = k == ERR_FORMAT || k == ERR_LIMIT || k == ERR_UNSUPPORTED;
        return l->damaged ? e->code = ERR_FORMAT : (int)k;
    }
    l->buf.n += (size_t)k;
    l->ended = k == 0;
    return k > 0;
}

/* After a damage: the line that it cut is lost, and so is what follows up to the next line's end. */
static int go_on(struct crawl_lines *l, struct err *e)
{
    int rc = l->skip(l->arg, e);

    if (rc < 0)
        return rc;
    l->damaged = false;
    l->ended = rc == 0;
    l->offset += l->buf.n - l->at;
    l->buf.n = l->at = 0;
    return 0;
}

/* Takes n bytes, and the newline behind them if there is one. */
static struct span take(struct crawl_lines *l, size_t n, bool newline)
{
    struct span s = {l->buf.p + l->at, n};

    l->at += n + newline;
    l->offset += n + newline;
    if (s.n && s.p[s.n - 1] == '\r')
        s.n--;
    return s;
}

int crawl_lines_next(struct crawl_lines *l, struct span *line, uint64_t *offset, struct err *e)
{
    size_t seen = 0;

    if (l->damaged)
        TRY(go_on(l, e));
    for (;;) {
        size_t n = l->buf.n - l->at;
        const char *from = n ? l->buf.p + l->at : "", *nl = n > seen ? memchr(from + seen, '\n', n - seen) : NULL;
        size_t k = nl ? (size_t)(nl - from) : n;

        if (!nl && !l->ended && k <= CRAWL_LINE_MAX) {
            seen = n;
            TRY(more(l, e));
            continue;
        }
        if (k == 0 && !nl)
            return 0;
        *offset = l->offset;
        *line = take(l, k, nl != NULL);
        if (!l->passing && k <= CRAWL_LINE_MAX)
            return 1;
        if (!l->passing) {
            l->passing = !nl;
            return err_set(e, ERR_FORMAT, "at byte %" PRIu64 ": the line is longer than %d bytes", *offset, CRAWL_LINE_MAX);
        }
        l->passing = !nl;
        seen = 0;
    }
}

void crawl_lines_reset(struct crawl_lines *l)
{
    buf_clear(&l->buf);
    l->at = 0;
    l->offset = 0;
    l->ended = l->damaged = l->passing = false;
}

void crawl_lines_free(struct crawl_lines *l)
{
    buf_free(&l->buf);
}
