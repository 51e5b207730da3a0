/* The encodings of levels and values: a value at a time, so that a count that a page claims costs no memory. */
#include "base/parquet.h"

#include <inttypes.h>

enum { DELTA_BLOCK_MAX = 1 << 16 };

static uint64_t load_le(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return v;
}

/* n <= 64 bits from bit `at` behind p on; the bytes that they touch are there. */
static uint64_t load_bits(const uint8_t *p, uint64_t at, int n)
{
    const uint8_t *q = p + at / 8;
    int shift = (int)(at % 8), bytes = (shift + n + 7) / 8;
    uint64_t v = load_le(q, bytes > 8 ? 8 : (size_t)bytes) >> shift;

    if (bytes > 8)
        v |= (uint64_t)q[8] << (64 - shift);
    return n == 64 ? v : v & (((uint64_t)1 << n) - 1);
}

static bool get_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t c = *(*p)++;
        *v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return true;
    }
    return false;
}

/* ---- runs and bit-packed groups ---- */

void parquet_rle_start(struct parquet_rle *r, const uint8_t *p, const uint8_t *end, int width)
{
    *r = (struct parquet_rle){.p = p, .end = end, .width = width};
}

static bool next_run(struct parquet_rle *r)
{
    size_t bytes = (size_t)(r->width + 7) / 8;
    uint64_t head;

    if (r->packed) /* the groups of the run before; a last one may be cut */
        r->p += (r->bit + 7) / 8 < (uint64_t)(r->end - r->p) ? (r->bit + 7) / 8 : (uint64_t)(r->end - r->p);
    r->packed = false;
    r->bit = 0;
    if (!get_varint(&r->p, r->end, &head) || head < 2)
        return false;
    r->packed = head & 1;
    r->left = head >> 1;
    if (r->packed) {
        r->left = r->left > UINT64_MAX / 8 ? UINT64_MAX : r->left * 8;
        return true;
    }
    if (bytes > (size_t)(r->end - r->p))
        return false;
    r->value = (uint32_t)load_le(r->p, bytes);
    r->p += bytes;
    return true;
}

bool parquet_rle_next(struct parquet_rle *r, uint32_t *v)
{
    if (r->left == 0 && !next_run(r))
        return false;
    r->left--;
    *v = r->value;
    if (!r->packed)
        return true;
    if (r->bit + (uint64_t)r->width > 8 * (uint64_t)(r->end - r->p))
        return false;
    *v = (uint32_t)load_bits(r->p, r->bit, r->width);
    r->bit += (uint64_t)r->width;
    return true;
}

/* ---- deltas ---- */

static bool delta_block(struct parquet_delta *d)
{
    uint64_t least;

    if (!get_varint(&d->p, d->end, &least) || d->minis > (uint64_t)(d->end - d->p))
        return false;
    d->least = least >> 1 ^ -(least & 1);
    d->width = d->p;
    d->p += d->minis;
    d->mini = d->in_mini = 0;
    return true;
}

/* Leaves a miniblock that has been begun. */
static bool delta_leave(struct parquet_delta *d)
{
    uint64_t bytes = d->per_mini / 8 * d->width[d->mini];

    if (bytes > (uint64_t)(d->end - d->p))
        return false;
    d->p += bytes;
    d->mini++;
    d->in_mini = 0;
    return true;
}

static bool delta_start(struct parquet_delta *d, const uint8_t *p, const uint8_t *end)
{
    *d = (struct parquet_delta){.p = p, .end = end, .first = true};
    if (!get_varint(&d->p, end, &d->block) || !get_varint(&d->p, end, &d->minis) || !get_varint(&d->p, end, &d->left) ||
        !get_varint(&d->p, end, &d->value))
        return false;
    if (d->block == 0 || d->block > DELTA_BLOCK_MAX || d->minis == 0 || d->minis > d->block || d->block % d->minis ||
        d->block / d->minis % 8 || d->left > INT32_MAX)
        return false;
    d->per_mini = d->block / d->minis;
    d->mini = d->minis;
    d->value = d->value >> 1 ^ -(d->value & 1);
    return true;
}

static bool delta_next(struct parquet_delta *d, uint64_t *v)
{
    uint64_t at;
    int width;

    if (d->left == 0)
        return false;
    d->left--;
    *v = d->value;
    if (d->first) {
        d->first = false;
        return true;
    }
    if (d->mini < d->minis && d->in_mini == d->per_mini && !delta_leave(d))
        return false;
    if (d->mini == d->minis && !delta_block(d))
        return false;
    width = d->width[d->mini];
    at = d->in_mini++ * (uint64_t)width;
    if (width > 64 || at + (uint64_t)width > 8 * (uint64_t)(d->end - d->p))
        return false;
    d->value += d->least + load_bits(d->p, at, width);
    *v = d->value;
    return true;
}

