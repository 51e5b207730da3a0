/* indexed_dataset/page_list.h -- pages that somebody asks for, by id or URL, found in ledgers. */
#ifndef INDEXED_DATASET_PAGE_LIST_H
#define INDEXED_DATASET_PAGE_LIST_H

#include "base/name_table.h"
#include "base/opt.h"
#include "indexed_dataset/ledger.h"

enum page_names { PAGE_IDS, PAGE_URLS, PAGE_NAMES };

/* Zero-initialise. */
struct page_list {
    struct name_table of[PAGE_NAMES];
    struct buf found[PAGE_NAMES]; /* a byte for each: whether a document has it */
};
void page_list_free(struct page_list *l);

enum { PAGE_LIST_BYTES = 1 << 30 }; /* of a file of names, at most */
/* Adds names as they are given, and those in files, one on each line (an empty line is none).  ERR_IO, ERR_LIMIT, ERR_NOMEM. */
int page_list_add(struct page_list *l, enum page_names kind, const struct opt_list *names, struct err *e);
int page_list_read(struct page_list *l, enum page_names kind, const struct opt_list *files, struct err *e);

/* Whether a document of this id and URL is among them; the names that it has are marked as found.  From any thread. */
bool page_list_find(struct page_list *l, struct span id, struct span url);
/* None counts as found any more. */
void page_list_unfind(struct page_list *l);
/* A bit for each document of a ledger that is among them, which are marked as found: *bits, to be freed; *n of them.  The
 * errors of ledger_document, ERR_NOMEM. */
int page_list_bits(struct page_list *l, const struct ledger *of, uint8_t **bits, uint64_t *n, struct err *e);
/* The next name after *at (0 to begin with) that no document had; false: none. */
bool page_list_missing(const struct page_list *l, size_t *at, struct span *name);
#endif
