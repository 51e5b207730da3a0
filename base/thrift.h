/* base/thrift.h -- Thrift's compact protocol, as far as Parquet's metadata need it.
 *
 * Source: Apache Thrift, doc/specs/thrift-compact-protocol.md.  A reader never leaves its bytes: what does not fit
 * sets `bad`, after which every read gives 0 and every struct and list has ended, so callers look at it once.
 */
#ifndef BASE_THRIFT_H
#define BASE_THRIFT_H

#include "base/mem.h"

enum thrift_type {
    THRIFT_STOP, THRIFT_TRUE, THRIFT_FALSE, THRIFT_I8, THRIFT_I16, THRIFT_I32, THRIFT_I64, THRIFT_DOUBLE, THRIFT_BINARY,
    THRIFT_LIST, THRIFT_SET, THRIFT_MAP, THRIFT_STRUCT
};

struct thrift {
    const uint8_t *p, *end;
    bool bad;
    int type; /* of the field, or of the list's elements, that is read next */
};

/* The next field of a struct, of which `last` was the one before (0: none): its number, with t->type; 0 at the struct's end.
 * Its value must then be read or skipped. */
int thrift_field(struct thrift *t, int last);
/* Passes over a value of t->type. */
void thrift_skip(struct thrift *t);
/* The number of a list's (or set's) elements, which are of t->type; never more than there are bytes left. */
size_t thrift_list(struct thrift *t);
int64_t thrift_int(struct thrift *t); /* i8 to i64, or a field that is a bool */
struct span thrift_binary(struct thrift *t);

/* ---- writing: append to b; errors of buf_put ---- */

int thrift_put_field(struct buf *b, int *last, int id, enum thrift_type type); /* the head of a field; *last: as above */
int thrift_put_int(struct buf *b, int *last, int id, enum thrift_type type, int64_t v); /* THRIFT_I32 or THRIFT_I64 */
int thrift_put_binary(struct buf *b, int *last, int id, struct span s);
/* A list's head; its elements follow: zigzag numbers (thrift_put_zigzag), binaries (thrift_put_bytes) or structs. */
int thrift_put_list(struct buf *b, int *last, int id, enum thrift_type element, size_t n);
int thrift_put_varint(struct buf *b, uint64_t v);
int thrift_put_zigzag(struct buf *b, int64_t v);
int thrift_put_bytes(struct buf *b, struct span s);
int thrift_put_stop(struct buf *b);
#endif
