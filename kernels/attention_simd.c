#include "kernels/attention_simd.h"

#include <math.h>
#include <omp.h>

#include "kernels/amx_simd.h"
#include "kernels/tile_simd.h"

/* Everything is held key by query: S (keys, queries) = K Q^T, so that the running maximum and
 * sum of a query are lanes of a vector, and only Q has to be transposed, once a tile.
 *
 * Products are of fp32, or, of tensors of bf16 where the processor multiplies these, of pairs: what is multiplied is packed as
 * 32-bit units of two numbers, neighbours along the inner dimension, and P and dS are rounded.  Sums and all else is fp32. */
enum { QV = TILE / VW }; /* vectors of queries in a tile */

/* How products are taken: of fp32; of pairs in vectors, or where whole tiles allow it by AMX. */
enum way { SINGLES, PAIRS, TILES };

INLINE enum way way_of(const struct device *dev, enum dtype dt)
{
    return VW < 16 || dt != DTYPE_BF16 || !dev->fast_bf16 ? SINGLES : dev->impl->amx ? TILES : PAIRS;
}
/* Units of n numbers. */
INLINE int64_t units(bool pairs, int64_t n) { return pairs ? (n + 1) / 2 : n; }

INLINE void product(enum way way, float *c, int64_t ldc, const float *a, int64_t ai, int64_t ak, const float *b, int64_t ldb,
                    int64_t m, int64_t n, int64_t k, bool add, float scale)
{
    if (way == TILES && m % 32 == 0 && n % 32 == 0 && k % 32 == 0 && (ak == 1 || k <= 64))
        amx_mm_pairs(c, ldc, a, ai, ak, b, ldb, m, n, k / 2, add, scale);
    else if (way)
        tile_mm_pairs(c, ldc, a, ai, ak, b, ldb, m, n, units(true, k), add, scale);
    else
        tile_mm(c, ldc, a, ai, ak, b, ldb, m, n, k, add);
}

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

/* A tile of queries, scaled but for pairs: x, where it is wanted, its rows the inner dimension, and xt, where its columns are.
 * tmp (TILE, dp): for either that is not. */
INLINE void pack_queries(enum dtype dt, bool pairs, float *x, float *xt, float *tmp, const struct attention *p,
                         const struct attention_view *v, int64_t b, int64_t q0, int64_t rows, int64_t h, float scale)
{
    int64_t dp = attention_padded(pairs, p->d);
    float *packed = x && !pairs ? x : tmp;

    tile_pack(dt, packed, dp, view_at(dt, v, b, q0, h, p->d), v->row, rows, p->d, TILE, pairs ? 1 : scale);
    if (pairs) {
        if (x)
            tile_pair(x, packed, TILE, dp);
        tile_narrow(packed, packed, TILE * dp);
    }
    tile_transpose(xt, packed, units(pairs, dp), units(pairs, dp));
}

/* All keys or values of one head, packed: read many times, and in the tensor the rows of a
 * head lie so far apart that they evict each other from the cache. */
INLINE void pack_head(enum dtype dt, float *out, const struct attention *p, const struct attention_view *v, int64_t b, int64_t h)
{
    tile_pack(dt, out, attention_padded(false, p->d), view_at(dt, v, b, 0, h, p->d), v->row, p->t_kv, p->d, p->t_kv + TILE_MR, 1);
}

/* The same of pairs: along, where the inner dimension is along the rows, and across, where it is the rows; either may be NULL.
 * tmp (TILE, dp). */
INLINE void pack_head_pairs(enum dtype dt, float *along, float *across, float *tmp, const struct attention *p,
                            const struct attention_view *v, int64_t b, int64_t h)
{
    int64_t dp = attention_padded(true, p->d);

    for (int64_t j = 0; j < p->t_kv; j += TILE) {
        int64_t rows = p->t_kv - j < TILE ? p->t_kv - j : TILE;

        tile_pack(dt, tmp, dp, view_at(dt, v, b, j, h, p->d), v->row, rows, p->d, TILE, 1);
        if (across)
            tile_pair(across + j / 2 * dp, tmp, TILE, dp);
        if (along)
            tile_narrow(along + j * dp / 2, tmp, TILE * dp);
    }
}

