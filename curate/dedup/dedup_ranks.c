#include "curate/dedup/dedup_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "curate/dedup/dedup_sharded.h"
#include "curate/stream/doc_name.h"
#include "curate/stream/note_index.h"

/* Of a bound on memory: what the rest of the program and MPI take, and what must be left. */
enum { OTHERS = 80 << 20, LEAST_WORK = 32 << 20 };
#define NOWHERE UINT32_MAX /* the route of a document that nobody has to decide */

/* A group of linked documents that is larger than LARGE, and than a LARGE_SHAREth of what a rank has, all ranks decide. */
enum { LARGE = 256, LARGE_SHARE = 8, DEAL = 64 };
#define IN_GROUP (UINT64_C(1) << 63) /* in the number of a parcel: its document is of a large group */
#define AGAINST (UINT64_C(1) << 62) /* in a number over all ranks: the document is one of --against */

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
    if (s->index)
        TRY(parcel_put(&s->notes, s->n, note, e));
    return parcel_put(&s->out.file[rank], s->n, note, e);
}

/* rest: NULL, or of a note that goes on in a file. */
static int commit_fuzzy(struct sharded *s, struct span note, const struct spill_part *rest, bool outside, struct arena *a,
                        struct err *e)
{
    struct dedup_fuzzy_note x;
    uint64_t id_n;

    TRY(dedup_fuzzy_note(s->inner.state, note, rest, a, &x, e));
    for (size_t i = 0; i < x.keys; i++) {
        struct rank_key k = {dedup_band_mix(x.key[i], (int)i), s->n};
        if (x.key[i] == BUCKET_NONE)
            continue;
        TRY(spill_put(&s->out.file[rank_key_owner(s->c, k.key)], &k, sizeof k, e));
    }
    s->shingle_bytes += x.shingle_bytes;
    id_n = x.id.n;
    if (s->clusters && !outside) {
        TRY(spill_put(&s->ids, &id_n, sizeof id_n, e));
        TRY(spill_put(&s->ids, x.id.p, x.id.n, e));
    }
    return parcel_put_note(&s->notes, s->n, note, rest, e);
}

static int add(struct sharded *s, struct span note, const struct spill_part *rest, bool outside, struct arena *a, struct err *e)
{
    TRY(s->fuzzy ? commit_fuzzy(s, note, rest, outside, a, e) : commit_exact(s, note, e));
    s->n++;
    if (memory_left(s) < LEAST_WORK)
        return err_set(e, ERR_NOMEM, "%" PRIu64 " documents of one rank take more memory than %" PRId64 " bytes", s->n,
                       s->memory);
    return 0;
}

static int take_outside(void *to, struct span note, struct err *e)
{
    struct sharded *s = to;

    return add(s, note, NULL, true, NULL, e);
}

/* This rank's share of the files of --against, before its own documents. */
static int begin_exact(struct sharded *s, struct err *e)
{
    const char *kind = dedup_exact_kind(s->inner.state);

    s->begun = true;
    for (int i = 0; i < s->against.n; i++)
        if ((int64_t)i * s->c->size / s->against.n == s->c->rank &&
            notes_of(s->against.v[i], &s->inner, kind, limits_cpus(), take_outside, s, e) < 0)
            return e->code = ERR_IO; /* whatever it is: the document at hand is not bad */
    s->own.first = s->n;
    return 0;
}

static int sharded_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                          struct err *e)
{
    struct sharded *s = stage;

    (void)v, (void)reply;
    if (!s->begun && !s->fuzzy)
        TRY(begin_exact(s, e));
    return add(s, note, NULL, false, a, e);
}

static int sharded_commit_long(void *stage, struct span note, const struct spill_part *rest, struct verdict *v,
                               struct span *reply, struct arena *a, struct err *e)
{
    (void)v, (void)reply;
    return add(stage, note, rest, false, a, e);
}

/* ---- to the ranks that decide ---- */

/* Linked documents go where their root is decided; those of large groups are dealt to all ranks, DEAL in a row to one, since
 * what is alike often stands together. */
