/* The method datatrove: NGramsDecontIndexer and NGramsDecontFilter of datatrove 0.10.
 * Words of simplified text (curate/dedup/minhash_text.h), joined by single spaces; XXH64 of
 * each n of them is looked up among those of the answers and of the seams between
 * question and answer. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "curate/decontaminate/decontaminate_method.h"
#include "curate/dedup/minhash_text.h"

/* The item that has a gram; ITEM_NONE: free.  Of several the last, as in a dictionary
 * that is filled in order. */
struct trove_slot {
    uint64_t hash;
    uint32_t item;
};
#define ITEM_NONE UINT32_MAX

struct trove {
    const struct eval_set *evals;
    struct minhash_preset words; /* what the shingler is asked for */
    bool query, overlap;
    struct trove_slot *slot;
    size_t mask, used, skipped;
};

static struct trove_slot *slot_of(const struct trove *t, uint64_t hash)
{
    size_t at = hash & t->mask;

    while (t->slot[at].item != ITEM_NONE && t->slot[at].hash != hash)
        at = (at + 1) & t->mask;
    return &t->slot[at];
}

static struct trove_slot *slots_new(size_t n)
{
    struct trove_slot *s = malloc(n * sizeof *s);

    for (size_t i = 0; s && i < n; i++)
        s[i].item = ITEM_NONE;
    return s;
}

static int put_gram(struct trove *t, uint64_t hash, uint32_t item)
{
    struct trove_slot *s;

    if (t->used > t->mask / 2) {
        struct trove old = *t;
        t->slot = slots_new(2 * (old.mask + 1));
        if (!t->slot) {
            t->slot = old.slot;
            return ERR_NOMEM;
        }
        t->mask = 2 * old.mask + 1;
        for (size_t i = 0; i <= old.mask; i++)
            if (old.slot[i].item != ITEM_NONE)
                *slot_of(t, old.slot[i].hash) = old.slot[i];
        free(old.slot);
    }
    s = slot_of(t, hash);
    t->used += s->item == ITEM_NONE;
    *s = (struct trove_slot){hash, item};
    return 0;
}

/* ---- the index ---- */

/* The grams of a text, and a copy of its words. */
static int put_text(struct trove *t, struct shingler *sh, struct span text, bool grams, uint32_t item,
                    struct buf *words, struct err *e)
{
    const uint64_t *hash;
    size_t n;

