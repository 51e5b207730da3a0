#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/version.h"
#include "curate/report/corpus_stats.h"
#include "curate/report/tally_put.h"

static const char *const kinds[SOURCE_KINDS] = {"archive", "file", "not_said"};
static const char *const tdm[TDM_KINDS] = {"reserved", "not_reserved", "not_said"};

/* Of each of the first n domains together. */
static struct name_count sum_of(const struct name_tally *t, const size_t *order, size_t n)
{
    struct name_count sum = {0};

    for (size_t i = 0; i < n; i++) {
        sum.docs += t->count[order[i]].docs;
        sum.bytes += t->count[order[i]].bytes;
        sum.chars += t->count[order[i]].chars;
        sum.words += t->count[order[i]].words;
    }
    return sum;
}

static double share_of(uint64_t bytes, const struct corpus_stats *c)
{
    return c->all.sum[CORPUS_BYTES] ? (double)bytes / (double)c->all.sum[CORPUS_BYTES] : NAN;
}

/* The names of a tally in their order; malloc'd, NULL when memory is out. */
static size_t *by_name(const struct name_tally *t)
{
    size_t *order = calloc(t->names.n + 1, sizeof *order);

    for (size_t i = 0; order && i < t->names.n; i++) { /* months: a few hundred at most in earnest */
        size_t k = i;

        for (; k && span_compare(t->names.name[order[k - 1]], t->names.name[i]) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return order;
}

/* ---- JSON ---- */

static int put_count(struct buf *b, const struct name_count *n)
{
    json_put_count(b, "documents", n->docs);
    json_put_count(b, "bytes", n->bytes);
    json_put_count(b, "characters", n->chars);
    return json_put_count(b, "words", n->words);
}

static int put_kinds(struct buf *b, const char *key, const char *const *names, const struct name_count *count, int n)
{
    json_put_key(b, key);
    buf_putc(b, '{');
    for (int i = 0; i < n; i++) {
        json_put_key(b, names[i]);
        buf_putc(b, '{');
        put_count(b, &count[i]);
        buf_putc(b, '}');
    }
    return buf_putc(b, '}');
}

static int put_domains(const struct corpus_stats *c, struct buf *b)
{
    const struct name_tally *t = &c->sources.domains;
    size_t n, tenth, *order = source_domains(&c->sources, &n, &tenth);
    struct name_count sum;

    if (!order)
        return ERR_NOMEM;
    sum = sum_of(t, order, tenth);
    buf_puts(b, ",\"domains\":{");
    json_put_count(b, t->missed ? "kept" : "different", n);
    json_put_count(b, "missed", t->missed);
    buf_puts(b, ",\"top_tenth\":{");
    json_put_count(b, "domains", tenth);
    put_count(b, &sum);
    json_put_key(b, "share");
    json_put_num(b, share_of(sum.bytes, c));
    buf_puts(b, ",\"list\":[");
    for (size_t i = 0; i < tenth; i++) {
        buf_puts(b, i ? "," : "");
        tally_put_row(t, order[i], "domain", b);
        b->n -= b->n ? 1 : 0; /* its brace */
        json_put_key(b, "share");
        json_put_num(b, share_of(t->count[order[i]].bytes, c));
        buf_putc(b, '}');
    }
    free(order);
    return buf_puts(b, "]}}");
}

static int put_day(struct buf *b, const char *key, const char *day)
{
    json_put_key(b, key);
    return *day ? json_put_string(b, span_of(day)) : buf_puts(b, "null");
}

static int put_days(const struct source_stats *s, struct buf *b)
{
    size_t *order = by_name(&s->months);
    bool some = false;

    if (!order)
        return ERR_NOMEM;
    buf_puts(b, ",\"crawled\":{");
    put_day(b, "first", s->first);
    put_day(b, "last", s->last);
    buf_puts(b, ",\"months\":[");
    for (size_t i = 0; i < s->months.names.n; i++) {
        buf_puts(b, some ? "," : "");
        tally_put_row(&s->months, order[i], "month", b);
        some = true;
    }
    free(order);
    return buf_puts(b, "]}");
}

static int put_json(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b)
{
    const struct source_stats *s = &c->sources;

    buf_puts(b, "{\"quern\":\"" QUERN_VERSION "\"");
    json_put_count(b, "bad", c->bad);
    json_put_count(b, "documents", c->all.docs);
    for (int i = 0; i < CORPUS_SIZES; i++)
        json_put_count(b, corpus_size_names[i], c->all.sum[i]);
    TRY(tally_put_json(&c->langs, "languages", "lang", 0, b));
    TRY(put_domains(c, b));
    TRY(put_days(s, b));
    put_kinds(b, "kinds", kinds, s->kind, SOURCE_KINDS);
    TRY(tally_put_json(&s->dumps, "dumps", "dump", 0, b));
    TRY(tally_put_json(&s->files, "files", "file", conf->top, b));
    TRY(tally_put_json(&s->licenses, "licenses", "license", conf->top, b));
    TRY(tally_put_json(&s->robots, "robots", "directive", conf->top, b));
    put_kinds(b, "tdm_reservation", tdm, s->tdm, TDM_KINDS);
    return buf_puts(b, "}\n");
}

/* ---- tables ---- */

static int add_row(struct text_table *t, struct span name, const struct name_count *n, const struct corpus_stats *c)
{
    text_table_add(t, name);
    text_table_add_int(t, n->docs);
    text_table_add_int(t, n->bytes);
    text_table_add_num(t, round(1e4 * share_of(n->bytes, c)) / 100);
    return text_table_add_int(t, n->chars);
}

static const char *const heads[] = {"", "documents", "bytes", "%", "characters"};
enum { COLUMNS = sizeof heads / sizeof *heads };

static int put_domains_text(const struct corpus_stats *c, const struct corpus_conf *conf, struct text_table *t, struct buf *b)
{
    const struct name_tally *d = &c->sources.domains;
    size_t n, tenth, *order = source_domains(&c->sources, &n, &tenth);
    struct name_count sum;

    if (!order)
        return ERR_NOMEM;
    sum = sum_of(d, order, tenth);
    buf_printf(b, "\ndomains: %zu%s; the largest tenth, %zu, has %.2f %% of all bytes\n", n, d->missed ? " kept" : "", tenth,
               sum.bytes ? 100 * share_of(sum.bytes, c) : 0.0);
    if (d->missed)
        buf_printf(b, "  too many to count exactly: each may have %llu documents more, and so many may be missing here\n",
                   (unsigned long long)d->missed);
    t->columns = COLUMNS;
    text_table_add_cells(t, COLUMNS, heads);
    for (size_t i = 0; i < tally_shown(conf->top, n); i++)
        add_row(t, d->names.name[order[i]], &d->count[order[i]], c);
    free(order);
    return text_table_put(t, 2, b);
}

static int put_months_text(const struct corpus_stats *c, struct text_table *t, struct buf *b)
{
    const struct source_stats *s = &c->sources;
    size_t *order = by_name(&s->months);

    if (!order)
        return ERR_NOMEM;
    if (*s->first)
        buf_printf(b, "\ncrawled: %s to %s\n", s->first, s->last);
    else
        buf_puts(b, "\ncrawled: no document says when\n");
    t->columns = COLUMNS;
    text_table_add_cells(t, COLUMNS, heads);
    for (size_t i = 0; i < s->months.names.n; i++) {
        struct span name = s->months.names.name[order[i]];

        add_row(t, name.n ? name : span_of("(not said)"), &s->months.count[order[i]], c);
    }
    free(order);
    return text_table_put(t, 2, b);
}

static int put_kinds_text(const struct corpus_stats *c, const char *title, const char *const *names,
                          const struct name_count *count, int n, struct text_table *t, struct buf *b)
{
    buf_printf(b, "\n%s\n", title);
    t->columns = COLUMNS;
    text_table_add_cells(t, COLUMNS, heads);
    for (int i = 0; i < n; i++)
        add_row(t, span_of(names[i]), &count[i], c);
    return text_table_put(t, 2, b);
}

static int put_text(const struct corpus_stats *c, const struct corpus_conf *conf, struct text_table *t, struct buf *b)
{
    static const char *const kind_names[] = {"records of archives", "files", "(not said)"};
    static const char *const tdm_names[] = {"reserved", "not reserved", "(not said)"};
    const struct source_stats *s = &c->sources;

    t->columns = 2;
    text_table_add(t, span_of("documents"));
    text_table_add_int(t, c->all.docs);
    for (int i = 0; i < CORPUS_SIZES; i++) {
        text_table_add(t, span_of(corpus_size_names[i]));
        text_table_add_int(t, c->all.sum[i]);
    }
    TRY(text_table_put(t, 0, b));
    TRY(tally_put_text(&c->langs, "languages", c->all.docs, conf->top, t, b));
    TRY(put_domains_text(c, conf, t, b));
    TRY(put_months_text(c, t, b));
    TRY(put_kinds_text(c, "kinds of source", kind_names, s->kind, SOURCE_KINDS, t, b));
    TRY(tally_put_text(&s->dumps, "dumps", c->all.docs, conf->top, t, b));
    TRY(tally_put_text(&s->files, "files", c->all.docs, conf->top, t, b));
    TRY(tally_put_text(&s->licenses, "licences that pages state", c->all.docs, conf->top, t, b));
    TRY(tally_put_text(&s->robots, "directives to robots", c->all.docs, conf->top, t, b));
    return put_kinds_text(c, "text and data mining (TDMRep)", tdm_names, s->tdm, TDM_KINDS, t, b);
}

int source_stats_put(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b)
{
    struct text_table t = {0};
    int rc = conf->json ? put_json(c, conf, b) : put_text(c, conf, &t, b);

    text_table_free(&t);
    return rc < 0 ? rc : b->failed;
}
