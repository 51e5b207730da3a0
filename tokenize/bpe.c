#include "tokenize/bpe.h"

#include <stdlib.h>

#include "base/hash.h"
#include "tokenize/bpe_pairs.h"

enum { NO_RANK = BPE_NO_RANK, GONE = UINT32_MAX };

/* Where the pair is, or would go. */
static struct bpe_pair *place_of(const struct bpe *b, uint64_t key)
{
    uint32_t i = bpe_line(b, key);

    while (b->pairs[i].key != BPE_FREE && b->pairs[i].key != key)
        i = (i + 1) & b->mask;
    return &b->pairs[i];
}

static int resize(struct bpe *b, uint32_t size, struct err *e)
{
    struct bpe_pair *old = b->pairs, *pairs = mem_aligned((size_t)size * sizeof *pairs);
    uint32_t old_size = old ? b->mask + 1 : 0;

    if (!pairs)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    b->pairs = pairs;
    b->mask = size - 1;
    b->shift = 64 - (unsigned)__builtin_ctz(size / BPE_LINE);
    b->join = ISA_PICK(bpe_join);
    for (uint32_t i = 0; i < size; i++)
        pairs[i] = (struct bpe_pair){BPE_FREE, 0, 0};
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].key != BPE_FREE)
            *place_of(b, old[i].key) = old[i];
    free(old);
    return 0;
}

int bpe_begin(struct bpe *b, struct err *e)
{
    return resize(b, 1024, e);
}

int bpe_set_bytes(struct bpe *b, const struct vocab *v, struct err *e)
{
    uint32_t size = 1024;

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
    while (size < v->used * 2) /* a merge for each token */
        size *= 2;
    return resize(b, size, e);
}

int bpe_add_merge(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t id, struct err *e)
{
    struct bpe_pair *p;

    if ((b->n + 1) * 2 > b->mask + 1)
        TRY(resize(b, (b->mask + 1) * 2, e));
    p = place_of(b, bpe_key(left, right));
    if (p->key == BPE_FREE) {
        *p = (struct bpe_pair){bpe_key(left, right), rank + 1, id};
        b->n++;
    }
    return 0;
}

/* True if the dense table can hold all pairs; sets dense_id. */
static bool can_be_dense(struct bpe *b)
{
    bool first = true;

    for (uint32_t i = 0; i <= b->mask; i++) {
        const struct bpe_pair *p = &b->pairs[i];
        uint32_t left = (uint32_t)(p->key >> 32), right = (uint32_t)p->key;
        if (p->key == BPE_FREE)
            continue;
        if (first)
            b->dense_id = p->id - (p->next - 1);
        first = false;
        if (left >= BPE_DENSE_IDS || right >= BPE_DENSE_IDS || p->id >= BPE_DENSE_IDS || p->next > BPE_DENSE_RANKS ||
            p->id - (p->next - 1) != b->dense_id)
            return false;
    }
    for (int i = 0; i < 256; i++)
        if (b->byte_id[i] != BPE_NO_BYTE && b->byte_id[i] >= BPE_DENSE_IDS)
            return false;
    return true;
}

/* Pairs that overflow their line go into the next one; behind the last are as many more as that can take. */
static int make_dense(struct bpe *b, struct err *e)
{
    size_t lines = b->n / 5 + 1, spare = lines / 8 + 64, size = (lines + spare) * BPE_DENSE_LINE;

    if (!can_be_dense(b))
        return 0;
    b->dense = mem_aligned(size * sizeof *b->dense);
    if (!b->dense)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    memset(b->dense, 0, size * sizeof *b->dense);
    b->dense_lines = (uint32_t)lines;
    for (uint32_t i = 0; i <= b->mask; i++) {
        const struct bpe_pair *p = &b->pairs[i];
        uint64_t key = bpe_dense_key((uint32_t)(p->key >> 32), (uint32_t)p->key);
        const uint64_t *x;
        if (p->key == BPE_FREE)
            continue;
        for (x = bpe_dense_line(b, key); *x; x++)
            ;
        if (x >= b->dense + size - BPE_DENSE_LINE) { /* the last line stays free */
            free(b->dense);
            b->dense = NULL;
            return 0;
        }
        b->dense[x - b->dense] = key << BPE_DENSE_RANK | p->next;
    }
    b->words = ISA_PICK(bpe_words);
    return 0;
}

int bpe_finish(struct bpe *b, const struct vocab *v, struct err *e)
{
    b->byte_pairs = calloc(65536, sizeof *b->byte_pairs);
    if (!b->byte_pairs)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    for (unsigned i = 0; i < 65536; i++) {
        struct bpe_byte_pair *p = &b->byte_pairs[i];
        p->rank = bpe_pair_rank(b, b->byte_id[i >> 8], b->byte_id[i & 255], &p->id);
    }
    TRY(make_dense(b, e));
    return bpe_crossings_note(&b->crossings, v, e);
}

