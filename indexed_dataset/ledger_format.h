/* indexed_dataset/ledger_format.h -- PREFIX.ledger as it lies on disk (docs/indexed-dataset.md).  Inside ledger*.c only. */
#ifndef INDEXED_DATASET_LEDGER_FORMAT_H
#define INDEXED_DATASET_LEDGER_FORMAT_H

#include "base/hash.h"
#include "indexed_dataset/ledger.h"

/* LEDGER_HEAD bytes: a word, the version, zeros. */
#define LEDGER_MAGIC "QLEDGER\0\1\0\0\0\0\0\0"

struct ledger_entry {
    uint64_t record_end, token_end; /* sums over the documents up to this one */
    uint8_t leaf[SHA256_SUM];
};

struct ledger_foot {
    uint64_t documents, bytes; /* of records */
    uint8_t root[SHA256_SUM];
    uint64_t zero, check; /* XXH3-64 of what stands before it here */
};

_Static_assert(sizeof(struct ledger_entry) == LEDGER_ENTRY && sizeof(struct ledger_foot) == LEDGER_FOOT, "no padding");

static inline uint64_t ledger_foot_check(const struct ledger_foot *f)
{
    return hash_xxh3_64((struct span){(const char *)f, offsetof(struct ledger_foot, check)});
}
#endif
