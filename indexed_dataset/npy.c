#include "indexed_dataset/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PREAMBLE = 10, ALIGN = 64, GROWTH = 21, HUGE_PAGE = 2 << 20 };

static const struct {
    const char *descr;
    int64_t size;
} types[] = {{"<u2", 2}, {"<i2", 2}, {"<i4", 4}, {"<u4", 4}, {"<i8", 8}};

/* Bytes of the elements, or -1 when they are too many to count. */
static int64_t bytes_of(enum npy_type type, int64_t rows, int64_t cols)
{
    int64_t n;

    if (__builtin_mul_overflow(rows, cols ? cols : 1, &n) ||
        __builtin_mul_overflow(n, types[type].size, &n))
        return -1;
    return n;
}

int npy_new(struct npy *a, enum npy_type type, int64_t rows, int64_t cols, struct err *e)
{
    int64_t n = bytes_of(type, rows, cols);

    *a = (struct npy){.type = type, .rows = rows, .cols = cols};
    a->own = n >= 0 ? malloc((size_t)n + 1) : NULL;
    a->data = a->own;
    if (a->own && n > HUGE_PAGE) { /* it will be reached into everywhere */
        uintptr_t from = ((uintptr_t)a->own + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        uintptr_t to = ((uintptr_t)a->own + (uintptr_t)n) / HUGE_PAGE * HUGE_PAGE;

        if (from < to)
            madvise((char *)a->own + (from - (uintptr_t)a->own), to - from, MADV_HUGEPAGE);
    }
    return a->own ? 0 : err_set(e, ERR_NOMEM, "out of memory for an index of %" PRId64 " entries", rows);
}

/* The dictionary as numpy 1.24 and later writes it: with room for the first dimension to
 * grow, filled to a multiple of 64 bytes. */
size_t npy_header(enum npy_type type, int64_t rows, int64_t cols, char h[NPY_HEADER_MAX])
{
    char shape[64], digits[24];
    int n, grow = GROWTH - snprintf(digits, sizeof digits, "%" PRId64, rows);

    snprintf(shape, sizeof shape, cols ? "(%" PRId64 ", %" PRId64 ")" : "(%" PRId64 ",)", rows, cols);
    n = snprintf(h + PREAMBLE, NPY_HEADER_MAX - PREAMBLE, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }%*s",
                 types[type].descr, shape, grow, "");
    size_t total = ((size_t)n + PREAMBLE + 1 + ALIGN - 1) / ALIGN * ALIGN;
    memset(h + PREAMBLE + n, ' ', total - PREAMBLE - (size_t)n);
    h[total - 1] = '\n';
    memcpy(h, "\x93NUMPY\x01\x00", 8);
    h[8] = (char)((total - PREAMBLE) & 0xff);
    h[9] = (char)((total - PREAMBLE) >> 8);
    return total;
}

int npy_save(const struct npy *a, const char *path, struct err *e)
{
    struct file_out *f;
    char h[NPY_HEADER_MAX];
    size_t n = npy_header(a->type, a->rows, a->cols, h);
    int rc;

    TRY(file_create(&f, path, 0, e));
    rc = file_write(f, h, n, e);
    if (rc == 0)
        rc = file_write(f, a->data, (size_t)bytes_of(a->type, a->rows, a->cols), e);
    if (rc < 0) {
        file_abort(f);
        return rc;
    }
    return file_commit(f, e);
}

/* Reads the dictionary of the mapped file and sets the shape and data. */
static int parse(struct npy *a, const char *path, struct err *e)
{
    const char *p = (const char *)a->map.p;
    char h[NPY_HEADER_MAX], descr[8], shape[64];
    int64_t n;
    size_t len;
    int end = 0;

    if (a->map.n < PREAMBLE || memcmp(p, "\x93NUMPY\x01\x00", 8) != 0)
        return err_set(e, ERR_FORMAT, "'%s': no .npy file of format 1.0", path);
    len = (uint8_t)p[8] | (size_t)(uint8_t)p[9] << 8;
    if (len > a->map.n - PREAMBLE || len >= sizeof h)
        return err_set(e, ERR_FORMAT, "'%s': bad header", path);
    memcpy(h, p + PREAMBLE, len);
    h[len] = '\0';
    if (sscanf(h, "{'descr': '%7[^']', 'fortran_order': False, 'shape': (%63[0-9, ]), }%n", descr, shape, &end) != 2 ||
        !end)
        return err_set(e, ERR_FORMAT, "'%s': bad header", path);
    a->rows = a->cols = 0;
    if (sscanf(shape, "%" SCNd64 ", %" SCNd64, &a->rows, &a->cols) < 1 || strcmp(descr, types[a->type].descr) != 0)
        return err_set(e, ERR_FORMAT, "'%s': not an array of %s", path, types[a->type].descr);
    n = bytes_of(a->type, a->rows, a->cols);
    if (n < 0 || (uint64_t)n != a->map.n - PREAMBLE - len)
        return err_set(e, ERR_FORMAT, "'%s': its size does not fit its shape", path);
    a->data = a->map.p + PREAMBLE + len;
    return 0;
}

int npy_load(struct npy *a, const char *path, enum npy_type type, int64_t rows, int64_t cols,
             struct err *e)
{
    int rc;

    *a = (struct npy){.type = type};
    TRY(file_map_open(&a->map, path, e));
    rc = parse(a, path, e);
    if (rc == 0 && ((rows >= 0 && a->rows != rows) || a->cols != cols))
        rc = err_set(e, ERR_FORMAT, "'%s' has %" PRId64 " x %" PRId64 " entries, not %" PRId64 " x %" PRId64,
                     path, a->rows, a->cols, rows, cols);
    if (rc < 0)
        npy_free(a);
    return rc;
}

void npy_free(struct npy *a)
{
    free(a->own);
    file_map_close(&a->map);
    *a = (struct npy){0};
}