static int route_fuzzy(struct sharded *s, const uint64_t *root, struct rank_files *out, struct err *e)
{
    struct parcels p = {0};
    struct spill_part rest;
    struct parcel h;
    int rc = spill_reader_open(&p.in, &s->notes, 0, s->notes.size, SHARDED_READ, e);

    for (uint64_t i = 0; i < s->n && rc == 0; i++) {
        uint64_t mark = root[i] & (RANK_LINKED | RANK_LARGE), number = s->docs.first[s->c->rank] + i;
        int rank = rank_key_owner(s->c, hash_mix64(root[i] & ~mark));

        if (mark & RANK_LARGE)
            rank = (int)(number / DEAL % (unsigned)s->c->size);
        rc = spill_next(&p.in, &h, sizeof h, e);
        if (rc == 0)
            rc = parcel_head(&p, &s->notes, &h, &rest, e);
        if (rc == 0)
            rc = put_route(s, mark ? (uint32_t)rank : NOWHERE, e);
        if (rc == 0 && mark)
            rc = parcel_put_note(&out->file[rank], mark & RANK_LARGE ? i | IN_GROUP : i, buf_span(&p.note),
                                 rest.s ? &rest : NULL, e);
    }
    parcels_close(&p);
    return rc;
}

/* Leaves s->out with the notes that go to others. */
static int link_fuzzy(struct sharded *s, int jobs, struct err *e)
{
    uint64_t share = s->docs.first[s->c->size] / LARGE_SHARE / (unsigned)s->c->size;
    struct rank_link_plan plan = {s->c, &s->docs, s->dir, memory_left(s), jobs,
                                  !s->group ? UINT64_MAX : share < LARGE ? LARGE : share};
    uint64_t *root = malloc((s->n + 1) * sizeof *root);
    int rc = root ? 0 : err_set(e, ERR_NOMEM, "out of memory for %" PRIu64 " documents", s->n);

    if (rc == 0)
        rc = spill_flush(&s->notes, e);
    if (rc == 0)
        rc = rank_links_find(&plan, &s->out, root, &s->sent, e);
    if (rc == 0)
        rc = rank_files_open(&s->out, s->c, s->dir, s->memory / SHARDED_BUFFERS, e);
    if (rc == 0)
        rc = route_fuzzy(s, root, &s->out, e);
    if (rc == 0)
        rc = rank_files_flush(&s->out, e);
    free(root);
    if (!s->index)
        spill_close(&s->notes);
    return rc;
}

/* Hits of documents of indexes go to the ranks that are to have them. */
static int put_hit(void *of, const struct against_hit *x, struct err *e)
{
    struct sharded *s = of;

    return spill_put(&s->hits.file[dedup_against_owner(s->others, x, s->c->size)], x, sizeof *x, e);
}

static int take_hits(void *to, int from, struct span bytes, struct err *e)
{
    (void)from;
    for (size_t i = 0; i + sizeof(struct against_hit) <= bytes.n; i += sizeof(struct against_hit)) {
        struct against_hit x;
        struct member m;

        memcpy(&x, bytes.p + i, sizeof x);
        m = member_of_pair(x.place, x.key);
        TRY(members_add(to, &m, e));
    }
    return 0;
}

/* What this rank's documents hit in the indexes, and after that what is this rank's of all hits. */
static int find_hits(struct sharded *s, struct members *hits, int jobs, struct err *e)
{
    for (int r = 0; r < s->out.n; r++)
        TRY(spill_write_out(&s->out.file[r], e));
    TRY(rank_files_open(&s->hits, s->c, s->dir, s->memory / SHARDED_BUFFERS, e));
    /* Several threads give hits in any order. */
    TRY(dedup_against_find(s->others, s->out.file, s->out.n, memory_left(s) / 4, s->c->starts_again ? 1 : jobs, put_hit, s, e));
    TRY(rank_files_flush(&s->hits, e));
    TRY(rank_meet(s->c, e));
    return rank_exchange(s->c, &s->hits, s->memory / SHARDED_BUFFERS, take_hits, hits, &s->sent, e);
}

/* The documents of --against that those of all ranks have to be held against, after this rank's own. */
static int take_others(struct sharded *s, int jobs, struct err *e)
{
    struct members hits;
    int rc = members_open(&hits, (size_t)memory_left(s) / 4 / sizeof(struct member), s->dir, e);

    if (rc == 0 && dedup_against_has_index(s->others))
        rc = find_hits(s, &hits, jobs, e);
    if (rc == 0)
        rc = members_sort(&hits, e);
    if (rc == 0)
        rc = dedup_against_give(s->others, &hits, &s->inner, s->c->rank, s->c->size, take_outside, s, e);
    members_close(&hits);
    return rc;
}

/* The document's number on its own rank. */
static uint64_t parcel_doc(const struct parcel *h)
{
    return h->number & ~IN_GROUP;
}

