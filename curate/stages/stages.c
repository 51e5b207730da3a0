#include "curate/stages/stages.h"

#include "curate/language/classify.h"
#include "curate/clean/clean.h"
#include "curate/decontaminate/decontaminate.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/dedup_lines.h"
#include "curate/dedup/dedup_ranks.h"
#include "curate/dedup/dedup_substring.h"
#include "curate/dedup/dedup_templates.h"
#include "curate/dedup/dedup_text.h"
#include "curate/extract/extract.h"
#include "curate/filter/filter.h"
#include "curate/filter/forget.h"
#include "curate/language/langid.h"
#include "curate/language/perplexity.h"
#include "curate/stages/doc_route.h"

/* The form of a stage that several ranks can do. */
#define RANKS_FORM(x)                                                                            \
    static int x##_open_rank(struct stage *s, struct comm *c, const void *conf, struct err *e)   \
    {                                                                                            \
        return x##_ranks_open(s, c, conf, e);                                                    \
    }

STAGE_FORM(forget, FORGET_OPTS)
#if HAVE_ICU
STAGE_FORM(classify, CLASSIFY_OPTS)
STAGE_FORM(clean, CLEAN_OPTS)
STAGE_FORM(decontaminate, DECONTAMINATE_OPTS)
STAGE_FORM(dedup_exact, DEDUP_EXACT_OPTS)
STAGE_FORM(dedup_fuzzy, DEDUP_FUZZY_OPTS)
STAGE_FORM(dedup_lines, DEDUP_LINES_OPTS)
STAGE_FORM(dedup_substring, DEDUP_SUBSTRING_OPTS)
RANKS_FORM(dedup_exact)
RANKS_FORM(dedup_fuzzy)
RANKS_FORM(dedup_templates)

/* What finds templates has the settings of what it stands before, which checks them and names their files. */
static void templates_init(void *conf) { (void)conf; }
static void templates_options(void *conf, struct opt out[STAGE_MAX_OPTS])
{
    (void)conf;
    out[0] = (struct opt)OPT_END;
}
static int templates_open(struct stage *s, const void *conf, struct err *e) { return dedup_templates_stage_open(s, conf, e); }

static const struct stage_kind *before_fuzzy(const void *conf)
{
    static const struct stage_kind templates = {"dedup templates", sizeof(struct dedup_fuzzy_conf), templates_init, NULL,
                                                templates_options, templates_open, dedup_templates_open_rank, NULL};
    const struct dedup_fuzzy_conf *c = conf;

    return c->strip_template ? &templates : NULL;
}
#endif
#if HAVE_ICU && HAVE_PSL
STAGE_FORM(filter, FILTER_OPTS)
#endif
#if HAVE_CLD2
STAGE_FORM(langid, LANGID_OPTS)
#endif

static const struct stage_kind kinds[] = {
    STAGE_KIND("forget", forget, forget_rules, NULL),
#if HAVE_ICU
    STAGE_KIND("classify score", classify, classify_rules, NULL),
    STAGE_KIND("clean", clean, NULL, NULL),
    STAGE_KIND("decontaminate", decontaminate, decontaminate_rules, NULL),
    STAGE_KIND("dedup exact", dedup_exact, dedup_exact_rules, dedup_exact_open_rank),
    STAGE_KIND_AFTER("dedup fuzzy", dedup_fuzzy, dedup_fuzzy_rules, dedup_fuzzy_open_rank, before_fuzzy),
    STAGE_KIND("dedup lines", dedup_lines, dedup_text_rules, NULL),
    STAGE_KIND("dedup substring", dedup_substring, dedup_text_rules, NULL),
#endif
#if HAVE_ICU && HAVE_PSL
    STAGE_KIND("filter", filter, NULL, NULL),
#endif
#if HAVE_CLD2
    STAGE_KIND("langid", langid, langid_rules, NULL),
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
#if HAVE_ICU
    if (span_is(stage, "perplexity") || span_is(stage, "perplexity model"))
        return find_rule(perplexity_rules, rule);
#endif
    if (span_is(stage, "branches"))
        return find_rule(doc_route_rules, rule);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_called(kinds[i].name, stage))
            return find_rule(kinds[i].rules, rule);
    return NULL;
}
