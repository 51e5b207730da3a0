/* The method decon: "sampled index match with progressive length extension" of
 * allenai/decon (version of autumn 2025), on words where decon has tokens of cl100k.
 *
 * Every so many words of the document, five words are looked up among those of all
 * questions.  A hit opens a cluster for the questions that have it; the cluster grows to
 * both sides, and a question leaves it after max_misses words without a new match.  The
 * score is the share of the question's different grams that were met, each weighed by
 * ln(questions / questions that have it), and likewise of the answer behind and the
 * passage before. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "curate/decontaminate/decontaminate_method.h"
#include "curate/decontaminate/decontaminate_postings.h"

enum { ANSWER_GRAM = 3, PASSAGE_GRAM = 4, PASSAGE_MISSES = 2 };
enum { SHORT_ANSWER = 3, SHORT_WINDOW = 50, LONG_WINDOW = 100, PASSAGE_WINDOW = 100 };
/* Items with fewer words, or fewer different ones, are not looked for. */
enum { MIN_WORDS = 20, MIN_DIFFERENT = 4 };
enum { INFORMATIVE_GRAMS = 20, INFORMATIVE_ANSWER = 4, MIN_HOT = 2000, MAX_HITS = 1000 };

struct decon_item {
    const uint64_t *words, *answer, *passage; /* of the question and so on */
    uint32_t question, answers, answers_different, passages; /* numbers of words */
    uint32_t grams; /* different ones of the question */
    double weight;  /* of them all */
    bool on;
};

struct decon {
    const struct eval_set *evals;
    int width, every, misses, perfect_until, perfect_end;
    double threshold, least; /* least: no question below it can reach the threshold */
    struct decon_item *item;
    size_t n, skipped; /* n: items that are on */
    struct postings question, answer, passage;
    uint32_t hot;
    struct arena words;
};

/* A question in a cluster. */
struct member {
    uint32_t item, misses, first, last; /* first, last: grams of the document */
    uint32_t grams;
    double weight;
    bool active;
};

struct cluster {
    struct hashed_words words;
    uint64_t *hash; /* of the words */
    size_t cap_hash;
    struct member *v;
    size_t n, cap;
    uint32_t *stamp; /* a posting: the cluster that met it last */
    uint32_t number;
};

/* ---- the index ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Sorts v and keeps one of each; returns how many. */
static size_t make_different(uint64_t *v, size_t n)
{
    size_t k = 0;

    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || v[i] != v[i - 1])
            v[k++] = v[i];
    return k;
}

static int keep_words(struct decon *d, struct hashed_words *ws, struct span text, const uint64_t **w, uint32_t *n,
                      struct err *e)
{
    uint64_t *own;

    TRY(hashed_words_cleaned(ws, text, e));
    own = arena_alloc(&d->words, (ws->n + 1) * sizeof *own);
    if (!own)
        return err_set(e, ERR_NOMEM, "out of memory for the questions");
    for (size_t i = 0; i < ws->n; i++)
        own[i] = ws->w[i].hash;
    *w = own;
    *n = (uint32_t)ws->n;
    return 0;
}

static int count_different(const uint64_t *const part[3], const uint32_t n[3], uint32_t *different)
{
    size_t all = (size_t)n[0] + n[1] + n[2], at = 0;
    uint64_t *v = malloc((all + 1) * sizeof *v);

    if (!v)
        return ERR_NOMEM;
    for (int i = 0; i < 3; at += n[i++])
        memcpy(v + at, part[i], n[i] * sizeof *v);
    *different = (uint32_t)make_different(v, all);
    free(v);
    return 0;
}

