#include "curate/crawl/crawl_prune.h"

#include "base/ascii.h"
#include "curate/crawl/crawl_entry.h"
#include "curate/stream/where_range.h"

struct group {
    const struct parquet_table *table;
    size_t number;
};

/* Whether texts between two are dates as they stand: none of them is fourteen digits, which are one written otherwise. */
static bool are_dates(const struct parquet_range *r)
{
    for (size_t i = 0; i < r->least.n && i < r->most.n && r->least.p[i] == r->most.p[i]; i++)
        if (!ascii_is_digit((unsigned char)r->least.p[i]))
            return true;
    return false;
}

/* The first of several languages, of which the texts in r are lists. */
static void cut_languages(struct where_range *r)
{
    size_t n = 0;

    while (n < r->least.n && (unsigned char)r->least.p[n] > ',')
        n++;
    r->least.n = n; /* the greatest bounds what it begins with */
}

/* What the values of a column may do at a test: a field is what a row has as text, or as number. */
static int column_may(const struct where_node *test, const struct parquet_range *r, bool list)
{
    struct where_range range = {test->type, r->least, r->most, 0, 0};

    if (test->type == WHERE_NUMBER) {
        if (r->kind != PARQUET_RANGE_INTS || r->least_int < 0) /* one below 0 is no number of an entry */
            return WHERE_MAY_BOTH;
        range.least_number = (double)r->least_int;
        range.most_number = (double)r->most_int;
        return where_range_may(test, &range);
    }
    if (r->kind != PARQUET_RANGE_TEXTS || (test->which == CRAWL_DATE && !are_dates(r)))
        return WHERE_MAY_BOTH;
    if (list)
        cut_languages(&range);
    return where_range_may(test, &range);
}

/* Adds what the columns of a field may do at a test, in the order in which they count; *left: a row may have none of them. */
static int field_may(const struct group *g, const struct where_node *test, enum crawl_field f, bool *left)
{
    struct parquet_range r;
    const char *name;
    int may = 0;

    for (int i = 0; *left && (name = crawl_field_called(f, i)); i++) {
        if (!parquet_table_range(g->table, g->number, name, &r))
            continue;
        if (r.values)
            may |= column_may(test, &r, f == CRAWL_LANGS && test->which == CRAWL_LANG);
        *left = r.nulls;
    }
    return may;
}

/* What the rows of a group may do at a test. */
static int test_may(void *group, const struct where_node *test)
{
    bool left = true;
    int may = field_may(group, test, (enum crawl_field)test->which, &left);

    switch (test->which) {
    case CRAWL_MIME: may |= field_may(group, test, CRAWL_MIME_TYPE, &left); break;
    case CRAWL_LANG: may |= field_may(group, test, CRAWL_LANGS, &left); break;
    case CRAWL_HOST: case CRAWL_DOMAIN: case CRAWL_TLD: case CRAWL_DUMP: /* made of other fields */
        return left ? WHERE_MAY_BOTH : may;
    default: break;
    }
    return left ? may | WHERE_MAY_FAIL : may;
}

/* Whether the keys of a group can be those of entries that meet the condition. */
static bool keys_meet(const struct crawl_keys *k, const struct group *g)
{
    static const char *const column[] = {"url_surtkey", "urlkey"};
    struct parquet_range r;

    for (size_t i = 0; i < sizeof column / sizeof *column; i++)
        if (parquet_table_range(g->table, g->number, column[i], &r) && r.kind == PARQUET_RANGE_TEXTS && !r.nulls &&
            !crawl_keys_meet(k, r.least, r.most))
            return false;
    return true;
}

bool crawl_prune_wants(const struct crawl_prune *p, const struct parquet_table *t, size_t group)
{
    struct group g = {t, group};

    return !p->where || (keys_meet(p->keys, &g) && (where_may(where_root(p->where), test_may, &g) & WHERE_MAY_MEET));
}