static bool is_own(const struct sharded *s, int from, const struct parcel *h)
{
    return parcel_doc(h) >= s->owns[from].first && parcel_doc(h) < s->owns[from].end;
}

/* A note, to the stage that decides; rest: NULL, or of one that goes on in a file. */
static int take_for_stage(struct sharded *s, bool own, uint64_t number, struct span note, const struct spill_part *rest,
                          struct arena *a, struct err *e)
{
    struct verdict v = {0};
    struct span reply;

    if (own)
        TRY(stage_commit(&s->inner, note, rest, &v, &reply, a, e));
    else
        TRY(s->fuzzy ? dedup_fuzzy_outside(s->inner.state, note, rest, a, e) : dedup_exact_outside(s->inner.state, note, e));
    return s->fuzzy ? spill_put(&s->numbers, &number, sizeof number, e) : 0;
}

/* A note that came. */
static int take_note(struct sharded *s, int from, const struct parcel *h, struct span note, const struct spill_part *rest,
                     struct arena *a, struct err *e)
{
    bool in_group = h->number & IN_GROUP, own = is_own(s, from, h);
    uint64_t number = (s->docs.first[from] + parcel_doc(h)) | (own ? 0 : AGAINST); /* fuzzy: after all ranks' own */

    if (own) {
        s->came[from]++;
        TRY(spill_put(&s->in_group, &in_group, 1, e));
    }
    return in_group ? rank_group_add(s->group, note, !own, number, e) : take_for_stage(s, own, number, note, rest, a, e);
}

/* Those of one rank from *at on, of its own documents or of the others. */
static int take_notes(struct sharded *s, int from, struct spill *in, uint64_t *at, bool own, struct err *e)
{
    struct parcels p = {0};
    struct spill_part rest = {0};
    struct parcel h;
    struct arena a = {0};
    int rc = spill_reader_open(&p.in, in, *at, in->size, SHARDED_READ, e);

    while (rc == 0 && *at < in->size) {
        rc = spill_next(&p.in, &h, sizeof h, e);
        if (rc < 0 || is_own(s, from, &h) != own)
            break;
        if (s->inner.ops->commit_long && !(h.number & IN_GROUP))
            rc = parcel_head(&p, in, &h, &rest, e);
        else
            rc = parcel_note(&p, &h, e);
        if (rc == 0)
            rc = take_note(s, from, &h, buf_span(&p.note), rest.s ? &rest : NULL, &a, e);
        *at += sizeof h + h.n;
        arena_reset(&a);
    }
    arena_free(&a);
    parcels_close(&p);
    return rc;
}

static int take_all_notes(struct sharded *s, struct err *e)
{
    uint64_t *at = calloc((size_t)s->c->size, sizeof *at);
    struct rank_files in = {0};
    int rc = at ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d ranks", s->c->size);

    if (rc == 0)
        rc = rank_files_open(&in, s->c, s->dir, s->memory / SHARDED_BUFFERS, e);
    if (rc == 0)
        rc = rank_exchange_files(s->c, &s->out, &in, s->memory / SHARDED_BUFFERS, &s->sent, e);
    for (int r = 0; r < s->c->size && rc == 0; r++)
        rc = take_notes(s, r, &in.file[r], &at[r], s->fuzzy, e);
    for (int r = 0; r < s->c->size && rc == 0; r++) {
        rc = take_notes(s, r, &in.file[r], &at[r], !s->fuzzy, e);
        spill_close(&in.file[r]);
    }
    rank_files_close(&in);
    free(at);
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
    if (!v.drop && reply.p) {
        uint64_t size;

        memcpy(&size, reply.p, sizeof size);
        x.value = (double)size;
    }
    if (v.drop && s->fuzzy)
        x.similarity = dedup_fuzzy_similarity(s->inner.state, n);
    s->stay += !v.drop;
    x.id_n = v.drop ? v.survivor.n : 0;
    TRY(spill_put(to, &x, sizeof x, e));
    return spill_put(to, v.survivor.p, x.id_n, e);
}

/* Of the nth document of large groups. */
static int put_group_answer(struct sharded *s, uint64_t n, struct spill *to, struct arena *a, struct err *e)
{
    struct rank_fate f;
    struct answer x;

    TRY(rank_group_fate(s->group, n, &f, a, e));
    if (!f.stays && !s->places)
        f.survivor = doc_name_id(f.survivor);
    x = (struct answer){.dropped = !f.stays, .similarity = f.similarity, .id_n = f.survivor.n};
    x.value = f.stays ? (double)f.size : round(f.similarity * 1e6) / 1e6;
    x.threshold = f.stays ? 0 : s->threshold;
    s->stay += f.stays;
    TRY(spill_put(to, &x, sizeof x, e));
    return spill_put(to, f.survivor.p, f.survivor.n, e);
}

