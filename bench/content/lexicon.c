#include "bench/content/trainer.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

enum { MAX_WORDS_SLOTS = 3800 };

struct token {
    uint32_t hash;
    float yes, no, domains, by_kind[CONTENT_KINDS], value;
};

static int by_value(const void *a, const void *b)
{
    const struct token *x = a, *y = b;

    return (x->value < y->value) - (x->value > y->value) ? (x->value < y->value) - (x->value > y->value)
                                                         : (x->hash > y->hash) - (x->hash < y->hash);
}

static int token_score(float yes, float no)
{
    enum { PRIOR = 3 };
    double s = 8 * log((yes + PRIOR * 0.5) / (no + PRIOR * 0.5));

    if (yes + no < 2.5f)
        return 0;
    return (int)lrint(fmax(-31, fmin(31, s)));
}

/* How much presence of a token says of the kind, in nats over all pages. */
static float says_kind(const struct token *k, const float pages[CONTENT_KINDS])
{
    double with = 0, all = 0, sum = 0;

    for (int i = 0; i < CONTENT_KINDS; i++) {
        with += k->by_kind[i];
        all += pages[i];
    }
    if (with < 6)
        return 0;
    for (int i = 0; i < CONTENT_KINDS; i++) {
        double expected = with * pages[i] / all, a = k->by_kind[i] + 0.5, b = pages[i] - k->by_kind[i] + 0.5;
        sum += a * log(a / (expected + 0.5)) + b * log(b / (pages[i] - expected + 0.5));
    }
    return (float)sum;
}

void learn_lexicon(struct content_trainer *t, int without)
{
    size_t n = 0, cap = 1 << 16;
    struct token *v;
    float pages[CONTENT_KINDS] = {0};
    uint32_t mask = (1u << 21) - 1, *slot = calloc(mask + 1u, sizeof *slot);

    v = malloc(cap * sizeof *v);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct sample *s = &t->sample[i];
        if (s->fold == without)
            continue;
        if (s->set == WCXB)
            pages[s->kind] += t->domain_weight[i];
        for (uint32_t k = 0; k < t->tokens[i].n; k++) {
            const struct seen *at = &t->tokens[i].v[k];
            uint32_t h = (uint32_t)hash_mix64(at->hash) & mask;
            while (slot[h] && v[slot[h] - 1].hash != at->hash)
                h = (h + 1) & mask;
            if (!slot[h]) {
                if (n == cap)
                    v = realloc(v, (cap *= 2) * sizeof *v);
                v[n++] = (struct token){.hash = at->hash};
                slot[h] = (uint32_t)n;
                if (n > mask * 0.8)
                    exit(3);
            }
            struct token *to = &v[slot[h] - 1];
            to->domains += t->domain_weight[i];
            if (s->set == WCXB)
                to->by_kind[s->kind] += t->domain_weight[i];
            if (at->all > 0) {
                to->yes += t->domain_weight[i] * at->yes / at->all;
                to->no += t->domain_weight[i] * (1 - at->yes / at->all);
            }
        }
    }
    free(slot);
    content_lexicon_init(&t->lexicon);
    memset(t->yes, 0, sizeof t->yes);
    memset(t->no, 0, sizeof t->no);
    for (size_t i = 0; i < n; i++)
        v[i].value = says_kind(&v[i], pages);
    qsort(v, n, sizeof *v, by_value);
    uint32_t taken = 0;
    for (size_t i = 0; i < n && i < CONTENT_TOKENS; i++, taken++) {
        content_lexicon_put(&t->lexicon, v[i].hash, 0, (unsigned)i + 1);
        v[i].value = 1e9f;
    }
    for (size_t i = 0; i < n; i++)
        if (i >= CONTENT_TOKENS)
            v[i].value = v[i].yes + v[i].no < 5 ? 0 : sqrtf(v[i].yes + v[i].no) * (float)abs(token_score(v[i].yes, v[i].no));
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i < n && (i < CONTENT_TOKENS || (taken < MAX_WORDS_SLOTS && v[i].value > 0)); i++) {
        uint32_t at = content_lexicon_slot(&t->lexicon, v[i].hash);
        taken += !t->lexicon.hash[at];
        content_lexicon_put(&t->lexicon, v[i].hash, token_score(v[i].yes, v[i].no), t->lexicon.token[at]);
        t->yes[at] = v[i].yes;
        t->no[at] = v[i].no;
    }
    free(v);
}

/* Takes what pages of sample i's domain have taught out of the lexicon, or puts it back. */
static void forget(struct content_trainer *t, uint32_t i, int without, bool back)
{
    for (uint32_t j = 0; j < t->n; j++) {
        if (t->sample[j].domain != t->sample[i].domain || t->sample[j].fold == without)
            continue;
        for (uint32_t k = 0; k < t->tokens[j].n; k++) {
            const struct seen *at = &t->tokens[j].v[k];
            uint32_t slot = content_lexicon_slot(&t->lexicon, at->hash);
            if (!t->lexicon.hash[slot] || at->all <= 0)
                continue;
            float w = t->domain_weight[j], yes = t->yes[slot], no = t->no[slot];
            static float saved_yes[CONTENT_LEXICON_SLOTS], saved_no[CONTENT_LEXICON_SLOTS];
            if (!back) {
                saved_yes[slot] += w * at->yes / at->all;
                saved_no[slot] += w * (1 - at->yes / at->all);
            } else {
                saved_yes[slot] = saved_no[slot] = 0;
            }
            t->lexicon.score[slot] =
                (int8_t)token_score(fmaxf(0, yes - saved_yes[slot]), fmaxf(0, no - saved_no[slot]));
        }
    }
}

void read_unknown(struct content_trainer *t, uint32_t i, int without)
{
    const struct sample *s = &t->sample[i];

    if (s->fold != without)
        forget(t, i, without, false);
    desk_read(&t->desk, s, &t->lexicon);
    if (s->fold != without)
        forget(t, i, without, true);
}
