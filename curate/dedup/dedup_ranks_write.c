/* What is written of all ranks: pairs and reports, clusters, an index, counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "curate/dedup/dedup_pairs.h"
#include "curate/dedup/dedup_sharded.h"
#include "curate/stream/doc_name.h"
#include "curate/stream/note_index.h"
#include "curate/stream/ranks.h"

/* ---- pairs and reports ---- */

struct rank_lines {
    const char *path;
    struct rank_files out;       /* all to rank 0 */
    struct spill_reader numbers; /* of the documents that came here, */
    uint64_t doc, number;        /*   as far as the one before this */
};

int rank_lines_open(struct rank_lines **out, const struct sharded *s, const char *path, struct err *e)
{
    struct rank_lines *l = path ? calloc(1, sizeof *l) : NULL;

    *out = l;
    if (!path)
        return 0;
    if (!l)
        return err_set(e, ERR_NOMEM, "out of memory");
    l->path = path;
    TRY(rank_files_open(&l->out, s->c, s->dir, s->memory / SHARDED_BUFFERS, e));
    return spill_reader_open(&l->numbers, &s->numbers, 0, s->numbers.size, SHARDED_READ, e);
}

void rank_lines_close(struct rank_lines *l)
{
    if (!l)
        return;
    rank_files_close(&l->out);
    spill_reader_close(&l->numbers);
    free(l);
}

int rank_lines_take(void *arg, uint64_t doc, struct span line, struct err *e)
{
    struct rank_lines *l = arg;

    for (; l->doc <= doc; l->doc++)
        TRY(spill_next(&l->numbers, &l->number, sizeof l->number, e));
    return parcel_put(&l->out.file[0], l->number, line, e);
}

/* What comes from a rank, its next line's header read. */
struct incoming {
    struct parcels p;
    struct parcel h;
    bool more;
};

static int next_header(struct incoming *x, struct err *e)
{
    x->more = x->p.in.at - (x->p.in.have - x->p.in.pos) < x->p.in.end;
    return x->more ? spill_next(&x->p.in, &x->h, sizeof x->h, e) : 0;
}

/* Always the line of the least document. */
static int merge(struct incoming *from, int n, struct file_out *out, struct err *e)
{
    for (;;) {
        struct incoming *least = NULL;

        for (int r = 0; r < n; r++)
            if (from[r].more && (!least || from[r].h.number < least->h.number))
                least = &from[r];
        if (!least)
            return 0;
        TRY(parcel_note(&least->p, &least->h, e));
        TRY(file_write(out, least->p.note.p, least->p.note.n, e));
        TRY(next_header(least, e));
    }
}

static int write_merged(struct sharded *s, const char *path, const struct rank_files *in, struct err *e)
{
    int64_t cap = s->memory / SHARDED_BUFFERS / s->c->size;
    struct incoming *from = calloc((size_t)s->c->size, sizeof *from);
    struct file_out *out = NULL;
    int rc = from ? file_create(&out, path, 0, e) : err_set(e, ERR_NOMEM, "out of memory for %d ranks", s->c->size);

    cap = cap < 4096 ? 4096 : cap > SHARDED_READ ? SHARDED_READ : cap;
    for (int r = 0; r < s->c->size && rc == 0; r++) {
        rc = spill_reader_open(&from[r].p.in, &in->file[r], 0, in->file[r].size, (size_t)cap, e);
        if (rc == 0)
            rc = next_header(&from[r], e);
    }
    if (rc == 0)
        rc = merge(from, s->c->size, out, e);
    for (int r = 0; r < s->c->size && from; r++)
        parcels_close(&from[r].p);
    free(from);
    if (rc == 0)
        return file_group_add(&s->files, out, e);
    file_abort(out);
    return rc;
}

int rank_lines_write(struct rank_lines *l, struct sharded *s, struct err *e)
{
    struct rank_files in = {0};
    int rc;

    if (!l)
        return 0;
    rc = rank_files_flush(&l->out, e);
    if (rc == 0)
        rc = rank_meet(s->c, e);
    if (rc == 0)
        rc = rank_files_open(&in, s->c, s->dir, s->memory / SHARDED_BUFFERS, e);
    if (rc == 0)
        rc = rank_exchange_files(s->c, &l->out, &in, s->memory / SHARDED_BUFFERS, &s->sent, e);
    if (rc == 0 && s->c->rank == 0)
        rc = write_merged(s, l->path, &in, e);
    rank_files_close(&in);
    return rc;
}

