#include "bench/content/labels.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "curate/text/chars.h"
#include "curate/text/html_entity.h"

/* ---- words ---- */

struct words {
    uint32_t *v, n, cap;
};

static void put_word(struct words *w, uint32_t h)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 1024;
        w->v = realloc(w->v, w->cap * sizeof *w->v);
    }
    w->v[w->n++] = h + !h;
}

/* Words as Python's \w+ finds them, letters of ASCII in lower case. */
static void split_words(struct span s, struct words *w)
{
    uint32_t h = HTML_NAME_HASH_START;
    bool in = false;
    int n;

    for (size_t i = 0; i < s.n; i += (size_t)n) {
        uint32_t c = chars_decode(s.p + i, &n);
        if ((size_t)n > s.n - i)
            break;
        if (c < 128 ? isalnum((int)c) || c == '_' : chars_is_word(c)) {
            for (int k = 0; k < n; k++)
                h = html_name_hash(h, c < 128 ? (char)tolower((int)c) : s.p[i + (size_t)k]);
            in = true;
        } else if (in) {
            put_word(w, h);
            h = HTML_NAME_HASH_START;
            in = false;
        }
    }
    if (in)
        put_word(w, h);
}

static void block_text(const struct html_tree *t, const uint8_t *skip, const struct content_block *b, struct buf *out)
{
    buf_clear(out);
    for (uint32_t i = b->first; i <= b->last; i++) {
        if (skip[i] && t->node[i].end > i + 1)
            i = t->node[i].end - 1;
        else if (t->node[i].tag == HTML_br)
            buf_putc(out, ' ');
        else if (t->node[i].tag == HTML_text && !skip[i]) {
            if (t->node[i].flags & HTML_ESCAPED)
                html_decode(html_text(t, i), false, out);
            else
                buf_put_span(out, html_text(t, i));
        }
    }
    buf_reserve(out, 8);
}

/* ---- aligning ---- */

/* Numbers of three words in a row; open addressing. */
struct grams {
    uint32_t *slot, mask;
};

static uint32_t gram(const uint32_t *v)
{
    uint64_t h = hash_mix64(v[0] + hash_mix64(v[1] + hash_mix64(v[2])));

    return (uint32_t)h + !(uint32_t)h;
}

static void grams_make(struct grams *g, const struct words *w)
{
    uint32_t size = 64;

    while (size < w->n * 2)
        size *= 2;
    g->mask = size - 1;
    g->slot = calloc(size, sizeof *g->slot);
    for (uint32_t i = 0; i + 2 < w->n; i++) {
        uint32_t h = gram(w->v + i), k = h & g->mask;
        while (g->slot[k] && g->slot[k] != h)
            k = (k + 1) & g->mask;
        g->slot[k] = h;
    }
}

static bool grams_has(const struct grams *g, uint32_t h)
{
    for (uint32_t k = h & g->mask; g->slot[k]; k = (k + 1) & g->mask)
        if (g->slot[k] == h)
            return true;
    return false;
}

/* Where a word stands in a table of size slots, or is to stand. */
static uint32_t slot_of(const uint32_t *key, uint32_t size, uint32_t word)
{
    uint32_t k = word & (size - 1);

    while (key[k] && key[k] != word)
        k = (k + 1) & (size - 1);
    return k;
}

/* The longest common subsequence of a (page) and b (gold), bit-parallel (Hyyro), a row of bits kept a word of a:
 * to[i] is 1 + the place in b that a's word i is matched with, else 0. */
