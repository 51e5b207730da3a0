#include "curate/dedup/dedup_report.h"

#include <stdlib.h>

#include "base/json.h"
#include "curate/dedup/dedup_shared.h"
#include "curate/stream/doc_name.h"

enum { SAMPLE = 8 };

struct large {
    uint32_t survivor, size, seen;
    uint32_t sample[SAMPLE];
    int n;
};

struct report {
    const struct dedup_store *store;
    const struct dedup_fate *fate;
    struct large *large;
    size_t n;
};

static bool is_large(const struct report *r, uint64_t i, uint64_t over)
{
    return r->fate[i].survivor == i && r->fate[i].size > over;
}

static int by_survivor(const void *x, const void *y)
{
    const struct large *a = x, *b = y;

    return a->survivor < b->survivor ? -1 : a->survivor > b->survivor;
}

/* Of each cluster SAMPLE members from the first to the last, at even distances. */
static int take_samples(struct report *r, uint64_t over, struct err *e)
{
    size_t n = 0;

    for (uint64_t i = 0; i < r->store->n; i++)
        n += is_large(r, i, over);
    r->large = calloc(n + 1, sizeof *r->large);
    if (!r->large)
        return err_set(e, ERR_NOMEM, "out of memory for %zu large clusters", n);
    for (uint64_t i = 0; i < r->store->n; i++)
        if (is_large(r, i, over))
            r->large[r->n++] = (struct large){.survivor = (uint32_t)i, .size = r->fate[i].size};
    for (uint64_t i = 0; i < r->store->n && n; i++) {
        struct large key = {.survivor = r->fate[i].survivor}, *l;

        if (r->fate[i].survivor == i || !(l = bsearch(&key, r->large, r->n, sizeof key, by_survivor)))
            continue;
        if (l->n < SAMPLE && (uint64_t)l->seen * (SAMPLE - 1) >= (uint64_t)l->n * (l->size - 2))
            l->sample[l->n++] = (uint32_t)i;
        l->seen++;
    }
    return 0;
}

static int put_large(struct buf *b, const struct large *l, const struct span *id, const struct shared *s)
{
    TRY(buf_puts(b, "{\"survivor\":"));
    TRY(json_put_string(b, doc_name_id(id[0])));
    TRY(buf_printf(b, ",\"documents\":%u,\"sample\":[", l->size));
    for (int i = 0; i < l->n; i++) {
        TRY(i ? buf_putc(b, ',') : 0);
        TRY(json_put_string(b, doc_name_id(id[i + 1])));
    }
    TRY(buf_printf(b, "],\"share\":%.3f,\"passages\":[", s->share));
    for (int i = 0; i < s->n; i++) {
        TRY(i ? buf_putc(b, ',') : 0);
        TRY(json_put_string(b, s->passage[i]));
    }
    return buf_puts(b, "]}\n");
}

static int describe(const struct report *r, const struct large *l, struct arena *a, struct buf *b, struct err *e)
{
    struct span id[SAMPLE + 1] = {0}, text[SAMPLE + 1] = {0};
    struct shared s;

    for (int i = 0; i <= l->n; i++) {
        uint32_t number = i ? l->sample[i - 1] : l->survivor;
        TRY(dedup_store_id(r->store, number, a, &id[i], e));
        TRY(dedup_store_text(r->store, number, a, &text[i], e));
    }
    TRY(shared_find(text[0], text + 1, l->n, &s, e));
    return put_large(b, l, id, &s) < 0 ? err_set(e, ERR_NOMEM, "out of memory for a report") : 0;
}

int dedup_report_give(const struct dedup_store *s, const struct dedup_fate *fate, uint64_t over,
                      const struct dedup_taker *to, struct err *e)
{
    struct report r = {.store = s, .fate = fate};
    struct arena a = {0};
    struct buf b = {0};
    int rc = take_samples(&r, over, e);

    for (size_t i = 0; i < r.n && rc == 0; i++) {
        rc = describe(&r, &r.large[i], &a, &b, e);
        if (rc == 0)
            rc = to->take(to->to, r.large[i].survivor, buf_span(&b), e);
        buf_clear(&b);
        arena_reset(&a);
    }
    arena_free(&a);
    buf_free(&b);
    free(r.large);
    return rc;
}
