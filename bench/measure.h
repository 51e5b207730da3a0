/* bench/measure.h -- processor time and medians, for the benchmarks of one core. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdlib.h>
#include <time.h>

/* Seconds of processor time that this process has taken. */
static inline double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int measure_up(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of n values, which it sorts. */
static inline double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, measure_up);
    return v[n / 2];
}
#endif
