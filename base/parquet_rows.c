/* Rows put together of columns by their levels (S. Melnik et al., "Dremel: Interactive Analysis of Web-Scale Datasets",
 * 2010).  A value's level of definition says how much of the way from the root to it is there, its level of repetition in
 * which of the lists on that way it is another item. */
#include <inttypes.h>

#include <stdlib.h>

#include "base/json.h"
#include "base/json_walk.h"
#include "base/parquet.h"

struct row {
    struct buf *b;
    struct parquet_column *column;
    struct json_scanner *json;
    struct err *e;
};

/* b takes nothing more. */
static int full(struct row *r)
{
    return r->b->failed ? err_set(r->e, ERR_NOMEM, "out of memory for a row")
                        : err_set(r->e, ERR_LIMIT, "it is longer than %zu bytes", r->b->max);
}

static int put(struct row *r, const char *s)
{
    return buf_puts(r->b, s) < 0 ? full(r) : 0;
}

static int named(struct row *r, const struct parquet_column *c)
{
    return err_wrap(r->e, "column '%.*s'", PARQUET_NAME(c->leaf));
}

/* The next entry of a leaf, which there must be. */
static int peek(struct row *r, int leaf)
{
    struct parquet_column *c = &r->column[leaf];
    int rc = c->ready ? 1 : parquet_column_peek(c, r->e);

    if (rc == 0)
        rc = err_set(r->e, ERR_FORMAT, "it ends before the other columns do");
    return rc < 0 ? named(r, c) : 0;
}

/* Takes what the leaves of n say where it has nothing: that the way to it ends at a level. */
static int pass_absent(struct row *r, const struct parquet_node *n, int level)
{
    for (int i = n->first_leaf; i < n->first_leaf + n->n_leaves; i++) {
        struct parquet_column *c = &r->column[i];

        TRY(peek(r, i));
        if ((int)c->def != level) {
            err_set(r->e, ERR_FORMAT, "its nulls are not those of another column");
            return named(r, c);
        }
        c->ready = false;
    }
    return 0;
}

