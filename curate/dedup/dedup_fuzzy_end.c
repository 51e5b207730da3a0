/* The end of a run that looks for near-duplicates: the documents of --against, who stays, and what is written of it. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "curate/dedup/dedup_fuzzy_inner.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/dedup_report.h"

/* Lines of pairs, and where they go. */
struct pair_lines {
    const struct fuzzy *f;
    const struct dedup_taker *to;
    struct buf line;
    struct arena arena;
};

static int give_pair(void *arg, uint32_t x, uint32_t y, float similarity, struct err *e)
{
    struct pair_lines *p = arg;
    struct span first, second;

    arena_reset(&p->arena);
    TRY(dedup_store_id(&p->f->store, x, &p->arena, &first, e));
    TRY(dedup_store_id(&p->f->store, y, &p->arena, &second, e));
    first = fuzzy_shown(p->f, first);
    second = fuzzy_shown(p->f, second);
    buf_clear(&p->line);
    if (dedup_pairs_put_line(&p->line, first, second, similarity) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a line of a pair");
    return p->to->take(p->to->to, y, buf_span(&p->line), e);
}

static int end_pairs(struct pair_lines *p, int rc)
{
    buf_free(&p->line);
    arena_free(&p->arena);
    return rc;
}

static int give_clusters(const struct fuzzy *f, const struct dedup_taker *to, struct err *e)
{
    struct pair_lines p = {.f = f, .to = to};
    int rc = 0;

    for (uint64_t i = 0; i < f->store.n && rc == 0; i++)
        if (!fuzzy_stays(f, i))
            rc = give_pair(&p, f->fate[i].survivor, (uint32_t)i, f->fate[i].similarity, e);
    return end_pairs(&p, rc);
}

static int give_pairs(const struct fuzzy *f, const struct dedup_taker *to, struct err *e)
{
    struct pair_lines p = {.f = f, .to = to};
    struct dedup_listener listener = {give_pair, &p};

    return end_pairs(&p, dedup_pairs_give(f->pairs, dedup_fuzzy_memory_left(f, f->store.n), &listener, e));
}

static int give_report(const struct fuzzy *f, const struct dedup_taker *to, struct err *e)
{
    return dedup_report_give(&f->store, f->fate, (uint64_t)f->conf.report_over, to, e);
}

static int take_line(void *out, uint64_t doc, struct span line, struct err *e)
{
    (void)doc;
    return file_write(out, line.p, line.n, e);
}

/* What is given goes to the file, if one is named, or to what is there instead. */
static int write_lines(struct fuzzy *f, const char *path, const struct dedup_taker *instead,
                       int (*give)(const struct fuzzy *f, const struct dedup_taker *to, struct err *e), struct err *e)
{
    struct dedup_taker to = {take_line, NULL};
    struct file_out *out;
    int rc;

    if (!path)
        return 0;
    if (instead->take)
        return give(f, instead, e);
    TRY(file_create(&out, path, 0, e));
    to.to = out;
    rc = give(f, &to, e);
    if (rc == 0)
        return file_group_add(&f->files, out, e);
    file_abort(out);
    return rc;
}

int dedup_fuzzy_index_create(const void *stage, struct index_out **x, const char *path, int64_t memory, struct err *e)
{
    const struct fuzzy *f = stage;

    return index_out_create(x, &(struct index_out_conf){.path = path, .kind = f->kind, .bands = f->n_bands, .rows = f->n_rows,
                                                        .sets = f->sets, .dir = f->conf.dir, .memory = memory}, e);
}

/* Document n, its hashes in `set`. */
static int put_in_index(const struct fuzzy *f, struct index_out *x, uint64_t n, struct buf *set, struct arena *a, struct err *e)
{
    uint64_t key[MINHASH_MAX_BANDS];
    uint8_t sketch[MINHASH_MAX];
    struct band_record r = {key, sketch};
    const uint64_t *hash;
    void *bytes;
    struct store_doc d;
    struct span name;

    TRY(dedup_store_doc(&f->store, n, &d, e));
    TRY(dedup_store_id(&f->store, n, a, &name, e));
    buf_clear(set);
    if (buf_reserve(set, d.set.size * sizeof *key) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " shingles", d.set.size);
    hash = bytes = set->p;
    TRY(set_files_read(&f->store.sets, d.set, bytes, e));
    if (d.set.size)
        TRY(dedup_store_record(&f->store, n, &r, e));
    return index_out_put(x, fuzzy_shown(f, name), doc_name_place(name), hash, d.set.size, d.set.size ? &r : NULL, e);
}

int dedup_fuzzy_index_put(const void *stage, struct index_out *x, struct span note, struct err *e)
{
    const struct fuzzy *f = stage;
    struct fuzzy_parts p;
    struct fuzzy_note *h;
    uint64_t *hash;
    struct span name;
    int rc;

    TRY(fuzzy_note_parse(&f->shape, note, &h, &p, e));
    name = (struct span){p.id, h->id_n};
    hash = malloc((h->count + 1) * sizeof *hash);
    if (!hash)
        return err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " shingles", h->count);
    set_unpack(hash, f->shape.hash_bytes, p.hash, h->count);
    rc = index_out_put(x, fuzzy_shown(f, name), doc_name_place(name), hash, h->count, p.has_record ? &p.record : NULL, e);
    free(hash);
    return rc;
}

