#include "kernels/device.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/isa.h"
#include "base/mem.h"
#include "kernels/cpu.h"

static const struct device_ops cpu_ops = {
    .matmul = matmul_cpu,
    .embedding_fwd = embedding_fwd_cpu,
    .embedding_bwd = embedding_bwd_cpu,
    .layernorm_fwd = layernorm_fwd_cpu,
    .layernorm_bwd = layernorm_bwd_cpu,
    .rmsnorm_fwd = rmsnorm_fwd_cpu,
    .rmsnorm_bwd = rmsnorm_bwd_cpu,
    .act_fwd = act_fwd_cpu,
    .act_bwd = act_bwd_cpu,
    .glu_fwd = glu_fwd_cpu,
    .glu_bwd = glu_bwd_cpu,
    .rope = rope_cpu,
    .attention_fwd = attention_fwd_cpu,
    .attention_bwd = attention_bwd_cpu,
    .xent = xent_cpu,
    .xent_max = xent_max_cpu,
    .xent_sum = xent_sum_cpu,
    .xent_finish = xent_finish_cpu,
    .vec_cast = vec_cast_cpu,
    .vec_scale = vec_scale_cpu,
    .vec_axpy = vec_axpy_cpu,
    .vec_add = vec_add_cpu,
    .vec_dropout = vec_dropout_cpu,
    .vec_colsum = vec_colsum_cpu,
    .vec_sumsq = vec_sumsq_cpu,
    .clip_scale = clip_scale_cpu,
    .adamw = adamw_cpu,
};

