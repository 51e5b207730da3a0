/* Any bytes as points of mixtures and of sizes: taken, with numbers for a fit, or refused with file and reason. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pipelines/fit/fit_points.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

static void try_mixtures(const char *name)
{
    struct mix_points p;
    struct err e;

    if (mix_points_read(&p, &name, 1, &e) < 0)
        need(e.code < 0 && e.msg[0]);
    else
        for (int i = 0; i < p.n; i++) {
            double sum = 0;

            for (int s = 0; s < p.sources; s++) {
                need(p.weight[i * p.sources + s] >= 0);
                sum += p.weight[i * p.sources + s];
            }
            for (int t = 0; t < p.targets; t++)
                need(p.loss[i * p.targets + t] > 0 && isfinite(p.loss[i * p.targets + t]));
            need(fabs(sum - 1) < 1e-9 && p.mixture[i] >= 0 && p.mixture[i] < p.mixtures);
        }
    mix_points_free(&p);
}

static void try_sizes(const char *name)
{
    struct scale_points p;
    struct err e;

    if (scale_points_read(&p, &name, 1, &e) < 0)
        need(e.code < 0 && e.msg[0]);
    else
        for (int i = 0; i < p.n; i++)
            need(p.params[i] > 0 && p.tokens[i] > 0 && p.loss[i] > 0 && isfinite(p.params[i] + p.tokens[i] + p.loss[i]));
    scale_points_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char name[32];

    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    need(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    try_mixtures(name);
    try_sizes(name);
    return 0;
}
