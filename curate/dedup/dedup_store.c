#include "curate/dedup/dedup_store.h"

#include <stdlib.h>

#include "curate/dedup/minhash_preset.h"

enum { OWN = 4, RUN = 1 << 18 }; /* files beside the keys; bytes of records that are written at once */

static struct spill *file_of(struct dedup_store *s, int i)
{
    struct spill *const own[OWN] = {&s->docs, &s->sigs, &s->ids, &s->texts};

    return i < OWN ? own[i] : i < OWN + STORE_PARTS ? &s->keys[i - OWN] : NULL;
}

static size_t record_bytes(const struct dedup_store *s)
{
    return s->bands * sizeof(uint64_t) + s->sketch_bytes;
}

int dedup_store_open(struct dedup_store *s, const struct dedup_bands *b, const char *dir, int64_t buffers,
                     struct err *e)
{
    int64_t cap = buffers / (OWN + 1 + STORE_PARTS);
    struct spill *f;

    *s = (struct dedup_store){.bands = (size_t)b->bands, .sketch_bytes = b->sketch_bytes, .dir = dir,
                              .sets.bytes = b->hash_bytes};
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; (f = file_of(s, i)); i++)
        f->fd = -1;
    s->cap = cap < 4096 ? 4096 : cap > 1 << 18 ? 1 << 18 : (size_t)cap;
    for (int i = 0; (f = file_of(s, i)); i++)
        TRY(spill_open(f, dir, s->cap, e));
    s->run = malloc(s->cap < RUN ? s->cap + record_bytes(s) : RUN);
    if (!s->run)
        return err_set(e, ERR_NOMEM, "out of memory for the signatures of documents");
    return dedup_store_sets(s, &f, &(uint64_t){0}, e);
}

/* ---- shingles ---- */

int dedup_store_sets(struct dedup_store *s, struct spill **file, uint64_t *first, struct err *e)
{
    struct spill *f = malloc(sizeof *f);
    int rc;

    if (!f)
        return err_set(e, ERR_NOMEM, "out of memory for a temporary file");
    rc = spill_open(f, s->dir, s->cap, e);
    pthread_mutex_lock(&s->lock);
    if (rc == 0 && mem_grow(&s->sets.file, &s->sets.cap, s->sets.n + 1, sizeof *s->sets.file) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for a temporary file");
    if (rc == 0) {
        *first = (uint64_t)s->sets.n << SET_FILE_SHIFT;
        s->sets.file[s->sets.n++] = *file = f;
    }
    pthread_mutex_unlock(&s->lock);
    if (rc < 0) {
        spill_close(f);
        free(f);
    }
    return rc;
}

int dedup_store_put_set(struct dedup_store *s, const void *hash, size_t n, struct set_ref *set, struct err *e)
{
    *set = (struct set_ref){s->sets.file[0]->size / s->sets.bytes, n};
    return spill_put(s->sets.file[0], hash, n * s->sets.bytes, e);
}

int dedup_store_put_part(struct dedup_store *s, const struct spill_part *hashes, struct set_ref *set, struct err *e)
{
    *set = (struct set_ref){s->sets.file[0]->size / s->sets.bytes, hashes->n / s->sets.bytes};
    return spill_put_part(s->sets.file[0], hashes, e);
}

uint64_t dedup_store_set_bytes(const struct dedup_store *s)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->sets.n; i++)
        bytes += s->sets.file[i]->size;
    return bytes;
}

/* ---- documents ---- */

int dedup_store_add(struct dedup_store *s, struct set_ref set, uint64_t rank, struct span id, struct span text, struct err *e)
{
    struct store_doc d = {.set = set, .rank = rank};

    if (s->n >= UINT32_MAX - 1)
        return err_set(e, ERR_UNSUPPORTED, "more than %u documents", UINT32_MAX - 1);
    TRY(spill_put(&s->ids, id.p, id.n, e));
    TRY(spill_put(&s->texts, text.p, text.n, e));
    d.id_end = s->ids.size;
    d.text_end = s->texts.size;
    TRY(spill_put(&s->docs, &d, sizeof d, e));
    s->n++;
    return 0;
}

/* The records that follow one another. */
static int write_run(struct dedup_store *s, struct err *e)
{
    size_t n = s->run_n, each = record_bytes(s);

    s->run_n = 0;
    return n ? spill_write(&s->sigs, s->run_first * each, s->run, n * each, e) : 0;
}

