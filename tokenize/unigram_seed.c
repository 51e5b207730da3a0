#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "tokenize/script.h"
#include "tokenize/unigram_sort.h"
#include "tokenize/unigram_train.h"

#define SPACE 0x2581
enum { BLOCK = 64, CODE_POINTS = 0x110000 };
#define NONE UINT32_MAX

/* A string that is followed by different characters: a node of the suffix tree. */
struct seed {
    uint64_t score; /* its characters in the corpus */
    uint32_t order; /* among nodes: those with the same score are in this order */
    uint32_t left, right; /* its places in the suffix array */
    uint32_t text;
    uint8_t chars, bytes;
};

struct seeding {
    struct unigram_train *u;
    int32_t *sa;  /* of characters only */
    size_t n;
    uint32_t *word_at; /* the word that each block of the text begins in */
    struct buf found;  /* struct seed */
    uint32_t order;
};

/* ---- strings ---- */

static unsigned char_bytes(char c)
{
    unsigned char x = (unsigned char)c;

    return x < 0x80 ? 1 : x < 0xE0 ? 2 : x < 0xF0 ? 3 : 4;
}

/* Characters that two places have in common, at most one more than a piece may have. */
static unsigned common_chars(const struct buf *t, size_t a, size_t b)
{
    unsigned n = 0, bytes;

    for (; n <= UNIGRAM_LONGEST && a < t->n && b < t->n; n++, a += bytes, b += bytes) {
        bytes = char_bytes(t->p[a]);
        if (a + bytes > t->n || b + bytes > t->n || memcmp(t->p + a, t->p + b, bytes) != 0)
            break;
    }
    return n;
}

/* True if so many characters may be a piece: a space at the front at most, and one script.  *bytes: of them. */
static bool is_piece(const struct buf *t, size_t at, unsigned chars, uint8_t *bytes)
{
    const char *p = t->p + at;
    int before = -1, script;
    uint32_t cp;

    for (unsigned i = 0; i < chars; i++) {
        p += utf8_next(p, t->p + t->n, &cp);
        if (!cp || cp == UNIGRAM_RARE || (cp == SPACE && i))
            return false;
        if (cp == SPACE)
            continue;
        script = script_of(cp);
        if (script == SCRIPT_INHERITED)
            script = before;
        if (script >= 0 && before >= 0 && script != before)
            return false;
        before = script;
    }
    *bytes = (uint8_t)(p - t->p - at);
    return true;
}

/* Bytes of memory that are taken while there is a suffix array. */
static uint64_t taken_by(const struct seeding *s)
{
    const struct unigram_train *u = s->u;

    return u->text.n * (1 + sizeof *s->sa) + u->weights.n + u->n_words * (sizeof *u->counts + sizeof *u->starts) + s->found.n +
           CODE_POINTS * sizeof(uint32_t);
}

/* ---- frequent strings ---- */

static int by_score(const void *a, const void *b)
{
    const struct seed *x = a, *y = b;

    return x->score != y->score ? (x->score < y->score ? 1 : -1) : (x->order > y->order) - (x->order < y->order);
}

/* Only the best of those found are kept. */
static void keep_best(struct buf *found)
{
    size_t n = found->n / sizeof(struct seed);

    if (n)
        qsort(found->p, n, sizeof(struct seed), by_score);
    if (n > UNIGRAM_SEEDS)
        found->n = UNIGRAM_SEEDS * sizeof(struct seed);
}

static int add_seed(struct seeding *s, size_t left, size_t right, unsigned chars, uint64_t count, struct err *e)
{
    struct seed x = {.score = count * chars, .order = s->order++, .left = (uint32_t)left, .right = (uint32_t)right,
                     .text = (uint32_t)s->sa[left], .chars = (uint8_t)chars};

    if (chars < 2 || chars > UNIGRAM_LONGEST || !is_piece(&s->u->text, x.text, chars, &x.bytes))
        return 0;
    if (s->found.n >= 2 * UNIGRAM_SEEDS * sizeof x)
        keep_best(&s->found);
    if (buf_put(&s->found, &x, sizeof x) < 0)
        return unigram_no_memory(e);
    return unigram_too_large(s->u, taken_by(s), e);
}

static uint64_t count_at(const struct seeding *s, size_t at)
{
    const struct unigram_weight *w = (const struct unigram_weight *)(const void *)s->u->weights.p + s->word_at[at / BLOCK];

    while (w->end <= at)
        w++;
    return w->count;
}

/* All nodes of the suffix tree, a node after those below it: neighbours in the suffix array have as much in common as the
 * deepest node above both. */
