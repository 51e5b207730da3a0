/* The page: each rule with its values and examples; lengths and languages before and after. */
#include <math.h>
#include <stdlib.h>

#include "curate/report/report_page.h"
#include "curate/report/rules.h"

/* ---- a rule ---- */

static int put_rule_head(struct buf *b, const struct report_rule *x)
{
    struct stage_rule words = rule_words(x->stage, x->rule);

    TRY(buf_puts(b, "<header><h3><code>"));
    TRY(html_put_text(b, x->rule, false));
    TRY(buf_puts(b, "</code><span class=\"d\">"));
    TRY(html_put_text(b, x->stage, false));
    TRY(span_is(x->stage, "filter") ? buf_puts(b, ": ") : 0);
    TRY(rule_put_presets(b, x->stage, x->rule)); /* names without markup */
    TRY(buf_puts(b, "</span></h3><p>"));
    if (words.why)
        TRY(buf_printf(b, "%s ", words.why));
    if (words.value) {
        TRY(buf_puts(b, "Value: "));
        TRY(html_put_text(b, span_of(words.value), false));
        if (words.drops)
            TRY(buf_printf(b, "; drops %s", words.drops));
        TRY(buf_puts(b, words.drops ? " the threshold. " : ". "));
    }
    TRY(buf_puts(b, "<b>"));
    TRY(html_put_count(b, report_drops(x)));
    TRY(buf_puts(b, "</b> dropped"));
    if (x->against && x->threshold.max != 0) {
        TRY(buf_puts(b, ", <b>"));
        TRY(html_put_share(b, x->near, x->against));
        TRY(buf_puts(b, " %</b> of them within a tenth of the threshold"));
    }
    if (x->said && x->said != x->found) {
        TRY(buf_puts(b, "; the accounts have "));
        TRY(html_put_count(b, x->found));
    }
    return buf_puts(b, ".</p></header>\n");
}

static int put_plot(struct buf *b, const struct report_rule *x)
{
    int rc;

    TRY(buf_puts(b, "<div>"));
    rc = plot_values(b, x);
    TRY(rc);
    if (!rc && x->value.n && (x->threshold.n || rule_words(x->stage, x->rule).value)) {
        TRY(buf_puts(b, "<p>Every value is "));
        TRY(html_put_num(b, x->value.min));
        if (x->threshold.n && x->threshold.min == x->threshold.max) {
            TRY(buf_puts(b, ", the threshold "));
            TRY(html_put_num(b, x->threshold.min));
        }
        TRY(buf_puts(b, ".</p>"));
    }
    return buf_puts(b, "</div>\n");
}

static int put_example(struct buf *b, const struct report_example *x, bool question)
{
    TRY(buf_puts(b, "<tr><td class=\"id\"><bdi>"));
    TRY(html_put_text(b, (struct span){x->id.p, x->id.n < 200 ? x->id.n : 200}, false));
    TRY(buf_puts(b, x->id.n < 200 ? "</bdi>" : "...</bdi>"));
    if (x->survivor.p) {
        TRY(buf_printf(b, "<br><span class=\"d\">%s</span> <bdi>", question ? "question" : "survivor"));
        TRY(html_put_text(b, (struct span){x->survivor.p, x->survivor.n < 200 ? x->survivor.n : 200}, false));
        TRY(buf_puts(b, "</bdi>"));
    }
    if (x->text.p) {
        TRY(buf_puts(b, "<pre dir=\"auto\">"));
        TRY(html_put_text(b, x->text, true));
        TRY(buf_puts(b, x->cut ? " ...</pre>" : "</pre>"));
    }
    TRY(buf_puts(b, "</td><td class=\"n\">"));
    TRY(html_put_num(b, x->value));
    TRY(buf_puts(b, "</td><td class=\"n\">"));
    TRY(html_put_num(b, x->threshold));
    return buf_puts(b, "</td></tr>\n");
}

static int put_examples(struct buf *b, const struct report_rule *x)
{
    bool question = rule_words(x->stage, x->rule).question;

    TRY(buf_puts(b, "<div class=\"scroll\">"));
    if (x->n_examples) {
        TRY(buf_puts(b, "<table><tr><th>examples</th><th class=\"n\">value</th><th class=\"n\">threshold</th></tr>\n"));
        for (int i = 0; i < x->n_examples; i++)
            TRY(put_example(b, &x->example[i], question));
        TRY(buf_puts(b, "</table>"));
    }
    return buf_puts(b, "</div>");
}

