#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "curate/dedup/dedup_fuzzy_inner.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/minhash_text.h"

/* Of a bound on memory: what the rest of the program takes (threads' blocks, libraries), what is
 * left for blocks at least, and the shares of files' buffers and of a batch for a GPU. */
enum { OTHERS = 48 << 20, LEAST_WORK = 32 << 20, BUFFERS = 16, BATCHES = 16 };

struct thread {
    struct shingler *shingler;
    struct device *cpu; /* NULL: the GPU signs */
};

static void fuzzy_thread_close(void *stage, void *thread)
{
    struct thread *t = thread;

    (void)stage;
    shingler_free(t->shingler);
    device_close(t->cpu);
    free(t);
}

static uint32_t shingle_seed(const struct fuzzy *f)
{
    return f->minhash.family == MINHASH_U32 ? f->minhash.a32[0] : 0;
}

static int fuzzy_thread_open(void *stage, void **thread, struct err *e)
{
    struct fuzzy *f = stage;
    struct thread *t = calloc(1, sizeof *t);
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    rc = shingler_new(&t->shingler, f->preset, shingle_seed(f), e);
    if (rc == 0 && !f->gpu)
        rc = device_open_dedup(&t->cpu, "cpu", 1, NULL, e);
    if (rc < 0)
        fuzzy_thread_close(stage, t);
    else
        *thread = t;
    return rc;
}

static int fuzzy_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    struct fuzzy *f = stage;
    struct thread *t = thread;
    struct fuzzy_note h = {.text_n = f->conf.report ? d->text.n : 0};
    struct fuzzy_parts p;
    uint64_t sig[MINHASH_MAX];
    const uint64_t *hash;
    struct span id;

    (void)v;
    if (doc_name(d, f->conf.places || (f->conf.index && !f->sets), &id) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    h.id_n = id.n;
    TRY(shingler_run(t->shingler, d->text, &hash, &h.count, e));
    TRY(dedup_keep_rank(f->conf.keep, f->conf.by, d, &h.rank, e));
    if (f->conf.keep == KEEP_BEST)
        dedup_seen_count(&f->ranks, h.rank > 0);
    if (!fuzzy_note_new(&f->shape, d->arena, &h, h.count && t->cpu, &p, note, e))
        return ERR_NOMEM;
    memcpy(p.id, id.p, id.n);
    memcpy(p.id + id.n, d->text.p, h.text_n);
    if (h.count)
        memcpy(p.hash, hash, h.count * sizeof *hash);
    return p.has_record ? dedup_sign_one(t->cpu, &f->minhash, &f->shape, p.hash, h.count, sig, &p.record, e) : 0;
}

/* ---- one after the other ---- */

/* What the bound leaves for finding clusters among that many documents; less than LEAST_WORK if they
 * are too many. */
int64_t dedup_fuzzy_memory_left(const struct fuzzy *f, uint64_t docs)
{
    int64_t memory = f->conf.memory ? f->conf.memory : DEDUP_FUZZY_MEMORY;
    int64_t left = memory - OTHERS - (int64_t)(docs * sizeof(struct dedup_fate));

    return f->conf.memory ? left : left < memory / 2 ? memory / 2 : left;
}

/* Records are made, or taken from the notes, in order. */
static int add_record(struct fuzzy *f, const struct fuzzy_parts *p, size_t count, struct err *e)
{
    int64_t memory = f->conf.memory ? f->conf.memory : DEDUP_FUZZY_MEMORY;

    if (p->has_record || (!count && !f->sign)) {
        if (f->sign)
            TRY(dedup_sign_finish(f->sign, e));
        return dedup_store_put_record(&f->store, p->has_record ? &p->record : NULL, e);
    }
    if (!f->gpu && !f->cpu) /* the notes are of a run with a GPU */
        TRY(device_open_dedup(&f->cpu, "cpu", 1, NULL, e));
    if (!f->sign)
        TRY(dedup_sign_open(&f->sign, f->gpu ? f->gpu : f->cpu, &f->minhash, &f->shape, &f->store, (size_t)f->conf.batch,
                            (size_t)memory / BATCHES, e));
    return dedup_sign_add(f->sign, p->hash, count, e);
}