static int write_index(struct fuzzy *f, struct err *e)
{
    struct index_out *x;
    struct buf set = {0};
    struct arena a = {0};
    int rc = 0;

    TRY(dedup_fuzzy_index_create(f, &x, f->conf.index, dedup_fuzzy_memory_left(f, f->store.n), e));
    for (uint64_t n = 0; n < f->own && rc == 0; n++) {
        if (fuzzy_stays(f, n))
            rc = put_in_index(f, x, n, &set, &a, e);
        arena_reset(&a);
    }
    arena_free(&a);
    buf_free(&set);
    return index_out_end(x, rc, &f->files, e);
}

void dedup_fuzzy_warn_of_large(struct span id, uint64_t n)
{
    id = doc_name_id(id);
    log_msg(LOG_WARN, "large cluster: '%.*s' stands for %" PRIu64 " documents", (int)(id.n < 200 ? id.n : 200), id.p, n);
}

static int warn_of_large(const struct fuzzy *f, uint64_t n, struct arena *a, struct err *e)
{
    struct span id;

    TRY(dedup_store_id(&f->store, n, a, &id, e));
    dedup_fuzzy_warn_of_large(id, f->fate[n].size);
    return 0;
}

static int count_clusters(struct fuzzy *f, struct err *e)
{
    struct arena a = {0};
    struct span id;
    int rc = 0;

    for (uint64_t i = 0; i < f->store.n; i++)
        if (fuzzy_stays(f, i))
            f->fate[i].size = 1;
    for (uint64_t i = 0; i < f->store.n; i++)
        if (!fuzzy_stays(f, i))
            f->fate[f->fate[i].survivor].size++;
    for (uint64_t i = 0; i < f->store.n && rc == 0; i++) {
        if (!fuzzy_stays(f, i))
            continue;
        f->clusters += f->fate[i].size > 1;
        if (f->fate[i].size > f->largest) {
            f->largest = f->fate[i].size;
            f->largest_of = i;
        }
        if (f->conf.report_over && f->fate[i].size > (uint64_t)f->conf.report_over)
            rc = warn_of_large(f, i, &a, e);
        arena_reset(&a);
    }
    if (rc == 0 && f->clusters) {
        rc = dedup_store_id(&f->store, f->largest_of, &a, &id, e);
        f->largest_id = rc == 0 ? strndup(id.p, doc_name_id(id).n) : NULL;
    }
    arena_free(&a);
    return rc;
}

void dedup_fuzzy_divert(void *stage, const struct dedup_taker *pairs, const struct dedup_taker *report)
{
    struct fuzzy *f = stage;

    f->divert_pairs = *pairs;
    f->divert_report = *report;
}

static int decide(struct fuzzy *f, int jobs, struct err *e)
{
    struct dedup_listener listener = {dedup_pairs_put, NULL};
    struct dedup_plan plan = {.store = &f->store, .bands = f->n_bands, .rows = f->n_rows,
                              .threshold = f->conf.threshold, .verify = f->conf.verify, .no_similarity = f->conf.no_similarity,
                              .memory = dedup_fuzzy_memory_left(f, f->store.n), .jobs = jobs, .dir = f->conf.dir,
                              .laps = &f->laps};

    if (f->conf.pairs) {
        TRY(dedup_pairs_open(&f->pairs, f->store.n, f->conf.dir, e));
        listener.arg = f->pairs;
        plan.listener = &listener;
    }
    TRY(dedup_blocks_decide(&plan, f->fate, &f->tally, e));
    TRY(write_lines(f, f->conf.pairs, &f->divert_pairs, give_pairs, e));
    dedup_pairs_close(f->pairs);
    f->pairs = NULL;
    return 0;
}

static int put_hit(void *hits, const struct against_hit *x, struct err *e)
{
    struct member m = member_of_pair(x->place, x->key);

    return members_add(hits, &m, e);
}

/* The documents of --against that the run's have to be held against. */
static int take_others(struct fuzzy *f, int jobs, struct err *e)
{
    struct stage st = {&dedup_fuzzy_outside_ops, f};
    int64_t memory = dedup_fuzzy_memory_left(f, f->store.n);
    struct members hits;
    int rc = members_open(&hits, (size_t)memory / 4 / sizeof(struct member), f->conf.dir, e);

    if (rc == 0 && dedup_against_has_index(f->against))
        rc = dedup_store_write_keys(&f->store, e);
    if (rc == 0 && dedup_against_has_index(f->against))
        rc = dedup_against_find(f->against, f->store.keys, STORE_PARTS, memory / 4, jobs, put_hit, &hits, e);
    if (rc == 0)
        rc = members_sort(&hits, e);
    if (rc == 0)
        rc = dedup_against_give(f->against, &hits, &st, 0, 1, dedup_fuzzy_take_outside, f, e);
    members_close(&hits);
    return rc < 0 ? rc : dedup_fuzzy_end_signs(f, e);
}

int dedup_fuzzy_resolve(void *stage, int jobs, struct err *e)
{
    struct fuzzy *f = stage;
    uint64_t t;

    if (f->gpu)
        TRY(dedup_gpu_settle(f->gpu, e));
    TRY(dedup_fuzzy_end_signs(f, e));
    TRY(take_others(f, jobs, e));
    TRY(dedup_store_flush(&f->store, e));
    f->fate = malloc((f->store.n + 1) * sizeof *f->fate);
    if (!f->fate)
        return err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " documents", f->store.n);
    TRY(decide(f, jobs, e));
    t = laps_now();
    TRY(count_clusters(f, e));
    TRY(write_lines(f, f->conf.report, &f->divert_report, give_report, e));
    TRY(write_lines(f, f->conf.clusters, &(struct dedup_taker){0}, give_clusters, e));
    TRY(f->conf.index && !f->divert_pairs.take ? write_index(f, e) : 0);
    laps_add(&f->laps, LAP_WRITE, t);
    return 0;
}
