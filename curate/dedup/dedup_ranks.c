#include "curate/dedup/dedup_ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/rank_links.h"
#include "curate/stream/ranks.h"

/* Of a bound on memory: what the rest of the program and MPI take, and what must be left; buffers of files. */
enum { OTHERS = 80 << 20, LEAST_WORK = 32 << 20, BUFFERS = 16, READ = 1 << 18 };
#define NOWHERE UINT32_MAX /* the route of a document that nobody has to decide */

struct sharded {
    struct stage inner; /* decides what came to this rank */
    struct comm *c;
    bool fuzzy;
    const char *dir, *clusters;
    int64_t memory;
    bool bounded;          /* by the user */
    uint64_t n;            /* documents of this rank */
    struct rank_docs docs; /* and of the others */
    struct spill notes;    /* fuzzy: of all of them */
    struct spill ids;      /* for clusters */
    struct spill route;    /* to which rank each goes, 32 bits */
    struct spill numbers;  /* fuzzy: over all ranks, of what came here */
    struct rank_files out; /* exact: notes; fuzzy: keys */
    struct rank_files answers;
    struct spill_reader route_in, *answer_in;
    uint64_t *came; /* how many from each rank */
    uint64_t sent, shingles, stay;
    struct dedup_fuzzy_counts counts; /* of all ranks */
    char *largest_id;
};

/* A record of a file of notes, before the note. */
struct parcel {
    uint64_t number, n; /* of the document on its rank; bytes */
};

struct answer {
    double value, threshold;
    float similarity;
    uint32_t dropped;
    uint64_t id_n; /* of the survivor, behind this */
};

static int sharded_thread_open(void *stage, void **thread, struct err *e)
{
    struct sharded *s = stage;

    return s->inner.ops->thread_open(s->inner.state, thread, e);
}

static void sharded_thread_close(void *stage, void *thread)
{
    struct sharded *s = stage;

    s->inner.ops->thread_close(s->inner.state, thread);
}

static int sharded_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct sharded *s = stage;

    return s->inner.ops->work(s->inner.state, thread, d, v, note, e);
}

/* ---- one after the other ---- */

static int put_parcel(struct spill *to, uint64_t number, struct span note, struct err *e)
{
    struct parcel p = {number, note.n};

    TRY(spill_put(to, &p, sizeof p, e));
    return spill_put(to, note.p, note.n, e);
}

static int put_route(struct sharded *s, uint32_t rank, struct err *e)
{
    return spill_put(&s->route, &rank, sizeof rank, e);
}

/* What the bound leaves beside the roots of this rank's documents. */
static int64_t memory_left(const struct sharded *s)
{
    int64_t left = s->memory - OTHERS - (int64_t)(s->n * sizeof(uint64_t));

    return s->bounded || left >= s->memory / 2 ? left : s->memory / 2;
}

static int commit_exact(struct sharded *s, struct span note, struct err *e)
{
    uint64_t key;
    int rank;

    TRY(dedup_exact_note_key(note, &key, e));
    rank = rank_key_owner(s->c, hash_mix64(key));
    TRY(put_route(s, (uint32_t)rank, e));
    return put_parcel(&s->out.file[rank], s->n, note, e);
}

static int commit_fuzzy(struct sharded *s, struct span note, struct err *e)
{
    struct dedup_fuzzy_note x;
    uint64_t id_n;

    TRY(dedup_fuzzy_note(s->inner.state, note, &x, e));
    for (size_t i = 0; i < x.keys; i++) {
        struct rank_key k = {hash_mix64(x.key[i] + i), s->n};
        TRY(spill_put(&s->out.file[rank_key_owner(s->c, k.key)], &k, sizeof k, e));
    }
    s->shingles += x.shingles;
    id_n = x.id.n;
    if (s->clusters) {
        TRY(spill_put(&s->ids, &id_n, sizeof id_n, e));
        TRY(spill_put(&s->ids, x.id.p, x.id.n, e));
    }
    return put_parcel(&s->notes, s->n, note, e);
}

static int sharded_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                          struct err *e)
{
    struct sharded *s = stage;

    (void)v, (void)reply, (void)a;
    TRY(s->fuzzy ? commit_fuzzy(s, note, e) : commit_exact(s, note, e));
    s->n++;
    if (memory_left(s) < LEAST_WORK)
        return err_set(e, ERR_NOMEM, "%" PRIu64 " documents of one rank take more memory than %" PRId64 " bytes", s->n,
                       s->memory);
    return 0;
}