static int add(struct fuzzy *f, struct span note, bool outside, struct err *e)
{
    struct fuzzy_parts p;
    struct fuzzy_note *h;
    uint64_t rank;

    TRY(fuzzy_note_parse(&f->shape, note, &h, &p, e));
    rank = outside ? UINT64_MAX : f->conf.keep == KEEP_LAST ? f->store.n : h->rank;
    TRY(dedup_store_add(&f->store, p.hash, h->count, rank, (struct span){p.id, h->id_n},
                        (struct span){p.id + h->id_n, h->text_n}, e));
    TRY(add_record(f, &p, h->count, e));
    if (dedup_fuzzy_memory_left(f, f->store.n) < LEAST_WORK)
        return err_set(e, ERR_NOMEM, "%" PRIu64 " documents take more memory than %" PRId64 " bytes", f->store.n,
                       f->conf.memory);
    return 0;
}

int dedup_fuzzy_take_outside(void *to, struct span note, struct err *e)
{
    struct fuzzy *f = to;

    return add(f, note, true, e);
}

const struct stage_rule dedup_fuzzy_rules[] = {
    {"near-duplicate", "similarity (Jaccard, of shingles) to the survivor", "Another document is nearly the same.", "from",
     false},
    {0},
};

static int fuzzy_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    struct fuzzy *f = stage;

    (void)v, (void)reply, (void)a;
    f->own++;
    return add(f, note, false, e);
}

/* ---- what became of them ---- */

static int fuzzy_finish(void *stage, struct file_group *files, struct err *e)
{
    struct fuzzy *f = stage;

    return file_group_join(files, &f->files, e);
}

static int fuzzy_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                       struct err *e)
{
    const struct fuzzy *f = stage;
    const struct dedup_fate *fate = &f->fate[n];

    if (fuzzy_stays(f, n))
        return f->conf.cluster_size ? dedup_size_reply(fate->size, reply, a, e) : 0;
    verdict_drop(v, &dedup_fuzzy_rules[0], round(fate->similarity * 1e6) / 1e6,
                 f->conf.verify ? f->conf.threshold : NAN);
    if (v->account) {
        TRY(dedup_store_id(&f->store, fate->survivor, a, &v->survivor, e));
        v->survivor = fuzzy_shown(f, v->survivor);
    }
    return 0;
}

static int fuzzy_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    const struct fuzzy *f = stage;

    (void)thread, (void)v;
    return dedup_size_apply(d, f->conf.cluster_size, reply, e);
}

int dedup_fuzzy_put_stats(const void *stage, const struct dedup_fuzzy_counts *n, struct buf *json)
{
    const struct fuzzy *f = stage;

    TRY(json_put_key(json, "preset"));
    TRY(json_put_string(json, span_of(f->preset->name)));
    TRY(json_put_count(json, "bands", (uint64_t)f->n_bands));
    TRY(json_put_count(json, "rows", (uint64_t)f->n_rows));
    TRY(json_put_count(json, "shingle_bytes", n->shingle_bytes));
    TRY(json_put_count(json, "candidates", n->candidates));
    TRY(json_put_count(json, "compared", n->compared));
    TRY(json_put_count(json, "against", n->against));
    TRY(json_put_count(json, "clusters", n->clusters));
    TRY(json_put_count(json, "largest_cluster", n->clusters ? n->largest : 0));
    TRY(json_put_key(json, "largest_survivor"));
    if (!n->largest_id)
        return buf_puts(json, "null");
    return json_put_string(json, span_of(n->largest_id));
}

void dedup_fuzzy_counts(const void *stage, struct dedup_fuzzy_counts *to)
{
    const struct fuzzy *f = stage;

    *to = (struct dedup_fuzzy_counts){.shingle_bytes = f->store.sets.size, .candidates = f->tally.candidates,
                                      .compared = f->tally.compared, .against = f->store.n - f->own,
                                      .clusters = f->clusters, .largest = f->largest,
                                      .largest_of = f->largest_of, .largest_id = f->largest_id};
}

static int fuzzy_stats(void *stage, struct buf *json)
{
    struct dedup_fuzzy_counts n;

    dedup_fuzzy_counts(stage, &n);
    return dedup_fuzzy_put_stats(stage, &n, json);
}

