#include "curate/plan/stages.h"

#include "curate/language/classify.h"
#include "curate/clean/clean.h"
#include "curate/decontaminate/decontaminate.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/dedup_lines.h"
#include "curate/dedup/dedup_substring.h"
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
#define KIND(name, x) {name, sizeof(struct x##_conf), x##_init, x##_options, x##_open}

#if HAVE_ICU
FORM(classify, CLASSIFY_OPTS)
FORM(clean, CLEAN_OPTS)
FORM(decontaminate, DECONTAMINATE_OPTS)
FORM(dedup_exact, DEDUP_EXACT_OPTS)
FORM(dedup_fuzzy, DEDUP_FUZZY_OPTS)
FORM(dedup_lines, DEDUP_LINES_OPTS)
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
    KIND("classify score", classify),
    KIND("clean", clean),
    KIND("decontaminate", decontaminate),
    KIND("dedup exact", dedup_exact),
    KIND("dedup fuzzy", dedup_fuzzy),
    KIND("dedup lines", dedup_lines),
#endif
#if HAVE_ICU && HAVE_PSL
    KIND("filter", filter),
#endif
#if HAVE_ICU && HAVE_DIVSUFSORT
    KIND("dedup substring", dedup_substring),
#endif
#if HAVE_CLD2
    KIND("langid", langid),
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
