#include "indexed_dataset/idx_stats.h"

#include <inttypes.h>

int idx_stats(struct idx_stats *s, const struct idx *x, struct err *e)
{
    uint64_t first, end;

    *s = (struct idx_stats){.documents = idx_n_documents(x), .sequences = idx_n_sequences(x)};
    for (uint64_t d = 0; d < s->documents; d++) {
        uint64_t n = 0;
        TRY(idx_document(x, d, &first, &end, e));
        for (; first < end; first++) {
            int32_t length = idx_length(x, first);
            if (length < 0)
                return err_set(e, ERR_FORMAT, "'%s.idx': sequence %" PRIu64 " has a length of %d", idx_prefix(x),
                               first, length);
            n += (uint64_t)length;
        }
        s->tokens += n;
        s->longest = n > s->longest ? n : s->longest;
        s->shortest = d == 0 || n < s->shortest ? n : s->shortest;
        s->histogram[n ? 64 - __builtin_clzll(n) : 0]++;
    }
    return 0;
}
