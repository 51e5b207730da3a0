/* The method quern: runs of words that a question has too, compared word by word. */
#include <stdlib.h>

#include "curate/decontaminate/decontaminate_grams.h"
#include "curate/decontaminate/decontaminate_method.h"

/* Where SEED words of an item begin, the words around are compared; looking at every
 * other word of the document is enough to meet each run of SEED + 1. */
enum { SEED = 7, STRIDE = 2, BATCH = 64 };
/* A shorter question is too common to be looked for. */
enum { MIN_OWN = SEED + 1 };
/* An aligned stretch grows over words that differ while its score, one up for a word that
 * is the same and MISS down for another, stays within DROP of its best. */
enum { MISS = 2, DROP = 6 };
/* Fewer words in place are no evidence. */
enum { MIN_MATCHED = 12 };
enum { MAX_HITS = 1000, SEEN = 1024, FEW = 64 };

struct quern {
    const struct eval_set *evals;
    struct gram_index grams;
    uint32_t *question; /* words of each item that must be found: its question's */
    uint32_t run;       /* words in a row that are enough */
    double threshold;
    size_t skipped;
};

/* Words [db, de) of the document against [qb, qe) of the item, one for one. */
struct stretch {
    uint32_t item, db, de, qb, qe;
    uint32_t run;      /* the longest run of equal words, */
    uint32_t run_at;   /*   and where it begins, from db */
};

struct finder {
    struct hashed_words words, part;
    struct stretch *v;
    size_t n, cap;
    /* Where a stretch of an item on a diagonal ended: there is no need to find it again. */
    struct { uint64_t key; uint32_t until; } seen[SEEN];
    bool any_seen;
    uint64_t *mark; /* bits: words of the question at hand that are in place */
    size_t cap_mark;
};

static int add_item(struct quern *q, struct hashed_words *ws, uint32_t *own, const struct eval_item *it,
                    struct err *e)
{
    TRY(hashed_words_plain(ws, (struct span){it->text.p, it->question}, e));
    *own = (uint32_t)ws->n;
    TRY(hashed_words_plain(ws, it->text, e));
    if (*own < MIN_OWN)
        *own = (uint32_t)ws->n;
    q->skipped += *own < MIN_OWN;
    return gram_index_add(&q->grams, ws, e);
}

static void quern_close(void *m)
{
    struct quern *q = m;

    if (!q)
        return;
    gram_index_free(&q->grams);
    free(q->question);
    free(q);
}

static int quern_open(void **m, const struct decontaminate_conf *c, const struct eval_set *evals, struct err *e)
{
    struct quern *q = calloc(1, sizeof *q);
    struct hashed_words ws = {0};
    int rc = 0;

    *m = q;
    if (q)
        q->question = calloc(evals->n + 1, sizeof *q->question);
    if (!q || !q->question)
        return err_set(e, ERR_NOMEM, "out of memory for %zu questions", evals->n);
    if (c->words && c->words < MIN_OWN)
        return err_set(e, ERR_ARG, "quern needs %d words in a row or more, not %lld", MIN_OWN, (long long)c->words);
    q->evals = evals;
    q->run = c->words ? (uint32_t)c->words : 13;
    q->threshold = c->threshold > 0 ? c->threshold : 0.8;
    for (size_t i = 0; i < evals->n && rc == 0; i++)
        rc = add_item(q, &ws, &q->question[i], &evals->v[i], e);
    hashed_words_free(&ws);
    return rc < 0 ? rc : gram_index_build(&q->grams, SEED, e);
}

static int quern_thread_open(void *m, void **thread, struct err *e)
{
    (void)m;
    *thread = calloc(1, sizeof(struct finder));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "out of memory for a thread");
}

static void quern_thread_close(void *m, void *thread)
{
    struct finder *f = thread;

    (void)m;
    hashed_words_free(&f->words);
    hashed_words_free(&f->part);
    free(f->v);
    free(f->mark);
    free(f);
}

/* ---- stretches ---- */

/* How many words from d[0] and q[0] on, at most n, belong to the stretch. */
static uint32_t reach(const struct hashed_word *d, const uint64_t *q, uint32_t n)
{
    int score = 0, best = 0;
    uint32_t end = 0;

    for (uint32_t i = 0; i < n && score >= best - DROP; i++) {
        score += d[i].hash == q[i] ? 1 : -MISS;
        if (score > best) {
            best = score;
            end = i + 1;
        }
    }
    return end;
}

/* The same backwards: from d[-1] and q[-1]. */
static uint32_t reach_back(const struct hashed_word *d, const uint64_t *q, uint32_t n)
{
    int score = 0, best = 0;
    uint32_t end = 0;

    for (uint32_t i = 1; i <= n && score >= best - DROP; i++) {
        score += d[-(ptrdiff_t)i].hash == q[-(ptrdiff_t)i] ? 1 : -MISS;
        if (score > best) {
            best = score;
            end = i;
        }
    }
    return end;
}

