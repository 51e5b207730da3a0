/* indexed_dataset/npy.h -- arrays of integers as NumPy's .npy files, format 1.0. */
#ifndef INDEXED_DATASET_NPY_H
#define INDEXED_DATASET_NPY_H

#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

enum { NPY_HEADER_MAX = 256 };
enum npy_type { NPY_U2, NPY_I2, NPY_I4, NPY_U4, NPY_I8 };

/* rows x cols, row after row, little-endian; cols == 0: one dimension. */
struct npy {
    enum npy_type type;
    int64_t rows, cols;
    void *own;           /* malloc'd, or NULL: the map's */
    const uint8_t *data; /* perhaps unaligned when mapped */
    struct file_map map;
};

/* An uninitialised array in memory.  ERR_NOMEM. */
int npy_new(struct npy *a, enum npy_type type, int64_t rows, int64_t cols, struct err *e);
/* The bytes in front of the elements, as numpy.save writes them; returns their number, which is the same
 * for any number of rows. */
size_t npy_header(enum npy_type type, int64_t rows, int64_t cols, char h[NPY_HEADER_MAX]);
/* Writes path atomically: the bytes that numpy.save writes. */
int npy_save(const struct npy *a, const char *path, struct err *e);
/* Maps path, which must hold an array of that type and shape (rows < 0: any number). */
int npy_load(struct npy *a, const char *path, enum npy_type type, int64_t rows, int64_t cols,
             struct err *e);
void npy_free(struct npy *a);

/* Element i counted over all rows; i is the caller's to bound. */
static inline int64_t npy_at(const struct npy *a, int64_t i)
{
    uint16_t u2;
    int16_t i2;
    int32_t i4;
    uint32_t u4;
    int64_t i8;

    switch (a->type) {
    case NPY_U2: memcpy(&u2, a->data + 2 * i, 2); return u2;
    case NPY_I2: memcpy(&i2, a->data + 2 * i, 2); return i2;
    case NPY_I4: memcpy(&i4, a->data + 4 * i, 4); return i4;
    case NPY_U4: memcpy(&u4, a->data + 4 * i, 4); return u4;
    default: memcpy(&i8, a->data + 8 * i, 8); return i8;
    }
}
#endif
