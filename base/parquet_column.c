#include <inttypes.h>
#include <libdeflate.h>
#include <stdlib.h>

#include "base/parquet.h"

enum {
    READ_AHEAD = 64 << 10,    /* bytes of a file taken at once */
    PAGE_HEAD_MAX = 16 << 20  /* a head can hold the least and the greatest value */
};

/* A PageHeader. */
struct page_head {
    int64_t type, size, stored; /* size: decompressed */
    int64_t n, encoding, def_encoding, rep_encoding;
    int64_t def_bytes, rep_bytes; /* of version 2 */
    bool has_crc, packed;
    uint32_t crc;
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a page");
}

/* The fields of DataPageHeader, DictionaryPageHeader and DataPageHeaderV2. */
static void read_page_kind(struct thrift *t, int kind, struct page_head *h)
{
    bool v2 = kind == 8;

    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        if (id == 1)
            h->n = thrift_int(t);
        else if (id == (v2 ? 4 : 2))
            h->encoding = thrift_int(t);
        else if (kind == 5 && id == 3)
            h->def_encoding = thrift_int(t);
        else if (kind == 5 && id == 4)
            h->rep_encoding = thrift_int(t);
        else if (v2 && id == 5)
            h->def_bytes = thrift_int(t);
        else if (v2 && id == 6)
            h->rep_bytes = thrift_int(t);
        else if (v2 && id == 7)
            h->packed = thrift_int(t) != 0;
        else
            thrift_skip(t);
    }
}

static void read_page_head(struct thrift *t, struct page_head *h)
{
    *h = (struct page_head){.type = -1, .size = -1, .stored = -1, .n = -1, .def_encoding = PARQUET_RLE,
                            .rep_encoding = PARQUET_RLE, .packed = true};
    for (int id = 0; (id = thrift_field(t, id)) > 0;) {
        if (id == 1) {
            h->type = thrift_int(t);
        } else if (id == 2) {
            h->size = thrift_int(t);
        } else if (id == 3) {
            h->stored = thrift_int(t);
        } else if (id == 4) {
            h->crc = (uint32_t)thrift_int(t);
            h->has_crc = true;
        } else if ((id == 5 || id == 7 || id == 8) && t->type == THRIFT_STRUCT) {
            read_page_kind(t, id, h);
        } else {
            thrift_skip(t);
        }
    }
}

/* Bytes of the chunk from c->at on that have been read. */
static struct span ahead(const struct parquet_column *c)
{
    size_t from = (size_t)(c->at - c->stored_at);

    return c->stored.n > from ? (struct span){c->stored.p + from, c->stored.n - from} : (struct span){"", 0};
}

/* Reads so that n bytes from c->at on are there, or all that the chunk has. */
static int need(struct parquet_column *c, size_t n, struct err *e)
{
    uint64_t end = c->chunk.at + c->chunk.bytes, left = end - c->at;
    size_t have = ahead(c).n, most = c->source->ahead ? c->source->ahead : READ_AHEAD, want = n < most ? most : n;

    if (want > left)
        want = (size_t)left;
    if (have >= n || have >= want)
        return 0;
    if (have)
        memmove(c->stored.p, c->stored.p + c->stored.n - have, have);
    c->stored.n = have;
    c->stored_at = c->at;
    if (buf_reserve(&c->stored, want - have) < 0)
        return no_memory(e);
    TRY(c->source->read(c->source->arg, c->at + have, c->stored.p + have, want - have, e));
    c->stored.n = want;
    return 0;
}

/* Reads the head of the page at c->at, and goes behind it. */
static int next_head(struct parquet_column *c, struct page_head *h, struct err *e)
{
    for (size_t want = 256; want <= PAGE_HEAD_MAX; want *= 4) {
        struct thrift t = {0};
        struct span s;

        TRY(need(c, want, e));
        s = ahead(c);
        t.p = (const uint8_t *)s.p;
        t.end = t.p + s.n;
        read_page_head(&t, h);
        if (!t.bad) {
            c->at += (uint64_t)(t.p - (const uint8_t *)s.p);
            return 0;
        }
        if (s.n < want)
            break;
        want = s.n > want ? s.n : want;
    }
    return err_set(e, ERR_FORMAT, "its head is damaged, or cut short by the end of the column");
}

/* Room for n bytes; what was there is lost. */
static int room_for(struct room *r, size_t n, struct err *e)
{
    if (n > r->cap || !r->p) {
        free(r->p);
        r->p = malloc(n ? n : 1);
        r->cap = r->p ? n : 0;
    }
    return r->p ? 0 : no_memory(e);
}

