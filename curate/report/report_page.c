/* The page: numbers for people, its head, the way through the stages, the table of drops. */
#include "curate/report/report_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/version.h"
#include "base/utf8.h"
#include "curate/report/reject.h"
#include "curate/report/rules.h"

/* ---- text and numbers ---- */

int html_put_text(struct buf *b, struct span s, bool lines)
{
    struct buf plain = {0};
    const char *p = s.p, *end = s.n ? s.p + s.n : s.p;
    int rc = 0;

    while (p < end && rc == 0) { /* line by line, as far as they stay */
        const char *q = p;

        while (lines && q < end && *q != '\n' && *q != '\t')
            q++;
        q = lines ? q : end;
        rc = put_visible(&plain, (struct span){p, (size_t)(q - p)}, 0);
        if (rc == 0 && q < end)
            rc = buf_putc(&plain, *q);
        p = q + 1;
    }
    for (size_t i = 0; i < plain.n && rc == 0; i++)
        switch (plain.p[i]) {
        case '<': rc = buf_puts(b, "&lt;"); break;
        case '>': rc = buf_puts(b, "&gt;"); break;
        case '&': rc = buf_puts(b, "&amp;"); break;
        case '"': rc = buf_puts(b, "&quot;"); break;
        case '\'': rc = buf_puts(b, "&#39;"); break;
        default: rc = buf_putc(b, plain.p[i]);
        }
    buf_free(&plain);
    return rc;
}

int html_put_count(struct buf *b, uint64_t v)
{
    char s[24];
    int n = snprintf(s, sizeof s, "%" PRIu64, v);

    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            TRY(buf_puts(b, "\xE2\x80\xAF")); /* narrow, and no line break */
        TRY(buf_putc(b, s[i]));
    }
    return 0;
}

int html_put_bytes(struct buf *b, uint64_t v)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double x = (double)v;
    int i = 0;

    for (; x >= 999.5 && i < 6; i++)
        x /= 1000;
    return buf_printf(b, "%.*f\xE2\x80\xAF%s", i == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, unit[i]);
}

int html_put_num(struct buf *b, double v)
{
    if (isnan(v))
        return buf_puts(b, "\xE2\x80\x93");
    if (v == floor(v) && fabs(v) < 1e9) {
        TRY(v < 0 ? buf_puts(b, "\xE2\x88\x92") : 0);
        return html_put_count(b, (uint64_t)fabs(v));
    }
    return buf_printf(b, "%.4g", v);
}

int html_put_share(struct buf *b, uint64_t part, uint64_t whole)
{
    return whole ? buf_printf(b, "%.1f", 100 * (double)part / (double)whole) : buf_puts(b, "\xE2\x80\x93");
}

static int put_cell_count(struct buf *b, uint64_t v)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_count(b, v));
    return buf_puts(b, "</td>");
}

static int put_cell_share(struct buf *b, uint64_t part, uint64_t whole)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_share(b, part, whole));
    return buf_puts(b, "</td>");
}

static int put_cell_bytes(struct buf *b, uint64_t v)
{
    TRY(buf_puts(b, "<td class=\"n\">"));
    TRY(html_put_bytes(b, v));
    return buf_puts(b, "</td>");
}

/* A bar of `all` of the width that `most` has, of which `part` is in full colour. */
static int put_cell_bar(struct buf *b, uint64_t part, uint64_t all, uint64_t most)
{
    double m = most ? (double)most : 1;

    return buf_printf(b, "<td class=\"b\"><div><i style=\"width:%.2f%%\"></i><u style=\"width:%.2f%%\"></u></div></td>",
                      100 * (double)part / m, 100 * (double)(all > part ? all - part : 0) / m);
}

