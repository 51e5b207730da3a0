/* kernels/ragged.h -- many sequences of different lengths in one array. */
#ifndef KERNELS_RAGGED_H
#define KERNELS_RAGGED_H

#include <stdint.h>

/* Sequence i, i < n, is [begin[i], end[i]) of an array of `length` elements; begin and end
 * are the device's.  Ascending and apart: end[i] <= begin[i + 1]; what lies between
 * two sequences is not looked at, and a sequence may be empty. */
struct ragged {
    int64_t n, length;
    const int64_t *begin, *end;
};
#endif
