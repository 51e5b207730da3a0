/* train/slices.h -- the tensors of a checkpoint's files as rectangles of logical tensors.
 *
 * A file has a whole logical tensor under its name, or a rectangle of it under
 *     NAME[0:4/16,8:16/24]   rows 0 to 3 of 16, columns 8 to 15 of 24
 *     NAME[0:4/16]           of a vector
 * in the shape of the rectangle.  Which rank wrote it does not matter: what is wanted is put
 * together from whatever rectangles there are.
 */
#ifndef TRAIN_SLICES_H
#define TRAIN_SLICES_H

#include "train/pieces.h"
#include "train/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

struct slice {
    struct piece at;  /* data NULL */
    struct span data; /* F32; at any address */
    const struct file_map *map; /* of which it is fetched, read and dropped, SLICE_FETCH bytes at a time; NULL: none */
};
enum { SLICE_FETCH = 8 << 20 };

struct slices {
    struct slice *v; /* slices_sort: by part, name, row, column */
    int n;
};

enum { SLICE_NAME = 256 };
/* The name of p in a file.  ERR_ARG: longer than SLICE_NAME. */
int slice_name(const struct piece *p, char name[SLICE_NAME], struct err *e);
/* What tensor t of a file is; strings in a.  ERR_FORMAT. */
int slice_parse(struct arena *a, const char *what, const struct safetensor *t, struct slice *s, struct err *e);

/* Sorts, and checks that the slices of a tensor agree on its shape and cover all of it: ERR_FORMAT
 * names tensor and hole. */
int slices_sort(struct slices *s, const char *what, struct err *e);

/* The slices of a tensor, *n of them; NULL when there are none.  From slices_sort on. */
const struct slice *slices_find(const struct slices *s, enum checkpoint_part part, const char *name, int *n);

/* Fills each of v on dev (NULL: host memory).  ERR_FORMAT names the tensor that is missing or of another shape, and the
 * rectangle that no slice has. */
int slices_load(const struct slices *s, const char *what, struct device *dev, const struct piece *v, int n, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
