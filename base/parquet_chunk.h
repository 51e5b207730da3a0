/* base/parquet_chunk.h -- inside of writing Parquet: the values of a column in a row group, to pages. */
#ifndef BASE_PARQUET_CHUNK_H
#define BASE_PARQUET_CHUNK_H

#include <zstd.h>

#include "base/json.h"
#include "base/parquet.h"
#include "base/parquet_write.h"

enum { PARQUET_BOUND = 64 }; /* bytes of a text that statistics have */

/* What values a column has, as bits. */
enum {
    SEEN_BOOL = 1,
    SEEN_INT = 2,
    SEEN_LONG = 4,    /* an integer of 64 bits that a double has not */
    SEEN_REAL = 8,
    SEEN_HUGE = 16,   /* a number that neither has */
    SEEN_TEXT = 32,
    SEEN_NESTED = 64  /* an array or an object */
};

/* How a column's values are written. */
enum parquet_kind { KIND_NONE, KIND_BOOL, KIND_INT, KIND_REAL, KIND_TEXT, KIND_JSON };

/* A value that is not null. */
struct parquet_cell {
    uint64_t at; /* of its JSON within the lines */
    uint32_t n, row;
};

/* The least or the greatest of texts, as much of it as is kept. */
struct parquet_bound {
    char text[PARQUET_BOUND];
    uint8_t n;
    bool cut; /* there was more of it */
};

/* A column chunk as it was written; KIND_NONE: it is nulls alone, and not written yet. */
struct parquet_written {
    enum parquet_kind kind;
    uint64_t at, data_at, bytes, plain_bytes; /* at: of its first page; plain_bytes: decompressed */
    uint64_t nulls;
    bool dictionary, has_range;
    int64_t least, most; /* of integers, if has_range */
    struct parquet_bound least_text, most_text; /* of texts, likewise */
};

/* What writing takes. */
struct parquet_packer {
    struct parquet_sink sink;
    uint64_t at; /* bytes of the file so far */
    ZSTD_CCtx *zstd;
    struct buf values, page, packed;
    uint32_t *slot, *word, *index; /* of a dictionary: where its values are found, the cells that have them first, numbers */
    size_t cap_index;
};

/* Takes a text into the bounds of a chunk. */
void parquet_bound_take(struct parquet_written *x, struct span text);
/* What is written as the least and as the greatest, in own: whole characters, and none of the chunk's texts lies outside.
 * false: there is no such greatest. */
struct span parquet_bound_least(const struct parquet_bound *b);
bool parquet_bound_most(const struct parquet_bound *b, char own[PARQUET_BOUND], struct span *s);

/* What a value is; raw has a JSON value's bytes. */
unsigned parquet_seen(struct span raw, enum json_type type);
/* How a column of such values is written when all of them are known, and how while they are not. */
enum parquet_kind parquet_kind_of(unsigned seen);
enum parquet_kind parquet_kind_now(unsigned seen);
/* The leaf that a kind is. */
struct parquet_node parquet_leaf_of(enum parquet_kind kind);

int parquet_packer_open(struct parquet_packer *p, const struct parquet_sink *s, struct err *e);
void parquet_packer_close(struct parquet_packer *p);
int parquet_pack_put(struct parquet_packer *p, struct span s, struct err *e);
/* Writes n cells of a row group of so many rows, whose JSON is in lines, as a column chunk. */
int parquet_pack_chunk(struct parquet_packer *p, enum parquet_kind kind, const char *lines, const struct parquet_cell *cell,
                       size_t n, uint32_t rows, struct parquet_written *out, struct err *e);
#endif
