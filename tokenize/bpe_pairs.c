/* The tables of pairs. */
#include <stdlib.h>

#include "base/hash.h"
#include "tokenize/bpe_pairs.h"

/* Where the pair is, or would go. */
static struct bpe_pair *place_of(const struct bpe *b, uint32_t left, uint32_t right)
{
    uint64_t key = bpe_key(left, right);
    uint32_t i = bpe_line(b, left, right);

    while (b->pairs[i].key && b->pairs[i].key != key)
        i = (i + 1) & b->mask;
    return &b->pairs[i];
}

static int resize(struct bpe *b, uint32_t size, struct err *e)
{
    struct pages pages, old_pages = b->pages;
    struct bpe_pair *old = b->pairs, *pairs = pages_new(&pages, (size_t)size * sizeof *pairs);
    uint32_t old_size = old ? b->mask + 1 : 0;

    if (!pairs)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    b->pairs = pairs;
    b->pages = pages;
    b->mask = size - 1;
    b->shift = 64 - (unsigned)__builtin_ctz(size / BPE_LINE);
    b->join = ISA_PICK(bpe_join);
    b->symbols = ISA_PICK(bpe_symbols);
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].key)
            *place_of(b, bpe_left(old[i].key), bpe_right(old[i].key)) = old[i];
    pages_free(&old_pages);
    return 0;
}

int bpe_begin(struct bpe *b, uint32_t n, struct err *e)
{
    uint32_t size = 1024;

    while (size < UINT32_MAX / 2 && size / 2 < n)
        size *= 2;
    return resize(b, size, e);
}

int bpe_set_bytes(struct bpe *b, const struct vocab *v, struct err *e)
{
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        struct span s = {&c, 1};
        int64_t id = vocab_find(v, s);
        bool in_utf8 = i != 0xC0 && i != 0xC1 && i < 0xF5;
        if (id < 0 && in_utf8)
            return err_set(e, ERR_FORMAT, "the vocabulary has no token for byte 0x%02X", (unsigned)i);
        b->lacks_bytes |= id < 0;
        b->byte_id[i] = id < 0 ? BPE_NO_BYTE : (uint32_t)id;
    }
    return bpe_begin(b, v->used, e); /* a merge for each token */
}

void bpe_ask(const struct bpe *b, uint32_t left, uint32_t right)
{
    __builtin_prefetch(b->pairs + bpe_line(b, left, right), 1);
}

int bpe_add_merge(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t id, struct err *e)
{
    struct bpe_pair *p;

    if ((b->n + 1) * 2 > b->mask + 1)
        TRY(resize(b, (b->mask + 1) * 2, e));
    p = place_of(b, left, right);
    if (p->key)
        return 0;
    *p = (struct bpe_pair){bpe_key(left, right), rank + 1, id};
    if (b->n++ == 0)
        b->dense_id = id - rank;
    b->sparse |= left >= BPE_DENSE_IDS || right >= BPE_DENSE_IDS || id >= BPE_DENSE_IDS || rank >= BPE_DENSE_RANKS ||
                 id - rank != b->dense_id;
    return 0;
}

/* Pairs that overflow their line go into the next one; behind the last are as many more as that can take. */
int bpe_dense_begin(struct bpe *b, uint32_t n, struct err *e)
{
    size_t lines = n / 5 + 1, all = lines + lines / 8 + 64;

    b->dense = pages_new(&b->dense_pages, all * BPE_DENSE_LINE * sizeof *b->dense);
    if (!b->dense)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    b->dense_lines = (uint32_t)lines;
    b->dense_end = b->dense + (all - 1) * BPE_DENSE_LINE; /* the last line stays free */
    b->words = ISA_PICK(bpe_words);
    return 0;
}

bool bpe_dense_put(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank)
{
    uint64_t key = bpe_dense_key(left, right), *x = b->dense + (bpe_dense_line(b, key) - b->dense);

    while (*x)
        x++;
    if (x >= b->dense_end)
        return false;
    *x = key << BPE_DENSE_RANK | (rank + 1);
    return true;
}

int bpe_dense_undo(struct bpe *b, struct err *e)
{
    const uint64_t *dense = b->dense;

    b->dense = NULL;
    b->n = 0;
    b->sparse = true;
    for (const uint64_t *x = dense; x < b->dense_end; x++) {
        uint64_t key = *x >> BPE_DENSE_RANK;
        uint32_t rank = (uint32_t)(*x & BPE_DENSE_RANKS) - 1;
        if (*x)
            TRY(bpe_add_merge(b, (uint32_t)(key >> BPE_DENSE_ID), (uint32_t)(key & BPE_DENSE_IDS), rank,
                              rank + b->dense_id, e));
    }
    pages_free(&b->dense_pages);
    return 0;
}

