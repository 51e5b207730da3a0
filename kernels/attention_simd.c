#include "kernels/attention_simd.h"

#include <math.h>
#include <omp.h>

#include "kernels/tile_simd.h"

/* Everything is held key by query: S (keys, queries) = K Q^T, so that the running maximum and
 * sum of a query are lanes of a vector, and only Q has to be transposed, once a tile. */
enum { QV = TILE / VW }; /* vectors of queries in a tile */

INLINE const void *view_at(enum dtype dt, const struct attention_view *v, int64_t b, int64_t t,
                           int64_t h, int64_t d)
{
    return (const char *)v->p + (size_t)(b * v->batch + t * v->row + h * d) * dtype_size(dt);
}
INLINE void *view_out(enum dtype dt, const struct attention_view *v, int64_t b, int64_t t,
                      int64_t h, int64_t d)
{
    return (char *)v->p + (size_t)(b * v->batch + t * v->row + h * d) * dtype_size(dt);
}

/* A packed tile of rows t0 .. of one head. */
INLINE void pack_rows(enum dtype dt, float *out, int64_t dp, const struct attention_view *v,
                      int64_t b, int64_t t0, int64_t rows, int64_t h, int64_t d, float scale)
{
    tile_pack(dt, out, dp, view_at(dt, v, b, t0, h, d), v->row, rows, d, TILE, scale);
}

/* All keys or values of one head, packed: read many times, and in the tensor the rows of a
 * head lie so far apart that they evict each other from the cache. */
INLINE void pack_head(enum dtype dt, float *out, const struct attention *p,
                      const struct attention_view *v, int64_t b, int64_t h)
{
    tile_pack(dt, out, attention_padded(p->d), view_at(dt, v, b, 0, h, p->d), v->row, p->t_kv,
              p->d, p->t_kv + TILE_MR, 1);
}

/* Where the tiles of keys of query q0 and those behind it begin: a product works on whole groups of rows. */
INLINE int64_t first_tile(const struct attention *p, int64_t b, int64_t q0)
{
    return attention_first_key(p, b, q0) / TILE_MR * TILE_MR;
}

/* Hides keys j0 .. from the queries q0 .. that do not see them. */
NOINLINE void mask_tile(const struct attention *p, float *s, int64_t j0, int64_t keys, int64_t b, int64_t q0, int64_t nq)
{
    int64_t last = attention_last_key(p, q0);

    if (j0 + keys - 1 > last)
        for (int64_t i = 0; i < keys; i++)
            for (int64_t j = 0; j < TILE && last + j < j0 + i; j++)
                s[i * TILE + j] = -INFINITY;
    if (attention_first_key(p, b, q0 + nq - 1) > j0)
        for (int64_t j = 0; j < nq; j++)
            for (int64_t i = 0; i < keys && j0 + i < attention_first_key(p, b, q0 + j); i++)
                s[i * TILE + j] = -INFINITY;
}

/* The logit beside those of head h's keys, where there is one. */
INLINE float sink_of(enum dtype dt, const struct attention *p, int64_t h)
{
    float x[VW];

    if (!p->sink)
        return 0;
    vf_store(x, vf_get(dt, p->sink, h, 1));
    return x[0];
}

/* tanh: by its series where the exponential would cancel. */
INLINE vf vf_tanh(vf x)
{
    vf x2 = x * x, one = vf_set(1), p = vf_set(0.0218694885f);

    p = vf_fma(p, x2, vf_set(-0.0539682540f));
    p = vf_fma(p, x2, vf_set(0.1333333333f));
    p = vf_fma(p, x2, vf_set(-0.3333333333f));
    p = vf_fma(p * x2, x, x);
    return vf_if_lt(x2, vf_set(0.0625f), p, one - vf_set(2) / (one + vf_exp(x + x)));
}

/* Products of keys and queries become logits; slope, where it is wanted, gets that of each. */
NOINLINE void cap_tile(const struct attention *p, float *s, int64_t keys, float *slope)
{
    vf cap = vf_set(p->cap), part = vf_set(1 / p->cap), one = vf_set(1);

    for (int64_t i = 0; i < keys * TILE; i += VW) {
        vf t = vf_tanh(vf_load(s + i) * part);

        vf_store(s + i, cap * t);
        if (slope)
            vf_store(slope + i, one - t * t);
    }
}

