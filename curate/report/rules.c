#include "curate/report/rules.h"

#include "curate/filter/filter.h"
#include "curate/stages/stages.h"

struct stage_rule rule_words(struct span stage, struct span rule)
{
    const struct stage_rule *known;
    struct filter_rule f;
    int at = 0;

    if (span_is(stage, "filter")) {
        if (filter_rule_next(&at, rule, &f))
            return (struct stage_rule){.name = f.name, .value = f.words, .drops = f.drops};
        return (struct stage_rule){0};
    }
    known = stage_rule_find(stage, rule);
    return known ? *known : (struct stage_rule){0};
}

int rule_put_presets(struct buf *b, struct span stage, struct span rule)
{
    struct filter_rule r;
    int at = 0;
    bool first = true;

    if (!span_is(stage, "filter"))
        return 0;
    for (; filter_rule_next(&at, rule, &r); first = false)
        TRY(buf_printf(b, "%s%s", first ? "" : ", ", r.preset));
    return 0;
}
