/* curate/dedup/dedup_ids.h -- the ids of documents, by number. */
#ifndef CURATE_DEDUP_IDS_H
#define CURATE_DEDUP_IDS_H

#include "base/mem.h"

/* Zero-initialise to start. */
struct id_list {
    struct span *id; /* the bytes live until id_list_free */
    size_t n, cap;
    struct arena bytes;
};
/* Appends a copy.  ERR_NOMEM. */
int id_list_add(struct id_list *l, struct span id);
void id_list_free(struct id_list *l);
#endif
