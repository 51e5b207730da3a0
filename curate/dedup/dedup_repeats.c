#include "curate/dedup/dedup_repeats.h"

#include <stdlib.h>

#include "curate/dedup/dedup_repeats_match.h"
#include "curate/dedup/dedup_units.h"

enum { BUFFER = 1 << 18 };

/* What is on disk of a text, beside its elements and the starts of its anchors. */
struct text_size {
    uint64_t n, anchors;
};
struct range {
    uint64_t from, to;
};

struct repeats {
    struct repeats_conf c;
    struct dedup_units *units;
    struct spill text, sizes, anchors, ranges;
    uint64_t n_anchors;
    struct repeats_match match;
    /* for repeats_next */
    struct spill_reader size_reader, range_reader;
    struct range range;
    uint64_t at;
    struct repeats_tally tally;
};

int repeats_open(struct repeats **out, const struct repeats_conf *c, struct err *e)
{
    struct repeats *r = calloc(1, sizeof *r);
    int rc;

    *out = r;
    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory");
    r->c = *c;
    r->text.fd = r->sizes.fd = r->anchors.fd = r->ranges.fd = -1;
    rc = dedup_units_open(&r->units, c->dir, c->memory, e);
    if (rc == 0)
        rc = spill_open(&r->text, c->dir, BUFFER, e);
    if (rc == 0)
        rc = spill_open(&r->sizes, c->dir, BUFFER, e);
    if (rc == 0)
        rc = spill_open(&r->anchors, c->dir, BUFFER, e);
    if (rc < 0) {
        repeats_close(r);
        *out = NULL;
    }
    return rc;
}

void repeats_close(struct repeats *r)
{
    if (!r)
        return;
    dedup_units_close(r->units);
    spill_close(&r->text);
    spill_close(&r->sizes);
    spill_close(&r->anchors);
    spill_close(&r->ranges);
    repeats_match_close(&r->match);
    spill_reader_close(&r->size_reader);
    spill_reader_close(&r->range_reader);
    free(r);
}

struct repeats_tally repeats_tally(const struct repeats *r)
{
    return r->tally;
}

int repeats_add(struct repeats *r, const void *text, size_t n, const struct anchor *a, size_t n_anchors,
                struct err *e)
{
    struct text_size size = {n, n_anchors};

    for (size_t i = 0; i < n_anchors; i++) {
        struct anchor mixed = {hash_mix64(a[i].hash), a[i].starts}; /* smallest ones are not spread */
        TRY(dedup_units_add(r->units, (struct hash128){mixed.hash, hash_mix64(a[i].hash ^ 1)}, e));
        TRY(spill_put(&r->anchors, &mixed, sizeof mixed, e));
    }
    r->n_anchors += n_anchors;
    r->tally.elements += n;
    TRY(spill_put(&r->sizes, &size, sizeof size, e));
    return spill_put(&r->text, text, n * (size_t)r->c.width, e);
}

/* ---- candidates ---- */

/* Passages under an anchor that comes twice: they go to be compared, in pieces. */
static int put_pieces(struct repeats *r, struct spill_reader *text, uint64_t at, const struct anchor *a, struct err *e)
{
    uint64_t width = (uint64_t)r->c.width, skip = at * width - (text->at - (text->have - text->pos));
    size_t got;

    for (uint64_t left = a->starts, n; left; left -= n, at += n) {
        struct repeats_piece x = {at, a->hash, n = left < r->match.most ? left : r->match.most};
        size_t bytes = (size_t)((n + r->c.length - 1) * width);
        while (skip) {
            TRY(spill_ahead(text, text->cap < skip ? text->cap : (size_t)skip, &got, e));
            text->pos += got;
            skip -= got;
        }
        TRY(spill_ahead(text, bytes, &got, e));
        TRY(repeats_match_add(&r->match, &x, text->buf + text->pos, e));
        skip = n * width;
    }
    return 0;
}

static int collect_from(struct repeats *r, struct spill_reader *sizes, struct spill_reader *anchors,
                        struct spill_reader *text, struct err *e)
{
    struct text_size size;
    struct anchor a;
    uint64_t begin = 0;
    size_t got;

