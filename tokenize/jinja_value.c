/* Values of templates, as Python has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/utf8.h"
#include "tokenize/jinja_parts.h"

struct jinja_value jinja_bool(bool b) { return (struct jinja_value){.kind = JINJA_BOOL, .i = b}; }
struct jinja_value jinja_int(int64_t i) { return (struct jinja_value){.kind = JINJA_INT, .i = i}; }
struct jinja_value jinja_float(double f) { return (struct jinja_value){.kind = JINJA_FLOAT, .f = f}; }
struct jinja_value jinja_text(struct span s) { return (struct jinja_value){.kind = JINJA_STRING, .s = s}; }

bool jinja_true(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOL:
    case JINJA_INT:
        return v->i != 0;
    case JINJA_FLOAT:
        return v->f != 0;
    case JINJA_STRING:
        return v->s.n != 0;
    case JINJA_LIST:
        return v->list->n != 0;
    case JINJA_MAP:
        return v->map->n != 0;
    default:
        return true;
    }
}

bool jinja_is_number(const struct jinja_value *v)
{
    return v->kind == JINJA_BOOL || v->kind == JINJA_INT || v->kind == JINJA_FLOAT;
}
double jinja_number(const struct jinja_value *v) { return v->kind == JINJA_FLOAT ? v->f : (double)v->i; }

bool jinja_equal(const struct jinja_value *a, const struct jinja_value *b)
{
    if (jinja_is_number(a) && jinja_is_number(b))
        return a->kind == JINJA_FLOAT || b->kind == JINJA_FLOAT ? jinja_number(a) == jinja_number(b) : a->i == b->i;
    if (a->kind != b->kind)
        return false;
    if (a->kind == JINJA_STRING)
        return span_eq(a->s, b->s);
    if (a->kind == JINJA_LIST) {
        bool same = a->list->n == b->list->n && a->list->tuple == b->list->tuple;

        for (int64_t i = 0; same && i < a->list->n; i++)
            same = jinja_equal(&a->list->v[i], &b->list->v[i]);
        return same;
    }
    if (a->kind == JINJA_MAP) {
        bool same = a->map->n == b->map->n;

        for (int64_t i = 0; same && i < a->map->n; i++) {
            const struct jinja_value *x = jinja_map_get(b->map, a->map->v[i].key);

            same = x && jinja_equal(&a->map->v[i].value, x);
        }
        return same;
    }
    return a->kind == JINJA_NONE || a->kind == JINJA_UNDEFINED || a->map == b->map;
}

int jinja_compare(struct jinja_run *r, int line, const struct jinja_value *a, const struct jinja_value *b, int *order)
{
    *order = 0;
    if (jinja_is_number(a) && jinja_is_number(b)) {
        double x = jinja_number(a), y = jinja_number(b);

        *order = (x > y) - (x < y);
        if (a->kind != JINJA_FLOAT && b->kind != JINJA_FLOAT)
            *order = (a->i > b->i) - (a->i < b->i);
        return 0;
    }
    if (a->kind == JINJA_STRING && b->kind == JINJA_STRING) { /* UTF-8 is in the order of characters */
        size_t n = a->s.n < b->s.n ? a->s.n : b->s.n;

        *order = n ? memcmp(a->s.p, b->s.p, n) : 0;
        *order = *order ? *order : (a->s.n > b->s.n) - (a->s.n < b->s.n);
        return 0;
    }
    if (a->kind == JINJA_LIST && b->kind == JINJA_LIST) {
        for (int64_t i = 0; i < a->list->n && i < b->list->n; i++) {
            TRY(jinja_compare(r, line, &a->list->v[i], &b->list->v[i], order));
            if (*order)
                return 0;
        }
        *order = (a->list->n > b->list->n) - (a->list->n < b->list->n);
        return 0;
    }
    return jinja_error(r, line, "a %s and a %s have no order", jinja_kind_name(a), jinja_kind_name(b));
}

