/* base/parquet.h -- inside of reading and writing Parquet, for base/parquet_*.c and base/file_parquet.c alone.
 *
 * Source: apache/parquet-format, README.md, Encodings.md, LogicalTypes.md and src/main/thrift/parquet.thrift; for
 * maps and lists the rules for older files in LogicalTypes.md.  docs/parquet.md says which value becomes which JSON.
 */
#ifndef BASE_PARQUET_H
#define BASE_PARQUET_H

#include "base/err.h"
#include "base/mem.h"
#include "base/thrift.h"

enum {
    PARQUET_FOOTER_MAX = 128 << 20, /* bytes of metadata at the end of a file */
    PARQUET_PAGE_MAX = 1 << 30,     /* bytes of a page, decompressed */
    PARQUET_DEPTH_MAX = 40,         /* nested groups; so levels fit into a byte */
    PARQUET_TAIL = 8                /* bytes at the end: the length of the metadata, PAR1 */
};

enum parquet_type { PARQUET_BOOLEAN, PARQUET_INT32, PARQUET_INT64, PARQUET_INT96, PARQUET_FLOAT, PARQUET_DOUBLE,
                    PARQUET_BYTES, PARQUET_FIXED };
enum parquet_codec { PARQUET_PLAIN_CODEC, PARQUET_SNAPPY, PARQUET_GZIP, PARQUET_LZO, PARQUET_BROTLI, PARQUET_LZ4,
                     PARQUET_ZSTD, PARQUET_LZ4_RAW };
enum parquet_encoding { PARQUET_PLAIN = 0, PARQUET_PLAIN_DICTIONARY = 2, PARQUET_RLE = 3, PARQUET_BIT_PACKED = 4,
                        PARQUET_DELTA = 5, PARQUET_DELTA_LENGTH = 6, PARQUET_DELTA_BYTES = 7, PARQUET_RLE_DICTIONARY = 8,
                        PARQUET_BYTE_STREAM_SPLIT = 9 };
enum parquet_page_type { PARQUET_DATA_PAGE, PARQUET_INDEX_PAGE, PARQUET_DICTIONARY_PAGE, PARQUET_DATA_PAGE_V2 };

/* What a leaf's values stand for. */
enum parquet_meaning { PARQUET_RAW, PARQUET_STRING, PARQUET_JSON, PARQUET_UNSIGNED, PARQUET_DECIMAL, PARQUET_DATE,
                       PARQUET_TIME, PARQUET_TIMESTAMP, PARQUET_UUID, PARQUET_HALF, PARQUET_INTERVAL };
enum parquet_shape { PARQUET_LEAF, PARQUET_STRUCT, PARQUET_LIST, PARQUET_MAP };

/* A column, or what has columns.  A list's child is its element, a map's are key and value. */
struct parquet_node {
    struct span name, key; /* key: "name": as it stands in JSON */
    enum parquet_shape shape;
    bool optional;
    int def, rep;           /* levels of a value that is there (of a list: that is there and may be empty) */
    int item_def, item_rep; /* of a list's or map's items */
    int first_leaf, n_leaves;
    struct parquet_node *child, *next;
    /* of a leaf */
    enum parquet_type type;
    int length; /* of PARQUET_FIXED */
    enum parquet_meaning meaning;
    int scale;  /* of a decimal; the digits behind the point of a second's fraction: 3, 6, 9 */
    bool utc;
};

/* A column in a row group. */
struct parquet_chunk {
    uint64_t at, bytes; /* where its pages are */
    uint64_t n;         /* values, nulls among them */
    enum parquet_codec codec;
    struct span statistics; /* as they stand in the metadata; empty: none */
};

struct parquet_group {
    uint64_t rows;
    struct parquet_chunk *chunk; /* a leaf each */
};

struct parquet_meta {
    struct arena arena;
    struct parquet_node *root, **leaf;
    int n_leaves;
    struct parquet_group *group;
    size_t n_groups, cap_groups;
    uint64_t rows;
    bool ordered; /* it says by which order values are the least and the greatest */
};

