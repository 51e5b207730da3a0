#include "base/parquet_chunk.h"

#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/json_shim.h"
#include "base/json_walk.h"

enum {
    PAGE_BYTES = 1 << 20,    /* of values, about */
    ZSTD_LEVEL = 3,
    WORDS_MAX = 1 << 15,     /* values of a dictionary, */
    WORDS_BYTES = 1 << 20,   /*   and their bytes */
    SLOTS = 4 * WORDS_MAX,
    WORDS_SLACK = 256        /* values that may all differ before a dictionary is given up */
};
#define EXACT_IN_DOUBLE ((int64_t)1 << 53)

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a column");
}

/* ---- kinds ---- */

/* The integer that a number without point and exponent is; false: it takes more than 64 bits. */
static bool get_int(struct span s, int64_t *v)
{
    bool negative = s.n && *s.p == '-';
    uint64_t x = 0, most = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;

    for (size_t i = negative; i < s.n; i++) {
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        if (x > (most - digit) / 10)
            return false;
        x = x * 10 + digit;
    }
    *v = negative ? (int64_t)(0 - x) : (int64_t)x;
    return true;
}

static bool is_integer(struct span s)
{
    return !memchr(s.p, '.', s.n) && !memchr(s.p, 'e', s.n) && !memchr(s.p, 'E', s.n);
}

static unsigned seen_number(struct span raw)
{
    int64_t v;

    if (!is_integer(raw))
        return isfinite(json_parse_double(raw.p, raw.n)) ? SEEN_REAL : SEEN_HUGE;
    if (!get_int(raw, &v))
        return SEEN_HUGE;
    return v > EXACT_IN_DOUBLE || v < -EXACT_IN_DOUBLE ? SEEN_LONG : SEEN_INT;
}

unsigned parquet_seen(struct span raw, enum json_type type)
{
    switch (type) {
    case JSON_NULL: return 0;
    case JSON_BOOL: return SEEN_BOOL;
    case JSON_NUMBER: return seen_number(raw);
    case JSON_STRING: return SEEN_TEXT;
    default: return SEEN_NESTED;
    }
}

enum parquet_kind parquet_kind_of(unsigned seen)
{
    if (seen == 0)
        return KIND_NONE;
    if (seen == SEEN_BOOL)
        return KIND_BOOL;
    if (!(seen & ~(unsigned)(SEEN_INT | SEEN_LONG)))
        return KIND_INT;
    if (!(seen & ~(unsigned)(SEEN_INT | SEEN_REAL)))
        return KIND_REAL;
    return seen & SEEN_NESTED ? KIND_JSON : KIND_TEXT;
}

enum parquet_kind parquet_kind_now(unsigned seen)
{
    enum parquet_kind kind = parquet_kind_of(seen);

    return kind == KIND_TEXT && seen != SEEN_TEXT ? KIND_JSON : kind; /* a number as text is no longer told from a string */
}

struct parquet_node parquet_leaf_of(enum parquet_kind kind)
{
    struct parquet_node leaf = {.optional = true, .def = 1, .n_leaves = 1, .type = PARQUET_BYTES, .meaning = PARQUET_STRING};

    if (kind == KIND_BOOL || kind == KIND_INT || kind == KIND_REAL) {
        leaf.type = kind == KIND_BOOL ? PARQUET_BOOLEAN : kind == KIND_INT ? PARQUET_INT64 : PARQUET_DOUBLE;
        leaf.meaning = PARQUET_RAW;
    } else if (kind == KIND_JSON) {
        leaf.meaning = PARQUET_JSON;
    }
    return leaf;
}

/* ---- values ---- */

/* A number as it is written where it is none: integers with their digits, others with the fewest that read back. */
static int put_number(struct buf *b, struct span raw)
{
    if (span_is(raw, "-0"))
        return buf_putc(b, '0');
    if (is_integer(raw) || seen_number(raw) == SEEN_HUGE)
        return buf_put_span(b, raw);
    return json_put_num(b, json_parse_double(raw.p, raw.n));
}

static bool is_number(struct span raw)
{
    return *raw.p == '-' || ascii_is_digit(*raw.p);
}

