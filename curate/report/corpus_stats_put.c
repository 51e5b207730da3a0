#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/version.h"
#include "curate/report/corpus_stats.h"
#include "curate/report/tally_put.h"

static const struct {
    const char *name;
    double q;
} quantiles[] = {{"p01", .01}, {"p05", .05}, {"p25", .25}, {"p50", .5}, {"p75", .75}, {"p95", .95}, {"p99", .99}};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

/* ---- JSON ---- */

/* As json_put_key, for a name from outside. */
static int put_name(struct buf *b, struct span name)
{
    if (b->p[b->n - 1] != '{')
        TRY(buf_putc(b, ','));
    TRY(json_put_string(b, name));
    return buf_putc(b, ':');
}

/* A distribution; with `powers` also how many lie in each power of two. */
static int put_points(const struct sketch *s, const struct sketch_point *p, size_t n, bool powers, struct buf *b)
{
    uint64_t under[66] = {0}; /* [0]: 0; [k]: 2^(k-1) to 2^k - 1 */

    TRY(json_put_count(b, "count", s->n));
    TRY(json_put_real(b, "mean", sketch_mean(s)));
    TRY(json_put_real(b, "min", s->n ? s->min : NAN));
    for (int i = 0; i < QUANTILES; i++)
        TRY(json_put_real(b, quantiles[i].name, sketch_quantile(p, n, quantiles[i].q)));
    TRY(json_put_real(b, "max", s->n ? s->max : NAN));
    TRY(json_put_real(b, "quantile_error", sketch_is_exact(s) ? 0 : 1.0 / 256));
    if (!powers)
        return 0;
    for (size_t i = 0; i < n; i++)
        under[p[i].x < 1 ? 0 : ilogb(p[i].x) < 64 ? ilogb(p[i].x) + 1 : 65] += p[i].n;
    TRY(json_put_key(b, "powers_of_two"));
    TRY(buf_putc(b, '['));
    for (int i = 0, first = 1; i < 66; i++) {
        if (!under[i])
            continue;
        TRY(buf_puts(b, first ? "{" : ",{"));
        TRY(json_put_real(b, "from", i ? ldexp(1, i - 1) : 0));
        TRY(json_put_count(b, "documents", under[i]));
        TRY(buf_putc(b, '}'));
        first = 0;
    }
    return buf_putc(b, ']');
}

static int put_sketch(const struct sketch *s, bool powers, struct buf *b)
{
    struct sketch_point *p;
    size_t n;
    int rc;

    TRY(sketch_points(s, &p, &n));
    rc = buf_putc(b, '{');
    if (rc == 0)
        rc = put_points(s, p, n, powers, b);
    free(p);
    return rc < 0 ? rc : buf_putc(b, '}');
}

static int by_name(const void *a, const void *b, void *of)
{
    const struct name_table *t = of;

    return span_compare(t->name[*(const size_t *)a], t->name[*(const size_t *)b]);
}

/* The numbers of the names, in the order of the names; malloc'd, NULL when memory is out. */
static size_t *names_in_order(const struct name_table *t)
{
    size_t *order = malloc((t->n + 1) * sizeof *order);
    union { const struct name_table *in; void *out; } u = {t};

    for (size_t i = 0; i < t->n && order; i++)
        order[i] = i;
    if (order)
        qsort_r(order, t->n, sizeof *order, by_name, u.out);
    return order;
}

static int put_part(const struct corpus_stats *c, const struct corpus_part *p, const size_t *fields, struct buf *b)
{
    TRY(json_put_count(b, "documents", p->docs));
    for (int i = 0; i < CORPUS_SIZES; i++)
        TRY(json_put_count(b, corpus_size_names[i], p->sum[i]));
    TRY(json_put_key(b, "per_document"));
    TRY(buf_putc(b, '{'));
    for (int i = 0; i < CORPUS_SIZES; i++) {
        TRY(json_put_key(b, corpus_size_names[i]));
        TRY(put_sketch(&p->size[i], true, b));
    }
    TRY(buf_puts(b, "},\"numbers\":{"));
    for (size_t i = 0; i < c->fields.n; i++) {
        size_t k = fields[i];
        if (k >= p->n_numbers || !p->number[k])
            continue;
        TRY(put_name(b, c->fields.name[k]));
        TRY(put_sketch(p->number[k], false, b));
    }
    return buf_putc(b, '}');
}