/* Dropout's factors for a tile of probabilities times themselves. */
NOINLINE void drop_tile(float *out, const float *in, const struct attention *p, int64_t bh,
                        int64_t j0, int64_t keys, int64_t q0)
{
    int64_t b = bh / p->heads, h = bh % p->heads;
    int64_t row = (b * (p->all_heads ? p->all_heads : p->heads) + p->first_head + h) * (p->all_t ? p->all_t : p->t_kv);
    int64_t column = p->first_query + q0, off = column % 4; /* drop_fill takes a multiple of 4 */

    for (int64_t i = 0; i < keys; i++) {
        struct drop_row d = drop_row_of(p->drop, row + p->first_key + j0 + i, p->all_t ? p->all_t : p->t);
        float f[TILE + 4 * VW];

        drop_fill(&d, column - off, TILE + off, f);
        for (int64_t j = 0; j < TILE; j += VW)
            vf_store(out + i * TILE + j, vf_load(in + i * TILE + j) * vf_load(f + off + j));
    }
}

/* What the blocks before have given to a tile of queries: the state of its softmax. */
INLINE void fwd_resume(const struct attention *p, float *o, vf m[QV], vf l[QV], int64_t b, int64_t h, int64_t q0, int64_t nq)
{
    float lse[TILE], one[TILE];
    int64_t dp = attention_padded(p->d);

    for (int64_t i = 0; i < TILE; i++) {
        lse[i] = i < nq ? p->lse[(b * p->heads + h) * p->t + q0 + i] : -INFINITY;
        one[i] = i < nq;
    }
    for (int j = 0; j < QV; j++) {
        m[j] = vf_load(lse + j * VW);
        l[j] = vf_load(one + j * VW);
    }
    for (int64_t i = 0; i < nq; i++)
        memcpy(o + i * dp, view_at(DTYPE_F32, &p->o, b, q0 + i, h, p->d), (size_t)p->d * sizeof *o);
}

/* One tile of queries of one head, forward. */
INLINE void fwd_tile(enum dtype dt, const struct attention *p, const float *k, const float *v,
                     int64_t b, int64_t h, int64_t q0, float *w)
{
    int64_t d = p->d, dp = attention_padded(d);
    int64_t nq = p->t - q0 < TILE ? p->t - q0 : TILE, begin = first_tile(p, b, q0);
    int64_t seen = attention_last_key(p, q0 + nq - 1) + 1, bh = b * p->heads + h;
    float *qt = w, *o = qt + TILE * dp;
    float *tmp = o + TILE * dp, *s = tmp + TILE * dp, *sd = s + TILE * TILE;
    float *alpha = sd + TILE * TILE;
    vf m[QV], l[QV];

    pack_rows(dt, tmp, dp, &p->q, b, q0, nq, h, d, p->scale);
    tile_transpose(qt, tmp, dp, dp);
    memset(o, 0, (size_t)(TILE * dp) * sizeof *o);
    for (int j = 0; j < QV; j++) {
        m[j] = vf_set(attention_sinks(p) ? sink_of(dt, p, h) : -1e30f); /* finite, since a tile may have no key for a query */
        l[j] = vf_set(attention_sinks(p) ? 1 : 0);
    }
    if (p->block == ATTENTION_FURTHER)
        fwd_resume(p, o, m, l, b, h, q0, nq);
    for (int64_t j0 = begin; j0 < seen; j0 += TILE) {
        int64_t nk = seen - j0 < TILE ? seen - j0 : TILE;
        const float *pv = s;

        tile_mm(s, TILE, k + j0 * dp, dp, 1, qt, TILE, nk, TILE, dp, false);
        if (p->cap > 0)
            cap_tile(p, s, nk, NULL);
        mask_tile(p, s, j0, nk, b, q0, nq);
        for (int j = 0; j < QV; j++) {
            vf old = m[j], sum = vf_set(0), a;

            for (int64_t i = 0; i < nk; i++)
                m[j] = vf_max(m[j], vf_load(s + i * TILE + j * VW));
            a = vf_exp(old - m[j]);
            for (int64_t i = 0; i < nk; i++) {
                vf e = vf_exp(vf_load(s + i * TILE + j * VW) - m[j]);
                vf_store(s + i * TILE + j * VW, e);
                sum = sum + e;
            }
            l[j] = vf_fma(l[j], a, sum);
            vf_store(alpha + j * VW, a);
        }
        if (p->drop && p->drop->p > 0) {
            drop_tile(sd, s, p, bh, j0, nk, q0);
            pv = sd;
        }
        if (j0 > begin || p->block == ATTENTION_FURTHER)
            for (int64_t i = 0; i < nq; i++)
                for (int64_t c = 0; c < dp; c += VW)
                    vf_store(o + i * dp + c, vf_load(o + i * dp + c) * vf_set(alpha[i]));
        tile_mm(o, dp, pv, 1, TILE, v + j0 * dp, dp, nq, dp, nk, true);
    }
    for (int j = 0; j < QV; j++) {
        vf_store(alpha + j * VW, vf_set(1) / l[j]);
        vf_store(s + j * VW, m[j]);
        vf_store(sd + j * VW, l[j]);
    }
    for (int64_t i = 0; i < nq; i++) {
        enum dtype to = p->block ? DTYPE_F32 : dt;
        void *out = view_out(to, &p->o, b, q0 + i, h, d);

        for (int64_t c = 0; c < d; c += VW)
            vf_put(to, out, c, d - c, vf_load(o + i * dp + c) * vf_set(alpha[i]));
        if (p->lse)
            p->lse[bh * p->t + q0 + i] = s[i] + logf(sd[i]);
    }
}

