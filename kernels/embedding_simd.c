#include "kernels/embedding_simd.h"

#include "kernels/simd.h"

INLINE void fwd_rows(enum dtype dt, void *out, const struct embedding *p, const void *wte,
                     const void *wpe, int64_t lo, int64_t hi)
{
    int64_t c = p->c;

    for (int64_t t = lo; t < hi; t++) {
        int64_t row = p->token[t] - p->first;
        bool here = row >= 0 && row < p->n_vocab;

        for (int64_t i = 0; i < c; i += VW) {
            int64_t left = c - i;
            vf v = here ? vf_get(dt, wte, row * c + i, left) : vf_set(0);

            if (wpe)
                v = v + vf_get(dt, wpe, p->pos[t] * c + i, left);
            vf_put(dt, out, t * c + i, left, v);
        }
    }
}

void ISA_FN(embedding_fwd_loop)(struct device *dev, enum dtype dt, void *out,
                                const struct embedding *p, const void *wte, const void *wpe)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->c))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        BY_DTYPE(dt, fwd_rows(DT, out, p, wte, wpe, lo, hi));
    }
}

/* A thread owns columns lo .. hi - 1 of every row: no two write the same place, and each
 * row's additions come in the order of t. */
INLINE void bwd_columns(enum dtype dt, float *dwte, float *dwpe, const struct embedding *p,
                        const void *dout, int64_t lo, int64_t hi)
{
    int64_t c = p->c;

    for (int64_t t = 0; t < p->t; t++) {
        int64_t row = p->token[t] - p->first;
        bool here = row >= 0 && row < p->n_vocab;

        for (int64_t i = lo; i < hi; i += VW) {
            int64_t left = hi - i;
            vf d = vf_get(dt, dout, t * c + i, left);

            if (here)
                vf_put(DTYPE_F32, dwte, row * c + i, left,
                       vf_get(DTYPE_F32, dwte, row * c + i, left) + d);
            if (dwpe)
                vf_put(DTYPE_F32, dwpe, p->pos[t] * c + i, left,
                       vf_get(DTYPE_F32, dwpe, p->pos[t] * c + i, left) + d);
        }
    }
}

void ISA_FN(embedding_bwd_loop)(struct device *dev, enum dtype dt, float *dwte, float *dwpe,
                                const struct embedding *p, const void *dout)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->c))
    {
        int64_t lo, hi;

        cpu_share(p->c, 64, &lo, &hi);
        BY_DTYPE(dt, bwd_columns(DT, dwte, dwpe, p, dout, lo, hi));
    }
}

INLINE void rope_rows(enum dtype dt, void *x, const struct rope *p, int64_t lo, int64_t hi)
{
    int64_t half = p->rot / 2;

    for (int64_t t = lo; t < hi; t++)
        for (int64_t h = 0; h < p->heads; h++) {
            const float *cs = p->cs + p->pos[t] * p->rot;
            int64_t at = t * p->ldx + h * p->d;

            for (int64_t i = 0; i < half; i += VW) {
                int64_t left = half - i;
                vf c = vf_get(DTYPE_F32, cs, i, left), s = vf_get(DTYPE_F32, cs, half + i, left);
                vf a = vf_get(dt, x, at + i, left), b = vf_get(dt, x, at + half + i, left);

                if (p->inverse)
                    s = vf_set(0) - s;
                vf_put(dt, x, at + i, left, a * c - b * s);
                vf_put(dt, x, at + half + i, left, b * c + a * s);
            }
        }
}

void ISA_FN(rope_loop)(struct device *dev, enum dtype dt, void *x, const struct rope *p)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->heads * p->rot))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        BY_DTYPE(dt, rope_rows(DT, x, p, lo, hi));
    }
}
