#include "kernels/embedding.h"

#include "kernels/check.h"
#include "kernels/embedding_simd.h"

static int check(enum dtype dt, const struct embedding *p, bool positions, const char *op,
                 struct err *e)
{
    TRY(check_embedding(dt, p, op, e));
    for (int64_t t = 0; t < p->t; t++) {
        if (p->token[t] < 0)
            return err_set(e, ERR_ARG, "%s: token %d at %lld", op, p->token[t], (long long)t);
        if (positions && (p->pos[t] < 0 || p->pos[t] >= p->n_pos))
            return err_set(e, ERR_ARG, "%s: position %d at %lld is not in 0 .. %lld", op, p->pos[t],
                           (long long)t, (long long)p->n_pos - 1);
    }
    return 0;
}

int embedding_fwd_cpu(struct device *dev, enum dtype dt, void *out, const struct embedding *p,
                      const void *wte, const void *wpe, struct err *e)
{
    TRY(check(dt, p, wpe != NULL, "embedding_fwd", e));
    ISA_PICK(embedding_fwd_loop)(dev, dt, out, p, wte, wpe);
    return 0;
}

int embedding_bwd_cpu(struct device *dev, enum dtype dt, float *dwte, float *dwpe,
                      const struct embedding *p, const void *dout, struct err *e)
{
    TRY(check(dt, p, dwpe != NULL, "embedding_bwd", e));
    ISA_PICK(embedding_bwd_loop)(dev, dt, dwte, dwpe, p, dout);
    return 0;
}
