#include <math.h>
#include <stdlib.h>

#include "base/pool.h"
#include "tokenize/unigram_train.h"

enum { PLACES = UNIGRAM_WORD_MAX + UNIGRAM_LONGEST + 1 };

/* ---- expectation ---- */

struct expecting {
    const struct unigram_train *u;
    float *expected; /* of each piece */
    struct gate gate;
    uint32_t lane;
    int failed;
};

struct places { /* of a word */
    float alpha[PLACES], beta[PLACES]; /* the likelihood, in logarithms, of all ways to a place, and from it on */
    uint32_t nodes[PLACES];
    bool reached[PLACES];
};

/* log(exp(x) + exp(y)), rounded as SentencePiece rounds it. */
static float log_sum(float x, float y)
{
    float least = fminf(x, y), most = fmaxf(x, y);

    return most > least + 50 ? most : (float)(most + log(exp((double)(least - most)) + 1.0));
}

/* The ways to each place of the word; its characters. */
static unsigned forward(const struct unigram_train *u, uint32_t begin, uint32_t end, struct places *p)
{
    unsigned at = 0;

    memset(p->reached, 0, UNIGRAM_LONGEST * sizeof *p->reached);
    p->alpha[0] = 0;
    for (uint32_t k = begin; k < end; at++) {
        uint32_t last;
        p->nodes[at] = k;
        p->reached[at + UNIGRAM_LONGEST] = false;
        do {
            uint32_t id = u->nodes[k] & ~UNIGRAM_LAST;
            unsigned to = at + unigram_chars(u, id);
            float way = unigram_score(u, id) + p->alpha[at];
            p->alpha[to] = p->reached[to] ? log_sum(p->alpha[to], way) : way;
            p->reached[to] = true;
            last = u->nodes[k++] & UNIGRAM_LAST;
        } while (!last);
    }
    return at;
}

static void backward(const struct unigram_train *u, unsigned n, struct places *p)
{
    p->beta[n] = 0;
    for (unsigned at = n; at-- > 0;) {
        const uint32_t *node = u->nodes + p->nodes[at];
        for (bool first = true;; first = false, node++) {
            uint32_t id = *node & ~UNIGRAM_LAST;
            float way = unigram_score(u, id) + p->beta[at + unigram_chars(u, id)];
            p->beta[at] = first ? way : log_sum(p->beta[at], way);
            if (*node & UNIGRAM_LAST)
                break;
        }
    }
}

/* Adds how often each piece is expected in a word. */
static void expect_word(const struct unigram_train *u, uint32_t word, struct places *p, float *expected)
{
    unsigned n = forward(u, u->starts[word], u->starts[word + 1], p), at = 0;
    float count = (float)u->counts[word], all = p->alpha[n];

    backward(u, n, p);
    for (uint32_t k = u->starts[word]; k < u->starts[word + 1]; k++) {
        uint32_t id = u->nodes[k] & ~UNIGRAM_LAST;
        float through = p->alpha[at] + unigram_score(u, id) + p->beta[at + unigram_chars(u, id)] - all;
        float *sum = &expected[unigram_counted(id)];
        *sum = (float)(*sum + count * exp((double)through));
        at += u->nodes[k] >> 31;
    }
}

/* Lanes are summed by themselves, then in order. */
static void expect_lanes(void *arg, int thread)
{
    struct expecting *x = arg;
    const struct unigram_train *u = x->u;
    float *own = malloc((u->n + 1) * sizeof *own);
    struct places *p = calloc(1, sizeof *p);
    uint32_t lane;

    (void)thread;
    if (!own || !p) {
        __atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
        gate_stop(&x->gate);
    }
    while (own && p && (lane = __atomic_fetch_add(&x->lane, 1, __ATOMIC_RELAXED)) < UNIGRAM_LANES) {
        memset(own, 0, u->n * sizeof *own);
        for (uint32_t w = u->lanes[lane]; w < u->lanes[lane + 1]; w++)
            expect_word(u, w, p, own);
        if (gate_enter(&x->gate, lane) < 0)
            break;
        for (uint32_t i = 0; i < u->n; i++)
            x->expected[i] += own[i];
        gate_leave(&x->gate);
    }
    free(own);
    free(p);
}

/* ---- maximisation ---- */

