/* N-grams in a trie of packed bits, as KenLM's binary files have it. */
#include <math.h>

#include "curate/language/ngram_model.h"

enum {
    PROB_BITS = 31, BACKOFF_BITS = 32, /* of what is not quantised: a float, of a probability without its sign */
    BINS_BITS_MAX = 25,
    QUANT_VERSION = 2,
    INTERPOLATE = 24 /* steps of a search before it halves */
};

/* ---- the layout ---- */

static unsigned bits_for(uint64_t most) { return most ? 64 - (unsigned)__builtin_clzll(most) : 0; }

/* How many high bits of pointers up to `most`, of n records, the builder moved into an array: as many as save most, at most
 * so many as its setting allows. */
static unsigned high_bits(uint64_t n, uint64_t most, unsigned allowed)
{
    unsigned all = bits_for(most), best = 0;
    int64_t least = INT64_MAX;

    for (unsigned high = 0; high <= (all < allowed ? all : allowed); high++) {
        int64_t cost = (int64_t)((high ? most >> (all - high) : all < 64 ? most >> all : 0) * 64) - (int64_t)n * (int64_t)high;
        if (cost < least) {
            least = cost;
            best = high;
        }
    }
    return best;
}

struct layout {
    struct ngram_model *m;
    const uint8_t *p, *end;
    bool compressed;
    unsigned allowed;
    struct err *e;
};

/* n bytes at p; more than there are: ERR_FORMAT. */
static int take(struct layout *l, uint64_t n, const uint8_t **at)
{
    if (n > (uint64_t)(l->end - l->p))
        return ngram_bad(l->m, (uint64_t)(l->p - l->m->start), "the file ends within a trie that its counts ask for", l->e);
    *at = l->p;
    l->p += n;
    return 0;
}

/* The bins of quantised values: of each middle order probabilities and backoffs, of the longest probabilities. */
static int place_bins(struct layout *l)
{
    struct ngram_model *m = l->m;
    const uint8_t *head = NULL;

    TRY(take(l, 8, &head));
    m->prob_bits = head[1];
    m->backoff_bits = head[2];
    if (head[0] != QUANT_VERSION)
        return ngram_bad(m, (uint64_t)(head - m->start), "a version of quantisation that is not known", l->e);
    if (m->prob_bits < 1 || m->prob_bits > BINS_BITS_MAX || m->backoff_bits < 1 || m->backoff_bits > BINS_BITS_MAX)
        return ngram_bad(m, (uint64_t)(head + 1 - m->start), "a number of bits that no quantised value has", l->e);
    for (int i = 0; i < m->order - 1; i++) {
        TRY(take(l, (uint64_t)4 << m->prob_bits, &m->level[i].probs));
        if (i < m->order - 2)
            TRY(take(l, (uint64_t)4 << m->backoff_bits, &m->level[i].backoffs));
    }
    return 0;
}

/* The array of a level's high parts of pointers, which is aligned, behind a head of 8 bytes that is not. */
static int place_array(struct layout *l, struct ngram_level *v, uint64_t most, unsigned high)
{
    const uint8_t *p = NULL;
    uint64_t at = (uint64_t)(l->p - l->m->start);

    v->n_high = (most >> (bits_for(most) - high)) + 1;
    if (high == 0)
        v->n_high = 1;
    if (v->n_high > (uint64_t)(l->end - l->p) / 8)
        return ngram_bad(l->m, at, "the file ends within an array of pointers", l->e);
    TRY(take(l, 8 * (1 + v->n_high) + 7, &p));
    v->high = p + (8 - at % 8) % 8 + 8;
    if (ngram_u64(v->high) != 0)
        return ngram_bad(l->m, (uint64_t)(v->high - l->m->start), "an array of pointers that does not begin with 0", l->e);
    return 0;
}

/* Level i, of n-grams of i + 2 words. */
static int place_level(struct layout *l, int i)
{
    struct ngram_model *m = l->m;
    struct ngram_level *v = &m->level[i];
    bool longest = i == m->order - 2;
    uint64_t most = longest ? 0 : m->count[i + 2];
    unsigned high = 0;

    v->n = m->count[i + 1];
    v->value_bits = m->quantised ? m->prob_bits : PROB_BITS;
    if (!longest)
        v->value_bits += m->quantised ? m->backoff_bits : BACKOFF_BITS;
    if (!longest && l->compressed) {
        high = high_bits(v->n + 1, most, l->allowed);
        TRY(place_array(l, v, most, high));
    }
    v->next_bits = longest ? 0 : bits_for(most) - high;
    v->total_bits = m->word_bits + v->value_bits + v->next_bits;
    return take(l, ((1 + v->n) * v->total_bits + 7) / 8 + 8, &v->base);
}

int ngram_trie_layout(struct ngram_model *m, const uint8_t *p, const uint8_t *end, bool compressed, uint64_t *size,
                      struct err *e)
{
    struct layout l = {m, p, end, compressed, 0, e};

    m->word_bits = bits_for(m->count[0]);
    if (m->quantised)
        TRY(place_bins(&l));
    TRY(take(&l, (m->count[0] + 2) * NGRAM_TRIE_UNIGRAM, &m->unigrams));
    if (compressed && m->order > 2) {
        if (end - l.p < 8)
            return ngram_bad(m, (uint64_t)(l.p - m->start), "the file ends within an array of pointers", e);
        if (l.p[0] != 0)
            return ngram_bad(m, (uint64_t)(l.p - m->start), "a version of arrays of pointers that is not known", e);
        l.allowed = l.p[1];
    }
    for (int i = 0; i < m->order - 1; i++)
        TRY(place_level(&l, i));
    *size = (uint64_t)(l.p - p);
    return 0;
}

