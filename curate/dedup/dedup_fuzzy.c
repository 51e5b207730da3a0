#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "curate/dedup/dedup_fuzzy_inner.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/dedup_shared.h"
#include "curate/dedup/minhash_text.h"

/* Of a bound on memory: what the rest of the program takes (threads' blocks, libraries), what is
 * left for blocks at least, and the shares of files' buffers and of batches for a GPU. */
enum { OTHERS = 48 << 20, LEAST_WORK = 32 << 20, BUFFERS = 16, BATCHES = 16 };
/* Hashes of a thread's batch for a GPU, at most: 2 MiB, which takes some 40 us to get there and as long to sign. */
enum { BATCH_HASHES = 1 << 18 };

static const char *const lap_names[DEDUP_LAPS] = DEDUP_LAP_NAMES;

struct thread {
    struct shingler *shingler;
    struct idle_signer *signer; /* of notes that stay here */
    struct device *cpu;         /* of others, if the CPU signs */
    struct spill sets;          /* of long texts of the block in hand */
};

/* The note of a document that stays in this process: its shingles are in the store, its record comes there. */
struct own_note {
    struct signed_doc doc;
    struct fuzzy_note h; /* count is not used; the id and the text follow */
};

/* ---- signers ---- */

static void give_signer(struct fuzzy *f, struct idle_signer *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&f->lock);
    s->next = f->idle;
    f->idle = s;
    pthread_mutex_unlock(&f->lock);
}

static int take_signer(struct fuzzy *f, struct idle_signer **out, struct err *e)
{
    struct idle_signer *s;
    int rc;

    pthread_mutex_lock(&f->lock);
    s = f->idle;
    f->idle = s ? s->next : NULL;
    pthread_mutex_unlock(&f->lock);
    *out = s;
    if (s)
        return 0;
    s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    rc = dedup_signer_new(&s->signer, &f->signs, e);
    if (rc < 0)
        free(s);
    else
        *out = s;
    return rc;
}

static void close_signers(struct fuzzy *f)
{
    struct idle_signer *next;

    for (struct idle_signer *s = f->idle; s; s = next) {
        next = s->next;
        dedup_signer_close(s->signer);
        free(s);
    }
    f->idle = NULL;
    dedup_signer_close(f->signer);
    f->signer = NULL;
}

int dedup_fuzzy_end_signs(struct fuzzy *f, struct err *e)
{
    int rc = f->signer ? dedup_signer_finish(f->signer, e) : 0;

    for (struct idle_signer *s = f->idle; s && rc == 0; s = s->next)
        rc = dedup_signer_finish(s->signer, e);
    close_signers(f);
    return rc;
}

/* ---- in parallel ---- */

static void fuzzy_thread_close(void *stage, void *thread)
{
    struct thread *t = thread;

    shingler_free(t->shingler);
    give_signer(stage, t->signer);
    device_close(t->cpu);
    spill_close(&t->sets);
    free(t);
}

static uint32_t shingle_seed(const struct fuzzy *f)
{
    return f->minhash.family == MINHASH_U32 ? f->minhash.a32[0] : 0;
}

/* The state of a thread; own: of one whose notes stay here. */
static int thread_open(struct fuzzy *f, bool own, void **thread, struct err *e)
{
    struct thread *t = calloc(1, sizeof *t);
    int rc;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    t->sets.fd = -1;
    rc = shingler_new(&t->shingler, f->preset, shingle_seed(f), e);
    if (rc == 0 && own)
        rc = take_signer(f, &t->signer, e);
    if (rc == 0 && !own && !f->gpu)
        rc = device_open_dedup(&t->cpu, "cpu", 1, NULL, e);
    if (rc < 0)
        fuzzy_thread_close(f, t);
    else
        *thread = t;
    return rc;
}

static int fuzzy_thread_open(void *stage, void **thread, struct err *e)
{
    struct fuzzy *f = stage;

    return thread_open(f, f->conf.own_notes, thread, e);
}

static int outside_thread_open(void *stage, void **thread, struct err *e)
{
    return thread_open(stage, false, thread, e);
}

