#include "curate/dedup/minhash_long.h"

#include <stdlib.h>
#include <string.h>

#include "curate/dedup/dedup_sets.h"
#include "curate/dedup/minhash_repeats.h"

enum {
    PIECE = 1 << 20,
    PARTS_MOST = 256, PART_HASHES = 350000, /* a table of 8 MiB */
    BUFFER = 1 << 14,
    CHUNK = 1 << 15 /* hashes that are read at a time */
};

/* The hashes of a long text, as they come, and once more in parts. */
struct hashes {
    struct spill all, part[PARTS_MOST];
    size_t parts;
    uint64_t n;
};
struct numbered {
    uint64_t hash, number;
};

static void close_hashes(struct hashes *h)
{
    spill_close(&h->all);
    for (size_t p = 0; p < h->parts; p++)
        spill_close(&h->part[p]);
    free(h);
}

/* For at most so many.  NULL: *e says why. */
static struct hashes *open_hashes(size_t most, const char *dir, struct err *e)
{
    struct hashes *h = calloc(1, sizeof *h);
    int rc = h ? 0 : err_set(e, ERR_NOMEM, "out of memory for the shingles of a long text");

    if (!h)
        return NULL;
    for (h->parts = 1; h->parts < PARTS_MOST && most / h->parts > PART_HASHES; h->parts *= 2)
        ;
    h->all.fd = -1;
    for (size_t p = 0; p < h->parts; p++)
        h->part[p].fd = -1;
    rc = spill_open(&h->all, dir, BUFFER, e);
    for (size_t p = 0; p < h->parts && rc == 0; p++)
        rc = spill_open(&h->part[p], dir, BUFFER, e);
    if (rc == 0)
        return h;
    close_hashes(h);
    return NULL;
}

static int put_hashes(struct hashes *h, const uint64_t *hash, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        struct numbered x = {hash[i], h->n++};
        TRY(spill_put(&h->part[repeats_part(x.hash, h->parts)], &x, sizeof x, e));
    }
    return spill_put(&h->all, hash, count * sizeof *hash, e);
}

/* All hashes of the text. */
static int put_text(struct hashes *h, struct shingler *s, struct span text, struct err *e)
{
    bool first = true;

    for (size_t at = 0; first || at < text.n; first = false) {
        struct span left = {text.p + at, text.n - at};
        size_t next, n = shingler_cut(s, left, PIECE, &next), count;
        const uint64_t *hash;
        TRY(shingler_piece(s, (struct span){left.p, n}, first, next == left.n, &hash, &count, e));
        TRY(put_hashes(h, hash, count, e));
        at += next;
    }
    return spill_flush(&h->all, e);
}

/* Sets the bits of the numbers of a part's hashes that came before. */
static int mark_repeats(struct spill *part, struct repeats *r, uint64_t *repeat, struct err *e)
{
    struct spill_reader in;
    size_t n = (size_t)(part->size / sizeof(struct numbered));
    struct numbered x;
    int rc = repeats_begin(r, n);

    if (rc < 0)
        return err_set(e, rc, "out of memory for the shingles of a long text");
    TRY(spill_flush(part, e));
    TRY(spill_reader_open(&in, part, 0, part->size, CHUNK * sizeof x, e));
    for (size_t i = 0; i < n && (rc = spill_next(&in, &x, sizeof x, e)) == 0; i++)
        if (repeats_next(r, x.hash))
            repeat[x.number / 64] |= UINT64_C(1) << x.number % 64;
    spill_reader_close(&in);
    return rc;
}

/* Puts those whose bits are not set to the set, packed. */
static int put_others(const struct hashes *h, const uint64_t *repeat, struct spill *set, size_t bytes, struct err *e)
{
    struct spill_reader in;
    uint64_t hash;
    int rc = 0;

    TRY(spill_reader_open(&in, &h->all, 0, h->all.size, CHUNK * sizeof hash, e));
    for (uint64_t i = 0; i < h->n && rc == 0 && (rc = spill_next(&in, &hash, sizeof hash, e)) == 0; i++)
        if (!(repeat[i / 64] >> i % 64 & 1))
            rc = set_put(set, bytes, &hash, 1, e);
    spill_reader_close(&in);
    return rc < 0 ? rc : spill_write_out(set, e);
}

/* The set of a long text goes to set->file. */
static int run_long(struct shingle_set *set, struct hashes *h, struct shingler *s, struct span text, struct err *e)
{
    struct repeats r = {0};
    uint64_t *repeat = NULL;
    int rc = put_text(h, s, text, e);

    shingler_give_back(s);
    if (rc == 0 && !(repeat = calloc((size_t)h->n / 64 + 1, sizeof *repeat)))
        rc = err_set(e, ERR_NOMEM, "out of memory for the shingles of a long text");
    for (size_t p = 0; p < h->parts && rc == 0; p++) {
        rc = mark_repeats(&h->part[p], &r, repeat, e);
        spill_close(&h->part[p]);
    }
    if (rc == 0)
        rc = put_others(h, repeat, set->file.s, set->bytes, e);
    set->file.n = set->file.s->size - set->file.at;
    set->count = (size_t)(set->file.n / set->bytes);
    free(repeat);
    repeats_free(&r);
    mem_trim();
    return rc;
}

int shingle_set_of(struct shingle_set *set, struct shingler *s, struct span text, struct spill *file, const char *dir,
                   struct err *e)
{
    struct hashes *h;
    int rc;

    *set = (struct shingle_set){.bytes = shingler_hash_bytes(s)};
    if (text.n < SHINGLER_LONG)
        return shingler_run(s, text, &set->hash, &set->count, e);
    if (file->fd < 0)
        TRY(spill_open(file, dir, BUFFER, e));
    set->file = (struct spill_part){file, file->size, 0};
    h = open_hashes(text.n, dir, e);
    if (!h)
        return e->code;
    rc = run_long(set, h, s, text, e);
    close_hashes(h);
    return rc;
}

int shingle_set_copy(const struct shingle_set *set, size_t at, uint64_t *to, size_t n, struct err *e)
{
    if (set->hash) {
        memcpy(to, set->hash + at, n * sizeof *to);
        return 0;
    }
    if (set->file.s)
        return set_read(set->file.s, set->file.at + at * set->bytes, set->bytes, to, n, e);
    set_unpack(to, set->bytes, (const char *)set->packed + at * set->bytes, n);
    return 0;
}

int shingle_set_pack(const struct shingle_set *set, void *to, struct err *e)
{
    if (set->hash)
        set_pack(to, set->bytes, set->hash, set->count);
    return set->hash || !set->count ? 0 : spill_read(set->file.s, set->file.at, to, set->count * set->bytes, e);
}
