#include "curate/stream/where.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/near.h"
#include "base/node.h"
#include "base/regex.h"

struct where {
    struct arena arena;
    const char *text;
    const struct where_node *root;
    struct regex **regex;
    size_t n_regex, cap_regex;
};

struct reader {
    struct where *w;
    const struct where_field *fields;
    const char *text, *p;
    int depth;
    struct err *e;
};

/* ---- words ---- */

static int wrong(const struct reader *r, const char *at, const char *what)
{
    return err_set(r->e, ERR_FORMAT, "column %zu: %s", (size_t)(at - r->text) + 1, what);
}

static int no_memory(const struct reader *r)
{
    return err_set(r->e, ERR_NOMEM, "out of memory for a condition");
}

static void pass_blanks(struct reader *r)
{
    while (ascii_is_space((unsigned char)*r->p))
        r->p++;
}

/* Whether the next word is this one, in small or capital letters, and no part of a longer one; passes over it. */
static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);

    pass_blanks(r);
    if (strncasecmp(r->p, word, n) != 0 || (r->p[n] && !ascii_is_space((unsigned char)r->p[n]) && !strchr("()\"',", r->p[n])))
        return false;
    r->p += n;
    return true;
}

static bool take_char(struct reader *r, char c)
{
    pass_blanks(r);
    if (*r->p != c)
        return false;
    r->p++;
    return true;
}

/* Whether one of the words that join tests stands here. */
static bool at_joint(const struct reader *r)
{
    struct reader look = *r;

    return take_word(&look, "and") || take_word(&look, "or");
}

/* A value in quotes, behind the first. */
static int read_quoted(struct reader *r, char quote, struct span *word)
{
    const char *from = r->p - 1;
    char *to = arena_alloc(&r->w->arena, strlen(r->p) + 1);

    if (!to)
        return no_memory(r);
    *word = (struct span){to, 0};
    for (; *r->p && *r->p != quote; r->p++) {
        r->p += *r->p == '\\' && r->p[1] == quote;
        to[word->n++] = *r->p;
    }
    if (!*r->p)
        return wrong(r, from, "a quote without an end");
    r->p++;
    to[word->n] = '\0';
    return 0;
}

static int read_value(struct reader *r, struct span *word)
{
    size_t n;

    pass_blanks(r);
    if (*r->p == '"' || *r->p == '\'')
        return read_quoted(r, *r->p++, word);
    n = strcspn(r->p, " \t\r\n,()");
    if (n == 0)
        return wrong(r, r->p, "a value is missing");
    *word = arena_dup(&r->w->arena, (struct span){r->p, n});
    r->p += n;
    return word->p ? 0 : no_memory(r);
}

/* ---- tests ---- */

/* The number that a word is; NAN: it is none. */
static int number_of(const struct reader *r, struct span word, double *x)
{
    struct arena a = {0};
    struct node *n;
    int rc = node_parse_json(&a, word, &n, NULL);

    *x = rc == 0 && (n->type == NODE_INT || n->type == NODE_NUM) ? n->num : NAN;
    arena_free(&a);
    return rc == ERR_NOMEM ? no_memory(r) : 0;
}

static int find_field(const struct reader *r, const char *at, struct where_node *n)
{
    struct near near = near_to(span_of(n->field));
    char hint[80], what[200];

    n->which = -1;
    n->type = WHERE_ANY;
    if (!r->fields)
        return 0;
    for (int i = 0; r->fields[i].name; i++) {
        near_try(&near, r->fields[i].name);
        if (strcmp(r->fields[i].name, n->field) == 0) {
            n->which = i;
            n->type = r->fields[i].type;
            return 0;
        }
    }
    snprintf(what, sizeof what, "'%.60s' is no field%s", n->field, near_say(&near, "", hint, sizeof hint));
    return wrong(r, at, what);
}

static int read_field(struct reader *r, struct where_node *n)
{
    const char *at;
    size_t k;

    pass_blanks(r);
    at = r->p;
    k = strcspn(r->p, " \t\r\n,()=!<>~\"'");
    if (k == 0)
        return wrong(r, at, *at ? "a test is FIELD OP VALUE, as in lang = de: the field is missing" : "a test is missing");
    n->field = arena_dup(&r->w->arena, (struct span){at, k}).p;
    if (!n->field)
        return no_memory(r);
    r->p += k;
    return find_field(r, at, n);
}