/* What came from each rank, in its order. */
static int put_answers(struct sharded *s, struct rank_files *out, struct err *e)
{
    struct spill_reader in_group;
    struct arena a = {0};
    uint64_t n[2] = {0};
    int rc = spill_reader_open(&in_group, &s->in_group, 0, s->in_group.size, SHARDED_READ, e);

    for (int r = 0; r < s->c->size && rc == 0; r++)
        for (uint64_t i = 0; i < s->came[r] && rc == 0; i++) {
            bool group = false;

            rc = spill_next(&in_group, &group, 1, e);
            if (rc == 0)
                rc = (group ? put_group_answer : put_answer)(s, n[group]++, &out->file[r], &a, e);
            arena_reset(&a);
        }
    spill_reader_close(&in_group);
    arena_free(&a);
    return rc;
}

static int answer_all(struct sharded *s, struct err *e)
{
    struct rank_files out;
    int rc = rank_files_open(&out, s->c, s->dir, s->memory / SHARDED_BUFFERS, e);

    if (rc == 0)
        rc = put_answers(s, &out, e);
    if (rc == 0)
        rc = rank_files_flush(&out, e);
    if (rc == 0)
        rc = rank_meet(s->c, e);
    if (rc == 0)
        rc = rank_files_open(&s->answers, s->c, s->dir, s->memory / SHARDED_BUFFERS, e);
    if (rc == 0)
        rc = rank_exchange_files(s->c, &out, &s->answers, s->memory / SHARDED_BUFFERS, &s->sent, e);
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
static int open_answers(struct sharded *s, struct err *e)
{
    int64_t cap = s->memory / SHARDED_BUFFERS / s->c->size;

    cap = cap < 4096 ? 4096 : cap > SHARDED_READ ? SHARDED_READ : cap;
    close_readers(s);
    TRY(spill_reader_open(&s->route_in, &s->route, s->own.first * sizeof(uint32_t), s->own.end * sizeof(uint32_t),
                          SHARDED_READ, e));
    for (int r = 0; r < s->c->size; r++)
        TRY(spill_reader_open(&s->answer_in[r], &s->answers.file[r], 0, s->answers.file[r].size, (size_t)cap, e));
    return 0;
}

/* Of the next document; survivor in a. */
int sharded_next_answer(struct sharded *s, struct answer *x, struct span *survivor, struct arena *a, struct err *e)
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

static int decide(struct sharded *s, int jobs, struct err *e)
{
    TRY(rank_lines_open(&s->pair_lines, s, s->pairs, e));
    TRY(rank_lines_open(&s->report_lines, s, s->report, e));
    if (s->fuzzy)
        dedup_fuzzy_divert(s->inner.state, &(struct dedup_taker){rank_lines_take, s->pair_lines},
                           &(struct dedup_taker){rank_lines_take, s->report_lines});
    TRY(s->inner.ops->resolve(s->inner.state, jobs, e));
    if (s->group) {
        TRY(rank_meet(s->c, e));
        TRY(rank_group_decide(s->group, &s->sent, e));
    }
    TRY(rank_lines_write(s->pair_lines, s, e));
    return rank_lines_write(s->report_lines, s, e);
}

static int sharded_resolve(void *stage, int jobs, struct err *e)
{
    struct sharded *s = stage;

    if (!s->begun && !s->fuzzy) /* there was no document */
        TRY(begin_exact(s, e));
    s->own.end = s->n;
    TRY(rank_meet(s->c, e));
    if (s->fuzzy)
        TRY(take_others(s, jobs, e));
    TRY(rank_meet(s->c, e));
    TRY(rank_docs_open(&s->docs, s->c, s->n, e));
    TRY(comm_all_gather(s->c, &s->own, s->owns, 2, COMM_I64, e));
    TRY(rank_files_flush(&s->out, e));
    if (s->fuzzy)
        TRY(link_fuzzy(s, jobs, e));
    TRY(rank_meet(s->c, e));
    TRY(take_all_notes(s, e));
    TRY(spill_flush(&s->route, e));
    TRY(spill_flush(&s->numbers, e));
    TRY(spill_flush(&s->in_group, e));
    TRY(decide(s, jobs, e));
    TRY(answer_all(s, e));
    TRY(sharded_count(s, e));
    if (s->clusters) {
        TRY(open_answers(s, e));
        TRY(sharded_write_clusters(s, e));
    }
    if (s->index) {
        TRY(open_answers(s, e));
        TRY(sharded_write_index(s, e));
        spill_close(&s->notes);
    }
    return open_answers(s, e);
}

static int sharded_finish(void *stage, struct file_group *files, struct err *e)
{
    struct sharded *s = stage;

    return file_group_join(files, &s->files, e);
}

static int sharded_judge(void *stage, uint64_t n, struct verdict *v, struct span *reply, struct arena *a,
                         struct err *e)
{
    struct sharded *s = stage;
    struct span survivor = {0};
    struct answer x;

    (void)n;
    TRY(sharded_next_answer(s, &x, &survivor, a, e));
    if (!x.dropped)
        return s->cluster_size ? dedup_size_reply(x.value > 1 ? (uint64_t)x.value : 1, reply, a, e) : 0;
    verdict_drop(v, s->fuzzy ? dedup_fuzzy_rules : dedup_exact_rules, x.value, x.threshold);
    if (v->account)
        v->survivor = survivor;
    return 0;
}

static int sharded_apply(void *stage, void *thread, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    const struct sharded *s = stage;

    (void)thread, (void)v;
    return dedup_size_apply(d, s->cluster_size, reply, e);
}

static int sharded_stats(void *stage, struct buf *json)
{
    struct sharded *s = stage;

    if (s->fuzzy)
        return dedup_fuzzy_put_stats(s->inner.state, &s->counts, json);
    TRY(json_put_key(json, "distinct"));
    TRY(json_put_int(json, (int64_t)s->stay));
    TRY(json_put_key(json, "against"));
    return json_put_int(json, (int64_t)s->counts.against);
}

static void sharded_close(void *stage)
{
    struct sharded *s = stage;

    if (!s)
        return;
    close_readers(s);
    file_group_abort(&s->files);
    free(s->answer_in);
    free(s->came);
    free(s->owns);
    free(s->against.v);
    dedup_against_close(s->others);
    rank_files_close(&s->hits);
    free(s->largest_id);
    rank_lines_close(s->pair_lines);
    rank_lines_close(s->report_lines);
    rank_docs_close(&s->docs);
    spill_close(&s->notes);
    spill_close(&s->ids);
    spill_close(&s->route);
    spill_close(&s->numbers);
    spill_close(&s->in_group);
    rank_group_close(s->group);
    rank_files_close(&s->out);
    rank_files_close(&s->answers);
    if (s->inner.ops)
        s->inner.ops->close(s->inner.state);
    free(s);
}

#define SHARDED(title, long_notes)                                                                                 \
    {                                                                                                              \
        .name = title, .thread_open = sharded_thread_open, .thread_close = sharded_thread_close,                   \
        .work = sharded_work, .commit = sharded_commit, .resolve = sharded_resolve, .judge = sharded_judge,        \
        .commit_long = long_notes, .apply = sharded_apply,                                                         \
        .finish = sharded_finish,                                                                                  \
        .stats = sharded_stats, .close = sharded_close,                                                            \
    }
static const struct stage_ops exact_ops = SHARDED("dedup exact", NULL),
                              fuzzy_ops = SHARDED("dedup fuzzy", sharded_commit_long);

/* ---- opening ---- */

static int cpu_only(struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "--device cuda is not for several ranks: run one process");
}