    for (;;) {
        uint64_t at = begin;
        TRY(spill_ahead(sizes, sizeof size, &got, e));
        if (!got)
            return 0;
        TRY(spill_next(sizes, &size, sizeof size, e));
        for (uint64_t i = 0; i < size.anchors; i++) {
            uint8_t twice;
            TRY(spill_next(anchors, &a, sizeof a, e));
            dedup_units_next(r->units, 1, &twice);
            if (twice)
                TRY(put_pieces(r, text, at, &a, e));
            at += a.starts;
        }
        begin += size.n;
    }
}

static int collect(struct repeats *r, int jobs, struct err *e)
{
    struct spill_reader sizes = {0}, anchors = {0}, text = {0};
    size_t most;
    int rc;

    TRY(spill_flush(&r->text, e));
    TRY(spill_flush(&r->sizes, e));
    TRY(spill_flush(&r->anchors, e));
    TRY(repeats_match_open(&r->match, &r->c, r->n_anchors, r->tally.elements, jobs, e));
    most = (r->match.most + r->c.length) * (size_t)r->c.width;
    rc = spill_reader_open(&sizes, &r->sizes, 0, r->sizes.size, BUFFER, e);
    if (rc == 0)
        rc = spill_reader_open(&anchors, &r->anchors, 0, r->anchors.size, BUFFER, e);
    if (rc == 0)
        rc = spill_reader_open(&text, &r->text, 0, r->text.size, most < BUFFER ? BUFFER : 2 * most, e);
    if (rc == 0)
        rc = collect_from(r, &sizes, &anchors, &text, e);
    spill_reader_close(&sizes);
    spill_reader_close(&anchors);
    spill_reader_close(&text);
    spill_close(&r->anchors);
    spill_close(&r->text);
    dedup_units_close(r->units);
    r->units = NULL;
    return rc;
}

/* ---- ranges ---- */

/* n passages from `from` in the corpus on are struck: at or behind those before. */
static int strike(struct repeats *r, uint64_t from, uint64_t n, struct err *e)
{
    uint64_t to = from + n - 1 + r->c.length;

    if (from > r->range.to || !r->range.to) {
        if (r->range.to)
            TRY(spill_put(&r->ranges, &r->range, sizeof r->range, e));
        r->range = (struct range){from, to};
    } else if (to > r->range.to) {
        r->range.to = to;
    }
    return 0;
}

static int make_ranges(struct repeats *r, struct err *e)
{
    struct member some[256];

    TRY(spill_open(&r->ranges, r->c.dir, BUFFER, e));
    for (uint64_t at = 0, n; at < r->match.marks.n; at += n) {
        n = r->match.marks.n - at < 256 ? r->match.marks.n - at : 256;
        TRY(members_get(&r->match.marks, at, (size_t)n, some, e));
        for (size_t i = 0; i < n; i++)
            TRY(strike(r, member_first(&some[i]), member_second(&some[i]), e));
    }
    if (r->range.to)
        TRY(spill_put(&r->ranges, &r->range, sizeof r->range, e));
    r->range = (struct range){0, 0};
    return spill_flush(&r->ranges, e);
}

int repeats_resolve(struct repeats *r, int jobs, struct err *e)
{
    TRY(dedup_units_resolve(r->units, DEDUP_NONE, 1, jobs, e));
    TRY(collect(r, jobs, e));
    TRY(repeats_match_find(&r->match, e));
    r->tally.candidates = r->match.candidates;
    r->tally.parts = r->match.parts;
    r->tally.slices = r->match.slices;
    TRY(make_ranges(r, e));
    repeats_match_close(&r->match);
    TRY(spill_reader_open(&r->size_reader, &r->sizes, 0, r->sizes.size, BUFFER, e));
    return spill_reader_open(&r->range_reader, &r->ranges, 0, r->ranges.size, BUFFER, e);
}

int repeats_next(struct repeats *r, struct buf *ranges, struct err *e)
{
    struct text_size size;
    uint64_t from = r->at, to;
    size_t got;

    TRY(spill_next(&r->size_reader, &size, sizeof size, e));
    r->at = to = from + size.n;
    for (;;) {
        struct range cut;
        if (r->range.from >= r->range.to) {
            TRY(spill_ahead(&r->range_reader, sizeof r->range, &got, e));
            if (!got)
                return 0;
            TRY(spill_next(&r->range_reader, &r->range, sizeof r->range, e));
        }
        if (r->range.from >= to)
            return 0;
        cut = (struct range){r->range.from - from, (r->range.to < to ? r->range.to : to) - from};
        if (buf_put(ranges, &cut, sizeof cut) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for the repeats of a text");
        r->range.from = cut.to + from;
    }
}