/* ---- clusters ---- */

/* The lines of this rank's documents. */
static int cluster_lines(struct sharded *s, const struct sink *to, struct err *e)
{
    struct spill_reader ids = {0};
    struct buf line = {0};
    struct arena a = {0};
    int rc = spill_reader_open(&ids, &s->ids, 0, s->ids.size, SHARDED_READ, e);

    for (uint64_t i = s->own.first; i < s->own.end && rc == 0; i++) {
        struct span survivor = {0};
        struct answer x;
        uint64_t n = 0;
        char *id;

        arena_reset(&a);
        rc = sharded_next_answer(s, &x, &survivor, &a, e);
        if (rc == 0)
            rc = spill_next(&ids, &n, sizeof n, e);
        id = rc == 0 ? arena_alloc(&a, n + 1) : NULL;
        if (rc == 0)
            rc = id ? spill_next(&ids, id, n, e) : err_set(e, ERR_NOMEM, "out of memory for an id");
        if (rc == 0 && x.dropped && dedup_pairs_put_line(&line, survivor, (struct span){id, n}, x.similarity) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory for a line of clusters");
        if (rc == 0 && (line.n > SHARDED_READ || i + 1 == s->own.end)) {
            rc = to->put(to->to, buf_span(&line), e);
            buf_clear(&line);
        }
    }
    spill_reader_close(&ids);
    buf_free(&line);
    arena_free(&a);
    return rc;
}

int sharded_write_clusters(struct sharded *s, struct err *e)
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
        return file_group_add(&s->files, out, e);
    file_abort(out);
    return rc;
}

/* ---- the index ---- */

/* Where the notes of an index go. */
struct index_file {
    const struct sharded *s;
    struct note_index *notes; /* exact, rank 0 */
    struct index_out *bands;  /* fuzzy, rank 0, or each rank if the name has a * */
    char own[4096];           /* its name then */
    struct rank_stream stream;
    struct buf frames; /* of another rank: what is yet to be sent */
};

static bool each_writes(const struct sharded *s)
{
    return s->fuzzy && strchr(s->index, '*');
}

static int create_index(struct index_file *x, struct err *e)
{
    const struct sharded *s = x->s;
    const char *path = s->index;

    if (each_writes(s)) {
        TRY(ranks_own_name(x->own, s->index, s->c->rank, e));
        path = x->own;
    } else if (s->c->rank) {
        return 0;
    }
    if (s->fuzzy)
        return dedup_fuzzy_index_create(s->inner.state, &x->bands, path, s->memory / 4, e);
    return note_index_create(&x->notes, path, dedup_exact_kind(s->inner.state), e);
}

static int put_note(struct index_file *x, struct span note, struct err *e)
{
    return x->bands ? dedup_fuzzy_index_put(x->s->inner.state, x->bands, note, e) : note_index_put(x->notes, note, e);
}

/* Notes of another rank. */
static int put_frames(void *to, struct span s, struct err *e)
{
    struct index_file *x = to;
    struct span note;
    size_t at = 0;
    int rc;

    while ((rc = frame_next_note(s, &at, &note, e)) > 0)
        TRY(put_note(x, note, e));
    return rc;
}

