/* Statistics of column chunks.  Source: parquet.thrift, Statistics and ColumnOrder.
 *
 * The least and the greatest value may have been cut, and moved up behind that (is_min_value_exact, is_max_value_exact): they
 * are bounds in any case.  Those in the older fields min and max are not looked at: texts were held against each other as signed
 * bytes there. */
#include "base/ascii.h"
#include "base/parquet.h"
#include "base/parquet_table.h"

enum { SECONDS = 19 /* characters of 2024-02-29T23:59:59 */ };

/* A Statistics, of format version 2. */
struct statistics {
    struct span least, most;
    int64_t nulls; /* below 0: it does not say */
    bool has_least, has_most;
};

static struct statistics read_statistics(struct span s)
{
    struct statistics x = {.nulls = -1};
    struct thrift t = {.p = (const uint8_t *)s.p};

    if (s.n == 0)
        return x;
    t.end = t.p + s.n;
    for (int id = 0; (id = thrift_field(&t, id)) > 0;) {
        if (id == 3) {
            x.nulls = thrift_int(&t);
        } else if (id == 5 && t.type == THRIFT_BINARY) {
            x.most = thrift_binary(&t);
            x.has_most = true;
        } else if (id == 6 && t.type == THRIFT_BINARY) {
            x.least = thrift_binary(&t);
            x.has_least = true;
        } else {
            thrift_skip(&t);
        }
    }
    if (t.bad)
        x = (struct statistics){.nulls = -1};
    return x;
}

/* An integer as it is stored; false: it has another width, or is an unsigned one that int64_t has not. */
static bool get_int(const struct parquet_node *leaf, struct span s, int64_t *v)
{
    uint32_t w;

    if (s.n != (leaf->type == PARQUET_INT32 ? sizeof w : sizeof *v))
        return false;
    if (leaf->type == PARQUET_INT64) {
        memcpy(v, s.p, sizeof *v);
        return leaf->meaning != PARQUET_UNSIGNED || *v >= 0;
    }
    memcpy(&w, s.p, sizeof w);
    *v = leaf->meaning == PARQUET_UNSIGNED ? (int64_t)w : (int64_t)(int32_t)w;
    return true;
}

/* A date or time as rows have it, without what stands behind the seconds, in own; false: it is of no year of four digits. */
static bool get_date(const struct parquet_node *leaf, struct span stored, char *own, struct span *text)
{
    struct buf b = {0};
    int64_t v;
    bool fine = get_int(leaf, stored, &v) && parquet_put_value(&b, leaf, stored) == 0 && b.n > 6 && b.p[0] == '"' &&
                ascii_is_digit((unsigned char)b.p[1]) && b.p[5] == '-';

    if (fine) {
        text->n = b.n - 2 < SECONDS ? b.n - 2 : SECONDS;
        memcpy(own, b.p + 1, text->n);
        text->p = own;
    }
    buf_free(&b);
    return fine;
}

/* Texts are ordered by bytes; of a moment what stands behind the seconds is not (12:00:00.5Z is less than 12:00:00Z). */
static bool date_range(struct parquet_range *r, const struct parquet_node *leaf, const struct statistics *x)
{
    if (!get_date(leaf, x->least, r->own[0], &r->least) || !get_date(leaf, x->most, r->own[1], &r->most))
        return false;
    if (leaf->meaning == PARQUET_TIMESTAMP)
        r->own[1][r->most.n++] = '\xff';
    return true;
}

void parquet_range_read(struct parquet_range *r, const struct parquet_meta *m, const struct parquet_node *leaf,
                        const struct parquet_chunk *c)
{
    struct statistics x = read_statistics(c->statistics);
    bool bounded = m->ordered && x.has_least && x.has_most, integer = leaf->type == PARQUET_INT32 || leaf->type == PARQUET_INT64;

    *r = (struct parquet_range){.nulls = leaf->optional && x.nulls != 0, .values = x.nulls < 0 || (uint64_t)x.nulls < c->n};
    if (!bounded)
        return;
    if (leaf->type == PARQUET_BYTES && leaf->meaning == PARQUET_STRING) {
        r->least = x.least;
        r->most = x.most;
        r->kind = PARQUET_RANGE_TEXTS;
    } else if (leaf->type == PARQUET_INT64 && leaf->meaning == PARQUET_TIMESTAMP) {
        r->kind = date_range(r, leaf, &x) ? PARQUET_RANGE_TEXTS : PARQUET_RANGE_NONE;
    } else if (leaf->type == PARQUET_INT32 && leaf->meaning == PARQUET_DATE) {
        r->kind = date_range(r, leaf, &x) ? PARQUET_RANGE_TEXTS : PARQUET_RANGE_NONE;
    } else if (integer && (leaf->meaning == PARQUET_RAW || leaf->meaning == PARQUET_UNSIGNED)) {
        r->kind = get_int(leaf, x.least, &r->least_int) && get_int(leaf, x.most, &r->most_int) ? PARQUET_RANGE_INTS
                                                                                              : PARQUET_RANGE_NONE;
    }
}