static void align(const struct words *a, const struct words *b, uint32_t *to)
{
    uint32_t limbs = (b->n + 63) / 64, size = 64;
    uint64_t *row = malloc(((size_t)a->n + 1) * limbs * 8);

    memset(to, 0, a->n * sizeof *to);
    if (!row || !b->n || (uint64_t)a->n * limbs > 60000000) {
        free(row);
        return;
    }
    /* Chains of the places of each word of b. */
    while (size < b->n * 2)
        size *= 2;
    uint32_t *head = calloc(size, 4), *key = calloc(size, 4), *next = calloc(b->n + 1, 4);
    for (uint32_t j = b->n; j-- > 0;) {
        uint32_t k = slot_of(key, size, b->v[j]);
        key[k] = b->v[j];
        next[j + 1] = head[k];
        head[k] = j + 1;
    }
    uint64_t *match = calloc(limbs, 8);
    memset(row, 0xFF, limbs * 8);
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t *old = row + (size_t)i * limbs, *new = old + limbs, carry = 0;
        uint32_t k = slot_of(key, size, a->v[i]), first = key[k] ? head[k] : 0;
        for (uint32_t j = first; j; j = next[j])
            match[(j - 1) / 64] |= 1ull << (j - 1) % 64;
        for (uint32_t l = 0; l < limbs; l++) {
            uint64_t u = old[l] & match[l];
            unsigned __int128 sum = (unsigned __int128)old[l] + u + carry;
            carry = (uint64_t)(sum >> 64);
            new[l] = (uint64_t)sum | (old[l] & ~match[l]);
        }
        for (uint32_t j = first; j; j = next[j])
            match[(j - 1) / 64] = 0;
    }
    /* A zero bit j in row i: the first i words and the first j + 1 have one more in common than the first j. */
    uint32_t j = b->n;
    for (uint32_t i = a->n; i-- > 0 && j;) {
        const uint64_t *old = row + (size_t)i * limbs, *new = old + limbs;
        while (j && (new[(j - 1) / 64] >> (j - 1) % 64 & 1))
            j--; /* b's word j adds nothing to the first i + 1 */
        if (!j)
            break;
        if (!(old[(j - 1) / 64] >> (j - 1) % 64 & 1))
            continue; /* nor does a's word i */
        to[i] = j;
        j--;
    }
    free(row);
    free(head);
    free(key);
    free(next);
    free(match);
}

/* Blocks of one or two words are content where their neighbours in gold are near on the page too. */
static bool is_anchored(const uint32_t *to, uint32_t n, uint32_t i, uint32_t many)
{
    enum { NEAR = 12 };
    uint32_t from = i > NEAR ? i - NEAR : 0, end = i + many + NEAR < n ? i + many + NEAR : n;

    for (uint32_t k = from; k < end; k++)
        if ((k < i || k >= i + many) && to[k]) {
            int64_t gap = (int64_t)to[k] - to[i];
            if (gap >= -6 && gap <= 6)
                return true;
        }
    return false;
}

/* Gold may stand in another order than the page: long blocks that are not aligned take what words of gold are left. */
static void take_unordered(struct sample *s, const struct words *page, const uint32_t *at, const uint32_t *to,
                           const struct words *gold, const struct grams *grams)
{
    enum { LONG = 8 };
    uint32_t size = 64;
    bool *taken = calloc(page->n + 1, 1);

    while (size < gold->n * 2)
        size *= 2;
    uint32_t *key = calloc(size, 4), *left = calloc(size, 4);
    for (uint32_t j = 0; j < gold->n; j++) {
        uint32_t k = slot_of(key, size, gold->v[j]);
        key[k] = gold->v[j];
        left[k]++;
    }
    for (uint32_t i = 0; i < page->n; i++)
        if (to[i])
            left[slot_of(key, size, page->v[i])]--;
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        uint32_t from = at[b], n = at[b + 1] - from, known = 0, got = 0;
        if (n < LONG || s->hits[b] * 2 >= n)
            continue;
        for (uint32_t i = from; i + 2 < from + n; i++)
            known += grams_has(grams, gram(page->v + i));
        if (known * 10 < (n - 2) * 9)
            continue;
        for (uint32_t i = from; i < from + n; i++) {
            uint32_t k = slot_of(key, size, page->v[i]);
            taken[i] = left[k] > 0;
            left[k] -= taken[i];
            got += taken[i];
        }
        if (got * 10 >= n * 8)
            s->hits[b] = got;
        for (uint32_t i = from; got * 10 < n * 8 && i < from + n; i++)
            left[slot_of(key, size, page->v[i])] += taken[i];
    }
    free(taken);
    free(key);
    free(left);
}

static void label_by_gold(struct sample *s, const struct words *page, const uint32_t *at)
{
    struct words gold = {0};
    struct grams grams;
    uint32_t *to = calloc(page->n + 1, sizeof *to);
    struct words kept = {0};
    uint32_t *place = calloc(page->n + 1, sizeof *place);

    split_words(span_of(s->gold), &gold);
    s->gold_words = gold.n;
    grams_make(&grams, &gold);
    /* Words in no run of three that gold has too stay out, but for those of very short blocks. */
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        uint32_t from = at[b], n = at[b + 1] - from;
        for (uint32_t i = from; i < from + n; i++) {
            bool in = n < 3;
            for (uint32_t k = i >= from + 2 ? i - 2 : from; !in && k <= i && k + 2 < from + n; k++)
                in = grams_has(&grams, gram(page->v + k));
            if (in) {
                place[kept.n] = i;
                put_word(&kept, page->v[i]);
            }
        }
    }
    uint32_t *kept_to = calloc(kept.n + 1, sizeof *kept_to);
    align(&kept, &gold, kept_to);
    for (uint32_t i = 0; i < kept.n; i++)
        to[place[i]] = kept_to[i];
    for (uint32_t b = 0; b < s->n_blocks; b++) {
        uint32_t from = at[b], n = at[b + 1] - from, hits = 0;
        for (uint32_t i = from; i < from + n; i++)
            hits += to[i] > 0;
        if (n < 3 && hits && !is_anchored(to, page->n, from, n)) {
            for (uint32_t i = from; i < from + n; i++)
                to[i] = 0;
            hits = 0;
        }
        s->words[b] = n;
        s->hits[b] = hits;
    }
    take_unordered(s, page, at, to, &gold, &grams);
    for (uint32_t b = 0; b < s->n_blocks; b++)
        s->y[b] = s->words[b] ? (float)s->hits[b] / (float)s->words[b] : 0;
    free(kept_to);
    free(kept.v);
    free(place);
    free(to);
    free(gold.v);
    free(grams.slot);
}

