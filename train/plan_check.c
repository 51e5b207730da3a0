#include "train/plan_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "base/log.h"
#include "base/rng.h"
#include "train/exchange.h"
#include "train/model_room.h"

void plan_steps_add(struct plan_steps *p, const struct train_step *s)
{
    if (p->seen++ == 1) {
        p->seconds = 0;
        memset(p->phase, 0, sizeof p->phase);
    }
    p->seconds += s->seconds;
    for (int i = 0; i < PHASES; i++)
        p->phase[i] += s->phase[i];
}

/* ---- memory ---- */

void plan_memory_kinds(const struct train_memory *m, size_t kind[MEMORY_KINDS])
{
    memset(kind, 0, MEMORY_KINDS * sizeof *kind);
    kind[MEMORY_WEIGHTS] = m->model.weights + m->model.low + m->model.fp8;
    kind[MEMORY_GRADIENTS] = m->model.grads;
    kind[MEMORY_OPTIMIZER] = m->optimizer + m->host;
    kind[MEMORY_ACTIVATIONS] = m->model.activations + m->model.tables;
    kind[MEMORY_SAVING] = m->save;
}

/* What a rank has to tell. */
struct told {
    int64_t planned[MEMORY_KINDS], used[MEMORY_KINDS];
};

static int64_t sum(const int64_t v[MEMORY_KINDS])
{
    int64_t all = 0;

    for (int i = 0; i < MEMORY_KINDS; i++)
        all += v[i];
    return all;
}

static bool as_planned(const struct told *r)
{
    for (int i = 0; i < MEMORY_KINDS; i++)
        if (i == MEMORY_SAVING ? r->used[i] > r->planned[i] : r->used[i] != r->planned[i])
            return false;
    return true;
}

static int put_kinds(struct buf *b, const int64_t v[MEMORY_KINDS])
{
    static const char *const name[MEMORY_KINDS] = {"other", "weights", "gradients", "optimizer", "activations",
                                                   "copy for saving"};

    for (int i = MEMORY_WEIGHTS; i < MEMORY_KINDS; i++)
        TRY(buf_printf(b, "%s%s %" PRId64, i > MEMORY_WEIGHTS ? " + " : "", name[i], v[i]));
    if (v[MEMORY_OTHER])
        TRY(buf_printf(b, " + %s %" PRId64, name[MEMORY_OTHER], v[MEMORY_OTHER]));
    return buf_printf(b, " = %" PRId64 " bytes", sum(v));
}

static int put_memory(struct buf *b, const struct told *r, int n)
{
    int most = 0, odd = -1;

    for (int i = 0; i < n; i++) {
        if (sum(r[i].used) > sum(r[most].used))
            most = i;
        if (odd < 0 && !as_planned(&r[i]))
            odd = i;
    }
    TRY(buf_puts(b, "memory allocated: "));
    TRY(put_kinds(b, r[most].used));
    if (odd < 0)
        return buf_puts(b, ", as planned\n");
    TRY(buf_printf(b, "; NOT AS PLANNED: rank %d has ", odd));
    TRY(put_kinds(b, r[odd].used));
    TRY(buf_puts(b, ", by the plan "));
    TRY(put_kinds(b, r[odd].planned));
    return buf_putc(b, '\n');
}

int plan_check_memory(struct trainer *t, struct buf *out, struct err *e)
{
    struct comm *world = t->layout.world;
    struct told mine = {0}, *all = calloc((size_t)world->size, sizeof *all);
    size_t kind[MEMORY_KINDS];
    struct train_memory m;
    int rc = all ? trainer_plan_stage(t->config, t->layout.pipe->rank, &m, e) : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0) {
        plan_memory_kinds(&m, kind);
        kind[MEMORY_OTHER] = exchange_kept_bytes(t->dev);
        for (int i = 0; i < MEMORY_KINDS; i++) {
            mine.planned[i] = (int64_t)kind[i];
            mine.used[i] = (int64_t)(t->dev->used[i] + (t->host ? t->host->used[i] : 0));
        }
        mine.planned[MEMORY_ACTIVATIONS] += (int64_t)t->pool.grown; /* the plan has experts evenly used */
        rc = comm_all_gather(world, &mine, all, sizeof mine / sizeof(int64_t), COMM_I64, e);
    }
    if (rc == 0 && world->rank == 0 && put_memory(out, all, world->size) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    free(all);
    return rc;
}

/* ---- time ---- */