/* The operator; *in: it takes several values. */
static int read_op(struct reader *r, struct where_node *n, bool *in)
{
    static const struct { const char *text; enum where_op op; } all[] = {
        {"==", WHERE_IS}, {"!=", WHERE_IS_NOT}, {"<=", WHERE_AT_MOST}, {">=", WHERE_AT_LEAST}, {"=", WHERE_IS}, {"<", WHERE_LESS},
        {">", WHERE_MORE}, {"~", WHERE_MATCHES}};

    *in = take_word(r, "in");
    n->op = WHERE_IS;
    for (size_t i = 0; !*in && i < sizeof all / sizeof *all; i++)
        if (strncmp(r->p, all[i].text, strlen(all[i].text)) == 0) {
            r->p += strlen(all[i].text);
            n->op = all[i].op;
            return 0;
        }
    return *in ? 0 : wrong(r, r->p, "an operator is missing: =, !=, <, <=, >, >=, ~ or in");
}

static int add_value(struct reader *r, struct where_node *n, size_t *room)
{
    const char *at;

    pass_blanks(r);
    at = r->p;
    if ((size_t)n->n == *room) {
        size_t k = *room ? *room * 2 : 4;
        struct span *word = arena_alloc(&r->w->arena, k * sizeof *word);
        double *number = arena_alloc(&r->w->arena, k * sizeof *number);

        if (!word || !number)
            return no_memory(r);
        if (n->n) {
            memcpy(word, n->word, (size_t)n->n * sizeof *word);
            memcpy(number, n->number, (size_t)n->n * sizeof *number);
        }
        n->word = word;
        n->number = number;
        *room = k;
    }
    TRY(read_value(r, &n->word[n->n]));
    TRY(number_of(r, n->word[n->n], &n->number[n->n]));
    if (n->type == WHERE_NUMBER && n->op != WHERE_MATCHES && isnan(n->number[n->n]))
        return wrong(r, at, "the field is a number, the value is none");
    n->n++;
    return 0;
}

/* The values of in: in parentheses, or up to what joins tests. */
static int read_values(struct reader *r, struct where_node *n, size_t *room)
{
    bool closed = take_char(r, '(');

    do {
        TRY(add_value(r, n, room));
        take_char(r, ',');
        pass_blanks(r);
    } while (closed ? *r->p && *r->p != ')' : *r->p && *r->p != ')' && !at_joint(r));
    return closed && !take_char(r, ')') ? wrong(r, r->p, "a ')' is missing behind the values") : 0;
}

/* Compiles the expression of ~; at: where it stands. */
static int read_regex(struct reader *r, const char *at, struct where_node *n)
{
    if (mem_grow(&r->w->regex, &r->w->cap_regex, r->w->n_regex + 1, sizeof *r->w->regex) < 0)
        return no_memory(r);
    if (regex_new(&n->regex, n->word[0], r->e) < 0)
        return err_wrap(r->e, "column %zu", (size_t)(at - r->text) + 1);
    r->w->regex[r->w->n_regex++] = n->regex;
    return 0;
}

static int read_test(struct reader *r, struct where_node *n)
{
    size_t room = 0;
    const char *at;
    bool in;

    TRY(read_field(r, n));
    pass_blanks(r);
    TRY(read_op(r, n, &in));
    if (in)
        return read_values(r, n, &room);
    pass_blanks(r);
    at = r->p;
    TRY(add_value(r, n, &room));
    return n->op == WHERE_MATCHES ? read_regex(r, at, n) : 0;
}

/* ---- what joins them ---- */

static struct where_node *new_node(struct reader *r, enum where_op op, const struct where_node *left)
{
    struct where_node *n = arena_calloc(&r->w->arena, 1, sizeof *n);

    if (n) {
        n->op = op;
        n->left = left;
    }
    return n;
}

static int read_or(struct reader *r, const struct where_node **out);

/* A test, one that is denied, or what stands in parentheses. */
static int read_one(struct reader *r, const struct where_node **out)
{
    struct where_node *n;
    const char *at;

    pass_blanks(r);
    at = r->p;
    if (++r->depth > WHERE_DEPTH_MAX)
        return wrong(r, at, "parentheses are nested too deeply");
    if (take_word(r, "not")) {
        n = new_node(r, WHERE_NOT, NULL);
        if (!n)
            return no_memory(r);
        TRY(read_one(r, &n->left));
        *out = n;
    } else if (take_char(r, '(')) {
        TRY(read_or(r, out));
        if (!take_char(r, ')'))
            return wrong(r, r->p, *r->p ? "'and', 'or' or ')' is expected" : "a ')' is missing");
    } else {
        n = new_node(r, WHERE_IS, NULL);
        if (!n)
            return no_memory(r);
        TRY(read_test(r, n));
        *out = n;
    }
    r->depth--;
    return 0;
}