/* The groups, the largest first; malloc'd.  The one of all others last. */
static size_t *groups_in_order(const struct corpus_stats *c, size_t *n)
{
    struct name_tally t = {.names = c->groups};
    size_t *order;

    *n = 0;
    t.count = calloc(c->groups.n + 1, sizeof *t.count);
    for (size_t i = 0; i < c->groups.n && t.count; i++)
        t.count[i] = (struct name_count){.docs = c->group[i].docs, .bytes = c->group[i].sum[CORPUS_BYTES]};
    order = t.count ? name_tally_order(&t) : NULL;
    free(t.count);
    if (!order)
        return NULL;
    *n = c->groups.n;
    if (c->group[CORPUS_GROUPS].docs)
        order[(*n)++] = CORPUS_GROUPS;
    return order;
}

static int put_groups(const struct corpus_stats *c, const struct corpus_conf *conf, const size_t *fields, struct buf *b)
{
    size_t n, *order = groups_in_order(c, &n);
    int rc = order ? 0 : ERR_NOMEM;

    for (size_t i = 0; i < tally_shown(conf->top, n) && rc == 0; i++) {
        rc = buf_puts(b, i ? ",{\"value\":" : "{\"value\":");
        if (rc == 0)
            rc = order[i] < c->groups.n ? json_put_string(b, c->groups.name[order[i]]) : buf_puts(b, "null");
        if (rc == 0)
            rc = put_part(c, &c->group[order[i]], fields, b);
        if (rc == 0)
            rc = buf_putc(b, '}');
    }
    free(order);
    return rc;
}

static int put_all(const struct corpus_stats *c, const struct corpus_conf *conf, const size_t *fields, struct buf *b)
{
    TRY(buf_puts(b, "{\"quern\":\"" QUERN_VERSION "\""));
    TRY(json_put_count(b, "bad", c->bad));
    TRY(put_part(c, &c->all, fields, b));
    TRY(tally_put_json(&c->langs, "languages", "lang", conf->top, b));
    TRY(tally_put_json(&c->hosts, "hosts", "host", conf->top, b));
    TRY(json_put_key(b, "fields"));
    TRY(buf_putc(b, '{'));
    for (size_t i = 0; i < c->fields.n; i++) {
        TRY(put_name(b, c->fields.name[fields[i]]));
        TRY(json_put_int(b, (int64_t)c->field_docs[fields[i]]));
    }
    TRY(buf_putc(b, '}'));
    TRY(json_put_count(b, "fields_left_out", c->left_out));
    if (conf->by) {
        TRY(buf_puts(b, ",\"by\":{\"field\":"));
        TRY(json_put_string(b, span_of(conf->by)));
        TRY(json_put_count(b, "different", c->groups.n));
        TRY(buf_puts(b, ",\"groups\":["));
        TRY(put_groups(c, conf, fields, b));
        TRY(buf_puts(b, "]}"));
    }
    return buf_puts(b, "}\n");
}

int corpus_put_json(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b)
{
    size_t *fields = names_in_order(&c->fields);
    int rc = fields ? put_all(c, conf, fields, b) : ERR_NOMEM;

    free(fields);
    return rc;
}

/* ---- tables ---- */

static int add_sketch(struct text_table *t, struct span name, const struct sketch *s)
{
    static const double q[] = {.05, .25, .5, .75, .95};
    struct sketch_point *p;
    size_t n;
    int rc;

    TRY(sketch_points(s, &p, &n));
    rc = text_table_add(t, name);
    if (rc == 0)
        rc = text_table_add_int(t, s->n);
    if (rc == 0)
        rc = text_table_add_num(t, sketch_mean(s));
    if (rc == 0)
        rc = text_table_add_num(t, s->n ? s->min : NAN);
    for (int i = 0; i < 5 && rc == 0; i++)
        rc = text_table_add_num(t, sketch_quantile(p, n, q[i]));
    free(p);
    return rc < 0 ? rc : text_table_add_num(t, s->n ? s->max : NAN);
}

static int put_numbers(const struct corpus_stats *c, const size_t *fields, struct text_table *t, struct buf *b)
{
    static const char *const heads[] = {"", "count", "mean", "min", "5 %", "25 %", "50 %", "75 %", "95 %", "max"};
    bool any = false;

    t->columns = 10;
    TRY(text_table_add_cells(t, 10, heads));
    for (int i = 0; i < CORPUS_SIZES; i++)
        TRY(add_sketch(t, span_of(corpus_size_names[i]), &c->all.size[i]));
    TRY(buf_puts(b, "\nper document\n"));
    TRY(text_table_put(t, 2, b));
    TRY(text_table_add_cells(t, 10, heads));
    for (size_t i = 0; i < c->fields.n; i++) {
        size_t k = fields[i];
        if (k < c->all.n_numbers && c->all.number[k]) {
            TRY(add_sketch(t, c->fields.name[k], c->all.number[k]));
            any = true;
        }
    }
    if (any)
        TRY(buf_puts(b, "\nnumbers\n"));
    else
        buf_clear(&t->bytes);
    return text_table_put(t, 2, b);
}

