/* curate/extract/extract_latex.h -- between reading LaTeX's files and making documents of them.  Inside
 * extract_latex*.c only. */
#ifndef CURATE_EXTRACT_LATEX_H
#define CURATE_EXTRACT_LATEX_H

#include "curate/extract/extract_format.h"
#include "curate/latex/latex.h"

enum { LATEX_MEMBERS_MAX = 10000, LATEX_EPRINT_MAX = 4 }; /* an e-print: files, and bytes in --max-page-bytes */

struct latex_member {
    struct span name, bytes;
};

/* A document's files: one, or those of an archive; the bytes lie behind the struct. */
struct latex_item {
    struct extract_item item;
    bool archived; /* the main file's name belongs to the id */
    bool disk;     /* others may lie beside it */
    int n;
    struct latex_member *member;
};

/* Whether a start that has none of LaTeX's signs is TeX all the same: by its commands. */
bool latex_is_source(struct span start);

/* The files of an e-print that come one by one: its sources, and texts that these may \input.  bytes are copied.
 * ERR_LIMIT: they are too many, or too much; ERR_NOMEM. */
struct latex_eprint;
int latex_eprint_new(struct latex_eprint **p, const struct extract_conf *c, struct err *e);
int latex_eprint_add(struct latex_eprint *p, struct span name, struct span bytes, bool tex, struct err *e);
/* Whether any of them was said to be TeX: without that they are no e-print. */
bool latex_eprint_has_tex(const struct latex_eprint *p);
/* The item of all of them, with the archive's path as its id: 1; 0 when it was given. */
int latex_eprint_item(struct latex_eprint *p, const struct extract_input *in, struct extract_item **item, struct err *e);
/* Where they are no e-print: ERR_FORMAT for each in turn, then 0. */
int latex_eprint_refuse(struct latex_eprint *p, const char *archive, struct err *e);
void latex_eprint_free(struct latex_eprint *p);

/* Whether \input may name such a file of an e-print: no picture, table of data, class ... */
bool latex_may_be_input(struct span name);

/* The format's maker (curate/extract/extract_format.h): a thread's state, and a document of an item. */
int latex_maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e);
void latex_maker_close(void *maker);
int latex_make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e);
#endif