/* Where the bytes behind deltas that were just begun are; NULL: they end before. */
static const uint8_t *delta_end(const struct parquet_delta *start)
{
    struct parquet_delta d = *start;
    uint64_t left = d.left ? d.left - 1 : 0;

    while (left) {
        if (d.mini == d.minis && !delta_block(&d))
            return NULL;
        left -= left < d.per_mini ? left : d.per_mini;
        if (d.width[d.mini] > 64 || !delta_leave(&d))
            return NULL;
    }
    return d.p;
}

/* ---- values ---- */

static size_t fixed_length(const struct parquet_node *leaf)
{
    static const unsigned char bytes[] = {[PARQUET_BOOLEAN] = 1, [PARQUET_INT32] = 4, [PARQUET_INT64] = 8,
                                          [PARQUET_INT96] = 12, [PARQUET_FLOAT] = 4, [PARQUET_DOUBLE] = 8};

    return leaf->type == PARQUET_FIXED ? (size_t)leaf->length : leaf->type == PARQUET_BYTES ? 0 : bytes[leaf->type];
}

static bool start_lengths(struct parquet_values *v)
{
    if (!delta_start(&v->lengths, v->p, v->end))
        return false;
    v->p = delta_end(&v->lengths);
    return v->p != NULL;
}

static bool start(struct parquet_values *v)
{
    switch (v->encoding) {
    case PARQUET_RLE: { /* of booleans, behind its length */
        uint64_t n = v->end - v->p >= 4 ? load_le(v->p, 4) + 4 : UINT64_MAX;
        if (n > (uint64_t)(v->end - v->p))
            return false;
        parquet_rle_start(&v->rle, v->p + 4, v->p + n, 1);
        return true;
    }
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY: {
        int width = v->p < v->end ? *v->p : 0;
        parquet_rle_start(&v->rle, v->p + (v->p < v->end), v->end, width);
        return width <= 32;
    }
    case PARQUET_DELTA: return delta_start(&v->lengths, v->p, v->end);
    case PARQUET_DELTA_LENGTH: return start_lengths(v);
    case PARQUET_DELTA_BYTES:
        buf_clear(&v->made);
        if (!delta_start(&v->prefixes, v->p, v->end) || !(v->p = delta_end(&v->prefixes)))
            return false;
        return start_lengths(v);
    case PARQUET_BYTE_STREAM_SPLIT: return (size_t)(v->end - v->p) % v->length == 0;
    default: return true;
    }
}

/* Whether values of a type are stored so. */
static bool fits(enum parquet_encoding encoding, enum parquet_type t)
{
    switch (encoding) {
    case PARQUET_PLAIN:
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY: return true;
    case PARQUET_RLE: return t == PARQUET_BOOLEAN;
    case PARQUET_DELTA: return t == PARQUET_INT32 || t == PARQUET_INT64;
    case PARQUET_DELTA_LENGTH: return t == PARQUET_BYTES;
    case PARQUET_DELTA_BYTES: return t == PARQUET_BYTES || t == PARQUET_FIXED;
    case PARQUET_BYTE_STREAM_SPLIT: return t != PARQUET_BYTES && t != PARQUET_BOOLEAN && t != PARQUET_INT96;
    default: return false;
    }
}

int parquet_values_start(struct parquet_values *v, enum parquet_encoding encoding, const struct parquet_node *leaf,
                         const uint8_t *p, size_t n, const struct parquet_dictionary *d, struct err *e)
{
    *v = (struct parquet_values){.encoding = encoding, .type = leaf->type, .length = fixed_length(leaf), .p = p, .end = p + n,
                                 .dictionary = d, .made = v->made};
    if (!fits(encoding, leaf->type))
        return err_set(e, ERR_UNSUPPORTED, "its values are encoded in a way that quern does not know for them (%d)",
                       (int)encoding);
    return start(v) ? 0 : err_set(e, ERR_FORMAT, "its values are damaged");
}

/* n bytes of a value to be put together. */
static uint8_t *make(struct parquet_values *v, size_t n)
{
    buf_clear(&v->made);
    return buf_reserve(&v->made, n) < 0 ? NULL : (uint8_t *)v->made.p;
}

static bool take(struct parquet_values *v, uint64_t n, struct span *out)
{
    if (n > (uint64_t)(v->end - v->p))
        return false;
    *out = (struct span){(const char *)v->p, (size_t)n};
    v->p += n;
    return true;
}

static bool next_plain(struct parquet_values *v, struct span *out)
{
    uint8_t *bit;

    if (v->type == PARQUET_BYTES) {
        if (v->end - v->p < 4)
            return false;
        v->p += 4;
        return take(v, load_le(v->p - 4, 4), out);
    }
    if (v->type != PARQUET_BOOLEAN)
        return take(v, v->length, out);
    bit = make(v, 1);
    if (!bit || v->at / 8 >= (uint64_t)(v->end - v->p))
        return false;
    *bit = v->p[v->at / 8] >> v->at % 8 & 1;
    *out = (struct span){v->made.p, 1};
    return true;
}

static bool next_number(struct parquet_values *v, struct span *out)
{
    uint8_t *p = make(v, 8);
    uint32_t bit = 0;
    uint64_t x = 0;

    if (!p || !(v->encoding == PARQUET_RLE ? parquet_rle_next(&v->rle, &bit) : delta_next(&v->lengths, &x)))
        return false;
    x |= bit;
    memcpy(p, &x, 8);
    *out = (struct span){v->made.p, v->length};
    return true;
}