static int put_powers(const struct corpus_stats *c, struct text_table *t, struct buf *b)
{
    uint64_t under[66] = {0}, most = 0;
    struct sketch_point *p;
    char bar[41];
    size_t n;

    TRY(sketch_points(&c->all.size[CORPUS_CHARS], &p, &n));
    for (size_t i = 0; i < n; i++)
        under[p[i].x < 1 ? 0 : ilogb(p[i].x) + 1] += p[i].n;
    free(p);
    for (int i = 0; i < 66; i++)
        most = under[i] > most ? under[i] : most;
    t->columns = 3;
    for (int i = 0; i < 66; i++) {
        if (!under[i])
            continue;
        TRY(text_table_add_num(t, i ? ldexp(1, i - 1) : 0));
        TRY(text_table_add_int(t, under[i]));
        memset(bar, ' ', 40);
        memset(bar, '#', (size_t)((double)under[i] / (double)most * 40 + .5));
        bar[40] = '\0';
        TRY(text_table_add(t, span_of(bar)));
    }
    TRY(buf_puts(b, "\ncharacters, from; documents\n"));
    return text_table_put(t, 2, b);
}

static int put_groups_text(const struct corpus_stats *c, const struct corpus_conf *conf, struct text_table *table, struct buf *b)
{
    struct name_tally t = {.names = c->groups};
    const struct corpus_part *others = &c->group[CORPUS_GROUPS];
    int rc;

    t.count = calloc(c->groups.n + 1, sizeof *t.count);
    for (size_t i = 0; i < c->groups.n && t.count; i++)
        t.count[i] = (struct name_count){c->group[i].docs, c->group[i].sum[CORPUS_BYTES],
                                          c->group[i].sum[CORPUS_CHARS], c->group[i].sum[CORPUS_WORDS], 0};
    rc = t.count ? tally_put_text(&t, conf->by, c->all.docs, conf->top, table, b) : ERR_NOMEM;
    free(t.count);
    if (rc == 0 && others->docs)
        rc = buf_printf(b, "  documents with other values: %llu\n", (unsigned long long)others->docs);
    return rc;
}

static int put_fields(const struct corpus_stats *c, const size_t *fields, struct text_table *t, struct buf *b)
{
    t->columns = 3;
    for (size_t i = 0; i < c->fields.n; i++) {
        uint64_t n = c->field_docs[fields[i]];

        TRY(text_table_add(t, c->fields.name[fields[i]]));
        TRY(text_table_add_int(t, n));
        TRY(text_table_add_num(t, round(1e4 * (double)n / (double)c->all.docs) / 100));
    }
    TRY(buf_puts(b, "\nfields, documents that have them, %\n"));
    TRY(text_table_put(t, 2, b));
    return c->left_out ? buf_printf(b, "  left out: %llu\n", (unsigned long long)c->left_out) : 0;
}

static int put_tables(const struct corpus_stats *c, const struct corpus_conf *conf, const size_t *fields,
                      struct text_table *t, struct buf *b)
{
    t->columns = 2;
    TRY(text_table_add(t, span_of("documents")));
    TRY(text_table_add_int(t, c->all.docs));
    for (int i = 0; i < CORPUS_SIZES; i++) {
        TRY(text_table_add(t, span_of(corpus_size_names[i])));
        TRY(text_table_add_int(t, c->all.sum[i]));
    }
    TRY(text_table_put(t, 0, b));
    TRY(put_numbers(c, fields, t, b));
    TRY(put_powers(c, t, b));
    TRY(tally_put_text(&c->langs, "languages", c->all.docs, conf->top, t, b));
    TRY(tally_put_text(&c->hosts, "hosts", c->all.docs, conf->top, t, b));
    if (conf->by)
        TRY(put_groups_text(c, conf, t, b));
    return put_fields(c, fields, t, b);
}

int corpus_put_text(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b)
{
    size_t *fields = names_in_order(&c->fields);
    struct text_table t = {0};
    int rc = fields ? put_tables(c, conf, fields, &t, b) : ERR_NOMEM;

    text_table_free(&t);
    free(fields);
    return rc;
}

int corpus_put(const struct corpus_stats *c, const struct corpus_conf *conf, struct buf *b, struct err *e)
{
    int rc = (conf->sources ? source_stats_put : conf->json ? corpus_put_json : corpus_put_text)(c, conf, b);

    return rc < 0 ? err_set(e, rc, "out of memory for the numbers") : 0;
}
