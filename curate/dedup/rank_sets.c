#include "curate/dedup/rank_sets.h"

#include <stdlib.h>
#include <string.h>

/* Pairs looked at together; buffers. */
enum { PAIRS = 1 << 12, READ = 1 << 16 };

int rank_sets_open(struct rank_sets *s, struct err *e)
{
    s->least = dedup_bands_least(&s->shape, s->threshold);
    TRY(spill_open(&s->notes, s->dir, READ, e));
    s->note_file = &s->notes;
    s->files = (struct set_files){.file = &s->note_file, .n = 1, .bytes = s->shape.hash_bytes};
    return dedup_compare_new(&s->compare, &s->files, e);
}

void rank_sets_close(struct rank_sets *s)
{
    spill_close(&s->notes);
    free(s->set);
    dedup_compare_free(s->compare);
    dedup_bands_free(&s->shape);
    *s = (struct rank_sets){.notes = {.fd = -1}};
}

int rank_sets_add(struct rank_sets *s, struct span note, uint64_t *rank, struct err *e)
{
    static const char zero[8];
    struct fuzzy_parts p;
    struct fuzzy_note *h;

    TRY(fuzzy_note_parse(&s->shape, note, &h, &p, e));
    if (!h->count || !p.has_record || h->text_n)
        return err_set(e, ERR_IO, "a note of %zu bytes is none that ranks share", note.n);
    *rank = h->rank;
    if (mem_grow(&s->set, &s->cap, s->n + 1, sizeof *s->set) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for %zu documents", s->n);
    s->set[s->n++] = (struct set_ref){(s->notes.size + sizeof *h) / s->shape.hash_bytes, h->count};
    TRY(spill_put(&s->notes, note.p, note.n, e));
    return spill_put(&s->notes, zero, -note.n % sizeof zero, e);
}

int rank_sets_flush(struct rank_sets *s, struct err *e)
{
    return spill_flush(&s->notes, e);
}

/* Reads from offset `from`, n bytes. */
static int read_into(const struct rank_sets *s, struct buf *b, uint64_t from, size_t n, struct err *e)
{
    buf_clear(b);
    if (buf_reserve(b, n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a note of %zu bytes", n);
    b->n = n;
    return spill_read(&s->notes, from, b->p, n, e);
}

static size_t record_bytes(const struct rank_sets *s)
{
    return (size_t)s->shape.bands * sizeof(uint64_t) + s->shape.sketch_bytes;
}

/* Where the hashes of document n are, of this rank. */
static uint64_t hashes_at(const struct rank_sets *s, uint64_t n)
{
    return s->set[n].at * s->shape.hash_bytes;
}

int rank_sets_note(const struct rank_sets *s, uint64_t n, struct buf *b, struct err *e)
{
    uint64_t from = hashes_at(s, n) - sizeof(struct fuzzy_note);
    uint64_t end = n + 1 < s->n ? hashes_at(s, n + 1) - sizeof(struct fuzzy_note) : s->notes.size;
    struct fuzzy_note h;

    TRY(read_into(s, b, from, (size_t)(end - from), e));
    memcpy(&h, b->p, sizeof h);
    b->n = sizeof h + fuzzy_note_hashes(&s->shape, h.count) + record_bytes(s) + h.id_n;
    return 0;
}

static uint64_t record_at(const struct rank_sets *s, uint64_t n)
{
    return hashes_at(s, n) + fuzzy_note_hashes(&s->shape, s->set[n].size);
}

/* ---- what a rank asks of another ---- */

struct question {
    uint64_t doc, whole; /* the note, or its keys and sketch alone */
};

struct answering {
    const struct rank_sets *s;
    struct rank_files out;
    struct buf b;
};

static int answer(void *arg, int from, struct span bytes, struct err *e)
{
    struct answering *a = arg;
    struct question q;

    for (size_t at = 0; at < bytes.n; at += sizeof q) {
        memcpy(&q, bytes.p + at, sizeof q);
        if (q.doc >= a->s->n)
            return err_set(e, ERR_IO, "rank %d asks for a document that is not here", from);
        TRY(q.whole ? rank_sets_note(a->s, q.doc, &a->b, e)
                    : read_into(a->s, &a->b, record_at(a->s, q.doc), record_bytes(a->s), e));
        TRY(parcel_put(&a->out.file[from], q.doc, buf_span(&a->b), e));
    }
    return 0;
}

/* Asks for the others of the pairs that are not here, which are sorted by them: each once, in this order. */
static int ask(struct rank_sets *s, const struct rank_pair *pair, size_t n, bool whole, struct rank_files *in, struct err *e)
{
    struct answering a = {.s = s};
    struct rank_files out = {0};
    int rc = rank_files_open(&out, s->c, s->dir, s->memory, e);

    for (size_t i = 0; i < n && rc == 0; i++) {
        struct question q = {(uint32_t)pair[i].ref, whole};
        if (rank_ref_home(pair[i].ref) != s->c->rank && (i == 0 || pair[i].ref != pair[i - 1].ref))
            rc = spill_put(&out.file[rank_ref_home(pair[i].ref)], &q, sizeof q, e);
    }
    if (rc == 0)
        rc = rank_files_flush(&out, e);
    if (rc == 0)
        rc = rank_files_open(&a.out, s->c, s->dir, s->memory, e);
    if (rc == 0)
        rc = rank_exchange(s->c, &out, s->memory, answer, &a, &s->sent, e);
    if (rc == 0)
        rc = rank_files_flush(&a.out, e);
    if (rc == 0)
        rc = rank_files_open(in, s->c, s->dir, s->memory, e);
    if (rc == 0)
        rc = rank_exchange_files(s->c, &a.out, in, s->memory, &s->sent, e);
    rank_files_close(&out);
    rank_files_close(&a.out);
    buf_free(&a.b);
    return rc;
}

/* Reads the answers in the order of the questions, and what is here. */
struct answers {
    const struct rank_sets *s;
    bool whole;
    const struct rank_files *in;
    struct parcels p;
    int home;
};

static int next_answer(struct answers *a, uint64_t ref, struct err *e)
{
    struct parcel h;
    uint32_t doc = (uint32_t)ref;

    if (rank_ref_home(ref) == a->s->c->rank)
        return a->whole ? rank_sets_note(a->s, doc, &a->p.note, e)
                        : read_into(a->s, &a->p.note, record_at(a->s, doc), record_bytes(a->s), e);
    if (a->home != rank_ref_home(ref)) {
        const struct spill *in = &a->in->file[rank_ref_home(ref)];

        spill_reader_close(&a->p.in);
        a->home = rank_ref_home(ref);
        TRY(spill_reader_open(&a->p.in, in, 0, in->size, READ, e));
    }
    return parcel_next(&a->p, &h, e);
}

/* ---- pairs ---- */

struct verifying {
    struct rank_sets *s;
    const uint32_t *doc;
    size_t docs;
    struct dedup_bands records; /* of doc, then of the others that were asked for */
    struct rank_pair *pair;
    size_t n;
    struct set_pair *similar;
    struct set_ref *set;
    struct buf ids;
    struct { size_t at, n; } *id; /* of the other, in ids */
};

static int by_ref(const void *x, const void *y)
{
    const struct rank_pair *a = x, *b = y;

    if (a->ref != b->ref)
        return a->ref < b->ref ? -1 : 1;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static void sort_pairs(struct verifying *v)
{
    size_t n = 0;

    qsort(v->pair, v->n, sizeof *v->pair, by_ref);
    for (size_t i = 0; i < v->n; i++)
        if (n == 0 || by_ref(&v->pair[n - 1], &v->pair[i]) != 0)
            v->pair[n++] = v->pair[i];
    v->n = n;
}

static int set_record(struct verifying *v, size_t at, const char *bytes, struct err *e)
{
    struct band_record r;

    TRY(dedup_bands_room(&v->records, at + 1, e));
    r = dedup_bands_at(&v->records, at);
    memcpy(r.key, bytes, (size_t)v->s->shape.bands * sizeof *r.key);
    memcpy(r.sketch, bytes + (size_t)v->s->shape.bands * sizeof *r.key, v->s->shape.sketch_bytes);
    return 0;
}

/* Of this rank's documents. */
static int own_records(struct verifying *v, struct err *e)
{
    struct buf b = {0};
    int rc = 0;

    for (size_t i = 0; i < v->docs && rc == 0; i++) {
        rc = read_into(v->s, &b, record_at(v->s, v->doc[i]), record_bytes(v->s), e);
        if (rc == 0)
            rc = set_record(v, i, b.p, e);
    }
    buf_free(&b);
    return rc;
}

/* Leaves the pairs that share a band, and whose sketches let them have the similarity. */
static int sieve(struct verifying *v, struct answers *a, struct err *e)
{
    uint32_t other = (uint32_t)v->docs;
    uint64_t last = UINT64_MAX;
    size_t n = 0;

    v->s->candidates += v->n;
    for (size_t i = 0; i < v->n; i++) {
        const struct rank_pair *p = &v->pair[i];

        if (p->ref != last) {
            last = p->ref;
            TRY(next_answer(a, p->ref, e));
            if (a->p.note.n != record_bytes(v->s))
                return err_set(e, ERR_IO, "a rank answers with %zu bytes", a->p.note.n);
            TRY(set_record(v, other, a->p.note.p, e));
        }
        if (dedup_bands_meet(&v->records, p->slot, other) >= 0 && dedup_bands_agree(&v->records, p->slot, other) >= v->s->least)
            v->pair[n++] = *p;
    }
    v->n = n;
    v->s->compared += n;
    return 0;
}

/* Puts the shingles of the others behind the notes of this rank, for as long as they are compared. */
static int load_sets(struct verifying *v, struct answers *a, struct err *e)
{
    size_t bytes = v->s->shape.hash_bytes;
    uint64_t at = v->s->notes.size / bytes;

    buf_clear(&v->ids);
    for (size_t i = 0; i < v->n; i++) {
        const struct rank_pair *p = &v->pair[i];
        struct fuzzy_parts parts;
        struct fuzzy_note *h;

        v->set[2 * i + 1] = v->s->set[v->doc[p->slot]];
        v->similar[i] = (struct set_pair){.a = (uint32_t)(2 * i), .b = (uint32_t)(2 * i + 1)};
        if (i && p->ref == v->pair[i - 1].ref) {
            v->set[2 * i] = v->set[2 * i - 2];
            v->id[i] = v->id[i - 1];
            continue;
        }
        TRY(next_answer(a, p->ref, e));
        TRY(fuzzy_note_parse(&v->s->shape, buf_span(&a->p.note), &h, &parts, e));
        if (rank_ref_home(p->ref) == v->s->c->rank) {
            v->set[2 * i] = v->s->set[(uint32_t)p->ref];
        } else {
            TRY(spill_write(&v->s->notes, at * bytes, parts.hash, h->count * bytes, e));
            v->set[2 * i] = (struct set_ref){at, h->count};
            at += h->count;
        }
        v->id[i].at = v->ids.n;
        v->id[i].n = h->id_n;
        if (buf_put(&v->ids, parts.id, h->id_n) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for ids");
    }
    return 0;
}

static int compare(struct verifying *v, rank_similar *take, void *arg, struct err *e)
{
    TRY(dedup_compare_run(v->s->compare, v->set, v->s->threshold, v->similar, v->n, e));
    for (size_t i = 0; i < v->n; i++)
        if (v->similar[i].similarity >= v->s->threshold)
            TRY(take(arg, &v->pair[i], (float)v->similar[i].similarity, (struct span){v->ids.p + v->id[i].at, v->id[i].n}, e));
    return 0;
}

/* What the pairs need of other ranks, by `use`. */
static int with_answers(struct verifying *v, bool whole, int (*use)(struct verifying *v, struct answers *a, struct err *e),
                        struct err *e)
{
    struct rank_files in = {0};
    struct answers a = {.s = v->s, .whole = whole, .in = &in, .home = -1};
    int rc = ask(v->s, v->pair, v->n, whole, &in, e);

    if (rc == 0)
        rc = use(v, &a, e);
    parcels_close(&a.p);
    rank_files_close(&in);
    return rc;
}

/* The pairs that have been read; for some rank there are any. */
static int verify(struct verifying *v, rank_similar *take, void *arg, struct err *e)
{
    bool any;

    sort_pairs(v);
    TRY(with_answers(v, false, sieve, e));
    any = v->n > 0;
    TRY(rank_any(v->s->c, &any, e));
    if (!any)
        return 0;
    TRY(with_answers(v, true, load_sets, e));
    return compare(v, take, arg, e);
}

static int open_verifying(struct verifying *v, struct err *e)
{
    v->pair = malloc(PAIRS * sizeof *v->pair);
    v->similar = malloc(PAIRS * sizeof *v->similar);
    v->set = malloc(2 * PAIRS * sizeof *v->set);
    v->id = malloc(PAIRS * sizeof *v->id);
    if (!v->pair || !v->similar || !v->set || !v->id)
        return err_set(e, ERR_NOMEM, "out of memory for pairs");
    TRY(dedup_bands_init(&v->records, v->s->shape.bands, v->s->shape.rows, e));
    return own_records(v, e);
}

static void close_verifying(struct verifying *v)
{
    free(v->pair);
    free(v->similar);
    free(v->set);
    free(v->id);
    buf_free(&v->ids);
    dedup_bands_free(&v->records);
}

int rank_sets_verify(struct rank_sets *s, const uint32_t *doc, size_t docs, struct spill *pairs, rank_similar *take, void *arg,
                     struct err *e)
{
    struct verifying v = {.s = s, .doc = doc, .docs = docs};
    struct spill_reader in = {0};
    uint64_t left = pairs->size / sizeof *v.pair;
    bool more = left > 0;
    int rc = spill_flush(pairs, e);

    if (rc == 0)
        rc = rank_any(s->c, &more, e);
    if (rc == 0 && more)
        rc = open_verifying(&v, e);
    if (rc == 0 && more)
        rc = spill_reader_open(&in, pairs, 0, pairs->size, READ, e);
    while (rc == 0 && more) {
        v.n = left < PAIRS ? (size_t)left : PAIRS;
        left -= v.n;
        rc = spill_next(&in, v.pair, v.n * sizeof *v.pair, e);
        if (rc == 0)
            rc = verify(&v, take, arg, e);
        more = left > 0;
        if (rc == 0)
            rc = rank_any(s->c, &more, e);
    }
    spill_reader_close(&in);
    close_verifying(&v);
    return rc;
}