/* The beginning of the value before and what follows it. */
static bool next_delta_bytes(struct parquet_values *v, struct span *out)
{
    uint64_t prefix, n;
    struct span rest;

    if (!delta_next(&v->prefixes, &prefix) || !delta_next(&v->lengths, &n) || prefix > v->made.n ||
        !take(v, n, &rest))
        return false;
    v->made.n = (size_t)prefix;
    if (buf_put_span(&v->made, rest) < 0)
        return false;
    *out = buf_span(&v->made);
    return v->type == PARQUET_BYTES || out->n == v->length;
}

/* Byte k of all values, then byte k + 1 of all. */
static bool next_split(struct parquet_values *v, struct span *out)
{
    size_t n = (size_t)(v->end - v->p) / v->length;
    uint8_t *p = make(v, v->length);

    if (!p || v->at >= n)
        return false;
    for (size_t k = 0; k < v->length; k++)
        p[k] = v->p[k * n + v->at];
    *out = (struct span){v->made.p, v->length};
    return true;
}

static struct span dictionary_value(const struct parquet_dictionary *d, uint32_t i)
{
    if (d->length)
        return (struct span){(const char *)d->p + i * d->length, d->length};
    return (struct span){(const char *)d->p + d->at[i] + 4, parquet_load32(d->p + d->at[i])};
}

int parquet_values_next(struct parquet_values *v, struct span *out, struct err *e)
{
    uint32_t i;
    uint64_t n;
    bool good;

    switch (v->encoding) {
    case PARQUET_PLAIN: good = next_plain(v, out); break;
    case PARQUET_RLE:
    case PARQUET_DELTA: good = next_number(v, out); break;
    case PARQUET_DELTA_LENGTH: good = delta_next(&v->lengths, &n) && take(v, n, out); break;
    case PARQUET_DELTA_BYTES: good = next_delta_bytes(v, out); break;
    case PARQUET_BYTE_STREAM_SPLIT: good = next_split(v, out); break;
    default:
        good = parquet_rle_next(&v->rle, &i);
        if (good && (!v->dictionary || i >= v->dictionary->n))
            return err_set(e, ERR_FORMAT, "value %" PRIu64 " of it is number %" PRIu32 " of a dictionary of %zu", v->at, i,
                           v->dictionary ? v->dictionary->n : 0);
        if (good)
            *out = dictionary_value(v->dictionary, i);
    }
    if (v->made.failed)
        return err_set(e, ERR_NOMEM, "out of memory for a value");
    v->at++;
    return good ? 0 : err_set(e, ERR_FORMAT, "its values end, or make no sense, after %" PRIu64 " of them", v->at - 1);
}

/* Whether anything but zeros, with which fastparquet fills its pages up, stands at [p, end). */
static bool anything(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p == 0)
        p++;
    return p < end;
}

bool parquet_values_more(const struct parquet_values *v)
{
    switch (v->encoding) {
    case PARQUET_PLAIN: return anything(v->type == PARQUET_BOOLEAN ? v->p + (v->at + 7) / 8 : v->p, v->end);
    case PARQUET_DELTA: return v->lengths.left;
    case PARQUET_DELTA_BYTES: return v->prefixes.left || v->lengths.left || anything(v->p, v->end);
    case PARQUET_DELTA_LENGTH: return v->lengths.left || anything(v->p, v->end);
    case PARQUET_BYTE_STREAM_SPLIT: return v->at < (uint64_t)(v->end - v->p) / v->length;
    default: return false; /* runs: DuckDB fills them up to 256 values */
    }
}

int parquet_dictionary_read(struct parquet_dictionary *d, const struct parquet_node *leaf, size_t n, const uint8_t *p,
                            size_t bytes, struct err *e)
{
    struct parquet_values v = {0};
    size_t least = leaf->type == PARQUET_BYTES ? 4 : fixed_length(leaf);
    struct span value;

    *d = (struct parquet_dictionary){.p = p, .length = fixed_length(leaf), .at = d->at, .cap = d->cap};
    if (leaf->type == PARQUET_BOOLEAN || n > bytes / least)
        return err_set(e, ERR_FORMAT, "a dictionary of %zu values does not fit into %zu bytes", n, bytes);
    if (d->length == 0 && mem_grow(&d->at, &d->cap, n, sizeof *d->at) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a dictionary");
    TRY(parquet_values_start(&v, PARQUET_PLAIN, leaf, p, bytes, NULL, e));
    for (; d->length == 0 && d->n < n; d->n++) {
        d->at[d->n] = (uint32_t)(v.p - p);
        TRY(parquet_values_next(&v, &value, e));
    }
    d->n = n;
    if (d->length == 0 ? v.p != v.end : n * d->length != bytes)
        return err_set(e, ERR_FORMAT, "a dictionary of %zu values does not fill its %zu bytes", n, bytes);
    return 0;
}