/* The text of a string; half of a surrogate pair, which no text has, becomes U+FFFD. */
static int put_text(struct parquet_packer *p, struct buf *b, struct span raw)
{
    const char *q = raw.p, *end = q + raw.n;
    int rc = json_unescape(raw, b, NULL);

    if (rc != ERR_FORMAT)
        return rc;
    buf_clear(&p->page);
    while (q < end) {
        char room[8], *o = room;
        size_t n = *q != '\\' ? 1 : q[1] != 'u' ? 2 : json_put_escape(q, end, &o);

        TRY(n ? buf_put(&p->page, q, n) : buf_puts(&p->page, "\\ufffd"));
        q += n ? n : 6;
    }
    return json_unescape(buf_span(&p->page), b, NULL);
}

/* What stands behind the length in a column of texts or of JSON. */
static int put_bytes(struct parquet_packer *p, struct buf *b, enum parquet_kind kind, struct span raw)
{
    if (is_number(raw))
        return put_number(b, raw);
    if (*raw.p != '"')
        return buf_put_span(b, raw);
    if (kind == KIND_TEXT)
        return put_text(p, b, raw);
    buf_clear(&p->packed);
    TRY(put_text(p, &p->packed, raw));
    return json_put_string(b, buf_span(&p->packed));
}

/* Appends a value as PLAIN has it; of a boolean a byte. */
static int put_plain(struct parquet_packer *p, struct buf *b, enum parquet_kind kind, struct span raw,
                     struct parquet_written *out)
{
    size_t from = b->n;
    uint32_t n = 0;
    int64_t v = 0;
    double d;

    switch (kind) {
    case KIND_BOOL: return buf_putc(b, *raw.p == 't');
    case KIND_INT:
        get_int(raw, &v);
        out->least = !out->has_range || v < out->least ? v : out->least;
        out->most = !out->has_range || v > out->most ? v : out->most;
        out->has_range = true;
        return buf_put(b, &v, sizeof v);
    case KIND_REAL:
        d = json_parse_double(raw.p, raw.n);
        return buf_put(b, &d, sizeof d);
    default:
        TRY(buf_put(b, &n, sizeof n));
        TRY(put_bytes(p, b, kind, raw));
        n = (uint32_t)(b->n - from - sizeof n);
        memcpy(b->p + from, &n, sizeof n);
        if (kind == KIND_TEXT)
            parquet_bound_take(out, (struct span){b->p + from + sizeof n, n});
        return 0;
    }
}

/* Bytes that are 0 or 1 become bits, in place. */
static void pack_bits(struct buf *b)
{
    size_t n = b->n;

    for (size_t i = 0; i < n; i++) {
        char bit = (char)(b->p[i] << i % 8);
        b->p[i / 8] = (char)(i % 8 ? b->p[i / 8] | bit : bit);
    }
    b->n = (n + 7) / 8;
}

/* ---- runs and bit-packed groups ---- */

/* n numbers of `width` bits as one bit-packed run. */
static int put_packed(struct buf *b, const uint32_t *v, size_t n, int width)
{
    size_t groups = (n + 7) / 8;
    uint64_t bits = 0;
    int have = 0;

    TRY(thrift_put_varint(b, groups << 1 | 1));
    for (size_t i = 0; i < groups * 8; i++) {
        bits |= (uint64_t)(i < n ? v[i] : 0) << have;
        for (have += width; have >= 8; have -= 8, bits >>= 8)
            TRY(buf_putc(b, (char)bits));
    }
    return 0;
}

/* The levels of rows [from, to), behind their length: cells are the values that are there. */
static int put_levels(struct buf *b, const struct parquet_cell *cell, size_t n, uint32_t from, uint32_t to)
{
    size_t at = b->n, i = 0;
    uint32_t bytes = 0, rows = to - from;

    TRY(buf_put(b, &bytes, sizeof bytes));
    if (n == 0 || n == rows) {
        TRY(thrift_put_varint(b, (uint64_t)rows << 1));
        TRY(buf_putc(b, n != 0));
    } else {
        TRY(thrift_put_varint(b, (uint64_t)(rows + 7) / 8 << 1 | 1));
        for (uint32_t row = from; row < to; row += 8) {
            unsigned bits = 0;
            for (; i < n && cell[i].row < row + 8; i++)
                bits |= 1u << (cell[i].row - row);
            TRY(buf_putc(b, (char)bits));
        }
    }
    bytes = (uint32_t)(b->n - at - sizeof bytes);
    memcpy(b->p + at, &bytes, sizeof bytes);
    return 0;
}