/* Without the dense pairs. */
static void encode_short(const struct bpe *b, struct bpe_word *w)
{
    uint32_t rank[BPE_SHORT], joined[BPE_SHORT];

    for (size_t i = 0; i + 1 < w->n; i++) {
        const struct bpe_byte_pair *p = &b->byte_pairs[w->p[i] << 8 | w->p[i + 1]];
        w->ids[i] = b->byte_id[w->p[i]];
        rank[i] = p->rank;
        joined[i] = p->id;
    }
    w->ids[w->n - 1] = b->byte_id[w->p[w->n - 1]];
    rank[w->n - 1] = NO_RANK;
    w->count = (uint32_t)b->join(b, w->ids, rank, joined, w->n);
}

void bpe_encode_words(const struct bpe *b, struct bpe_word *words, size_t n)
{
    if (b->dense) {
        b->words(b, words, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        encode_short(b, &words[i]);
}

/* ---- long pieces: a heap of candidate pairs over a linked list of symbols ---- */

struct symbol {
    uint32_t id;
    int32_t prev, next;
};

/* A pair at symbol `at`, by rank and then by place.  It is stale when the symbols there
 * no longer are what they were. */
struct candidate {
    uint32_t rank, at, left, right;
};

static bool before(const struct candidate *x, const struct candidate *y)
{
    return x->rank < y->rank || (x->rank == y->rank && x->at < y->at);
}

static void sift_down(struct candidate *h, size_t n, size_t i)
{
    struct candidate x = h[i];

    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(&h[c + 1], &h[c]))
            c++;
        if (!before(&h[c], &x))
            break;
        h[i] = h[c];
    }
    h[i] = x;
}