/* ---- the head ---- */

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1a1c1e;--dim:#666c72;--line:#d9dcdf;--bar:#2b6a99;--soft:#c3d7e6;"
    "--mark:#b3401f;--box:#f5f6f7}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#16181a;--fg:#e3e5e7;--dim:#9aa1a7;--line:#383c40;--bar:#6aa9d8;"
    "--soft:#2c4152;--mark:#f0936f;--box:#1f2225}}\n"
    "body{margin:0 auto;padding:1.5rem 1.25rem 4rem;max-width:68rem;background:var(--bg);color:var(--fg);"
    "font:14px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.1rem;margin:2.25rem 0 .5rem}"
    "h3{font-size:1rem;margin:0}h3 code{font-size:inherit}"
    "h3 span{font-weight:400;font-size:.85rem;margin-left:.5rem}\n"
    "p{margin:.25rem 0;color:var(--dim);max-width:50rem}p b{color:var(--fg)}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.2rem .6rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}\n"
    "th{font-weight:600;color:var(--dim);font-size:.8rem}.n{text-align:right;white-space:nowrap}\n"
    "code,.id{font:12.5px/1.4 ui-monospace,monospace;overflow-wrap:anywhere}\n"
    ".d{color:var(--dim)}.s{white-space:nowrap}.b{min-width:8rem;width:20%}.b div{display:flex;height:.7rem;margin-top:.3rem}\n"
    ".b i{background:var(--bar)}.b u{background:var(--soft)}\n"
    ".r{display:grid;grid-template-columns:21.5rem 1fr;gap:.25rem 1.5rem;padding:.9rem 0;border-bottom:1px solid var(--line)}\n"
    ".r>div{min-width:0}.r header{grid-column:1/-1}td:last-child,th:last-child{padding-right:0}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0 .4rem;padding:.4rem .6rem;background:var(--box);"
    "font:12px/1.4 ui-monospace,monospace;max-height:9.5rem;overflow:auto}\n"
    "svg{display:block;overflow:visible;max-width:100%;height:auto;font:10.5px system-ui,sans-serif;fill:var(--dim)}\n"
    "svg .v{fill:var(--bar)}svg .v0{fill:var(--soft)}svg .g{stroke:var(--line);fill:none}\n"
    "svg .t{stroke:var(--mark);stroke-width:1.5}svg .tt{fill:var(--mark)}svg .band{fill:var(--mark);opacity:.15}\n"
    ".k i,.k u{display:inline-block;width:.8rem;height:.8rem;vertical-align:-.1rem;margin:0 .3rem 0 .8rem;"
    "background:var(--bar)}.k u{background:var(--soft)}\n"
    ".c{display:grid;grid-template-columns:21.5rem 1fr;gap:1rem 1.5rem}\n"
    "svg .l{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke:var(--bar)}svg .l1{stroke:var(--mark)}"
    "svg .l2{stroke:#3d9a50}svg .l3{stroke:#a05bb5}svg .l4{stroke:#b58900}svg .l5{stroke:#2aa198}\n"
    ".cs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(26rem,100%),1fr));gap:1.25rem 1.5rem;margin-top:1.5rem}"
    ".o,.scroll{overflow-x:auto}.scroll code{overflow-wrap:normal}\n"
    ".o td,.o th{white-space:nowrap}.o svg{max-width:none}.o code{overflow-wrap:normal}\n"
    ".w{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:1rem 1.5rem}.w>div{min-width:0}\n"
    "@media(max-width:50rem){.r,.c{grid-template-columns:minmax(0,1fr)}.x,.b{display:none}"
    "td,th{padding-right:.4rem}}\n";