const char *jinja_kind_name(const struct jinja_value *v)
{
    static const char *const names[] = {"undefined value", "none", "boolean", "number", "number", "string", "list",
                                        "mapping", "namespace", "loop", "macro", "function"};
    return names[v->kind];
}

/* ---- as text ---- */

/* Python's repr of a float: the fewest digits that read back the same. */
static void put_float(struct buf *out, double f)
{
    char text[40], *e;
    int digits = 0, power;

    if (isnan(f) || isinf(f)) {
        buf_puts(out, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(text, sizeof text, "%.*e", digits, f);
    while (strtod(text, NULL) != f && ++digits < 17);
    e = strchr(text, 'e');
    power = (int)strtol(e + 1, NULL, 10);
    if (power < -4 || power >= 16) {
        *e = 0;
        buf_printf(out, "%se%c%02d", text, power < 0 ? '-' : '+', abs(power));
        return;
    }
    buf_printf(out, "%.*f", digits > power ? digits - power : 1, f);
}

/* Python's repr of a string; all beyond ASCII counts as printable. */
static void put_quoted(struct buf *out, struct span s)
{
    char quote = s.n && memchr(s.p, '\'', s.n) && !memchr(s.p, '"', s.n) ? '"' : '\'';

    buf_putc(out, quote);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == quote || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\r' || c == '\t')
            buf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if ((unsigned char)c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            buf_putc(out, c);
    }
    buf_putc(out, quote);
}

int jinja_put(struct buf *out, const struct jinja_value *v, bool quotes)
{
    switch (v->kind) {
    case JINJA_UNDEFINED:
        return quotes ? buf_puts(out, "Undefined") : 0;
    case JINJA_NONE:
        return buf_puts(out, "None");
    case JINJA_BOOL:
        return buf_puts(out, v->i ? "True" : "False");
    case JINJA_INT:
        return buf_printf(out, "%lld", (long long)v->i);
    case JINJA_FLOAT:
        put_float(out, v->f);
        return 0;
    case JINJA_STRING:
        if (!quotes)
            return buf_put_span(out, v->s);
        put_quoted(out, v->s);
        return 0;
    case JINJA_LIST:
        buf_putc(out, v->list->tuple ? '(' : '[');
        for (int64_t i = 0; i < v->list->n; i++) {
            buf_puts(out, i ? ", " : "");
            TRY(jinja_put(out, &v->list->v[i], true));
        }
        return buf_puts(out, !v->list->tuple ? "]" : v->list->n == 1 ? ",)" : ")");
    case JINJA_MAP:
        buf_putc(out, '{');
        for (int64_t i = 0; i < v->map->n; i++) {
            buf_puts(out, i ? ", " : "");
            put_quoted(out, v->map->v[i].key);
            buf_puts(out, ": ");
            TRY(jinja_put(out, &v->map->v[i].value, true));
        }
        return buf_putc(out, '}');
    default:
        return buf_printf(out, "<%s>", jinja_kind_name(v));
    }
}

int jinja_take(struct jinja_run *r, struct buf *b, struct jinja_value *v)
{
    bool lost = b->failed || b->n > JINJA_TEXT;
    struct span s = lost ? (struct span){NULL, 0} : arena_dup(r->a, buf_span(b));

    buf_free(b);
    if (!s.p)
        return jinja_no_memory(r);
    *v = jinja_text(s);
    return 0;
}

int jinja_string(struct jinja_run *r, const struct jinja_value *v, struct span *s)
{
    struct buf b = {.max = JINJA_TEXT};
    struct jinja_value text;

    if (v->kind == JINJA_STRING) {
        *s = v->s;
        return 0;
    }
    if (jinja_put(&b, v, false) < 0) {
        buf_free(&b);
        return jinja_no_memory(r);
    }
    TRY(jinja_take(r, &b, &text));
    *s = text.s;
    return 0;
}

static void new_line(struct buf *out, int indent, int level)
{
    buf_putc(out, '\n');
    for (int i = 0; i < indent * level; i++)
        buf_putc(out, ' ');
}

static int by_key(const void *a, const void *b)
{
    const struct jinja_pair *x = a, *y = b;
    size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
    int order = n ? memcmp(x->key.p, y->key.p, n) : 0;

    return order ? order : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

int jinja_put_json(struct jinja_run *r, struct buf *out, const struct jinja_value *v, int indent, bool sort, int level)
{
    TRY(jinja_step(r, 0));
    if (v->kind == JINJA_STRING) {
        json_put_string(out, v->s);
    } else if (v->kind == JINJA_NONE) {
        buf_puts(out, "null");
    } else if (v->kind == JINJA_BOOL) {
        buf_puts(out, v->i ? "true" : "false");
    } else if (v->kind == JINJA_INT || v->kind == JINJA_FLOAT) {
        jinja_put(out, v, false);
    } else if (v->kind == JINJA_LIST || v->kind == JINJA_MAP) {
        bool list = v->kind == JINJA_LIST;
        int64_t n = list ? v->list->n : v->map->n;
        struct jinja_value sorted = *v;

        if (!list && sort) {
            TRY(jinja_map_new(r, n, &sorted));
            memcpy(sorted.map->v, v->map->v, (size_t)n * sizeof *v->map->v);
            qsort(sorted.map->v, (size_t)n, sizeof *sorted.map->v, by_key);
        }
        buf_putc(out, list ? '[' : '{');
        for (int64_t i = 0; i < n; i++) {
            buf_puts(out, !i ? "" : indent < 0 ? ", " : ",");
            if (indent >= 0)
                new_line(out, indent, level + 1);
            if (!list) {
                json_put_string(out, sorted.map->v[i].key);
                buf_puts(out, ": ");
            }
            TRY(jinja_put_json(r, out, list ? &v->list->v[i] : &sorted.map->v[i].value, indent, sort, level + 1));
        }
        if (indent >= 0 && n)
            new_line(out, indent, level);
        buf_putc(out, list ? ']' : '}');
    } else {
        return jinja_error(r, 0, "a %s is no JSON", jinja_kind_name(v));
    }
    return out->failed ? jinja_no_memory(r) : 0;
}

/* ---- lists and mappings ---- */

int jinja_list_new(struct jinja_run *r, int64_t n, struct jinja_value *v)
{
    struct jinja_list *list = arena_calloc(r->a, 1, sizeof *list);

    if (!list || !(list->v = arena_calloc(r->a, (size_t)n + 1, sizeof *list->v)))
        return jinja_no_memory(r);
    list->n = n;
    *v = (struct jinja_value){.kind = JINJA_LIST, .list = list};
    return 0;
}

int jinja_map_new(struct jinja_run *r, int64_t room, struct jinja_value *v)
{
    struct jinja_map *map = arena_calloc(r->a, 1, sizeof *map);

    if (!map || !(map->v = arena_calloc(r->a, (size_t)room + 1, sizeof *map->v)))
        return jinja_no_memory(r);
    map->n = room;
    map->room = room + 1;
    *v = (struct jinja_value){.kind = JINJA_MAP, .map = map};
    return 0;
}

struct jinja_value *jinja_map_get(const struct jinja_map *m, struct span key)
{
    for (int64_t i = 0; i < m->n; i++)
        if (span_eq(m->v[i].key, key))
            return &m->v[i].value;
    return NULL;
}

int jinja_map_set(struct jinja_run *r, struct jinja_map *m, struct span key, const struct jinja_value *v)
{
    struct jinja_value *there = jinja_map_get(m, key);

    if (there) {
        *there = *v;
        return 0;
    }
    if (m->n == m->room) {
        struct jinja_pair *more = arena_calloc(r->a, 2 * (size_t)m->room + 4, sizeof *more);

        if (!more)
            return jinja_no_memory(r);
        memcpy(more, m->v, (size_t)m->n * sizeof *more);
        m->v = more;
        m->room = 2 * m->room + 4;
    }
    m->v[m->n++] = (struct jinja_pair){key, *v};
    return 0;
}

int jinja_of_node(struct jinja_run *r, const struct node *n, struct jinja_value *v)
{
    int64_t at = 0;

    switch (n->type) {
    case NODE_NULL:
        *v = (struct jinja_value){.kind = JINJA_NONE};
        return 0;
    case NODE_BOOL:
        *v = jinja_bool(n->integer != 0);
        return 0;
    case NODE_INT:
        *v = jinja_int(n->integer);
        return 0;
    case NODE_NUM:
        *v = jinja_float(n->num);
        return 0;
    case NODE_STR:
        *v = jinja_text(n->str);
        return 0;
    case NODE_LIST:
        TRY(jinja_list_new(r, n->count, v));
        for (const struct node *x = n->child; x; x = x->next)
            TRY(jinja_of_node(r, x, &v->list->v[at++]));
        return 0;
    default:
        TRY(jinja_map_new(r, n->count, v));
        for (const struct node *x = n->child; x; x = x->next, at++) {
            v->map->v[at].key = x->key;
            TRY(jinja_of_node(r, x, &v->map->v[at].value));
        }
        return 0;
    }
}

int jinja_items(struct jinja_run *r, int line, const struct jinja_value *v, struct jinja_value *list)
{
    int64_t n = v->kind == JINJA_MAP ? v->map->n : v->kind == JINJA_STRING ? jinja_characters(v->s) : 0;
    size_t at = 0;

    if (v->kind == JINJA_LIST) {
        *list = *v;
        return 0;
    }
    if (v->kind != JINJA_MAP && v->kind != JINJA_STRING && v->kind != JINJA_UNDEFINED)
        return jinja_error(r, line, "a %s has no items", jinja_kind_name(v));
    TRY(jinja_list_new(r, n, list));
    for (int64_t i = 0; i < n && v->kind == JINJA_MAP; i++)
        list->list->v[i] = jinja_text(v->map->v[i].key);
    for (int64_t i = 0; i < n && v->kind == JINJA_STRING; i++) {
        uint32_t c;
        size_t bytes = (size_t)utf8_next(v->s.p + at, v->s.p + v->s.n, &c);

        list->list->v[i] = jinja_text((struct span){v->s.p + at, bytes});
        at += bytes;
    }
    return 0;
}

int64_t jinja_characters(struct span s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

size_t jinja_character(struct span s, int64_t k)
{
    size_t i = 0;

    for (; i < s.n; i++)
        if (((unsigned char)s.p[i] & 0xc0) != 0x80 && k-- == 0)
            break;
    return i;
}

/* Whether c is in set, or, without one, white space of Python's. */
static bool stripped(struct span set, uint32_t c)
{
    const char *p = set.p;

    if (!set.p)
        return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
               (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
    while (p < set.p + set.n) {
        uint32_t x;

        p += utf8_next(p, set.p + set.n, &x);
        if (x == c)
            return true;
    }
    return false;
}

struct span jinja_strip(struct span s, struct span set, bool left, bool right)
{
    uint32_t c;

    while (left && s.n) {
        size_t n = (size_t)utf8_next(s.p, s.p + s.n, &c);

        if (!stripped(set, c))
            break;
        s.p += n;
        s.n -= n;
    }
    while (right && s.n) {
        size_t at = s.n - 1;

        while (at && ((unsigned char)s.p[at] & 0xc0) == 0x80)
            at--;
        utf8_next(s.p + at, s.p + s.n, &c);
        if (!stripped(set, c))
            break;
        s.n = at;
    }
    return s;
}