/* What is JSON stands as such, on one line; what is none as a string. */
static int put_json(struct row *r, const struct parquet_node *n, struct span value)
{
    size_t from = r->b->n;
    struct json_token token;
    struct json_walk walk;
    int rc;

    if (buf_put_span(r->b, value) < 0 || buf_reserve(r->b, JSON_PADDING) < 0)
        return full(r);
    rc = json_walk_start(&walk, r->json, (struct span){r->b->p + from, value.n}, NULL);
    while (rc == 0 && (rc = json_walk_next(&walk, &token, NULL)) == 1)
        rc = 0;
    if (rc == ERR_NOMEM)
        return full(r);
    if (rc < 0) {
        r->b->n = from;
        return parquet_put_value(r->b, n, value) < 0 ? full(r) : 0;
    }
    for (char *p = r->b->p + from; p < r->b->p + r->b->n; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    return 0;
}

static int put_leaf(struct row *r, const struct parquet_node *n)
{
    struct parquet_column *c = &r->column[n->first_leaf];
    struct span value;

    c->ready = false;
    if (parquet_values_next(&c->values, &value, r->e) < 0)
        return err_wrap(r->e, "column '%.*s': page before offset %" PRIu64, PARQUET_NAME(n), c->at);
    if (n->meaning == PARQUET_JSON)
        return put_json(r, n, value);
    return parquet_put_value(r->b, n, value) < 0 ? full(r) : 0;
}

static int put_node(struct row *r, const struct parquet_node *n);

static int put_struct(struct row *r, const struct parquet_node *n)
{
    TRY(put(r, "{"));
    for (const struct parquet_node *k = n->child; k; k = k->next) {
        if (buf_put_span(r->b, k->key) < 0)
            return full(r);
        TRY(put_node(r, k));
        TRY(put(r, k->next ? "," : "}"));
    }
    return 0;
}

/* A key of an object: what is no string becomes one. */
static int put_map_key(struct row *r, const struct parquet_node *key)
{
    size_t from = r->b->n;
    struct buf own = {0};
    int rc = put_node(r, key);

    if (rc == 0 && r->b->p[from] != '"') {
        rc = buf_put(&own, r->b->p + from, r->b->n - from);
        r->b->n = from;
        rc = rc < 0 || json_put_string(r->b, buf_span(&own)) < 0 ? err_set(r->e, ERR_NOMEM, "out of memory for a row") : 0;
        buf_free(&own);
    }
    return rc < 0 ? rc : put(r, ":");
}

static int put_item(struct row *r, const struct parquet_node *n)
{
    if (n->shape == PARQUET_LIST)
        return put_node(r, n->child);
    TRY(put_map_key(r, n->child));
    return put_node(r, n->child->next);
}

/* After an item of n: whether another one follows, in all its columns. */
static int has_more(struct row *r, const struct parquet_node *n)
{
    int more = 0, at = 0;

    for (int i = n->first_leaf; i < n->first_leaf + n->n_leaves; i++) {
        struct parquet_column *c = &r->column[i];
        int rc = c->ready ? 1 : parquet_column_peek(c, r->e), next = rc ? (int)c->rep : 0;

        if (rc < 0)
            return named(r, c);
        if (next > n->item_rep || (i > n->first_leaf && next != at)) {
            err_set(r->e, ERR_FORMAT, "its lists are not those of another column");
            return named(r, c);
        }
        at = next;
        more = next == n->item_rep;
    }
    return more;
}

static int put_items(struct row *r, const struct parquet_node *n)
{
    bool list = n->shape == PARQUET_LIST;
    int more = 1;

    TRY(put(r, list ? "[" : "{"));
    if ((int)r->column[n->first_leaf].def < n->item_def) {
        TRY(pass_absent(r, n, n->item_def - 1));
        return put(r, list ? "]" : "}");
    }
    for (;;) {
        TRY(put_item(r, n));
        TRY(more = has_more(r, n));
        if (!more)
            return put(r, list ? "]" : "}");
        TRY(put(r, ","));
    }
}

/* What stands next of n, whose parent is there. */
static int put_node(struct row *r, const struct parquet_node *n)
{
    struct parquet_column *c = &r->column[n->first_leaf];

    TRY(peek(r, n->first_leaf));
    if ((int)c->def < n->def - n->optional) {
        err_set(r->e, ERR_FORMAT, "it has nothing where it, or another column, must have a value");
        return named(r, c);
    }
    if ((int)c->def < n->def) {
        TRY(pass_absent(r, n, n->def - 1));
        return put(r, "null");
    }
    switch (n->shape) {
    case PARQUET_LEAF: return put_leaf(r, n);
    case PARQUET_STRUCT: return put_struct(r, n);
    case PARQUET_LIST:
    case PARQUET_MAP: break;
    }
    return put_items(r, n);
}

static int put_row(struct parquet_reader *p, struct buf *b, struct err *e)
{
    struct row r = {b, p->column, p->json, e};

    for (int i = 0; i < p->meta->n_leaves; i++) {
        TRY(peek(&r, i));
        if (p->column[i].rep) {
            err_set(e, ERR_FORMAT, "it goes on with a row that has ended");
            return named(&r, &p->column[i]);
        }
    }
    TRY(put_struct(&r, p->meta->root));
    return put(&r, "\n");
}

/* Behind the last row of a group no column may have more. */
static int check_end(struct parquet_reader *r, struct err *e)
{
    for (int i = 0; i < r->meta->n_leaves; i++) {
        int rc = parquet_column_peek(&r->column[i], e);

        if (rc > 0)
            rc = err_set(e, ERR_FORMAT, "it has more than the %" PRIu64 " rows of the row group", r->row);
        if (rc < 0)
            return err_wrap(e, "column '%.*s'", PARQUET_NAME(r->meta->leaf[i]));
    }
    return 0;
}

int parquet_reader_row(struct parquet_reader *r, struct buf *b, struct err *e)
{
    bool ended = r->row == r->meta->group[r->group].rows;
    size_t from = b->n;
    int rc = ended ? check_end(r, e) : put_row(r, b, e);

    if (rc < 0) {
        b->n = from;
        return err_wrap(e, "row group %zu: row %" PRIu64, r->group, r->row);
    }
    r->row += !ended;
    return !ended;
}

static int open_columns(struct parquet_reader *r, struct err *e)
{
    r->column = calloc((size_t)r->meta->n_leaves, sizeof *r->column);
    r->json = json_scanner_new();
    return r->column && r->json ? 0 : err_set(e, ERR_NOMEM, "out of memory for the columns");
}

int parquet_reader_open(struct parquet_reader *r, struct err *e)
{
    r->meta = &r->own;
    TRY(parquet_meta_read(&r->own, &r->source, e));
    return open_columns(r, e);
}

/* Whether a name is one of several with commas between. */
static bool is_named(void *names, struct span name)
{
    const char *s = names;

    for (size_t n; *s; s += n + (s[n] == ',')) {
        n = strcspn(s, ",");
        if (span_eq((struct span){s, n}, name))
            return true;
    }
    return false;
}

/* Whether all that are named are there. */
static int check_names(const struct parquet_meta *m, const char *names, struct err *e)
{
    for (size_t n; *names; names += n + (names[n] == ',')) {
        const struct parquet_node *k = m->root->child;

        n = strcspn(names, ",");
        while (k && !span_eq(k->name, (struct span){names, n}))
            k = k->next;
        if (!k)
            return err_set(e, ERR_FORMAT, "it has no column '%.*s'", (int)(n < 99 ? n : 99), names);
    }
    return 0;
}

int parquet_reader_open_some(struct parquet_reader *r, const char *names, struct err *e)
{
    r->meta = &r->own;
    TRY(parquet_meta_read(&r->own, &r->source, e));
    TRY(check_names(&r->own, names, e));
    if (parquet_meta_keep(&r->own, is_named, (void *)(uintptr_t)names) == 0)
        return err_set(e, ERR_FORMAT, "no column of it is named");
    return open_columns(r, e);
}

int parquet_reader_open_with(struct parquet_reader *r, const struct parquet_meta *m, struct err *e)
{
    r->meta = m;
    return open_columns(r, e);
}

void parquet_reader_start(struct parquet_reader *r)
{
    const struct parquet_group *g = &r->meta->group[r->group];

    for (int i = 0; i < r->meta->n_leaves; i++)
        parquet_column_start(&r->column[i], &r->source, r->meta->leaf[i], &g->chunk[i]);
    r->row = 0;
}

void parquet_reader_close(struct parquet_reader *r)
{
    for (int i = 0; r->column && i < r->meta->n_leaves; i++)
        parquet_column_free(&r->column[i]);
    free(r->column);
    json_scanner_free(r->json);
    parquet_meta_free(&r->own);
}
