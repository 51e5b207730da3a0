#include "kernels/matmul_amx_simd.h"

#include <omp.h>

#include "kernels/amx_simd.h"

#if defined(__AVX512BW__)

enum {
    ROWS = MATMUL_AMX_ROWS, COLS = MATMUL_AMX_COLS, GROUP = MATMUL_AMX_GROUP, CHUNK = MATMUL_AMX_DEPTH / AMX_DEPTH,
    DEEP = MATMUL_AMX_DEEP / AMX_DEPTH
};

/* Sides (32 rows of A, or columns of B) of a matrix are packed by CHUNK steps of k: chunk by chunk, in each side by side, of each
 * step by step. */
struct product {
    const struct matmul *p;
    int64_t steps, panels; /* of k; of columns */
    uint16_t *b;           /* packed */
};

/* A thread's. */
struct worker {
    uint16_t *a;       /* packed: rows row .. row + ROWS, steps step .. step + DEEP; row -1: nothing */
    float *sums;       /* of blocks, one behind the other */
    int64_t row, step;
};

INLINE int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where step l of side i lies, of n sides and `steps` steps. */
INLINE int64_t place(int64_t i, int64_t n, int64_t l, int64_t steps)
{
    int64_t chunk = l / CHUNK * CHUNK;

    return (chunk * n + i * least(CHUNK, steps - chunk) + l - chunk) * AMX_STEP;
}

/* One step of one side: rows (or columns, for B) s .. of n_s, from inner index l on of n_l.  inside: the inner dimension lies
 * along the stored rows. */
INLINE void pack_step(bool is_b, bool inside, uint16_t *out, const uint16_t *x, int64_t ld, int64_t s, int64_t n_s, int64_t l,
                      int64_t n_l)
{
    vi v[16];

    for (int h = 0; h < 2; h++, s += 16, out += AMX_STEP / 2) {
        if (inside)
            amx_rows(v, x + s * ld + l, ld, n_s - s, n_l - l);
        else
            amx_pairs(v, x + l * ld + s, ld, n_l - l, n_s - s);
        if (inside == is_b)
            amx_turn(v);
        for (int i = 0; i < 16; i++)
            _mm512_store_si512(out + 32 * i, v[i]);
    }
}

NOINLINE void pack_b(const struct product *x, int64_t panel, int64_t step)
{
    const struct matmul *p = x->p;
    uint16_t *out = x->b + place(panel, x->panels, step, x->steps);

    if (p->trans_b)
        pack_step(true, true, out, p->b, p->ldb, panel * AMX_SIDE, p->n, step * AMX_DEPTH, p->k);
    else
        pack_step(true, false, out, p->b, p->ldb, panel * AMX_SIDE, p->n, step * AMX_DEPTH, p->k);
}

NOINLINE void pack_a(const struct product *x, struct worker *w, int64_t row, int64_t step)
{
    const struct matmul *p = x->p;
    int64_t sides = parts(least(ROWS, p->m - row), AMX_SIDE), steps = least(DEEP, x->steps - step);

    if (w->row == row && w->step == step)
        return;
    w->row = row;
    w->step = step;
    for (int64_t i = 0; i < sides; i++)
        for (int64_t l = 0; l < steps; l++) {
            uint16_t *out = w->a + place(i, sides, l, steps);

            if (p->trans_a)
                pack_step(false, false, out, p->a, p->lda, row + i * AMX_SIDE, p->m, (step + l) * AMX_DEPTH, p->k);
            else
                pack_step(false, true, out, p->a, p->lda, row + i * AMX_SIDE, p->m, (step + l) * AMX_DEPTH, p->k);
        }
}

/* A block's sums to C, with all that belongs to it. */
INLINE void finish(enum dtype dt_c, const struct matmul *p, const float *sums, int64_t i0, int64_t j0)
{
    for (int64_t i = 0; i < AMX_SIDE && i0 + i < p->m; i++)
        for (int64_t j = 0; j < AMX_SIDE && j0 + j < p->n; j += VW) {
            int64_t at = (i0 + i) * p->ldc + j0 + j, left = p->n - j0 - j;
            vf v = vf_load(sums + i * AMX_SIDE + j);

            if (p->bias)
                v = v + vf_get(DTYPE_BF16, p->bias, j0 + j, left);
            if (p->beta != 0)
                v = v + vf_get(dt_c, p->c, at, left);
            vf_put(dt_c, p->c, at, left, v);
        }
}

/* Adds a chunk, from step l on, to the sums of the columns from j0 to j1, and finishes them if it is the last. */
NOINLINE void add_chunk(const struct product *x, const struct worker *w, float *sums, int64_t j0, int64_t j1, int64_t l)
{
    const struct matmul *p = x->p;
    int64_t sides = parts(least(ROWS, p->m - w->row), AMX_SIDE), n = least(CHUNK, x->steps - l);
    bool last = l + n == x->steps;
    const uint16_t *a = w->a + place(0, sides, l - w->step, least(DEEP, x->steps - w->step));
    const uint16_t *b = x->b + place(j0 / AMX_SIDE, x->panels, l, x->steps);

    for (int64_t j = j0; j < j1; j += AMX_SIDE, b += n * AMX_STEP)
        for (int64_t i = 0; i < sides; i++, sums += last && l == 0 ? 0 : AMX_SIDE * AMX_SIDE) {
            amx_block(sums, a + i * n * AMX_STEP, b, n, l > 0, (const char *)(b + n * AMX_STEP) + i * n * 256);
            if (last && p->dt_c == DTYPE_BF16)
                finish(DTYPE_BF16, p, sums, w->row + i * AMX_SIDE, j);
            else if (last)
                finish(DTYPE_F32, p, sums, w->row + i * AMX_SIDE, j);
        }
}

static void piece(const struct product *x, struct worker *w, int64_t row, int64_t col)
{
    int64_t end = least(x->p->n, col + COLS);

    for (int64_t step = 0; step < x->steps; step += DEEP) {
        pack_a(x, w, row, step);
        for (int64_t j = col; j < end; j += GROUP)
            for (int64_t l = step; l < least(x->steps, step + DEEP); l += CHUNK)
                add_chunk(x, w, w->sums + (x->steps > DEEP ? (j - col) * ROWS : 0), j, least(end, j + GROUP), l);
    }
}

void ISA_FN(matmul_amx_loop)(const struct matmul *p, void *scratch, int threads)
{
    const struct product x = {p, parts(p->k, AMX_DEPTH), parts(p->n, AMX_SIDE), scratch};
    int64_t rows = parts(p->m, ROWS), cols = parts(p->n, COLS), chunk = rows * cols / (8 * threads);

#pragma omp parallel num_threads(threads)
    {
        char *mine = (char *)(x.b + x.panels * x.steps * AMX_STEP) + omp_get_thread_num() * (MATMUL_AMX_A + MATMUL_AMX_SUMS);
        struct worker w = {.a = (void *)mine, .sums = (void *)(mine + MATMUL_AMX_A), .row = -1};

#pragma omp for schedule(static)
        for (int64_t l = 0; l < x.steps; l++)
            for (int64_t i = 0; i < x.panels; i++)
                pack_b(&x, i, l);
        amx_begin();
#pragma omp for schedule(dynamic, chunk > 1 ? chunk : 1)
        for (int64_t i = 0; i < rows * cols; i++)
            piece(&x, &w, i / cols * ROWS, i % cols * COLS);
        amx_end();
    }
}

#else
void ISA_FN(matmul_amx_loop)(const struct matmul *p, void *scratch, int threads)
{
    (void)p, (void)scratch, (void)threads;
    __builtin_trap();
}
#endif
