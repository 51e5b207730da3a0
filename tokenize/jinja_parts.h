/* tokenize/jinja_parts.h -- values and trees of templates.  Inside of jinja_*.c only. */
#ifndef TOKENIZE_JINJA_PARTS_H
#define TOKENIZE_JINJA_PARTS_H

#include <stdlib.h>

#include "base/err.h"
#include "tokenize/jinja.h"

struct jinja_run;
struct jinja_args;

/* ---- values ---- */

enum jinja_kind { JINJA_UNDEFINED, JINJA_NONE, JINJA_BOOL, JINJA_INT, JINJA_FLOAT, JINJA_STRING, JINJA_LIST, JINJA_MAP,
                  JINJA_NAMESPACE, JINJA_LOOP, JINJA_MACRO, JINJA_FUNCTION };

/* Lives in an arena, as does what it refers to. */
struct jinja_value {
    enum jinja_kind kind;
    union {
        int64_t i; /* BOOL and INT; of a FUNCTION which */
        double f;
        struct span s; /* STRING, UTF-8; of an UNDEFINED its name */
        struct jinja_list *list;
        struct jinja_map *map; /* MAP and NAMESPACE */
        struct jinja_loop *loop;
        const struct jinja_stmt *macro;
    };
};
struct jinja_list {
    struct jinja_value *v;
    int64_t n;
    bool tuple; /* written with round brackets */
};
struct jinja_pair {
    struct span key;
    struct jinja_value value;
};
struct jinja_map {
    struct jinja_pair *v;
    int64_t n, room;
};
struct jinja_loop {
    const struct jinja_list *of;
    int64_t at;
};

/* ---- trees ---- */

enum jinja_op {
    OP_LITERAL, OP_NAME, OP_LIST, OP_MAP, OP_NOT, OP_NEGATIVE, OP_POSITIVE, OP_AND, OP_OR, OP_ADD, OP_SUBTRACT,
    OP_MULTIPLY, OP_DIVIDE, OP_FLOOR, OP_MODULO, OP_POWER, OP_CONCAT, OP_EQUAL, OP_UNEQUAL, OP_LESS, OP_LESS_EQUAL,
    OP_MORE, OP_MORE_EQUAL, OP_IN, OP_NOT_IN, OP_IF, OP_ATTRIBUTE, OP_ITEM, OP_SLICE, OP_CALL, OP_FILTER, OP_TEST
};

struct jinja_expr {
    enum jinja_op op;
    int line;
    struct jinja_value literal;
    struct span name; /* NAME, ATTRIBUTE, FILTER, TEST */
    int function;     /* TEST: which */
    bool turned;      /* ... turned around */
    bool tuple;       /* LIST */
    int (*filter)(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out);
    struct jinja_expr *a, *b, *c; /* operands; IF: condition, then, else (or NULL); SLICE: a is *arg, bounds in arg */
    struct jinja_arg *arg;        /* LIST, MAP (key by name), SLICE (three, expr NULL where absent), CALL, FILTER, TEST */
    int n_arg;
};
struct jinja_arg {
    struct span name; /* of a keyword, or p NULL */
    struct jinja_expr *key, *expr;
};

enum jinja_what { DO_TEXT, DO_OUTPUT, DO_IF, DO_FOR, DO_SET, DO_SET_BLOCK, DO_MACRO, DO_GENERATION, DO_BREAK, DO_CONTINUE };

struct jinja_stmt {
    enum jinja_what what;
    int line;
    struct jinja_stmt *next, *body, *other; /* other: of else, or of the elif that is one */
    struct span text;                       /* TEXT; MACRO's name */
    struct jinja_expr *expr, *where;        /* where: FOR's filter; SET: what is set, if it is an attribute */
    struct jinja_arg *name;                 /* FOR's and SET's names; MACRO's parameters, with defaults */
    int n_name;
};

struct jinja {
    struct arena arena;
    struct jinja_stmt *body;
    bool marks, strict; /* strict: a task's */
};

/* ---- what a rendering has ---- */

struct jinja_binding {
    struct span name;
    struct jinja_value value;
};
struct jinja_run {
    struct arena *a;
    struct buf *out, *ranges;
    const char *date;
    struct err *e;
    struct jinja_binding *v; /* all scopes' */
    size_t n, room, scope, frame, top; /* scope: where the innermost begins; frame: a macro's; top: how many the template's own
                                          has, which macros see too */
    int64_t steps;
    int levels, captures; /* captures: the text goes elsewhere than to the result */
    bool breaks, continues, strict;
};

