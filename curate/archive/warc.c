/* A window over the stream, addressed by stream offsets.  A record is given only when
 * what follows it fits: separators, then another record, the end, or at least the
 * separators in full.  Otherwise its length is wrong, and the search for the next
 * record begins at its block. */
#include "curate/archive/warc_header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    READ_BYTES = 256 << 10,
    HEAD_OF_CUT = 64 << 10, /* what is kept of a block that is too long: its HTTP head */
    SEPARATORS_MAX = 64,    /* line ends looked at behind a block before it is believed */
    STRAY_MAX = 8,          /* bytes by which a length may be short and the record still count */
    MARKS_MAX = 1 << 16
};

/* Where in the stream a member begins, and where in the file. */
struct mark {
    uint64_t at, member;
};

struct warc {
    struct file_in *f;
    size_t max_block;
    enum warc_kind kind;
    char *buf;
    size_t n, cap;
    uint64_t base; /* stream offset of buf[0] */
    uint64_t keep; /* what lies before may be forgotten */
    uint64_t at;   /* where the next record should begin */
    bool ended, lost; /* lost: look for the next record, without a further report */
    bool fault;       /* the stream is damaged behind the window: why */
    struct err why;
    uint64_t fault_member;
    uint64_t seen; /* no record begins where the members up to here do, but for those given */
    struct mark *mark;
    int n_marks, cap_marks;
    bool first_done, lf_only;
    bool within; /* the stream is a part of an archive */
    int newlines; /* passed before `at` */
    uint64_t unseparated;
    struct buf header, head; /* copies: the window moves */
};

/* ---- the window ---- */

static uint64_t end_of(const struct warc *w)
{
    return w->base + w->n;
}

static const char *ptr(const struct warc *w, uint64_t at)
{
    return w->buf + (at - w->base);
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a record");
}

static int add_mark(struct warc *w, uint64_t member)
{
    if (w->n_marks && w->mark[w->n_marks - 1].member == member)
        return 0;
    if (w->n_marks == w->cap_marks) {
        int old = 0; /* marks before the last at or before keep are of no use */
        while (old + 1 < w->n_marks && w->mark[old + 1].at <= w->keep)
            old++;
        if (old > w->n_marks / 2 || w->n_marks >= MARKS_MAX) {
            if (old < w->n_marks / 2) /* members of a few bytes each: let the oldest go */
                old = w->n_marks / 2;
            memmove(w->mark, w->mark + old, (size_t)(w->n_marks - old) * sizeof *w->mark);
            w->n_marks -= old;
        } else {
            int cap = w->cap_marks ? w->cap_marks * 2 : 64;
            struct mark *p = realloc(w->mark, (size_t)cap * sizeof *p);
            if (!p)
                return ERR_NOMEM;
            w->mark = p;
            w->cap_marks = cap;
        }
    }
    w->mark[w->n_marks++] = (struct mark){end_of(w), member};
    return 0;
}

/* The member in which a byte of the stream lies. */
static struct mark mark_of(const struct warc *w, uint64_t at)
{
    int i = w->n_marks - 1;

    if (file_codec(w->f) == FILE_PLAIN)
        return (struct mark){at, at};
    while (i > 0 && w->mark[i].at > at)
        i--;
    return i < 0 ? (struct mark){0, 0} : w->mark[i];
}

static uint64_t member_of(const struct warc *w, uint64_t at)
{
    return mark_of(w, at).member;
}

/* Where in the file the member ends with which the stream up to `to` does, or the line ends behind it up to `next`, which
 * has been read; 0: it goes on. */
static uint64_t stored_end(const struct warc *w, uint64_t to, uint64_t next)
{
    int i = w->n_marks;

    if (file_codec(w->f) == FILE_PLAIN)
        return to;
    while (i > 0 && w->mark[i - 1].at >= to)
        i--;
    if (i < w->n_marks && w->mark[i].at <= next)
        return w->mark[i].member;
    return w->ended && next >= end_of(w) ? file_consumed(w->f) : 0;
}