/* Where the tiles of keys of query q0 and those behind it begin: a product works on whole groups of rows. */
INLINE int64_t first_tile(const struct attention *p, int64_t b, int64_t q0)
{
    return attention_first_key(p, b, q0) / TILE_MR * TILE_MR;
}

INLINE int64_t whole_rows(int64_t n) { return (n + TILE_MR - 1) / TILE_MR * TILE_MR; }

/* Hides keys j0 .. from the queries q0 .. that do not see them, and from all what products added to fill a group of rows. */
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
    for (int64_t i = keys * TILE; i < whole_rows(keys) * TILE; i++)
        s[i] = -INFINITY;
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

INLINE bool drops(const struct attention *p) { return p->drop && p->drop->p > 0; }

/* Of pairs a probability that dropout keeps is left as it is, lest its factor be rounded with it: what the sum lacks. */
INLINE float factor_left(bool pairs, const struct attention *p) { return pairs && drops(p) ? 1 / (1 - p->drop->p) : 1; }

/* Dropout's factors for a tile times themselves; but for the factor left, of those that are kept. */
NOINLINE void drop_tile(float *out, const float *in, const struct attention *p, int64_t bh,
                        int64_t j0, int64_t keys, int64_t q0, float left)
{
    int64_t b = bh / p->heads, h = bh % p->heads;
    int64_t row = (b * (p->all_heads ? p->all_heads : p->heads) + p->first_head + h) * (p->all_t ? p->all_t : p->t_kv);
    int64_t column = p->first_query + q0, off = column % 4; /* drop_fill takes a multiple of 4 */

    for (int64_t i = 0; i < keys; i++) {
        struct drop_row d = drop_row_of(p->drop, row + p->first_key + j0 + i, p->all_t ? p->all_t : p->t);
        float f[TILE + 4 * VW];

        if (left != 1)
            d.keep = 1;
        drop_fill(&d, column - off, TILE + off, f);
        for (int64_t j = 0; j < TILE; j += VW)
            vf_store(out + i * TILE + j, vf_load(in + i * TILE + j) * vf_load(f + off + j));
    }
}

/* What the blocks before have given to a tile of queries: the state of its softmax. */
INLINE void fwd_resume(const struct attention *p, float *o, int64_t dp, float left, vf m[QV], vf l[QV], int64_t b,
                       int64_t h, int64_t q0, int64_t nq)
{
    float lse[TILE], one[TILE];

    for (int64_t i = 0; i < TILE; i++) {
        lse[i] = i < nq ? p->lse[(b * p->heads + h) * p->t + q0 + i] : -INFINITY;
        one[i] = i < nq;
    }
    for (int j = 0; j < QV; j++) {
        m[j] = vf_load(lse + j * VW);
        l[j] = vf_load(one + j * VW);
    }
    for (int64_t i = 0; i < nq; i++) {
        const void *row = view_at(DTYPE_F32, &p->o, b, q0 + i, h, p->d);

        for (int64_t c = 0; c < p->d; c += VW)
            vf_store(o + i * dp + c, vf_get(DTYPE_F32, row, c, p->d - c) / vf_set(left));
    }
}

/* Logits of a tile become exponentials, or pairs of those of keys; the running maxima m, which may begin with more than logits,
 * sums l and largest logits go on, and what was summed before has to be multiplied by alpha.  As many vectors of queries at once
 * as registers hold. */