static uint32_t least(size_t a, size_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static void longest_run(struct stretch *s, const struct hashed_word *d, const uint64_t *q)
{
    uint32_t run = 0;

    for (uint32_t i = 0; i < s->de - s->db; i++) {
        run = d[i].hash == q[i] ? run + 1 : 0;
        if (run > s->run) {
            s->run = run;
            s->run_at = i + 1 - run;
        }
    }
}

static int put_stretch(struct finder *f, const struct stretch *s)
{
    TRY(mem_grow(&f->v, &f->cap, f->n + 1, sizeof *f->v));
    f->v[f->n++] = *s;
    return 0;
}

/* The stretch around word `at` of the document and `place` of the index, if they begin
 * SEED equal words and it is not known yet. */
static int take_place(const struct quern *q, struct finder *f, uint32_t at, uint32_t place)
{
    const struct gram_index *x = &q->grams;
    const struct hashed_word *d = f->words.w + at;
    const uint64_t *w = x->word + place;
    uint64_t key = (uint64_t)place - at + 1; /* the same along a diagonal, and unlike for different items */
    size_t slot = (key * GRAM_FACTOR) >> 54;
    struct stretch s;

    if (f->any_seen && f->seen[slot].key == key && at < f->seen[slot].until)
        return 0;
    for (int i = 0; i < SEED; i++)
        if (d[i].hash != w[i])
            return 0;
    s = (struct stretch){.item = gram_index_text(x, place)};
    s.qb = place - x->start[s.item];
    s.db = reach_back(d, w, least(s.qb, at));
    s.de = SEED + reach(d + SEED, w + SEED,
                        least(x->start[s.item + 1] - place - SEED, f->words.n - at - SEED));
    s.qe = s.qb + s.de;
    s.qb -= s.db;
    s.db = at - s.db;
    s.de += at;
    longest_run(&s, f->words.w + s.db, x->word + x->start[s.item] + s.qb);
    if (!f->any_seen)
        memset(f->seen, 0, sizeof f->seen);
    f->any_seen = true;
    f->seen[slot].key = key;
    f->seen[slot].until = s.de;
    return put_stretch(f, &s);
}

static int take_gram(const struct quern *q, struct finder *f, uint32_t at, uint64_t hash)
{
    const struct gram_slot *s = gram_find(&q->grams, hash);

    for (uint32_t p = s ? s->first : GRAM_NONE; p != GRAM_NONE; p = q->grams.next[p])
        TRY(take_place(q, f, at, p));
    return 0;
}

/* Asks the filter for a batch of grams at a time, so that its answers come together. */
static int find_stretches(const struct quern *q, struct finder *f)
{
    const struct hashed_word *w = f->words.w;
    const struct gram_index *x = &q->grams;
    size_t n = f->words.n, i = SEED;
    uint64_t hash = 0, batch[BATCH];

    for (size_t k = 0; k < SEED; k++)
        hash = gram_push(hash, w[k].hash);
    for (size_t at = 0; at + SEED <= n;) {
        size_t count = 0, from = at;
        for (; count < BATCH && at + SEED <= n; at += STRIDE) {
            batch[count++] = hash;
            for (int k = 0; k < STRIDE && i < n; k++, i++)
                hash = gram_drop(x, gram_push(hash, w[i].hash), w[i - SEED].hash);
        }
        for (size_t k = 0; k < count; k++)
            if (gram_maybe(x, batch[k]))
                TRY(take_gram(q, f, (uint32_t)(from + k * STRIDE), batch[k]));
    }
    return 0;
}

/* ---- what they say ---- */

static int by_item(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;

    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return x->qb < y->qb ? -1 : x->qb > y->qb;
}

/* The bytes of words [from, to) of the document and of the item. */
static int place_hit(const struct quern *q, struct finder *f, struct span text, uint32_t db, uint32_t de,
                     uint32_t qb, uint32_t qe, struct eval_hit *hit, struct err *e)
{
    const struct hashed_word *d = f->words.w, *w;
    struct span of = q->evals->v[hit->item].text;

    TRY(hashed_words_plain(&f->part, of, e));
    w = f->part.w;
    hit->placed = true;
    hit->text = hit->around = (struct span){text.p + d[db].off, d[de - 1].end - d[db].off};
    hit->part = (struct span){of.p + w[qb].off, w[qe - 1].end - w[qb].off};
    return 0;
}

/* A run that is long enough, or is the whole of a short question. */
static bool says_run(const struct quern *q, const struct stretch *s, uint32_t own)
{
    uint32_t at = s->qb + s->run_at;

    return s->run >= q->run || (own >= MIN_OWN && at == 0 && s->run >= own);
}

static int add_run(const struct quern *q, struct finder *f, struct span text, const struct stretch *s,
                   struct eval_hits *hits, struct err *e)
{
    uint32_t own = q->question[s->item];
    const struct hashed_word *first = &f->words.w[s->db], *last = &f->words.w[s->de - 1];
    struct eval_hit hit = {.item = s->item, .rule = DECON_WORDS, .value = s->run,
                           .threshold = own < q->run && s->run >= own ? own : q->run};

    TRY(place_hit(q, f, text, s->db + s->run_at, s->db + s->run_at + s->run, s->qb + s->run_at,
                  s->qb + s->run_at + s->run, &hit, e));
    hit.around = (struct span){text.p + first->off, last->end - first->off};
    return eval_hits_add(hits, &hit);
}

static int make_marks(struct finder *f, uint32_t words)
{
    size_t need = words / 64 + 1;

    if (need > f->cap_mark) {
        free(f->mark);
        f->cap_mark = 0;
        f->mark = malloc(2 * need * sizeof *f->mark);
        if (!f->mark)
            return ERR_NOMEM;
        f->cap_mark = 2 * need;
    }
    memset(f->mark, 0, need * sizeof *f->mark);
    return 0;
}

/* Marks the question's words that the stretch has in place; returns how many are new. */
static uint32_t mark_words(const struct quern *q, struct finder *f, const struct stretch *s, uint32_t own)
{
    const uint64_t *w = q->grams.word + q->grams.start[s->item];
    uint32_t fresh = 0;

    for (uint32_t i = s->qb; i < s->qe && i < own; i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        if (f->words.w[s->db + (i - s->qb)].hash == w[i] && !(f->mark[i / 64] & bit)) {
            f->mark[i / 64] |= bit;
            fresh++;
        }
    }
    return fresh;
}

/* The stretches [v, v + n) of an item that stand together: the share of the question that
 * they have in place. */
static int add_share(const struct quern *q, struct finder *f, struct span text, const struct stretch *v, size_t n,
                     struct eval_hits *hits, struct err *e)
{
    uint32_t own = q->question[v->item], matched = 0, qb = UINT32_MAX, qe = 0, de = 0;
    struct eval_hit hit = {.item = v->item, .rule = DECON_SHARE, .threshold = q->threshold};

    if (make_marks(f, own) < 0)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        matched += mark_words(q, f, &v[i], own);
        qb = least(qb, v[i].qb);
        qe = v[i].qe > qe ? v[i].qe : qe;
        de = v[i].de > de ? v[i].de : de;
    }
    hit.value = own ? (double)matched / own : 0;
    if (matched < MIN_MATCHED || hit.value < q->threshold)
        return 0;
    TRY(place_hit(q, f, text, v->db, de, qb, qe, &hit, e));
    return eval_hits_add(hits, &hit);
}

