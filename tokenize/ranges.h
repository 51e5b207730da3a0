/* tokenize/ranges.h -- sets of code points as sorted ranges. */
#ifndef TOKENIZE_RANGES_H
#define TOKENIZE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum { RANGES_END = 0x110000 }; /* behind the last code point */

struct range {
    uint32_t from, to; /* to: exclusive */
};

/* Zero-initialise.  In order, with gaps between, once ranges_close was called. */
struct ranges {
    struct buf b; /* struct range */
};

static inline size_t ranges_n(const struct ranges *r)
{
    return r->b.n / sizeof(struct range);
}
static inline const struct range *ranges_get(const struct ranges *r)
{
    return (const struct range *)(const void *)r->b.p;
}

/* All of these append or change a set and fail with ERR_NOMEM alone. */
int ranges_add(struct ranges *r, uint32_t from, uint32_t to);
int ranges_add_all(struct ranges *r, const struct ranges *other);
/* The characters with any of these bits (ucd.h). */
int ranges_add_class(struct ranges *r, unsigned bits);
/* The same by Hugging Face's classes (hf_table.h). */
int ranges_add_hf_class(struct ranges *r, unsigned bits);
/* Sorts and joins. */
void ranges_close(struct ranges *r);
/* Of closed sets: all others; what is in both. */
int ranges_invert(struct ranges *r);
int ranges_intersect(struct ranges *r, const struct ranges *other);
bool ranges_equal(const struct ranges *a, const struct ranges *b);
void ranges_free(struct ranges *r);

#endif
