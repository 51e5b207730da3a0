#include "kernels/minhash_sign.h"

#include "kernels/cpu.h"

/* Copies n bytes of the host's to new memory of the device. */
static int upload(struct device *dev, void *pointer, const void *host, size_t n, struct err *e)
{
    void **p = pointer;

    TRY(device_alloc(dev, p, n, e));
    return device_put(dev, *p, host, n, e);
}

int minhash_to_device(struct device *dev, const struct minhash *m, struct minhash *on, struct err *e)
{
    size_t n = (size_t)m->padded;
    int rc;

    *on = (struct minhash){.family = m->family, .n = m->n, .padded = m->padded};
    if (m->family != MINHASH_U32) {
        rc = upload(dev, &on->a, m->a, n * sizeof *m->a, e);
        if (rc == 0)
            rc = upload(dev, &on->b, m->b, n * sizeof *m->b, e);
    } else {
        rc = upload(dev, &on->a32, m->a32, n * sizeof *m->a32, e);
        if (rc == 0)
            rc = upload(dev, &on->b32, m->b32, n * sizeof *m->b32, e);
    }
    if (rc < 0)
        minhash_take_back(dev, on);
    return rc;
}

void minhash_take_back(struct device *dev, struct minhash *on)
{
    device_free(dev, on->a);
    device_free(dev, on->b);
    device_free(dev, on->a32);
    device_free(dev, on->b32);
    *on = (struct minhash){0};
}

int minhash_sign_cpu(struct device *dev, const struct minhash *m, const struct ragged *docs,
                     const uint64_t *hash, uint64_t *sig, struct err *e)
{
    (void)e;
#pragma omp parallel for schedule(dynamic, 16) num_threads(cpu_team(dev, docs->length))
    for (int64_t d = 0; d < docs->n; d++) {
        uint64_t *s = sig + d * m->n;

        if (docs->begin[d] < docs->end[d])
            minhash_signature(m, hash + docs->begin[d], (size_t)(docs->end[d] - docs->begin[d]), s);
        else
            for (int j = 0; j < m->n; j++)
                s[j] = MINHASH_EMPTY;
    }
    return 0;
}
