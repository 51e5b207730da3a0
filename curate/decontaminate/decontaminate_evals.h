/* curate/decontaminate/decontaminate_evals.h -- the questions of evaluation sets.
 *
 * JSON lines, compressed or not.  A question is a string; answer and passage are
 * strings, numbers or lists of these, or missing; several answers stand on lines of
 * their own.
 */
#ifndef CURATE_DECONTAMINATE_EVALS_H
#define CURATE_DECONTAMINATE_EVALS_H

#include "base/err.h"
#include "base/mem.h"

/* The names of the fields.  NULL or "": there is none. */
struct eval_fields {
    const char *id, *task, *question, *answer, *passage;
};

struct eval_item {
    struct span id;   /* FILE:LINE where there is none */
    struct span task; /* the file's name without folder and endings where there is none */
    struct span text; /* the question, a newline, the answer if there is one */
    size_t question;  /* bytes of text that are the question */
    struct span passage;
};

struct eval_set {
    struct eval_item *v;
    size_t n, cap;
    struct arena bytes; /* all that the items point to */
};

/* Adds the questions of a file to set (zeroes at first).  A line that is no object or
 * has no question is ERR_FORMAT with file and line: a set that is read in part would
 * let questions through.  ERR_IO, ERR_NOMEM; ERR_LIMIT: the file decompresses to more
 * than 4 GiB. */
int eval_set_read(struct eval_set *set, const char *path, const struct eval_fields *f, struct err *e);
/* The same from memory; name is for messages.  64 bytes behind text must be readable. */
int eval_set_parse(struct eval_set *set, const char *name, struct span text, const struct eval_fields *f,
                   struct err *e);
void eval_set_free(struct eval_set *set);

/* The answer; empty if there is none. */
static inline struct span eval_answer(const struct eval_item *it)
{
    struct span s = {it->text.p + it->question, it->text.n - it->question};

    if (s.n) {
        s.p++;
        s.n--;
    }
    return s;
}
#endif