static int add_item(struct decon *d, struct hashed_words *ws, uint32_t i, struct err *e)
{
    const struct eval_item *it = &d->evals->v[i];
    struct decon_item *own = &d->item[i];
    const uint64_t *part[3];
    uint32_t different, n[3];

    TRY(keep_words(d, ws, (struct span){it->text.p, it->question}, &own->words, &own->question, e));
    TRY(keep_words(d, ws, eval_answer(it), &own->answer, &own->answers, e));
    TRY(keep_words(d, ws, it->passage, &own->passage, &own->passages, e));
    part[0] = own->words, part[1] = own->answer, part[2] = own->passage;
    n[0] = own->question, n[1] = own->answers, n[2] = own->passages;
    if (count_different(part, n, &different) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the questions");
    own->on = own->question && (uint64_t)n[0] + n[1] + n[2] >= MIN_WORDS && different >= MIN_DIFFERENT;
    if (!own->on) {
        d->skipped++;
        return 0;
    }
    d->n++;
    n[0] = n[2] = 0;
    if (count_different(part, n, &own->answers_different) < 0 ||
        postings_count(&d->question, i, own->words, own->question, d->width) < 0 ||
        (own->answers > SHORT_ANSWER && postings_count(&d->answer, i, own->answer, own->answers, ANSWER_GRAM) < 0) ||
        postings_count(&d->passage, i, own->passage, own->passages, PASSAGE_GRAM) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the n-grams of the questions");
    return 0;
}

static double weight_of(const struct decon *d, const struct posting_slot *s)
{
    return log((double)d->n / s->count);
}

/* Second round over the questions: who has which gram, and what all their grams weigh. */
static int fill(struct decon *d, struct err *e)
{
    if (postings_place(&d->question) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the n-grams of the questions");
    for (uint32_t i = 0; i < d->evals->n; i++) {
        struct decon_item *own = &d->item[i];
        for (uint32_t k = 0; own->on && k + (uint32_t)d->width <= own->question; k++) {
            const struct posting_slot *s = postings_put(&d->question, gram_hash(own->words + k, d->width), i);
            own->grams += s != NULL;
            own->weight += s ? weight_of(d, s) : 0;
        }
    }
    return 0;
}

static void decon_close(void *m)
{
    struct decon *d = m;

    postings_free(&d->question);
    postings_free(&d->answer);
    postings_free(&d->passage);
    arena_free(&d->words);
    free(d->item);
    free(d);
}

static int decon_open(void **m, const struct decontaminate_conf *c, const struct eval_set *evals, struct err *e)
{
    struct decon *d = calloc(1, sizeof *d);
    struct hashed_words ws = {0};
    uint32_t root;
    int rc = 0;

    *m = d;
    if (d)
        d->item = calloc(evals->n, sizeof *d->item);
    if (!d || !d->item)
        return err_set(e, ERR_NOMEM, "out of memory for %zu questions", evals->n);
    d->evals = evals;
    d->width = c->words ? (int)c->words : 5;
    d->every = (int)c->sample_every;
    d->misses = (int)c->max_misses;
    d->perfect_until = (int)c->perfect_until;
    d->perfect_end = (int)c->perfect_end;
    d->threshold = c->threshold > 0 ? c->threshold : 0.8;
    d->least = fmax(0, (d->threshold - 0.3) / 0.7);
    for (uint32_t i = 0; i < evals->n && rc == 0; i++)
        rc = add_item(d, &ws, i, e);
    if (rc == 0)
        rc = fill(d, e);
    hashed_words_free(&ws);
    root = (uint32_t)sqrt((double)d->n) * 2;
    d->hot = root > MIN_HOT ? root : MIN_HOT;
    return rc;
}

static int decon_thread_open(void *m, void **thread, struct err *e)
{
    struct decon *d = m;
    struct cluster *k = calloc(1, sizeof *k);

    *thread = k;
    if (k)
        k->stamp = calloc(d->question.total + 1, sizeof *k->stamp);
    return k && k->stamp ? 0 : err_set(e, ERR_NOMEM, "out of memory for a thread");
}

static void decon_thread_close(void *m, void *thread)
{
    struct cluster *k = thread;

    (void)m;
    hashed_words_free(&k->words);
    free(k->hash);
    free(k->v);
    free(k->stamp);
    free(k);
}

/* ---- clusters ---- */

/* The question has the gram in question s: it is counted when it is new in this cluster. */
static bool meet(const struct decon *d, struct cluster *k, struct member *w, const struct posting_slot *s)
{
    uint32_t at = postings_find(&d->question, s, w->item);

    if (at == POSTING_NONE)
        return false;
    if (k->stamp[at] != k->number) {
        k->stamp[at] = k->number;
        w->grams++;
        w->weight += weight_of(d, s);
        w->misses = 0;
    }
    return true;
}

/* Grows from gram `at` by steps of +1 or -1; returns where it stopped. */
static size_t grow(const struct decon *d, struct cluster *k, size_t at, int step, size_t n_grams)
{
    size_t active = k->n;

    for (size_t i = 0; i < k->n; i++) {
        k->v[i].active = true;
        k->v[i].misses = 0;
    }
    while (active && (step > 0 ? at + 1 < n_grams : at > 0)) {
        const struct posting_slot *s;
        at = step > 0 ? at + 1 : at - 1;
        s = postings_lookup(&d->question, gram_hash(k->hash + at, d->width));
        for (size_t i = 0; i < k->n; i++) {
            struct member *w = &k->v[i];
            if (!w->active)
                continue;
            if (s && meet(d, k, w, s)) {
                *(step > 0 ? &w->last : &w->first) = (uint32_t)at;
            } else if (++w->misses >= (uint32_t)d->misses) {
                w->active = false;
                active--;
            }
        }
    }
    return at;
}

static int open_cluster(const struct decon *d, struct cluster *k, size_t at, const struct posting_slot *s)
{
    if (s->count > k->cap) {
        struct member *v = realloc(k->v, 2 * (size_t)s->count * sizeof *v);
        if (!v)
            return ERR_NOMEM;
        k->v = v;
        k->cap = 2 * (size_t)s->count;
    }
    if (++k->number == 0) { /* once in 2^32 clusters */
        memset(k->stamp, 0, d->question.total * sizeof *k->stamp);
        k->number = 1;
    }
    k->n = s->count;
    for (size_t i = 0; i < k->n; i++) {
        k->v[i] = (struct member){.item = d->question.item[s->first + i], .first = (uint32_t)at, .last = (uint32_t)at};
        meet(d, k, &k->v[i], s);
    }
    return 0;
}

/* ---- scores ---- */

/* From 1 at perfect_until words or fewer to target at perfect_end. */
static double required(const struct decon *d, uint64_t words, double target)
{
    double from = d->perfect_until, to = d->perfect_end;

    if ((double)words <= from)
        return 1;
    if ((double)words >= to)
        return target;
    return 1 - (1 - target) * ((double)words - from) / (to - from);
}

/* The different grams of an answer or passage, sorted; NULL: out of memory. */
static uint64_t *grams_of(const uint64_t *w, uint32_t n, int width, size_t *count)
{
    uint64_t *v = malloc(((size_t)n + 1) * sizeof *v);

    *count = 0;
    for (uint32_t i = 0; v && i + (uint32_t)width <= n; i++)
        v[(*count)++] = gram_hash(w + i, width);
    if (v)
        *count = make_different(v, *count);
    return v;
}

static double gram_weight(const struct decon *d, const struct postings *p, uint64_t hash)
{
    const struct posting_slot *s = postings_lookup(p, hash);

    return s ? weight_of(d, s) : 0;
}

/* What was met of some grams: their weight over that of all. */
struct share {
    uint64_t *gram;
    bool *met;
    size_t n;
};

static int share_open(struct share *s, const uint64_t *w, uint32_t n, int width)
{
    s->gram = grams_of(w, n, width, &s->n);
    s->met = calloc(s->n + 1, sizeof *s->met);
    return s->gram && s->met ? 0 : ERR_NOMEM;
}

static bool share_meet(struct share *s, uint64_t hash)
{
    uint64_t *at = bsearch(&hash, s->gram, s->n, sizeof hash, by_value);

    if (at)
        s->met[at - s->gram] = true;
    return at != NULL;
}

static double share_close(struct share *s, const struct decon *d, const struct postings *p)
{
    double met = 0, all = 0;

    for (size_t i = 0; i < s->n && s->gram && s->met; i++) {
        double w = gram_weight(d, p, s->gram[i]);
        all += w;
        met += s->met[i] ? w : 0;
    }
    free(s->gram);
    free(s->met);
    return all > 0 ? met / all : 0;
}

/* The answer behind word `from` of the document.  -1: out of memory. */
static double answer_share(const struct decon *d, const struct cluster *k, const struct decon_item *it, size_t from)
{
    size_t n = k->words.n, window = 2 * (size_t)it->answers, end;
    struct share s = {0};
    int rc;

    if (it->answers <= SHORT_ANSWER) {
        end = from + SHORT_WINDOW < n ? from + SHORT_WINDOW : n;
        for (size_t i = from; i < end && i + it->answers <= n; i++)
            if (memcmp(k->hash + i, it->answer, it->answers * sizeof *it->answer) == 0)
                return 1;
        return 0;
    }
    window = window > LONG_WINDOW ? window : LONG_WINDOW;
    end = from + window < n ? from + window : n;
    rc = share_open(&s, it->answer, it->answers, ANSWER_GRAM);
    for (size_t i = from; rc == 0 && i + ANSWER_GRAM <= end; i++)
        share_meet(&s, gram_hash(k->hash + i, ANSWER_GRAM));
    return rc < 0 ? share_close(&s, d, &d->answer), -1 : share_close(&s, d, &d->answer);
}

/* The passage before word `from`, read backwards.  -1: out of memory. */
static double passage_share(const struct decon *d, const struct cluster *k, const struct decon_item *it, size_t from)
{
    size_t end = from ? from - 1 : 0, window = 2 * (size_t)it->passages, start;
    struct share s = {0};
    bool any = false;
    int misses = 0, rc = share_open(&s, it->passage, it->passages, PASSAGE_GRAM);

    window = window > PASSAGE_WINDOW ? window : PASSAGE_WINDOW;
    start = end > window ? end - window : 0;
    for (size_t i = end + 1; rc == 0 && i-- > start;) {
        if (i + PASSAGE_GRAM > end)
            continue;
        if (share_meet(&s, gram_hash(k->hash + i, PASSAGE_GRAM))) {
            any = true;
            misses = 0;
        } else if (any && ++misses > PASSAGE_MISSES) {
            break;
        }
    }
    return rc < 0 ? share_close(&s, d, &d->passage), -1 : share_close(&s, d, &d->passage);
}

/* The shares of question, answer and passage as one score.  What a short question or
 * answer says less, the others say more. */
static double combine(const struct decon_item *it, double q, double a, double p)
{
    double sure = it->grams < INFORMATIVE_GRAMS ? 0.5 + 0.5 * it->grams / INFORMATIVE_GRAMS : 1;
    double said =
        it->answers_different < INFORMATIVE_ANSWER ? 0.5 + 0.5 * it->answers_different / INFORMATIVE_ANSWER : 1;

    if (it->answers && it->passages) {
        double moved = 0.7 * (1 - sure) / 2, wa = 0.2 + moved;
        return q * 0.7 * sure + a * wa * said + p * (0.1 + moved + wa * (1 - said));
    }
    if (it->answers)
        return q * 0.75 * sure + a * (0.25 + 0.75 * (1 - sure));
    if (it->passages)
        return q * 0.85 * sure + p * (0.15 + 0.85 * (1 - sure));
    return q;
}

/* Short items need more: the score is scaled so that the threshold stays the same. */
static double adjust(const struct decon *d, const struct decon_item *it, double score)
{
    uint64_t words = (uint64_t)it->question + (it->answers ? it->answers_different : 0) + it->passages;
    double need = required(d, words, d->threshold);

    if (score >= 1 - 1e-9)
        return 1;
    return need > d->threshold ? score * d->threshold / need : score;
}

/* The score of a question in the cluster; 0 if it cannot be one; -1: out of memory. */
static double score_of(const struct decon *d, const struct cluster *k, const struct member *w)
{
    const struct decon_item *it = &d->item[w->item];
    double q = w->grams == it->grams ? 1 : it->weight > 0 ? w->weight / it->weight : 0, a = 0, p = 0;
    size_t last = (size_t)w->last + (size_t)d->width - 1, length = last - w->first + 1;

    if (q < d->least || q < required(d, it->question, d->least))
        return 0;
    if (length > it->question)
        last -= length - it->question < last ? length - it->question : last;
    if (it->answers)
        a = answer_share(d, k, it, last + 1);
    if (it->passages)
        p = passage_share(d, k, it, w->first);
    return a < 0 || p < 0 ? -1 : adjust(d, it, combine(it, q, a, p));
}

static int judge(const struct decon *d, const struct cluster *k, struct span text, struct eval_hits *hits)
{
    for (size_t i = 0; i < k->n && hits->n < MAX_HITS; i++) {
        const struct member *w = &k->v[i];
        const struct eval_item *it = &d->evals->v[w->item];
        double score = score_of(d, k, w);
        const struct hashed_word *first = &k->words.w[w->first], *last = &k->words.w[w->last + (uint32_t)d->width - 1];
        struct eval_hit hit = {.item = w->item, .rule = DECON_SCORE, .value = score, .threshold = d->threshold,
                               .placed = true, .text = {text.p + first->off, last->end - first->off},
                               .part = {it->text.p, it->question}};
        if (score < 0)
            return ERR_NOMEM;
        hit.around = hit.text;
        if (score >= d->threshold)
            TRY(eval_hits_add(hits, &hit));
    }
    return 0;
}

static int by_score(const void *a, const void *b)
{
    const struct eval_hit *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return x->text.p < y->text.p ? -1 : x->text.p > y->text.p;
}

static int sample(const struct decon *d, struct cluster *k, struct span text, struct eval_hits *hits)
{
    size_t width = (size_t)d->width, n_grams = k->words.n - width + 1;

    for (size_t at = 0; at < n_grams && hits->n < MAX_HITS;) {
        const struct posting_slot *s = postings_lookup(&d->question, gram_hash(k->hash + at, d->width));
        if (!s) {
            at += (size_t)d->every;
            continue;
        }
        if (s->count > d->hot) { /* says nothing: look at the next word */
            at++;
            continue;
        }
        TRY(open_cluster(d, k, at, s));
        grow(d, k, at, -1, n_grams);
        at = grow(d, k, at, 1, n_grams) + 1;
        TRY(judge(d, k, text, hits));
    }
    return 0;
}

static int decon_find(void *m, void *thread, struct span text, struct arena *a, struct eval_hits *hits,
                      struct err *e)
{
    const struct decon *d = m;
    struct cluster *k = thread;

    (void)a;
    TRY(hashed_words_cleaned(&k->words, text, e));
    if (k->words.n < 2 * (size_t)d->width)
        return 0;
    if (k->words.n > k->cap_hash) {
        free(k->hash);
        k->cap_hash = 0;
        k->hash = malloc(k->words.cap * sizeof *k->hash);
        if (!k->hash)
            return err_set(e, ERR_NOMEM, "out of memory for a document");
        k->cap_hash = k->words.cap;
    }
    for (size_t i = 0; i < k->words.n; i++)
        k->hash[i] = k->words.w[i].hash;
    if (sample(d, k, text, hits) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the matches of a document");
    if (hits->n)
        qsort(hits->v, hits->n, sizeof *hits->v, by_score);
    return 0;
}

static void decon_describe(void *m, size_t *skipped, size_t *bytes)
{
    const struct decon *d = m;

    *skipped = d->skipped;
    *bytes = postings_bytes(&d->question) + postings_bytes(&d->answer) + postings_bytes(&d->passage) +
             d->evals->n * sizeof *d->item + d->words.used;
}

const struct eval_method eval_method_decon = {
    .name = "decon",
    .open = decon_open,
    .close = decon_close,
    .thread_open = decon_thread_open,
    .thread_close = decon_thread_close,
    .find = decon_find,
    .describe = decon_describe,
};
