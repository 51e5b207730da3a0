/* train/safetensors.h -- the safetensors file format, read and written.
 *
 * A file is a u64 (little-endian) H, then H bytes of JSON
 *   {"__metadata__":{...},"NAME":{"dtype":"F32","shape":[..],"data_offsets":[b,e]},...}
 * padded with spaces, then the data; offsets count from the first byte of data.
 * The tensors cover the data without overlap or hole, as the reference reader of the
 * format demands.  Source: github.com/huggingface/safetensors, README, "Format".
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "base/file_group.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SAFETENSORS_DIMS = 8 };

struct safetensor {
    struct span name;  /* NUL-terminated */
    const char *dtype; /* "F32", "BF16", ... */
    int dims;
    int64_t shape[SAFETENSORS_DIMS];
    struct span data;
    uint64_t hash; /* XXH3-64 of data; set by the writer */
};

struct safetensors {
    struct safetensor *v; /* in the order of their data */
    int n;
    struct span header; /* the first 8 + H bytes */
};

/* The first 8 + H bytes; n is 0 when the file cannot have such a header. */
struct span safetensors_header(struct span file);

/* Maps a file, and has its header fetched (file_map_fetch); what is read of the tensors is to be. */
int safetensors_map(struct file_map *m, const char *path, struct err *e);

/* Reads the table of the file whose bytes are given; names live in a, data points
 * into file.  what names the file in messages.  Everything is checked: ERR_FORMAT
 * says which tensor and why; an unknown dtype is ERR_UNSUPPORTED. */
int safetensors_parse(struct arena *a, const char *what, struct span file, struct safetensors *st,
                      struct err *e);

/* The tensor by name; NULL if there is none. */
const struct safetensor *safetensors_find(const struct safetensors *st, const char *name);

/* Gives the bytes of the i-th tensor from byte at on: all that v[i].data.n says, or fewer, at least
 * one; they stay until the next call. */
typedef int safetensors_data_fn(void *arg, int i, size_t at, struct span *data, struct err *e);

/* Writes v[0..n) to path in that order, each one's bytes from fn at its turn, or
 * from v[i].data where fn is NULL, and sets each one's hash.  meta: the value of "__metadata__",
 * a JSON object; or NULL.  *header_hash gets the XXH3-64 of the header, *bytes the size of
 * the file.  The file is added to g: it appears with the others there. */
int safetensors_write(struct file_group *g, const char *path, struct safetensor *v, int n, const char *meta,
                      safetensors_data_fn *fn, void *arg, uint64_t *header_hash, uint64_t *bytes, struct err *e);

/* Bytes of an element; 0: no such dtype. */
size_t safetensors_size(const char *dtype);

#ifdef __cplusplus
}
#endif
#endif