static int make_room(struct warc *w, struct err *e)
{
    size_t old = (size_t)(w->keep - w->base);

    if (w->cap - w->n >= READ_BYTES)
        return 0;
    if (old && old >= w->cap / 2) {
        w->n -= old;
        memmove(w->buf, w->buf + old, w->n);
        w->base += old;
    }
    if (w->cap - w->n < READ_BYTES) {
        size_t cap = w->cap ? w->cap * 2 : 4 * (size_t)READ_BYTES;
        char *p = realloc(w->buf, cap);
        if (!p)
            return no_memory(e);
        w->buf = p;
        w->cap = cap;
    }
    return 0;
}

/* Reads once more.  1; 0: the end, or the stream is damaged here. */
static int more(struct warc *w, struct err *e)
{
    struct err why;
    ssize_t k;

    if (w->ended || w->fault)
        return 0;
    TRY(make_room(w, e));
    k = file_read(w->f, w->buf + w->n, READ_BYTES, &why);
    if (k == ERR_FORMAT || k == ERR_LIMIT || k == ERR_UNSUPPORTED) {
        w->fault = true;
        w->why = why;
        w->fault_member = file_member_offset(w->f);
        return 0;
    }
    if (k < 0) {
        *e = why;
        return (int)k;
    }
    if (k == 0) {
        w->ended = true;
        return 0;
    }
    if (file_codec(w->f) != FILE_PLAIN && add_mark(w, file_member_offset(w->f)) < 0)
        return no_memory(e);
    w->n += (size_t)k;
    return 1;
}

