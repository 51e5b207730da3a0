#include "kernels/amx.h"
#include "kernels/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/isa.h"
#include "base/rng.h"
#include "kernels/check.h"
#include "kernels/cpu.h"
#include "kernels/device_calls.h"

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
    .update = update_cpu,
    .route_fwd = route_fwd_cpu,
    .route_bwd = route_bwd_cpu,
    .route_place = route_place_cpu,
    .route_likely = route_likely_cpu,
    .route_tally = route_tally_cpu,
    .route_balance = route_balance_cpu,
    .route_take = route_take_cpu,
    .route_join = route_join_cpu,
    .route_join_bwd = route_join_bwd_cpu,
    .gate_add = gate_add_cpu,
    .gate_back = gate_back_cpu,
    .gate_mul = gate_mul_cpu,
    .gate_slope = gate_slope_cpu,
    .heads_move = heads_move_cpu,
    .heads_sum = heads_sum_cpu,
    .fp8_amax = fp8_amax_cpu,
    .fp8_quantize = fp8_quantize_cpu,
    .fp8_blocks = fp8_blocks_cpu,
    .fp8_update = fp8_update_cpu,
    .vec_total = vec_total_cpu,
    .matmul_grouped = matmul_grouped_cpu,
    .factored = factored_cpu,
};

static int open_training(struct device **out, int threads, struct err *e)
{
    struct device *dev;
    const char *how;

    TRY(device_open_cpu(&dev, threads, e));
    if (matmul_plans_new(&dev->impl->plans, e) < 0) {
        device_close(dev);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    dev->impl->plans_free = matmul_plans_free;
    dev->fast_bf16 = matmul_has_bf16(&how);
    dev->impl->amx = amx_here();
    dev->ops = &cpu_ops;
    snprintf(dev->name, sizeof dev->name, "cpu: %s, %s, %d thread%s", isa_name(isa_best()), how,
             dev->threads, dev->threads == 1 ? "" : "s");
    *out = dev;
    return 0;
}

int device_open(struct device **dev, const char *kind, int threads, struct err *e)
{
    struct err none;

    *dev = NULL;
    if (strcmp(kind, "cuda") == 0)
        return device_open_cuda(dev, e);
    if (strcmp(kind, "auto") == 0 && device_open_cuda(dev, &none) == 0)
        return 0;
    if (strcmp(kind, "cpu") == 0 || strcmp(kind, "auto") == 0)
        return open_training(dev, threads, e);
    return err_set(e, ERR_ARG, "unknown device '%s' (auto, cpu, cuda)", kind);
}

size_t device_overhead_bytes(const struct device *dev)
{
    if (dev->calls->overhead)
        return dev->calls->overhead(dev);
    return dev->impl->scratch_bytes + dev->impl->decoded_bytes + matmul_plans_bytes(dev->impl->plans);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int device_put_numbers(struct device *dev, void *to, size_t bytes, uint64_t seed, struct err *e)
{
    enum { N = 500002 }; /* no power of two, so that rows of a matrix differ */
    size_t at = N * sizeof(uint16_t) < bytes ? N * sizeof(uint16_t) : bytes;
    uint16_t *host = malloc(N * sizeof *host);
    int rc;

    if (!host)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (uint64_t i = 0; i < at / sizeof *host; i += 2) {
        uint32_t w[4];
        double z[2];
        rng_philox(seed, i, 0, w);
        rng_normal2(w[0], w[1], z);
        host[i] = bf16_of((float)z[0]);
        host[i + 1] = bf16_of((float)z[1]);
    }
    rc = device_put(dev, to, host, at, e);
    for (size_t n; rc == 0 && at < bytes; at += n) { /* twice as many each time */
        n = bytes - at < at ? bytes - at : at;
        rc = device_copy(dev, (char *)to + at, to, n, e);
    }
    free(host);
    return rc;
}

/* The best of five products at least, and of as many as a quarter of a second has, of the shape of a transformer's
 * layers, on a GPU of a large one's: of a processor that others use too, some are let alone.  Smaller ones where six (of
 * 6 by^3 FLOP each) are more than work. */
static int measure_peak(struct device *dev, enum dtype dt, double work, double *flops, struct err *e)
{
    int64_t by = dev->kind == DEVICE_CPU ? 1024 : 8192;
    size_t w = dtype_size(dt), na, nb;
    double start = now(), each, done = 0;
    char *mem;
    int rc;

    while (by > 128 && 6 * 6.0 * (double)(by * by * by) > work)
        by /= 2;
    struct matmul p = {.m = by, .n = 3 * by, .k = by, .trans_b = true, .dt = dt, .dt_c = dt};
    each = 2.0 * (double)p.m * (double)p.n * (double)p.k;
    na = (size_t)(p.m * p.k) * w;
    nb = (size_t)(p.n * p.k) * w;
    TRY(device_alloc(dev, (void **)&mem, na + nb + (size_t)(p.m * p.n) * w, e));
    rc = device_put_numbers(dev, mem, na + nb, 1, e);
    p.a = mem;
    p.b = mem + na;
    p.c = mem + na + nb;
    *flops = 0;
    for (int i = 0; (i < 6 || (now() - start < 0.25 && done < work)) && rc == 0; i++) {
        double t = now(), f;

        rc = dev->ops->matmul(dev, &p, e);
        if (rc == 0)
            rc = device_sync(dev, e);
        f = each / (now() - t);
        done += each;
        if (i > 0 && f > *flops) /* the first one makes the plan */
            *flops = f;
    }
    device_free(dev, mem);
    return rc;
}

int device_peak_flops(struct device *dev, enum dtype dt, double work, double *flops, struct err *e)
{
    double *peak;

    TRY(check_dtype(dt, "device_peak_flops", e));
    peak = &dev->peak[dt == DTYPE_BF16];
    if (*peak == 0)
        TRY(measure_peak(dev, dt, work, peak, e));
    *flops = *peak;
    return 0;
}
