#include "train/documents.h"

void documents_starts(const int32_t *tokens, int64_t n, int64_t seq, int64_t eod, int32_t *starts)
{
    for (int64_t i = 0; i < n * seq; i++)
        starts[i] = i % seq == 0 ? 0 : tokens[i - 1] == eod ? (int32_t)(i % seq) : starts[i - 1];
}

void documents_mask(const int32_t *tokens, int64_t n, int64_t eod, int32_t *targets)
{
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] == eod)
            targets[i] = -1;
}
