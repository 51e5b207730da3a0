/* curate/stream/file_list.h -- file names from names and patterns. */
#ifndef CURATE_FILE_LIST_H
#define CURATE_FILE_LIST_H

#include "base/opt.h"

/* Start with zeroes. */
struct file_list {
    char **v;
    int n;
};

/* Each entry is a name, or a pattern as in the shell (* ? [).  ERR_ARG: nothing matches. */
int file_list_add(struct file_list *l, const struct opt_list *from, struct err *e);
void file_list_free(struct file_list *l);
#endif
