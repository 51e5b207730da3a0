// Stands for cuBLASLt where kernels run on the CPU: the same interface (kernels/lt_api.h) over plain loops, column-major as the
// library is.  It checks what it is given, and lacks what the library lacks in places: the GELU epilogues are for bf16 alone and
// want matrices of a multiple of 8 rows; a bias wants the type of the result, or bf16 with FP8, which is for transposed A alone
// and m, k and strides of a multiple of 16 bytes, and has no derivative of GELU; by blocks it wants whole ones in k, scales of
// rows for one matrix at least, and no fast sums.  An algorithm is for addresses of the
// alignment that was asked for, and for the workspace that it names.  Where it may, it adds up the
// parts of a split k in bf16, if that is what the result is.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/dtype.h"
#include "kernels/fp8_convert.h"
#include "kernels/lt_api.h"
#include "tests/simt_device.h"

int simt_lt_asked;
bool simt_lt_disobeys;

namespace {

enum { DESC = 0x4d1, LAYOUT, PREF, HANDLE, ALGO };

struct desc {
    int kind, compute, scale, op_a, op_b, epilogue, bias_type;
    const void *bias;
    void *aux;
    int64_t aux_ld;
    const float *scale_a, *scale_b;
    int8_t fast;
    int32_t mode_a, mode_b;
};
struct layout {
    int kind, type;
    int64_t rows, cols, ld;
};
struct pref {
    int kind;
    uint64_t workspace;
    uint32_t align[4], reductions;
};

/* What an algorithm's words are: ALGO, the alignment it is for, the workspace it needs, how many parts k has, ..., its number. */
enum { IS, ALIGN, SPACE, PARTS, NUMBER = 7 };
enum { MOST_PARTS = 4 };

bool fp8(int type) { return type == LT_E4M3 || type == LT_E5M2; }

float at(int type, const void *p, int64_t i)
{
    if (fp8(type))
        return fp8_to(type == LT_E4M3 ? FP8_E4M3 : FP8_E5M2, ((const uint8_t *)p)[i]);
    return type == LT_BF16 ? bf16_to(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}
void put(int type, void *p, int64_t i, float x)
{
    if (type == LT_BF16)
        ((uint16_t *)p)[i] = bf16_of(x);
    else
        ((float *)p)[i] = x;
}

size_t version(void) { return 2; }
int create(void **h)
{
    static int handle = HANDLE;
    *h = &handle;
    return 0;
}
int destroy(void *) { return 0; }

int desc_create(void **d, int compute, int scale)
{
    desc *n = new desc();
    n->kind = DESC, n->compute = compute, n->scale = scale, n->epilogue = LT_EPILOGUE_NONE, n->bias_type = -1;
    *d = n;
    return compute != LT_COMPUTE_F32 || scale != LT_F32;
}
int desc_destroy(void *d)
{
    delete (desc *)d;
    return 0;
}
int desc_set(void *to, int what, const void *v, size_t bytes)
{
    desc *d = (desc *)to;
    struct {
        int what;
        void *at;
        size_t bytes;
    } all[] = {{LT_DESC_TRANSA, &d->op_a, 4},     {LT_DESC_TRANSB, &d->op_b, 4},      {LT_DESC_EPILOGUE, &d->epilogue, 4},
               {LT_DESC_BIAS_POINTER, &d->bias, 8}, {LT_DESC_AUX_POINTER, &d->aux, 8}, {LT_DESC_AUX_LD, &d->aux_ld, 8},
               {LT_DESC_BIAS_TYPE, &d->bias_type, 4}, {LT_DESC_A_SCALE, &d->scale_a, 8}, {LT_DESC_B_SCALE, &d->scale_b, 8},
               {LT_DESC_FAST, &d->fast, 1}, {LT_DESC_A_SCALE_MODE, &d->mode_a, 4}, {LT_DESC_B_SCALE_MODE, &d->mode_b, 4}};

    for (auto &a : all)
        if (a.what == what && a.bytes == bytes) {
            memcpy(a.at, v, bytes);
            return d->kind != DESC;
        }
    return 7;
}

int layout_create(void **l, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    layout *n = new layout();
    *n = {LAYOUT, type, (int64_t)rows, (int64_t)cols, ld};
    *l = n;
    return (type != LT_F32 && type != LT_BF16 && !fp8(type)) || ld < (int64_t)rows;
}
int layout_destroy(void *l)
{
    delete (layout *)l;
    return 0;
}
int pref_create(void **p)
{
    *p = new pref{PREF, 0, {256, 256, 256, 256}, LT_REDUCTION_ANY};
    return 0;
}
int pref_destroy(void *p)
{
    delete (pref *)p;
    return 0;
}
int pref_set(void *p, int what, const void *v, size_t bytes)
{
    if (what == LT_PREF_WORKSPACE && bytes == 8)
        memcpy(&((pref *)p)->workspace, v, 8);
    else if (what == LT_PREF_REDUCTIONS && bytes == 4)
        memcpy(&((pref *)p)->reductions, v, 4);
    else if (what < LT_PREF_ALIGN_A || what > LT_PREF_ALIGN_D || bytes != 4 || *(const uint32_t *)v < 16)
        return 7;
    else
        memcpy(&((pref *)p)->align[what - LT_PREF_ALIGN_A], v, 4);
    return 0;
}

bool gelu(const desc *d) { return d->epilogue & 0xe0; }
bool summing(const desc *d) { return d->epilogue == LT_EPILOGUE_BGRADB; }
bool biased(const desc *d) { return d->epilogue & LT_EPILOGUE_BIAS; }

/* 0: can be done; 15: not supported; 7: makes no sense. */
int fits(const desc *d, const layout *a, const layout *b, const layout *c)
{
    int64_t m = d->op_a ? a->cols : a->rows, k = d->op_a ? a->rows : a->cols, n = d->op_b ? b->rows : b->cols;

    if (d->kind != DESC || a->kind != LAYOUT || b->kind != LAYOUT || c->kind != LAYOUT || fp8(a->type) != fp8(b->type) ||
        (!fp8(a->type) && a->type != b->type) || k != (d->op_b ? b->cols : b->rows) || c->rows != m || c->cols != n || k < 1)
        return 7;
    if (summing(d) && (a->type != LT_BF16 || !d->bias || d->bias_type != LT_F32 || c->type != LT_F32))
        return 15;
    if (d->epilogue != LT_EPILOGUE_NONE && d->epilogue != LT_EPILOGUE_BIAS && d->epilogue != LT_EPILOGUE_GELU_AUX &&
        d->epilogue != (LT_EPILOGUE_GELU_AUX | LT_EPILOGUE_BIAS) && d->epilogue != LT_EPILOGUE_DGELU && !summing(d))
        return 7;
    if (fp8(a->type) && (!d->op_a || d->op_b || m % 16 || k % 16 || fp8(c->type)))
        return 15;
    if (fp8(a->type) && (a->ld % 16 || b->ld % 16 || c->ld % 8))
        return 15;
    if (fp8(a->type) && (!d->scale_a || !d->scale_b))
        return 7;
    if ((d->mode_a == LT_SCALE_TENSOR) != (d->mode_b == LT_SCALE_TENSOR) ||
        (d->mode_a && (!fp8(a->type) || k % FP8_BLOCK || d->fast)) ||
        (d->mode_a == LT_SCALE_SQUARES && d->mode_b == LT_SCALE_SQUARES))
        return 15;
    if (a->type == LT_E5M2 && b->type == LT_E5M2)
        return 15;
    if (gelu(d) && fp8(a->type) && d->epilogue == LT_EPILOGUE_DGELU)
        return 15;
    if (gelu(d) && (c->type != LT_BF16 || m % 8 || d->aux_ld % 8))
        return 15;
    if (gelu(d) && (!d->aux || d->aux_ld < m))
        return 7;
    return biased(d) && (!d->bias || d->bias_type != (fp8(a->type) ? (int)LT_BF16 : c->type)) ? 15 : 0;
}

int check(void *, void *d, void *a, void *b, void *c, void *, const lt_algo *algo, lt_result *r)
{
    int rc = fits((desc *)d, (layout *)a, (layout *)b, (layout *)c);

    *r = lt_result();
    r->algo = *algo;
    r->workspace = algo->data[SPACE];
    return rc ? rc : algo->data[IS] == ALGO && algo->data[NUMBER] < 3 ? 0 : 15;
}

int heuristic(void *, void *d, void *a, void *b, void *c, void *, void *p, int most, lt_result *r, int *count)
{
    int rc = fits((desc *)d, (layout *)a, (layout *)b, (layout *)c);
    const uint32_t *align = ((pref *)p)->align;
    bool in_bf16 = ((layout *)c)->type == LT_BF16 &&
                   (simt_lt_disobeys || ((pref *)p)->reductions & LT_REDUCTION_OUTPUT_TYPE ||
                    (((desc *)d)->epilogue != LT_EPILOGUE_NONE && ((pref *)p)->reductions));

    simt_lt_asked++;
    *count = 0;
    if (rc || ((pref *)p)->workspace < 1 << 20)
        return rc ? rc : 7;
    for (int i = 0; i < 3 && i < most; i++, ++*count) {
        r[i] = lt_result();
        r[i].algo.data[IS] = ALGO;
        r[i].algo.data[ALIGN] = align[0] < align[3] ? align[0] : align[3];
        r[i].algo.data[SPACE] = r[i].workspace = (size_t)i << 20;
        r[i].algo.data[NUMBER] = (uint64_t)i;
        r[i].algo.data[PARTS] = in_bf16 ? MOST_PARTS : 1;
        r[i].state = i == 1 ? 14 : 0;
    }
    return 0;
}

int algo_get(const lt_algo *algo, int what, void *value, size_t bytes, size_t *wrote)
{
    int32_t parts = (int32_t)algo->data[PARTS];
    int32_t is = what == LT_ALGO_SPLIT_K ? parts : what == LT_ALGO_ID ? (int32_t)algo->data[NUMBER]
                 : what == LT_ALGO_REDUCTION                          ? (parts > 1 ? LT_REDUCTION_OUTPUT_TYPE : 0)
                                                                      : 1;

    *wrote = sizeof is;
    if (bytes != sizeof is)
        return 7;
    memcpy(value, &is, sizeof is);
    return 0;
}

float gelu_of(float x) { return 0.5f * x * (1 + tanhf(0.797884561f * (x + 0.044715f * x * x * x))); }
float dgelu_of(float x)
{
    float u = 0.797884561f * (x + 0.044715f * x * x * x), t = tanhf(u);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.797884561f * (1 + 3 * 0.044715f * x * x);
}

/* Where a matrix lies. */
void *placed(const void *p, const layout &l, const char *what)
{
    size_t each = fp8(l.type) ? 1 : l.type == LT_BF16 ? 2 : 4;

    return simt_place(p, l.rows && l.cols ? (size_t)((l.cols - 1) * l.ld + l.rows) * each : 0, what);
}

enum fp8_scales scales_by(int32_t mode)
{
    return mode == LT_SCALE_ROWS ? FP8_OF_ROWS : mode == LT_SCALE_SQUARES ? FP8_OF_SQUARES : FP8_OF_TENSOR;
}
const float *placed_scales(const float *p, int32_t mode, const layout &l, const char *what)
{
    int64_t n = mode ? fp8_scales_floats(scales_by(mode), l.cols, l.rows) : 1;

    return (const float *)simt_place(p, (size_t)n * sizeof(float), what);
}
/* What number k of line i is multiplied by; of one scale for all that is done behind the sum. */
float scale_of(const float *p, int32_t mode, const layout &l, int64_t i, int64_t k)
{
    enum fp8_scales by = scales_by(mode);

    return mode ? p[fp8_scale_at(by, fp8_scales_ld(by, l.cols, l.rows), i, k)] : 1;
}

/* What an epilogue and scales need, all of it where it lies. */
void place_all(desc &d, const layout &a, const layout &b, const layout &c)
{
    layout aux = c;

    aux.ld = d.aux_ld;
    if (summing(&d))
        d.bias = simt_place(d.bias, (size_t)c.cols * 4, "cuBLASLt: the sums");
    else
        d.bias = biased(&d) ? simt_place(d.bias, (size_t)c.rows * (d.bias_type == LT_BF16 ? 2 : 4), "cuBLASLt: the bias") : NULL;
    d.aux = gelu(&d) ? placed(d.aux, aux, "cuBLASLt: what goes into the activation") : NULL;
    d.scale_a = placed_scales(d.scale_a, d.mode_a, a, "cuBLASLt: A's scales");
    d.scale_b = placed_scales(d.scale_b, d.mode_b, b, "cuBLASLt: B's scales");
}

/* The product itself, k in `parts`; what describes it are copies. */
void product(const desc *d, const layout *a, const layout *b, const layout *c, const void *pa, const void *pb, const void *pc,
             void *pd, float al, float be, int64_t parts)
{
    for (int64_t j = 0; j < c->cols && summing(d); j++) {
        float sum = 0;
        for (int64_t x = 0; x < (d->op_b ? b->cols : b->rows); x++)
            sum += at(b->type, pb, d->op_b ? x * b->ld + j : j * b->ld + x);
        ((float *)(uintptr_t)d->bias)[j] = sum;
    }
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) {
            int64_t k = d->op_a ? a->rows : a->cols;
            float s = 0;
            for (int64_t part = 0; part < parts; part++) {
                float sum = 0;
                for (int64_t x = k * part / parts; x < k * (part + 1) / parts; x++)
                    sum += at(a->type, pa, d->op_a ? i * a->ld + x : x * a->ld + i) *
                           at(b->type, pb, d->op_b ? x * b->ld + j : j * b->ld + x) * scale_of(d->scale_a, d->mode_a, *a, i, x) *
                           scale_of(d->scale_b, d->mode_b, *b, j, x);
                s += parts > 1 ? bf16_to(bf16_of(sum)) : sum;
            }
            s = al * (fp8(a->type) && !d->mode_a ? *d->scale_a * *d->scale_b : 1.0f) * s +
                (be != 0 ? be * at(c->type, pc, j * c->ld + i) : 0);
            if (biased(d))
                s += at(d->bias_type, d->bias, i);
            if ((d->epilogue & ~LT_EPILOGUE_BIAS) == LT_EPILOGUE_GELU_AUX) {
                put(c->type, d->aux, j * d->aux_ld + i, s);
                s = gelu_of(s);
            } else if (gelu(d)) {
                s *= dgelu_of(at(c->type, d->aux, j * d->aux_ld + i));
            }
            put(c->type, pd, j * c->ld + i, s);
        }
}

int matmul(void *, void *dd, const void *alpha, const void *pa, void *la, const void *pb, void *lb, const void *beta,
           const void *pc, void *lc, void *pd, void *ld, const lt_algo *algo, void *workspace, size_t bytes, void *)
{
    desc d = *(const desc *)dd;
    const layout a = *(const layout *)la, b = *(const layout *)lb, c = *(const layout *)lc;
    float al = *(const float *)alpha, be = *(const float *)beta;
    int64_t parts = (int64_t)algo->data[PARTS];
    lt_result r;
    int rc = check(NULL, dd, la, lb, lc, ld, algo, &r);

    if (rc || algo->data[7] == 1)
        return rc ? rc : 14;
    place_all(d, a, b, c);
    const void *at_a = placed(pa, a, "cuBLASLt: A"), *at_b = placed(pb, b, "cuBLASLt: B"), *at_c = placed(pc, c, "cuBLASLt: C");
    void *at_d = placed(pd, c, "cuBLASLt: D"), *space = simt_place(workspace, bytes, "cuBLASLt: its workspace");
    simt::in_stream([=] {
        memset(space, 0xff, bytes < 4096 ? bytes : 4096);
        product(&d, &a, &b, &c, at_a, at_b, at_c, at_d, al, be, parts);
    });
    return 0;
}

/* What the library takes amiss at a call, or runs into. */
int strict(void *h, void *dd, const void *alpha, const void *pa, void *la, const void *pb, void *lb, const void *beta,
           const void *pc, void *lc, void *pd, void *ld, const lt_algo *algo, void *workspace, size_t bytes, void *stream)
{
    const desc *d = (const desc *)dd;
    bool fp8_of = fp8(((const layout *)la)->type);
    uintptr_t all = (uintptr_t)pa | (uintptr_t)pb | (uintptr_t)pc | (uintptr_t)pd | (gelu(d) ? (uintptr_t)d->aux : 0);

    if (algo->data[ALIGN] < 16 || all % algo->data[ALIGN] || (uintptr_t)workspace % 256 || bytes < algo->data[SPACE]) {
        fprintf(stderr, "cuBLASLt's stand-in: an address or the workspace is not what the algorithm is for\n");
        return 7;
    }
    if (fp8_of && ((uintptr_t)d->scale_a | (uintptr_t)d->scale_b) % 16)
        return 15; /* as 13.1 does, whose proposals know nothing of it */
    return matmul(h, dd, alpha, pa, la, pb, lb, beta, pc, lc, pd, ld, algo, workspace, bytes, stream);
}

} // namespace

extern "C" const struct lt_api *cuda_lt(void)
{
    static const struct lt_api api = {version,        create,      destroy,      desc_create, desc_destroy, desc_set,
                                      layout_create,
                                      layout_destroy, pref_create, pref_destroy, pref_set,    heuristic,    check,     strict,
                                      algo_get};
    return getenv("SIMT_NO_LT") ? NULL : &api;
}