int dedup_fuzzy_note(const void *stage, struct span note, struct dedup_fuzzy_note *to, struct err *e)
{
    const struct fuzzy *f = stage;
    struct fuzzy_parts p = {0};
    struct fuzzy_note *h;

    TRY(fuzzy_note_parse(&f->shape, note, &h, &p, e));
    *to = (struct dedup_fuzzy_note){h->count, p.record.key, p.has_record ? (size_t)f->shape.bands : 0,
                                   fuzzy_shown(f, (struct span){p.id, h->id_n})};
    return 0;
}

int dedup_fuzzy_outside(void *stage, struct span note, struct err *e)
{
    return dedup_fuzzy_take_outside(stage, note, e);
}

float dedup_fuzzy_similarity(const void *stage, uint64_t n)
{
    const struct fuzzy *f = stage;

    return f->fate[n].similarity;
}

static void fuzzy_close(void *stage)
{
    struct fuzzy *f = stage;

    if (!f)
        return;
    dedup_seen_tell(&f->ranks, "--by", f->conf.by);
    dedup_sign_close(f->sign);
    dedup_pairs_close(f->pairs);
    device_close(f->gpu);
    device_close(f->cpu);
    minhash_free(&f->minhash);
    dedup_bands_free(&f->shape);
    dedup_store_close(&f->store);
    file_group_abort(&f->files);
    free(f->fate);
    free(f->largest_id);
    dedup_against_close(f->against);
    free(f);
}

const struct stage_ops dedup_fuzzy_ops = {
    .name = "dedup fuzzy",
    .thread_open = fuzzy_thread_open,
    .thread_close = fuzzy_thread_close,
    .work = fuzzy_work,
    .commit = fuzzy_commit,
    .resolve = dedup_fuzzy_resolve,
    .judge = fuzzy_judge,
    .apply = fuzzy_apply,
    .finish = fuzzy_finish,
    .stats = fuzzy_stats,
    .close = fuzzy_close,
};

int dedup_fuzzy_against(const void *stage, const struct opt_list *files, struct dedup_against **a, struct err *e)
{
    const struct fuzzy *f = stage;
    struct dedup_against_conf c = {f->kind, &f->shape, f->preset, shingle_seed(f), f->conf.verify};

    return dedup_against_open(a, files, &c, e);
}

static int open_parts(struct fuzzy *f, const struct opt_list *against, struct err *e)
{
    uint32_t seed;
    int n;

    f->preset = minhash_preset_at(f->conf.preset - 1);
    TRY(dedup_fuzzy_settle(&f->conf, &f->n_bands, &f->n_rows, e));
    n = f->n_bands * f->n_rows < f->preset->hashes ? f->preset->hashes : f->n_bands * f->n_rows;
    seed = f->conf.seed ? (uint32_t)f->conf.seed : f->preset->seed;
    if (minhash_init(&f->minhash, f->preset->family, n, seed) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    n = snprintf(f->kind, sizeof f->kind, "dedup fuzzy preset=%s bands=%d rows=%d", f->preset->name, f->n_bands, f->n_rows);
    if (seed != f->preset->seed)
        snprintf(f->kind + n, sizeof f->kind - (size_t)n, " seed=%" PRIu32, seed);
    TRY(dedup_device_open(&f->gpu, f->conf.device, e));
    TRY(dedup_bands_init(&f->shape, f->n_bands, f->n_rows, e));
    TRY(dedup_fuzzy_against(f, against, &f->against, e));
    f->sets = f->conf.index_sets || !f->conf.texts;
    if (f->conf.index)
        TRY(index_out_check(f->conf.index, e));
    return dedup_store_open(&f->store, &f->shape, f->conf.dir,
                            (f->conf.memory ? f->conf.memory : DEDUP_FUZZY_MEMORY) / BUFFERS, e);
}

int dedup_fuzzy_stage_open(struct stage *st, const struct dedup_fuzzy_conf *conf, struct err *e)
{
    struct fuzzy *f = calloc(1, sizeof *f);
    int rc;

    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory");
    f->conf = *conf;
    rc = dedup_fuzzy_choose_preset(&f->conf, e);
    f->conf.against = (struct opt_list){0};
    if (rc == 0)
        rc = open_parts(f, &conf->against, e);
    if (rc < 0) {
        fuzzy_close(f);
        return rc;
    }
    *st = (struct stage){&dedup_fuzzy_ops, f};
    return 0;
}