static int check_head(const struct parquet_column *c, const struct page_head *h, struct err *e)
{
    uint64_t left = c->chunk.at + c->chunk.bytes - c->at;

    if (h->size < 0 || h->stored < 0)
        return err_set(e, ERR_FORMAT, "its head is damaged");
    if ((uint64_t)h->stored > left)
        return err_set(e, ERR_FORMAT, "its %" PRId64 " bytes do not lie within the column", h->stored);
    if (h->size > PARQUET_PAGE_MAX || h->stored > PARQUET_PAGE_MAX)
        return err_set(e, ERR_LIMIT, "it has more than %d bytes", PARQUET_PAGE_MAX);
    return 0;
}

/* The bytes of the page whose head was read, checked by its sum; c->at moves behind them. */
static int next_bytes(struct parquet_column *c, const struct page_head *h, const uint8_t **p, struct err *e)
{
    TRY(check_head(c, h, e));
    TRY(need(c, (size_t)h->stored, e));
    *p = (const uint8_t *)ahead(c).p;
    c->at += (uint64_t)h->stored;
    if (h->has_crc && libdeflate_crc32(0, *p, (size_t)h->stored) != h->crc)
        return err_set(e, ERR_FORMAT, "its checksum is not that of its bytes");
    return 0;
}

static int read_dictionary(struct parquet_column *c, const struct page_head *h, struct err *e)
{
    const uint8_t *p;

    TRY(next_bytes(c, h, &p, e));
    if (c->dictionary.n || c->seen || h->n < 0)
        return err_set(e, ERR_FORMAT, "it is a dictionary where none can be");
    TRY(parquet_unpack_check(c->chunk.codec, (size_t)h->stored, (size_t)h->size, e));
    TRY(room_for(&c->words, (size_t)h->size, e));
    TRY(parquet_unpack(c->chunk.codec, p, (size_t)h->stored, c->words.p, (size_t)h->size, e));
    return parquet_dictionary_read(&c->dictionary, c->leaf, (size_t)h->n, c->words.p, (size_t)h->size, e);
}

static int level_bits(int most)
{
    int n = 0;

    for (; most; most >>= 1)
        n++;
    return n;
}

/* Levels up to `most` at *p behind their length (version 1); *p moves behind them. */
static int start_levels(struct parquet_rle *r, const uint8_t **p, const uint8_t *end, int most, int64_t encoding, struct err *e)
{
    uint64_t n;

    if (most == 0)
        return 0;
    if (encoding != PARQUET_RLE)
        return err_set(e, ERR_UNSUPPORTED, "its levels are encoded in a way that quern does not know (%" PRId64 ")", encoding);
    n = end - *p >= 4 ? parquet_load32(*p) + (uint64_t)4 : UINT64_MAX;
    if (n > (uint64_t)(end - *p))
        return err_set(e, ERR_FORMAT, "its levels do not lie within it");
    parquet_rle_start(r, *p + 4, *p + n, level_bits(most));
    *p += n;
    return 0;
}

static int start_page_v1(struct parquet_column *c, const struct page_head *h, const uint8_t *p, struct err *e)
{
    const uint8_t *end;

    TRY(parquet_unpack_check(c->chunk.codec, (size_t)h->stored, (size_t)h->size, e));
    TRY(room_for(&c->page, (size_t)h->size, e));
    TRY(parquet_unpack(c->chunk.codec, p, (size_t)h->stored, c->page.p, (size_t)h->size, e));
    p = c->page.p;
    end = p + h->size;
    TRY(start_levels(&c->reps, &p, end, c->leaf->rep, h->rep_encoding, e));
    TRY(start_levels(&c->defs, &p, end, c->leaf->def, h->def_encoding, e));
    return parquet_values_start(&c->values, (enum parquet_encoding)h->encoding, c->leaf, p, (size_t)(end - p), &c->dictionary, e);
}