INLINE void softmax_tile(bool pairs, float *s, int64_t keys, vf m[QV], vf l[QV], vf most[QV], float *alpha)
{
    enum { AT_ONCE = VW == 16 ? QV : 1 };

    for (int to = 0; to < QV; to += AT_ONCE) {
        vf max[AT_ONCE], sum[AT_ONCE];
        float *x = s + to * VW;

        for (int j = 0; j < AT_ONCE; j++) {
            max[j] = vf_set(-INFINITY);
            sum[j] = vf_set(0);
        }
        for (int64_t i = 0; i < keys; i++)
            for (int j = 0; j < AT_ONCE; j++)
                max[j] = vf_max(max[j], vf_load(x + i * TILE + j * VW));
        for (int j = 0; j < AT_ONCE; j++) {
            most[to + j] = vf_max(most[to + j], max[j]);
            max[j] = vf_max(m[to + j], max[j]);
        }
        for (int64_t i = 0; i < whole_rows(keys); i += 2)
            for (int j = 0; j < AT_ONCE; j++) {
                float *at = x + i * TILE + j * VW;
                vf even = vf_exp(vf_load(at) - max[j]), odd = vf_exp(vf_load(at + TILE) - max[j]);

                sum[j] = sum[j] + even + odd;
                if (pairs) {
                    vf_store(x + i / 2 * TILE + j * VW, vi_as_f(vf_pair(even, odd)));
                } else {
                    vf_store(at, even);
                    vf_store(at + TILE, odd);
                }
            }
        for (int j = 0; j < AT_ONCE; j++) {
            vf a = vf_exp(m[to + j] - max[j]);

            l[to + j] = vf_fma(l[to + j], a, sum[j]);
            m[to + j] = max[j];
            vf_store(alpha + (to + j) * VW, a);
        }
    }
}

/* The logit of head h that somebody asks for is x at least: threads may be at it together. */
NOINLINE void raise_most(const struct attention *p, int64_t h, float x)
{
#pragma omp critical(attention_most)
    if (x > p->most[h])
        p->most[h] = x;
}

/* The largest of n lanes. */
INLINE float largest_of(const vf x[QV], int64_t n)
{
    float lane[TILE], most = 0;

    for (int j = 0; j < QV; j++)
        vf_store(lane + j * VW, x[j]);
    for (int64_t i = 0; i < n; i++)
        most = lane[i] > most ? lane[i] : most;
    return most;
}

