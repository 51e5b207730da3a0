#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_walk.h"
#include "base/node_build.h"

struct parse {
    struct json_walk walk;
    struct node_builder b;
    struct buf text; /* a string without its escapes */
    bool rows;       /* some containers may be rows */
    const char *in;  /* under this key; NULL: the root */
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory");
}

/* p->text becomes what the quoted string stands for. */
static int unescape(struct parse *p, const struct json_token *t, struct err *e)
{
    int rc;

    buf_clear(&p->text);
    rc = json_unescape(t->raw, &p->text, e);
    if (rc < 0)
        err_wrap(e, "byte %zu", t->at);
    return rc;
}

static void set_number(struct node *n)
{
    char *end;

    errno = 0;
    n->integer = strtoll(n->str.p, &end, 10);
    if (*end == '\0' && errno == 0) {
        n->num = (double)n->integer;
        return;
    }
    n->type = NODE_NUM;
    n->integer = 0;
    n->num = json_parse_double(n->str.p, n->str.n);
}

static int add_scalar(struct parse *p, const struct json_token *t, struct err *e)
{
    static const enum node_type types[] = {[JSON_NULL] = NODE_NULL, [JSON_BOOL] = NODE_BOOL,
                                           [JSON_NUMBER] = NODE_INT, [JSON_STRING] = NODE_STR};
    struct node *n = node_add(&p->b, types[t->type], 0);
    struct span s = t->raw;

    if (!n)
        return no_memory(e);
    if (t->type == JSON_STRING) {
        TRY(unescape(p, t, e));
        s = buf_span(&p->text);
    }
    n->str = arena_dup(p->b.arena, s);
    if (!n->str.p)
        return no_memory(e);
    if (t->type == JSON_BOOL)
        n->integer = *t->raw.p == 't';
    if (t->type == JSON_NUMBER)
        set_number(n);
    return 0;
}

/* Whether what comes next may be rows: right under the key `in` of the root, or the root's own "vocab". */
static bool is_large(const struct node_builder *b, const char *in)
{
    return b->depth == 2 ? span_is(b->open[1]->key, in) : b->depth == 1 && b->has_key && span_is(b->key, "vocab");
}

/* The container that has just begun, as rows: 1; 0: it is to be built. */
static int add_rows(struct parse *p, struct err *e)
{
    struct json_rows rows, *kept;
    struct node *n;

    if (!p->rows || !(p->in ? is_large(&p->b, p->in) : p->b.depth == 0) || !json_walk_rows(&p->walk, &rows))
        return 0;
    n = node_add(&p->b, NODE_ROWS, 0);
    kept = arena_alloc(p->b.arena, sizeof *kept);
    if (!n || !kept)
        return no_memory(e);
    *kept = rows;
    n->rows = kept;
    n->count = (int64_t)rows.n;
    return 1;
}

static int add_token(struct parse *p, const struct json_token *t, struct err *e)
{
    struct node *n;
    int rc;

    switch (t->event) {
    case JSON_KEY:
        TRY(unescape(p, t, e));
        return node_add_key(&p->b, buf_span(&p->text), e);
    case JSON_SCALAR:
        return add_scalar(p, t, e);
    case JSON_OPEN:
        TRY(rc = add_rows(p, e));
        if (rc)
            return 0;
        n = node_add(&p->b, t->type == JSON_OBJECT ? NODE_MAP : NODE_LIST, 0);
        return n ? node_open(&p->b, n, e) : no_memory(e);
    default:
        return node_close(&p->b, e);
    }
}

static int parse_text(struct arena *a, struct json_scanner *s, struct parse *p, struct span text, struct node **root,
                      struct err *e)
{
    struct json_token t;
    int rc = p && s ? 0 : no_memory(e);

    *root = NULL;
    if (rc == 0) {
        p->b.arena = a;
        rc = json_walk_start(&p->walk, s, text, e);
        while (rc >= 0 && (rc = json_walk_next(&p->walk, &t, e)) > 0)
            rc = add_token(p, &t, e);
        *root = rc == 0 ? p->b.root : NULL;
        buf_free(&p->text);
        buf_free(&p->b.keys);
    }
    free(p);
    return rc;
}

int node_parse_json(struct arena *a, struct span text, struct node **root, struct err *e)
{
    struct json_scanner *s = json_scanner_new();
    int rc = parse_text(a, s, calloc(1, sizeof(struct parse)), text, root, e);

    json_scanner_free(s);
    return rc;
}

int node_parse_json_rows(struct arena *a, struct json_scanner *s, struct span text, const char *in, struct node **root,
                         struct err *e)
{
    struct parse *p = calloc(1, sizeof *p);

    if (p) {
        p->rows = true;
        p->in = in;
    }
    return parse_text(a, s, p, text, root, e);
}