/* Levels stand uncompressed in front of the values. */
static int start_page_v2(struct parquet_column *c, const struct page_head *h, const uint8_t *p, struct err *e)
{
    int64_t levels = h->rep_bytes + h->def_bytes;
    enum parquet_codec codec = h->packed ? c->chunk.codec : PARQUET_PLAIN_CODEC;
    size_t size, stored;

    if (h->rep_bytes < 0 || h->def_bytes < 0 || h->rep_bytes > h->stored || h->def_bytes > h->stored || levels > h->stored ||
        levels > h->size)
        return err_set(e, ERR_FORMAT, "its levels do not lie within it");
    size = (size_t)(h->size - levels);
    stored = (size_t)(h->stored - levels);
    TRY(parquet_unpack_check(codec, stored, size, e));
    TRY(room_for(&c->page, (size_t)h->size, e));
    memcpy(c->page.p, p, (size_t)levels); /* the bytes read go with the next page */
    if (stored || size) /* of nulls alone nothing may be stored, whatever the codec */
        TRY(parquet_unpack(codec, p + levels, stored, c->page.p + levels, size, e));
    p = c->page.p;
    parquet_rle_start(&c->reps, p, p + h->rep_bytes, level_bits(c->leaf->rep));
    parquet_rle_start(&c->defs, p + h->rep_bytes, p + levels, level_bits(c->leaf->def));
    return parquet_values_start(&c->values, (enum parquet_encoding)h->encoding, c->leaf, p + levels, size, &c->dictionary, e);
}

static int start_page(struct parquet_column *c, const struct page_head *h, struct err *e)
{
    const uint8_t *p;

    TRY(next_bytes(c, h, &p, e));
    if (h->type == PARQUET_INDEX_PAGE)
        return 0;
    if (h->n < 0 || h->n > INT32_MAX || (uint64_t)h->n > c->chunk.n - c->seen)
        return err_set(e, ERR_FORMAT, "it has %" PRId64 " values where the column has %" PRIu64 " to come", h->n,
                       c->chunk.n - c->seen);
    TRY(h->type == PARQUET_DATA_PAGE ? start_page_v1(c, h, p, e) : start_page_v2(c, h, p, e));
    c->seen += (uint64_t)h->n;
    c->left = (uint64_t)h->n;
    c->in_page = true;
    return 0;
}

static int next_page(struct parquet_column *c, struct err *e)
{
    uint64_t at = c->at;
    struct page_head h;
    int rc = next_head(c, &h, e);

    if (rc == 0 && h.type == PARQUET_DICTIONARY_PAGE)
        rc = read_dictionary(c, &h, e);
    else if (rc == 0 && h.type >= PARQUET_DATA_PAGE && h.type <= PARQUET_DATA_PAGE_V2)
        rc = start_page(c, &h, e);
    else if (rc == 0)
        rc = err_set(e, ERR_FORMAT, "it is of no kind that there is (%" PRId64 ")", h.type);
    return rc < 0 ? err_wrap(e, "page at offset %" PRIu64, at) : 0;
}

void parquet_column_start(struct parquet_column *c, const struct parquet_source *s, const struct parquet_node *leaf,
                          const struct parquet_chunk *chunk)
{
    c->source = s;
    c->leaf = leaf;
    c->chunk = *chunk;
    c->at = c->stored_at = chunk->at;
    c->stored.n = 0;
    c->seen = c->left = 0;
    c->dictionary.n = 0;
    c->ready = c->in_page = false;
}

int parquet_column_peek(struct parquet_column *c, struct err *e)
{
    uint64_t end = c->chunk.at + c->chunk.bytes;

    if (c->ready)
        return 1;
    while (c->left == 0) {
        if (c->in_page && parquet_values_more(&c->values))
            return err_set(e, ERR_FORMAT, "a page before offset %" PRIu64 " has more values than it says", c->at);
        c->in_page = false;
        if (c->seen == c->chunk.n && c->at == end)
            return 0;
        if (c->seen == c->chunk.n)
            return err_set(e, ERR_FORMAT, "%" PRIu64 " bytes follow its last value at offset %" PRIu64, end - c->at, c->at);
        if (c->at == end)
            return err_set(e, ERR_FORMAT, "its pages end after %" PRIu64 " of %" PRIu64 " values", c->seen, c->chunk.n);
        TRY(next_page(c, e));
    }
    c->def = c->rep = 0;
    if ((c->leaf->rep && !parquet_rle_next(&c->reps, &c->rep)) || (c->leaf->def && !parquet_rle_next(&c->defs, &c->def)))
        return err_set(e, ERR_FORMAT, "the levels of a page before offset %" PRIu64 " end, or make no sense", c->at);
    if (c->def > (uint32_t)c->leaf->def || c->rep > (uint32_t)c->leaf->rep)
        return err_set(e, ERR_FORMAT, "a page before offset %" PRIu64 " has a level that is too high", c->at);
    c->left--;
    c->ready = true;
    return 1;
}

void parquet_column_free(struct parquet_column *c)
{
    free(c->page.p);
    free(c->words.p);
    free(c->dictionary.at);
    buf_free(&c->values.made);
    buf_free(&c->stored);
}