static int find_seeds(struct seeding *s, struct err *e)
{
    struct { size_t left; uint64_t before; int chars; } open[UNIGRAM_LONGEST + 4] = {{0, 0, -1}}, x;
    uint64_t counted = 0, before_last = 0; /* occurrences so far, and before the last place */
    int top = 0;

    for (size_t i = 0; i <= s->n; i++) {
        x.chars = i == 0 || i == s->n ? -1 : (int)common_chars(&s->u->text, (size_t)s->sa[i - 1], (size_t)s->sa[i]);
        x.left = i ? i - 1 : 0;
        x.before = before_last;
        for (; open[top].chars > x.chars; top--) {
            TRY(add_seed(s, open[top].left, i, (unsigned)open[top].chars, counted - open[top].before, e));
            x.left = open[top].left;
            x.before = open[top].before;
        }
        if (open[top].chars < x.chars)
            open[++top] = x;
        before_last = counted;
        if (i < s->n)
            counted += count_at(s, (size_t)s->sa[i]);
    }
    keep_best(&s->found);
    return 0;
}

/* The suffix array, of places where characters begin. */
static int sort_text(struct seeding *s, struct err *e)
{
    const struct buf *t = &s->u->text;
    const struct unigram_weight *w = (const struct unigram_weight *)(const void *)s->u->weights.p;
    uint32_t word = 0;

    s->sa = malloc(t->n * sizeof *s->sa);
    s->word_at = malloc((t->n / BLOCK + 1) * sizeof *s->word_at);
    if (!s->sa || !s->word_at)
        return unigram_no_memory(e);
#if HAVE_DIVSUFSORT
    if (unigram_sort(t->p, t->n, s->sa) != 0)
        return unigram_no_memory(e);
#endif
    for (size_t i = 0; i < t->n; i++)
        if (t->p[s->sa[i]] && ((unsigned char)t->p[s->sa[i]] & 0xC0) != 0x80)
            s->sa[s->n++] = s->sa[i];
    for (size_t i = 0; i < t->n; i += BLOCK) {
        while (w[word].end <= i)
            word++;
        s->word_at[i / BLOCK] = word;
    }
    return 0;
}

bool unigram_seed_can(void)
{
    return HAVE_DIVSUFSORT;
}

/* ---- pieces ---- */

/* Scores: logarithms of shares, in single precision. */
static void set_scores(struct unigram_train *u)
{
    float sum = 0, all;

    for (uint32_t i = 0; i < u->n; i++)
        sum += u->pieces[i].score;
    all = (float)log((double)sum);
    for (uint32_t i = 0; i < u->n; i++)
        u->pieces[i].score = (float)(log((double)u->pieces[i].score) - all);
    unigram_set_least(u);
}

/* The first pieces: characters in their order, then seeds.  ids: of characters, by code point. */
static int make_pieces(struct unigram_train *u, const struct train_char *chars, size_t n, const struct buf *found,
                       uint32_t *ids, struct err *e)
{
    const struct seed *seeds = (const struct seed *)(const void *)found->p;
    size_t n_seeds = found->n / sizeof *seeds;

    u->pieces = calloc(n + n_seeds + 1, sizeof *u->pieces);
    if (!u->pieces)
        return unigram_no_memory(e);
    for (size_t i = 0; i < n; i++, u->n++) {
        ids[chars[i].cp] = u->n;
        u->pieces[u->n] = (struct unigram_piece){.score = (float)chars[i].count, .chars = 1};
    }
    for (size_t i = 0; i < n_seeds; i++, u->n++)
        u->pieces[u->n] = (struct unigram_piece){.score = (float)seeds[i].score, .text = seeds[i].text,
                                                 .chars = seeds[i].chars, .bytes = seeds[i].bytes};
    set_scores(u);
    return 0;
}

/* ---- lattice ---- */

/* Where in the nodes those of each byte of the text begin that a character begins at; *all of them. */
static void place_nodes(const struct seeding *s, uint32_t *first, uint64_t *all)
{
    const struct unigram_train *u = s->u;
    const struct seed *seeds = (const struct seed *)(const void *)s->found.p;

    *all = 0;
    for (uint32_t w = 0; w < u->n_words; w++)
        for (size_t i = u->starts[w]; i < u->starts[w + 1] && u->text.p[i]; i += char_bytes(u->text.p[i]))
            first[i] = 1;
    for (size_t k = 0; k < s->found.n / sizeof *seeds; k++)
        for (size_t i = seeds[k].left; i < seeds[k].right; i++)
            if ((size_t)s->sa[i] < u->own)
                first[s->sa[i]]++;
    for (size_t i = 0; i < u->own; i++) {
        uint32_t n = first[i];
        first[i] = (uint32_t)*all;
        *all += n;
    }
}

