#include "curate/dedup/dedup_fuzzy.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/dedup/dedup_blocks.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/dedup_pairs.h"
#include "curate/dedup/dedup_report.h"
#include "curate/dedup/dedup_sign.h"
#include "curate/dedup/minhash_text.h"
#include "curate/stream/doc_name.h"
#include "curate/stream/note_index.h"

/* Of a bound on memory: what the rest of the program takes (threads' blocks, libraries), what is
 * left for blocks at least, and the shares of files' buffers and of a batch for a GPU. */
enum { OTHERS = 48 << 20, LEAST_WORK = 32 << 20, BUFFERS = 16, BATCHES = 16 };

struct fuzzy {
    struct dedup_fuzzy_conf conf;
    const struct minhash_preset *preset;
    int n_bands, n_rows; /* as settled */
    char kind[96];       /* of indexes */
    struct minhash minhash;
    struct dedup_bands shape; /* for records; holds none */
    struct device *gpu;       /* NULL: the CPU does it all */
    struct dedup_sign *sign;  /* of notes without a record, */
    struct device *cpu;       /* by this if there is no GPU */
    struct dedup_store store;
    uint64_t outside; /* documents of --against, which come first */
    bool begun;       /* they have been read */
    struct dedup_fate *fate; /* of all */
    struct dedup_tally tally;
    struct dedup_pairs *pairs;
    struct dedup_taker divert_pairs, divert_report; /* instead of the files */
    uint64_t clusters, largest, largest_of; /* survivors of others; documents of the largest; its survivor */
    char *largest_id;
    struct file_group files; /* written, and not yet under their names */
};

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

static int fuzzy_thread_open(void *stage, void **thread, struct err *e)
{
    struct fuzzy *f = stage;
    uint32_t seed = f->minhash.family == MINHASH_U32 ? f->minhash.a32[0] : 0;
    struct thread *t = calloc(1, sizeof *t);
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    rc = shingler_new(&t->shingler, f->preset, seed, e);
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
    const struct fuzzy *f = stage;
    struct thread *t = thread;
    struct fuzzy_note h = {.text_n = f->conf.report ? d->text.n : 0};
    struct fuzzy_parts p;
    uint64_t sig[MINHASH_MAX];
    const uint64_t *hash;
    struct span id;

    (void)v;
    if (doc_name(d, f->conf.places, &id) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    h.id_n = id.n;
    TRY(shingler_run(t->shingler, d->text, &hash, &h.count, e));
    TRY(dedup_keep_rank(f->conf.keep, f->conf.by, d, &h.rank, e));
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
static int64_t memory_left(const struct fuzzy *f, uint64_t docs)
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
    if (memory_left(f, f->store.n) < LEAST_WORK)
        return err_set(e, ERR_NOMEM, "%" PRIu64 " documents take more memory than %" PRId64 " bytes", f->store.n,
                       f->conf.memory);
    return 0;
}

static int take_outside(void *to, struct span note, struct err *e)
{
    struct fuzzy *f = to;

    f->outside++;
    return add(f, note, true, e);
}

const struct stage_rule dedup_fuzzy_rules[] = {
    {"near-duplicate", "similarity (Jaccard, of shingles) to the survivor", "Another document is nearly the same.", "from",
     false},
    {0},
};

static const struct stage_ops fuzzy_ops;

static int begin(struct fuzzy *f, struct err *e)
{
    struct stage st = {&fuzzy_ops, f};

    f->begun = true;
    return notes_of_all(&f->conf.against, &st, f->kind, take_outside, f, e);
}

static int fuzzy_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    struct fuzzy *f = stage;

    (void)v, (void)reply, (void)a;
    if (!f->begun)
        TRY(begin(f, e));
    return add(f, note, false, e);
}

/* ---- the end ---- */

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

static bool stays(const struct fuzzy *f, uint64_t n)
{
    return f->fate[n].survivor == n;
}

static int give_clusters(const struct fuzzy *f, const struct dedup_taker *to, struct err *e)
{
    struct pair_lines p = {.f = f, .to = to};
    int rc = 0;

    for (uint64_t i = 0; i < f->store.n && rc == 0; i++)
        if (!stays(f, i))
            rc = give_pair(&p, f->fate[i].survivor, (uint32_t)i, f->fate[i].similarity, e);
    return end_pairs(&p, rc);
}

