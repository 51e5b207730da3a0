#include "kernels/minhash_words.h"

#include "kernels/cpu.h"
#include "kernels/minhash_window.h"

int minhash_words_cpu(struct device *dev, const char *text, const uint32_t *start, int width,
                      int64_t count, uint64_t *hash, struct err *e)
{
    if (width < 1)
        return err_set(e, ERR_ARG, "windows of %d words cannot be", width);
#pragma omp parallel num_threads(cpu_team(dev, count))
    {
        int64_t lo, hi;

        cpu_share(count, 1024, &lo, &hi);
        if (lo < hi)
            ISA_PICK(minhash_window)(text, start + lo, width, (size_t)(hi - lo), hash + lo);
    }
    return 0;
}
