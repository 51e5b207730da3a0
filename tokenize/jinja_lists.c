/* Filters of lists and mappings. */
#include "tokenize/jinja_parts.h"

int jinja_wrong(struct jinja_run *r, const struct jinja_args *x, const char *what, const struct jinja_value *v)
{
    if (v->kind == JINJA_UNDEFINED)
        return jinja_error(r, x->line, "'%.*s' is undefined", (int)(v->s.n < 100 ? v->s.n : 100), v->s.p ? v->s.p : "");
    return jinja_error(r, x->line, "%s of a %s", what, jinja_kind_name(v));
}

static int length(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    if (v->kind != JINJA_STRING && v->kind != JINJA_LIST && v->kind != JINJA_MAP && v->kind != JINJA_UNDEFINED)
        return jinja_wrong(r, x, "the length", v);
    *out = jinja_int(v->kind == JINJA_STRING ? jinja_characters(v->s) : v->kind == JINJA_LIST ? v->list->n
                     : v->kind == JINJA_MAP ? v->map->n : 0);
    return 0;
}

static int to_list(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return jinja_items(r, x->line, v, out);
}

static int end_of(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, bool last,
                  struct jinja_value *out)
{
    struct jinja_value items;

    TRY(jinja_items(r, x->line, v, &items));
    *out = (struct jinja_value){.kind = JINJA_UNDEFINED, .s = span_of("an item")};
    if (items.list->n)
        *out = items.list->v[last ? items.list->n - 1 : 0];
    return 0;
}
static int first(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return end_of(r, v, x, false, out);
}
static int last(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return end_of(r, v, x, true, out);
}

static int reverse(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    struct buf b = {.max = JINJA_TEXT};
    struct jinja_value items;
    int64_t n;

    TRY(jinja_items(r, x->line, v, &items));
    n = items.list->n;
    if (v->kind == JINJA_STRING) {
        for (int64_t i = n; i-- > 0;)
            buf_put_span(&b, items.list->v[i].s);
        return jinja_take(r, &b, out);
    }
    TRY(jinja_list_new(r, n, out));
    for (int64_t i = 0; i < n; i++)
        out->list->v[i] = items.list->v[n - 1 - i];
    return 0;
}

/* What `attribute` of an item is: a name, or several with dots between them. */
static int attribute_of(struct jinja_run *r, const struct jinja_args *x, struct jinja_value v, struct span path,
                        struct jinja_value *out)
{
    (void)r, (void)x;
    while (path.n) {
        const char *dot = memchr(path.p, '.', path.n);
        struct span name = {path.p, dot ? (size_t)(dot - path.p) : path.n};
        const struct jinja_value *there = v.kind == JINJA_MAP ? jinja_map_get(v.map, name) : NULL;

        v = there ? *there : (struct jinja_value){.kind = JINJA_UNDEFINED, .s = name};
        path = (struct span){path.p + name.n + (dot != NULL), path.n - name.n - (dot != NULL)};
    }
    *out = v;
    return 0;
}

static int join(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *by = jinja_arg(x, 0, "d"), *attribute = jinja_arg(x, 1, "attribute");
    struct buf b = {.max = JINJA_TEXT};
    struct jinja_value items, one;
    int rc = jinja_items(r, x->line, v, &items);

    for (int64_t i = 0; rc == 0 && i < items.list->n; i++) {
        one = items.list->v[i];
        if (jinja_is_text(attribute))
            rc = attribute_of(r, x, one, attribute->s, &one);
        if (i && jinja_is_text(by))
            buf_put_span(&b, by->s);
        if (rc == 0 && jinja_put(&b, &one, false) < 0)
            rc = jinja_no_memory(r);
    }
    if (rc == 0)
        return jinja_take(r, &b, out);
    buf_free(&b);
    return rc;
}