int page_put_rules(struct buf *b, const struct report *r, const struct report_conf *conf)
{
    size_t n, *order = page_rule_order(r, &n);
    int rc = order ? 0 : ERR_NOMEM;

    for (size_t i = 0, any = 0; i < n && rc == 0; i++) {
        const struct report_rule *x = &r->rule[order[i]];

        if (!x->found)
            continue;
        if (!any++)
            rc = buf_printf(b, "<h2>Rule by rule</h2>\n<p>Dropped documents by their value, and the threshold; what lies beyond "
                               "an axis is in its last bar. Examples: the %d with the smallest hashes of their ids.</p>\n",
                            (int)conf->examples);
        if (rc == 0)
            rc = buf_puts(b, "<section class=\"r\">");
        if (rc == 0)
            rc = put_rule_head(b, x);
        if (rc == 0)
            rc = put_plot(b, x);
        if (rc == 0)
            rc = put_examples(b, x);
        if (rc == 0)
            rc = buf_puts(b, "</section>\n");
    }
    free(order);
    return rc;
}

/* ---- lengths ---- */

static int put_length_row(struct buf *b, const char *what, const struct corpus_stats *c, enum corpus_size size)
{
    static const double q[] = {.05, .25, .5, .75, .95};
    const struct sketch *s = &c->all.size[size];
    struct sketch_point *p;
    size_t n;
    int rc = 0;

    TRY(buf_printf(b, "<tr><td>%s, %s</td><td class=\"n\">", corpus_size_names[size], what));
    TRY(html_put_count(b, c->all.sum[size]));
    TRY(buf_puts(b, "</td><td class=\"n\">"));
    TRY(html_put_num(b, round(sketch_mean(s))));
    TRY(sketch_points(s, &p, &n));
    for (int i = 0; i < 5 && rc == 0; i++) {
        rc = buf_puts(b, "</td><td class=\"n\">");
        if (rc == 0)
            rc = html_put_num(b, sketch_quantile(p, n, q[i]));
    }
    free(p);
    return rc < 0 ? rc : buf_puts(b, "</td></tr>\n");
}

static int put_lengths(struct buf *b, const struct report *r)
{
    const struct sketch *before = r->have_input ? &r->input.all.size[CORPUS_CHARS] : NULL;
    const struct sketch *after = r->have_docs ? &r->docs.all.size[CORPUS_CHARS] : NULL;

    TRY(buf_puts(b, "<h2>Lengths</h2>\n<div class=\"c\"><div>"));
    TRY(plot_lengths(b, before, after));
    TRY(buf_puts(b, "<p class=\"k\">"));
    TRY(before ? buf_puts(b, "<u></u>before") : 0);
    TRY(after ? buf_puts(b, "<i></i>after") : 0);
    TRY(buf_puts(b, "; documents by characters, from</p></div><div class=\"scroll\"><table><tr><th></th><th class=\"n\">all</th>"
                    "<th class=\"n\">mean</th><th class=\"n\">5 %</th><th class=\"n\">25 %</th><th class=\"n\">50 %</th>"
                    "<th class=\"n\">75 %</th><th class=\"n\">95 %</th></tr>\n"));
    for (int i = CORPUS_CHARS; i < CORPUS_SIZES; i++) {
        TRY(before ? put_length_row(b, "before", &r->input, (enum corpus_size)i) : 0);
        TRY(after ? put_length_row(b, "after", &r->docs, (enum corpus_size)i) : 0);
    }
    return buf_puts(b, "</table></div></div>\n");
}

/* ---- languages and hosts ---- */

static uint64_t docs_of(const struct name_tally *t, struct span name)
{
    size_t number;

    return t->count && name_table_find(&t->names, name, &number) ? t->count[number].docs : 0;
}

