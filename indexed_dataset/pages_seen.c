#include "indexed_dataset/pages_seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "indexed_dataset/checkpoint_history.h"

/* A page in a sample. */
struct hit {
    int64_t step;
    bool new_document, new_sample; /* none of the hits before is of it */
};

struct hits {
    struct buf list;
    struct name_table documents;
    struct buf name;
    int64_t sample; /* the last one; -1: none */
    struct sample_trace *of; /* whose samples they are; NULL: none yet */
};

static void hits_clear(struct hits *h)
{
    buf_clear(&h->list);
    name_table_free(&h->documents);
    sample_trace_close(h->of);
    h->of = NULL;
    h->sample = -1;
}

static int add_hit(void *arg, const struct traced_piece *p, struct err *e)
{
    struct hits *h = arg;
    struct hit one = {.step = p->step, .new_sample = p->sample != h->sample};
    size_t number;
    int rc;

    if (p->skipped)
        return 0;
    buf_clear(&h->name);
    buf_printf(&h->name, "%" PRIu64 " %s", p->piece->document, idx_prefix(p->piece->x));
    rc = h->name.failed ? ERR_NOMEM : name_table_add(&h->documents, buf_span(&h->name), &number);
    one.new_document = rc == 1;
    h->sample = p->sample;
    return rc < 0 || buf_put(&h->list, &one, sizeof one) < 0 ? err_set(e, ERR_NOMEM, "out of memory for pages") : 0;
}

static struct pages_seen count_hits(const struct hits *h, const char *checkpoint, int64_t step)
{
    struct pages_seen s = {.checkpoint = checkpoint, .step = step};

    for (size_t at = 0; at < h->list.n; at += sizeof(struct hit)) {
        struct hit x;

        memcpy(&x, h->list.p + at, sizeof x);
        if (x.step > step)
            break;
        s.documents += x.new_document;
        s.samples += x.new_sample;
        s.first_step = s.first_step ? s.first_step : x.step;
    }
    return s;
}

/* One checkpoint; its samples are gone through unless it is where the last one that was has come by. */
static int see(struct hits *h, const struct sample_trace_conf *c, const char *path, struct page_list *pages, pages_seen_fn *fn,
               void *arg, struct err *e)
{
    struct sample_trace *t;
    struct pages_seen s;
    int64_t sample, step;

    TRY(sample_trace_open(&t, c, e));
    step = history_end(sample_trace_history(t), &sample);
    if (h->of && history_begins(sample_trace_history(h->of), sample_trace_history(t))) {
        sample_trace_close(t);
    } else {
        hits_clear(h);
        h->of = t;
        TRY(sample_trace_find(t, pages, add_hit, h, e));
    }
    s = count_hits(h, path, step);
    return fn(arg, &s, e);
}

int pages_seen(const char *dir, int jobs, struct page_list *pages, pages_seen_fn *fn, void *arg, struct err *e)
{
    struct sample_trace_conf c = {.checkpoint = dir, .of = -1, .jobs = jobs};
    struct hits h = {.sample = -1};
    int64_t *steps;
    char path[4352];
    int n = checkpoint_steps(dir, &steps, e), rc = n < 0 ? n : 0;

    if (n == 0)
        rc = see(&h, &c, dir, pages, fn, arg, e);
    for (int i = 0; i < n && rc == 0; i++) {
        snprintf(path, sizeof path, "%s/iter_%07" PRId64, dir, steps[i]);
        c.of = steps[i];
        rc = steps[i] ? see(&h, &c, path, pages, fn, arg, e) : 0; /* one of no step is a beginning */
    }
    free(steps);
    hits_clear(&h);
    buf_free(&h.list);
    buf_free(&h.name);
    return rc;
}