void bpe_dense_only(struct bpe *b)
{
    pages_free(&b->pages);
    b->pairs = NULL;
}

static int make_dense(struct bpe *b, struct err *e)
{
    TRY(bpe_dense_begin(b, b->n, e));
    for (uint32_t i = 0; i <= b->mask; i++) {
        const struct bpe_pair *p = &b->pairs[i];
        if (p->key && !bpe_dense_put(b, bpe_left(p->key), bpe_right(p->key), p->next - 1)) {
            pages_free(&b->dense_pages);
            b->dense = NULL;
            return 0;
        }
    }
    bpe_dense_only(b);
    return 0;
}

int bpe_byte_pairs_begin(struct bpe *b, struct err *e)
{
    size_t size = 65536 * sizeof *b->byte_pairs;

    b->byte_pairs = malloc(size);
    if (!b->byte_pairs)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    memset(b->byte_pairs, 0xFF, size); /* BPE_NO_RANK */
    return 0;
}

/* What two bytes become. */
static int find_byte_pairs(struct bpe *b, struct err *e)
{
    uint32_t most = 0;
    int16_t *byte;

    TRY(bpe_byte_pairs_begin(b, e));
    for (int i = 0; i < 256; i++)
        if (b->byte_id[i] != BPE_NO_BYTE && b->byte_id[i] > most)
            most = b->byte_id[i];
    byte = malloc(((size_t)most + 1) * sizeof *byte);
    if (!byte)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    memset(byte, 0xFF, ((size_t)most + 1) * sizeof *byte);
    for (int i = 0; i < 256; i++)
        if (b->byte_id[i] != BPE_NO_BYTE)
            byte[b->byte_id[i]] = (int16_t)i;
    for (uint32_t i = 0; i <= b->mask; i++) {
        const struct bpe_pair *p = &b->pairs[i];
        uint32_t left = bpe_left(p->key), right = bpe_right(p->key);
        if (p->key && left <= most && right <= most && (byte[left] | byte[right]) >= 0)
            b->byte_pairs[byte[left] << 8 | byte[right]] = (struct bpe_byte_pair){p->next - 1, p->id};
    }
    free(byte);
    return 0;
}

int bpe_finish(struct bpe *b, const struct vocab *v, struct err *e)
{
    if (!b->byte_pairs)
        TRY(find_byte_pairs(b, e));
    for (int i = 0; i < 256; i++)
        b->sparse |= b->byte_id[i] != BPE_NO_BYTE && b->byte_id[i] >= BPE_DENSE_IDS;
    if (!b->dense && !b->sparse)
        TRY(make_dense(b, e));
    return bpe_crossings_note(&b->crossings, v, e);
}

bool bpe_uses(const struct bpe *b, const int64_t *ids, size_t n)
{
    int64_t low = INT64_MAX, high = -1;

    for (size_t k = 0; k < n; k++) {
        low = ids[k] >= 0 && ids[k] < low ? ids[k] : low;
        high = ids[k] > high ? ids[k] : high;
    }
    for (uint32_t i = 0; i <= b->mask; i++) {
        int64_t left = bpe_left(b->pairs[i].key), right = bpe_right(b->pairs[i].key);
        if (!b->pairs[i].key || ((left < low || left > high) && (right < low || right > high)))
            continue;
        for (size_t k = 0; k < n; k++)
            if (left == ids[k] || right == ids[k])
                return true;
    }
    return false;
}

static uint64_t hash_pair(uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    return hash_mix64(hash_mix64((uint64_t)left << 32 | right) ^ ((uint64_t)rank << 32 | id));
}

uint64_t bpe_hash(const struct bpe *b)
{
    uint64_t h = 0;

    for (uint32_t i = 0; b->pairs && i <= b->mask; i++) {
        const struct bpe_pair *p = &b->pairs[i];
        if (p->key)
            h += hash_pair(bpe_left(p->key), bpe_right(p->key), p->next - 1, p->id);
    }
    for (const uint64_t *x = b->dense; x && x < b->dense_end; x++)
        if (*x) {
            uint64_t key = *x >> BPE_DENSE_RANK;
            uint32_t rank = (uint32_t)(*x & BPE_DENSE_RANKS) - 1;
            h += hash_pair((uint32_t)(key >> BPE_DENSE_ID), (uint32_t)(key & BPE_DENSE_IDS), rank, rank + b->dense_id);
        }
    return h;
}

void bpe_free(struct bpe *b)
{
    pages_free(&b->pages);
    pages_free(&b->dense_pages);
    free(b->byte_pairs);
    bpe_crossings_free(&b->crossings);
    memset(b, 0, sizeof *b);
}