static int give_pairs(const struct fuzzy *f, const struct dedup_taker *to, struct err *e)
{
    struct pair_lines p = {.f = f, .to = to};
    struct dedup_listener listener = {give_pair, &p};

    return end_pairs(&p, dedup_pairs_give(f->pairs, memory_left(f, f->store.n), &listener, e));
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

/* The note of document n as a CPU's work made it. */
static int note_again(const struct fuzzy *f, uint64_t n, struct arena *a, struct span *note, struct err *e)
{
    struct store_doc d;
    struct fuzzy_parts p;
    struct fuzzy_note h = {0};
    struct span id;

    TRY(dedup_store_doc(&f->store, n, &d, e));
    TRY(dedup_store_id(&f->store, n, a, &id, e));
    h.count = d.set.size;
    h.id_n = id.n;
    if (!fuzzy_note_new(&f->shape, a, &h, h.count > 0, &p, note, e))
        return ERR_NOMEM;
    memcpy(p.id, id.p, id.n);
    if (!h.count)
        return 0;
    TRY(spill_read(&f->store.sets, d.set.at * sizeof *p.hash, p.hash, h.count * sizeof *p.hash, e));
    return dedup_store_record(&f->store, n, &p.record, e);
}

static int write_index(struct fuzzy *f, struct err *e)
{
    struct note_index *index;
    struct arena a = {0};
    struct span note;
    int rc = note_index_create(&index, f->conf.index, f->kind, e);

    for (uint64_t n = f->outside; n < f->store.n && rc == 0; n++) {
        if (!stays(f, n))
            continue;
        rc = note_again(f, n, &a, &note, e);
        if (rc == 0)
            rc = note_index_put(index, note, e);
        arena_reset(&a);
    }
    arena_free(&a);
    return note_index_end(index, rc, &f->files, e);
}

/* A cluster of very many is more often a template than a text. */
static int warn_of_large(const struct fuzzy *f, uint64_t n, struct arena *a, struct err *e)
{
    struct span id;

    TRY(dedup_store_id(&f->store, n, a, &id, e));
    id = doc_name_id(id);
    log_msg(LOG_WARN, "large cluster: '%.*s' stands for %" PRIu32 " documents", (int)(id.n < 200 ? id.n : 200), id.p,
            f->fate[n].size);
    return 0;
}

static int count_clusters(struct fuzzy *f, struct err *e)
{
    struct arena a = {0};
    struct span id;
    int rc = 0;

    for (uint64_t i = 0; i < f->store.n; i++)
        if (stays(f, i))
            f->fate[i].size = 1;
    for (uint64_t i = 0; i < f->store.n; i++)
        if (!stays(f, i))
            f->fate[f->fate[i].survivor].size++;
    for (uint64_t i = 0; i < f->store.n && rc == 0; i++) {
        if (!stays(f, i))
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

static int decide(struct fuzzy *f, int jobs, struct err *e)
{
    struct dedup_listener listener = {dedup_pairs_put, NULL};
    struct dedup_plan plan = {.store = &f->store, .bands = f->n_bands, .rows = f->n_rows,
                              .threshold = f->conf.threshold, .verify = f->conf.verify, .memory = memory_left(f, f->store.n),
                              .jobs = jobs, .dir = f->conf.dir, .gpu = f->gpu};

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

static int fuzzy_resolve(void *stage, int jobs, struct err *e)
{
    struct fuzzy *f = stage;

    if (!f->begun) /* there was no document */
        TRY(begin(f, e));
    if (f->sign)
        TRY(dedup_sign_finish(f->sign, e));
    dedup_sign_close(f->sign);
    f->sign = NULL;
    TRY(dedup_store_flush(&f->store, e));
    f->fate = malloc((f->store.n + 1) * sizeof *f->fate);
    if (!f->fate)
        return err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " documents", f->store.n);
    TRY(decide(f, jobs, e));
    TRY(count_clusters(f, e));
    TRY(write_lines(f, f->conf.report, &f->divert_report, give_report, e));
    TRY(write_lines(f, f->conf.clusters, &(struct dedup_taker){0}, give_clusters, e));
    return f->conf.index ? write_index(f, e) : 0;
}

static int fuzzy_finish(void *stage, struct file_group *files, struct err *e)
{
    struct fuzzy *f = stage;

    return file_group_join(files, &f->files, e);
}

static int fuzzy_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                       struct err *e)
{
    const struct fuzzy *f = stage;
    const struct dedup_fate *fate = &f->fate[f->outside + n];

    if (stays(f, f->outside + n))
        return f->conf.cluster_size ? dedup_size_reply(fate->size, reply, a, e) : 0;
    verdict_drop(v, &dedup_fuzzy_rules[0], round(fate->similarity * 1e6) / 1e6,
                 f->conf.verify ? f->conf.threshold : NAN);
    return v->account ? dedup_store_id(&f->store, fate->survivor, a, &v->survivor, e) : 0;
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
                                      .compared = f->tally.compared, .against = f->outside,
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
    *to = (struct dedup_fuzzy_note){h->count, p.record.key, p.has_record ? (size_t)f->shape.bands : 0, {p.id, h->id_n}};
    return 0;
}

int dedup_fuzzy_outside(void *stage, struct span note, struct err *e)
{
    return take_outside(stage, note, e);
}

int dedup_fuzzy_to_index(const void *stage, struct span *note, struct err *e)
{
    const struct fuzzy *f = stage;
    struct fuzzy_parts p;
    struct fuzzy_note *h;

    TRY(fuzzy_note_parse(&f->shape, *note, &h, &p, e));
    h->rank = 0;
    note->n -= h->text_n;
    h->text_n = 0;
    return 0;
}

void dedup_fuzzy_divert(void *stage, const struct dedup_taker *pairs, const struct dedup_taker *report)
{
    struct fuzzy *f = stage;

    f->divert_pairs = *pairs;
    f->divert_report = *report;
}

const char *dedup_fuzzy_kind(const void *stage)
{
    const struct fuzzy *f = stage;

    return f->kind;
}

float dedup_fuzzy_similarity(const void *stage, uint64_t n)
{
    const struct fuzzy *f = stage;

    return f->fate[f->outside + n].similarity;
}

static void fuzzy_close(void *stage)
{
    struct fuzzy *f = stage;

    if (!f)
        return;
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
    opt_list_free(&f->conf.against);
    free(f);
}

static const struct stage_ops fuzzy_ops = {
    .name = "dedup fuzzy",
    .thread_open = fuzzy_thread_open,
    .thread_close = fuzzy_thread_close,
    .work = fuzzy_work,
    .commit = fuzzy_commit,
    .resolve = fuzzy_resolve,
    .judge = fuzzy_judge,
    .apply = fuzzy_apply,
    .finish = fuzzy_finish,
    .stats = fuzzy_stats,
    .close = fuzzy_close,
};

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
    TRY(notes_list(&f->conf.against, against, e));
    TRY(dedup_bands_init(&f->shape, f->n_bands, f->n_rows, e));
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
    *st = (struct stage){&fuzzy_ops, f};
    return 0;
}
