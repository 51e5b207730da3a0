/* Short pieces: the lowest rank is looked for again and again, among all places at once.  Symbols stay where their
 * first byte was; the bits of `live` say where there are some. */
#include "tokenize/bpe_pairs.h"

enum { LANES = 16, TOGETHER = 8 };

/* Of ranks[0..n-1], which are padded with no ranks to whole LANES, the lowest, and the first place that has it. */
static inline uint32_t lowest(const uint32_t *rank, size_t n, unsigned *at)
{
#if defined(__AVX512F__)
    __m512i a = _mm512_loadu_si512(rank), b = a, c = a, x = a;
    uint64_t places;
    uint32_t low;

    if (n > LANES) {
        b = _mm512_loadu_si512(rank + LANES);
        c = _mm512_loadu_si512(rank + 2 * LANES);
        x = _mm512_min_epu32(a, _mm512_min_epu32(b, c));
    }
    low = _mm512_reduce_min_epu32(x);
    x = _mm512_set1_epi32((int)low);
    places = _mm512_cmpeq_epi32_mask(a, x);
    if (n > LANES)
        places |= (uint64_t)_mm512_cmpeq_epi32_mask(b, x) << LANES |
                  (uint64_t)_mm512_cmpeq_epi32_mask(c, x) << 2 * LANES;
    *at = (unsigned)__builtin_ctzll(places);
    return low;
#else
    uint64_t low = UINT64_MAX;

    for (size_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)rank[i] << 32 | i;
        low = x < low ? x : low;
    }
    *at = (unsigned)(low & 63);
    return (uint32_t)(low >> 32);
#endif
}

static inline void pad(uint32_t *rank, size_t n)
{
    for (size_t i = n; i < (n > LANES ? BPE_SHORT : LANES); i++)
        rank[i] = BPE_NO_RANK;
}

/* Joins the symbols at `at` and behind it.  The place of the one that is gone. */
static inline unsigned join_at(uint64_t *live, unsigned at)
{
    uint64_t behind = *live & -((uint64_t)2 << at), gone = behind & -behind;

    *live ^= gone;
    return (unsigned)__builtin_ctzll(gone);
}

/* The place of the symbol behind `at`, or before it; NOWHERE. */
enum { NOWHERE = 63 };
static inline unsigned next_of(uint64_t live, unsigned at)
{
    return (unsigned)__builtin_ctzll((live & -((uint64_t)2 << at)) | (uint64_t)1 << NOWHERE);
}
static inline unsigned previous_of(uint64_t live, unsigned at)
{
    uint64_t before = live & (((uint64_t)1 << at) - 1);
    return before ? 63 - (unsigned)__builtin_clzll(before) : NOWHERE;
}

static inline size_t left_over(uint64_t live, const uint32_t *id, uint32_t *out)
{
    size_t n = 0;

    for (; live; live &= live - 1)
        out[n++] = id[__builtin_ctzll(live)];
    return n;
}

size_t ISA_FN(bpe_join)(const struct bpe *b, uint32_t *id, uint32_t *rank, uint32_t *joined, size_t n)
{
    uint64_t live = ((uint64_t)1 << n) - 1;
    unsigned at;

    pad(rank, n);
    while (lowest(rank, n, &at) != BPE_NO_RANK) {
        unsigned gone = join_at(&live, at), next = next_of(live, at), previous = previous_of(live, at);
        id[at] = joined[at];
        rank[gone] = BPE_NO_RANK;
        rank[at] = next == NOWHERE ? BPE_NO_RANK : bpe_pair_rank(b, id[at], id[next], &joined[at]);
        if (previous != NOWHERE)
            rank[previous] = bpe_pair_rank(b, id[previous], id[at], &joined[previous]);
    }
    return left_over(live, id, id);
}

/* ---- many at a time: words of bytes, by the dense pairs; or of symbols that are given, by any pairs ---- */