    TRY(shingler_run(sh, text, &hash, &n, e));
    buf_clear(words);
    if (buf_put_span(words, shingler_words(sh)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the questions");
    for (size_t i = 0; i < n && grams; i++)
        if (put_gram(t, hash[i], item) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for the n-grams of the questions");
    return 0;
}

/* n words from the end, or from the beginning; p is NULL if there are not so many. */
static struct span last_words(struct span s, int n)
{
    const char *p = s.p + s.n;

    for (; p > s.p; p--)
        if (p[-1] == ' ' && --n == 0)
            return (struct span){p, (size_t)(s.p + s.n - p)};
    return n == 1 && s.n ? s : (struct span){0};
}

static struct span first_words(struct span s, int n)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ' ' && --n == 0)
            return (struct span){s.p, i};
    return n == 1 && s.n ? s : (struct span){0};
}

/* Grams that begin in the question and end in the answer. */
static int put_seam(struct trove *t, struct span question, struct span answer, uint32_t item, struct buf *gram)
{
    for (int i = 1; i < t->words.width; i++) {
        struct span q = last_words(question, t->words.width - i), a = first_words(answer, i);
        if (!q.p || !a.p)
            continue;
        buf_clear(gram);
        TRY(buf_put_span(gram, q));
        TRY(buf_putc(gram, ' '));
        TRY(buf_put_span(gram, a));
        TRY(put_gram(t, hash_xxh64(buf_span(gram), 0), item));
    }
    return 0;
}

static int put_item(struct trove *t, struct shingler *sh, struct buf w[3], uint32_t item, struct err *e)
{
    const struct eval_item *it = &t->evals->v[item];
    size_t before = t->used;

    TRY(put_text(t, sh, eval_answer(it), true, item, &w[0], e));
    TRY(put_text(t, sh, (struct span){it->text.p, it->question}, t->query, item, &w[1], e));
    if (t->overlap && put_seam(t, buf_span(&w[1]), buf_span(&w[0]), item, &w[2]) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the n-grams of the questions");
    t->skipped += t->used == before;
    return 0;
}

static int build(struct trove *t, struct err *e)
{
    struct shingler *sh = NULL;
    struct buf w[3] = {{0}};
    int rc = shingler_new(&sh, &t->words, 0, e);

    for (size_t i = 0; i < t->evals->n && rc == 0; i++)
        rc = put_item(t, sh, w, (uint32_t)i, e);
    for (int i = 0; i < 3; i++)
        buf_free(&w[i]);
    shingler_free(sh);
    return rc;
}

static void trove_close(void *m)
{
    struct trove *t = m;

    free(t->slot);
    free(t);
}

static int trove_open(void **m, const struct decontaminate_conf *c, const struct eval_set *evals, struct err *e)
{
    struct trove *t = calloc(1, sizeof *t);

    *m = t;
    if (t)
        t->slot = slots_new(1024);
    if (!t || !t->slot)
        return err_set(e, ERR_NOMEM, "out of memory");
    t->mask = 1023;
    t->evals = evals;
    t->words = (struct minhash_preset){
        .name = "datatrove", .kind = SHINGLE_TROVE_WORDS, .width = c->words ? (int)c->words : 12};
    t->query = c->query_grams;
    t->overlap = c->overlap_grams;
    return build(t, e);
}

/* ---- documents ---- */

static int trove_thread_open(void *m, void **thread, struct err *e)
{
    struct trove *t = m;
    struct shingler *s = NULL;
    int rc = shingler_new(&s, &t->words, 0, e);

    *thread = s;
    return rc;
}

static void trove_thread_close(void *m, void *thread)
{
    (void)m;
    shingler_free(thread);
}

/* The first gram of the words that has this hash. */
static struct span gram_at(struct span words, int width, uint64_t hash)
{
    for (const char *p = words.p, *end = words.p + words.n; p && p < end;) {
        struct span gram = first_words((struct span){p, (size_t)(end - p)}, width);
        if (gram.p && hash_xxh64(gram, 0) == hash)
            return gram;
        p = memchr(p, ' ', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    return (struct span){0};
}

/* The first gram that is found decides. */
static int trove_find(void *m, void *thread, struct span text, struct arena *a, struct eval_hits *hits,
                      struct err *e)
{
    struct trove *t = m;
    const uint64_t *hash;
    size_t n;

    TRY(shingler_run(thread, text, &hash, &n, e));
    for (size_t i = 0; i < n; i++) {
        const struct trove_slot *s = slot_of(t, hash[i]);
        struct eval_hit hit = {.item = s->item, .rule = DECON_NGRAM, .value = t->words.width, .threshold = NAN};
        if (s->item == ITEM_NONE)
            continue;
        hit.text = arena_dup(a, gram_at(shingler_words(thread), t->words.width, hash[i]));
        if (!hit.text.p || eval_hits_add(hits, &hit) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a match");
        break;
    }
    return 0;
}

static void trove_describe(void *m, size_t *skipped, size_t *bytes)
{
    const struct trove *t = m;

    *skipped = t->skipped;
    *bytes = (t->mask + 1) * sizeof *t->slot;
}

const struct eval_method eval_method_datatrove = {
    .name = "datatrove",
    .open = trove_open,
    .close = trove_close,
    .thread_open = trove_thread_open,
    .thread_close = trove_thread_close,
    .find = trove_find,
    .describe = trove_describe,
};
