/* A ledger whose checksum fits: each document is read and all of it held against a dataset of two documents. */
#include <stdlib.h>
#include <string.h>

#include "indexed_dataset/ledger_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of documents of 2 and 1 tokens. */
static const uint8_t idx[] = {
    'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, IDX_U16, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
    2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    2, 0, 0, 0, 0, 0, 0, 0};

static void use(const struct ledger *l, const uint8_t *p, size_t n)
{
    static const uint8_t bin[6] = {1, 0, 2, 0, 3, 0};
    struct ledger_document d;
    struct idx *x;
    struct err e;

    for (uint64_t i = 0; i < ledger_n_documents(l); i++) {
        if (ledger_document(l, i, &d, &e) < 0)
            continue;
        if ((const uint8_t *)d.record.p < p || (const uint8_t *)d.record.p + d.record.n > p + n ||
            d.source.p + d.source.n != d.record.p + d.record.n || d.first > d.end)
            abort();
    }
    if (idx_open_mem(&x, idx, sizeof idx, bin, sizeof bin, &e) < 0)
        abort();
    ledger_verify(l, x, &e);
    idx_close(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *p = malloc(size + 1);
    struct ledger_foot foot;
    struct ledger *l;
    struct err e;

    if (!p)
        abort();
    memcpy(p, data, size);
    if (size >= sizeof foot) {
        memcpy(&foot, p + size - sizeof foot, sizeof foot);
        foot.check = ledger_foot_check(&foot);
        memcpy(p + size - sizeof foot, &foot, sizeof foot);
    }
    if (ledger_open_mem(&l, p, size, &e) == 0) {
        use(l, p, size);
        ledger_close(l);
    }
    free(p);
    return 0;
}
