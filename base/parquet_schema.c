#include "base/json.h"
#include "base/parquet.h"
#include "base/utf8.h"

enum { OPTIONAL = 1, REPEATED = 2 }; /* repetition_type */
enum { SCHEMA_MAX = 20000 };            /* elements: check_names compares all pairs */

/* ConvertedType, by which older files say what LogicalType says now. */
enum { C_UTF8, C_MAP, C_MAP_KEY_VALUE, C_LIST, C_ENUM, C_DECIMAL, C_DATE, C_TIME_MILLIS, C_TIME_MICROS, C_TIMESTAMP_MILLIS,
       C_TIMESTAMP_MICROS, C_UINT_8, C_UINT_64 = 14, C_JSON = 19, C_INTERVAL = 21 };
/* The members of the union LogicalType. */
enum { L_STRING = 1, L_MAP, L_LIST, L_ENUM, L_DECIMAL, L_DATE, L_TIME, L_TIMESTAMP, L_INTEGER = 10, L_JSON = 12, L_UUID = 14,
       L_FLOAT16 };

/* A SchemaElement. */
struct element {
    int type, length, repetition, children, converted, scale, logical;
    int unit; /* digits of a second */
    bool has_type, utc, is_unsigned;
    struct span name;
};

struct schema {
    struct parquet_meta *m;
    struct thrift *t;
    size_t left; /* elements */
    struct err *e;
    size_t cap_leaves;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the schema");
}

/* TimeType and TimestampType. */
static void read_time(struct thrift *t, struct element *x)
{
    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        if (id == 1) {
            x->utc = thrift_int(t) != 0;
        } else if (id == 2 && t->type == THRIFT_STRUCT) {
            for (int unit = 0; (unit = thrift_field(t, unit)) > 0; thrift_skip(t))
                x->unit = unit >= 1 && unit <= 3 ? 3 * unit : 0;
        } else {
            thrift_skip(t);
        }
    }
}

static void read_logical(struct thrift *t, struct element *x)
{
    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        x->logical = id;
        if (t->type != THRIFT_STRUCT) {
            thrift_skip(t);
        } else if (id == L_TIME || id == L_TIMESTAMP) {
            read_time(t, x);
        } else if (id == L_DECIMAL || id == L_INTEGER) {
            for (int k = 0; (k = thrift_field(t, k)) > 0;) {
                if (id == L_DECIMAL && k == 1)
                    x->scale = (int)thrift_int(t);
                else if (id == L_INTEGER && k == 2)
                    x->is_unsigned = !thrift_int(t);
                else
                    thrift_skip(t);
            }
        } else {
            thrift_skip(t);
        }
    }
}

static void read_element(struct thrift *t, struct element *x)
{
    *x = (struct element){.converted = -1};
    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        switch (id) {
        case 1: x->type = (int)thrift_int(t); x->has_type = true; break;
        case 2: x->length = (int)thrift_int(t); break;
        case 3: x->repetition = (int)thrift_int(t); break;
        case 4: x->name = thrift_binary(t); break;
        case 5: x->children = (int)thrift_int(t); break;
        case 6: x->converted = (int)thrift_int(t); break;
        case 7: x->scale = (int)thrift_int(t); break;
        case 10:
            if (t->type == THRIFT_STRUCT) {
                read_logical(t, x);
                break;
            }
            /* fall through */
        default: thrift_skip(t);
        }
    }
}

