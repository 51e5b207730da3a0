#include "pipelines/counts.h"

#include "base/json.h"
#include "base/node.h"

static int put_sum(struct buf *out, const struct node *a, int sign, const struct node *b);

static const struct node *find(const struct node *map, const struct node *like)
{
    return map && map->type == NODE_MAP ? node_get(map, like->key.p) : NULL;
}

static int put_map(struct buf *out, const struct node *a, int sign, const struct node *b)
{
    TRY(buf_putc(out, '{'));
    for (const struct node *n = a->child; n; n = n->next) {
        TRY(json_put_key(out, n->key.p));
        TRY(put_sum(out, n, sign, find(b, n)));
    }
    for (const struct node *n = b && b->type == NODE_MAP ? b->child : NULL; n; n = n->next) {
        static const struct node none = {.type = NODE_NULL};
        if (find(a, n))
            continue;
        TRY(json_put_key(out, n->key.p));
        TRY(put_sum(out, &none, sign, n));
    }
    return buf_putc(out, '}');
}

static int put_list(struct buf *out, const struct node *a, int sign, const struct node *b)
{
    const struct node *y = b && b->type == NODE_LIST ? b->child : NULL;

    TRY(buf_putc(out, '['));
    for (const struct node *x = a->child; x; x = x->next) {
        if (x != a->child)
            TRY(buf_putc(out, ','));
        TRY(put_sum(out, x, sign, y));
        y = y ? y->next : NULL;
    }
    return buf_putc(out, ']');
}

/* Nesting is bounded by what statistics nest: a few levels, written by this program. */
static int put_sum(struct buf *out, const struct node *a, int sign, const struct node *b)
{
    static const struct node zero = {.type = NODE_INT};

    if (a->type == NODE_NULL && b) { /* only b has it */
        if (b->type == NODE_INT || b->type == NODE_NUM)
            return put_sum(out, &zero, sign, b);
        return put_sum(out, b, sign, NULL);
    }
    if (b && b->type != NODE_INT && b->type != NODE_NUM && a->type != b->type)
        b = NULL;
    switch (a->type) {
    case NODE_INT:
        if (!b || b->type == NODE_INT)
            return json_put_int(out, a->integer + (b ? sign * b->integer : 0));
        return json_put_num(out, a->num + sign * b->num);
    case NODE_NUM:
        return json_put_num(out, a->num + (b ? sign * b->num : 0));
    case NODE_MAP:
        return put_map(out, a, sign, b);
    case NODE_LIST:
        return put_list(out, a, sign, b);
    case NODE_STR:
        return json_put_string(out, a->str);
    case NODE_BOOL:
        return buf_puts(out, a->integer ? "true" : "false");
    default:
        return buf_puts(out, "null");
    }
}

static int parse(struct arena *a, struct span inside, struct node **root, struct err *e)
{
    struct buf b = {0};
    int rc = 0;

    if (buf_putc(&b, '{') < 0 || buf_put_span(&b, inside) < 0 || buf_putc(&b, '}') < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0)
        rc = node_parse_json(a, buf_span(&b), root, e);
    buf_free(&b);
    return rc;
}

int counts_add(struct buf *out, struct span a, int sign, struct span b, struct err *e)
{
    struct arena mem = {0};
    struct buf sum = {0};
    struct node *x, *y;
    int rc = parse(&mem, a, &x, e);

    if (rc == 0)
        rc = parse(&mem, b, &y, e);
    if (rc == 0 && (put_map(&sum, x, sign, y) < 0 || buf_put(out, sum.p + 1, sum.n - 2) < 0))
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    buf_free(&sum);
    arena_free(&mem);
    return rc;
}