/* The derivative of the logarithm of the gamma function. */
static double digamma(double x)
{
    double result = 0, y;

    for (; x < 7; x++)
        result -= 1 / x;
    x -= 1.0 / 2.0;
    y = 1.0 / x;
    y *= y;
    return result + (log(x) + (1.0 / 24.0) * y - (7.0 / 960.0) * (y * y) + (31.0 / 8064.0) * (y * y) * y -
                     (127.0 / 30720.0) * (y * y) * (y * y));
}

/* Scores of the pieces that are expected half a time at least.  The digamma function takes more from rare ones than a
 * logarithm does: a prior for few pieces. */
static int maximise(struct unigram_train *u, const float *expected, struct err *e)
{
    uint32_t *ids = malloc((u->n + 1) * sizeof *ids), n = 0;
    float *scores = malloc((u->n + 1) * sizeof *scores), sum = 0, all;
    int rc;

    for (uint32_t i = 0; ids && scores && i < u->n; i++)
        if (expected[i] >= 0.5f) {
            ids[n] = i;
            scores[n++] = expected[i];
            sum += expected[i];
        }
    all = (float)digamma((double)sum);
    for (uint32_t i = 0; i < n; i++)
        scores[i] = (float)(digamma((double)scores[i]) - all);
    rc = ids && scores ? unigram_keep(u, ids, scores, n, e) : unigram_no_memory(e);
    free(ids);
    free(scores);
    return rc;
}

int unigram_em(struct unigram_train *u, struct err *e)
{
    struct expecting x = {.u = u, .expected = calloc(u->n + 1, sizeof *x.expected)};
    int rc = x.expected ? 0 : unigram_no_memory(e);

    if (rc == 0) {
        gate_init(&x.gate);
        rc = pool_run(u->threads < UNIGRAM_LANES ? u->threads : UNIGRAM_LANES, expect_lanes, &x, e);
        gate_destroy(&x.gate);
    }
    if (rc == 0 && x.failed)
        rc = unigram_no_memory(e);
    if (rc == 0)
        rc = maximise(u, x.expected, e);
    free(x.expected);
    return rc;
}

/* ---- what is left ---- */

void unigram_set_least(struct unigram_train *u)
{
    u->least = u->n ? INFINITY : 0;
    for (uint32_t i = 0; i < u->n; i++)
        u->least = fminf(u->least, u->pieces[i].score);
    u->unknown = u->least - 10;
}

/* Takes the nodes of pieces that are gone out of the lattice; map: the new ids, or UINT32_MAX. */
static void thin_out(struct unigram_train *u, const uint32_t *map)
{
    uint32_t from = 0, to = 0;

    for (uint32_t w = 0; w < u->n_words; w++) {
        uint32_t end = u->starts[w + 1];
        u->starts[w] = to;
        while (from < end) {
            uint32_t begin = to, node;
            bool alone = false; /* the character is a piece */
            do {
                uint32_t id = (node = u->nodes[from++]) & ~UNIGRAM_LAST;
                id = id == UNIGRAM_UNKNOWN ? UINT32_MAX : map[id];
                if (id == UINT32_MAX)
                    continue;
                alone |= u->pieces[id].chars == 1;
                u->pieces[id].at = begin;
                u->nodes[to++] = id;
            } while (!(node & UNIGRAM_LAST));
            if (!alone)
                u->nodes[to++] = UNIGRAM_UNKNOWN;
            u->nodes[to - 1] |= UNIGRAM_LAST;
        }
    }
    u->starts[u->n_words] = to;
    u->n_nodes = to;
}

int unigram_keep(struct unigram_train *u, const uint32_t *ids, const float *scores, uint32_t n, struct err *e)
{
    struct unigram_piece *left = calloc((size_t)n + 1, sizeof *left);
    uint32_t *map = malloc((u->n + 1) * sizeof *map);

    if (!left || !map) {
        free(left);
        free(map);
        return unigram_no_memory(e);
    }
    memset(map, 0xFF, (u->n + 1) * sizeof *map);
    for (uint32_t i = 0; i < n; i++) {
        map[ids[i]] = i;
        left[i] = u->pieces[ids[i]];
        if (scores)
            left[i].score = scores[i];
    }
    free(u->pieces);
    u->pieces = left;
    u->n = n;
    unigram_set_least(u);
    thin_out(u, map);
    free(map);
    return 0;
}

void unigram_train_free(struct unigram_train *u)
{
    buf_free(&u->text);
    buf_free(&u->weights);
    free(u->counts);
    free(u->starts);
    free(u->nodes);
    free(u->pieces);
}
