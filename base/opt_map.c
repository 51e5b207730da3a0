#include "base/opt_map.h"

static int set_text(const struct opt *o, const struct node *n, const char *text, const char *file, struct err *e)
{
    struct err why;

    if (opt_set(o, o->name, text, &why) < 0)
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s", file, n->line, why.msg);
    return 0;
}

/* Each entry of a LIST option, or the entries joined by commas. */
static int set_list(const struct opt *o, const struct node *n, const char *file, struct arena *a, struct err *e)
{
    struct buf all = {0};
    struct span copy;
    int rc = 0;

    for (const struct node *i = n->child; i && rc == 0; i = i->next) {
        if (i->type == NODE_LIST || i->type == NODE_MAP || i->type == NODE_NULL)
            rc = err_set(e, ERR_FORMAT, "'%s' line %d: %s takes a list of words", file, i->line, o->name);
        else if (o->type == OPT_TYPE_LIST)
            rc = set_text(o, n, i->str.p, file, e);
        else if (o->type != OPT_TYPE_STR)
            rc = err_set(e, ERR_FORMAT, "'%s' line %d: %s takes one value, not a list", file, n->line, o->name);
        else if (buf_puts(&all, all.n ? "," : "") < 0 || buf_put_span(&all, i->str) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    copy = arena_dup(a, buf_span(&all));
    buf_free(&all);
    if (rc == 0 && !copy.p)
        return err_set(e, ERR_NOMEM, "out of memory");
    return rc < 0 || o->type == OPT_TYPE_LIST ? rc : set_text(o, n, copy.p, file, e);
}

int opt_set_map(const struct opt *opts, const char *what, const struct node *map, const char *file, struct arena *a,
                struct err *e)
{
    if (map->type == NODE_NULL)
        return 0;
    if (map->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "'%s' line %d: %s takes a map of settings", file, map->line, what);
    for (const struct node *n = map->child; n; n = n->next) {
        const struct opt *o = opt_find(opts, n->key.p);
        char meant[96];

        if (!o)
            return err_set(e, ERR_FORMAT, "'%s' line %d: %s has no setting '%s'%s", file, n->line, what, n->key.p,
                           opt_near(opts, n->key, "", meant, sizeof meant));
        if (n->type == NODE_NULL || n->type == NODE_MAP)
            return err_set(e, ERR_FORMAT, "'%s' line %d: %s needs a value", file, n->line, o->name);
        if (o->given && *o->given)
            continue;
        TRY(n->type == NODE_LIST ? set_list(o, n, file, a, e) : set_text(o, n, n->str.p, file, e));
    }
    return 0;
}
