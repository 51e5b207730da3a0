#include "base/node_build.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/json_walk.h"

enum { LOAD_MAX = 1 << 30 };

/* ---- building ---- */

struct node *node_add(struct node_builder *b, enum node_type type, int line)
{
    struct node *n = arena_calloc(b->arena, 1, sizeof *n);

    if (!n)
        return NULL;
    n->type = type;
    n->line = line;
    if (b->has_key)
        n->key = b->key;
    b->has_key = false;
    if (b->depth == 0) {
        b->root = n;
        return n;
    }
    struct node *parent = b->open[b->depth - 1], **last = &b->last[b->depth - 1];
    if (*last)
        (*last)->next = n;
    else
        parent->child = n;
    *last = n;
    parent->count++;
    return n;
}

int node_add_key(struct node_builder *b, struct span key, struct err *e)
{
    b->key = arena_dup(b->arena, key);
    b->has_key = true;
    return b->key.p ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

int node_open(struct node_builder *b, struct node *n, struct err *e)
{
    if (b->depth == NODE_DEPTH)
        return err_set(e, ERR_FORMAT, "nesting deeper than %d", NODE_DEPTH);
    b->open[b->depth] = n;
    b->last[b->depth++] = NULL;
    return 0;
}

int node_close(struct node_builder *b, struct err *e)
{
    const struct node *n = b->open[--b->depth];
    const struct span *twin;

    if (n->type != NODE_MAP)
        return 0;
    buf_clear(&b->keys);
    for (const struct node *c = n->child; c; c = c->next)
        if (buf_put(&b->keys, &c->key, sizeof c->key) < 0)
            return err_set(e, ERR_NOMEM, "out of memory");
    twin = json_find_twin((struct span *)(void *)b->keys.p, (size_t)n->count);
    if (!twin)
        return 0;
    /* the second one of the two, for its line */
    const struct node *second = NULL;
    for (const struct node *c = n->child; c; c = c->next)
        if (span_eq(c->key, *twin))
            second = c;
    int shown = (int)(twin->n < 100 ? twin->n : 100);
    if (second && second->line)
        return err_set(e, ERR_FORMAT, "line %d: the key '%.*s' occurs twice", second->line, shown, twin->p);
    return err_set(e, ERR_FORMAT, "the key '%.*s' occurs twice", shown, twin->p);
}

bool node_wants_key(const struct node_builder *b)
{
    return b->depth && b->open[b->depth - 1]->type == NODE_MAP && !b->has_key;
}

/* ---- loading ---- */

static int load(struct arena *a, const char *path, struct node **root, struct err *e,
                int (*parse)(struct arena *, struct span, struct node **, struct err *))
{
    struct buf b = {0};
    int rc = file_read_all(path, LOAD_MAX, &b, e);

    if (rc == 0 && buf_reserve(&b, JSON_PADDING) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for '%s'", path);
    if (rc == 0) {
        rc = parse(a, buf_span(&b), root, e);
        if (rc < 0)
            err_wrap(e, "'%s'", path);
    }
    buf_free(&b);
    return rc;
}

int node_load_json(struct arena *a, const char *path, struct node **root, struct err *e)
{
    return load(a, path, root, e, node_parse_json);
}

int node_load_yaml(struct arena *a, const char *path, struct node **root, struct err *e)
{
    return load(a, path, root, e, node_parse_yaml);
}

/* ---- reading ---- */

const struct node *node_get(const struct node *n, const char *key)
{
    if (!n || n->type != NODE_MAP)
        return NULL;
    for (const struct node *c = n->child; c; c = c->next)
        if (span_is(c->key, key))
            return c;
    return NULL;
}

const char *node_str(const struct node *n, const char *key)
{
    const struct node *c = node_get(n, key);
    return c && c->type == NODE_STR ? c->str.p : NULL;
}

int64_t node_int(const struct node *n, const char *key, int64_t fallback)
{
    const struct node *c = node_get(n, key);
    return c && c->type == NODE_INT ? c->integer : fallback;
}

double node_num(const struct node *n, const char *key, double fallback)
{
    const struct node *c = node_get(n, key);
    return c && (c->type == NODE_INT || c->type == NODE_NUM) ? c->num : fallback;
}

bool node_bool(const struct node *n, const char *key, bool fallback)
{
    const struct node *c = node_get(n, key);
    return c && c->type == NODE_BOOL ? c->integer != 0 : fallback;
}

int node_put_json(struct buf *b, const struct node *n, const char *gap)
{
    bool map = n->type == NODE_MAP, list = n->type == NODE_LIST;

    if (n->type == NODE_NULL)
        return buf_puts(b, "null");
    if (!map && !list)
        return n->type == NODE_STR ? json_put_string(b, n->str) : buf_put_span(b, n->str);
    TRY(buf_putc(b, map ? '{' : '['));
    for (const struct node *c = n->child; c; c = c->next) {
        if (c != n->child) {
            TRY(buf_putc(b, ','));
            TRY(buf_puts(b, gap));
        }
        if (map) {
            TRY(json_put_string(b, c->key));
            TRY(buf_putc(b, ':'));
            TRY(buf_puts(b, gap));
        }
        TRY(node_put_json(b, c, gap));
    }
    return buf_putc(b, map ? '}' : ']');
}