/* A note with the shingles, of the document's set, in it. */
static int whole_note(struct fuzzy *f, struct thread *t, struct doc *d, const struct fuzzy_note *h,
                      const struct shingle_set *set, struct span id, struct span *note, struct err *e)
{
    struct fuzzy_parts p;

    if (!fuzzy_note_new(&f->shape, d->arena, h, set->count && t->cpu, &p, note, e))
        return ERR_NOMEM;
    memcpy(p.id, id.p, id.n);
    memcpy(p.id + id.n, d->text.p, h->text_n);
    if (h->count)
        TRY(shingle_set_pack(set, p.hash, e));
    return p.has_record ? dedup_sign_one(t->cpu, &f->minhash, &f->shape, set, &p.record, e) : 0;
}

/* One of which all but the head is in the thread's file: the shingles are there, and the rest of a note without them follows. */
static int long_note(struct fuzzy *f, struct thread *t, struct doc *d, const struct fuzzy_note *h,
                     const struct shingle_set *set, struct span id, struct span *note, struct err *e)
{
    struct fuzzy_note head = *h, *to;
    const uint64_t zeros = 0;
    union { struct span note; struct { struct fuzzy_note *h; size_t n; } of; } u;

    head.count = 0;
    TRY(whole_note(f, t, d, &head, set, id, &u.note, e));
    to = u.of.h;
    to->count = h->count;
    TRY(spill_put(&t->sets, &zeros, fuzzy_note_hashes(&f->shape, h->count) - set->file.n, e));
    TRY(spill_put(&t->sets, to + 1, u.of.n - sizeof *to, e));
    TRY(spill_write_out(&t->sets, e));
    *note = (struct span){u.note.p, sizeof *to};
    *d->note_rest = (struct spill_part){&t->sets, set->file.at, t->sets.size - set->file.at};
    return 0;
}

/* A note for this process, the shingles being put aside. */
static int own_note(struct thread *t, struct doc *d, const struct fuzzy_note *h, const struct shingle_set *set, struct span id,
                    struct span *note, struct err *e)
{
    size_t n = sizeof(struct own_note) + h->id_n + h->text_n;
    struct own_note *to = arena_alloc(d->arena, n);

    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    to->h = *h;
    memcpy(to + 1, id.p, id.n);
    memcpy((char *)(to + 1) + id.n, d->text.p, h->text_n);
    *note = (struct span){(char *)to, n};
    return dedup_signer_add(t->signer->signer, set, &to->doc, e);
}

static int fuzzy_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note,
                      struct err *e)
{
    struct fuzzy *f = stage;
    struct thread *t = thread;
    struct fuzzy_note h = {.text_n = !f->conf.report ? 0 : d->text.n < SHARED_LOOK ? d->text.n : SHARED_LOOK};
    uint64_t now = laps_now();
    struct shingle_set set;
    struct span id;
    int rc;

