#include "indexed_dataset/loss_mask.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

int loss_mask_open(struct idx **mask, const struct idx *x, struct err *e)
{
    char prefix[IDX_PATH_MAX], path[IDX_PATH_MAX + 8];
    struct idx *m;

    *mask = NULL;
    if (snprintf(prefix, sizeof prefix, "%s" LOSS_MASK_SUFFIX, idx_prefix(x)) >= (int)sizeof prefix)
        return 0;
    snprintf(path, sizeof path, "%s.idx", prefix);
    if (access(path, F_OK) != 0)
        return 0;
    TRY(idx_open(&m, prefix, e));
    if (idx_dtype(m) == IDX_U8 && idx_n_sequences(m) == idx_n_sequences(x) && idx_n_documents(m) == idx_n_documents(x)) {
        *mask = m;
        return 0;
    }
    err_set(e, ERR_FORMAT, "'%s' is no mask of '%s': %" PRIu64 " documents and %" PRIu64 " sequences of %s, not %" PRIu64 " and %"
            PRIu64 " of u8", prefix, idx_prefix(x), idx_n_documents(m), idx_n_sequences(m), idx_dtype_name(idx_dtype(m)),
            idx_n_documents(x), idx_n_sequences(x));
    idx_close(m);
    return ERR_FORMAT;
}