/* One query against all its keys: dot products, softmax, weighted sum. */
INLINE void fwd_query(enum dtype dt, const struct attention *p, int64_t b, int64_t h, int64_t qi,
                      float *w)
{
    int64_t d = p->d, dp = attention_padded(d), kvh = h / (p->heads / p->kv_heads);
    int64_t first = attention_first_key(p, b, qi), seen = attention_last_key(p, qi) + 1 - first;
    int64_t padded = (seen + VW - 1) / VW * VW;
    float *q = w, *o = q + dp, *s = o + dp, max = -INFINITY;
    vf sum = vf_set(0), m;
    float total;

    tile_pack(dt, q, dp, view_at(dt, &p->q, b, qi, h, d), 0, 1, d, 1, p->scale);
    if (attention_sinks(p))
        max = sink_of(dt, p, h);
    memset(o, 0, (size_t)dp * sizeof *o);
    for (int64_t j = 0; j < seen; j++) {
        const void *k = view_at(dt, &p->k, b, first + j, kvh, d);
        vf a = vf_set(0);

        for (int64_t c = 0; c < d; c += VW)
            a = vf_fma(vf_load(q + c), vf_get(dt, k, c, d - c), a);
        s[j] = attention_logit(p, vf_sum(a));
        max = s[j] > max ? s[j] : max;
    }
    for (int64_t j = seen; j < padded; j++)
        s[j] = -INFINITY;
    m = vf_set(max);
    for (int64_t j = 0; j < padded; j += VW) {
        vf e = vf_exp(vf_load(s + j) - m);
        vf_store(s + j, e);
        sum = sum + e;
    }
    total = vf_sum(sum);
    if (attention_sinks(p))
        total += expf(sink_of(dt, p, h) - max);
    for (int64_t j = 0; j < seen; j++) {
        const void *v = view_at(dt, &p->v, b, first + j, kvh, d);

        for (int64_t c = 0; c < d; c += VW)
            vf_store(o + c, vf_fma(vf_set(s[j]), vf_get(dt, v, c, d - c), vf_load(o + c)));
    }
    for (int64_t c = 0; c < d; c += VW)
        vf_put(dt, view_out(dt, &p->o, b, qi, h, d), c, d - c,
               vf_load(o + c) * vf_set(1.0f / total));
    if (p->lse)
        p->lse[(b * p->heads + h) * p->t + qi] = max + logf(total);
}

/* One head: tile by tile, or with few queries one by one, each an item of its own. */
INLINE void fwd_item(enum dtype dt, const struct attention *p, int64_t item, bool few, float *w)
{
    int64_t h = few ? item / p->t % p->heads : item % p->heads;
    int64_t b = few ? item / p->t / p->heads : item / p->heads;
    int64_t kvh = h / (p->heads / p->kv_heads), rows = (p->t_kv + TILE) * attention_padded(p->d);

    if (few) {
        fwd_query(dt, p, b, h, item % p->t, w);
        return;
    }
    pack_head(dt, w, p, &p->k, b, kvh);
    pack_head(dt, w + rows, p, &p->v, b, kvh);
    for (int64_t q0 = 0; q0 < p->t; q0 += TILE)
        fwd_tile(dt, p, w, w + rows, b, h, q0, w + 2 * rows);
}

