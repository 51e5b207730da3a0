#include "train/data_parallel.h"

#include <inttypes.h>
#include <string.h>

int data_parallel_levels(int64_t micro_batches)
{
    int n = 0;

    while ((micro_batches - 1) >> n)
        n++;
    return n;
}

int data_parallel_open(struct data_parallel *p, struct device *dev, size_t elements, int64_t micro_batches, bool tree,
                       struct err *e)
{
    *p = (struct data_parallel){.dev = dev, .elements = elements};
    if (tree)
        p->levels = data_parallel_levels(micro_batches);
    if (p->levels > DATA_PARALLEL_LEVELS)
        return err_set(e, ERR_ARG, "a step of %" PRId64 " micro-batches is too many", micro_batches);
    for (int i = 0; i < p->levels; i++)
        if (device_alloc_as(dev, MEMORY_GRADIENTS, (void **)&p->level[i], elements * sizeof(float), e) < 0)
            return err_wrap(e, "gradients of %d micro-batches", 1 << i);
    return 0;
}

void data_parallel_close(struct data_parallel *p)
{
    for (int i = 0; i < p->levels; i++)
        device_free(p->dev, p->level[i]);
    p->levels = 0;
}

bool data_parallel_first(const struct data_parallel *p, int64_t i)
{
    return i == 0 || p->levels > 0;
}

/* A binary counter: micro-batch i is added to what its trailing ones have kept, and kept in turn;
 * the last takes all that is left. */
int data_parallel_add(struct data_parallel *p, float *grads, size_t at, size_t len, int64_t i, int64_t n, struct err *e)
{
    const struct device_ops *ops = p->dev->ops;
    bool last = i == n - 1;
    int k = 0;

    if (!p->levels)
        return 0;
    grads += at;
    for (; i >> k; k++) {
        if (i >> k & 1)
            TRY(ops->vec_add(p->dev, DTYPE_F32, grads, p->level[k] + at, grads, (int64_t)len, e));
        else if (!last)
            break;
    }
    return last ? 0 : device_copy(p->dev, p->level[k] + at, grads, len * sizeof(float), e);
}

int data_parallel_gather(struct comm *group, double *each, int64_t n, struct err *e)
{
    return comm_all_reduce(group, each, (size_t)n, COMM_F64, COMM_SUM, e);
}

int data_parallel_any(struct comm *group, bool *flag, struct err *e)
{
    int32_t v = *flag;

    TRY(comm_all_reduce(group, &v, 1, COMM_I32, COMM_MAX, e));
    *flag = v;
    return 0;
}

int data_parallel_same(struct comm *group, int64_t value, const char *what, struct err *e)
{
    int64_t v[2] = {value, -value};

    TRY(comm_all_reduce(group, v, 2, COMM_I64, COMM_MAX, e));
    if (v[0] != -v[1])
        return err_set(e, ERR_ARG, "%s is %" PRId64 " on one rank and %" PRId64 " on another", what, -v[1], v[0]);
    return 0;
}
