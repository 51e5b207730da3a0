#include "train/slices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- names ---- */

int slice_name(const struct piece *p, char name[SLICE_NAME], struct err *e)
{
    int n = snprintf(name, SLICE_NAME, "%s%s", checkpoint_prefix[p->part], p->name);
    size_t at = n < SLICE_NAME ? (size_t)n : SLICE_NAME;

    if (!piece_whole(p)) {
        n += snprintf(name + at, SLICE_NAME - at, "[%" PRId64 ":%" PRId64 "/%" PRId64, p->row, p->row + p->rows, p->shape[0]);
        at = n < SLICE_NAME ? (size_t)n : SLICE_NAME;
        n += p->dims == 2 ? snprintf(name + at, SLICE_NAME - at, ",%" PRId64 ":%" PRId64 "/%" PRId64 "]", p->col,
                                     p->col + p->cols, p->shape[1])
                          : snprintf(name + at, SLICE_NAME - at, "]");
    }
    return n < SLICE_NAME ? 0 : err_set(e, ERR_ARG, "name too long: '%s%s'", checkpoint_prefix[p->part], p->name);
}

/* "from:to/all" at *s, which moves behind it. */
static bool parse_range(const char **s, int64_t *from, int64_t *n, int64_t *all)
{
    int64_t v[3];

    for (int i = 0; i < 3; i++) {
        char *end;

        if (**s < '0' || **s > '9')
            return false;
        v[i] = strtoll(*s, &end, 10);
        if (i < 2 && *end++ != ":/"[i])
            return false;
        *s = end;
    }
    *from = v[0];
    *n = v[1] - v[0];
    *all = v[2];
    return v[0] < v[1] && v[1] <= v[2] && v[2] < INT64_MAX;
}

static bool parse_place(const char *s, struct piece *p)
{
    if (*s++ != '[' || !parse_range(&s, &p->row, &p->rows, &p->shape[0]))
        return false;
    if (p->dims == 2 && (*s++ != ',' || !parse_range(&s, &p->col, &p->cols, &p->shape[1])))
        return false;
    return strcmp(s, "]") == 0;
}