void ISA_FN(attention_fwd_loop)(struct device *dev, enum dtype dt, const struct attention *p,
                                float *scratch)
{
    bool few = p->t < 8 && !(p->drop && p->drop->p > 0) && !p->full && !p->block && !p->start;
    int64_t items = p->b * p->heads * (few ? p->t : 1);

#pragma omp parallel num_threads(cpu_team(dev, items * p->t * p->t_kv * p->d))
    {
        float *w = scratch + omp_get_thread_num() * attention_fwd_scratch(p);

#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < items; i++)
            BY_DTYPE(dt, fwd_item(DT, p, i, few, w));
    }
}

/* What backward has of one tile of queries; all fp32, padded with zeros. */
struct bwd_tile {
    float *q, *qt, *dout, *dot; /* q is scaled, as in forward; the t ones transposed */
    float *dq;
    vf lse[QV], delta[QV];
};

/* delta = the sum over d of dout * o, which is also that of probability * its gradient. */
INLINE void bwd_load(enum dtype dt, const struct attention *p, const struct attention_view *dout,
                     struct bwd_tile *x, float *tmp, int64_t b, int64_t h, int64_t q0, int64_t nq)
{
    int64_t d = p->d, dp = attention_padded(d);
    float delta[TILE] = {0}, lse[TILE] = {0};

    pack_rows(dt, x->q, dp, &p->q, b, q0, nq, h, d, p->scale);
    pack_rows(dt, x->dout, dp, dout, b, q0, nq, h, d, 1);
    pack_rows(dt, tmp, dp, &p->o, b, q0, nq, h, d, 1);
    for (int64_t i = 0; i < nq; i++) {
        vf a = vf_set(0);

        for (int64_t c = 0; c < dp; c += VW)
            a = vf_fma(vf_load(tmp + i * dp + c), vf_load(x->dout + i * dp + c), a);
        delta[i] = vf_sum(a);
        lse[i] = p->lse[(b * p->heads + h) * p->t + q0 + i];
    }
    for (int j = 0; j < QV; j++) {
        x->delta[j] = vf_load(delta + j * VW);
        x->lse[j] = vf_load(lse + j * VW);
    }
    tile_transpose(x->qt, x->q, dp, dp);
    tile_transpose(x->dot, x->dout, dp, dp);
    memset(x->dq, 0, (size_t)(TILE * dp) * sizeof *x->dq);
}

/* The pair of a tile of queries (q0) and a tile of keys (j0): adds to dq, dk, dv. */
NOINLINE void bwd_pair(const struct attention *p, struct bwd_tile *x, const float *k,
                       const float *v, float *dk, float *dv, float *tiles, int64_t bh, int64_t q0,
                       int64_t nq, int64_t j0, int64_t nk)
{
    int64_t dp = attention_padded(p->d);
    float *s = tiles, *ds = s + TILE * TILE, *drop = ds + TILE * TILE;
    bool drops = p->drop && p->drop->p > 0;

    tile_mm(s, TILE, k, dp, 1, x->qt, TILE, nk, TILE, dp, false);
    tile_mm(ds, TILE, v, dp, 1, x->dot, TILE, nk, TILE, dp, false);
    if (p->cap > 0)
        cap_tile(p, s, nk, drop);
    mask_tile(p, s, j0, nk, bh / p->heads, q0, nq);
    if (drops)
        drop_tile(ds, ds, p, bh, j0, nk, q0);
    for (int64_t i = 0; i < nk; i++)
        for (int j = 0; j < QV; j++) {
            float *at = s + i * TILE + j * VW, *dat = ds + i * TILE + j * VW;
            vf pr = vf_exp(vf_load(at) - x->lse[j]);

            vf_store(at, pr);
            vf_store(dat, pr * (vf_load(dat) - x->delta[j]));
        }
    for (int64_t i = 0; p->cap > 0 && i < nk * TILE; i += VW) /* the slopes are where dropout has its tile then */
        vf_store(ds + i, vf_load(ds + i) * vf_load(drop + i));
    if (drops) {
        drop_tile(drop, s, p, bh, j0, nk, q0);
        s = drop;
    }
    tile_mm(dv, dp, s, TILE, 1, x->dout, dp, nk, dp, nq, true);
    tile_mm(dk, dp, ds, TILE, 1, x->q, dp, nk, dp, nq, true);
    tile_mm(x->dq, dp, ds, 1, TILE, k, dp, nq, dp, nk, true);
}

/* A row of a gradient times scale, written or added. */
INLINE void grad_row(enum dtype dt, const struct attention *p, void *out, const float *row, float scale)
{
    for (int64_t c = 0; c < p->d; c += VW) {
        vf x = vf_load(row + c) * vf_set(scale);

        if (p->block)
            vf_put(DTYPE_F32, out, c, p->d - c, x + vf_get(DTYPE_F32, out, c, p->d - c));
        else
            vf_put(dt, out, c, p->d - c, x);
    }
}