/* What is measured is measured in the activations, which nobody needs any more: a device may have no more memory. */
enum { TIMED_FLOATS = 1 << 20, PATTERN = 1 << 16, COPIES = 4, PLACE = 256 };
#define TIMED_SECONDS 0.05
#define GPU_COPY ((size_t)256 << 20) /* beyond what its caches have, and long beside a launch */

/* Fills memory with numbers of all kinds in [-1, 1): products of zeros take less power, and so less time. */
static int fill(struct device *dev, enum dtype dt, char *mem, size_t bytes, struct err *e)
{
    static uint32_t pattern[PATTERN]; /* one number, or two of bf16 */
    size_t done = sizeof pattern < bytes ? sizeof pattern : bytes;
    int rc;

    for (uint32_t i = 0; i < PATTERN; i++) {
        uint32_t w[4];
        float x[2];

        rng_philox(1, i, 0, w);
        x[0] = 2 * rng_unit_f32(w[0]) - 1, x[1] = 2 * rng_unit_f32(w[1]) - 1;
        if (dt == DTYPE_BF16)
            pattern[i] = bf16_of(x[0]) | (uint32_t)bf16_of(x[1]) << 16;
        else
            memcpy(&pattern[i], x, sizeof *x);
    }
    for (rc = device_put(dev, mem, pattern, done, e); rc == 0 && done < bytes; done *= 2)
        rc = device_copy(dev, mem + done, mem, done < bytes - done ? done : bytes - done, e);
    return rc;
}

/* The three products of a linear layer's forward and backward pass: of x (t, in), w (out, in) and dy (t, out). */
struct products {
    struct matmul p[3];
    double flops;
    size_t operands, bytes; /* the results lie behind the operands, at one place */
};

static struct products products_of(const struct train_config *c, int64_t t, int64_t in, int64_t out, char *mem)
{
    enum dtype dt = c->bf16 ? DTYPE_BF16 : DTYPE_F32;
    size_t size = dtype_size(dt), of_rows = (size_t)(t * (in > out ? in : out)) * size, dw = (size_t)(in * out) * sizeof(float);
    struct carve k = {mem, 0};
    void *x = carve(&k, t * in, size), *w = carve(&k, in * out, size), *dy = carve(&k, t * out, size);
    size_t operands = k.used;
    void *result = carve(&k, (int64_t)(of_rows > dw ? of_rows : dw), 1);

    return (struct products){
        .p = {{.m = t, .n = out, .k = in, .trans_b = true, .dt = dt, .dt_c = dt, .a = x, .b = w, .c = result},
              {.m = t, .n = in, .k = out, .dt = dt, .dt_c = dt, .a = dy, .b = w, .c = result},
              {.m = out, .n = in, .k = t, .trans_a = true, .dt = dt, .dt_c = DTYPE_F32, .beta = 1, .a = dy, .b = x, .c = result}},
        .flops = 6.0 * (double)t * (double)in * (double)out, .operands = operands, .bytes = k.used,
    };
}

/* FLOP/s, with all ranks at it; of less where the activations are smaller than that. */
static int time_products(struct trainer *t, double *flops, struct err *e)
{
    const struct train_config *c = t->config;
    int64_t rows = c->micro_batch * c->model.seq / c->layout.context, in = c->model.hidden,
            out = model_fc1_width(&c->model) / c->layout.tensor;
    struct products s;
    double start = 0, done = 0;
    int rc;

    while (products_of(c, rows, in, out, NULL).bytes > model_pool_slab(&t->pool.size) && rows > 1)
        *(rows < out ? &out : &rows) /= 2;
    s = products_of(c, rows, in, out, t->pool.slab);
    rc = fill(t->dev, s.p[0].dt, t->pool.slab, s.operands, e);
    if (rc == 0)
        rc = device_zero(t->dev, t->pool.slab + s.operands, s.bytes - s.operands, e);
    for (int i = 0; rc == 0 && (i < 2 || log_seconds() - start < TIMED_SECONDS); i++) {
        if (i == 1) { /* the first round makes the plans */
            start = log_seconds();
            done = 0;
        }
        for (int k = 0; k < 3 && rc == 0; k++)
            rc = t->dev->ops->matmul(t->dev, &s.p[k], e);
        if (rc == 0)
            rc = device_sync(t->dev, e);
        done += s.flops;
    }
    *flops = done / (log_seconds() - start);
    return rc;
}

/* Bytes a second of a copy, read and written, and of a sum over the ranks, as a ring would move them; of less where the
 * activations of one of them are smaller. */