static int put_tally_row(struct buf *b, struct span name, uint64_t before, uint64_t after, bool both, uint64_t all, uint64_t most)
{
    TRY(buf_puts(b, "<tr><td><bdi>"));
    TRY(html_put_text(b, name.n ? name : span_of("(none)"), false));
    TRY(buf_puts(b, "</bdi></td><td class=\"n\">"));
    TRY(html_put_count(b, before));
    TRY(buf_puts(b, "</td><td class=\"n\">"));
    TRY(html_put_share(b, before, all));
    TRY(buf_puts(b, "</td>"));
    if (both) {
        TRY(buf_puts(b, "<td class=\"n\">"));
        TRY(html_put_count(b, after));
        TRY(buf_puts(b, "</td><td class=\"n\">"));
        TRY(html_put_share(b, after, before));
        TRY(buf_puts(b, "</td>"));
    }
    after = both ? after : before;
    return buf_printf(b, "<td class=\"b\"><div><i style=\"width:%.2f%%\"></i><u style=\"width:%.2f%%\"></u></div></td></tr>\n",
                      100 * (double)after / (double)most, 100 * (double)(before > after ? before - after : 0) / (double)most);
}

/* The most frequent names before (after, if there is no before), with what is left of them.
 * Nothing if no document has one. */
static int put_tally(struct buf *b, const char *what, const struct name_tally *before, const struct name_tally *after,
                     uint64_t all)
{
    enum { ROWS = 15 };
    bool both = before->bound && after->bound;
    const struct name_tally *t = before->bound ? before : after;
    size_t *order = name_tally_order(t), n = t->names.n;
    uint64_t most = 1;
    int rc = order ? 0 : ERR_NOMEM;

    if (rc < 0 || n == 0 || (n == 1 && t->names.name[0].n == 0)) {
        free(order);
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t v = both ? docs_of(after, t->names.name[i]) : 0;
        v = t->count[i].docs > v ? t->count[i].docs : v;
        most = v > most ? v : most;
    }
    rc = buf_printf(b, "<h2>%s</h2>\n<div class=\"scroll\">"
                       "<table><tr><th></th><th class=\"n\">documents%s</th><th class=\"n\">%%</th>%s"
                       "<th class=\"b\"></th></tr>\n", what, both ? " before" : "",
                    both ? "<th class=\"n\">after</th><th class=\"n\">kept %</th>" : "");
    for (size_t i = 0; i < n && i < ROWS && rc == 0; i++) {
        struct span name = t->names.name[order[i]];
        rc = put_tally_row(b, name, t->count[order[i]].docs, both ? docs_of(after, name) : 0, both, all, most);
    }
    free(order);
    TRY(rc);
    TRY(buf_puts(b, "</table></div>\n"));
    if (n <= ROWS)
        return 0;
    TRY(buf_puts(b, "<p>and "));
    TRY(html_put_count(b, n - ROWS));
    return buf_printf(b, " more%s</p>\n", t->missed ? ", too many to count exactly" : "");
}

/* Counts by primary subtag in small letters: what a page declares ("en-US") and what langid writes ("en") are one. */
static int fold_languages(const struct name_tally *t, struct name_tally *folded)
{
    *folded = (struct name_tally){.bound = t->bound, .missed = t->missed};
    for (size_t i = 0; i < t->names.n && t->bound; i++) {
        char tag[CORPUS_NAME_BYTES];
        struct span name = t->names.name[i];
        size_t n = 0;

        for (; n < name.n && n < sizeof tag && name.p[n] != '-' && name.p[n] != '_'; n++)
            tag[n] = name.p[n] >= 'A' && name.p[n] <= 'Z' ? (char)(name.p[n] - 'A' + 'a') : name.p[n];
        TRY(name_tally_add(folded, (struct span){tag, n}, &t->count[i]));
    }
    return 0;
}

static int put_languages(struct buf *b, const struct report *r, uint64_t all)
{
    struct name_tally before = {0}, after = {0};
    int rc = fold_languages(&r->input.langs, &before);

    if (rc == 0)
        rc = fold_languages(&r->docs.langs, &after);
    if (rc == 0)
        rc = put_tally(b, "Languages", &before, &after, all);
    name_tally_free(&before);
    name_tally_free(&after);
    return rc;
}

int page_put_corpora(struct buf *b, const struct report *r)
{
    uint64_t all = r->have_input ? r->input.all.docs : r->docs.all.docs;

    if (!r->have_input && !r->have_docs)
        return 0;
    TRY(put_lengths(b, r));
    TRY(put_languages(b, r, all));
    return put_tally(b, "Hosts", &r->input.hosts, &r->docs.hosts, all);
}
