#include "kernels/text_hash.h"

#include "kernels/cpu.h"

int text_hash_cpu(struct device *dev, const struct text_hash *p, struct err *e)
{
    void (*one)(const void *, uint64_t, uint64_t *) = ISA_PICK(text_hash_one);

    (void)e;
#pragma omp parallel for schedule(dynamic, 16) num_threads(cpu_team(dev, p->docs.length / 64))
    for (int64_t d = 0; d < p->docs.n; d++)
        one(p->text + p->docs.begin[d], (uint64_t)(p->docs.end[d] - p->docs.begin[d]), p->hash + 2 * d);
    return 0;
}