/* Stretches of one item, in the order of the document: those that begin within twice the
 * question's length of the first are looked at together. */
static int judge_item(const struct quern *q, struct finder *f, struct span text, const struct stretch *v, size_t n,
                      struct eval_hits *hits, struct err *e)
{
    uint32_t own = q->question[v->item];

    for (size_t from = 0, to; from < n && hits->n < MAX_HITS;) {
        size_t before = hits->n;
        for (to = from; to < n && v[to].db - v[from].db <= 2 * own + 20; to++)
            if (says_run(q, &v[to], own))
                TRY(add_run(q, f, text, &v[to], hits, e));
        if (hits->n == before)
            TRY(add_share(q, f, text, v + from, to - from, hits, e));
        from = hits->n > before || to - from > FEW ? to : from + 1;
    }
    return 0;
}

/* The strongest first: words before shares, then by value, then in order of the items. */
static int by_strength(const void *a, const void *b)
{
    const struct eval_hit *x = a, *y = b;

    if (x->rule != y->rule)
        return x->rule == DECON_WORDS ? -1 : 1;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return x->text.p < y->text.p ? -1 : x->text.p > y->text.p;
}

static int quern_find(void *m, void *thread, struct span text, struct arena *a, struct eval_hits *hits,
                      struct err *e)
{
    const struct quern *q = m;
    struct finder *f = thread;

    (void)a;
    TRY(hashed_words_plain(&f->words, text, e));
    f->n = 0;
    f->any_seen = false;
    if (f->words.n < SEED)
        return 0;
    if (find_stretches(q, f) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the matches of a document");
    if (!f->n)
        return 0;
    qsort(f->v, f->n, sizeof *f->v, by_item);
    for (size_t from = 0, to; from < f->n; from = to) {
        int rc;
        for (to = from; to < f->n && f->v[to].item == f->v[from].item;)
            to++;
        rc = judge_item(q, f, text, f->v + from, to - from, hits, e);
        if (rc < 0)
            return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for the matches of a document") : rc;
    }
    if (hits->n)
        qsort(hits->v, hits->n, sizeof *hits->v, by_strength);
    return 0;
}

static void quern_describe(void *m, size_t *skipped, size_t *bytes)
{
    const struct quern *q = m;

    *skipped = q->skipped;
    *bytes = gram_index_bytes(&q->grams);
}

const struct eval_method eval_method_quern = {
    .name = "quern",
    .open = quern_open,
    .close = quern_close,
    .thread_open = quern_thread_open,
    .thread_close = quern_thread_close,
    .find = quern_find,
    .describe = quern_describe,
};