/* Where a file's bytes are: n at offset `at`, all of them or ERR_IO. */
struct parquet_source {
    int (*read)(void *arg, uint64_t at, void *p, size_t n, struct err *e);
    void *arg;
    uint64_t size;
    size_t ahead; /* bytes of a column that are read at once; 0: 64 KiB */
};

/* For "%.*s": a column's name, of which a message has the beginning. */
#define PARQUET_NAME(node) (int)((node)->name.n < 99 ? (node)->name.n : 99), (node)->name.p

static inline uint32_t parquet_load32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- base/parquet_meta.c ---- */

/* Reads the metadata at the end of a file; parquet_meta_free in any case.  ERR_FORMAT, ERR_LIMIT, ERR_UNSUPPORTED with the reason
 * and no name. */
int parquet_meta_read(struct parquet_meta *m, const struct parquet_source *s, struct err *e);
void parquet_meta_free(struct parquet_meta *m);
/* Leaves those of the root's columns out that keep does not want.  Their number is what is left. */
int parquet_meta_keep(struct parquet_meta *m, bool (*keep)(void *arg, struct span name), void *arg);

/* ---- base/parquet_range.c ---- */

struct parquet_range;
/* What a chunk's statistics say of its values. */
void parquet_range_read(struct parquet_range *r, const struct parquet_meta *m, const struct parquet_node *leaf,
                        const struct parquet_chunk *c);

/* ---- base/parquet_schema.c ---- */

/* Reads the list of schema elements that t stands at into m->root and m->leaf. */
int parquet_schema_read(struct parquet_meta *m, struct thrift *t, struct err *e);

/* ---- base/parquet_unpack.c ---- */

/* ERR_FORMAT when n bytes of this codec cannot hold `size`: so a few bytes take no memory for what they only claim. */
int parquet_unpack_check(enum parquet_codec codec, size_t n, size_t size, struct err *e);
/* Decompresses n bytes to exactly `size` at dst.  ERR_FORMAT, ERR_UNSUPPORTED, ERR_NOMEM; the library's own word. */
int parquet_unpack(enum parquet_codec codec, const uint8_t *p, size_t n, uint8_t *dst, size_t size, struct err *e);

/* ---- base/parquet_values.c ---- */

/* Runs and bit-packed groups of numbers of `width` bits (RLE / bit-packing hybrid). */
struct parquet_rle {
    const uint8_t *p, *end;
    int width;
    uint64_t left; /* of the run under way */
    bool packed;
    uint32_t value; /* of a run */
    uint64_t bit;   /* of bit-packed ones, the next one's place behind p */
};
void parquet_rle_start(struct parquet_rle *r, const uint8_t *p, const uint8_t *end, int width);
bool parquet_rle_next(struct parquet_rle *r, uint32_t *v); /* false: they have ended, or make no sense */

/* DELTA_BINARY_PACKED. */
struct parquet_delta {
    const uint8_t *p, *end;
    uint64_t block, minis, per_mini; /* numbers in a block; its miniblocks; numbers in one */
    uint64_t left, value, least;
    const uint8_t *width; /* of this block's miniblocks */
    uint64_t mini, in_mini;
    bool first;
};

struct parquet_dictionary {
    const uint8_t *p; /* its values as PLAIN has them, */
    size_t length;    /*   each of so many bytes, or (0) where `at` says, behind its length */
    uint32_t *at;
    size_t n, cap;
};

/* The values of a page, in order, none of them null. */
struct parquet_values {
    enum parquet_encoding encoding;
    enum parquet_type type;
    size_t length; /* bytes of a value of a fixed width */
    const uint8_t *p, *end;
    uint64_t at; /* values given so far */
    struct parquet_rle rle;
    struct parquet_delta lengths, prefixes;
    const struct parquet_dictionary *dictionary;
    struct buf made; /* a value that is not stored as such */
};
/* Begins with the n bytes at p of an encoding; d: the column's, or NULL.  ERR_FORMAT, ERR_UNSUPPORTED.  The buffer in v
 * is kept from page to page, and is the caller's to free. */