/* Tests joined by one word. */
static int read_row(struct reader *r, const struct where_node **out, const char *word, enum where_op op,
                    int (*part)(struct reader *r, const struct where_node **out))
{
    TRY(part(r, out));
    while (take_word(r, word)) {
        struct where_node *n = new_node(r, op, *out);

        if (!n)
            return no_memory(r);
        TRY(part(r, &n->right));
        *out = n;
    }
    return 0;
}

static int read_and(struct reader *r, const struct where_node **out)
{
    return read_row(r, out, "and", WHERE_AND, read_one);
}

static int read_or(struct reader *r, const struct where_node **out)
{
    return read_row(r, out, "or", WHERE_OR, read_and);
}

static int read_all(struct reader *r)
{
    if (strlen(r->text) > WHERE_TEXT_MAX)
        return err_set(r->e, ERR_FORMAT, "it is longer than %d bytes", WHERE_TEXT_MAX);
    r->w->text = arena_dup(&r->w->arena, span_of(r->text)).p;
    if (!r->w->text)
        return no_memory(r);
    TRY(read_or(r, &r->w->root));
    pass_blanks(r);
    return *r->p ? wrong(r, r->p, *r->p == ')' ? "a ')' without a '('" : "'and' or 'or' is expected") : 0;
}

int where_read(struct where **out, const char *text, const struct where_field *fields, struct err *e)
{
    struct where *w = calloc(1, sizeof *w);
    struct reader r = {.w = w, .fields = fields, .text = text, .p = text, .e = e};
    int rc = w ? read_all(&r) : no_memory(&r);

    if (rc < 0) {
        where_free(w);
        w = NULL;
    }
    *out = w;
    return rc;
}

void where_free(struct where *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_regex; i++)
        regex_free(w->regex[i]);
    free(w->regex);
    arena_free(&w->arena);
    free(w);
}

const struct where_node *where_root(const struct where *w)
{
    return w->root;
}

const char *where_text(const struct where *w)
{
    return w->text;
}

/* ---- answers ---- */

/* Whether a comparison that came out as order (below, at, above 0) is what op wants. */
static bool is_wanted(enum where_op op, int order)
{
    switch (op) {
    case WHERE_LESS: return order < 0;
    case WHERE_AT_MOST: return order <= 0;
    case WHERE_MORE: return order > 0;
    case WHERE_AT_LEAST: return order >= 0;
    default: return order == 0;
    }
}

static int meets_number(const struct where_node *n, double x)
{
    for (int i = 0; i < n->n; i++)
        if (!isnan(n->number[i]) && !isnan(x) && is_wanted(n->op, (x > n->number[i]) - (x < n->number[i])))
            return n->op != WHERE_IS_NOT;
    return n->op == WHERE_IS_NOT;
}

static int meets_text(const struct where_node *n, struct span s, struct err *e)
{
    bool ordered = n->op >= WHERE_LESS && n->op <= WHERE_AT_LEAST;

    if (n->op == WHERE_MATCHES)
        return regex_has(n->regex, s, e);
    if (ordered && n->type == WHERE_ANY && !isnan(n->number[0]))
        return 0;
    for (int i = 0; i < n->n; i++)
        if (is_wanted(n->op, span_cmp(s, n->word[i])))
            return n->op != WHERE_IS_NOT;
    return n->op == WHERE_IS_NOT;
}

static int meets_value(const struct where_node *n, const struct where_value *v, struct err *e)
{
    char text[40];

    if (v->type == WHERE_ABSENT)
        return 0;
    if (v->type == WHERE_TEXT)
        return meets_text(n, v->text, e);
    if (n->op != WHERE_MATCHES)
        return meets_number(n, v->number);
    snprintf(text, sizeof text, "%.17g", v->number);
    return regex_has(n->regex, span_of(text), e);
}

typedef int where_get(void *arg, const struct where_node *test, struct where_value *v, struct err *e);

/* As deep as reading was, but for rows of `and` and `or`, which go on to the left. */
static int meets(const struct where_node *n, where_get *get, void *arg, struct err *e)
{
    struct where_value v = {WHERE_ABSENT, {NULL, 0}, 0};
    int rc;

    switch (n->op) {
    case WHERE_AND:
        rc = meets(n->left, get, arg, e);
        return rc == 1 ? meets(n->right, get, arg, e) : rc;
    case WHERE_OR:
        rc = meets(n->left, get, arg, e);
        return rc == 0 ? meets(n->right, get, arg, e) : rc;
    case WHERE_NOT:
        rc = meets(n->left, get, arg, e);
        return rc < 0 ? rc : !rc;
    default:
        TRY(get(arg, n, &v, e));
        return meets_value(n, &v, e);
    }
}

int where_meets(const struct where *w, where_get *get, void *arg, struct err *e)
{
    return meets(w->root, get, arg, e);
}