static int put_one(struct dedup_store *s, uint64_t doc, const struct band_record *r, struct err *e)
{
    size_t each = record_bytes(s), most = s->cap < RUN ? s->cap + each : RUN;
    char *to;

    if (s->run_n && (doc != s->run_first + s->run_n || (s->run_n + 1) * each > most))
        TRY(write_run(s, e));
    if (!s->run_n)
        s->run_first = doc;
    to = s->run + s->run_n++ * each;
    memcpy(to, r->key, s->bands * sizeof *r->key);
    memcpy(to + s->bands * sizeof *r->key, r->sketch, s->sketch_bytes);
    for (size_t k = 0; k < s->bands; k++) {
        struct store_key key = {dedup_band_mix(r->key[k], (int)k), doc};
        if (r->key[k] != BUCKET_NONE)
            TRY(spill_put(&s->keys[key.key >> (64 - STORE_PART_BITS)], &key, sizeof key, e));
    }
    return 0;
}

int dedup_store_put_records(struct dedup_store *s, const uint64_t *doc, size_t n, const struct band_record *first, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct band_record r = {first->key + i * s->bands, first->sketch + i * s->sketch_bytes};
        if (doc[i] != UINT64_MAX)
            rc = put_one(s, doc[i], &r, e);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int dedup_store_write_keys(struct dedup_store *s, struct err *e)
{
    for (int i = 0; i < STORE_PARTS; i++)
        TRY(spill_write_out(&s->keys[i], e));
    return 0;
}

int dedup_store_flush(struct dedup_store *s, struct err *e)
{
    struct spill *f;

    TRY(write_run(s, e));
    for (int i = 0; (f = file_of(s, i)); i++)
        TRY(spill_flush(f, e));
    for (size_t i = 0; i < s->sets.n; i++)
        TRY(spill_flush(s->sets.file[i], e));
    return 0;
}

void dedup_store_close(struct dedup_store *s)
{
    struct spill *f;

    if (!s->bands)
        return;
    for (int i = 0; (f = file_of(s, i)); i++)
        spill_close(f);
    for (size_t i = 0; i < s->sets.n; i++) {
        spill_close(s->sets.file[i]);
        free(s->sets.file[i]);
    }
    free(s->sets.file);
    free(s->run);
    pthread_mutex_destroy(&s->lock);
    *s = (struct dedup_store){0};
}

int dedup_store_doc(const struct dedup_store *s, uint64_t n, struct store_doc *d, struct err *e)
{
    return spill_read(&s->docs, n * sizeof *d, d, sizeof *d, e);
}

int dedup_store_record(const struct dedup_store *s, uint64_t n, const struct band_record *r, struct err *e)
{
    size_t keys = s->bands * sizeof *r->key;
    char record[MINHASH_MAX_BANDS * sizeof *r->key + MINHASH_MAX];

    TRY(spill_read(&s->sigs, n * record_bytes(s), record, record_bytes(s), e));
    memcpy(r->key, record, keys);
    memcpy(r->sketch, record + keys, s->sketch_bytes);
    return 0;
}

/* Bytes [begin, end) of f. */
static int read_span(const struct spill *f, uint64_t begin, uint64_t end, struct arena *a, struct span *out,
                     struct err *e)
{
    char *p = arena_alloc(a, end - begin + 1);

    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for a document of the collection");
    *out = (struct span){p, end - begin};
    return out->n ? spill_read(f, begin, p, out->n, e) : 0;
}

static int read_two(const struct dedup_store *s, uint64_t n, struct store_doc *before, struct store_doc *d, struct err *e)
{
    *before = (struct store_doc){0};
    if (n)
        TRY(dedup_store_doc(s, n - 1, before, e));
    return dedup_store_doc(s, n, d, e);
}

int dedup_store_id(const struct dedup_store *s, uint64_t n, struct arena *a, struct span *id, struct err *e)
{
    struct store_doc before, d;

    TRY(read_two(s, n, &before, &d, e));
    return read_span(&s->ids, before.id_end, d.id_end, a, id, e);
}

int dedup_store_text(const struct dedup_store *s, uint64_t n, struct arena *a, struct span *text, struct err *e)
{
    struct store_doc before, d;

    TRY(read_two(s, n, &before, &d, e));
    return read_span(&s->texts, before.text_end, d.text_end, a, text, e);
}
