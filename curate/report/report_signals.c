/* The page: signals of all documents (filter --annotate), with the thresholds of their rules. */
#include <math.h>

#include "curate/filter/filter.h"
#include "curate/report/report_page.h"
#include "curate/report/rules.h"

enum { MOST = 200 }; /* signals on the page */

static const char prefix[] = "signals.";

static const struct sketch *values_of(const struct corpus_stats *c, struct span field)
{
    size_t number;

    if (!name_table_find(&c->fields, field, &number) || number >= c->all.n_numbers)
        return NULL;
    return c->all.number[number];
}

/* Those in the accounts; else the presets'. */
static int thresholds_of(const struct report *r, struct span rule, struct sketch *own, const struct sketch **out)
{
    struct filter_rule f;
    int at = 0;

    *out = own;
    for (size_t i = 0; i < r->rules.n; i++)
        if (span_is(r->rule[i].stage, "filter") && span_eq(r->rule[i].rule, rule) && r->rule[i].threshold.n) {
            *out = &r->rule[i].threshold;
            return 0;
        }
    while (filter_rule_next(&at, rule, &f))
        if (isfinite(f.threshold))
            TRY(sketch_add(own, f.threshold));
    return 0;
}

static int put_signal(struct buf *b, const struct report *r, struct span field)
{
    struct span name = {field.p + sizeof prefix - 1, field.n - (sizeof prefix - 1)};
    const struct sketch *before = r->have_input ? values_of(&r->input, field) : NULL;
    const struct sketch *after = r->have_docs ? values_of(&r->docs, field) : NULL, *any = before ? before : after, *t;
    struct stage_rule words = rule_words(span_of("filter"), name);
    struct sketch own = {0};
    int rc;

    TRY(buf_puts(b, "<div><p><code>"));
    TRY(html_put_text(b, name, false));
    TRY(buf_puts(b, "</code> "));
    TRY(html_put_text(b, span_of(words.value ? words.value : ""), false));
    TRY(buf_puts(b, "</p>"));
    rc = thresholds_of(r, name, &own, &t);
    if (rc == 0)
        rc = plot_signal(b, before, after, t);
    sketch_free(&own);
    TRY(rc);
    if (rc == 0 && any) {
        TRY(buf_puts(b, "<p>Every value is "));
        TRY(html_put_num(b, any->min));
        TRY(buf_puts(b, ".</p>"));
    }
    return buf_puts(b, "</div>\n");
}

static bool is_signal(const struct corpus_stats *c, size_t i)
{
    const struct sketch *s = values_of(c, c->fields.name[i]);

    return c->fields.name[i].n >= sizeof prefix && memcmp(c->fields.name[i].p, prefix, sizeof prefix - 1) == 0 && s && s->n;
}

int page_put_signals(struct buf *b, const struct report *r)
{
    const struct corpus_stats *c = r->have_input ? &r->input : &r->docs;
    int n = 0;

    if (!r->have_input && !r->have_docs)
        return 0;
    for (size_t i = 0; i < c->fields.n && n < MOST; i++) {
        if (!is_signal(c, i))
            continue;
        if (!n++)
            TRY(buf_printf(b, "<h2>Signals</h2>\n<p class=\"k\">All documents by value%s%s; "
                              "thresholds are those of the accounts, else the presets'.</p>\n<div class=\"w\">\n",
                           r->have_input ? "<u></u>before" : "", r->have_docs ? "<i></i>after" : ""));
        TRY(put_signal(b, r, c->fields.name[i]));
    }
    return n ? buf_puts(b, "</div>\n") : 0;
}