/* ERR_FORMAT with the line in front. */
int jinja_error(struct jinja_run *r, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* ... that says that a name is undefined. */
int jinja_undefined(struct jinja_run *r, int line, struct span name);
int jinja_no_memory(struct jinja_run *r);
/* Counts one step. */
int jinja_step(struct jinja_run *r, int line);

int jinja_eval(struct jinja_run *r, const struct jinja_expr *x, struct jinja_value *v);
/* Calls a macro. */
int jinja_call_macro(struct jinja_run *r, const struct jinja_expr *call, const struct jinja_stmt *m, struct jinja_value *v);

/* Evaluated arguments of a filter, a test, a method or a function. */
enum { JINJA_ARGS = 8 };
struct jinja_args {
    int n, line;
    struct jinja_value v[JINJA_ARGS];
    struct span name[JINJA_ARGS]; /* of a keyword, or p NULL */
};
/* The k-th positional argument, or the one of this name; NULL: neither is there. */
const struct jinja_value *jinja_arg(const struct jinja_args *x, int k, const char *name);

static inline bool jinja_is_text(const struct jinja_value *v) { return v && v->kind == JINJA_STRING; }
/* How many numbers there are from `from` on in steps of `by`, which is not 0, before `to`. */
static inline int64_t jinja_numbers(int64_t from, int64_t to, int64_t by)
{
    int64_t way = by > 0 ? to - from : from - to;

    return way > 0 ? (way - 1) / llabs(by) + 1 : 0;
}
/* An argument that is a whole number, or `absent`. */
static inline int64_t jinja_number_or(const struct jinja_value *v, int64_t absent)
{
    return v && (v->kind == JINJA_INT || v->kind == JINJA_BOOL) ? v->i : absent;
}

/* A filter or a method: of v. */
typedef int jinja_fn(struct jinja_run *r, const struct jinja_value *v, const struct jinja_args *x, struct jinja_value *out);
struct jinja_named {
    const char *name; /* NULL ends a table */
    jinja_fn *fn;
};
/* jinja_strings.c, jinja_lists.c */
extern const struct jinja_named jinja_text_filters[], jinja_text_methods[], jinja_list_filters[];
/* ERR_FORMAT: `what` has no meaning for v. */
int jinja_wrong(struct jinja_run *r, const struct jinja_args *x, const char *what, const struct jinja_value *v);
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_CAPITALIZE };
/* jinja_case.c: Python's upper and lower, Jinja's title and capitalize. ERR_FORMAT: not ASCII, and there is no ICU. */
int jinja_change_case(struct jinja_run *r, struct span s, enum jinja_case how, struct jinja_value *out);

/* jinja_functions.c: NULL or -1: there is none of this name. */
jinja_fn *jinja_filter_find(struct span name);
int jinja_test_find(struct span name);
int jinja_function_find(struct span name);
int jinja_test(struct jinja_run *r, int function, const struct jinja_value *v, const struct jinja_args *args, bool *yes);
int jinja_function(struct jinja_run *r, int function, const struct jinja_args *args, struct jinja_value *out);
/* 1: there is such a method, and out is what it gives; 0: none. */
int jinja_method(struct jinja_run *r, const struct jinja_value *v, struct span name, const struct jinja_args *args,
                 struct jinja_value *out);

/* jinja_value.c */
struct jinja_value jinja_bool(bool b);
struct jinja_value jinja_int(int64_t i);
struct jinja_value jinja_float(double f);
struct jinja_value jinja_text(struct span s);
bool jinja_true(const struct jinja_value *v);
bool jinja_is_number(const struct jinja_value *v);
double jinja_number(const struct jinja_value *v);
bool jinja_equal(const struct jinja_value *a, const struct jinja_value *b);
/* < 0, 0, > 0 in *order; ERR_FORMAT where the two have none. */
int jinja_compare(struct jinja_run *r, int line, const struct jinja_value *a, const struct jinja_value *b, int *order);
const char *jinja_kind_name(const struct jinja_value *v);
/* As Python's str, which is what a template writes; with quotes as its repr. */
int jinja_put(struct buf *out, const struct jinja_value *v, bool quotes);
/* The same, into the arena. */
int jinja_string(struct jinja_run *r, const struct jinja_value *v, struct span *s);
/* json.dumps(v, ensure_ascii=False, indent=indent, sort_keys=sort); indent < 0: on one line. */
int jinja_put_json(struct jinja_run *r, struct buf *out, const struct jinja_value *v, int indent, bool sort, int level);
/* What is in buf becomes a text in the arena; buf is freed. */
int jinja_take(struct jinja_run *r, struct buf *b, struct jinja_value *v);
int jinja_of_node(struct jinja_run *r, const struct node *n, struct jinja_value *v);
/* A list of room for n, and of what a loop goes over: items, keys, characters. */
int jinja_list_new(struct jinja_run *r, int64_t n, struct jinja_value *v);
int jinja_items(struct jinja_run *r, int line, const struct jinja_value *v, struct jinja_value *list);
int jinja_map_new(struct jinja_run *r, int64_t room, struct jinja_value *v);
struct jinja_value *jinja_map_get(const struct jinja_map *m, struct span key);
int jinja_map_set(struct jinja_run *r, struct jinja_map *m, struct span key, const struct jinja_value *v);
/* Characters of a text, and where the k-th begins. */
int64_t jinja_characters(struct span s);
size_t jinja_character(struct span s, int64_t k);

#endif
