#include <math.h>
#include <stdlib.h>

#include "base/pool.h"
#include "tokenize/unigram_second.h"
#include "tokenize/unigram_train.h"

enum { PLACES = UNIGRAM_WORD_MAX + UNIGRAM_LONGEST + 1, BLOCK = 1024 };

enum fate { GOES, STAYS, CANDIDATE }; /* of a piece */

struct pruning {
    const struct unigram_train *u;
    float *used;   /* of each piece: how often it is in the best way */
    float *words;  /* the same, summed word by word without lanes */
    float all;     /* words */
    float total, log_total; /* uses of all pieces */
    struct gate gate;
    uint32_t lane, next;
    uint8_t *fate;
    float *loss;
    int failed;
};

/* ---- best ways ---- */

/* Nodes that end at a place, by their characters: SentencePiece compares them the longest first, each with what follows. */
struct ending {
    uint32_t there; /* bits: those of this many characters; 1: the beginning of the word */
    float score[UNIGRAM_LONGEST + 1];
    uint32_t id[UNIGRAM_LONGEST + 1];
    uint8_t before[UNIGRAM_LONGEST + 1]; /* characters of the node before on the best way */
};

/* The best way to what has this score and begins there: its score, and the characters of its last node. */
static float best_ending(const struct ending *x, float score, uint8_t *before)
{
    float best = 0;
    bool any = false;

    for (uint32_t left = x->there; left;) {
        unsigned chars = 31 - (unsigned)__builtin_clz(left);
        float way = x->score[chars] + score;
        if (!any || way > best) {
            best = way;
            *before = (uint8_t)chars;
        }
        any = true;
        left &= ~(1u << chars);
    }
    return best;
}

/* The pieces of the best way through a word, the last one first, appended to path (of at most UNIGRAM_WORD_MAX). */
static uint32_t best_way(const struct unigram_train *u, uint32_t word, struct ending *at, uint32_t *path)
{
    uint32_t n = 0, end = u->starts[word + 1];
    uint8_t chars = 0;
    struct ending *x = at;

    for (unsigned i = 0; i < UNIGRAM_LONGEST; i++)
        at[i].there = 0;
    at->there = 1;
    at->score[0] = 0;
    for (uint32_t k = u->starts[word]; k < end; x++) {
        uint32_t node;
        x[UNIGRAM_LONGEST].there = 0;
        do {
            uint32_t id = (node = u->nodes[k++]) & ~UNIGRAM_LAST;
            unsigned length = unigram_chars(u, id);
            x[length].score[length] = best_ending(x, unigram_score(u, id), &x[length].before[length]);
            x[length].id[length] = id;
            x[length].there |= 1u << length;
        } while (!(node & UNIGRAM_LAST));
    }
    best_ending(x, 0, &chars);
    while (chars) {
        uint8_t before = x->before[chars];
        path[n++] = unigram_counted(x->id[chars]);
        x -= chars;
        chars = before;
    }
    return n;
}

struct lane_way { /* of a thread */
    struct ending *at;
    float *used;
    struct buf paths; /* a lane's: for each word the pieces of its best way, their number in front */
};

static int walk_lane(const struct unigram_train *u, uint32_t lane, struct lane_way *t)
{
    memset(t->used, 0, u->n * sizeof *t->used);
    buf_clear(&t->paths);
    for (uint32_t w = u->lanes[lane]; w < u->lanes[lane + 1]; w++) {
        uint32_t *to;
        if (buf_reserve(&t->paths, (UNIGRAM_WORD_MAX + 1) * sizeof *to) < 0)
            return -1;
        to = (uint32_t *)(void *)(t->paths.p + t->paths.n);
        *to = best_way(u, w, t->at, to + 1);
        for (uint32_t i = 1; i <= *to; i++)
            t->used[to[i]] += (float)u->counts[w];
        t->paths.n += (*to + 1) * sizeof *to;
    }
    return 0;
}

/* Adds a lane to what is before it. */
static void add_lane(struct pruning *x, uint32_t lane, const struct lane_way *t)
{
    const struct unigram_train *u = x->u;
    const uint32_t *path = (const uint32_t *)(const void *)t->paths.p, *end = path + t->paths.n / sizeof *path;
    float all = 0;

    for (uint32_t w = u->lanes[lane]; path < end; w++) {
        all += (float)u->counts[w];
        for (uint32_t n = *path++; n; n--)
            x->words[*path++] += (float)u->counts[w];
    }
    x->all += all;
    for (uint32_t i = 0; i < u->n; i++)
        x->used[i] += t->used[i];
}