int page_put_head(struct buf *b, const char *text)
{
    struct span title = span_of(text);

    TRY(buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>"));
    TRY(html_put_text(b, title, false));
    TRY(buf_puts(b, "</title>\n<style>\n"));
    TRY(buf_puts(b, style));
    TRY(buf_puts(b, "</style></head><body>\n<h1>"));
    TRY(html_put_text(b, title, false));
    return buf_puts(b, "</h1>\n");
}

void page_came_in(const struct report_stage *s, int n, uint64_t *docs, uint64_t *bytes)
{
    *docs = n ? s->docs_in : 0;
    *bytes = n ? s->bytes_in : 0;
    for (; n > 1; n--, s++) {
        if (s[1].branch.p)
            continue;
        *docs += s[1].docs_in > s->docs_out ? s[1].docs_in - s->docs_out : 0;
        *bytes += s[1].bytes_in > s->bytes_out ? s[1].bytes_in - s->bytes_out : 0;
    }
}

static int put_summary(struct buf *b, const struct report *r)
{
    bool forks = r->n_stages && r->stage[r->n_stages - 1].branch.p;
    uint64_t docs, bytes;

    if (!r->n_stages)
        return 0;
    page_came_in(r->stage, r->n_stages, &docs, &bytes);
    TRY(buf_puts(b, "<p>Of <b>"));
    TRY(html_put_count(b, docs));
    TRY(buf_puts(b, "</b> documents (<b>"));
    TRY(html_put_bytes(b, bytes));
    TRY(buf_puts(b, "</b> of text) <b>"));
    TRY(html_put_count(b, r->out.docs));
    TRY(buf_puts(b, forks ? "</b> came out, in all outputs together (<b>" : "</b> were kept (<b>"));
    TRY(html_put_bytes(b, r->out.bytes));
    if (forks) {
        TRY(buf_puts(b, "</b>)."));
    } else {
        TRY(buf_puts(b, "</b>): <b>"));
        TRY(html_put_share(b, r->out.docs, docs));
        TRY(buf_puts(b, " %</b> of the documents, <b>"));
        TRY(html_put_share(b, r->out.bytes, bytes));
        TRY(buf_puts(b, " %</b> of the text."));
    }
    if (r->bad) {
        TRY(buf_puts(b, " Besides, "));
        TRY(html_put_count(b, r->bad));
        TRY(buf_puts(b, " records were bad and were skipped."));
    }
    return buf_puts(b, "</p>\n");
}

/* ---- the way through the stages ---- */

int page_put_stage_name(struct buf *b, const struct report_stage *s)
{
    TRY(html_put_text(b, s->name, false));
    if (!s->branch.p)
        return 0;
    TRY(buf_puts(b, " of "));
    return html_put_text(b, s->branch, false);
}

static int put_stage(struct buf *b, const struct report_stage *s, uint64_t docs, uint64_t bytes)
{
    TRY(buf_puts(b, "<tr><td>"));
    TRY(page_put_stage_name(b, s));
    TRY(buf_puts(b, "</td>"));
    TRY(put_cell_count(b, s->docs_in));
    TRY(put_cell_count(b, s->docs_out));
    TRY(put_cell_share(b, s->docs_out, s->docs_in));
    TRY(put_cell_bar(b, s->docs_out, s->docs_in, docs));
    TRY(put_cell_bytes(b, s->bytes_out));
    TRY(put_cell_share(b, s->bytes_out, s->bytes_in));
    TRY(put_cell_bar(b, s->bytes_out, s->bytes_in, bytes));
    return buf_puts(b, "</tr>\n");
}

static int put_stages(struct buf *b, const struct report *r)
{
    uint64_t docs = 0, bytes = 0;

    if (!r->n_stages)
        return 0;
    for (int i = 0; i < r->n_stages; i++) {
        const struct report_stage *s = &r->stage[i];
        docs = s->docs_in > docs ? s->docs_in : docs;
        bytes = s->bytes_in > bytes ? s->bytes_in : bytes;
        bytes = s->bytes_out > bytes ? s->bytes_out : bytes;
    }
    TRY(buf_puts(b, "<h2>Through the stages</h2>\n<div class=\"scroll\">"
                    "<table><tr><th>stage</th><th class=\"n\">documents in</th>"
                    "<th class=\"n\">kept</th><th class=\"n\">%</th><th class=\"b\"></th><th class=\"n\">text kept</th>"
                    "<th class=\"n\">%</th><th class=\"b\"></th></tr>\n"));
    for (int i = 0; i < r->n_stages; i++)
        TRY(put_stage(b, &r->stage[i], docs, bytes));
    return buf_puts(b, "</table></div>\n<p class=\"k\"><i></i>kept<u></u>dropped or cut, of what came into the stage</p>\n");
}

/* ---- drops by stage and rule ---- */

static int place_of(const struct report *r, const struct report_rule *x)
{
    int i = 0;

    while (i < r->n_stages && !span_eq(r->stage[i].name, x->stage))
        i++;
    if (i < r->n_stages)
        return i;
    for (i = 0; i < (int)r->rules.n && !span_eq(r->rule[i].stage, x->stage); i++)
        ;
    return r->n_stages + i;
}

static int by_place(const void *a, const void *b, void *of)
{
    const struct report *r = of;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const struct report_rule *x = &r->rule[i], *y = &r->rule[k];
    int p = place_of(r, x), q = place_of(r, y);

    if (p != q)
        return p < q ? -1 : 1;
    if (report_drops(x) != report_drops(y))
        return report_drops(x) > report_drops(y) ? -1 : 1;
    return i < k ? -1 : 1;
}

size_t *page_rule_order(const struct report *r, size_t *n)
{
    size_t *order = malloc((REPORT_RULES + 1) * sizeof *order);
    union { const struct report *in; void *out; } u = {r};

    *n = 0;
    for (size_t i = 0; i <= REPORT_RULES && order; i++)
        if (report_drops(&r->rule[i]) || r->rule[i].other)
            order[(*n)++] = i;
    if (order)
        qsort_r(order, *n, sizeof *order, by_place, u.out);
    return order;
}

static int put_drops_row(struct buf *b, const struct report_rule *x, bool first, uint64_t all, uint64_t most)
{
    struct stage_rule words = rule_words(x->stage, x->rule);

    TRY(buf_puts(b, "<tr><td class=\"s\">"));
    TRY(first ? html_put_text(b, x->stage, false) : 0);
    TRY(buf_puts(b, "</td><td><code>"));
    TRY(html_put_text(b, x->rule, false));
    TRY(buf_puts(b, "</code></td><td class=\"d x\">"));
    TRY(html_put_text(b, span_of(words.value ? words.value : words.why ? words.why : ""), false));
    TRY(buf_puts(b, "</td>"));
    TRY(put_cell_count(b, report_drops(x)));
    TRY(put_cell_share(b, report_drops(x), all));
    TRY(put_cell_bar(b, report_drops(x), report_drops(x), most));
    return buf_puts(b, "</tr>\n");
}

static int put_drops(struct buf *b, const struct report *r)
{
    size_t n, *order = page_rule_order(r, &n);
    uint64_t all = 0, most = 0;
    struct span stage = {0};
    bool any = false;
    int rc = 0;

    if (!order)
        return ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = report_drops(&r->rule[order[i]]);
        any |= v > 0;
        all += v;
        most = v > most ? v : most;
    }
    if (any)
        rc = buf_puts(b, "<h2>Documents dropped, by rule</h2>\n<div class=\"scroll\"><table><tr><th>stage</th><th>rule</th>"
                         "<th class=\"x\">what is measured</th>"
                         "<th class=\"n\">dropped</th><th class=\"n\">% of all</th><th class=\"b\"></th></tr>\n");
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct report_rule *x = &r->rule[order[i]];

        if (!report_drops(x))
            continue;
        rc = put_drops_row(b, x, !span_eq(x->stage, stage), all, most);
        stage = x->stage;
    }
    if (any && rc == 0)
        rc = buf_puts(b, "</table></div>\n");
    free(order);
    return rc;
}

int report_put(const struct report *r, const struct report_conf *conf, struct buf *b)
{
    TRY(page_put_head(b, conf->title));
    TRY(put_summary(b, r));
    TRY(put_stages(b, r));
    TRY(put_drops(b, r));
    TRY(page_put_comparison(b, r));
    TRY(page_put_corpora(b, r));
    TRY(page_put_signals(b, r));
    TRY(page_put_rules(b, r, conf));
    return buf_puts(b, "<p>quern " QUERN_VERSION "</p>\n</body></html>\n");
}
