#include "train/pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "kernels/eight_bit.h"

#define PREFIX(part, prefix) prefix,
const char *const checkpoint_prefix[CHECKPOINT_KINDS] = {"", CHECKPOINT_STATES(PREFIX) "fp8."};

int params_pieces(const struct params *p, enum checkpoint_part part, void *slab, enum dtype dt, struct piece *v)
{
    int n = 0;

    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->v[i];
        int64_t cols = q->dims == 2 ? q->shape[1] : 1;
        char *data = slab ? (char *)slab + q->at * dtype_size(dt) : NULL;

        for (int k = 0; k < q->parts; k++) {
            if (k && q->first[k] == q->first[k - 1] + q->part[k - 1]) { /* all rows are here */
                v[n - 1].rows += q->part[k];
                continue;
            }
            v[n++] = (struct piece){
                .part = part, .name = q->name, .dims = q->dims, .shape = {q->whole[0], q->whole[1]}, .row = q->first[k],
                .rows = q->part[k], .col = q->column, .cols = cols, .data = data, .dt = dt,
                .ld = cols,
            };
            data = data ? data + (size_t)(q->part[k] * cols) * dtype_size(dt) : NULL;
        }
    }
    return n;
}

/* Appends rows and cols from (row, col) within p on. */
static int add(struct piece *out, int n, const struct piece *p, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    if (rows < 1 || cols < 1)
        return n;
    out[n] = *p;
    out[n].row += row;
    out[n].rows = rows;
    out[n].col += col;
    out[n].cols = cols;
    if (p->data)
        out[n].data = piece_at(p, row * p->ld + col);
    return n + 1;
}

/* What is left of a row, whole rows, what begins a row. */
int piece_range(const struct piece *p, int64_t first, int64_t n, struct piece out[3])
{
    int64_t row = first / p->cols, col = first % p->cols, head = 0;
    int k = 0;

    if (col || n < p->cols) {
        head = p->cols - col < n ? p->cols - col : n;
        k = add(out, k, p, row++, 1, col, head);
    }
    k = add(out, k, p, row, (n - head) / p->cols, 0, p->cols);
    return add(out, k, p, row + (n - head) / p->cols, 1, 0, (n - head) % p->cols);
}

/* n bf16 numbers at the end of out become fp32. */
static void widen(float *out, int64_t n)
{
    const uint16_t *low = (const uint16_t *)(const void *)out + n;

    for (int64_t i = 0; i < n; i++) /* what is written has been read, up to the number at hand */
        out[i] = bf16_to(low[i]);
}

static int get(struct device *dev, void *to, const void *from, size_t bytes, struct err *e)
{
    if (dev)
        return device_get(dev, to, from, bytes, e);
    memcpy(to, from, bytes);
    return 0;
}

enum { BLOCKS = 1024 }; /* of eight bits, at a time */

/* Numbers of eight bits from element i of p on, up to n; *got: how many. */
static int get_codes(struct device *dev, const struct piece *p, int64_t i, int64_t n, float *out, int64_t *got, struct err *e)
{
    const uint8_t *from = piece_at(p, i);
    bool is_signed = p->part != CHECKPOINT_EXP_AVG_SQ;
    int64_t at = from - p->codes, block = at / EIGHT_BIT_BLOCK, next, end = (block + BLOCKS) * EIGHT_BIT_BLOCK - at;
    float scale[BLOCKS];
    uint8_t *code;

    *got = end < n ? end : n;
    code = (uint8_t *)(out + *got) - *got; /* their end: as in widen */
    TRY(get(dev, code, from, (size_t)*got, e));
    TRY(get(dev, scale, p->scale + block, (size_t)(eight_bit_blocks(at + *got) - block) * sizeof *scale, e));
    for (int64_t k = 0; k < *got; k = next) {
        int64_t b = (at + k) / EIGHT_BIT_BLOCK;

        next = (b + 1) * EIGHT_BIT_BLOCK - at < *got ? (b + 1) * EIGHT_BIT_BLOCK - at : *got;
        eight_bit_decode(eight_bit_levels(is_signed), code + k, scale[b - block], next - k, out + k);
    }
    return 0;
}