/* Makes n bytes from `at` available: 1, or 0 if there are fewer. */
static int need(struct warc *w, uint64_t at, size_t n, struct err *e)
{
    while (end_of(w) < at + n) {
        int rc = more(w, e);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

/* ---- where records begin ---- */

/* What begins there; WARC_NONE: no record of the stream's kind, or of either while that is not known. */
static enum warc_kind kind_at(const struct warc *w, uint64_t at)
{
    const char *p = ptr(w, at);
    size_t n = (size_t)(end_of(w) - at);

    if (w->kind != WARC_ARC && warc_begins(p, n))
        return WARC_WARC;
    return w->kind != WARC_WARC && warc_arc_begins(p, n) ? WARC_ARC : WARC_NONE;
}

static bool begins(const struct warc *w, uint64_t at)
{
    return kind_at(w, at) != WARC_NONE;
}

/* How far from the window's end a beginning may lie unseen. */
static size_t lookahead(const struct warc *w)
{
    return w->kind == WARC_WARC ? 24 : WARC_HEADER_MAX;
}

static const char *after(const char *p)
{
    return p ? p + 1 : NULL;
}

static uint64_t find_kind(const struct warc *w, enum warc_kind kind, uint64_t from, uint64_t to)
{
    while (from < to) {
        const char *p = ptr(w, from), *q;
        size_t n = (size_t)(to - from);

        if (kind == WARC_ARC)
            q = from == w->base || p[-1] == '\n' ? p : after(memchr(p, '\n', n));
        else
            q = memmem(p, (size_t)(end_of(w) - from), "WARC/", 5);
        if (!q || (size_t)(q - p) >= n)
            return to;
        from += (uint64_t)(q - p);
        if (from < to && begins(w, from))
            return from;
        from++;
    }
    return to;
}

/* The first place at or after `from`, in the window and before `to`, where a record
 * can begin, or `to`. */
static uint64_t find_begin(const struct warc *w, uint64_t from, uint64_t to)
{
    if (w->kind != WARC_ARC)
        to = find_kind(w, WARC_WARC, from, to);
    return w->kind == WARC_WARC ? to : find_kind(w, WARC_ARC, from, to);
}

/* Moves w->at to the next record, or to the end or the damage before it. */
static int seek_record(struct warc *w, struct err *e)
{
    for (;;) {
        uint64_t end = end_of(w), to;
        int rc;

        to = w->ended || w->fault || end < w->at + lookahead(w) ? end : end - lookahead(w);
        if (to > w->at)
            w->at = find_begin(w, w->at, to);
        if (w->at < to)
            return 0;
        if ((w->ended || w->fault) && w->at >= end)
            return 0;
        w->keep = w->at > w->base ? w->at - 1 : w->at; /* one before tells of line starts */
        rc = more(w, e);
        if (rc < 0)
            return rc;
    }
}

/* ---- messages ---- */

static int bad(struct warc *w, uint64_t at, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int bad(struct warc *w, uint64_t at, struct err *e, const char *fmt, ...)
{
    char what[300], member[40] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (file_codec(w->f) != FILE_PLAIN)
        snprintf(member, sizeof member, " (member at %" PRIu64 ")", member_of(w, at));
    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 "%s: %s", file_name(w->f), at, member, what);
}

/* The stream is damaged and there is nothing before the damage any more: reports it and
 * goes behind it.  what: the record that is lost, or NULL. */
static int pass_fault(struct warc *w, uint64_t at, const char *what, struct err *e)
{
    struct err why = w->why;
    int rc = file_skip_member(w->f, e);

    if (rc < 0)
        return rc;
    w->fault = false;
    w->ended = rc == 0;
    w->at = w->keep = end_of(w);
    w->lost = false;
    if (what)
        return bad(w, at, e, "%s is lost: %s", what, why.msg);
    *e = why;
    return e->code = ERR_FORMAT;
}

/* ---- headers ---- */

/* The length of the header at w->at with its empty line (an ARC record has one line); 0:
 * it is too long or cut short, by the end or by a line that begins another record. */
static int header_length(struct warc *w, size_t *length, struct err *e)
{
    uint64_t at = w->at;

    *length = 0;
    for (;;) {
        const char *nl = NULL;
        if (at < end_of(w))
            nl = memchr(ptr(w, at), '\n', (size_t)(end_of(w) - at));
        if (!nl) {
            int rc;
            if (end_of(w) - w->at > WARC_HEADER_MAX)
                return 0;
            rc = more(w, e);
            if (rc <= 0)
                return rc;
            continue;
        }
        uint64_t next = w->base + (uint64_t)(nl + 1 - w->buf);
        if (next - w->at > WARC_HEADER_MAX)
            return 0;
        struct span line = {ptr(w, at), (size_t)(next - at)};
        if (w->kind == WARC_ARC || warc_trim(line).n == 0) {
            *length = (size_t)(next - w->at);
            return 0;
        }
        if (at > w->at && warc_begins(line.p, line.n))
            return 0;
        at = next;
    }
}

/* ---- blocks ---- */

static const char *length_name(const struct warc_record *r)
{
    return r->arc ? "the length in its header" : "Content-Length";
}

/* A member that begins with a record, inside a block: the length was wrong. */
static uint64_t record_in_members(const struct warc *w, uint64_t from, uint64_t to)
{
    for (int i = w->n_marks - 1; i >= 0 && w->mark[i].at > from; i--)
        if (w->mark[i].at < to && w->mark[i].at >= w->base && w->mark[i].at < end_of(w) &&
            begins(w, w->mark[i].at))
            return w->mark[i].at;
    return to;
}

/* Reads the block at `from` into the window, or passes over it if it is too long.
 * *to is where it ended: before its length is through when the stream ended, is
 * damaged, or shows that the length is wrong. */
static int read_block(struct warc *w, struct warc_record *r, uint64_t from, uint64_t *to, struct err *e)
{
    uint64_t want = from + (uint64_t)r->length;
    bool plain = file_codec(w->f) == FILE_PLAIN;

    r->cut = (uint64_t)r->length > w->max_block;
    *to = want;
    if (w->seen < from - 1)
        w->seen = from - 1;
    while (end_of(w) < want) {
        int rc = more(w, e);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            *to = end_of(w);
            return 0;
        }
        if (!plain) {
            uint64_t stop = end_of(w) < want ? end_of(w) : want;
            uint64_t other = record_in_members(w, w->seen, stop);
            if (other < stop) {
                *to = other;
                return 0;
            }
            if (w->n_marks && w->mark[w->n_marks - 1].at > w->seen + 1) /* the last is not yet whole */
                w->seen = w->mark[w->n_marks - 1].at - 1;
        }
        if (r->cut && end_of(w) - from > HEAD_OF_CUT) {
            if (w->head.n == 0 && buf_put(&w->head, ptr(w, from), HEAD_OF_CUT) < 0)
                return no_memory(e);
            w->keep = end_of(w) < want ? end_of(w) : want;
        }
    }
    return 0;
}

/* Whether the member in which the block's last byte lies is damaged further on.  p: where
 * bytes stand that fit no record, or the window's end. */
static int member_damaged(struct warc *w, uint64_t at, uint64_t p, bool *damaged, struct err *e)
{
    uint64_t member = member_of(w, at - 1);

    while (end_of(w) < p + WARC_HEADER_MAX && member_of(w, end_of(w) - 1) == member) {
        int rc = more(w, e);
        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
    }
    *damaged = w->fault && w->fault_member == member;
    return 0;
}

/* Whether a few stray bytes, then line ends, then a record stand at p. */
static bool strays(const struct warc *w, uint64_t p)
{
    uint64_t end = end_of(w), q = p;

    while (q < end && q - p < STRAY_MAX && !warc_is_eol(*ptr(w, q)))
        q++;
    if (q < end && !warc_is_eol(*ptr(w, q)))
        return false;
    while (q < end && warc_is_eol(*ptr(w, q)))
        q++;
    return q >= end || begins(w, q);
}

/* Whether what stands behind a block that ended at `at` lets its length be believed; *next_at: where that begins. */
static int check_after(struct warc *w, uint64_t at, bool *good, uint64_t *next_at, struct err *e)
{
    uint64_t p = at;
    int cr = 0, lf = 0;
    bool arc = w->kind == WARC_ARC, next, damaged = false;

    for (;; p++) {
        TRY(need(w, p, 1, e));
        if (p >= end_of(w) || !warc_is_eol(*ptr(w, p)) || p - at > SEPARATORS_MAX)
            break;
        cr += *ptr(w, p) == '\r';
        lf += *ptr(w, p) == '\n';
    }
    TRY(need(w, p, arc ? WARC_HEADER_MAX : 24 + STRAY_MAX, e));
    next = p < end_of(w) && begins(w, p);
    if (!next && file_codec(w->f) != FILE_PLAIN)
        TRY(member_damaged(w, at, p, &damaged, e));
    *good = !damaged && (next || p >= end_of(w) || (!arc && lf >= 2 && (cr >= 2 || w->lf_only)) ||
                         (!arc && strays(w, p)));
    if (next && lf < (arc ? 1 : 2))
        w->unseparated++;
    *next_at = p;
    return 0;
}

static int lose(struct warc *w, uint64_t from)
{
    w->at = from;
    w->lost = true;
    return ERR_FORMAT;
}

/* The block ended early, at `to`. */
static int short_block(struct warc *w, struct warc_record *r, uint64_t from, uint64_t to, struct err *e)
{
    uint64_t end = end_of(w), other;

    if (to < end) { /* a member begins with a record there */
        bad(w, r->offset, e, "%s, %" PRId64 ", is wrong: another record begins after %" PRIu64 " bytes",
            length_name(r), r->length, to - from);
        return lose(w, to);
    }
    other = from < w->keep ? w->keep : from;
    if (other < end)
        other = find_begin(w, other, end);
    if (other < end) {
        bad(w, r->offset, e, "%s, %" PRId64 ", is wrong: the stream ends before, and other records begin",
            length_name(r), r->length);
        return lose(w, other);
    }
    if (w->fault)
        return pass_fault(w, r->offset, "a record", e);
    bad(w, r->offset, e, "the record is cut short: %" PRIu64 " of %" PRId64 " bytes", to - from, r->length);
    return lose(w, end);
}

/* The record whose header is in w->header; its block begins at `from`. */
static int take_block(struct warc *w, struct warc_record *r, uint64_t from, struct err *e)
{
    uint64_t size = file_size(w->f), to, next;
    bool good;

    if (r->length < 0) {
        bad(w, r->offset, e, "%s is missing or no length", length_name(r));
        return lose(w, from);
    }
    if ((uint64_t)r->length > INT64_MAX - from ||
        (file_codec(w->f) == FILE_PLAIN && size && from + (uint64_t)r->length > size)) {
        if (size > from && size - from <= w->max_block) {
            TRY(need(w, from, (size_t)(size - from), e));
            r->block = (struct span){ptr(w, from), (size_t)(end_of(w) - from)};
        }
        bad(w, r->offset, e, "%s, %" PRId64 ", reaches beyond the end of the file", length_name(r), r->length);
        return lose(w, from);
    }
    TRY(read_block(w, r, from, &to, e));
    if (to < from + (uint64_t)r->length)
        return short_block(w, r, from, to, e);
    TRY(check_after(w, to, &good, &next, e));
    if (r->cut)
        r->block = buf_span(&w->head);
    else
        r->block = (struct span){ptr(w, from), (size_t)(to - from)};
    if (!good) {
        uint64_t back = from < w->keep ? w->keep : from;
        if (w->fault && to >= back && find_begin(w, back, end_of(w)) == end_of(w))
            return pass_fault(w, r->offset, "a record", e);
        bad(w, r->offset, e, "%s, %" PRId64 ", is wrong: no record begins behind it", length_name(r), r->length);
        return lose(w, back);
    }
    w->at = to;
    next = stored_end(w, to, next);
    r->stored = next > r->member ? next - r->member : 0;
    return 1;
}

/* ---- records ---- */

static int take_record(struct warc *w, struct warc_record *r, struct err *e)
{
    size_t n;

    if (w->kind == WARC_NONE)
        w->kind = kind_at(w, w->at);
    w->keep = w->at;
    r->offset = w->at;
    TRY(header_length(w, &n, e));
    r->member = member_of(w, w->at);
    r->within = w->at - mark_of(w, w->at).at;
    if (n == 0) {
        if (end_of(w) - w->at > WARC_HEADER_MAX) {
            bad(w, w->at, e, "the record's header is longer than %d bytes", WARC_HEADER_MAX);
            return lose(w, w->at + 1);
        }
        if (w->fault && find_begin(w, w->at + 1, end_of(w)) == end_of(w))
            return pass_fault(w, w->at, "a record", e);
        bad(w, w->at, e, "the record's header is cut short");
        return lose(w, w->at + 1);
    }
    buf_clear(&w->header);
    buf_clear(&w->head);
    if (buf_put(&w->header, ptr(w, w->at), n) < 0)
        return no_memory(e);
    if (w->kind == WARC_ARC)
        warc_parse_arc_header(&w->header, r);
    else
        warc_parse_header(&w->header, r, &w->lf_only);
    return take_block(w, r, w->at + n, e);
}

/* Passes over what separates records. */
static int pass_separators(struct warc *w, struct err *e)
{
    for (;; w->at++) {
        if (w->at >= end_of(w)) {
            int rc;
            w->keep = w->at;
            rc = more(w, e);
            if (rc <= 0)
                return rc;
        }
        if (!warc_is_eol(*ptr(w, w->at)))
            return 0;
    }
}

/* Bytes at w->at that are no record: 1 if they are only NUL padding. */
static int pass_garbage(struct warc *w, struct err *e)
{
    uint64_t from = w->at;
    bool padding = *ptr(w, from) == '\0';

    while (padding) {
        TRY(need(w, w->at, 1, e));
        if (w->at >= end_of(w))
            return 1;
        if (*ptr(w, w->at) != '\0')
            break;
        w->keep = w->at++;
    }
    TRY(seek_record(w, e));
    return bad(w, from, e, "%" PRIu64 " bytes that belong to no record", w->at - from);
}

int warc_kind(struct warc *w, struct err *e)
{
    if (w->first_done)
        return w->kind;
    TRY(need(w, 0, WARC_HEADER_MAX, e));
    w->kind = WARC_NONE;
    if (w->n && warc_begins(w->buf, w->n))
        w->kind = WARC_WARC;
    else if ((w->n > 9 && memcmp(w->buf, "filedesc:", 9) == 0) || (w->within && w->n && warc_arc_begins(w->buf, w->n)))
        w->kind = WARC_ARC;
    return w->kind;
}

struct span warc_peek(const struct warc *w)
{
    return (struct span){w->buf, w->n < WARC_HEADER_MAX ? w->n : WARC_HEADER_MAX};
}

int warc_next(struct warc *w, struct warc_record *r, struct err *e)
{
    *r = (struct warc_record){.length = -1};
    if (!w->first_done) {
        TRY(warc_kind(w, e));
        w->first_done = true;
    }
    for (;;) {
        if (w->lost) {
            TRY(seek_record(w, e));
            w->lost = false;
        }
        TRY(pass_separators(w, e));
        r->offset = w->at;
        if (w->at >= end_of(w)) {
            if (w->fault)
                return pass_fault(w, w->at, NULL, e);
            return 0;
        }
        TRY(need(w, w->at, lookahead(w), e));
        if (begins(w, w->at))
            return take_record(w, r, e);
        r->member = member_of(w, w->at);
        TRY(pass_garbage(w, e));
    }
}

int warc_read_whole(struct warc *w, size_t max, struct span *all, struct err *e)
{
    int rc;

    do
        rc = more(w, e);
    while (rc > 0 && w->n <= max);
    if (rc < 0)
        return rc;
    if (w->n > max)
        return err_set(e, ERR_LIMIT, "'%s' is larger than %zu bytes", file_name(w->f), max);
    if (w->fault) {
        *e = w->why;
        return e->code = ERR_FORMAT;
    }
    *all = (struct span){w->buf, w->n};
    return 0;
}

char *warc_take_whole(struct warc *w)
{
    char *p = w->buf;

    w->at = w->base = end_of(w);
    w->buf = NULL;
    w->n = w->cap = 0;
    return p;
}

ssize_t warc_read(struct warc *w, void *p, size_t n, struct err *e)
{
    size_t left = (size_t)(end_of(w) - w->at);

    if (left == 0 && w->fault) {
        *e = w->why;
        return e->code;
    }
    if (left == 0)
        return file_read(w->f, p, n, e);
    if (n > left)
        n = left;
    memcpy(p, ptr(w, w->at), n);
    w->at += n;
    return (ssize_t)n;
}

int warc_skip_member(struct warc *w, struct err *e)
{
    w->fault = false;
    w->at = end_of(w);
    return file_skip_member(w->f, e);
}

uint64_t warc_unseparated(const struct warc *w)
{
    return w->unseparated;
}

int warc_open(struct warc **out, struct file_in *f, size_t max_block, struct err *e)
{
    struct warc *w = calloc(1, sizeof *w);

    *out = NULL;
    if (!w)
        return no_memory(e);
    w->f = f;
    w->max_block = max_block > HEAD_OF_CUT ? max_block : HEAD_OF_CUT;
    *out = w;
    return 0;
}

void warc_begin_within(struct warc *w)
{
    w->within = true;
}

void warc_close(struct warc *w)
{
    if (!w)
        return;
    free(w->buf);
    free(w->mark);
    buf_free(&w->header);
    buf_free(&w->head);
    free(w);
}
