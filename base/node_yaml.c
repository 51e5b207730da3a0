#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <yaml.h>

#include "base/json_shim.h"
#include "base/node_build.h"

struct parse {
    yaml_parser_t yaml;
    struct node_builder b;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory");
}

/* ---- plain scalars: the core schema of YAML 1.2, section 10.3.2 ---- */

static bool one_of(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(s, *words) == 0)
            return true;
    return false;
}

static bool resolve_int(struct node *n, const char *s)
{
    const char *digits = s + (*s == '-' || *s == '+');
    int base = 10;
    char *end;

    if (s[0] == '0' && (s[1] == 'o' || s[1] == 'x')) {
        base = s[1] == 'o' ? 8 : 16;
        digits = s += 2;
    }
    /* strtoll would take blanks and signs of its own */
    if (!*digits || strspn(digits, "0123456789abcdefABCDEF") != strlen(digits))
        return false;
    errno = 0;
    n->integer = strtoll(s, &end, base);
    if (*end || errno)
        return false;
    n->type = NODE_INT;
    n->num = (double)n->integer;
    return true;
}

static bool resolve_float(struct node *n, const char *s)
{
    static const char *const infs[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    const char *u = s + (*s == '-' || *s == '+'), *p = u;
    size_t whole, part = 0;

    n->type = NODE_NUM;
    if (one_of(u, infs)) {
        n->num = *s == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (one_of(s, nans)) {
        n->num = NAN;
        return true;
    }
    p += whole = strspn(p, "0123456789");
    if (*p == '.')
        p += 1 + (part = strspn(p + 1, "0123456789"));
    if (whole + part && (*p == 'e' || *p == 'E')) {
        p += 1 + (p[1] == '-' || p[1] == '+');
        part = strspn(p, "0123456789");
        p += part;
        whole = part; /* an exponent has digits */
    }
    if (whole + part == 0 || *p)
        return false;
    n->num = json_parse_double(u, strlen(u));
    if (*s == '-')
        n->num = -n->num;
    return true;
}

static void resolve(struct node *n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    const char *s = n->str.p;

    if (strlen(s) != n->str.n) {
        n->type = NODE_STR; /* a NUL byte inside */
    } else if (one_of(s, nulls)) {
        n->type = NODE_NULL;
    } else if (one_of(s, trues) || one_of(s, falses)) {
        n->type = NODE_BOOL;
        n->integer = *s == 't' || *s == 'T';
    } else if (!resolve_int(n, s) && !resolve_float(n, s)) {
        n->type = NODE_STR;
    }
}

/* ---- events ---- */

static int at_line(const yaml_event_t *ev)
{
    return (int)ev->start_mark.line + 1;
}

static int plain_only(const yaml_event_t *ev, const void *anchor, const void *tag, struct err *e)
{
    if (anchor)
        return err_set(e, ERR_FORMAT, "line %d: anchors (&name) are not supported", at_line(ev));
    if (tag)
        return err_set(e, ERR_FORMAT, "line %d: tags (!name) are not supported", at_line(ev));
    return 0;
}

static int add_scalar(struct parse *p, const yaml_event_t *ev, struct err *e)
{
    struct span s = {(const char *)ev->data.scalar.value, ev->data.scalar.length};
    struct node *n;

    TRY(plain_only(ev, ev->data.scalar.anchor, ev->data.scalar.tag, e));
    if (node_wants_key(&p->b))
        return node_add_key(&p->b, s, e);
    n = node_add(&p->b, NODE_STR, at_line(ev));
    if (!n)
        return no_memory(e);
    n->str = arena_dup(p->b.arena, s);
    if (!n->str.p)
        return no_memory(e);
    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        resolve(n);
    return 0;
}

static int open_node(struct parse *p, const yaml_event_t *ev, enum node_type type, struct err *e)
{
    struct node *n;
    int rc;

    if (node_wants_key(&p->b))
        return err_set(e, ERR_FORMAT, "line %d: a key must be a scalar", at_line(ev));
    n = node_add(&p->b, type, at_line(ev));
    if (!n)
        return no_memory(e);
    rc = node_open(&p->b, n, e);
    if (rc < 0)
        err_wrap(e, "line %d", at_line(ev));
    return rc;
}

static int add_event(struct parse *p, const yaml_event_t *ev, struct err *e)
{
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(p, ev, e);
    case YAML_SEQUENCE_START_EVENT:
        TRY(plain_only(ev, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, e));
        return open_node(p, ev, NODE_LIST, e);
    case YAML_MAPPING_START_EVENT:
        TRY(plain_only(ev, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, e));
        return open_node(p, ev, NODE_MAP, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return node_close(&p->b, e);
    case YAML_ALIAS_EVENT:
        return err_set(e, ERR_FORMAT, "line %d: aliases (*name) are not supported", at_line(ev));
    case YAML_DOCUMENT_START_EVENT:
        if (p->b.root)
            return err_set(e, ERR_FORMAT, "line %d: a second document", at_line(ev));
        return 0;
    default:
        return 0;
    }
}

static int yaml_failed(const yaml_parser_t *y, struct err *e)
{
    const char *what = y->problem ? y->problem : "not YAML";

    if (y->error == YAML_MEMORY_ERROR)
        return no_memory(e);
    if (y->error == YAML_READER_ERROR)
        return err_set(e, ERR_FORMAT, "%s at byte %zu", what, y->problem_offset);
    return err_set(e, ERR_FORMAT, "line %zu, column %zu: %s", y->problem_mark.line + 1,
                   y->problem_mark.column + 1, what);
}

int node_parse_yaml(struct arena *a, struct span text, struct node **root, struct err *e)
{
    struct parse *p = calloc(1, sizeof *p);
    bool end = false;
    int rc = 0;

    *root = NULL;
    if (!p || !yaml_parser_initialize(&p->yaml)) {
        free(p);
        return no_memory(e);
    }
    p->b.arena = a;
    yaml_parser_set_input_string(&p->yaml, (const unsigned char *)text.p, text.n);
    while (rc == 0 && !end) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&p->yaml, &ev)) {
            rc = yaml_failed(&p->yaml, e);
            break;
        }
        rc = add_event(p, &ev, e);
        end = ev.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&ev);
    }
    if (rc == 0 && !p->b.root && !node_add(&p->b, NODE_NULL, 1))
        rc = no_memory(e);
    if (rc == 0)
        *root = p->b.root;
    buf_free(&p->b.keys);
    yaml_parser_delete(&p->yaml);
    free(p);
    return rc;
}