/* ---- to the ranks that decide ---- */

/* Reads parcels one after the other, a note aligned as a stage wants it. */
struct parcels {
    struct spill_reader in;
    struct buf note;
};

static int next_parcel(struct parcels *p, struct parcel *h, struct err *e)
{
    TRY(spill_next(&p->in, h, sizeof *h, e));
    buf_clear(&p->note);
    if (buf_reserve(&p->note, h->n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a note of %" PRIu64 " bytes", h->n);
    p->note.n = h->n;
    return spill_next(&p->in, p->note.p, h->n, e);
}

static void parcels_close(struct parcels *p)
{
    spill_reader_close(&p->in);
    buf_free(&p->note);
}

/* Linked documents go where their root is decided. */
static int route_fuzzy(struct sharded *s, const uint64_t *root, struct rank_files *out, struct err *e)
{
    struct parcels p = {0};
    struct parcel h;
    int rc = spill_reader_open(&p.in, &s->notes, 0, s->notes.size, READ, e);

    for (uint64_t i = 0; i < s->n && rc == 0; i++) {
        int rank = rank_key_owner(s->c, hash_mix64(root[i] & ~RANK_LINKED));

        rc = next_parcel(&p, &h, e);
        if (rc == 0)
            rc = put_route(s, root[i] & RANK_LINKED ? (uint32_t)rank : NOWHERE, e);
        if (rc == 0 && root[i] & RANK_LINKED)
            rc = put_parcel(&out->file[rank], i, buf_span(&p.note), e);
    }
    parcels_close(&p);
    return rc;
}

/* Leaves s->out with the notes that go to others. */
static int link_fuzzy(struct sharded *s, int jobs, struct err *e)
{
    struct rank_link_plan plan = {s->c, &s->docs, s->dir, memory_left(s), jobs};
    uint64_t *root = malloc((s->n + 1) * sizeof *root);
    int rc = root ? 0 : err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " documents", s->n);

    if (rc == 0)
        rc = spill_flush(&s->notes, e);
    if (rc == 0)
        rc = rank_links_find(&plan, &s->out, root, &s->sent, e);
    if (rc == 0)
        rc = rank_files_open(&s->out, s->c, s->dir, s->memory / BUFFERS, e);
    if (rc == 0)
        rc = route_fuzzy(s, root, &s->out, e);
    if (rc == 0)
        rc = rank_files_flush(&s->out, e);
    free(root);
    spill_close(&s->notes);
    return rc;
}

/* Those of one rank, to the stage. */
static int take_notes(struct sharded *s, int from, struct spill *in, struct err *e)
{
    struct parcels p = {0};
    struct parcel h;
    struct arena a = {0};
    int rc = spill_reader_open(&p.in, in, 0, in->size, READ, e);

    for (uint64_t left = in->size; left && rc == 0; left -= sizeof h + h.n) {
        struct verdict v = {0};
        struct span reply = {0};
        uint64_t number;

        rc = next_parcel(&p, &h, e);
        if (rc < 0)
            break;
        rc = s->inner.ops->commit(s->inner.state, buf_span(&p.note), &v, &reply, &a, e);
        number = s->docs.first[from] + h.number;
        if (rc == 0 && s->fuzzy)
            rc = spill_put(&s->numbers, &number, sizeof number, e);
        s->came[from]++;
        arena_reset(&a);
    }
    arena_free(&a);
    parcels_close(&p);
    spill_close(in);
    return rc;
}

static int take_all_notes(struct sharded *s, struct err *e)
{
    struct rank_files in;
    int rc = rank_files_open(&in, s->c, s->dir, s->memory / BUFFERS, e);

    if (rc == 0)
        rc = rank_exchange_files(s->c, &s->out, &in, s->memory / BUFFERS, &s->sent, e);
    for (int r = 0; r < s->c->size && rc == 0; r++)
        rc = take_notes(s, r, &in.file[r], e);
    rank_files_close(&in);
    return rc;
}

/* ---- and back ---- */

static int put_answer(struct sharded *s, uint64_t n, struct spill *to, struct arena *a, struct err *e)
{
    struct verdict v = {.account = true};
    struct span reply = {0};
    struct answer x;

    TRY(s->inner.ops->judge(s->inner.state, n, &v, &reply, a, e));
    x = (struct answer){.value = v.value, .threshold = v.threshold, .dropped = v.drop};
    if (v.drop && s->fuzzy)
        x.similarity = dedup_fuzzy_similarity(s->inner.state, n);
    s->stay += !v.drop;
    x.id_n = v.drop ? v.survivor.n : 0;
    TRY(spill_put(to, &x, sizeof x, e));
    return spill_put(to, v.survivor.p, x.id_n, e);
}

static int answer_all(struct sharded *s, struct err *e)
{
    struct rank_files out;
    struct arena a = {0};
    uint64_t n = 0;
    int rc = rank_files_open(&out, s->c, s->dir, s->memory / BUFFERS, e);

    for (int r = 0; r < s->c->size && rc == 0; r++)
        for (uint64_t i = 0; i < s->came[r] && rc == 0; i++) {
            rc = put_answer(s, n++, &out.file[r], &a, e);
            arena_reset(&a);
        }
    arena_free(&a);
    if (rc == 0)
        rc = rank_files_flush(&out, e);
    if (rc == 0)
        rc = rank_meet(s->c, e);
    if (rc == 0)
        rc = rank_files_open(&s->answers, s->c, s->dir, s->memory / BUFFERS, e);
    if (rc == 0)
        rc = rank_exchange_files(s->c, &out, &s->answers, s->memory / BUFFERS, &s->sent, e);
    rank_files_close(&out);
    return rc;
}

static void close_readers(struct sharded *s)
{
    spill_reader_close(&s->route_in);
    for (int r = 0; r < s->c->size && s->answer_in; r++)
        spill_reader_close(&s->answer_in[r]);
}

/* Answers again from the first document on. */
static int open_readers(struct sharded *s, struct err *e)
{
    int64_t cap = s->memory / BUFFERS / s->c->size;

    cap = cap < 4096 ? 4096 : cap > READ ? READ : cap;
    close_readers(s);
    TRY(spill_reader_open(&s->route_in, &s->route, 0, s->route.size, READ, e));
    for (int r = 0; r < s->c->size; r++)
        TRY(spill_reader_open(&s->answer_in[r], &s->answers.file[r], 0, s->answers.file[r].size, (size_t)cap, e));
    return 0;
}

/* Of the next document; survivor in a. */
static int next_answer(struct sharded *s, struct answer *x, struct span *survivor, struct arena *a, struct err *e)
{
    uint32_t rank;
    char *id;

    *x = (struct answer){0};
    TRY(spill_next(&s->route_in, &rank, sizeof rank, e));
    if (rank == NOWHERE)
        return 0;
    TRY(spill_next(&s->answer_in[rank], x, sizeof *x, e));
    id = arena_alloc(a, x->id_n + 1);
    if (!id)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    *survivor = (struct span){id, x->id_n};
    return spill_next(&s->answer_in[rank], id, x->id_n, e);
}

/* ---- what is written of all ---- */

/* The lines of this rank's documents. */
static int cluster_lines(struct sharded *s, const struct sink *to, struct err *e)
{
    struct spill_reader ids = {0};
    struct buf line = {0};
    struct arena a = {0};
    int rc = spill_reader_open(&ids, &s->ids, 0, s->ids.size, READ, e);

    for (uint64_t i = 0; i < s->n && rc == 0; i++) {
        struct span survivor = {0};
        struct answer x;
        uint64_t n;
        char *id;

        arena_reset(&a);
        rc = next_answer(s, &x, &survivor, &a, e);
        if (rc == 0)
            rc = spill_next(&ids, &n, sizeof n, e);
        id = rc == 0 ? arena_alloc(&a, n + 1) : NULL;
        if (rc == 0)
            rc = id ? spill_next(&ids, id, n, e) : err_set(e, ERR_NOMEM, "out of memory for an id");
        if (rc == 0 && x.dropped && dedup_fuzzy_put_pair(&line, survivor, (struct span){id, n}, x.similarity) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory for a line of clusters");
        if (rc == 0 && (line.n > READ || i + 1 == s->n)) {
            rc = to->put(to->to, buf_span(&line), e);
            buf_clear(&line);
        }
    }
    spill_reader_close(&ids);
    buf_free(&line);
    arena_free(&a);
    return rc;
}

static int write_clusters(struct sharded *s, struct err *e)
{
    struct rank_stream stream = {s->c, 0};
    struct sink to = {ranks_put, &stream};
    struct file_out *out = NULL;
    int rc = spill_flush(&s->ids, e);

    if (rc == 0 && s->c->rank == 0) {
        rc = file_create(&out, s->clusters, 0, e);
        to = (struct sink){sink_file, out};
    }
    if (rc == 0)
        rc = cluster_lines(s, &to, e);
    if (rc == 0)
        rc = s->c->rank == 0 ? ranks_collect(s->c, &to, 1, e) : ranks_end(s->c, e);
    if (rc == 0 && out)
        return file_commit(out, e);
    file_abort(out);
    return rc;
}

/* The largest cluster of all ranks; of equal ones that of the first survivor. */
static int find_largest(struct sharded *s, const struct dedup_fuzzy_counts *own, struct err *e)
{
    uint64_t mine[2] = {0}, *all = calloc(2 * (size_t)s->c->size, sizeof *all), n = 0;
    int best = 0, rc = all ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d ranks", s->c->size);

    if (own->clusters) {
        mine[0] = own->largest;
        if (rc == 0)
            rc = spill_read(&s->numbers, own->largest_of * sizeof *mine, &mine[1], sizeof *mine, e);
        n = strlen(own->largest_id);
    }
    if (rc == 0)
        rc = comm_all_gather(s->c, mine, all, 2, COMM_I64, e);
    for (int r = 1; r < s->c->size && rc == 0; r++)
        if (all[2 * r] > all[2 * best] || (all[2 * r] == all[2 * best] && all[2 * r + 1] < all[2 * best + 1]))
            best = r;
    if (rc == 0)
        rc = comm_broadcast(s->c, &n, 1, COMM_I64, best, e);
    s->counts.largest = rc == 0 ? all[2 * best] : 0;
    free(all);
    if (rc < 0 || !s->counts.largest)
        return rc;
    s->largest_id = calloc(n + 1, 1);
    if (!s->largest_id)
        return err_set(e, ERR_NOMEM, "out of memory for an id");
    if (best == s->c->rank)
        memcpy(s->largest_id, own->largest_id, n);
    s->counts.largest_id = s->largest_id;
    return comm_broadcast(s->c, s->largest_id, n, COMM_U8, best, e);
}

static int count(struct sharded *s, struct err *e)
{
    struct dedup_fuzzy_counts own = {0};
    uint64_t sum[] = {s->stay, s->sent, 8 * s->shingles, 0, 0, 0};

    if (s->fuzzy) {
        dedup_fuzzy_counts(s->inner.state, &own);
        sum[3] = own.candidates;
        sum[4] = own.compared;
        sum[5] = own.clusters;
    }
    TRY(comm_all_reduce(s->c, sum, sizeof sum / sizeof *sum, COMM_I64, COMM_SUM, e));
    s->stay = sum[0];
    if (s->c->rank == 0)
        log_msg(LOG_INFO, "%d ranks, %" PRIu64 " documents, %.1f bytes of each sent to other ranks", s->c->size,
                s->docs.first[s->c->size],
                (double)sum[1] / (double)(s->docs.first[s->c->size] ? s->docs.first[s->c->size] : 1));
    s->counts = (struct dedup_fuzzy_counts){.shingle_bytes = sum[2], .candidates = sum[3], .compared = sum[4],
                                            .clusters = sum[5]};
    return s->fuzzy ? find_largest(s, &own, e) : 0;
}

static int sharded_resolve(void *stage, int jobs, struct err *e)
{
    struct sharded *s = stage;

    TRY(rank_meet(s->c, e));
    TRY(rank_docs_open(&s->docs, s->c, s->n, e));
    TRY(rank_files_flush(&s->out, e));
    if (s->fuzzy)
        TRY(link_fuzzy(s, jobs, e));
    TRY(rank_meet(s->c, e));
    TRY(take_all_notes(s, e));
    TRY(spill_flush(&s->route, e));
    TRY(spill_flush(&s->numbers, e));
    TRY(s->inner.ops->resolve(s->inner.state, jobs, e));
    TRY(answer_all(s, e));
    TRY(count(s, e));
    if (s->clusters) {
        TRY(open_readers(s, e));
        TRY(write_clusters(s, e));
    }
    return open_readers(s, e);
}

static int sharded_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                         struct err *e)
{
    struct sharded *s = stage;
    struct span survivor = {0};
    struct answer x;

    (void)n, (void)reply;
    TRY(next_answer(s, &x, &survivor, a, e));
    if (!x.dropped)
        return 0;
    verdict_drop(v, s->fuzzy ? "near-duplicate" : "duplicate", x.value, x.threshold);
    if (v->account)
        v->survivor = survivor;
    return 0;
}

static int sharded_stats(void *stage, struct buf *json)
{
    struct sharded *s = stage;

    if (s->fuzzy)
        return dedup_fuzzy_put_stats(s->inner.state, &s->counts, json);
    TRY(json_put_key(json, "distinct"));
    TRY(json_put_int(json, (int64_t)s->stay));
    TRY(json_put_key(json, "against"));
    return json_put_int(json, 0);
}

static void sharded_close(void *stage)
{
    struct sharded *s = stage;

    if (!s)
        return;
    close_readers(s);
    free(s->answer_in);
    free(s->came);
    free(s->largest_id);
    rank_docs_close(&s->docs);
    spill_close(&s->notes);
    spill_close(&s->ids);
    spill_close(&s->route);
    spill_close(&s->numbers);
    rank_files_close(&s->out);
    rank_files_close(&s->answers);
    if (s->inner.ops)
        s->inner.ops->close(s->inner.state);
    free(s);
}

#define SHARDED(title)                                                                                             \
    {                                                                                                              \
        .name = title, .thread_open = sharded_thread_open, .thread_close = sharded_thread_close,                   \
        .work = sharded_work, .commit = sharded_commit, .resolve = sharded_resolve, .judge = sharded_judge,        \
        .stats = sharded_stats, .close = sharded_close,                                                            \
    }
static const struct stage_ops exact_ops = SHARDED("dedup exact"), fuzzy_ops = SHARDED("dedup fuzzy");

/* ---- opening ---- */

static int one_process_only(const char *option, struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "%s is not for several ranks: run one process", option);
}

