/* curate/dedup/dedup_index.h -- the index of near-duplicates: of each document its bands, its sketch, its id, and where its
 * shingles can be had again.  A run against an index reads the documents that share a band with its own, and no others.
 *
 * The shingles are not in it.  They are made again from the text, which the index finds in the file that the document came
 * from, or read from a set file that stands beside the index; each document names its source, one of these, and where in it
 * the document begins.  Byte by byte: docs/dedup.md, "Index files of fuzzy".
 */
#ifndef CURATE_DEDUP_INDEX_H
#define CURATE_DEDUP_INDEX_H

#include "base/file_group.h"
#include "curate/dedup/dedup_bands.h"
#include "curate/dedup/index_pages.h"
#include "curate/stream/note_index.h"

enum index_source_kind { INDEX_TEXTS = 't', INDEX_SETS = 's' };

struct index_doc {
    struct span id;
    uint32_t count;  /* shingles */
    uint32_t source;
    uint64_t at;     /* texts: where its line begins in the decompressed file; sets: the byte of its first shingle */
    uint64_t hash;   /* XXH3-64 of its shingles, in the order of the text */
    const uint8_t *sketch; /* bands x rows */
};

/* ---- writing ---- */

struct index_out;
struct index_out_conf {
    const char *path;
    const char *kind; /* the stage's settings: one line */
    int bands, rows;
    bool sets;        /* a set file is written beside it: PATH.sets */
    const char *dir;  /* for temporary files */
    int64_t memory;
};
/* ERR_ARG: the name is of a compressed file. */
int index_out_check(const char *path, struct err *e);
/* c's strings outlive it. */
int index_out_create(struct index_out **x, const struct index_out_conf *c, struct err *e);
/* The next document, of these shingles; record NULL: it has none.  place is FILE:OFFSET of its text, which is looked at
 * unless sets are written. */
int index_out_put(struct index_out *x, struct span id, struct span place, const uint64_t *hash, size_t count,
                  const struct band_record *record, struct err *e);
/* The same in pieces, as another index has it.  *number is that of a source from then on. */
int index_out_add_source(struct index_out *x, int kind, const char *path, uint32_t *number, struct err *e);
int index_out_add_doc(struct index_out *x, const struct index_doc *d, struct err *e);
/* A key as index_doc_key has it, and document x bands + band; after the documents, in any order. */
int index_out_add_key(struct index_out *x, struct index_entry k, struct err *e);
uint64_t index_out_docs(const struct index_out *x);
/* The files are whole, and get their names with the group.  x is freed, whatever happens; rc < 0 is what failed before, and
 * comes back. */
int index_out_end(struct index_out *x, int rc, struct file_group *files, struct err *e);

/* ---- reading ---- */

struct index_source {
    int kind;
    char *path; /* as it can be opened from here */
};
struct dedup_index {
    char *name;
    char kind[NOTE_INDEX_KIND];
    int fd, bands, rows;
    uint64_t docs, docs_at;
    struct index_source *source;
    uint32_t sources;
    struct index_tree tree;
};
/* 1; 0: it is no such index (or an older one), *x is NULL.  ERR_IO; ERR_FORMAT: damaged, with file and byte. */
int dedup_index_open(struct dedup_index **x, const char *path, struct err *e);
void dedup_index_close(struct dedup_index *x);
/* Document n; id and sketch are in b until the next call.  Any thread. */
int dedup_index_doc(const struct dedup_index *x, uint64_t n, struct index_doc *d, struct buf *b, struct err *e);

/* Many into one of that name, in order, with about so much memory.  ERR_FORMAT: they are of different kinds, or damaged. */
int dedup_index_merge(const char *path, char *const *from, int n, const char *dir, int64_t memory, struct err *e);
#endif
