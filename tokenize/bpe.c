#include "tokenize/bpe_pairs.h"

enum { NO_RANK = BPE_NO_RANK, GONE = UINT32_MAX };

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

void bpe_merge_words(const struct bpe *b, struct bpe_word *words, size_t n)
{
    b->symbols(b, words, n);
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

void bpe_scratch_free(struct bpe_scratch *s)
{
    buf_free(&s->symbols);
    buf_free(&s->heap);
}