/* All pairs, what clusters share, and groups without verification are for the rank of the group. */
static int open_group(struct sharded *s, const struct dedup_fuzzy_conf *c, struct err *e)
{
    struct rank_group_conf conf = {.c = s->c, .dir = s->dir, .threshold = c->threshold, .last = c->keep == KEEP_LAST,
                                   .memory = memory_left(s), .report_over = c->report_over,
                                   .hash_bytes = minhash_hash_bytes(minhash_preset_at(c->preset - 1))};

    conf.memory = conf.memory < LEAST_WORK ? LEAST_WORK : conf.memory;
    s->threshold = c->threshold;
    s->places = c->places;
    TRY(dedup_fuzzy_settle(c, &conf.bands, &conf.rows, e));
    return rank_group_open(&s->group, &conf, e);
}

static int open_fuzzy(struct sharded *s, const struct dedup_fuzzy_conf *c, struct err *e)
{
    struct dedup_fuzzy_conf own = *c;

    if (c->device == DEDUP_CUDA)
        return cpu_only(e);
    s->dir = c->dir;
    s->clusters = c->clusters;
    s->pairs = c->pairs;
    s->report = c->report;
    s->cluster_size = c->cluster_size;
    s->index = c->index;
    s->bounded = c->memory > 0;
    s->memory = c->memory ? c->memory : DEDUP_FUZZY_MEMORY;
    own.device = DEDUP_CPU;
    TRY(dedup_fuzzy_choose_preset(&own, e));
    own.clusters = NULL;
    own.against = (struct opt_list){0};
    TRY(dedup_fuzzy_stage_open(&s->inner, &own, e));
    return c->verify && !c->pairs && !c->report ? open_group(s, &own, e) : 0;
}