/* All query heads of one kv head. */
INLINE void bwd_head(enum dtype dt, const struct attention *p, const struct attention_view *dout,
                     const struct attention_view grad[3], int64_t b, int64_t kvh, float *w)
{
    int64_t d = p->d, dp = attention_padded(d), group = p->heads / p->kv_heads;
    int64_t rows = (p->t_kv + TILE) * dp;
    float *k = w, *v = k + rows, *dk = v + rows, *dv = dk + rows, *tmp = dv + rows;
    struct bwd_tile x = {.q = tmp + TILE * dp};
    enum dtype to = p->block ? DTYPE_F32 : dt;
    float *tiles;

    x.qt = x.q + TILE * dp;
    x.dout = x.qt + TILE * dp;
    x.dot = x.dout + TILE * dp;
    x.dq = x.dot + TILE * dp;
    tiles = x.dq + TILE * dp;
    pack_head(dt, k, p, &p->k, b, kvh);
    pack_head(dt, v, p, &p->v, b, kvh);
    memset(dk, 0, (size_t)(2 * rows) * sizeof *dk);
    for (int64_t h = kvh * group; h < (kvh + 1) * group; h++)
        for (int64_t q0 = 0; q0 < p->t; q0 += TILE) {
            int64_t nq = p->t - q0 < TILE ? p->t - q0 : TILE, seen = attention_last_key(p, q0 + nq - 1) + 1;

            bwd_load(dt, p, dout, &x, tmp, b, h, q0, nq);
            for (int64_t j0 = first_tile(p, b, q0); j0 < seen; j0 += TILE) {
                int64_t nk = seen - j0 < TILE ? seen - j0 : TILE;

                bwd_pair(p, &x, k + j0 * dp, v + j0 * dp, dk + j0 * dp, dv + j0 * dp, tiles,
                         b * p->heads + h, q0, nq, j0, nk);
            }
            for (int64_t i = 0; i < nq; i++)
                grad_row(dt, p, view_out(to, &grad[0], b, q0 + i, h, d), x.dq + i * dp, p->scale);
        }
    for (int64_t i = 0; i < p->t_kv; i++) { /* dk is right as it is: q was scaled */
        grad_row(dt, p, view_out(to, &grad[1], b, i, kvh, d), dk + i * dp, 1);
        grad_row(dt, p, view_out(to, &grad[2], b, i, kvh, d), dv + i * dp, 1);
    }
}

void ISA_FN(attention_bwd_loop)(struct device *dev, enum dtype dt, const struct attention *p,
                                const struct attention_view *dout,
                                const struct attention_view grad[3], float *scratch)
{
    int64_t items = p->b * p->kv_heads;

#pragma omp parallel num_threads(cpu_team(dev, items * p->t * p->t_kv * p->d))
    {
        float *w = scratch + omp_get_thread_num() * attention_bwd_scratch(p);

#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < items; i++)
            BY_DTYPE(dt, bwd_head(DT, p, dout, grad, i / p->kv_heads, i % p->kv_heads, w));
    }
}

/* Of head h: its sink's probability times delta, of all queries, with the sign turned. */
INLINE void sink_head(enum dtype dt, const struct attention *p, const struct attention_view *dout, int64_t h)
{
    float sink = sink_of(dt, p, h);
    double sum = 0;

    for (int64_t b = 0; b < p->b; b++)
        for (int64_t i = 0; i < p->t; i++) {
            const void *o = view_at(dt, &p->o, b, i, h, p->d), *g = view_at(dt, dout, b, i, h, p->d);
            vf delta = vf_set(0);

            for (int64_t c = 0; c < p->d; c += VW)
                delta = vf_fma(vf_get(dt, o, c, p->d - c), vf_get(dt, g, c, p->d - c), delta);
            sum += exp((double)(sink - p->lse[(b * p->heads + h) * p->t + i])) * (double)vf_sum(delta);
        }
    p->dsink[h] -= (float)sum;
}

void ISA_FN(attention_sink_loop)(struct device *dev, enum dtype dt, const struct attention *p, const struct attention_view *dout)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->b * p->heads * p->t * p->d)) schedule(static)
    for (int64_t h = 0; h < p->heads; h++)
        BY_DTYPE(dt, sink_head(DT, p, dout, h));
}
