/* curate/extract/walk.h -- the files that operands stand for.
 *
 * A folder stands for all files in it and below, in byte order of their paths; names
 * that begin with a dot are passed over, links to folders are not followed.  Anything
 * else, an address too, stands for itself.  What an untrusted folder holds is to be opened beneath it.
 */
#ifndef CURATE_WALK_H
#define CURATE_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct walk_file {
    char *path; /* of an address what stands before its query */
    const char *address; /* the operand, if it is one (base/http.h); NULL: a file */
    bool named; /* an operand itself, not found in a folder; else */
    size_t top; /* so many bytes of path name the operand, and the rest the file in it */
};

struct walk {
    struct walk_file *file;
    int n;
    size_t cap;
};

/* Lists the files.  ERR_IO: an operand is missing, a folder cannot be read. */
int walk_list(struct walk *w, char *const *operands, int n, struct err *e);
void walk_free(struct walk *w);
#endif
