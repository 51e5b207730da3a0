/* curate/dedup/index_pages.h -- keys of bands with their documents, sorted, in pages of a file: a tree that is read
 * only where it is needed.
 *
 * Leaves come first, in the order of the keys; then a level of pages that have the first key of each leaf, then one above
 * it, up to a single page.  So where a page is follows from its number, and a key is found by reading a page a level.
 * Byte by byte: docs/dedup.md, "Index files of fuzzy".
 */
#ifndef CURATE_INDEX_PAGES_H
#define CURATE_INDEX_PAGES_H

#include "base/file.h"
#include "base/spill.h"

enum { INDEX_PAGE = 1024 };

struct index_entry {
    uint64_t key, value;
};

/* Writes pages. */
struct index_pages_out {
    struct file_out *out;
    const char *dir;           /* of temporary files */
    struct spill first;        /* the first key of each leaf */
    struct index_entry *entry; /* of the leaf that is being filled */
    size_t n;
    int value_bytes;
    uint64_t entries, leaves;
};
/* Every value is less than values.  Free it in any case. */
int index_pages_begin(struct index_pages_out *p, struct file_out *out, uint64_t values, const char *dir, struct err *e);
/* The next entry: none is less than the one before it. */
int index_pages_put(struct index_pages_out *p, struct index_entry x, struct err *e);
/* The last leaf, and the levels above. */
int index_pages_end(struct index_pages_out *p, struct err *e);
void index_pages_free(struct index_pages_out *p);

/* How many pages there are, with those above, for so many leaves. */
uint64_t index_pages_count(uint64_t leaves);

/* Where pages are read. */
struct index_tree {
    int fd;
    const char *name;         /* of the file, for messages */
    uint64_t at;              /* of the first page */
    uint64_t leaves;
    uint64_t entries, values; /* each value is less than values */
};

/* Looks keys up.  One a thread; the tree outlives it. */
struct index_cursor;
int index_cursor_new(struct index_cursor **c, const struct index_tree *t, struct err *e);
void index_cursor_free(struct index_cursor *c);
typedef int index_taker(void *to, struct index_entry x, struct err *e);
/* Gives every entry of the key, in order.  Cheap for keys that ascend from call to call: each page is then read once.
 * ERR_FORMAT: a page is damaged, with file and byte. */
int index_cursor_find(struct index_cursor *c, uint64_t key, index_taker *take, void *to, struct err *e);
/* Gives all entries, in order. */
int index_cursor_all(struct index_cursor *c, index_taker *take, void *to, struct err *e);
/* Bytes read so far. */
uint64_t index_cursor_bytes(const struct index_cursor *c);

/* Reads n bytes of a file of that name at an offset.  ERR_IO; ERR_FORMAT: it ends before. */
int index_read_at(int fd, const char *name, uint64_t at, void *p, size_t n, struct err *e);
#endif
