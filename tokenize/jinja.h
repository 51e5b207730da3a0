/* tokenize/jinja.h -- the part of Jinja that chat templates and tasks of evaluation are written in.
 *
 * A template is parsed once and rendered by any number of threads.  A chat's is read as transformers reads one: trim_blocks,
 * lstrip_blocks, break and continue, {% generation %}, its tojson and raise_exception; a task's as lm-evaluation-harness does:
 * white space stays as it is, and to write what is undefined is an error.  What is not known (include, import,
 * call and filter blocks, a filter, a test, a method) is refused by name and line as the template is parsed, or, a method, as it
 * is reached.  strftime_now is defined only where a date is given, so that the same input gives the same text.
 *
 * Nothing a template does reaches outside: its steps, its depth and its text are bounded.
 * Source: Jinja 3.1's documentation of templates and transformers' of chat templates, and what both do.
 */
#ifndef TOKENIZE_JINJA_H
#define TOKENIZE_JINJA_H

#include "base/mem.h"
#include "base/node.h"

struct jinja;

enum jinja_dialect { JINJA_CHAT, JINJA_TASK };

/* ERR_FORMAT: it is none, or not of the known part; ERR_NOMEM. */
int jinja_new(struct jinja **x, struct span text, enum jinja_dialect dialect, struct err *e);
void jinja_free(struct jinja *x);
/* Whether it has {% generation %}. */
bool jinja_marks(const struct jinja *x);

/* A variable of a template; it belongs to the caller. */
struct jinja_var {
    const char *name;
    const struct node *value;
};
/* The bytes of the text within a {% generation %}. */
struct jinja_range {
    size_t from, to;
};
/* At most so many steps (an expression, a statement, an item), levels, and bytes of text at any time. */
enum { JINJA_STEPS = 20000000, JINJA_LEVELS = 200, JINJA_TEXT = 256 << 20 };

/* Appends to out the text that the template makes of n variables, and to ranges its struct jinja_range, in order.  date
 * (YYYY-MM-DD) is strftime_now's, or NULL.  a is room for what is made on the way.  ERR_FORMAT: what the template raises, or
 * something it does that has no meaning; ERR_LIMIT, ERR_NOMEM. */
int jinja_render(const struct jinja *x, const struct jinja_var *v, int n, const char *date, struct arena *a, struct buf *out,
                 struct buf *ranges, struct err *e);
/* s without what stands at its ends of the characters of set, or, where set.p is NULL, of Python's white space. */
struct span jinja_strip(struct span s, struct span set, bool left, bool right);

#endif
