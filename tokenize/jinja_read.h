/* tokenize/jinja_read.h -- what reads templates: tags' tokens, expressions, statements.  Inside of jinja_lex.c, jinja_expr.c and
 * jinja_parse.c only. */
#ifndef TOKENIZE_JINJA_READ_H
#define TOKENIZE_JINJA_READ_H

#include "tokenize/jinja_parts.h"

enum jinja_token_kind { T_NONE, T_NAME, T_INT, T_FLOAT, T_STRING, T_SIGN, T_CLOSE };

struct jinja_token {
    enum jinja_token_kind kind;
    struct span text; /* of a STRING what it stands for */
    int64_t i;
    double f;
};

struct jinja_reader {
    struct jinja *x;
    const char *p, *end;
    int line, levels, brackets, loops, macros;
    bool block;      /* in a {% %}, else in a {{ }} */
    bool line_start; /* what was read last ended a line */
    struct jinja_token t; /* the next one of the tag */
    struct err *e;
    int rc;
};

/* The first error counts; each gives NULL. */
void *jinja_fail(struct jinja_reader *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* ... where something else is wanted than the next token. */
void *jinja_unwanted(struct jinja_reader *p, const char *wanted);
/* n zeroed objects in the template's arena, or NULL. */
void *jinja_room(struct jinja_reader *p, size_t n, size_t size);

/* Reads the next token. */
void jinja_next(struct jinja_reader *p);
/* Takes the next token if it is this one. */
bool jinja_is_sign(const struct jinja_reader *p, const char *s);
bool jinja_is_name(const struct jinja_reader *p, const char *s);
bool jinja_take_sign(struct jinja_reader *p, const char *s);
bool jinja_take_name(struct jinja_reader *p, const char *s);
void jinja_expect(struct jinja_reader *p, const char *s);
struct span jinja_expect_name(struct jinja_reader *p);

/* Appends to arguments or names. */
void jinja_add_arg(struct jinja_reader *p, struct jinja_arg **v, int *n, struct jinja_arg arg);
struct jinja_expr *jinja_make(struct jinja_reader *p, enum jinja_op op, struct jinja_expr *a, struct jinja_expr *b);
/* An expression; one without an if of its own; and one, or a list of those between commas. */
struct jinja_expr *jinja_expression(struct jinja_reader *p);
struct jinja_expr *jinja_any_of(struct jinja_reader *p);
struct jinja_expr *jinja_expressions(struct jinja_reader *p, struct jinja_expr *(*one)(struct jinja_reader *));

#endif
