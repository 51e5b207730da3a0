/* tokenize/pages.h -- zeros for large tables, in huge pages if the system has them; a page costs nothing until it is
 * touched. */
#ifndef TOKENIZE_PAGES_H
#define TOKENIZE_PAGES_H

#include <stddef.h>

/* Zero-initialise. */
struct pages {
    void *map;
    size_t mapped;
};

/* NULL: out of memory.  Aligned to a cache line at least. */
void *pages_new(struct pages *p, size_t size);
void pages_free(struct pages *p);

#endif
