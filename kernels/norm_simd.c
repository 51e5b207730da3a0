#include "kernels/norm_simd.h"

#include <math.h>

#include "kernels/simd.h"

/* Where row t begins. */
INLINE int64_t row_at(const struct norm_heads *h, int64_t t, int64_t c)
{
    return h->heads ? t / h->heads * h->ld + t % h->heads * c : t * c;
}

/* s = residual + dropout(x) for one row. */
INLINE void add_row(enum dtype dt, const struct norm_fwd *p, int64_t t)
{
    int64_t c = p->c, at = t * c;

    if (p->drop && p->drop->p > 0) {
        struct drop_row d = drop_row_of(p->drop, t, c);

        for (int64_t i = 0; i < c; i += 4 * VW) {
            vf f[4];

            drop_factors(&d, i / 4, f);
            for (int64_t q = 0, j = i; q < 4 && j < c; q++, j += VW)
                vf_put(dt, p->s, at + j, c - j,
                       vf_fma(vf_get(dt, p->x, at + j, c - j), f[q],
                              vf_get(dt, p->residual, at + j, c - j)));
        }
        return;
    }
    for (int64_t i = 0; i < c; i += VW)
        vf_put(dt, p->s, at + i, c - i,
               vf_get(dt, p->x, at + i, c - i) + vf_get(dt, p->residual, at + i, c - i));
}

/* Mean and sum of squared deviations (RMS norm: 0 and the sum of squares). */
INLINE void row_moments(enum dtype dt, const void *s, int64_t at, int64_t c, bool rms, float *mean,
                        float *ss)
{
    vf a = vf_set(0), b = vf_set(0), m;

    *mean = 0;
    if (!rms) {
        for (int64_t i = 0; i < c; i += VW)
            a = a + vf_get(dt, s, at + i, c - i);
        *mean = vf_sum(a) / (float)c;
    }
    m = vf_set(*mean);
    for (int64_t i = 0; i + VW <= c; i += VW) {
        vf v = vf_get(dt, s, at + i, VW) - m;
        b = vf_fma(v, v, b);
    }
    *ss = vf_sum(b);
    for (int64_t i = c / VW * VW; i < c; i++) {
        float v = (dt == DTYPE_BF16 ? bf16_to(((const uint16_t *)s)[at + i])
                                    : ((const float *)s)[at + i]) - *mean;
        *ss += v * v;
    }
}

/* What channels i on are multiplied with. */
INLINE vf gain(enum dtype dt, const void *gamma, float plus, int64_t i, int64_t left)
{
    vf g = vf_set(plus);

    if (gamma)
        g = vf_get(dt, gamma, i, left) + g;
    return g;
}

INLINE void fwd_rows(enum dtype dt, const struct norm_fwd *p, bool rms, int64_t lo, int64_t hi)
{
    int64_t c = p->c;

    for (int64_t t = lo; t < hi; t++) {
        const void *s = p->residual ? p->s : p->x;
        int64_t from = row_at(&p->x_heads, t, c), to = row_at(&p->y_heads, t, c);
        float mean, ss, rstd;
        vf m, r;

        if (p->residual)
            add_row(dt, p, t);
        row_moments(dt, s, from, c, rms, &mean, &ss);
        rstd = 1.0f / sqrtf(ss / (float)c + p->eps);
        m = vf_set(mean);
        r = vf_set(rstd);
        for (int64_t i = 0; i < c; i += VW) {
            int64_t left = c - i;
            vf v = (vf_get(dt, s, from + i, left) - m) * r * gain(dt, p->gamma, p->plus, i, left);

            if (p->beta)
                v = v + vf_get(dt, p->beta, i, left);
            vf_put(dt, p->y, to + i, left, v);
        }
        if (p->rstd)
            p->rstd[t] = rstd;
        if (p->mean && !rms)
            p->mean[t] = mean;
    }
}