/* A list of [key, value]. */
static int items(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    if (v->kind == JINJA_UNDEFINED)
        return jinja_list_new(r, 0, out);
    if (v->kind != JINJA_MAP)
        return jinja_wrong(r, x, "items", v);
    TRY(jinja_list_new(r, v->map->n, out));
    for (int64_t i = 0; i < v->map->n; i++) {
        TRY(jinja_list_new(r, 2, &out->list->v[i]));
        out->list->v[i].list->tuple = true;
        out->list->v[i].list->v[0] = jinja_text(v->map->v[i].key);
        out->list->v[i].list->v[1] = v->map->v[i].value;
    }
    return 0;
}

/* Stable; what two items are compared by is worked out by `part`: an attribute, or a case less text. */
static int sorted(struct jinja_run *r, const struct jinja_args *x, struct jinja_value *list, const struct jinja_value *attribute,
                  bool exact, bool backwards)
{
    int64_t n = list->list->n;
    struct jinja_value keys;

    TRY(jinja_list_new(r, n, &keys));
    for (int64_t i = 0; i < n; i++) {
        struct jinja_value *key = &keys.list->v[i];

        *key = list->list->v[i];
        if (attribute && attribute->kind == JINJA_INT && key->kind == JINJA_LIST && attribute->i < key->list->n)
            *key = key->list->v[attribute->i];
        else if (jinja_is_text(attribute))
            TRY(attribute_of(r, x, *key, attribute->s, key));
        if (!exact && jinja_is_text(key))
            TRY(jinja_change_case(r, key->s, JINJA_LOWER, key));
    }
    for (int64_t i = 1; i < n; i++) { /* by insertion: these lists are short */
        struct jinja_value key = keys.list->v[i], v = list->list->v[i];
        int64_t at = i;

        for (; at > 0; at--) {
            int order;

            TRY(jinja_step(r, x->line));
            TRY(jinja_compare(r, x->line, &keys.list->v[at - 1], &key, &order));
            if (backwards ? order >= 0 : order <= 0)
                break;
            keys.list->v[at] = keys.list->v[at - 1];
            list->list->v[at] = list->list->v[at - 1];
        }
        keys.list->v[at] = key;
        list->list->v[at] = v;
    }
    return 0;
}

static int copied(struct jinja_run *r, const struct jinja_args *x, const struct jinja_value *v, struct jinja_value *out)
{
    struct jinja_value items_of;

    TRY(jinja_items(r, x->line, v, &items_of));
    TRY(jinja_list_new(r, items_of.list->n, out));
    memcpy(out->list->v, items_of.list->v, (size_t)items_of.list->n * sizeof *out->list->v);
    return 0;
}

/* sort(reverse=False, case_sensitive=False, attribute=None) */
static int sort(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *back = jinja_arg(x, 0, "reverse"), *exact = jinja_arg(x, 1, "case_sensitive");

    TRY(copied(r, x, v, out));
    return sorted(r, x, out, jinja_arg(x, 2, "attribute"), exact && jinja_true(exact), back && jinja_true(back));
}

/* dictsort(case_sensitive=False, by='key', reverse=False) */
static int dictsort(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *exact = jinja_arg(x, 0, "case_sensitive"), *by = jinja_arg(x, 1, "by"),
                             *back = jinja_arg(x, 2, "reverse");
    struct jinja_value at = jinja_int(jinja_is_text(by) && span_is(by->s, "value"));

    if (v->kind != JINJA_MAP)
        return jinja_wrong(r, x, "dictsort", v);
    TRY(items(r, v, x, out));
    return sorted(r, x, out, &at, exact && jinja_true(exact), back && jinja_true(back));
}

/* unique(case_sensitive=False) */
static int unique(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *exact = jinja_arg(x, 0, "case_sensitive");
    struct jinja_value keys;
    int64_t n = 0;

    TRY(copied(r, x, v, out));
    TRY(jinja_list_new(r, out->list->n, &keys));
    for (int64_t i = 0; i < out->list->n; i++) {
        struct jinja_value key = out->list->v[i];
        bool there = false;

        if (jinja_is_text(&key) && !(exact && jinja_true(exact)))
            TRY(jinja_change_case(r, key.s, JINJA_LOWER, &key));
        for (int64_t k = 0; k < n && !there; k++) {
            TRY(jinja_step(r, x->line));
            there = jinja_equal(&keys.list->v[k], &key);
        }
        if (there)
            continue;
        keys.list->v[n] = key;
        out->list->v[n++] = out->list->v[i];
    }
    out->list->n = n;
    return 0;
}