/* ---- reading ---- */

/* n bits at a bit's place, n at most 57. */
static inline uint64_t bits_at(const uint8_t *base, uint64_t at, unsigned n)
{
    return ngram_u64(base + at / 8) >> at % 8 & ((1ull << n) - 1);
}

static inline float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

struct range {
    uint64_t begin, end;
};

/* The record of a word in a range, whose words rise; false: it is not there.  By interpolation first, as words are even. */
static inline bool find_word(const struct ngram_model *m, const struct ngram_level *v, struct range r, uint32_t word,
                             uint64_t *at)
{
    uint64_t least = 0, most = m->count[0];

    for (int i = 0; r.begin < r.end; i++) {
        uint64_t n = r.end - r.begin, have;
        *at = r.begin + (i < INTERPOLATE && n <= UINT32_MAX ? (word - least) * n / (most - least + 1) : n / 2);
        have = bits_at(v->base, *at * v->total_bits, m->word_bits);
        if (have == word)
            return true;
        if (have < word) {
            r.begin = *at + 1;
            least = have + 1;
        } else {
            r.end = *at;
            most = have - 1;
        }
    }
    return false;
}

/* The last of the high parts that begin at a record or before; by interpolation first, as pointers rise evenly. */
static uint64_t high_part(const struct ngram_level *v, uint64_t record)
{
    uint64_t lo = 0, hi = v->n_high, least = 0, most = v->n + 1;

    for (int i = 0; hi - lo > 1; i++) {
        uint64_t at = lo + (hi - lo) / 2, have;
        if (i < 4 && record < most && hi - lo <= UINT32_MAX && most - least <= UINT32_MAX)
            at = lo + (record - least) * (hi - lo) / (most - least);
        at = at > lo ? at : lo + 1;
        have = ngram_u64(v->high + 8 * at);
        if (have <= record) {
            lo = at;
            least = have;
        } else {
            hi = at;
            most = have;
        }
    }
    return lo;
}

/* Which records of the next level are longer than record `at` of this one. */
static inline struct range next_range(const struct ngram_model *m, const struct ngram_level *v, uint64_t at)
{
    uint64_t bit = at * v->total_bits + m->word_bits + v->value_bits, first, last;
    struct range r = {bits_at(v->base, bit, v->next_bits), bits_at(v->base, bit + v->total_bits, v->next_bits)};

    if (v->high) {
        first = last = high_part(v, at);
        while (last + 1 < v->n_high && ngram_u64(v->high + 8 * (last + 1)) <= at + 1)
            last++;
        r.begin |= first << v->next_bits;
        r.end |= last << v->next_bits;
    }
    return r;
}

static inline float prob_at(const struct ngram_model *m, const struct ngram_level *v, uint64_t at, bool longest)
{
    uint64_t bit = at * v->total_bits + m->word_bits;

    if (!m->quantised)
        return float_of((uint32_t)bits_at(v->base, bit, PROB_BITS) | 0x80000000u);
    return ngram_float(v->probs + 4 * bits_at(v->base, bit + (longest ? 0 : m->backoff_bits), m->prob_bits));
}

static inline float backoff_at(const struct ngram_model *m, const struct ngram_level *v, uint64_t at)
{
    uint64_t bit = at * v->total_bits + m->word_bits;

    if (!m->quantised)
        return float_of((uint32_t)bits_at(v->base, bit + PROB_BITS, BACKOFF_BITS));
    return ngram_float(v->backoffs + 4 * bits_at(v->base, bit, m->backoff_bits));
}

void ngram_trie_fetch(const struct ngram_model *m, uint32_t before, uint32_t word)
{
    const uint8_t *p = m->unigrams + (uint64_t)NGRAM_TRIE_UNIGRAM * word;
    const struct ngram_level *v = &m->level[0];
    uint64_t begin = ngram_u64(p + 8), n = ngram_u64(p + 8 + NGRAM_TRIE_UNIGRAM) - begin;

    if (begin < v->n && n <= v->n - begin && n <= UINT32_MAX)
        __builtin_prefetch(v->base + (begin + before * n / (m->count[0] + 1)) * v->total_bits / 8);
}

float ngram_trie_step(const struct ngram_model *m, const struct ngram_state *in, uint32_t word, struct ngram_state *out,
                      int *found, struct ngram_fault *f)
{
    const uint8_t *p = m->unigrams + (uint64_t)NGRAM_TRIE_UNIGRAM * word;
    struct range r = {ngram_u64(p + 8), ngram_u64(p + 8 + NGRAM_TRIE_UNIGRAM)};
    float prob = ngram_float(p);
    uint64_t at;

    out->backoff[0] = ngram_float(p + 4);
    out->n = ngram_extends(out->backoff[0]);
    *found = 1;
    for (int i = 0; i < in->n && r.begin != r.end; i++) {
        const struct ngram_level *v = &m->level[i];
        if (r.begin > r.end || r.end > v->n) {
            *f = (struct ngram_fault){p, "a pointer out of the trie"};
            return 0;
        }
        if (!find_word(m, v, r, in->word[i], &at))
            break;
        prob = prob_at(m, v, at, i == m->order - 2);
        *found = i + 2;
        if (i == m->order - 2)
            break;
        out->backoff[i + 1] = backoff_at(m, v, at);
        if (ngram_extends(out->backoff[i + 1]))
            out->n = i + 2;
        p = v->base + at * v->total_bits / 8;
        r = next_range(m, v, at);
    }
    return prob;
}
