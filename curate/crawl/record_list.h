/* curate/crawl/record_list.h -- lists of records: which bytes of which archives are wanted.
 *
 * A line is a JSON object with `file`, `offset` and `length`, as `quern crawl select` writes them (docs/crawl.md); the names
 * that CDXJ and the columnar index have for these are read too.  Files are paths below a folder or address that the command
 * line names. Memory: 48 bytes a record, and the names of the files.
 */
#ifndef CURATE_RECORD_LIST_H
#define CURATE_RECORD_LIST_H

#include "curate/crawl/crawl_entry.h"

struct record_entry {
    uint32_t file;           /* its number */
    uint64_t offset, length; /* as stored */
    uint64_t digest, url;    /* record_digest_key and the hash of the URL; 0: not known */
    uint64_t line;           /* where it stands in the list, in bytes */
};

struct record_list {
    struct record_entry *v;
    size_t n, cap;
    char **file, **dump; /* dump: NULL: not known */
    uint32_t n_files;
    size_t cap_files, cap_dumps;
    uint32_t *table;     /* file + 1 by the hash of its name */
    size_t table_size;
};

/* Whether a stream that begins so is a list. */
bool record_list_begins(struct span start);
/* Adds what an entry names.  any: files may be absolute, addresses, or lead out by "..".  ERR_FORMAT: the reason alone. */
int record_list_add(struct record_list *l, const struct crawl_entry *c, uint64_t line, bool any, struct err *e);
/* Puts records into the order in which they are read: files by the bytes of their names, each from its beginning on. */
void record_list_sort(struct record_list *l);
void record_list_free(struct record_list *l);

/* What tells a digest from others, however it is written ("sha1:" in front or not, capitals or not); 0: there is none. */
uint64_t record_digest_key(struct span digest);
uint64_t record_url_key(struct span url);
#endif