static int time_bytes(struct trainer *t, double *copied, double *summed, struct err *e)
{
    size_t most = t->dev->kind == DEVICE_CUDA ? GPU_COPY : TIMED_FLOATS * sizeof(float);
    size_t half = model_pool_slab(&t->pool.size) / 2 / PLACE * PLACE;
    size_t bytes = most < half ? most : half;
    int64_t n = bytes / sizeof(float) < TIMED_FLOATS ? (int64_t)(bytes / sizeof(float)) : TIMED_FLOATS;
    struct comm *world = t->layout.world;
    char *mem = t->pool.slab;
    double start = 0;
    int rc, rounds = 0;

    TRY(comm_all_reduce(world, &n, 1, COMM_I64, COMM_MIN, e));
    rc = device_zero(t->dev, mem, 2 * bytes, e);
    if (rc == 0)
        rc = device_sync(t->dev, e);
    for (start = log_seconds(); rc == 0 && log_seconds() - start < TIMED_SECONDS; rounds += COPIES) {
        for (int i = 0; i < COPIES && rc == 0; i++)
            rc = device_copy(t->dev, mem + bytes, mem, bytes, e);
        if (rc == 0)
            rc = device_sync(t->dev, e);
    }
    *copied = 2.0 * (double)bytes * rounds / (log_seconds() - start);
    *summed = 0;
    for (int i = 0; rc == 0 && i < 4 && world->size > 1; i++) { /* the first has the transport's beginning */
        rc = exchange_sum(t->dev, world, mem, (size_t)n, COMM_F32, e);
        if (i == 0)
            start = log_seconds();
    }
    if (world->size > 1)
        *summed = 3 * 2.0 * (double)n * sizeof(float) * (world->size - 1) / world->size / (log_seconds() - start);
    return rc;
}

/* All ranks of t call it: what this machine's ranks, all at once, do in a second, on products of the model's shapes.
 * Takes a few tenths of a second. */
static int measure_machine(struct trainer *t, struct plan_machine *m, struct err *e)
{
    struct comm *world = t->layout.world;
    double rate[3];
    int rc;

    TRY(comm_barrier(world, e));
    rc = time_products(t, &rate[0], e);
    TRY(comm_agree(world, &rc, e, e));
    TRY(rc);
    TRY(time_bytes(t, &rate[1], &rate[2], e));
    TRY(comm_all_reduce(world, rate, 3, COMM_F64, COMM_SUM, e));
    for (int i = 0; i < 3; i++)
        rate[i] /= world->size;
    *m = (struct plan_machine){
        .rates = {.flops = {rate[0], rate[0], rate[0]}, .reach = {1, 1, 1}, .bytes = rate[1], .copy = 1},
        .memory = 1e18, .node = world->size,
        .node_bandwidth = rate[2] > 0 ? rate[2] : 1, .network_bandwidth = rate[2] > 0 ? rate[2] : 1,
    };
    return 0;
}

static int put_time(struct buf *b, const struct plan_machine *m, const struct plan_step *s, const struct plan_steps *took)
{
    double n = (double)plan_steps_n(took), one = took->seconds / n;
    const double *p = took->phase;

    TRY(buf_printf(b, "a step took %.4f s; planned %.4f, at the rates of the ranks here: products %.1f GFLOP/s, memory %.1f GB/s",
                   one, s->seconds, m->rates.flops[PLAN_BF16] / 1e9, m->rates.bytes / 1e9));
    if (m->node_bandwidth > 1)
        TRY(buf_printf(b, ", sums %.2f GB/s", m->node_bandwidth / 1e9));
    return buf_printf(b, "\nof it, and planned: passes %.4f %.4f, waiting for stages %.4f %.4f, replicas %.4f %.4f,"
                      " optimizer %.4f %.4f\n",
                      (p[PHASE_FORWARD] + p[PHASE_BACKWARD]) / n, s->compute + s->tensor + s->context, p[PHASE_WAIT] / n,
                      s->stream + s->bubble, p[PHASE_REDUCE] / n, s->reduce, p[PHASE_OPTIMIZER] / n, s->optimizer);
}

int plan_check_time(struct trainer *t, const struct plan_steps *took, struct buf *out, struct err *e)
{
    struct plan_machine m;
    struct plan_step s;

    TRY(measure_machine(t, &m, e));
    if (t->layout.world->rank || took->seen == 0)
        return 0;
    TRY(plan_step(t->config, &m, &s, e));
    return put_time(out, &m, &s, took) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}