static int extreme(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, int sign,
                   struct jinja_value *out)
{
    TRY(copied(r, x, v, out));
    TRY(sorted(r, x, out, jinja_arg(x, 1, "attribute"), false, sign > 0));
    return end_of(r, out, x, false, out);
}
static int least(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return extreme(r, v, x, -1, out);
}
static int most(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return extreme(r, v, x, 1, out);
}

/* The arguments behind the first k. */
static struct jinja_args behind(const struct jinja_args *x, int k)
{
    struct jinja_args rest = {.line = x->line};

    for (; k < x->n; k++) {
        rest.v[rest.n] = x->v[k];
        rest.name[rest.n++] = x->name[k];
    }
    return rest;
}

/* map('filter', ...) or map(attribute='name', default=...) */
static int map(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    const struct jinja_value *filter = jinja_arg(x, 0, NULL), *attribute = jinja_arg(x, JINJA_ARGS, "attribute"),
                             *absent = jinja_arg(x, JINJA_ARGS, "default");
    jinja_fn *fn = jinja_is_text(filter) ? jinja_filter_find(filter->s) : NULL;
    struct jinja_args rest = behind(x, 1);

    if (!fn && !jinja_is_text(attribute))
        return jinja_error(r, x->line, "map wants a known filter or attribute=");
    TRY(copied(r, x, v, out));
    for (int64_t i = 0; i < out->list->n; i++) {
        struct jinja_value one;

        TRY(jinja_step(r, x->line));
        if (fn)
            TRY(fn(r, &out->list->v[i], &rest, &one));
        else
            TRY(attribute_of(r, x, out->list->v[i], attribute->s, &one));
        out->list->v[i] = one.kind == JINJA_UNDEFINED && absent ? *absent : one;
    }
    return 0;
}

/* select, reject([test, ...]); selectattr, rejectattr(name[, test, ...]) */
static int chosen(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, bool by_name, bool yes,
                  struct jinja_value *out)
{
    const struct jinja_value *name = by_name ? jinja_arg(x, 0, NULL) : NULL, *test = jinja_arg(x, by_name, NULL);
    int function = 0;
    struct jinja_args rest = behind(x, by_name + 1);
    int64_t n = 0;

    if (test)
        function = jinja_is_text(test) ? jinja_test_find(test->s) : -1;
    if (function < 0 || (by_name && !jinja_is_text(name)))
        return jinja_error(r, x->line, "select wants a known test");
    TRY(copied(r, x, v, out));
    for (int64_t i = 0; i < out->list->n; i++) {
        struct jinja_value one = out->list->v[i];
        bool is;

        TRY(jinja_step(r, x->line));
        if (by_name)
            TRY(attribute_of(r, x, one, name->s, &one));
        is = jinja_true(&one);
        if (test)
            TRY(jinja_test(r, function, &one, &rest, &is));
        if (is == yes)
            out->list->v[n++] = out->list->v[i];
    }
    out->list->n = n;
    return 0;
}
static int selected(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return chosen(r, v, x, false, true, out);
}
static int rejected(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return chosen(r, v, x, false, false, out);
}
static int selectattr(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return chosen(r, v, x, true, true, out);
}
static int rejectattr(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out)
{
    return chosen(r, v, x, true, false, out);
}

const struct jinja_named jinja_list_filters[] = {
    {"count", length}, {"dictsort", dictsort}, {"first", first}, {"items", items}, {"join", join}, {"last", last},
    {"length", length}, {"list", to_list}, {"map", map}, {"max", most}, {"min", least}, {"reject", rejected},
    {"rejectattr", rejectattr}, {"reverse", reverse}, {"select", selected}, {"selectattr", selectattr}, {"sort", sort},
    {"unique", unique}, {NULL, NULL}};
