#include <stdlib.h>

#include "kernels/attention_cudnn.cuh"
#include "kernels/attention_mma.cuh"
#include "kernels/attention_plain.cuh"

/* Which way a call of attention takes: cuDNN's where the library has one, but backward our own where every run must give the
 * same bits, for cuDNN's sums have no fixed order.  QUERN_ATTENTION=cudnn takes cuDNN's always, and what the library should do
 * and does not is an error; own leaves it out, plain the tensor cores also. */
enum way { WAY_AUTO, WAY_CUDNN, WAY_OWN, WAY_PLAIN };
static enum way way_of(void)
{
    const char *s = getenv("QUERN_ATTENTION");

    return !s ? WAY_AUTO : strcmp(s, "cudnn") == 0 ? WAY_CUDNN : strcmp(s, "own") == 0 ? WAY_OWN
           : strcmp(s, "plain") == 0                                                    ? WAY_PLAIN
                                                                                        : WAY_AUTO;
}

/* Whether cuDNN is asked.  Its graph does not give the largest logits; and a mask of dropout that it draws forward it must be
 * able to draw backward. */
static bool asks_cudnn(const struct device *dev, const struct attention *p, bool backward)
{
    bool back = backward || (p->drop && p->drop->p > 0), forward = !backward || (p->drop && p->drop->p > 0);

    if (way_of() > WAY_CUDNN || (forward && p->most))
        return false;
    return way_of() == WAY_CUDNN || !back || !dev->deterministic;
}

extern "C" int attention_fwd_cuda(struct device *dev, enum dtype dt, const struct attention *p, struct err *e)
{
    bool done = false;

    TRY(check_attention(dt, p, "attention_fwd", e));
    if (p->b == 0 || p->t == 0)
        return 0;
    if (asks_cudnn(dev, p, false)) {
        TRY(attention_cudnn_fwd(dev, dt, p, way_of() == WAY_CUDNN, &done, e));
        if (done)
            return 0;
    }
    if (way_of() != WAY_PLAIN && attention_mma_fits(dt, p)) {
        cuda_took(dev, "forward by our own on tensor cores");
        return attention_mma_fwd(dev, p, e);
    }
    cuda_took(dev, "forward by our own, plain");
    return attention_plain_fwd(dev, dt, p, e);
}

extern "C" int attention_bwd_cuda(struct device *dev, enum dtype dt, const struct attention *p, struct attention_view dout,
                                  struct attention_view dq, struct attention_view dk, struct attention_view dv, struct err *e)
{
    bool done = false;

    TRY(check_attention_bwd(dt, p, e));
    if (p->b == 0 || p->t_kv == 0)
        return 0;
    if (asks_cudnn(dev, p, true)) {
        TRY(attention_cudnn_bwd(dev, dt, p, dout, dq, dk, dv, way_of() == WAY_CUDNN, &done, e));
        if (done)
            return 0;
    }
    if (way_of() != WAY_PLAIN && attention_mma_fits(dt, p) && attention_mma_view_fits(&dout) && attention_mma_view_fits(&dq) &&
        attention_mma_view_fits(&dk) && attention_mma_view_fits(&dv)) {
        cuda_took(dev, "backward by our own on tensor cores");
        return attention_mma_bwd(dev, p, dout, dq, dk, dv, e);
    }
    cuda_took(dev, "backward by our own, plain");
    return attention_plain_bwd(dev, dt, p, dout, dq, dk, dv, e);
}