/* ---- pages ---- */

int parquet_pack_put(struct parquet_packer *p, struct span s, struct err *e)
{
    TRY(p->sink.put(p->sink.arg, s.p, s.n, e));
    p->at += s.n;
    return 0;
}

static int put_head(struct buf *b, enum parquet_page_type type, size_t size, struct span packed, size_t n,
                    enum parquet_encoding encoding)
{
    bool data = type == PARQUET_DATA_PAGE;
    int last = 0, in = 0;

    TRY(thrift_put_int(b, &last, 1, THRIFT_I32, type));
    TRY(thrift_put_int(b, &last, 2, THRIFT_I32, (int64_t)size));
    TRY(thrift_put_int(b, &last, 3, THRIFT_I32, (int64_t)packed.n));
    TRY(thrift_put_int(b, &last, 4, THRIFT_I32, (int32_t)libdeflate_crc32(0, packed.p, packed.n)));
    TRY(thrift_put_field(b, &last, data ? 5 : 7, THRIFT_STRUCT));
    TRY(thrift_put_int(b, &in, 1, THRIFT_I32, (int64_t)n));
    TRY(thrift_put_int(b, &in, 2, THRIFT_I32, encoding));
    if (data) {
        TRY(thrift_put_int(b, &in, 3, THRIFT_I32, PARQUET_RLE));
        TRY(thrift_put_int(b, &in, 4, THRIFT_I32, PARQUET_RLE));
    }
    TRY(thrift_put_stop(b));
    return thrift_put_stop(b);
}

/* Writes p->page, which stands for n values. */
static int put_page(struct parquet_packer *p, enum parquet_page_type type, size_t n, enum parquet_encoding encoding,
                    struct parquet_written *out, struct err *e)
{
    size_t bound = ZSTD_compressBound(p->page.n), k, head;
    struct span packed;

    if (p->page.failed || p->page.n > PARQUET_PAGE_MAX)
        return p->page.failed ? no_memory(e) : err_set(e, ERR_LIMIT, "a value has more than %d bytes", PARQUET_PAGE_MAX);
    buf_clear(&p->packed);
    if (buf_reserve(&p->packed, bound) < 0)
        return no_memory(e);
    k = ZSTD_compressCCtx(p->zstd, p->packed.p, bound, p->page.p, p->page.n, ZSTD_LEVEL);
    if (ZSTD_isError(k))
        return no_memory(e);
    packed = (struct span){p->packed.p, k};
    buf_clear(&p->values);
    if (put_head(&p->values, type, p->page.n, packed, n, encoding) < 0)
        return no_memory(e);
    head = p->values.n;
    out->plain_bytes += head + p->page.n;
    out->bytes += head + k;
    TRY(parquet_pack_put(p, buf_span(&p->values), e));
    return parquet_pack_put(p, packed, e);
}

static int put_data_page(struct parquet_packer *p, const struct parquet_cell *cell, size_t n, uint32_t from, uint32_t to,
                         enum parquet_encoding encoding, struct parquet_written *out, struct err *e)
{
    buf_clear(&p->page);
    if (put_levels(&p->page, cell, n, from, to) < 0 || buf_put_span(&p->page, buf_span(&p->values)) < 0)
        return no_memory(e);
    return put_page(p, PARQUET_DATA_PAGE, to - from, encoding, out, e);
}

/* Pages of about PAGE_BYTES. */
static int put_plain_pages(struct parquet_packer *p, enum parquet_kind kind, const char *lines, const struct parquet_cell *cell,
                           size_t n, uint32_t rows, struct parquet_written *out, struct err *e)
{
    uint32_t row = 0;
    size_t i = 0;

    out->data_at = p->at;
    do {
        size_t first = i;
        uint32_t to = rows;

        buf_clear(&p->values);
        for (; i < n && p->values.n < PAGE_BYTES; i++)
            if (put_plain(p, &p->values, kind, (struct span){lines + cell[i].at, cell[i].n}, out) < 0)
                return no_memory(e);
        if (i < n)
            to = cell[i].row;
        if (kind == KIND_BOOL)
            pack_bits(&p->values);
        TRY(put_data_page(p, i ? cell + first : cell, i - first, row, to, PARQUET_PLAIN, out, e));
        row = to;
    } while (row < rows);
    return 0;
}

