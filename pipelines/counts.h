/* pipelines/counts.h -- counts as JSON objects that can be added, whatever they count.
 *
 * The statistics that a stage gives of itself are counts since the program started.  To say
 * what one stretch of work added, and to add that to what was known from before, they are
 * subtracted and added as objects: numbers one by one, lists of numbers and objects within
 * likewise; of everything else the first that is there stays.
 */
#ifndef PIPELINES_COUNTS_H
#define PIPELINES_COUNTS_H

#include "base/err.h"
#include "base/mem.h"

/* Appends a + sign * b to out; each is the inside of a JSON object, without the braces.
 * ERR_FORMAT: no JSON. */
int counts_add(struct buf *out, struct span a, int sign, struct span b, struct err *e);
#endif
