#include "curate/dedup/dedup_repeats.h"

#include <stdlib.h>

#include "curate/dedup/dedup_repeats_parts.h"
#include "curate/dedup/dedup_units.h"

enum { BUFFER = 1 << 18 };

/* What is on disk of a text, beside its elements and the starts of its anchors. */
struct text_size {
    uint64_t n, anchors;
};
/* Of candidates that stand together: where they begin there and in the corpus. */
struct stretch {
    uint64_t corpus, at, n;
};
struct range {
    uint64_t from, to;
};

struct repeats {
    struct repeats_conf c;
    struct dedup_units *units;
    struct spill text, sizes, starts;
    struct candidates cand;
    struct spill stretches, ranges;
    uint64_t elements;
    /* the stretch that grows: its first passage, and behind its last */
    bool growing;
    uint64_t from, end;
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
    r->text.fd = r->sizes.fd = r->starts.fd = r->stretches.fd = r->ranges.fd = -1;
    candidates_init(&r->cand);
    rc = dedup_units_open(&r->units, c->dir, c->memory, e);
    if (rc == 0)
        rc = spill_open(&r->text, c->dir, BUFFER, e);
    if (rc == 0)
        rc = spill_open(&r->sizes, c->dir, BUFFER, e);
    if (rc == 0)
        rc = spill_open(&r->starts, c->dir, BUFFER, e);
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
    spill_close(&r->starts);
    spill_close(&r->stretches);
    spill_close(&r->ranges);
    candidates_close(&r->cand);
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
        struct hash128 key = {hash_mix64(a[i].hash), hash_mix64(a[i].hash ^ 1)}; /* smallest ones are not spread */
        TRY(dedup_units_add(r->units, key, e));
        TRY(spill_put(&r->starts, &a[i].starts, sizeof a[i].starts, e));
    }
    r->tally.elements += n;
    TRY(spill_put(&r->sizes, &size, sizeof size, e));
    return spill_put(&r->text, text, n * (size_t)r->c.width, e);
}

/* ---- candidates ---- */

/* The stretch is whole: its elements are copied. */
static int end_stretch(struct repeats *r, struct err *e)
{
    struct stretch s = {r->from, r->cand.n, r->end - r->from + r->c.length - 1};
    uint64_t at = r->from * (uint64_t)r->c.width, left = s.n * (uint64_t)r->c.width;
    char copy[1 << 14];

    if (!r->growing)
        return 0;
    r->growing = false;
    TRY(candidates_put_starts(&r->cand, 0, r->c.length - 1, e));
    r->cand.n += s.n;
    TRY(spill_put(&r->stretches, &s, sizeof s, e));
    while (left) {
        size_t n = left < sizeof copy ? (size_t)left : sizeof copy;
        TRY(spill_read(&r->text, at, copy, n, e));
        TRY(spill_put(&r->cand.text, copy, n, e));
        at += n;
        left -= n;
    }
    return 0;
}

/* Passages that begin in [from, end) may be repeats. */
static int add_stretch(struct repeats *r, uint64_t from, uint64_t end, struct err *e)
{
    if (r->growing && from > r->end - 1 + r->c.length)
        TRY(end_stretch(r, e));
    if (!r->growing) {
        r->growing = true;
        r->from = r->end = from;
    }
    TRY(candidates_put_starts(&r->cand, 0, from - r->end, e));
    TRY(candidates_put_starts(&r->cand, 1, end - from, e));
    r->end = end;
    return 0;
}

static int collect_from(struct repeats *r, struct spill_reader *sizes, struct spill_reader *starts, struct err *e)
{
    struct text_size size;
    uint64_t text = 0;
    size_t got;

    for (;;) {
        uint64_t at = text;
        TRY(spill_ahead(sizes, sizeof size, &got, e));
        if (!got)
            break;
        TRY(spill_next(sizes, &size, sizeof size, e));
        for (uint64_t i = 0; i < size.anchors; i++) {
            uint32_t n;
            uint8_t twice;
            TRY(spill_next(starts, &n, sizeof n, e));
            dedup_units_next(r->units, 1, &twice);
            if (twice && n)
                TRY(add_stretch(r, at, at + n, e));
            at += n;
        }
        text += size.n;
    }
    return end_stretch(r, e);
}

static int collect(struct repeats *r, struct err *e)
{
    struct spill_reader sizes = {0}, starts = {0};
    int rc;

    TRY(spill_flush(&r->text, e));
    TRY(spill_flush(&r->sizes, e));
    TRY(spill_flush(&r->starts, e));
    TRY(candidates_open(&r->cand, &r->c, e));
    TRY(spill_open(&r->stretches, r->c.dir, BUFFER, e));
    rc = spill_reader_open(&sizes, &r->sizes, 0, r->sizes.size, BUFFER, e);
    if (rc == 0)
        rc = spill_reader_open(&starts, &r->starts, 0, r->starts.size, BUFFER, e);
    if (rc == 0)
        rc = collect_from(r, &sizes, &starts, e);
    spill_reader_close(&sizes);
    spill_reader_close(&starts);
    spill_close(&r->starts);
    spill_close(&r->text);
    dedup_units_close(r->units);
    r->units = NULL;
    TRY(rc);
    return spill_flush(&r->stretches, e);
}

/* ---- ranges ---- */

/* A passage at `from` in the corpus is struck. */
static int strike(struct repeats *r, uint64_t from, struct err *e)
{
    if (from > r->range.to) {
        if (r->range.to)
            TRY(spill_put(&r->ranges, &r->range, sizeof r->range, e));
        r->range.from = from;
    } else if (!r->range.to) {
        r->range.from = from;
    }
    r->range.to = from + r->c.length;
    return 0;
}

static int strike_stretch(struct repeats *r, const struct stretch *s, struct err *e)
{
    const unsigned char *bits = r->cand.struck.p;

    for (uint64_t i = s->at, end = s->at + s->n; i < end; i++) {
        if (!(i & 7))
            while (i + 8 <= end && !bits[i / 8])
                i += 8;
        if (i < end && bits[i / 8] >> (i & 7) & 1)
            TRY(strike(r, s->corpus + (i - s->at), e));
    }
    return 0;
}

static int make_ranges(struct repeats *r, struct err *e)
{
    struct spill_reader in;
    struct stretch s;
    size_t got;
    int rc;

    TRY(spill_open(&r->ranges, r->c.dir, BUFFER, e));
    TRY(spill_reader_open(&in, &r->stretches, 0, r->stretches.size, BUFFER, e));
    while ((rc = spill_ahead(&in, sizeof s, &got, e)) == 0 && got) {
        memcpy(&s, in.buf + in.pos, sizeof s);
        in.pos += sizeof s;
        if ((rc = strike_stretch(r, &s, e)) < 0)
            break;
        candidates_trim(&r->cand);
    }
    spill_reader_close(&in);
    TRY(rc);
    if (r->range.to)
        TRY(spill_put(&r->ranges, &r->range, sizeof r->range, e));
    r->range = (struct range){0, 0};
    return spill_flush(&r->ranges, e);
}

int repeats_resolve(struct repeats *r, int jobs, struct err *e)
{
    TRY(dedup_units_resolve(r->units, DEDUP_NONE, 1, jobs, e));
    TRY(collect(r, e));
    r->tally.candidates = r->cand.n;
    TRY(candidates_sort(&r->cand, jobs, e));
    r->tally.shards = r->cand.shards;
    TRY(candidates_merge(&r->cand, e));
    TRY(make_ranges(r, e));
    candidates_close(&r->cand);
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
