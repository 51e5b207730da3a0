/* An .idx over a .bin of zeros: the first byte of the input is the .bin's size / 16. */
#include <stdlib.h>

#include "indexed_dataset/idx_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct idx *x, const uint8_t *bin, size_t bin_size)
{
    struct idx_report r;
    struct err e;
    int32_t out[32];

    for (uint64_t i = 0; i < idx_n_sequences(x); i++) {
        const void *p;
        int32_t n;
        if (idx_sequence(x, i, &p, &n, &e) < 0)
            continue;
        if ((const uint8_t *)p < bin || (const uint8_t *)p + (size_t)n * idx_dtype_size(idx_dtype(x)) > bin + bin_size)
            abort();
        idx_tokens_i32(x, i, 0, n < 32 ? n : 32, out, &e);
        idx_tokens_i32(x, i, n, 1, out, &e);
    }
    for (uint64_t d = 0; d < idx_n_documents(x); d++) {
        uint64_t first, end;
        if (idx_document(x, d, &first, &end, &e) == 0 && (first > end || end > idx_n_sequences(x)))
            abort();
    }
    idx_verify(x, 1000, 1, &r, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bin_size = size ? (size_t)data[0] * 16 : 0;
    uint8_t *bin = calloc(1, bin_size + 1);
    struct idx *x;
    struct err e;

    if (!bin)
        abort();
    if (size && idx_open_mem(&x, data + 1, size - 1, bin, bin_size, &e) == 0) {
        use(x, bin, bin_size);
        idx_close(x);
    }
    free(bin);
    return 0;
}