/* What the values are, where that fits how they are stored; else they are what they are stored as. */
static void set_meaning(struct parquet_node *n, const struct element *x)
{
    bool integer = n->type == PARQUET_INT32 || n->type == PARQUET_INT64, bytes = n->type == PARQUET_BYTES;
    int l = x->logical, c = x->converted;
    static const signed char unit[] = {[C_TIME_MILLIS] = 3, [C_TIME_MICROS] = 6, [C_TIMESTAMP_MILLIS] = 3,
                                       [C_TIMESTAMP_MICROS] = 6};

    n->scale = x->scale;
    if (bytes && (l == L_STRING || l == L_ENUM || c == C_UTF8 || c == C_ENUM))
        n->meaning = PARQUET_STRING;
    else if (bytes && (l == L_JSON || c == C_JSON))
        n->meaning = PARQUET_JSON;
    else if ((l == L_DECIMAL || c == C_DECIMAL) && (integer || bytes || n->type == PARQUET_FIXED))
        n->meaning = PARQUET_DECIMAL;
    else if (n->type == PARQUET_INT32 && (l == L_DATE || c == C_DATE))
        n->meaning = PARQUET_DATE;
    else if (integer && ((l == L_INTEGER && x->is_unsigned) || (c >= C_UINT_8 && c <= C_UINT_64)))
        n->meaning = PARQUET_UNSIGNED;
    else if (n->type == PARQUET_FIXED && n->length == 16 && l == L_UUID)
        n->meaning = PARQUET_UUID;
    else if (n->type == PARQUET_FIXED && n->length == 2 && l == L_FLOAT16)
        n->meaning = PARQUET_HALF;
    else if (n->type == PARQUET_FIXED && n->length == 12 && c == C_INTERVAL)
        n->meaning = PARQUET_INTERVAL;
    else if (integer && x->unit && l == L_TIME)
        n->meaning = PARQUET_TIME, n->scale = x->unit;
    else if (n->type == PARQUET_INT64 && x->unit && l == L_TIMESTAMP)
        n->meaning = PARQUET_TIMESTAMP, n->scale = x->unit, n->utc = x->utc;
    else if (integer && !l && (c == C_TIME_MILLIS || c == C_TIME_MICROS))
        n->meaning = PARQUET_TIME, n->scale = unit[c];
    else if (n->type == PARQUET_INT64 && !l && (c == C_TIMESTAMP_MILLIS || c == C_TIMESTAMP_MICROS))
        n->meaning = PARQUET_TIMESTAMP, n->scale = unit[c], n->utc = true; /* as LogicalTypes.md has it */
    else if (n->type == PARQUET_INT96)
        n->meaning = PARQUET_TIMESTAMP, n->scale = 9;
}

static int set_leaf(struct schema *s, struct parquet_node *n, const struct element *x)
{
    if (!x->has_type || x->type < PARQUET_BOOLEAN || x->type > PARQUET_FIXED ||
        (x->type == PARQUET_FIXED && (x->length <= 0 || x->length > 1 << 20)) || x->scale < 0 || x->scale > 1000)
        return err_set(s->e, ERR_FORMAT, "column '%.*s' is of no type that there is", PARQUET_NAME(n));
    n->type = (enum parquet_type)x->type;
    n->length = x->length;
    set_meaning(n, x);
    if (mem_grow(&s->m->leaf, &s->cap_leaves, (size_t)s->m->n_leaves + 1, sizeof *s->m->leaf) < 0)
        return no_memory(s->e);
    s->m->leaf[s->m->n_leaves++] = n;
    n->n_leaves = 1;
    return 0;
}

static int read_node(struct schema *s, int depth, int def, int rep, struct parquet_node **out);
static int read_value(struct schema *s, int depth, struct parquet_node *n, const struct element *x);

static int new_node(struct schema *s, struct span name, int def, int rep, struct parquet_node **out)
{
    struct parquet_node *n = arena_calloc(&s->m->arena, 1, sizeof *n);

    *out = n;
    if (!n)
        return no_memory(s->e);
    *n = (struct parquet_node){.name = name, .def = def, .rep = rep, .first_leaf = s->m->n_leaves};
    return 0;
}

static int read_children(struct schema *s, int depth, struct parquet_node *n, int children, int def, int rep)
{
    struct parquet_node **link = &n->child;

    for (int i = 0; i < children; i++) {
        TRY(read_node(s, depth + 1, def, rep, link));
        link = &(*link)->next;
    }
    return 0;
}

/* The items of list n are values of x, which is repeated. */
static int read_own_item(struct schema *s, int depth, struct parquet_node *n, const struct element *x)
{
    n->shape = PARQUET_LIST;
    TRY(new_node(s, x->name, n->item_def, n->item_rep, &n->child));
    return read_value(s, depth + 1, n->child, x);
}

/* The items of list n, whose repeated child is x: values of x, or, in lists as they are written now, of the one child of x
 * (LogicalTypes.md, "Backward-compatibility rules"). */
static int read_item(struct schema *s, int depth, struct parquet_node *n, const struct element *x)
{
    size_t k = n->name.n;
    bool tuple = x->name.n == k + 6 && memcmp(x->name.p, n->name.p, k) == 0 && memcmp(x->name.p + k, "_tuple", 6) == 0;

    if (x->children != 1 || tuple || span_is(x->name, "array"))
        return read_own_item(s, depth, n, x);
    n->shape = PARQUET_LIST;
    return read_node(s, depth + 1, n->item_def, n->item_rep, &n->child);
}

static int next_element(struct schema *s, struct element *x)
{
    if (s->left == 0)
        return err_set(s->e, ERR_FORMAT, "the schema ends within a group");
    s->left--;
    read_element(s->t, x);
    if (s->t->bad || !x->name.p || x->children < 0 || (size_t)x->children > s->left || x->repetition < 0 ||
        x->repetition > REPEATED)
        return err_set(s->e, ERR_FORMAT, "the schema is damaged");
    if (!utf8_valid(x->name))
        return err_set(s->e, ERR_FORMAT, "the schema is damaged: the name of a column is no UTF-8");
    return 0;
}