static int open_exact(struct sharded *s, const struct dedup_exact_conf *c, struct err *e)
{
    struct dedup_exact_conf own = *c;

    if (c->bloom_count)
        return err_set(e, ERR_UNSUPPORTED, "--bloom-count is not for several ranks, which compare exactly");
    s->dir = c->dir;
    s->cluster_size = c->cluster_size;
    s->index = c->index;
    s->memory = own.memory = c->memory ? c->memory : 1 << 30; /* so that all are seen before one is decided */
    own.index = NULL;
    own.against = (struct opt_list){0};
    return dedup_exact_stage_open(&s->inner, &own, e);
}

static int keep_against(struct sharded *s, const struct opt_list *against, struct err *e)
{
    for (int i = 0; i < against->n; i++) {
        TRY(file_check_readable(against->v[i], e));
        TRY(opt_list_add(&s->against, against->v[i], e));
    }
    return 0;
}

static int open_files(struct sharded *s, struct err *e)
{
    s->answer_in = calloc((size_t)s->c->size, sizeof *s->answer_in);
    s->came = calloc((size_t)s->c->size, sizeof *s->came);
    s->owns = calloc((size_t)s->c->size, sizeof *s->owns);
    if (!s->answer_in || !s->came || !s->owns)
        return err_set(e, ERR_NOMEM, "out of memory for %d ranks", s->c->size);
    TRY(spill_open(&s->notes, s->dir, SHARDED_READ, e));
    TRY(spill_open(&s->ids, s->dir, SHARDED_READ, e));
    TRY(spill_open(&s->route, s->dir, SHARDED_READ, e));
    TRY(spill_open(&s->numbers, s->dir, SHARDED_READ, e));
    TRY(spill_open(&s->in_group, s->dir, SHARDED_READ, e));
    return rank_files_open(&s->out, s->c, s->dir, s->memory / SHARDED_BUFFERS, e);
}

/* The state of a stage that is yet to be opened. */
static int new_sharded(struct sharded **s, struct comm *c, bool fuzzy, struct err *e)
{
    *s = calloc(1, sizeof **s);
    if (!*s)
        return err_set(e, ERR_NOMEM, "out of memory");
    (*s)->notes.fd = (*s)->ids.fd = (*s)->route.fd = (*s)->numbers.fd = (*s)->in_group.fd = -1;
    (*s)->c = c;
    (*s)->fuzzy = fuzzy;
    return 0;
}

/* Takes s, whose own stage was opened (rc 0) or was not, to the end of its opening. */
static int finish_open(struct stage *st, struct sharded *s, int rc, const struct opt_list *against, struct err *e)
{
    if (rc == 0)
        rc = s->fuzzy ? dedup_fuzzy_against(s->inner.state, against, &s->others, e) : keep_against(s, against, e);
    if (rc == 0)
        rc = open_files(s, e);
    if (rc < 0) {
        sharded_close(s);
        return rc;
    }
    *st = (struct stage){s->fuzzy ? &fuzzy_ops : &exact_ops, s};
    return 0;
}

int dedup_exact_ranks_open(struct stage *st, struct comm *c, const struct dedup_exact_conf *conf, struct err *e)
{
    struct sharded *s;

    TRY(new_sharded(&s, c, false, e));
    return finish_open(st, s, open_exact(s, conf, e), &conf->against, e);
}

int dedup_fuzzy_ranks_open(struct stage *st, struct comm *c, const struct dedup_fuzzy_conf *conf, struct err *e)
{
    struct sharded *s;

    TRY(new_sharded(&s, c, true, e));
    return finish_open(st, s, open_fuzzy(s, conf, e), &conf->against, e);
}