static void walk_lanes(void *arg, int thread)
{
    struct pruning *x = arg;
    struct lane_way t = {.at = malloc(PLACES * sizeof *t.at), .used = malloc((x->u->n + 1) * sizeof *t.used)};
    uint32_t lane;
    int rc = t.at && t.used ? 0 : -1;

    (void)thread;
    while (rc == 0 && (lane = __atomic_fetch_add(&x->lane, 1, __ATOMIC_RELAXED)) < UNIGRAM_LANES) {
        rc = walk_lane(x->u, lane, &t);
        if (rc < 0 || gate_enter(&x->gate, lane) < 0)
            break;
        add_lane(x, lane, &t);
        gate_leave(&x->gate);
    }
    if (rc < 0) {
        __atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
        gate_stop(&x->gate);
    }
    free(t.at);
    free(t.used);
    buf_free(&t.paths);
}

/* ---- losses ---- */

/* What becomes of a piece; if it may go, what likelihood is lost when its places take the second best way. */
static enum fate judge(const struct pruning *x, uint32_t id, struct unigram_second *s, float *loss)
{
    float used = x->used[id], with, all, without = 0;
    int n = used == 0 ? -1 : unigram_second_best(x->u, id, s);

    if (n <= 0)
        return n < 0 ? GOES : STAYS;
    with = (float)(log((double)used) - x->log_total);
    all = (float)log((double)(x->total + used * (float)(n - 1)));
    for (int i = 0; i < n; i++)
        without = (float)(without + (log((double)(x->used[s->best[i]] + used)) - all));
    *loss = x->words[id] / x->all * (with - without);
    return CANDIDATE;
}

static void judge_blocks(void *arg, int thread)
{
    struct pruning *x = arg;
    struct unigram_second *s = malloc(sizeof *s);
    uint32_t n = x->u->n, from;

    (void)thread;
    if (!s)
        __atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
    while (s && (from = __atomic_fetch_add(&x->next, BLOCK, __ATOMIC_RELAXED)) < n)
        for (uint32_t i = from; i < n && i < from + BLOCK; i++)
            x->fate[i] = (uint8_t)judge(x, i, s, &x->loss[i]);
    free(s);
}

struct candidate {
    float loss;
    uint32_t id;
};

static int by_loss(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->loss != y->loss ? (x->loss < y->loss ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

/* Keeps what cannot go, and of the others those whose loss is highest. */
static int keep_best(struct unigram_train *u, const struct pruning *x, uint32_t desired, struct err *e)
{
    struct candidate *v = malloc((u->n + 1) * sizeof *v);
    uint32_t *ids = malloc((u->n + 1) * sizeof *ids), n = 0, left = 0, most = (uint32_t)(0.75f * (float)u->n);
    int rc = v && ids ? 0 : unigram_no_memory(e);

    most = most > desired ? most : desired;
    for (uint32_t i = 0; rc == 0 && i < u->n; i++)
        if (x->fate[i] == STAYS)
            ids[left++] = i;
        else if (x->fate[i] == CANDIDATE)
            v[n++] = (struct candidate){x->loss[i], i};
    if (rc == 0) {
        qsort(v, n, sizeof *v, by_loss);
        for (uint32_t i = 0; i < n && left < most; i++)
            ids[left++] = v[i].id;
        rc = unigram_keep(u, ids, NULL, left, e);
    }
    free(v);
    free(ids);
    return rc;
}

int unigram_prune(struct unigram_train *u, uint32_t desired, struct err *e)
{
    size_t n = (size_t)u->n + 1;
    struct pruning x = {.u = u, .used = calloc(n, sizeof *x.used), .words = calloc(n, sizeof *x.words),
                        .fate = calloc(n, 1), .loss = calloc(n, sizeof *x.loss)};
    int rc = x.used && x.words && x.fate && x.loss ? 0 : unigram_no_memory(e), lanes;
    double total = 0;

    lanes = u->threads < UNIGRAM_LANES ? u->threads : UNIGRAM_LANES;
    if (rc == 0) {
        gate_init(&x.gate);
        rc = pool_run(lanes, walk_lanes, &x, e);
        gate_destroy(&x.gate);
    }
    for (uint32_t i = 0; rc == 0 && i < u->n; i++)
        total += x.used[i];
    x.total = (float)total;
    x.log_total = (float)log((double)x.total);
    if (rc == 0 && !x.failed)
        rc = pool_run(u->threads, judge_blocks, &x, e);
    if (rc == 0 && x.failed)
        rc = unigram_no_memory(e);
    if (rc == 0)
        rc = keep_best(u, &x, desired, e);
    free(x.used);
    free(x.words);
    free(x.fate);
    free(x.loss);
    return rc;
}