void ISA_FN(norm_fwd_loop)(struct device *dev, enum dtype dt, const struct norm_fwd *p, bool rms)
{
#pragma omp parallel num_threads(cpu_team(dev, p->t * p->c))
    {
        int64_t lo, hi;

        cpu_share(p->t, 1, &lo, &hi);
        BY_DTYPE(dt, fwd_rows(DT, p, rms, lo, hi));
    }
}

/* dx = dropout(ds), from ds as it was stored. */
INLINE void drop_row_bwd(enum dtype dt, const struct norm_bwd *p, int64_t t)
{
    struct drop_row d = drop_row_of(p->drop, t, p->c);
    int64_t c = p->c, at = t * c;

    for (int64_t i = 0; i < c; i += 4 * VW) {
        vf f[4];

        drop_factors(&d, i / 4, f);
        for (int64_t q = 0, j = i; q < 4 && j < c; q++, j += VW)
            vf_put(dt, p->dx, at + j, c - j, vf_get(dt, p->ds, at + j, c - j) * f[q]);
    }
}

/* Rows lo .. hi - 1; their part of dgamma and dbeta into part[0 .. 2C). */
INLINE void bwd_rows(enum dtype dt, const struct norm_bwd *p, bool rms, int64_t lo, int64_t hi,
                     float *part)
{
    int64_t c = p->c;
    float *dg = part, *db = part + c;

    memset(part, 0, (size_t)(2 * c) * sizeof *part);
    for (int64_t t = lo; t < hi; t++) {
        vf m = vf_set(rms ? 0 : p->mean[t]), r = vf_set(p->rstd[t]);
        vf a = vf_set(0), b = vf_set(0);
        int64_t at = row_at(&p->heads, t, c);

        for (int64_t i = 0; i < c; i += VW) {
            int64_t left = c - i;
            vf dy = vf_get(dt, p->dy, at + i, left), gdy = dy * gain(dt, p->gamma, p->plus, i, left);
            vf hat = (vf_get(dt, p->s, at + i, left) - m) * r;

            a = a + gdy; /* beyond the row dy is 0, and so are all of these */
            b = vf_fma(gdy, hat, b);
            vf_put(DTYPE_F32, dg, i, left, vf_fma(dy, hat, vf_get(DTYPE_F32, dg, i, left)));
            if (p->dbeta)
                vf_put(DTYPE_F32, db, i, left, vf_get(DTYPE_F32, db, i, left) + dy);
        }
        a = vf_set(rms ? 0 : vf_sum(a) / (float)c);
        b = vf_set(vf_sum(b) / (float)c);
        for (int64_t i = 0; i < c; i += VW) {
            int64_t left = c - i;
            vf gdy = vf_get(dt, p->dy, at + i, left) * gain(dt, p->gamma, p->plus, i, left);
            vf hat = (vf_get(dt, p->s, at + i, left) - m) * r, d = (gdy - a - hat * b) * r;

            if (p->dres)
                d = d + vf_get(dt, p->dres, at + i, left);
            vf_put(dt, p->ds, at + i, left, d);
        }
        if (p->dx)
            drop_row_bwd(dt, p, t);
    }
}

void ISA_FN(norm_bwd_loop)(struct device *dev, enum dtype dt, const struct norm_bwd *p, bool rms,
                           float *part)
{
    int64_t c = p->c;

#pragma omp parallel num_threads(cpu_team(dev, p->t * c))
    {
        int64_t lo, hi;

#pragma omp for schedule(static)
        for (int64_t g = 0; g < CPU_GROUPS; g++)
            BY_DTYPE(dt, bwd_rows(DT, p, rms, cpu_group_begin(g, p->t),
                                  cpu_group_begin(g + 1, p->t), part + g * 2 * c));
        cpu_share(c, 16, &lo, &hi);
        for (int64_t i = lo; i < hi; i++) {
            float dg = 0, db = 0;

            for (int64_t g = 0; g < CPU_GROUPS; g++) {
                dg += part[g * 2 * c + i];
                db += part[g * 2 * c + c + i];
            }
            if (p->dgamma)
                p->dgamma[i] += dg;
            if (p->dbeta)
                p->dbeta[i] += db;
        }
    }
}