/* ---- dictionaries ---- */

/* Numbers the different values: p->index has a number for each cell, p->word the first cell of each.  Returns how many there are;
 * 0: so many that a dictionary does not pay. */
static uint32_t find_words(struct parquet_packer *p, const char *lines, const struct parquet_cell *cell, size_t n)
{
    uint32_t words = 0;
    size_t bytes = 0;

    memset(p->slot, 0xff, SLOTS * sizeof *p->slot);
    for (size_t i = 0; i < n; i++) {
        struct span s = {lines + cell[i].at, cell[i].n};
        size_t at = hash_xxh3_64(s) % SLOTS;
        uint32_t w;

        while ((w = p->slot[at]) != UINT32_MAX && !span_eq(s, (struct span){lines + cell[p->word[w]].at, cell[p->word[w]].n}))
            at = (at + 1) % SLOTS;
        if (w == UINT32_MAX) {
            bytes += s.n;
            if (words == WORDS_MAX || bytes > WORDS_BYTES || 2 * (size_t)words > i + WORDS_SLACK)
                return 0;
            p->slot[at] = w = words;
            p->word[words++] = (uint32_t)i;
        }
        p->index[i] = w;
    }
    return 2 * (size_t)words <= n ? words : 0;
}

static int put_dictionary_pages(struct parquet_packer *p, enum parquet_kind kind, const char *lines,
                                const struct parquet_cell *cell, size_t n, uint32_t rows, uint32_t words,
                                struct parquet_written *out, struct err *e)
{
    int width = 1;

    buf_clear(&p->values);
    for (uint32_t w = 0; w < words; w++) {
        const struct parquet_cell *c = &cell[p->word[w]];
        if (put_plain(p, &p->values, kind, (struct span){lines + c->at, c->n}, out) < 0)
            return no_memory(e);
    }
    buf_clear(&p->page);
    if (buf_put_span(&p->page, buf_span(&p->values)) < 0)
        return no_memory(e);
    TRY(put_page(p, PARQUET_DICTIONARY_PAGE, words, PARQUET_PLAIN, out, e));
    out->dictionary = true;
    out->data_at = p->at;
    while (words > (uint32_t)1 << width)
        width++;
    buf_clear(&p->values);
    if (buf_putc(&p->values, (char)width) < 0 || put_packed(&p->values, p->index, n, width) < 0)
        return no_memory(e);
    return put_data_page(p, cell, n, 0, rows, PARQUET_RLE_DICTIONARY, out, e);
}

int parquet_pack_chunk(struct parquet_packer *p, enum parquet_kind kind, const char *lines, const struct parquet_cell *cell,
                       size_t n, uint32_t rows, struct parquet_written *out, struct err *e)
{
    uint32_t words = 0;

    *out = (struct parquet_written){.kind = kind, .at = p->at, .nulls = rows - n};
    if (kind == KIND_TEXT && n) {
        if (mem_grow(&p->index, &p->cap_index, n, sizeof *p->index) < 0)
            return no_memory(e);
        words = find_words(p, lines, cell, n);
    }
    return words ? put_dictionary_pages(p, kind, lines, cell, n, rows, words, out, e)
                 : put_plain_pages(p, kind, lines, cell, n, rows, out, e);
}

int parquet_packer_open(struct parquet_packer *p, const struct parquet_sink *s, struct err *e)
{
    *p = (struct parquet_packer){.sink = *s};
    p->zstd = ZSTD_createCCtx();
    p->slot = malloc(SLOTS * sizeof *p->slot);
    p->word = malloc(WORDS_MAX * sizeof *p->word);
    return p->zstd && p->slot && p->word ? 0 : no_memory(e);
}

void parquet_packer_close(struct parquet_packer *p)
{
    ZSTD_freeCCtx(p->zstd);
    free(p->slot);
    free(p->word);
    free(p->index);
    buf_free(&p->values);
    buf_free(&p->page);
    buf_free(&p->packed);
}