struct state {
    uint32_t rank[64], id[64], joined[64]; /* NOWHERE: of no symbol; joined: of symbols alone */
    struct bpe_word *word;
    uint64_t live;
    unsigned at, previous, next;
    uint32_t n; /* symbols at first */
};

static inline void begin(const struct bpe *b, struct state *s, struct bpe_word *w, bool bytes)
{
    s->word = w;
    s->n = bytes ? w->n : w->count;
    s->live = ((uint64_t)1 << s->n) - 1;
    for (size_t i = 0; i < s->n; i++)
        s->id[i] = bytes ? b->byte_id[w->p[i]] : w->ids[i];
    for (size_t i = 0; i + 1 < s->n; i++)
        s->rank[i] = bytes ? b->byte_pairs[w->p[i] << 8 | w->p[i + 1]].rank
                           : bpe_pair_rank(b, s->id[i], s->id[i + 1], &s->joined[i]);
    if (s->n)
        s->rank[s->n - 1] = BPE_NO_RANK;
    pad(s->rank, s->n);
}

/* Asks early for the line where a pair is looked for. */
static inline void ask(const struct bpe *b, uint32_t left, uint32_t right, bool dense)
{
    if (dense)
        __builtin_prefetch(bpe_dense_line(b, bpe_dense_key(left, right)));
    else
        __builtin_prefetch(b->pairs + bpe_line(b, left, right));
}

/* Joins once and asks for what it leads to; false: nothing is left to join. */
static inline bool decide(const struct bpe *b, struct state *s, bool bytes)
{
    uint32_t rank = lowest(s->rank, s->n, &s->at);

    if (rank == BPE_NO_RANK)
        return false;
    s->rank[join_at(&s->live, s->at)] = BPE_NO_RANK;
    s->id[s->at] = bytes ? rank + b->dense_id : s->joined[s->at];
    s->previous = previous_of(s->live, s->at);
    s->next = next_of(s->live, s->at);
    ask(b, s->id[s->at], s->id[s->next], bytes || b->dense);
    ask(b, s->id[s->previous], s->id[s->at], bytes || b->dense);
    return true;
}

/* The rank of joining the symbol at `left` and the one at `right`. */
static inline uint32_t rank_of(const struct bpe *b, struct state *s, unsigned left, unsigned right, bool bytes)
{
    if (bytes) /* without a branch */
        return bpe_dense_rank(b, left == NOWHERE || right == NOWHERE ? BPE_DENSE_NONE : bpe_dense_key(s->id[left], s->id[right]));
    return left == NOWHERE || right == NOWHERE ? BPE_NO_RANK : bpe_pair_rank(b, s->id[left], s->id[right], &s->joined[left]);
}

static inline void together(const struct bpe *b, struct bpe_word *words, size_t n, bool bytes)
{
    struct state s[TOGETHER];
    size_t begun = 0, active = 0;

    for (size_t i = 0; i < TOGETHER; i++)
        s[i].id[NOWHERE] = 0;
    for (; active < TOGETHER && begun < n; begun++)
        begin(b, &s[active++], &words[begun], bytes);
    while (active) {
        for (size_t i = 0; i < active;) {
            if (decide(b, &s[i], bytes)) {
                i++;
                continue;
            }
            s[i].word->count = (uint32_t)left_over(s[i].live, s[i].id, s[i].word->ids);
            if (begun < n)
                begin(b, &s[i], &words[begun++], bytes);
            else if (i != --active)
                s[i] = s[active];
        }
        for (size_t i = 0; i < active; i++) {
            s[i].rank[s[i].at] = rank_of(b, &s[i], s[i].at, s[i].next, bytes);
            s[i].rank[s[i].previous] = rank_of(b, &s[i], s[i].previous, s[i].at, bytes);
        }
    }
}

void ISA_FN(bpe_words)(const struct bpe *b, struct bpe_word *words, size_t n)
{
    together(b, words, n, true);
}

void ISA_FN(bpe_symbols)(const struct bpe *b, struct bpe_word *words, size_t n)
{
    together(b, words, n, false);
}