static int open_fuzzy(struct sharded *s, const struct dedup_fuzzy_conf *c, struct err *e)
{
    struct dedup_fuzzy_conf own = *c;

    if (c->pairs || c->report || c->index || c->against.n)
        return one_process_only(c->pairs ? "--pairs" : c->report ? "--report" : c->index ? "--index" : "--against", e);
    if (c->device == 1)
        return one_process_only("--device cuda", e);
    own.device = 0;
    s->dir = c->dir;
    s->clusters = c->clusters;
    s->bounded = c->memory > 0;
    s->memory = c->memory ? c->memory : DEDUP_FUZZY_MEMORY;
    own.clusters = NULL;
    return dedup_fuzzy_stage_open(&s->inner, &own, e);
}

static int open_exact(struct sharded *s, const struct dedup_exact_conf *c, struct err *e)
{
    struct dedup_exact_conf own = *c;

    if (c->index || c->against.n)
        return one_process_only(c->index ? "--index" : "--against", e);
    s->dir = c->dir;
    s->bounded = false;
    s->memory = own.memory = c->memory ? c->memory : 1 << 30; /* so that all are seen before one is decided */
    return dedup_exact_stage_open(&s->inner, &own, e);
}

static int open_files(struct sharded *s, struct err *e)
{
    s->answer_in = calloc((size_t)s->c->size, sizeof *s->answer_in);
    s->came = calloc((size_t)s->c->size, sizeof *s->came);
    if (!s->answer_in || !s->came)
        return err_set(e, ERR_NOMEM, "out of memory for %d ranks", s->c->size);
    TRY(spill_open(&s->notes, s->dir, READ, e));
    TRY(spill_open(&s->ids, s->dir, READ, e));
    TRY(spill_open(&s->route, s->dir, READ, e));
    TRY(spill_open(&s->numbers, s->dir, READ, e));
    return rank_files_open(&s->out, s->c, s->dir, s->memory / BUFFERS, e);
}

int dedup_ranks_stage_open(struct stage *st, struct comm *c, const struct stage_kind *k, const void *conf,
                           struct err *e)
{
    struct sharded *s;
    bool fuzzy = strcmp(k->name, "dedup fuzzy") == 0;
    int rc;

    if (!fuzzy && strcmp(k->name, "dedup exact") != 0)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is not for several ranks, but exact and fuzzy are", k->name);
    s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    s->notes.fd = s->ids.fd = s->route.fd = s->numbers.fd = -1;
    s->c = c;
    s->fuzzy = fuzzy;
    rc = fuzzy ? open_fuzzy(s, conf, e) : open_exact(s, conf, e);
    if (rc == 0)
        rc = open_files(s, e);
    if (rc < 0) {
        sharded_close(s);
        return rc;
    }
    *st = (struct stage){fuzzy ? &fuzzy_ops : &exact_ops, s};
    return 0;
}
