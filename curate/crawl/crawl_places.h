/* curate/crawl/crawl_places.h -- the files that the name of an index stands for. */
#ifndef CURATE_CRAWL_PLACES_H
#define CURATE_CRAWL_PLACES_H

#include "curate/crawl/crawl_index.h"

struct crawl_places {
    char **v; /* files and addresses */
    int n;
    size_t cap;
};
/* Adds those of a name; bounded: the condition bounds the keys.  Errors of crawl_index_open. */
int crawl_places_add(struct crawl_places *p, const char *name, const struct crawl_index_conf *c, bool bounded, struct err *e);
void crawl_places_free(struct crawl_places *p);

/* Whether a name found in data stays below where it is looked for: no address, not absolute, without "..", nothing that
 * steers. */
bool crawl_name_is_below(struct span name);
/* Folder and name as one path; of an address what is no plain letter of a path is escaped.  The caller frees it; NULL: out
 * of memory. */
char *crawl_join(const char *folder, const char *name);
/* The folder that a name lies in, with its slash; "": the working one.  The caller frees it. */
char *crawl_folder_of(const char *name);
#endif