/* Puts the nodes at their places; each first[i] goes to the end of its own. */
static void put_nodes(struct seeding *s, uint32_t *first, const uint32_t *ids)
{
    struct unigram_train *u = s->u;
    const struct seed *seeds = (const struct seed *)(const void *)s->found.p;
    uint32_t n_chars = u->n - (uint32_t)(s->found.n / sizeof *seeds), cp;

    for (uint32_t w = 0; w < u->n_words; w++) {
        size_t i = u->starts[w], end = u->starts[w + 1];
        u->starts[w] = first[i];
        while (i < end && u->text.p[i]) {
            size_t next = i + (size_t)utf8_next(u->text.p + i, u->text.p + end, &cp);
            uint32_t id = ids[cp];
            u->nodes[first[i]++] = id == NONE ? UNIGRAM_UNKNOWN : id;
            if (id != NONE) {
                u->pieces[id].text = (uint32_t)i;
                u->pieces[id].bytes = (uint8_t)(next - i);
            }
            i = next;
        }
    }
    u->starts[u->n_words] = (uint32_t)u->n_nodes;
    for (unsigned chars = 2; chars <= UNIGRAM_LONGEST; chars++)
        for (uint32_t id = n_chars; id < u->n; id++) {
            const struct seed *x = &seeds[id - n_chars];
            for (size_t i = x->left; x->chars == chars && i < x->right; i++)
                if ((size_t)s->sa[i] < u->own)
                    u->nodes[first[s->sa[i]]++] = id;
        }
}

/* Marks the last nodes of places, and tells pieces where they are. */
static void mark_nodes(struct unigram_train *u, const uint32_t *first)
{
    uint32_t begin = 0;

    for (size_t i = 0; i < u->own; i++) {
        for (uint32_t k = begin; k < first[i]; k++)
            if (u->nodes[k] != UNIGRAM_UNKNOWN)
                u->pieces[u->nodes[k]].at = begin;
        if (first[i] > begin)
            u->nodes[first[i] - 1] |= UNIGRAM_LAST;
        begin = first[i] > begin ? first[i] : begin;
    }
}

static int make_lattice(struct seeding *s, const uint32_t *ids, struct err *e)
{
    struct unigram_train *u = s->u;
    uint32_t *first = calloc(u->own + 1, sizeof *first);
    uint64_t all, taken = taken_by(s) + (u->own + 1) * sizeof *first + u->n * sizeof *u->pieces;
    int rc = 0;

    if (!first)
        return unigram_no_memory(e);
    place_nodes(s, first, &all);
    u->n_nodes = all;
    if (all >= UNIGRAM_UNKNOWN)
        rc = err_set(e, ERR_LIMIT, "there are more than 2^31 pieces at places in different words");
    if (rc == 0)
        rc = unigram_too_large(u, taken + all * sizeof *u->nodes, e);
    if (rc == 0 && !(u->nodes = malloc((all + 1) * sizeof *u->nodes)))
        rc = unigram_no_memory(e);
    if (rc == 0) {
        put_nodes(s, first, ids);
        mark_nodes(u, first);
    }
    free(first);
    return rc;
}

/* As many threads as have room for their sums. */
static void limit_threads(struct unigram_train *u)
{
    uint64_t all = u->text.n + u->n_words * (sizeof *u->counts + sizeof *u->starts) + u->n_nodes * sizeof *u->nodes,
             piece = 2 * sizeof *u->pieces + 4 * sizeof(float), own = u->n * (2 * sizeof(float)) + (1 << 20);

    while (u->threads > 1 && all + u->n * piece + (uint64_t)u->threads * own > u->memory)
        u->threads--;
}

int unigram_seed(struct unigram_train *u, const struct train_char *chars, size_t n, struct err *e)
{
    struct seeding s = {.u = u};
    uint32_t *ids = malloc(CODE_POINTS * sizeof *ids);
    int rc = ids ? unigram_too_large(u, taken_by(&s), e) : unigram_no_memory(e);

    if (rc == 0)
        memset(ids, 0xFF, CODE_POINTS * sizeof *ids);
    if (rc == 0)
        rc = sort_text(&s, e);
    if (rc == 0)
        rc = find_seeds(&s, e);
    if (rc == 0)
        rc = make_pieces(u, chars, n, &s.found, ids, e);
    if (rc == 0)
        rc = make_lattice(&s, ids, e);
    limit_threads(u);
    free(s.sa);
    free(s.word_at);
    free(ids);
    buf_free(&s.found);
    buf_free(&u->weights);
    return rc;
}
