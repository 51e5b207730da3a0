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
    bool packed;   /* the only member is a gzip file, to be opened when it is made */
    bool archived; /* the main file's name belongs to the id */
    bool disk;     /* others may lie beside it */
    int n;
    struct latex_member *member;
};

/* Whether \input may name such a file of an e-print: no picture, table of data, class ... */
bool latex_may_be_input(struct span name);

/* The format's maker (curate/extract/extract_format.h): a thread's state, and a document of an item. */
int latex_maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e);
void latex_maker_close(void *maker);
int latex_make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e);
#endif