/* One tile of queries of one head, forward. */
INLINE void fwd_tile(enum dtype dt, enum way way, const struct attention *p, const float *k, const float *v,
                     int64_t b, int64_t h, int64_t q0, float *w)
{
    int64_t d = p->d, dp = attention_padded(way, d), along = units(way, dp);
    int64_t nq = p->t - q0 < TILE ? p->t - q0 : TILE, begin = first_tile(p, b, q0);
    int64_t seen = attention_last_key(p, q0 + nq - 1) + 1, bh = b * p->heads + h;
    float *qt = w, *o = qt + TILE * dp;
    float *tmp = o + TILE * dp, *s = tmp + TILE * dp, *sd = s + TILE * TILE;
    float *alpha = sd + TILE * TILE, left = factor_left(way, p);
    vf m[QV], l[QV], most[QV];

    pack_queries(dt, way, NULL, qt, tmp, p, &p->q, b, q0, nq, h, p->scale);
    memset(o, 0, (size_t)(TILE * dp) * sizeof *o);
    for (int j = 0; j < QV; j++) {
        m[j] = vf_set(attention_sinks(p) ? sink_of(dt, p, h) : -1e30f); /* finite, since a tile may have no key for a query */
        l[j] = vf_set(attention_sinks(p) ? 1 : 0);
        most[j] = vf_set(0);
    }
    if (p->block == ATTENTION_FURTHER)
        fwd_resume(p, o, dp, left, m, l, b, h, q0, nq);
    for (int64_t j0 = begin; j0 < seen; j0 += TILE) {
        int64_t nk = seen - j0 < TILE ? seen - j0 : TILE;
        const float *pv = s;

        product(way, s, TILE, k + j0 * along, along, 1, qt, TILE, nk, TILE, dp, false, p->scale);
        if (p->cap > 0)
            cap_tile(p, s, nk, NULL);
        mask_tile(p, s, j0, nk, b, q0, nq);
        softmax_tile(way && !drops(p), s, nk, m, l, most, alpha);
        if (drops(p)) {
            drop_tile(sd, s, p, bh, j0, whole_rows(nk), q0, left);
            if (way)
                tile_pair(sd, sd, whole_rows(nk), TILE);
            pv = sd;
        }
        if (j0 > begin || p->block == ATTENTION_FURTHER)
            for (int64_t i = 0; i < nq; i++)
                for (int64_t c = 0; c < dp; c += VW)
                    vf_store(o + i * dp + c, vf_load(o + i * dp + c) * vf_set(alpha[i]));
        product(way, o, dp, pv, 1, TILE, v + units(way, j0) * dp, dp, nq, dp, nk, true, 1);
    }
    for (int j = 0; j < QV; j++) {
        vf_store(alpha + j * VW, vf_set(left) / l[j]);
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
    if (p->most)
        raise_most(p, h, largest_of(most, nq));
}

/* One query against all its keys: dot products, softmax, weighted sum. */
INLINE void fwd_query(enum dtype dt, const struct attention *p, int64_t b, int64_t h, int64_t qi,
                      float *w)
{
    int64_t d = p->d, dp = attention_padded(false, d), kvh = h / (p->heads / p->kv_heads);
    int64_t first = attention_first_key(p, b, qi), seen = attention_last_key(p, qi) + 1 - first;
    int64_t padded = (seen + VW - 1) / VW * VW;
    float *q = w, *o = q + dp, *s = o + dp, max = -INFINITY, most = 0;
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
        most = s[j] > most ? s[j] : most;
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
    if (p->most)
        raise_most(p, h, most);
}

/* One head: tile by tile, or with few queries one by one, each an item of its own. */
INLINE void fwd_item(enum dtype dt, enum way way, const struct attention *p, int64_t item, bool few, float *w)
{
    int64_t h = few ? item / p->t % p->heads : item % p->heads;
    int64_t b = few ? item / p->t / p->heads : item / p->heads;
    int64_t kvh = h / (p->heads / p->kv_heads), rows = units(way, (p->t_kv + TILE) * attention_padded(way, p->d));
    float *v = w + rows, *tile = v + rows;

    if (few) {
        fwd_query(dt, p, b, h, item % p->t, w);
        return;
    }
    if (way) {
        pack_head_pairs(dt, w, NULL, tile, p, &p->k, b, kvh);
        pack_head_pairs(dt, NULL, v, tile, p, &p->v, b, kvh);
    } else {
        pack_head(dt, w, p, &p->k, b, kvh);
        pack_head(dt, v, p, &p->v, b, kvh);
    }
    for (int64_t q0 = 0; q0 < p->t; q0 += TILE)
        fwd_tile(dt, way, p, w, v, b, h, q0, tile);
}

void ISA_FN(attention_fwd_loop)(struct device *dev, enum dtype dt, const struct attention *p,
                                float *scratch)
{
    bool few = p->t < 8 && !drops(p) && !p->full && !p->block && !p->start;
    int64_t items = p->b * p->heads * (few ? p->t : 1);
    const enum way way = way_of(dev, dt);

#pragma omp parallel num_threads(cpu_team(dev, items * p->t * p->t_kv * p->d))
    {
        float *w = scratch + omp_get_thread_num() * attention_fwd_scratch(p);

        if (way == TILES)
            amx_begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < items; i++)
            if (way == TILES)
                fwd_item(DTYPE_BF16, TILES, p, i, few, w);
            else if (way == PAIRS)
                fwd_item(DTYPE_BF16, PAIRS, p, i, few, w);
            else
                BY_DTYPE(dt, fwd_item(DT, SINGLES, p, i, few, w));
        if (way == TILES)
            amx_end();
    }
}

/* The sum over d of dout * o, which is also that of probability * its gradient. */
INLINE float delta_of(enum dtype dt, const struct attention *p, const struct attention_view *dout, int64_t b, int64_t i,
                      int64_t h)
{
    const void *o = view_at(dt, &p->o, b, i, h, p->d), *g = view_at(dt, dout, b, i, h, p->d);
    vf sum = vf_set(0);

    for (int64_t c = 0; c < p->d; c += VW)
        sum = vf_fma(vf_get(dt, o, c, p->d - c), vf_get(dt, g, c, p->d - c), sum);
    return vf_sum(sum);
}

/* What backward has of one tile of queries, padded with zeros. */
struct bwd_tile {
    float *q, *qt, *dout, *dot; /* q is scaled, as in forward; the t ones transposed */
    float *dq;
    vf lse[QV], delta[QV];
};

