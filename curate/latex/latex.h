/* curate/latex/latex.h -- a LaTeX source in, its text and what it says about itself out.
 *
 * Macros that the document defines are expanded; what LaTeX and the usual packages define is
 * known by name (curate/latex/latex_names.c); a command that is neither goes and its arguments stay.
 * Mathematics stays LaTeX, with the document's own macros expanded.  Nothing recurses; the work
 * a document may cause is bounded by bytes, expansions and output.
 */
#ifndef CURATE_LATEX_H
#define CURATE_LATEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "curate/html/html.h"

enum latex_math {
    LATEX_MATH_EXPANDED, /* $...$ with the document's macros expanded */
    LATEX_MATH_SOURCE,   /* as the author wrote it */
    LATEX_MATH_NONE      /* formulas are left out */
};

struct latex_conf {
    int format; /* enum html_format */
    int math;   /* enum latex_math */
    size_t max_bytes;      /* of text that comes out, and of all files that are read */
    int64_t max_expansions; /* macros expanded and files read, in a document */
};

/* Plain text, expanded; 16 MiB; 1 million. */
void latex_conf_init(struct latex_conf *c);

/* Where a document's files come from.  find: the bytes of a file that an \input names ("sec/intro",
 * "macros.sty"), as UTF-8 with "\n" at line ends; 1, or 0 when there is none.  They must last
 * until latex_extract returns. */
struct latex_files {
    int (*find)(void *arg, struct span name, struct span *utf8, struct err *e);
    void *arg;
};

/* All UTF-8; p is NULL for what the document does not say.  The bytes belong to the worker and
 * last until its next document. */
struct latex_doc {
    struct span text;   /* no line ends in white space; ends with a newline unless empty */
    struct span title;  /* one line */
    struct span author; /* names, set apart by ", " */
    struct span date;   /* YYYY-MM-DD, if \date gives one */
    struct span lang;   /* as babel or polyglossia are told: ISO 639 */
};

struct latex_worker;

/* A worker belongs to one thread; it keeps its memory.  c is copied.  ERR_NOMEM. */
int latex_worker_new(struct latex_worker **w, const struct latex_conf *c, struct err *e);
void latex_worker_free(struct latex_worker *w);

/* Extracts one document.  utf8: its main file, with "\n" at line ends and no other control
 * characters.  files may be NULL.  ERR_LIMIT: a bound was reached; ERR_NOMEM. */
int latex_extract(struct latex_worker *w, struct span utf8, const struct latex_files *files, struct latex_doc *out,
                  struct err *e);
#endif