static int open_cpu(struct device **out, int threads, struct err *e)
{
    struct device *dev = calloc(1, sizeof *dev);
    const char *how;

    if (!dev)
        return err_set(e, ERR_NOMEM, "out of memory");
    dev->impl = calloc(1, sizeof *dev->impl);
    if (!dev->impl || matmul_plans_new(&dev->impl->plans, e) < 0) {
        device_close(dev);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    if (threads > 0)
        omp_set_num_threads(threads);
    dev->kind = DEVICE_CPU;
    dev->threads = omp_get_max_threads();
    dev->fast_bf16 = matmul_has_bf16(&how);
    dev->ops = &cpu_ops;
    snprintf(dev->name, sizeof dev->name, "cpu: %s, %s, %d thread%s", isa_name(isa_best()), how,
             dev->threads, dev->threads == 1 ? "" : "s");
    *out = dev;
    return 0;
}

int device_open(struct device **dev, const char *kind, int threads, struct err *e)
{
    *dev = NULL;
    if (threads < 0 || threads > 4096)
        return err_set(e, ERR_ARG, "%d threads cannot be", threads);
    if (strcmp(kind, "cpu") == 0 || strcmp(kind, "auto") == 0)
        return open_cpu(dev, threads, e);
    if (strcmp(kind, "cuda") == 0)
        return err_set(e, ERR_UNSUPPORTED, "this build has no CUDA backend");
    return err_set(e, ERR_ARG, "unknown device '%s' (auto, cpu, cuda)", kind);
}

void device_close(struct device *dev)
{
    if (!dev)
        return;
    if (dev->impl) {
        free(dev->impl->scratch);
        matmul_plans_free(dev->impl->plans);
        free(dev->impl);
    }
    free(dev);
}

/* Large blocks are page-aligned and may use huge pages: fewer TLB misses. */
static void *alloc_bytes(size_t bytes)
{
    size_t align = bytes >= (size_t)1 << 21 ? (size_t)1 << 21 : 64;
    void *p;

    if (align == 64)
        return mem_aligned(bytes ? bytes : 1);
    if (bytes > SIZE_MAX - align || posix_memalign(&p, align, bytes) != 0)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

int device_alloc(struct device *dev, void **p, size_t bytes, struct err *e)
{
    (void)dev;
    *p = alloc_bytes(bytes);
    return *p ? 0 : err_set(e, ERR_NOMEM, "no %zu bytes of memory", bytes);
}

void device_free(struct device *dev, void *p)
{
    (void)dev;
    free(p);
}

int device_copy(struct device *dev, void *dst, const void *src, size_t bytes, struct err *e)
{
    (void)e;
#pragma omp parallel num_threads(cpu_team(dev, (int64_t)bytes / 16))
    {
        int64_t lo, hi;

        cpu_share((int64_t)bytes, 4096, &lo, &hi);
        if (lo < hi)
            memcpy((char *)dst + lo, (const char *)src + lo, (size_t)(hi - lo));
    }
    return 0;
}

int device_put(struct device *dev, void *dst, const void *host, size_t bytes, struct err *e)
{
    return device_copy(dev, dst, host, bytes, e);
}

int device_get(struct device *dev, void *host, const void *src, size_t bytes, struct err *e)
{
    return device_copy(dev, host, src, bytes, e);
}

int device_zero(struct device *dev, void *dst, size_t bytes, struct err *e)
{
    (void)e;
#pragma omp parallel num_threads(cpu_team(dev, (int64_t)bytes / 16))
    {
        int64_t lo, hi;

        cpu_share((int64_t)bytes, 4096, &lo, &hi);
        if (lo < hi)
            memset((char *)dst + lo, 0, (size_t)(hi - lo));
    }
    return 0;
}

int device_sync(struct device *dev, struct err *e)
{
    (void)dev;
    (void)e;
    return 0;
}

size_t device_overhead_bytes(const struct device *dev)
{
    return dev->impl->scratch_bytes + matmul_plans_bytes(dev->impl->plans);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of five products of the shape of a transformer's layers. */
static int measure_peak(struct device *dev, enum dtype dt, double *flops, struct err *e)
{
    enum { M = 1024, N = 3072, K = 1024 };
    size_t w = dtype_size(dt), na = (size_t)M * K * w, nb = (size_t)N * K * w;
    struct matmul p = {.m = M, .n = N, .k = K, .trans_b = true, .dt = dt, .dt_c = dt};
    char *mem;
    int rc = 0;

    TRY(device_alloc(dev, (void **)&mem, na + nb + (size_t)M * N * w, e));
    device_zero(dev, mem, na + nb, e);
    p.a = mem;
    p.b = mem + na;
    p.c = mem + na + nb;
    *flops = 0;
    for (int i = 0; i < 6 && rc == 0; i++) {
        double t = now(), f;

        rc = dev->ops->matmul(dev, &p, e);
        if (rc == 0)
            rc = device_sync(dev, e);
        f = 2.0 * M * N * K / (now() - t);
        if (i > 0 && f > *flops) /* the first one makes the plan */
            *flops = f;
    }
    device_free(dev, mem);
    return rc;
}

int device_peak_flops(struct device *dev, enum dtype dt, double *flops, struct err *e)
{
    double *peak;

    TRY(cpu_check_dtype(dt, "device_peak_flops", e));
    peak = &dev->impl->peak[dt == DTYPE_BF16];
    if (*peak == 0)
        TRY(measure_peak(dev, dt, peak, e));
    *flops = *peak;
    return 0;
}

int cpu_scratch(struct device *dev, void **p, size_t bytes, struct err *e)
{
    struct device_impl *d = dev->impl;

    if (bytes > d->scratch_bytes) {
        void *bigger = alloc_bytes(bytes);

        if (!bigger)
            return err_set(e, ERR_NOMEM, "no %zu bytes of scratch memory", bytes);
        free(d->scratch);
        d->scratch = bigger;
        d->scratch_bytes = bytes;
    }
    *p = d->scratch;
    return 0;
}

void cpu_share(int64_t n, int64_t unit, int64_t *lo, int64_t *hi)
{
    int64_t units = (n + unit - 1) / unit, nt = omp_get_num_threads(), me = omp_get_thread_num();

    *lo = units * me / nt * unit;
    *hi = units * (me + 1) / nt * unit;
    if (*hi > n)
        *hi = n;
}

int cpu_check_dtype(enum dtype dt, const char *op, struct err *e)
{
    if (dt != DTYPE_F32 && dt != DTYPE_BF16)
        return err_set(e, ERR_ARG, "%s: no such element type", op);
    return 0;
}

int cpu_check_dropout(const struct dropout *d, const char *op, struct err *e)
{
    if (d && !(d->p >= 0 && d->p < 1 && d->row0 >= 0))
        return err_set(e, ERR_ARG, "%s: dropout %g, first row %lld", op, (double)d->p,
                       (long long)d->row0);
    return 0;
}