static void push(struct candidate *h, size_t n, struct candidate x)
{
    size_t i = n;

    for (; i && before(&x, &h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = x;
}

/* Puts the pair that starts at symbol i on the heap, if it can be joined. */
static size_t offer(const struct bpe *b, const struct symbol *s, int32_t i, struct candidate *h, size_t n)
{
    uint32_t id, rank;

    if (i < 0 || s[i].next < 0)
        return n;
    rank = bpe_pair_rank(b, s[i].id, s[s[i].next].id, &id);
    if (rank == NO_RANK)
        return n;
    push(h, n, (struct candidate){rank, (uint32_t)i, s[i].id, s[s[i].next].id});
    return n + 1;
}

/* The symbols sym[0..n-1] joined as far as they can be, to ids; their number. */
static size_t merge_long(const struct bpe *b, struct symbol *s, struct candidate *h, const uint32_t *sym, size_t n,
                         uint32_t *ids)
{
    size_t heap = 0, count = 0;

    for (size_t i = 0; i < n; i++)
        s[i] = (struct symbol){sym[i], (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1};
    for (size_t i = 0; i + 1 < n; i++) {
        uint32_t id, rank = bpe_pair_rank(b, s[i].id, s[i + 1].id, &id);
        if (rank != NO_RANK)
            h[heap++] = (struct candidate){rank, (uint32_t)i, s[i].id, s[i + 1].id};
    }
    for (size_t i = heap / 2; i-- > 0;)
        sift_down(h, heap, i);
    while (heap) {
        struct candidate top = h[0];
        int32_t i = (int32_t)top.at, r = s[i].next;
        uint32_t id = 0;

        h[0] = h[--heap];
        if (heap)
            sift_down(h, heap, 0);
        if (r < 0 || s[i].id != top.left || s[r].id != top.right)
            continue;
        bpe_pair_rank(b, top.left, top.right, &id);
        s[i].id = id;
        s[i].next = s[r].next;
        if (s[r].next >= 0)
            s[s[r].next].prev = i;
        s[r].id = GONE;
        s[r].next = -1;
        heap = offer(b, s, s[i].prev, h, heap);
        heap = offer(b, s, i, h, heap);
    }
    for (int32_t i = 0; i >= 0; i = s[i].next)
        ids[count++] = s[i].id;
    return count;
}

bool bpe_has_bytes(const struct bpe *b, const uint8_t *piece, size_t n)
{
    for (size_t i = 0; b->lacks_bytes && i < n; i++)
        if (b->byte_id[piece[i]] == BPE_NO_BYTE)
            return false;
    return true;
}

int64_t bpe_merge(const struct bpe *b, struct bpe_scratch *s, uint32_t *ids, size_t n)
{
    /* Each join takes one candidate off the heap and puts back at most two. */
    size_t symbols = n * sizeof(struct symbol), heap = 2 * n * sizeof(struct candidate);
    uint32_t rank[BPE_SHORT], joined[BPE_SHORT];

    if (n <= BPE_SHORT) {
        for (size_t i = 0; i + 1 < n; i++)
            rank[i] = bpe_pair_rank(b, ids[i], ids[i + 1], &joined[i]);
        if (n)
            rank[n - 1] = NO_RANK;
        return (int64_t)b->join(b, ids, rank, joined, n);
    }
    s->symbols.n = s->heap.n = 0;
    if (buf_reserve(&s->symbols, symbols) < 0 || buf_reserve(&s->heap, heap) < 0)
        return ERR_NOMEM;
    return (int64_t)merge_long(b, (struct symbol *)(void *)s->symbols.p, (struct candidate *)(void *)s->heap.p, ids, n,
                               ids);
}

int64_t bpe_encode(const struct bpe *b, struct bpe_scratch *s, const uint8_t *piece, size_t n, uint32_t *ids)
{
    if (n == 0)
        return 0;
    if (n <= BPE_SHORT) {
        struct bpe_word w = {.p = piece, .ids = ids, .n = (uint32_t)n};
        bpe_encode_words(b, &w, 1);
        return w.count;
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = b->byte_id[piece[i]];
    return bpe_merge(b, s, ids, n);
}

int bpe_add_ranks(struct bpe *b, const struct vocab *v, struct err *e)
{
    struct bpe_scratch scratch = {0};
    struct buf ids = {0};
    int64_t n = 0;

    for (uint32_t id = 0; id < v->n && n >= 0; id++) {
        struct span s = vocab_get(v, id);
        uint32_t *sym;

        if (s.n < 2)
            continue;
        buf_clear(&ids);
        n = buf_reserve(&ids, s.n * sizeof *sym);
        sym = (uint32_t *)(void *)ids.p;
        for (size_t i = 0; i < s.n && n == 0; i++)
            sym[i] = b->byte_id[(uint8_t)s.p[i]];
        if (n == 0)
            n = bpe_merge(b, &scratch, sym, s.n);
        if (n == 2)
            n = bpe_add_merge(b, sym[0], sym[1], id, id, e);
    }
    bpe_scratch_free(&scratch);
    buf_free(&ids);
    return n < 0 ? err_set(e, ERR_NOMEM, "out of memory for merges") : 0;
}

bool bpe_uses(const struct bpe *b, const int64_t *ids, size_t n)
{
    for (uint32_t i = 0; i <= b->mask; i++)
        for (size_t k = 0; k < n && b->pairs[i].key != BPE_FREE; k++)
            if ((int64_t)(b->pairs[i].key >> 32) == ids[k] || (int64_t)(uint32_t)b->pairs[i].key == ids[k])
                return true;
    return false;
}

uint64_t bpe_hash(const struct bpe *b)
{
    uint64_t h = 0;

    for (uint32_t i = 0; b->pairs && i <= b->mask; i++) {
        const struct bpe_pair *p = &b->pairs[i];
        if (p->key != BPE_FREE)
            h += hash_mix64(hash_mix64(p->key) ^ ((uint64_t)(p->next - 1) << 32 | p->id));
    }
    return h;
}

void bpe_free(struct bpe *b)
{
    free(b->pairs);
    free(b->dense);
    free(b->byte_pairs);
    bpe_crossings_free(&b->crossings);
    memset(b, 0, sizeof *b);
}

int bpe_check_cuts(struct bpe *b, const struct vocab *v, struct err *e)
{
    struct bpe_scratch scratch = {0};
    struct buf ids = {0};
    int rc = 0;

    for (uint32_t id = 0; id < v->n && rc == 0; id++) {
        struct span s = vocab_get(v, id);
        const uint8_t *p = (const uint8_t *)s.p;
        bool ascii = true;
        for (size_t i = 0; i < s.n; i++)
            ascii &= p[i] < 0x80;
        if (ascii || s.n < 2 || vocab_is_added(v, id) || !bpe_has_bytes(b, p, s.n))
            continue;
        buf_clear(&ids);
        if (buf_reserve(&ids, s.n * sizeof(uint32_t)) < 0)
            rc = ERR_NOMEM;
        else if (bpe_encode(b, &scratch, p, s.n, (uint32_t *)(void *)ids.p) != 1)
            rc = 1;
    }
    if (rc == 1)
        bpe_crossings_free(&b->crossings);
    bpe_scratch_free(&scratch);
    buf_free(&ids);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for merges") : 0;
}

void bpe_scratch_free(struct bpe_scratch *s)
{
    buf_free(&s->symbols);
    buf_free(&s->heap);
}