    (void)v;
    if (doc_name(d, f->conf.places || (f->conf.index && !f->sets), &id) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    h.id_n = id.n;
    TRY(dedup_keep_rank(f->conf.keep, f->conf.by, d, &h.rank, e));
    rc = shingle_set_of(&set, t->shingler, d->compared.p ? d->compared : d->text, &t->sets, f->conf.dir, e);
    h.count = f->conf.no_similarity ? 0 : set.count;
    if (rc == 0 && f->conf.keep == KEEP_BEST)
        dedup_seen_count(&f->ranks, h.rank > 0);
    laps_add(&f->laps, LAP_SHINGLES, now);
    if (rc < 0)
        return rc;
    if (set.file.s && d->note_rest && !t->signer && h.count)
        return long_note(f, t, d, &h, &set, id, note, e);
    TRY(t->signer ? own_note(t, d, &h, &set, id, note, e) : whole_note(f, t, d, &h, &set, id, note, e));
    return spill_part_done(&set.file, e);
}

static int fuzzy_work_end(void *stage, void *thread, struct err *e)
{
    struct thread *t = thread;

    (void)stage;
    return t->signer ? dedup_signer_turn(t->signer->signer, e) : 0;
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

/* The documents fit into the memory. */
static int check_memory(const struct fuzzy *f, struct err *e)
{
    if (dedup_fuzzy_memory_left(f, f->store.n) >= LEAST_WORK)
        return 0;
    return err_set(e, ERR_NOMEM, "%" PRIu64 " documents take more memory than %" PRId64 " bytes", f->store.n, f->conf.memory);
}

/* A note of this process. */
static int add_own(struct fuzzy *f, struct span note, struct err *e)
{
    union { const char *in; const struct own_note *n; } u = {note.p};
    const struct own_note *n = u.n;
    const char *id = (const char *)(n + 1);
    uint64_t number = f->store.n;

    TRY(dedup_store_add(&f->store, n->doc.set, f->conf.keep == KEEP_LAST ? number : n->h.rank, (struct span){id, n->h.id_n},
                        (struct span){id + n->h.id_n, n->h.text_n}, e));
    dedup_signer_number(&n->doc, number);
    return check_memory(f, e);
}

/* Shingles and record of a note that has them; without a record it is signed. */
static int put_parts(struct fuzzy *f, const struct fuzzy_parts *p, size_t count, struct signed_doc *d, struct err *e)
{
    if (!p->has_record && count) {
        if (!f->signer)
            TRY(dedup_signer_new(&f->signer, &f->signs, e));
        return dedup_signer_add(f->signer, &(struct shingle_set){NULL, count, p->hashes, p->hash, f->shape.hash_bytes}, d, e);
    }
    *d = (struct signed_doc){0};
    TRY(p->hash ? dedup_store_put_set(&f->store, p->hash, count, &d->set, e)
                : dedup_store_put_part(&f->store, &p->hashes, &d->set, e));
    return p->has_record ? dedup_store_put_records(&f->store, &f->store.n, 1, &p->record, e) : 0;
}

static int add(struct fuzzy *f, struct span note, const struct spill_part *rest, bool outside, struct arena *a, struct err *e)
{
    struct fuzzy_parts p;
    struct fuzzy_note *h;
    struct signed_doc d;
    uint64_t rank;

    TRY(fuzzy_note_parse_long(&f->shape, note, rest, a, &h, &p, e));
    rank = outside ? UINT64_MAX : f->conf.keep == KEEP_LAST ? f->store.n : h->rank;
    TRY(put_parts(f, &p, h->count, &d, e));
    dedup_signer_number(&d, f->store.n);
    TRY(dedup_store_add(&f->store, d.set, rank, (struct span){p.id, h->id_n}, (struct span){p.id + h->id_n, h->text_n}, e));
    if (d.signer)
        TRY(dedup_signer_turn(d.signer, e));
    return check_memory(f, e);
}

int dedup_fuzzy_take_outside(void *to, struct span note, struct err *e)
{
    struct fuzzy *f = to;

    return add(f, note, NULL, true, NULL, e);
}

const struct stage_rule dedup_fuzzy_rules[] = {
    {"near-duplicate", "similarity (Jaccard, of shingles) to the survivor", "Another document is nearly the same.", "from",
     false},
    {0},
};

static int fuzzy_commit_long(void *stage, struct span note, const struct spill_part *rest, struct verdict *v,
                             struct span *reply, struct arena *a, struct err *e)
{
    struct fuzzy *f = stage;
    uint64_t now = laps_now();
    int rc = f->conf.own_notes ? add_own(f, note, e) : add(f, note, rest, false, a, e);

    (void)v, (void)reply;
    f->own++;
    laps_add(&f->laps, LAP_COMMIT, now);
    return rc;
}

static int fuzzy_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    return fuzzy_commit_long(stage, note, NULL, v, reply, a, e);
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

    *to = (struct dedup_fuzzy_counts){.shingle_bytes = dedup_store_set_bytes(&f->store), .candidates = f->tally.candidates,
                                      .compared = f->tally.compared, .against = f->store.n - f->own,
                                      .clusters = f->clusters, .largest = f->largest,
                                      .largest_of = f->largest_of, .largest_id = f->largest_id};
}

static int fuzzy_stats(void *stage, struct buf *json)
{
    const struct fuzzy *f = stage;
    struct laps laps = f->laps;
    struct dedup_fuzzy_counts n;

    dedup_fuzzy_counts(stage, &n);
    TRY(dedup_fuzzy_put_stats(stage, &n, json));
    if (!f->conf.own_notes)
        return 0;
    TRY(json_put_count(json, "signed_on_gpu", f->signs.on_gpu));
    if (f->gpu)
        laps.ns[LAP_OPEN] = dedup_gpu_opening(f->gpu);
    TRY(json_put_key(json, "time"));
    return laps_json(&laps, json);
}

int dedup_fuzzy_note(const void *stage, struct span note, const struct spill_part *rest, struct arena *a,
                     struct dedup_fuzzy_note *to, struct err *e)
{
    const struct fuzzy *f = stage;
    struct fuzzy_parts p = {0};
    struct fuzzy_note *h;