/* Whether group x is a list or map: what only says so, without the one repeated child, is a struct. */
static bool has_items(const struct schema *s, const struct element *x, bool list)
{
    bool map = x->logical == L_MAP || x->converted == C_MAP || x->converted == C_MAP_KEY_VALUE;
    struct thrift ahead = *s->t;
    struct element child;

    if (!(list || map) || x->children != 1 || s->left == 0)
        return false;
    read_element(&ahead, &child);
    return !ahead.bad && child.repetition == REPEATED && (list || child.children == 2);
}

static int read_group(struct schema *s, int depth, struct parquet_node *n, const struct element *x)
{
    bool list = x->logical == L_LIST || x->converted == C_LIST;
    struct element child;

    n->shape = PARQUET_STRUCT;
    if (!has_items(s, x, list))
        return read_children(s, depth, n, x->children, n->def, n->rep);
    TRY(next_element(s, &child));
    n->item_def = n->def + 1;
    n->item_rep = n->rep + 1;
    if (list)
        return read_item(s, depth, n, &child);
    n->shape = PARQUET_MAP;
    return read_children(s, depth, n, 2, n->item_def, n->item_rep);
}

/* What n, which has its levels, holds by its element x and those that follow. */
static int read_value(struct schema *s, int depth, struct parquet_node *n, const struct element *x)
{
    if (depth > PARQUET_DEPTH_MAX)
        return err_set(s->e, ERR_LIMIT, "the schema is nested more than %d levels deep", PARQUET_DEPTH_MAX);
    TRY(x->children ? read_group(s, depth, n, x) : set_leaf(s, n, x));
    n->n_leaves = s->m->n_leaves - n->first_leaf;
    return n->n_leaves ? 0 : err_set(s->e, ERR_FORMAT, "the schema has a group without columns");
}

static int set_key(struct schema *s, struct parquet_node *n)
{
    struct buf key = {0};

    if (json_put_string(&key, n->name) == 0 && buf_putc(&key, ':') == 0)
        n->key = arena_dup(&s->m->arena, buf_span(&key));
    buf_free(&key);
    return n->key.p ? 0 : no_memory(s->e);
}

/* The next element and all below it, within what has these levels.  What is repeated without being the child of a list is a
 * list by itself. */
static int read_node(struct schema *s, int depth, int def, int rep, struct parquet_node **out)
{
    struct parquet_node *n;
    struct element x;

    TRY(next_element(s, &x));
    TRY(new_node(s, x.name, def + (x.repetition == OPTIONAL), rep, &n));
    *out = n;
    n->optional = x.repetition == OPTIONAL;
    TRY(set_key(s, n));
    if (x.repetition != REPEATED)
        return read_value(s, depth, n, &x);
    n->item_def = def + 1;
    n->item_rep = rep + 1;
    TRY(read_own_item(s, depth, n, &x));
    n->n_leaves = n->child->n_leaves;
    return 0;
}

/* Two columns of one name would be two equal keys of an object. */
static int check_names(const struct parquet_node *n, struct err *e)
{
    for (const struct parquet_node *a = n->child; a; a = a->next) {
        TRY(check_names(a, e));
        for (const struct parquet_node *b = a->next; b && n->shape == PARQUET_STRUCT; b = b->next)
            if (span_eq(a->name, b->name))
                return err_set(e, ERR_FORMAT, "two columns are named '%.*s'", PARQUET_NAME(a));
    }
    return 0;
}

int parquet_schema_read(struct parquet_meta *m, struct thrift *t, struct err *e)
{
    struct schema s = {.m = m, .t = t, .left = thrift_list(t), .e = e};
    struct element x;

    if (t->bad || t->type != THRIFT_STRUCT)
        return err_set(e, ERR_FORMAT, "the schema is damaged");
    if (s.left > SCHEMA_MAX)
        return err_set(e, ERR_LIMIT, "the schema has more than %d elements", SCHEMA_MAX);
    TRY(next_element(&s, &x));
    TRY(new_node(&s, x.name, 0, 0, &m->root));
    m->root->shape = PARQUET_STRUCT;
    if (x.children == 0)
        return err_set(e, ERR_FORMAT, "it has no columns");
    TRY(read_children(&s, 0, m->root, x.children, 0, 0));
    if (s.left)
        return err_set(e, ERR_FORMAT, "the schema is damaged: %zu elements of it are in no group", s.left);
    m->root->n_leaves = m->n_leaves;
    return check_names(m->root, e);
}