int piece_get(struct device *dev, const struct piece *p, int64_t first, int64_t n, float *out, struct err *e)
{
    while (n) {
        int64_t row = first / p->cols, col = first % p->cols, run = p->cols - col;
        size_t size;

        if (p->ld == p->cols || run > n)
            run = n;
        size = (size_t)run * dtype_size(p->dt);
        if (p->dt == DTYPE_8BIT)
            TRY(get_codes(dev, p, row * p->ld + col, run, out, &run, e));
        else
            TRY(get(dev, (char *)(out + run) - size, piece_at(p, row * p->ld + col), size, e));
        if (p->dt == DTYPE_BF16)
            widen(out, run);
        out += run;
        first += run;
        n -= run;
    }
    return 0;
}

/* ---- who writes what ---- */

/* A piece as the others see it. */
struct record {
    struct hash128 key; /* of tensor and rectangle */
    uint64_t tensor;    /* hash of part and name */
    int64_t size;       /* of the tensor, elements */
    int64_t rows, cols;
    int32_t rank, at;   /* who has it, and where in its table */
};

/* The ranks that have one piece. */
struct held {
    const struct record *piece; /* the first of them's */
    int n, me;                  /* which of them is this rank; < 0: none */
    int mine;                   /* its place in this rank's table */
    struct hash128 set;         /* of the ranks */
    int64_t before, all;        /* elements of the same set before it, and of the set */
};

static int by_key(const void *x, const void *y)
{
    const struct record *a = x, *b = y;

    if (a->key.hi != b->key.hi)
        return a->key.hi < b->key.hi ? -1 : 1;
    if (a->key.lo != b->key.lo)
        return a->key.lo < b->key.lo ? -1 : 1;
    return a->rank != b->rank ? a->rank - b->rank : a->at - b->at;
}

static int by_tensor(const void *x, const void *y)
{
    const struct held *a = x, *b = y;

    return (a->piece->tensor > b->piece->tensor) - (a->piece->tensor < b->piece->tensor);
}

/* Within a set as they stand in the table of its first rank. */
static int by_set(const void *x, const void *y)
{
    const struct held *a = x, *b = y;

    if (a->set.hi != b->set.hi)
        return a->set.hi < b->set.hi ? -1 : 1;
    if (a->set.lo != b->set.lo)
        return a->set.lo < b->set.lo ? -1 : 1;
    return a->piece->at - b->piece->at;
}

static uint64_t tensor_hash(const struct piece *p)
{
    return hash_xxh3_64_seed(span_of(p->name), (uint64_t)p->part + 1);
}

static struct record describe(const struct piece *p, int rank, int at)
{
    const int64_t place[] = {p->dims, p->shape[0], piece_width(p), p->row, p->rows, p->col, p->cols};
    XXH128_hash_t h = XXH3_128bits_withSeed(place, sizeof place, tensor_hash(p));

    return (struct record){{h.low64, h.high64}, tensor_hash(p), p->shape[0] * piece_width(p), p->rows, p->cols, rank, at};
}

/* All ranks' records, *n_all of them, on all. */
static int gather(struct comm *group, const struct piece *v, int n, struct record **all, int *n_all, struct err *e)
{
    int64_t mine = n, most = 0, *counts = calloc((size_t)group->size, sizeof *counts);
    struct record *each = NULL, *own = NULL;
    int rc = counts ? comm_all_gather(group, &mine, counts, 1, COMM_I64, e) : err_set(e, ERR_NOMEM, "out of memory");

    for (int r = 0; rc == 0 && r < group->size; r++)
        most = counts[r] > most ? counts[r] : most;
    if (rc == 0) {
        own = calloc((size_t)most + 1, sizeof *own);
        each = calloc((size_t)(most * group->size) + 1, sizeof *each);
        if (!own || !each)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int i = 0; rc == 0 && i < n; i++)
        own[i] = describe(&v[i], group->rank, i);
    if (rc == 0)
        rc = comm_all_gather(group, own, each, (size_t)most * sizeof *own, COMM_U8, e);
    *n_all = 0;
    for (int r = 0; rc == 0 && r < group->size; r++) {
        memmove(each + *n_all, each + r * most, (size_t)counts[r] * sizeof *each);
        *n_all += (int)counts[r];
    }
    free(counts);
    free(own);
    *all = each;
    return rc;
}