int slice_parse(struct arena *a, const char *what, const struct safetensor *t, struct slice *s, struct err *e)
{
    struct span name = t->name;
    const char *bracket = name.n && name.p[name.n - 1] == ']' ? strrchr(name.p, '[') : NULL;
    struct piece *p = &s->at;

    if (strcmp(t->dtype, "F32") != 0 || t->dims < 1 || t->dims > 2)
        return err_set(e, ERR_FORMAT, "%s: '%s' is no vector or matrix in F32", what, name.p);
    *s = (struct slice){.data = t->data};
    *p = (struct piece){.dims = t->dims, .shape = {t->shape[0], t->shape[1]}, .rows = t->shape[0], .cols = 1};
    if (t->dims == 2)
        p->cols = t->shape[1];
    if (p->rows < 1 || p->cols < 1)
        return err_set(e, ERR_FORMAT, "%s: '%s' is empty", what, name.p);
    p->ld = p->cols;
    for (int k = CHECKPOINT_KINDS - 1; k > CHECKPOINT_WEIGHTS && p->part == CHECKPOINT_WEIGHTS; k--)
        if (strncmp(name.p, checkpoint_prefix[k], strlen(checkpoint_prefix[k])) == 0)
            p->part = (enum checkpoint_part)k;
    if (bracket) {
        int64_t rows = p->rows, cols = p->cols;

        if (!parse_place(bracket, p) || p->rows != rows || p->cols != cols)
            return err_set(e, ERR_FORMAT, "%s: '%s' is not in the shape that its name says", what, name.p);
        name.n = (size_t)(bracket - name.p);
    }
    name.p += strlen(checkpoint_prefix[p->part]);
    name.n -= strlen(checkpoint_prefix[p->part]);
    name = arena_dup(a, name);
    p->name = name.p;
    return name.p ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

/* ---- filling rectangles ---- */

struct rect {
    int64_t row, rows, col, cols;
};

/* What is being filled, from the n slices of its tensor. */
struct fill {
    const struct slice *v;
    int n, depth;
    struct device *dev;
    const struct piece *to; /* data NULL: nothing is copied */
    const char *what;
    struct err *e;
};

/* So many slices side by side make a recursion; no division of a model comes near. */
enum { DEPTH_MAX = 10000 };

static int hole(const struct fill *f, const struct rect *r)
{
    return err_set(f->e, ERR_FORMAT, "%s: rows %" PRId64 " to %" PRId64 ", columns %" PRId64 " to %" PRId64
                   " of '%s%s' are in none of its files", f->what, r->row, r->row + r->rows - 1, r->col,
                   r->col + r->cols - 1, checkpoint_prefix[f->to->part], f->to->name);
}

/* n fp32 numbers, of a file, to element `at` of a piece. */
static int put(const struct fill *f, int64_t at, const char *src, int64_t n)
{
    uint16_t low[4096];

    for (int64_t i = 0, k; i < n; i += k) {
        float x;

        k = f->to->dt == DTYPE_BF16 && n - i > 4096 ? 4096 : n - i;
        for (int64_t j = 0; f->to->dt == DTYPE_BF16 && j < k; j++) {
            memcpy(&x, src + (i + j) * 4, sizeof x);
            low[j] = bf16_of(x);
        }
        const void *from = f->to->dt == DTYPE_BF16 ? (const void *)low : src + i * 4;
        size_t bytes = (size_t)k * dtype_size(f->to->dt);

        if (!f->dev)
            memcpy(piece_at(f->to, at + i), from, bytes);
        else
            TRY(device_put(f->dev, piece_at(f->to, at + i), from, bytes, f->e));
    }
    return 0;
}

/* rows of cols, so many bytes apart. */
static int put_rows(const struct fill *f, int64_t at, const char *src, int64_t rows, int64_t cols, int64_t apart)
{
    if (cols * (int64_t)sizeof(float) == apart && cols == f->to->ld)
        return put(f, at, src, rows * cols);
    for (int64_t i = 0; i < rows; i++)
        TRY(put(f, at + i * f->to->ld, src + i * apart, cols));
    return 0;
}

static int copy(const struct fill *f, const struct slice *s, const struct rect *r)
{
    const struct piece *from = &s->at, *to = f->to;
    const int64_t step = from->cols * (int64_t)sizeof(float), few = step < SLICE_FETCH ? SLICE_FETCH / step : 1;
    const char *src = s->data.p + (r->row - from->row) * step + (r->col - from->col) * (int64_t)sizeof(float);
    int64_t at = (r->row - to->row) * to->ld + r->col - to->col;

    for (int64_t row = 0, n; row < r->rows; row += n, at += n * to->ld, src += n * step) {
        size_t bytes;

        n = r->rows - row < few ? r->rows - row : few;
        bytes = (size_t)((n - 1) * step + r->cols * (int64_t)sizeof(float));
        if (s->map && file_map_fetch(s->map, src, bytes, f->e) < 0)
            return err_wrap(f->e, "%s: '%s%s'", f->what, checkpoint_prefix[to->part], to->name);
        TRY(put_rows(f, at, src, n, r->cols, step));
        if (s->map)
            file_map_drop(s->map, src, bytes);
    }
    return 0;
}

static struct rect overlap(const struct rect *r, const struct piece *p)
{
    int64_t row = r->row > p->row ? r->row : p->row, col = r->col > p->col ? r->col : p->col;
    int64_t rows = (r->row + r->rows < p->row + p->rows ? r->row + r->rows : p->row + p->rows) - row;
    int64_t cols = (r->col + r->cols < p->col + p->cols ? r->col + r->cols : p->col + p->cols) - col;

    return (struct rect){row, rows, col, cols};
}

/* Fills r from the slices i on: what the first that meets it has is copied, and what it leaves on
 * each side is filled from those behind it.  So each element is copied once. */
static int fill(struct fill *f, struct rect r, int i)
{
    for (; i < f->n && f->v[i].at.row < r.row + r.rows; i++) {
        struct rect m = overlap(&r, &f->v[i].at);
        int64_t right = m.col + m.cols;

        if (m.rows < 1 || m.cols < 1)
            continue;
        if (m.row > r.row) /* those behind begin no earlier */
            return hole(f, &(struct rect){r.row, m.row - r.row, r.col, r.cols});
        if (f->to->data)
            TRY(copy(f, &f->v[i], &m));
        if (++f->depth > DEPTH_MAX)
            return err_set(f->e, ERR_FORMAT, "%s: '%s' is in too many slices", f->what, f->to->name);
        if (m.col > r.col)
            TRY(fill(f, (struct rect){m.row, m.rows, r.col, m.col - r.col}, i + 1));
        if (right < r.col + r.cols)
            TRY(fill(f, (struct rect){m.row, m.rows, right, r.col + r.cols - right}, i + 1));
        f->depth--;
        if (m.rows == r.rows)
            return 0;
        r.row += m.rows;
        r.rows -= m.rows;
    }
    return hole(f, &r);
}

/* ---- the table ---- */

static int by_name(const struct piece *a, enum checkpoint_part part, const char *name)
{
    return a->part != part ? (int)a->part - (int)part : strcmp(a->name, name);
}

static int compare(const void *x, const void *y)
{
    const struct piece *a = &((const struct slice *)x)->at, *b = &((const struct slice *)y)->at;
    int c = by_name(a, b->part, b->name);

    if (c)
        return c;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->col > b->col) - (a->col < b->col);
}

