#include "kernels/set_common.h"

#include "kernels/cpu.h"

static uint32_t common(const uint64_t *a, int64_t na, const uint64_t *b, int64_t nb)
{
    uint32_t both = 0;

    for (int64_t i = 0, j = 0; i < na && j < nb;) {
        uint64_t x = a[i], y = b[j];
        both += x == y;
        i += x <= y;
        j += y <= x;
    }
    return both;
}

int set_common_cpu(struct device *dev, const struct set_common *p, struct err *e)
{
    const int64_t *begin = p->sets.begin, *end = p->sets.end;

    (void)e;
#pragma omp parallel for schedule(dynamic, 64) num_threads(cpu_team(dev, p->pairs * 64))
    for (int64_t i = 0; i < p->pairs; i++) {
        uint32_t a = p->a[i], b = p->b[i];
        p->common[i] = common(p->hash + begin[a], end[a] - begin[a], p->hash + begin[b], end[b] - begin[b]);
    }
    return 0;
}
