#include <omp.h>
#include <stdlib.h>

#include "kernels/check.h"
#include "kernels/cpu.h"
#include "kernels/matmul_dnnl.h"

/* Threads take pieces of the groups' results, of about ROWS by COLS, cut without regard to how many threads there are. */
enum { ROWS = 256, COLS = 512, UNIT = 64 };

static int64_t rows_of(const struct matmul_grouped *q, int64_t i)
{
    int64_t n = q->count ? q->count[i] : matmul_grouped_rows(q) / q->groups;

    return q->most && n > q->most ? q->most : n;
}

static int check_counts(const struct matmul_grouped *q, struct err *e)
{
    int64_t all = matmul_grouped_rows(q), sum = 0;

    for (int64_t i = 0; i < q->groups; i++) {
        int64_t n = rows_of(q, i);

        if (n < 0 || n > all - sum)
            return err_set(e, ERR_ARG, "matmul_grouped: %lld rows of group %lld, behind %lld of %lld", (long long)n, (long long)i,
                           (long long)sum, (long long)all);
        sum += n;
    }
    return 0;
}

static int sums_of(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    for (int64_t i = 0, first = 0, n; q->sums && i < q->groups; i++, first += n) {
        const struct matmul p = matmul_group(q, i, first, n = rows_of(q, i));

        TRY(vec_colsum_cpu(dev, p.dt, q->sums + i * q->step_bias, p.a, n, p.m, p.lda, e));
    }
    return 0;
}

static int one_by_one(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    for (int64_t i = 0, first = 0, n; i < q->groups; i++, first += n) {
        struct matmul p = matmul_group(q, i, first, n = rows_of(q, i));

        p.ragged = true;
        TRY(matmul_cpu(dev, &p, e));
    }
    return 0;
}

#if HAVE_DNNL
/* How a length is cut: into equal parts but for the last, `most` at most. */
static int64_t part_of(int64_t n, int64_t most)
{
    int64_t parts = (n + most - 1) / most;

    return parts < 2 ? n : ((n + parts - 1) / parts + UNIT - 1) / UNIT * UNIT;
}
static int64_t parts_in(int64_t n, int64_t part)
{
    return n ? (n + part - 1) / part : 0;
}

/* A piece of a result. */
struct piece {
    int64_t group, first, n; /* which has n rows from row `first` on */
    int64_t row, col;
};

struct pieces {
    const struct matmul_grouped *q;
    int64_t high, wide; /* of a piece */
    struct piece *v;
    int64_t n;
    size_t scratch; /* of a thread */
};

static int cut(struct pieces *x, struct err *e)
{
    const struct matmul *p = &x->q->of;
    int64_t most = 0;

    x->high = p->trans_a ? part_of(p->m, ROWS) : ROWS;
    x->wide = part_of(p->n, COLS);
    for (int64_t i = 0; i < x->q->groups; i++)
        most += parts_in(p->trans_a ? p->m : rows_of(x->q, i), x->high) * parts_in(p->n, x->wide);
    x->v = malloc((size_t)(most + 1) * sizeof *x->v);
    if (!x->v)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0, first = 0, n; i < x->q->groups; i++, first += n) {
        n = rows_of(x->q, i);
        for (int64_t row = 0; row < (p->trans_a ? p->m : n); row += x->high)
            for (int64_t col = 0; col < p->n; col += x->wide)
                x->v[x->n++] = (struct piece){i, first, n, row, col};
    }
    return 0;
}

static struct matmul product_of(const struct pieces *x, const struct piece *at)
{
    struct matmul p = matmul_group(x->q, at->group, at->first, at->n);
    size_t w = dtype_size(p.dt);

    p.a = (const char *)p.a + (size_t)(at->row * (p.trans_a ? 1 : p.lda)) * w;
    p.b = (const char *)p.b + (size_t)(at->col * (p.trans_b ? p.ldb : 1)) * w;
    p.c = (char *)p.c + (size_t)(at->row * p.ldc + at->col) * dtype_size(p.dt_c);
    p.bias = p.bias ? (const char *)p.bias + (size_t)at->col * w : NULL;
    p.m = p.m - at->row < x->high ? p.m - at->row : x->high;
    p.n = p.n - at->col < x->wide ? p.n - at->col : x->wide;
    return p;
}

/* Plans for all sizes that there are. */
static int prepare(struct device *dev, struct pieces *x, struct err *e)
{
    bool seen[16 + 64][8] = {{false}};

    if (x->q->of.dt != DTYPE_BF16)
        return 0;
    matmul_dnnl_begin(dev);
    for (int64_t i = 0; i < x->n; i++) {
        struct matmul p = product_of(x, &x->v[i]);
        int ends = 2 * (p.m < x->high && p.trans_a) + (p.n < x->wide);

        for (int64_t rows = p.trans_a ? p.k : p.m, n; rows; rows -= n) {
            bool *here;

            *(p.trans_a ? &p.k : &p.m) = n = matmul_dnnl_rows(rows);
            here = &seen[n < 16 ? n : 16 + __builtin_ctzll((unsigned long long)n)][4 * (p.beta == 1) + ends];
            if (!*here)
                TRY(matmul_dnnl_prepare(dev, &p, &x->scratch, e));
            *here = true;
            p.beta = p.trans_a ? 1 : p.beta;
        }
    }
    return 0;
}

/* One piece by one thread. */
static int do_piece(struct device *dev, const struct matmul *p, void *scratch, struct err *e)
{
    if (p->k)
        return matmul_dnnl_alone(dev, p, scratch, e);
    for (int64_t i = 0; i < p->m && p->beta == 0; i++) /* nobody's gradient */
        memset((float *)p->c + i * p->ldc, 0, (size_t)p->n * sizeof(float));
    return 0;
}

static int run(struct device *dev, const struct pieces *x, struct err *e)
{
    size_t each = (x->scratch + 127) / 64 * 64;
    int rc = 0;
    void *scratch;

    TRY(cpu_scratch(dev, &scratch, each * (size_t)dev->threads, e));
#pragma omp parallel num_threads(dev->threads)
    {
        char *mine = (char *)scratch + each * (size_t)omp_get_thread_num();
        struct err why;

#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < x->n; i++) {
            const struct matmul p = product_of(x, &x->v[i]);
            int failed = do_piece(dev, &p, mine, &why);

            if (failed < 0) {
#pragma omp critical(matmul_grouped_failed)
                {
                    rc = failed;
                    *e = why;
                }
            }
        }
    }
    return rc;
}

static int in_pieces(struct device *dev, const struct matmul_grouped *q, struct err *e)
{
    struct pieces x = {.q = q};
    int rc = cut(&x, e);

    rc = rc ? rc : prepare(dev, &x, e);
    if (rc == ERR_UNSUPPORTED)
        rc = one_by_one(dev, q, e);
    else
        rc = rc ? rc : run(dev, &x, e);
    free(x.v);
    return rc;
}
#endif

int matmul_grouped_cpu(struct device *dev, const struct matmul_grouped *p, struct err *e)
{
    struct matmul_grouped q;

    TRY(check_matmul_grouped(p, &q, e));
    TRY(check_counts(&q, e));
    TRY(sums_of(dev, &q, e));
#if HAVE_DNNL
    if ((q.of.dt == DTYPE_F32 || dev->fast_bf16) && (q.of.k || q.of.trans_a) && q.of.n) {
        omp_set_num_threads(dev->threads);
        return in_pieces(dev, &q, e);
    }
#endif
    return one_by_one(dev, &q, e);
}
