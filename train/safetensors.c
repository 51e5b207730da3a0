#include "train/safetensors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/node.h"

/* The reference reader's limit on the JSON. */
enum { HEADER_MAX = 100000000, HEADER_ALIGN = 64 };

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    {"F32", 4}, {"BF16", 2}, {"F16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"I16", 2},     {"I8", 1},
    {"U8", 1},  {"U16", 2},  {"U32", 4}, {"U64", 8}, {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

static size_t dtype_size(const char *name, const char **kept)
{
    for (size_t i = 0; name && i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *kept = dtypes[i].name;
            return dtypes[i].size;
        }
    return 0;
}

/* *n = the number of elements; an error when the shape is no list of sizes. */
static int parse_shape(const struct node *shape, struct safetensor *t, uint64_t *n, const char *what,
                       struct err *e)
{
    *n = 1;
    if (!shape || shape->type != NODE_LIST || shape->count > SAFETENSORS_DIMS)
        return err_set(e, ERR_FORMAT, "%s: '%s': no shape of at most %d sizes", what, t->name.p,
                       SAFETENSORS_DIMS);
    for (const struct node *d = shape->child; d; d = d->next) {
        if (d->type != NODE_INT || d->integer < 0 ||
            __builtin_mul_overflow(*n, (uint64_t)d->integer, n) || *n > INT64_MAX / 8)
            return err_set(e, ERR_FORMAT, "%s: '%s': impossible shape", what, t->name.p);
        t->shape[t->dims++] = d->integer;
    }
    return 0;
}

static int parse_tensor(const struct node *d, struct span data, struct safetensor *t, const char *what,
                        struct err *e)
{
    const struct node *at = node_get(d, "data_offsets");
    const char *dtype = node_str(d, "dtype");
    uint64_t n;
    size_t size;

    t->name = d->key;
    if (d->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "%s: '%s' is not a tensor", what, t->name.p);
    size = dtype_size(dtype, &t->dtype);
    if (!size)
        return err_set(e, dtype ? ERR_UNSUPPORTED : ERR_FORMAT, "%s: '%s': unknown dtype '%s'", what,
                       t->name.p, dtype ? dtype : "");
    TRY(parse_shape(node_get(d, "shape"), t, &n, what, e));
    if (!at || at->type != NODE_LIST || at->count != 2 || at->child->type != NODE_INT ||
        at->child->next->type != NODE_INT)
        return err_set(e, ERR_FORMAT, "%s: '%s': no data_offsets", what, t->name.p);
    int64_t lo = at->child->integer, hi = at->child->next->integer;
    if (lo < 0 || hi < lo || (uint64_t)hi > data.n)
        return err_set(e, ERR_FORMAT,
                       "%s: '%s': data at %" PRId64 "..%" PRId64 " of %zu bytes: the file is cut short or damaged",
                       what, t->name.p, lo, hi, data.n);
    if ((uint64_t)(hi - lo) != n * size)
        return err_set(e, ERR_FORMAT, "%s: '%s': %" PRId64 " bytes where its shape needs %" PRIu64, what,
                       t->name.p, hi - lo, n * size);
    t->data = (struct span){data.p + lo, (size_t)(hi - lo)};
    return 0;
}

static int by_data(const void *x, const void *y)
{
    const struct safetensor *a = x, *b = y;

    if (a->data.p != b->data.p)
        return a->data.p < b->data.p ? -1 : 1;
    return (a->data.n > b->data.n) - (a->data.n < b->data.n);
}

/* Neither overlap nor hole, and nothing behind the last. */
static int check_cover(const struct safetensors *st, struct span data, const char *what, struct err *e)
{
    const char *at = data.p;

    for (int i = 0; i < st->n; at = st->v[i].data.p + st->v[i].data.n, i++)
        if (st->v[i].data.p != at)
            return err_set(e, ERR_FORMAT, "%s: '%s' begins at byte %td of the data, not %td", what,
                           st->v[i].name.p, st->v[i].data.p - data.p, at - data.p);
    if (at != data.p + data.n)
        return err_set(e, ERR_FORMAT, "%s: %td bytes behind the last tensor", what, data.p + data.n - at);
    return 0;
}

struct span safetensors_header(struct span file)
{
    uint64_t h = 0;

    if (file.n < 8)
        return (struct span){NULL, 0};
    for (int i = 7; i >= 0; i--)
        h = h << 8 | (uint8_t)file.p[i];
    if (h > file.n - 8 || h > HEADER_MAX)
        return (struct span){NULL, 0};
    return (struct span){file.p, 8 + (size_t)h};
}

int safetensors_map(struct file_map *m, const char *path, struct err *e)
{
    int rc;

    TRY(file_map_open(m, path, e));
    rc = file_map_fetch(m, m->p, m->n < 8 ? m->n : 8, e);
    if (rc == 0)
        rc = file_map_fetch(m, m->p, safetensors_header((struct span){(const char *)m->p, m->n}).n, e);
    if (rc == 0)
        return 0;
    file_map_close(m);
    return err_wrap(e, "%s", path);
}

int safetensors_parse(struct arena *a, const char *what, struct span file, struct safetensors *st,
                      struct err *e)
{
    struct node *root;
    struct span json, data;

    memset(st, 0, sizeof *st);
    st->header = safetensors_header(file);
    if (!st->header.n)
        return err_set(e, ERR_FORMAT, "%s: its %zu bytes do not begin with a safetensors header", what, file.n);
    json = (struct span){file.p + 8, st->header.n - 8};
    data = (struct span){json.p + json.n, file.n - st->header.n};
    if (node_parse_json(a, json, &root, e) < 0)
        return err_wrap(e, "%s: header", what);
    if (root->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "%s: the header is not an object", what);
    st->v = arena_calloc(a, (size_t)root->count + 1, sizeof *st->v);
    if (!st->v)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (const struct node *d = root->child; d; d = d->next)
        if (!span_is(d->key, "__metadata__"))
            TRY(parse_tensor(d, data, &st->v[st->n++], what, e));
    qsort(st->v, (size_t)st->n, sizeof *st->v, by_data);
    return check_cover(st, data, what, e);
}

const struct safetensor *safetensors_find(const struct safetensors *st, const char *name)
{
    for (int i = 0; i < st->n; i++)
        if (span_is(st->v[i].name, name))
            return &st->v[i];
    return NULL;
}

size_t safetensors_size(const char *dtype)
{
    const char *kept;

    return dtype_size(dtype, &kept);
}

static int put_header(struct buf *b, const struct safetensor *v, int n, const char *meta)
{
    uint64_t at = 0, h;

    TRY(buf_put(b, "\0\0\0\0\0\0\0\0{", 9));
    if (meta)
        TRY(buf_printf(b, "\"__metadata__\":%s", meta));
    for (int i = 0; i < n; i++) {
        if (i || meta)
            TRY(buf_putc(b, ','));
        TRY(json_put_string(b, v[i].name));
        TRY(buf_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", v[i].dtype));
        for (int d = 0; d < v[i].dims; d++)
            TRY(buf_printf(b, "%s%" PRId64, d ? "," : "", v[i].shape[d]));
        TRY(buf_printf(b, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + v[i].data.n));
        at += v[i].data.n;
    }
    TRY(buf_putc(b, '}'));
    while (b->n % HEADER_ALIGN)
        TRY(buf_putc(b, ' '));
    h = b->n - 8;
    for (int i = 0; i < 8; i++)
        b->p[i] = (char)(h >> (8 * i));
    return 0;
}

static int write_tensor(struct file_out *f, struct safetensor *t, int i, safetensors_data_fn *fn, void *arg, struct err *e)
{
    struct span data = t->data;
    XXH3_state_t hash;

    XXH3_64bits_reset(&hash);
    for (size_t at = 0; at < t->data.n; at += data.n) {
        if (fn)
            TRY(fn(arg, i, at, &data, e));
        XXH3_64bits_update(&hash, data.p, data.n);
        TRY(file_write(f, data.p, data.n, e));
    }
    t->hash = XXH3_64bits_digest(&hash);
    return 0;
}

int safetensors_write(struct file_group *g, const char *path, struct safetensor *v, int n, const char *meta,
                      safetensors_data_fn *fn, void *arg, uint64_t *header_hash, uint64_t *bytes, struct err *e)
{
    struct buf b = {0};
    struct file_out *f = NULL;
    int rc = put_header(&b, v, n, meta);

    if (rc < 0)
        err_set(e, rc, "%s: no memory for the header", path);
    else if (b.n - 8 > HEADER_MAX)
        rc = err_set(e, ERR_LIMIT, "%s: %d tensors make a header of %zu MB: no reader takes it", path, n, b.n / 1000000);
    if (rc == 0)
        rc = file_create(&f, path, 0, e);
    if (rc == 0)
        rc = file_write(f, b.p, b.n, e);
    *header_hash = hash_xxh3_64(buf_span(&b));
    for (int i = 0; rc == 0 && i < n; i++)
        rc = write_tensor(f, &v[i], i, fn, arg, e);
    buf_free(&b);
    if (rc < 0) {
        file_abort(f);
        return rc;
    }
    *bytes = file_out_tell(f);
    return file_group_add(g, f, e);
}