    TRY(fuzzy_note_parse_long(&f->shape, note, rest, a, &h, &p, e));
    *to = (struct dedup_fuzzy_note){h->count * f->shape.hash_bytes, p.record.key, p.has_record ? (size_t)f->shape.bands : 0,
                                   fuzzy_shown(f, (struct span){p.id, h->id_n})};
    return 0;
}

int dedup_fuzzy_outside(void *stage, struct span note, const struct spill_part *rest, struct arena *a, struct err *e)
{
    return add(stage, note, rest, true, a, e);
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
    close_signers(f);
    dedup_pairs_close(f->pairs);
    dedup_gpu_close(f->gpu);
    pthread_mutex_destroy(&f->lock);
    minhash_free(&f->minhash);
    dedup_bands_free(&f->shape);
    dedup_store_close(&f->store);
    file_group_abort(&f->files);
    free(f->fate);
    free(f->largest_id);
    dedup_against_close(f->against);
    free(f);
}

static const struct stage_ops fuzzy_ops = {
    .name = "dedup fuzzy",
    .thread_open = fuzzy_thread_open,
    .thread_close = fuzzy_thread_close,
    .work = fuzzy_work,
    .work_end = fuzzy_work_end,
    .commit = fuzzy_commit,
    .commit_long = fuzzy_commit_long,
    .resolve = dedup_fuzzy_resolve,
    .judge = fuzzy_judge,
    .apply = fuzzy_apply,
    .finish = fuzzy_finish,
    .stats = fuzzy_stats,
    .close = fuzzy_close,
};

const struct stage_ops dedup_fuzzy_outside_ops = {
    .name = "dedup fuzzy",
    .thread_open = outside_thread_open,
    .thread_close = fuzzy_thread_close,
    .work = fuzzy_work,
};

int dedup_fuzzy_against(const void *stage, const struct opt_list *files, struct dedup_against **a, struct err *e)
{
    const struct fuzzy *f = stage;
    struct dedup_against_conf c = {f->kind, &f->shape, f->preset, shingle_seed(f), f->conf.verify};

    return dedup_against_open(a, files, &c, e);
}

/* Of a thread's batch for a GPU, of which it has two. */
static size_t batch_hashes(const struct fuzzy *f)
{
    int64_t memory = f->conf.memory ? f->conf.memory : DEDUP_FUZZY_MEMORY;
    size_t share = (size_t)memory / BATCHES / 2 / (size_t)limits_cpus() / sizeof(uint64_t);

    return share < BATCH_HASHES ? share : BATCH_HASHES;
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
    TRY(dedup_gpu_open(&f->gpu, f->conf.device, e));
    TRY(dedup_bands_init(&f->shape, f->n_bands, f->n_rows, e));
    f->shape.hash_bytes = minhash_hash_bytes(f->preset);
    TRY(dedup_fuzzy_against(f, against, &f->against, e));
    f->sets = f->conf.index_sets || !f->conf.texts;
    if (f->conf.index)
        TRY(index_out_check(f->conf.index, e));
    f->signs = (struct dedup_sign_conf){f->gpu, &f->minhash, &f->shape, &f->store, (size_t)f->conf.batch, batch_hashes(f),
                                       &f->laps, f->conf.no_similarity, 0};
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
    pthread_mutex_init(&f->lock, NULL);
    f->laps = (struct laps){.name = lap_names, .n = DEDUP_LAPS};
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