static int put_in_index(struct index_file *x, struct span note, struct err *e)
{
    if (!x->s->fuzzy)
        TRY(dedup_exact_to_index(note, e));
    if (x->notes || x->bands)
        return put_note(x, note, e);
    if (frame_put_note(&x->frames, note) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    if (x->frames.n < SHARDED_READ)
        return 0;
    TRY(ranks_put(&x->stream, buf_span(&x->frames), e));
    buf_clear(&x->frames);
    return 0;
}

/* Of this rank's documents those that stay. */
static int index_notes(struct sharded *s, struct index_file *x, struct err *e)
{
    struct parcels p = {0};
    struct arena a = {0};
    int rc = spill_reader_open(&p.in, &s->notes, 0, s->notes.size, SHARDED_READ, e);

    for (uint64_t i = 0; i < s->own.end && rc == 0; i++) {
        struct span survivor;
        struct answer answer = {0};
        struct parcel h;

        arena_reset(&a);
        rc = parcel_next(&p, &h, e);
        if (rc == 0 && i >= s->own.first)
            rc = sharded_next_answer(s, &answer, &survivor, &a, e);
        if (rc == 0 && i >= s->own.first && !answer.dropped)
            rc = put_in_index(x, buf_span(&p.note), e);
    }
    parcels_close(&p);
    arena_free(&a);
    return rc;
}

static int end_index(struct index_file *x, int rc, struct file_group *files, struct err *e)
{
    if (x->bands)
        return index_out_end(x->bands, rc, files, e);
    return x->notes ? note_index_end(x->notes, rc, files, e) : rc;
}

int sharded_write_index(struct sharded *s, struct err *e)
{
    struct index_file x = {.s = s, .stream = {s->c, 0}};
    struct sink to = {put_frames, &x};
    int rc = spill_flush(&s->notes, e);

    if (rc == 0)
        rc = create_index(&x, e);
    if (rc == 0)
        rc = index_notes(s, &x, e);
    if (rc == 0 && x.frames.n)
        rc = ranks_put(&x.stream, buf_span(&x.frames), e);
    buf_free(&x.frames);
    if (rc == 0 && !each_writes(s))
        rc = s->c->rank == 0 ? ranks_collect(s->c, &to, 1, e) : ranks_end(s->c, e);
    return end_index(&x, rc, &s->files, e);
}

/* ---- counts ---- */

/* The largest cluster that this rank has the survivor of, a document over all ranks, and its id. */
static int own_largest(struct sharded *s, const struct dedup_fuzzy_counts *own, const struct rank_group_counts *group,
                       uint64_t mine[2], struct arena *a, struct span *id, struct err *e)
{
    if (own->clusters) {
        mine[0] = own->largest;
        TRY(spill_read(&s->numbers, own->largest_of * sizeof *mine, &mine[1], sizeof *mine, e));
        *id = span_of(own->largest_id);
    }
    if (!group->clusters || group->largest < mine[0] || (group->largest == mine[0] && group->largest_number > mine[1]))
        return 0;
    mine[0] = group->largest;
    mine[1] = group->largest_number;
    TRY(rank_group_id(s->group, group->largest_of, a, id, e));
    *id = doc_name_id(*id);
    return 0;
}

/* The largest cluster of all ranks; of equal ones that of the first survivor. */
static int find_largest(struct sharded *s, const uint64_t mine[2], struct span id, struct err *e)
{
    uint64_t *all = calloc(2 * (size_t)s->c->size, sizeof *all), n = id.n;
    int best = 0, rc = all ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d ranks", s->c->size);

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
    if (best == s->c->rank && id.n)
        memcpy(s->largest_id, id.p, id.n);
    s->counts.largest_id = s->largest_id;
    return comm_broadcast(s->c, s->largest_id, n, COMM_U8, best, e);
}

int sharded_count(struct sharded *s, struct err *e)
{
    struct dedup_fuzzy_counts own = {0};
    struct rank_group_counts group = {0};
    struct arena a = {0};
    struct span id = {0};
    uint64_t largest[2] = {0};
    int rc;
    uint64_t all = s->docs.first[s->c->size];
    uint64_t sum[] = {s->stay, s->sent, s->shingle_bytes, 0, 0, 0, s->n - (s->own.end - s->own.first), 0, 0};

    for (int r = 0; r < s->c->size; r++)
        sum[7] += s->came[r];

    if (s->fuzzy) {
        dedup_fuzzy_counts(s->inner.state, &own);
        if (s->group)
            rank_group_counts(s->group, &group);
        sum[3] = own.candidates + group.candidates;
        sum[4] = own.compared + group.compared;
        sum[5] = own.clusters + group.clusters;
        sum[8] = group.documents;
    }
    TRY(comm_all_reduce(s->c, sum, sizeof sum / sizeof *sum, COMM_I64, COMM_SUM, e));
    s->stay = sum[0];
    if (s->c->rank == 0)
        log_msg(LOG_INFO, "%d ranks, %" PRIu64 " documents, %" PRIu64 " compared with others, %" PRIu64
                " in groups that all ranks decide; %.1f bytes a document went to other ranks", s->c->size, all, sum[7], sum[8],
                (double)sum[1] / (double)(all ? all : 1));
    s->counts = (struct dedup_fuzzy_counts){.shingle_bytes = sum[2], .candidates = sum[3], .compared = sum[4],
                                            .clusters = sum[5], .against = sum[6]};
    if (!s->fuzzy)
        return 0;
    rc = own_largest(s, &own, &group, largest, &a, &id, e);
    if (rc == 0)
        rc = find_largest(s, largest, id, e);
    arena_free(&a);
    return rc;
}
