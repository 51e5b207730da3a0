#include "curate/dedup/dedup_store.h"

static struct spill *file_of(struct dedup_store *s, int i)
{
    struct spill *const own[] = {&s->docs, &s->sigs, &s->sets, &s->ids, &s->texts};

    return i < 5 ? own[i] : i < 5 + STORE_PARTS ? &s->keys[i - 5] : NULL;
}

int dedup_store_open(struct dedup_store *s, const struct dedup_bands *b, const char *dir, int64_t buffers,
                     struct err *e)
{
    int64_t cap = buffers / (5 + STORE_PARTS);
    struct spill *f;

    *s = (struct dedup_store){.bands = (size_t)b->bands, .sketch_bytes = b->sketch_bytes};
    for (int i = 0; (f = file_of(s, i)); i++)
        f->fd = -1;
    cap = cap < 4096 ? 4096 : cap > 1 << 18 ? 1 << 18 : cap;
    for (int i = 0; (f = file_of(s, i)); i++)
        TRY(spill_open(f, dir, (size_t)cap, e));
    return 0;
}

int dedup_store_add(struct dedup_store *s, const uint64_t *hash, size_t n_hashes, uint64_t rank, struct span id,
                    struct span text, struct err *e)
{
    struct store_doc d = {.set = {s->sets.size / sizeof *hash, n_hashes}, .rank = rank};

    if (s->n >= UINT32_MAX - 1)
        return err_set(e, ERR_UNSUPPORTED, "more than %u documents", UINT32_MAX - 1);
    TRY(spill_put(&s->sets, hash, n_hashes * sizeof *hash, e));
    TRY(spill_put(&s->ids, id.p, id.n, e));
    TRY(spill_put(&s->texts, text.p, text.n, e));
    d.id_end = s->ids.size;
    d.text_end = s->texts.size;
    TRY(spill_put(&s->docs, &d, sizeof d, e));
    s->n++;
    return 0;
}

static int put_keys(struct dedup_store *s, const uint64_t *key, struct err *e)
{
    for (size_t k = 0; k < s->bands; k++) {
        struct store_key r = {dedup_band_mix(key[k], (int)k), s->records};
        if (key[k] == BUCKET_NONE)
            continue;
        TRY(spill_put(&s->keys[r.key >> (64 - STORE_PART_BITS)], &r, sizeof r, e));
    }
    return 0;
}

int dedup_store_put_record(struct dedup_store *s, const struct band_record *r, struct err *e)
{
    if (r) {
        TRY(spill_put(&s->sigs, r->key, s->bands * sizeof *r->key, e));
        TRY(spill_put(&s->sigs, r->sketch, s->sketch_bytes, e));
        TRY(put_keys(s, r->key, e));
    } else { /* a hole: it is never read */
        static const char none[4096];
        for (size_t left = s->bands * sizeof *r->key + s->sketch_bytes, n; left; left -= n) {
            n = left < sizeof none ? left : sizeof none;
            TRY(spill_put(&s->sigs, none, n, e));
        }
    }
    s->records++;
    return 0;
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

    for (int i = 0; (f = file_of(s, i)); i++)
        TRY(spill_flush(f, e));
    return 0;
}

void dedup_store_close(struct dedup_store *s)
{
    struct spill *f;

    for (int i = 0; s->bands && (f = file_of(s, i)); i++)
        spill_close(f);
}

int dedup_store_doc(const struct dedup_store *s, uint64_t n, struct store_doc *d, struct err *e)
{
    return spill_read(&s->docs, n * sizeof *d, d, sizeof *d, e);
}

int dedup_store_record(const struct dedup_store *s, uint64_t n, const struct band_record *r, struct err *e)
{
    size_t keys = s->bands * sizeof *r->key;
    uint64_t at = n * (keys + s->sketch_bytes);

    TRY(spill_read(&s->sigs, at, r->key, keys, e));
    return spill_read(&s->sigs, at + keys, r->sketch, s->sketch_bytes, e);
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