const struct slice *slices_find(const struct slices *s, enum checkpoint_part part, const char *name, int *n)
{
    int lo = 0, hi = s->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (by_name(&s->v[mid].at, part, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (*n = 0; lo + *n < s->n && by_name(&s->v[lo + *n].at, part, name) == 0; ++*n)
        ;
    return *n ? &s->v[lo] : NULL;
}

static bool same_shape(const struct piece *a, const struct piece *b)
{
    return a->dims == b->dims && a->shape[0] == b->shape[0] && piece_width(a) == piece_width(b);
}

int slices_sort(struct slices *s, const char *what, struct err *e)
{
    qsort(s->v, (size_t)s->n, sizeof *s->v, compare);
    for (int i = 0, next; i < s->n; i = next) {
        const struct piece *p = &s->v[i].at;
        struct fill f = {.v = &s->v[i], .to = p, .what = what, .e = e};

        for (next = i; next < s->n && by_name(&s->v[next].at, p->part, p->name) == 0; next++)
            if (!same_shape(p, &s->v[next].at))
                return err_set(e, ERR_FORMAT, "%s: the slices of '%s%s' are of tensors of different shapes", what,
                               checkpoint_prefix[p->part], p->name);
        f.n = next - i;
        TRY(fill(&f, (struct rect){0, p->shape[0], 0, piece_width(p)}, 0));
    }
    return 0;
}

int slices_load(const struct slices *s, const char *what, struct device *dev, const struct piece *v, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        struct fill f = {.dev = dev, .to = &v[i], .what = what, .e = e};

        f.v = slices_find(s, v[i].part, v[i].name, &f.n);
        if (!f.v)
            return err_set(e, ERR_FORMAT, "%s: no tensor '%s%s'", what, checkpoint_prefix[v[i].part], v[i].name);
        if (!same_shape(&f.v->at, &v[i]))
            return err_set(e, ERR_FORMAT, "%s: '%s%s' has another shape than this model's", what,
                           checkpoint_prefix[v[i].part], v[i].name);
        if (v[i].rows > 0 && v[i].cols > 0)
            TRY(fill(&f, (struct rect){v[i].row, v[i].rows, v[i].col, v[i].cols}, 0));
    }
    return 0;
}
