#include "curate/plan/stages.h"

#include "curate/language/classify.h"
#include "curate/clean/clean.h"
#include "curate/decontaminate/decontaminate.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/dedup_lines.h"
#include "curate/dedup/dedup_ranks.h"
#include "curate/dedup/dedup_substring.h"
#include "curate/dedup/dedup_text.h"
#include "curate/extract/extract.h"
#include "curate/filter/filter.h"
#include "curate/language/langid.h"

/* The common form of stage x with its struct x_conf and options OPTS. */
#define FORM(x, OPTS)                                                        \
    static void x##_init(void *conf) { x##_conf_init(conf); }                \
    static void x##_options(void *conf, struct opt out[STAGE_MAX_OPTS])      \
    {                                                                        \
        struct x##_conf *c = conf;                                           \
        const struct opt opts[] = {OPTS(*c), OPT_END};                       \
        _Static_assert(sizeof opts <= STAGE_MAX_OPTS * sizeof *opts, "room"); \
        memcpy(out, opts, sizeof opts);                                      \
    }                                                                        \
    static int x##_open(struct stage *s, const void *conf, struct err *e)    \
    {                                                                        \
        return x##_stage_open(s, conf, e);                                   \
    }
/* The same of a stage that several ranks can do. */
#define RANKS_FORM(x)                                                                            \
    static int x##_open_rank(struct stage *s, struct comm *c, const void *conf, struct err *e)   \
    {                                                                                            \
        return x##_ranks_open(s, c, conf, e);                                                    \
    }
#define KIND(name, x, rules, open_rank) \
    {name, sizeof(struct x##_conf), x##_init, rules, x##_options, x##_open, open_rank}

#if HAVE_ICU
FORM(classify, CLASSIFY_OPTS)
FORM(clean, CLEAN_OPTS)
FORM(decontaminate, DECONTAMINATE_OPTS)
FORM(dedup_exact, DEDUP_EXACT_OPTS)
FORM(dedup_fuzzy, DEDUP_FUZZY_OPTS)
FORM(dedup_lines, DEDUP_LINES_OPTS)
RANKS_FORM(dedup_exact)
RANKS_FORM(dedup_fuzzy)
#endif
#if HAVE_ICU && HAVE_PSL
FORM(filter, FILTER_OPTS)
#endif
#if HAVE_ICU && HAVE_DIVSUFSORT
FORM(dedup_substring, DEDUP_SUBSTRING_OPTS)
#endif
#if HAVE_CLD2
FORM(langid, LANGID_OPTS)
#endif

static const struct stage_kind kinds[] = {
#if HAVE_ICU
    KIND("classify score", classify, classify_rules, NULL),
    KIND("clean", clean, NULL, NULL),
    KIND("decontaminate", decontaminate, decontaminate_rules, NULL),
    KIND("dedup exact", dedup_exact, dedup_exact_rules, dedup_exact_open_rank),
    KIND("dedup fuzzy", dedup_fuzzy, dedup_fuzzy_rules, dedup_fuzzy_open_rank),
    KIND("dedup lines", dedup_lines, dedup_text_rules, NULL),
#endif
#if HAVE_ICU && HAVE_PSL
    KIND("filter", filter, NULL, NULL),
#endif
#if HAVE_ICU && HAVE_DIVSUFSORT
    KIND("dedup substring", dedup_substring, dedup_text_rules, NULL),
#endif
#if HAVE_CLD2
    KIND("langid", langid, langid_rules, NULL),
#endif
};

const struct stage_kind *stage_kind_at(int i)
{
    return i >= 0 && (size_t)i < sizeof kinds / sizeof *kinds ? &kinds[i] : NULL;
}

const struct stage_kind *stage_kind_find(struct span name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (span_is(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

static const struct stage_rule *find_rule(const struct stage_rule *r, struct span rule)
{
    while (r && r->name && !span_is(rule, r->name))
        r++;
    return r && r->name ? r : NULL;
}

/* Whether the account calls a kind so: `classify score` is there as classify. */
static bool is_called(const char *kind, struct span stage)
{
    return stage.n && strncmp(kind, stage.p, stage.n) == 0 && (!kind[stage.n] || span_is(stage, "classify"));
}

const struct stage_rule *stage_rule_find(struct span stage, struct span rule)
{
#if HAVE_ICU && HAVE_BROTLI && HAVE_NETTLE
    if (span_is(stage, "extract"))
        return find_rule(extract_rules, rule);
#endif
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_called(kinds[i].name, stage))
            return find_rule(kinds[i].rules, rule);
    return NULL;
}