/* Each block weighs by its words, a page about the same as another. */
static void weigh(struct sample *s)
{
    double yes = 0, all = 0;

    for (uint32_t b = 0; b < s->n_blocks; b++) {
        s->w[b] = s->words[b] ? powf((float)s->words[b] + 1, 0.7f) : 0;
        all += s->w[b];
        yes += s->w[b] * s->y[b];
    }
    double unit = yes + 0.3 * all + 3;
    for (uint32_t b = 0; b < s->n_blocks; b++)
        s->w[b] /= (float)unit;
}

static void fold_space(struct span s, struct buf *out)
{
    bool space = false;
    int n;

    buf_clear(out);
    for (size_t i = 0; i < s.n; i += (size_t)n) {
        if (chars_space_at(s.p + i, s.p + s.n, &n)) {
            space = out->n > 0;
            continue;
        }
        if (space)
            buf_putc(out, ' ');
        space = false;
        buf_putc(out, s.p[i]);
        n = 1;
    }
    buf_reserve(out, 8);
}

/* Whether any element around node i, or itself, is left out. */
static bool is_out(const struct html_tree *t, const uint8_t *out, uint32_t i)
{
    for (; i; i = t->node[i].parent)
        if (out[i])
            return true;
    return false;
}

/* Labels by the rules, unless they get a string wrong that is known; those labels stay. */
static void label_by_rules(struct sample *s, const struct content_page *p, const struct html_tree *t, const uint8_t *rules)
{
    float *y = malloc((p->n_blocks + 1) * sizeof *y), *w = malloc((p->n_blocks + 1) * sizeof *w);
    bool right = true;

    memcpy(y, s->y, p->n_blocks * sizeof *y);
    memcpy(w, s->w, p->n_blocks * sizeof *w);
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        s->y[b] = !is_out(t, rules, p->block[b].first);
        right = right && (w[b] <= 0 || y[b] == s->y[b]);
    }
    weigh(s);
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        s->y[b] = w[b] > 0 ? y[b] : s->y[b];
        s->w[b] = w[b] > 0 ? w[b] : right ? s->w[b] : 0;
    }
    free(y);
    free(w);
}

void sample_label(struct sample *s, const struct content_page *p, const struct html_tree *t, const uint8_t *skip,
                  const uint8_t *rules)
{
    struct words page = {0};
    struct buf text = {0}, folded = {0}, part = {0};
    uint32_t *at = calloc(p->n_blocks + 2, sizeof *at);

    s->n_blocks = p->n_blocks;
    s->y = calloc(p->n_blocks + 1, sizeof *s->y);
    s->w = calloc(p->n_blocks + 1, sizeof *s->w);
    s->words = calloc(p->n_blocks + 1, sizeof *s->words);
    s->hits = calloc(p->n_blocks + 1, sizeof *s->hits);
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        block_text(t, skip, &p->block[b], &text);
        at[b] = page.n;
        split_words(buf_span(&text), &page);
        s->words[b] = page.n - at[b];
        if (s->set != SEGMENT)
            continue;
        fold_space(buf_span(&text), &folded);
        for (int k = 0; k < s->n_with + s->n_without; k++) {
            bool with = k < s->n_with;
            fold_space(span_of(with ? s->with[k] : s->without[k - s->n_with]), &part);
            if (part.n && memmem(folded.p, folded.n, part.p, part.n) && !(s->w[b] > 0 && !with)) {
                s->y[b] = with;
                s->w[b] = 0.2f;
            }
        }
    }
    at[p->n_blocks] = page.n;
    if (s->set != SEGMENT) {
        label_by_gold(s, &page, at);
        weigh(s);
    } else {
        label_by_rules(s, p, t, rules);
    }
    free(at);
    free(page.v);
    buf_free(&text);
    buf_free(&folded);
    buf_free(&part);
}