INLINE void bwd_load(enum dtype dt, bool pairs, const struct attention *p, const struct attention_view *dout,
                     struct bwd_tile *x, float *tmp, int64_t b, int64_t h, int64_t q0, int64_t nq)
{
    float delta[TILE] = {0}, lse[TILE] = {0};

    pack_queries(dt, pairs, x->q, x->qt, tmp, p, &p->q, b, q0, nq, h, p->scale);
    pack_queries(dt, pairs, x->dout, x->dot, tmp, p, dout, b, q0, nq, h, 1);
    for (int64_t i = 0; i < nq; i++) {
        delta[i] = delta_of(dt, p, dout, b, q0 + i, h);
        lse[i] = p->lse[(b * p->heads + h) * p->t + q0 + i];
    }
    for (int j = 0; j < QV; j++) {
        x->delta[j] = vf_load(delta + j * VW);
        x->lse[j] = vf_load(lse + j * VW);
    }
    memset(x->dq, 0, (size_t)(TILE * attention_padded(pairs, p->d)) * sizeof *x->dq);
}

/* Keys and values of a head in backward, with their gradients: kc is k where keys are the inner dimension. */
struct bwd_keys {
    float *k, *kc, *v, *dk, *dv;
};

/* The pair of a tile of queries (q0) and a tile of keys (j0): adds to dq, dk, dv. */
INLINE void bwd_pair(enum way way, const struct attention *p, struct bwd_tile *x, const struct bwd_keys *y, float *tiles,
                     int64_t bh, int64_t q0, int64_t nq, int64_t j0, int64_t nk)
{
    int64_t dp = attention_padded(way, p->d), along = units(way, dp), rows = whole_rows(nk);
    float *s = tiles, *ds = s + TILE * TILE, *drop = ds + TILE * TILE, *dst = ds;

    product(way, s, TILE, y->k + j0 * along, along, 1, x->qt, TILE, nk, TILE, dp, false, p->scale);
    product(way, ds, TILE, y->v + j0 * along, along, 1, x->dot, TILE, nk, TILE, dp, false, 1);
    if (p->cap > 0)
        cap_tile(p, s, nk, drop);
    mask_tile(p, s, j0, nk, bh / p->heads, q0, nq);
    if (drops(p))
        drop_tile(ds, ds, p, bh, j0, nk, q0, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < QV; j++) {
            float *at = s + i * TILE + j * VW, *dat = ds + i * TILE + j * VW;
            vf pr = vf_exp(vf_load(at) - x->lse[j]);

            vf_store(at, pr);
            vf_store(dat, pr * (vf_load(dat) - x->delta[j]));
        }
    for (int64_t i = 0; p->cap > 0 && i < nk * TILE; i += VW) /* the slopes are where dropout has its tile then */
        vf_store(ds + i, vf_load(ds + i) * vf_load(drop + i));
    if (drops(p)) {
        drop_tile(drop, s, p, bh, j0, rows, q0, factor_left(way, p));
        s = drop;
    }
    if (way) {
        dst = drops(p) ? tiles : drop;
        tile_pair(dst, ds, rows, TILE);
        tile_narrow(ds, ds, rows * TILE);
        tile_narrow(s, s, rows * TILE);
    }
    product(way, y->dv + j0 * dp, dp, s, units(way, TILE), 1, x->dout, dp, nk, dp, nq, true, 1);
    product(way, y->dk + j0 * dp, dp, ds, units(way, TILE), 1, x->q, dp, nk, dp, nq, true, 1);
    product(way, x->dq, dp, dst, 1, TILE, y->kc + units(way, j0) * dp, dp, nq, dp, nk, true, 1);
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
INLINE void bwd_head(enum dtype dt, enum way way, const struct attention *p, const struct attention_view *dout,
                     const struct attention_view grad[3], int64_t b, int64_t kvh, float *w)
{
    int64_t d = p->d, dp = attention_padded(way, d), group = p->heads / p->kv_heads;
    int64_t rows = (p->t_kv + TILE) * dp, packed = units(way, rows);
    struct bwd_keys y = {.dk = w, .dv = w + rows, .k = w + 2 * rows};
    struct bwd_tile x;
    enum dtype to = p->block ? DTYPE_F32 : dt;
    float *tmp, *tiles;

    y.v = y.k + packed;
    y.kc = way ? y.v + packed : y.k;
    tmp = w + 4 * rows;
    x.q = tmp + TILE * dp;
    x.qt = x.q + TILE * dp;
    x.dout = x.qt + TILE * dp;
    x.dot = x.dout + TILE * dp;
    x.dq = x.dot + TILE * dp;
    tiles = x.dq + TILE * dp;
    if (way) {
        pack_head_pairs(dt, y.k, y.kc, tmp, p, &p->k, b, kvh);
        pack_head_pairs(dt, y.v, NULL, tmp, p, &p->v, b, kvh);
    } else {
        pack_head(dt, y.k, p, &p->k, b, kvh);
        pack_head(dt, y.v, p, &p->v, b, kvh);
    }
    memset(y.dk, 0, (size_t)(2 * rows) * sizeof *y.dk);
    for (int64_t h = kvh * group; h < (kvh + 1) * group; h++)
        for (int64_t q0 = 0; q0 < p->t; q0 += TILE) {
            int64_t nq = p->t - q0 < TILE ? p->t - q0 : TILE, seen = attention_last_key(p, q0 + nq - 1) + 1;

            bwd_load(dt, way, p, dout, &x, tmp, b, h, q0, nq);
            for (int64_t j0 = first_tile(p, b, q0); j0 < seen; j0 += TILE)
                bwd_pair(way, p, &x, &y, tiles, b * p->heads + h, q0, nq, j0, seen - j0 < TILE ? seen - j0 : TILE);
            for (int64_t i = 0; i < nq; i++)
                grad_row(dt, p, view_out(to, &grad[0], b, q0 + i, h, d), x.dq + i * dp, p->scale);
        }
    for (int64_t i = 0; i < p->t_kv; i++) { /* dk is right as it is where q was scaled */
        grad_row(dt, p, view_out(to, &grad[1], b, i, kvh, d), y.dk + i * dp, way ? p->scale : 1);
        grad_row(dt, p, view_out(to, &grad[2], b, i, kvh, d), y.dv + i * dp, factor_left(way, p));
    }
}

void ISA_FN(attention_bwd_loop)(struct device *dev, enum dtype dt, const struct attention *p,
                                const struct attention_view *dout,
                                const struct attention_view grad[3], float *scratch)
{
    int64_t items = p->b * p->kv_heads;
    const enum way way = way_of(dev, dt);

#pragma omp parallel num_threads(cpu_team(dev, items * p->t * p->t_kv * p->d))
    {
        float *w = scratch + omp_get_thread_num() * attention_bwd_scratch(p);

        if (way == TILES)
            amx_begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < items; i++)
            if (way == TILES)
                bwd_head(DTYPE_BF16, TILES, p, dout, grad, i / p->kv_heads, i % p->kv_heads, w);
            else if (way == PAIRS)
                bwd_head(DTYPE_BF16, PAIRS, p, dout, grad, i / p->kv_heads, i % p->kv_heads, w);
            else
                BY_DTYPE(dt, bwd_head(DT, SINGLES, p, dout, grad, i / p->kv_heads, i % p->kv_heads, w));
        if (way == TILES)
            amx_end();
    }
}

/* Of head h: its sink's probability times delta, of all queries, with the sign turned. */
INLINE void sink_head(enum dtype dt, const struct attention *p, const struct attention_view *dout, int64_t h)
{
    float sink = sink_of(dt, p, h);
    double sum = 0;

    for (int64_t b = 0; b < p->b; b++)
        for (int64_t i = 0; i < p->t; i++) {
            double probability = exp((double)(sink - p->lse[(b * p->heads + h) * p->t + i]));

            sum += probability * (double)delta_of(dt, p, dout, b, i, h);
        }
    p->dsink[h] -= (float)sum;
}

void ISA_FN(attention_sink_loop)(struct device *dev, enum dtype dt, const struct attention *p, const struct attention_view *dout)
{
#pragma omp parallel for num_threads(cpu_team(dev, p->b * p->heads * p->t * p->d)) schedule(static)
    for (int64_t h = 0; h < p->heads; h++)
        BY_DTYPE(dt, sink_head(DT, p, dout, h));
}
