/* The rules of FineWeb-2 (Penedo et al. 2025): datatrove's filters in the order and with the
 * thresholds and stop words, a set a language, of its pipeline, on words as ICU cuts them.
 * FineWeb-2 cuts words with a tokenizer a language, so that some decisions differ. */
#include "curate/filter/filter_preset.h"

#include <stdlib.h>

/* Filters whose rules are asked, each with its own state. */
static const struct preset *const filters[] = {&filter_gopher_repetition, &filter_fineweb, &filter_gopher_quality};
enum { REPETITION, FINEWEB, QUALITY, N_FILTERS, N_RULES = 26 };

struct fineweb2 {
    unsigned have;
    void *own[N_FILTERS];
    struct setting set[N_FILTERS][MAX_RULES]; /* what they have by themselves */
    struct {
        int filter;
        const struct rule *rule;
    } asks[N_RULES];
};

/* The argument of a rule: its number, and above that which number of the language it goes by. */
#define ARG(i, number) ((i) | (number) << 8)

static bool prepare(struct filter_text *t, struct fineweb2 *f);

/* The signal of rule number i, asked of its filter. */
static double ask(struct filter_text *t, int arg)
{
    struct fineweb2 *f = t->own;
    const struct setting *set = t->set;
    int i = arg & 0xFF;
    double value;

    if (!prepare(t, f))
        return 0;
    if (filter_first(&f->have, 1))
        for (int k = 0; k < N_FILTERS; k++)
            memset(f->own[k], 0, sizeof(unsigned));
    t->own = f->own[f->asks[i].filter];
    t->set = f->set[f->asks[i].filter];
    value = f->asks[i].rule->signal(t, f->asks[i].rule->arg);
    t->own = f;
    t->set = set;
    return value;
}

/* 0 turns a rule off in datatrove, but for line_punct_ratio, where it makes no difference. */
static double limit(struct filter_text *t, int arg)
{
    double x = lang_number(filter_lang(t), (enum lang_number)(arg >> 8));

    return x == 0 ? RULE_OFF : x;
}

static double unknown_language(struct filter_text *t, int arg)
{
    (void)arg;
    return isnan(lang_number(filter_lang(t), LANG_DUP_LINE_FRAC));
}

#define FIXED(i, name_, kind_, threshold_) \
    [i] = {RULE(name_, ask, ARG(i, 0), kind_, threshold_, NULL), .needs = NEEDS_LANG, .key = "fineweb2_" name_}
#define BY_LANG(i, name_, kind_, number) \
    [i] = {RULE(name_, ask, ARG(i, number), kind_, 0, NULL), .needs = NEEDS_LANG, .key = "fineweb2_" name_, .limit = limit}
static const struct rule rules[N_RULES + 1] = {
    {RULE("unknown_language", unknown_language, 0, RULE_ABOVE, 0, "1 if the language has no numbers"), .needs = NEEDS_LANG},
    FIXED(1, "empty", RULE_ABOVE, 0),
    BY_LANG(2, "dup_line_frac", RULE_ABOVE, LANG_DUP_LINE_FRAC),
    BY_LANG(3, "top_2_gram", RULE_ABOVE, LANG_TOP_2_GRAMS),
    BY_LANG(4, "top_3_gram", RULE_ABOVE, LANG_TOP_3_GRAMS),
    BY_LANG(5, "top_4_gram", RULE_ABOVE, LANG_TOP_4_GRAMS),
    BY_LANG(6, "duplicated_5_n_grams", RULE_ABOVE, LANG_DUP_5_GRAMS),
    BY_LANG(7, "duplicated_6_n_grams", RULE_ABOVE, LANG_DUP_6_GRAMS),
    BY_LANG(8, "duplicated_7_n_grams", RULE_ABOVE, LANG_DUP_7_GRAMS),
    BY_LANG(9, "duplicated_8_n_grams", RULE_ABOVE, LANG_DUP_8_GRAMS),
    BY_LANG(10, "duplicated_9_n_grams", RULE_ABOVE, LANG_DUP_9_GRAMS),
    BY_LANG(11, "duplicated_10_n_grams", RULE_ABOVE, LANG_DUP_10_GRAMS),
    [12] = {RULE("no_lines", ask, ARG(12, 0), RULE_ABOVE, 0, "1 if there is no line"), /* FineWeb's "empty" */
            .needs = NEEDS_LANG, .key = "fineweb2_no_lines"},
    BY_LANG(13, "line_punct_ratio", RULE_BELOW, LANG_LINE_PUNCT_THR),
    FIXED(14, "char_dup_ratio", RULE_ABOVE, 0.1),
    BY_LANG(15, "list_ratio", RULE_ABOVE, LANG_NEW_LINE_RATIO),
    FIXED(16, "gopher_short_doc", RULE_BELOW, 50),
    FIXED(17, "gopher_long_doc", RULE_ABOVE, 100000),
    BY_LANG(18, "gopher_below_avg_threshold", RULE_BELOW, LANG_MIN_AVG_WORD_LENGTH),
    BY_LANG(19, "gopher_above_avg_threshold", RULE_ABOVE, LANG_MAX_AVG_WORD_LENGTH),
    FIXED(20, "gopher_too_many_hashes", RULE_ABOVE, 0.1),
    FIXED(21, "gopher_too_many_ellipsis", RULE_ABOVE, 0.1),
    FIXED(22, "gopher_too_many_bullets", RULE_ABOVE, 0.9),
    FIXED(23, "gopher_too_many_end_ellipsis", RULE_ABOVE, 0.3),
    BY_LANG(24, "gopher_below_alpha_threshold", RULE_BELOW, LANG_MAX_NON_ALPHA_WORDS_RATIO),
    FIXED(25, "gopher_enough_stop_words", RULE_BELOW, 2),
};

/* Finds the rule of that name in the filters. */
static void find_rule(struct fineweb2 *f, int i)
{
    bool lines = strcmp(rules[i].name, "no_lines") == 0;

    for (int k = lines ? FINEWEB : 0; k < N_FILTERS && !f->asks[i].rule; k++)
        for (const struct rule *r = filters[k]->rules; r->name && !f->asks[i].rule; r++)
            if (strcmp(r->name, lines ? "empty" : rules[i].name) == 0) {
                f->asks[i].filter = k;
                f->asks[i].rule = r;
            }
}

/* Makes the states of the filters when first asked. */
static bool prepare(struct filter_text *t, struct fineweb2 *f)
{
    if (f->own[N_FILTERS - 1])
        return true;
    for (int k = 0; k < N_FILTERS; k++) {
        const struct rule *r = filters[k]->rules;

        f->own[k] = f->own[k] ? f->own[k] : calloc(1, filters[k]->size);
        if (!f->own[k]) {
            filter_fail(t, ERR_NOMEM, "a filter");
            return false;
        }
        for (int i = 0; r[i].name; i++)
            f->set[k][i].threshold = r[i].threshold;
    }
    for (int i = 1; i < N_RULES; i++)
        find_rule(f, i);
    return true;
}

static void release(void *own)
{
    struct fineweb2 *f = own;

    for (int k = 0; k < N_FILTERS; k++) {
        if (f->own[k] && filters[k]->free)
            filters[k]->free(f->own[k]);
        free(f->own[k]);
    }
}

const struct preset filter_fineweb2 = {
    .name = "fineweb2-icu",
    .source = "FineWeb-2's pipeline and configs; Penedo et al. 2025; words by ICU",
    .rules = rules,
    .size = sizeof(struct fineweb2),
    .free = release,
};