static int find_holders(struct record *r, int n, int rank, struct held *h)
{
    int k = 0;

    qsort(r, (size_t)n, sizeof *r, by_key);
    for (int i = 0, next; i < n; i = next, k++) {
        h[k] = (struct held){.piece = &r[i], .me = -1};
        for (next = i; next < n && r[next].key.lo == r[i].key.lo && r[next].key.hi == r[i].key.hi; next++) {
            if (next > i && r[next].rank == r[next - 1].rank)
                continue; /* given twice */
            if (r[next].rank == rank) {
                h[k].me = h[k].n;
                h[k].mine = r[next].at;
            }
            h[k].set.lo = hash_mix64(h[k].set.lo + 2 * (uint64_t)r[next].rank + 1);
            h[k].set.hi = hash_mix64(h[k].set.hi ^ h[k].set.lo);
            h[k].n++;
        }
    }
    return k;
}

static int check_all_there(struct held *h, int n, const struct piece *v, int n_v, struct err *e)
{
    qsort(h, (size_t)n, sizeof *h, by_tensor);
    for (int i = 0, next; i < n; i = next) {
        int64_t have = 0;

        for (next = i; next < n && h[next].piece->tensor == h[i].piece->tensor; next++)
            have += h[next].piece->rows * h[next].piece->cols;
        for (int k = 0; have < h[i].piece->size && k < n_v; k++)
            if (tensor_hash(&v[k]) == h[i].piece->tensor)
                return err_set(e, ERR_ARG, "of '%s%s' all ranks together have %" PRId64 " of %" PRId64 " elements",
                               checkpoint_prefix[v[k].part], v[k].name, have, h[i].piece->size);
    }
    return 0;
}

/* Sets before and all. */
static void lay_end_to_end(struct held *h, int n)
{
    qsort(h, (size_t)n, sizeof *h, by_set);
    for (int i = 0, next; i < n; i = next) {
        int64_t all = 0;

        for (next = i; next < n && h[next].set.lo == h[i].set.lo && h[next].set.hi == h[i].set.hi; next++) {
            h[next].before = all;
            all += h[next].piece->rows * h[next].piece->cols;
        }
        for (int k = i; k < next; k++)
            h[k].all = all;
    }
}

/* The row of the piece at which the stretch of its j-th holder begins. */
static int64_t stretch(const struct held *h, int j)
{
    int64_t at = (int64_t)((__int128)h->all * j / h->n) - h->before;
    int64_t row = at < 0 ? 0 : (at + h->piece->cols / 2) / h->piece->cols;

    return row < h->piece->rows ? row : h->piece->rows;
}

int pieces_share(struct comm *group, const struct piece *v, int n, struct piece **out, int *n_out, struct err *e)
{
    struct record *r = NULL;
    struct held *h = NULL;
    int64_t *rows = calloc((size_t)n * 2 + 1, sizeof *rows); /* of each of v: from, to */
    int n_r, n_h = 0, lack = 0, rc;

    *n_out = 0;
    *out = NULL;
    rc = gather(group, v, n, &r, &n_r, e);
    if (rc == 0) {
        h = calloc((size_t)n_r + 1, sizeof *h);
        *out = malloc(((size_t)n + 1) * sizeof **out);
        if (!h || !rows || !*out)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    if (rc == 0) {
        n_h = find_holders(r, n_r, group->rank, h);
        lack = check_all_there(h, n_h, v, n, e);
        rc = comm_agree(group, &lack, e, e);
    }
    if (rc == 0)
        rc = lack;
    if (rc == 0) {
        lay_end_to_end(h, n_h);
        for (int i = 0; i < n_h; i++)
            if (h[i].me >= 0) {
                rows[2 * h[i].mine] = stretch(&h[i], h[i].me);
                rows[2 * h[i].mine + 1] = stretch(&h[i], h[i].me + 1);
            }
        for (int i = 0; i < n; i++)
            *n_out = add(*out, *n_out, &v[i], rows[2 * i], rows[2 * i + 1] - rows[2 * i], 0, v[i].cols);
    }
    free(r);
    free(h);
    free(rows);
    return rc;
}