int parquet_values_start(struct parquet_values *v, enum parquet_encoding encoding, const struct parquet_node *leaf,
                         const uint8_t *p, size_t n, const struct parquet_dictionary *d, struct err *e);
/* The next value, as PLAIN stores it (without a length; a boolean is a byte), valid until the next call. */
int parquet_values_next(struct parquet_values *v, struct span *out, struct err *e);
/* After the last value of a page, whether there are more: its levels or lengths are damaged then.  Runs cannot tell. */
bool parquet_values_more(const struct parquet_values *v);
/* The n values of a dictionary's page; they stay where they are. */
int parquet_dictionary_read(struct parquet_dictionary *d, const struct parquet_node *leaf, size_t n, const uint8_t *p,
                            size_t bytes, struct err *e);

/* ---- base/parquet_column.c ---- */

/* A column's way through a row group.  Memory: a page as stored, decompressed, and a dictionary. */
struct parquet_column {
    const struct parquet_source *source;
    const struct parquet_node *leaf;
    struct parquet_chunk chunk;
    uint64_t at;   /* of the next page */
    uint64_t seen; /* values of the pages so far */
    uint64_t left; /* entries of this page that are to come */
    bool in_page;  /* a page has been begun, and what is behind its last entry has not been looked at */
    bool ready;    /* def and rep are the next entry's */
    uint32_t def, rep;
    struct parquet_rle defs, reps;
    struct parquet_values values;
    struct parquet_dictionary dictionary;
    struct buf stored; /* bytes of the file from stored_at on */
    uint64_t stored_at;
    struct room { uint8_t *p; size_t cap; } page, words; /* words: the dictionary's page */
};
/* Goes to the beginning of a chunk; a zeroed column is fine. */
void parquet_column_start(struct parquet_column *c, const struct parquet_source *s, const struct parquet_node *leaf,
                          const struct parquet_chunk *chunk);
/* Makes def and rep those of the next entry.  1; 0: the chunk has ended; ERR_FORMAT and others with the page's offset. */
int parquet_column_peek(struct parquet_column *c, struct err *e);
void parquet_column_free(struct parquet_column *c);

/* ---- base/parquet_text.c ---- */

/* Appends a value as JSON; one of PARQUET_JSON as text. */
int parquet_put_value(struct buf *b, const struct parquet_node *leaf, struct span value);

/* ---- base/parquet_rows.c ---- */

/* The rows of a file, a row group after the other. */
struct parquet_reader {
    struct parquet_source source; /* set before it is opened */
    const struct parquet_meta *meta;
    struct parquet_meta own;
    struct parquet_column *column;
    struct json_scanner *json;
    size_t group; /* the one that is read, or will be */
    uint64_t row; /* within it */
};
/* Reads the metadata.  Errors of parquet_meta_read; close it in any case. */
int parquet_reader_open(struct parquet_reader *r, struct err *e);
/* The same, and rows have those of the root's columns alone that are named, commas between.  ERR_FORMAT: there is no such one. */
int parquet_reader_open_some(struct parquet_reader *r, const char *names, struct err *e);
/* The same by metadata that were read before, which are the caller's.  ERR_NOMEM. */
int parquet_reader_open_with(struct parquet_reader *r, const struct parquet_meta *m, struct err *e);
/* Goes to the beginning of row group r->group, which there is. */
void parquet_reader_start(struct parquet_reader *r);
/* Appends the next row of the group as a line of JSON.  1; 0: the group has ended; ERR_FORMAT, ERR_LIMIT (b->max) and others
 * with row group and column: then b is as it was, and only another group can be read. */
int parquet_reader_row(struct parquet_reader *r, struct buf *b, struct err *e);
void parquet_reader_close(struct parquet_reader *r);
#endif
