#include "indexed_dataset/idx_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/node.h"
#include "base/pool.h"
#include "indexed_dataset/idx_sum.h"

struct idx {
    char prefix[IDX_PATH_MAX];
    struct file_map idx_map, bin_map; /* p == NULL when over caller's memory */
    const uint8_t *idx, *bin;
    size_t idx_size, bin_size;
    const uint8_t *lengths, *offsets, *documents; /* in idx, unaligned */
    uint64_t n_seqs, n_offsets; /* n_offsets = documents + 1 */
    enum idx_dtype dtype;
    size_t size; /* of a token */
};

static int64_t i64_at(const uint8_t *p, uint64_t i)
{
    int64_t v;
    memcpy(&v, p + i * 8, 8);
    return v;
}

static int32_t i32_at(const uint8_t *p, uint64_t i)
{
    int32_t v;
    memcpy(&v, p + i * 4, 4);
    return v;
}

/* Checks the header against the sizes and finds the arrays. */
static int read_header(struct idx *x, struct err *e)
{
    const void *last;
    int32_t length;
    uint64_t version, left;

    if (x->idx_size < IDX_HEADER || memcmp(x->idx, "MMIDIDX\0", 9) != 0)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte 0: no indexed dataset (no MMIDIDX)", x->prefix);
    memcpy(&version, x->idx + 9, 8);
    if (version != 1)
        return err_set(e, ERR_UNSUPPORTED, "'%s.idx' at byte 9: version %" PRIu64 ", not 1",
                       x->prefix, version);
    x->dtype = (enum idx_dtype)x->idx[17];
    x->size = idx_dtype_size(x->dtype);
    if (!x->size)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte 17: no such dtype: %d", x->prefix, x->idx[17]);
    memcpy(&x->n_seqs, x->idx + 18, 8);
    memcpy(&x->n_offsets, x->idx + 26, 8);
    left = x->idx_size - IDX_HEADER;
    if (x->n_seqs > left / 12 || x->n_offsets < 1 || x->n_offsets > (left - 12 * x->n_seqs) / 8)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte 18: %" PRIu64 " sequences and %" PRIu64
                       " document offsets do not fit a file of %zu bytes", x->prefix, x->n_seqs,
                       x->n_offsets, x->idx_size);
    x->lengths = x->idx + IDX_HEADER;
    x->offsets = x->lengths + 4 * x->n_seqs;
    x->documents = x->offsets + 8 * x->n_seqs;
    left -= 12 * x->n_seqs + 8 * x->n_offsets;
    if (left && left != x->n_seqs) /* a mode for each sequence, of a multimodal dataset */
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte %zu: %" PRIu64 " bytes too many", x->prefix,
                       x->idx_size - (size_t)left, left);
    if (x->bin_size % x->size)
        return err_set(e, ERR_FORMAT, "'%s.bin' at byte %zu: ends within a token of %zu bytes",
                       x->prefix, x->bin_size - x->bin_size % x->size, x->size);
    /* the end of a .bin that was not copied whole is told here, not by a step days later */
    return x->n_seqs ? idx_sequence(x, x->n_seqs - 1, &last, &length, e) : 0;
}

int idx_prefix_length(const char *name)
{
    size_t n = strlen(name);
    bool has = n > 4 && (strcmp(name + n - 4, ".idx") == 0 || strcmp(name + n - 4, ".bin") == 0);

    return (int)(has ? n - 4 : n);
}

/* Of the prefix that quern tokenize was given its dataset has a longer one. */
static int say_whole_prefix(const char *prefix, struct err *e)
{
    char path[IDX_PATH_MAX + 32];

    snprintf(path, sizeof path, "%s_text_document.idx", prefix);
    if (access(path, R_OK) == 0)
        err_set(e, e->code, "there is no dataset '%s', but '%s_text_document'", prefix, prefix);
    return e->code;
}

static int map_files(struct idx *x, struct err *e)
{
    char path[IDX_PATH_MAX + 8];

    snprintf(path, sizeof path, "%s.idx", x->prefix);
    if (file_map_open(&x->idx_map, path, e) < 0)
        return say_whole_prefix(x->prefix, e);
    snprintf(path, sizeof path, "%s.bin", x->prefix);
    TRY(file_map_open(&x->bin_map, path, e));
    x->idx = x->idx_map.p;
    x->idx_size = x->idx_map.n;
    x->bin = x->bin_map.p;
    x->bin_size = x->bin_map.n;
    return 0;
}

int idx_open(struct idx **out, const char *prefix, struct err *e)
{
    struct idx *x = calloc(1, sizeof *x);
    int rc;

    *out = NULL;
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    if ((size_t)snprintf(x->prefix, sizeof x->prefix, "%.*s", idx_prefix_length(prefix), prefix) >= sizeof x->prefix) {
        free(x);
        return err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", prefix);
    }
    rc = map_files(x, e);
    if (rc == 0)
        rc = read_header(x, e);
    if (rc < 0) {
        idx_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

int idx_open_mem(struct idx **out, const uint8_t *idx, size_t idx_size, const uint8_t *bin,
                 size_t bin_size, struct err *e)
{
    struct idx *x = calloc(1, sizeof *x);
    int rc;

    *out = NULL;
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    snprintf(x->prefix, sizeof x->prefix, "memory");
    x->idx = idx;
    x->idx_size = idx_size;
    x->bin = bin;
    x->bin_size = bin_size;
    rc = read_header(x, e);
    if (rc < 0)
        free(x);
    else
        *out = x;
    return rc;
}

void idx_close(struct idx *x)
{
    if (!x)
        return;
    file_map_close(&x->idx_map);
    file_map_close(&x->bin_map);
    free(x);
}

const char *idx_prefix(const struct idx *x) { return x->prefix; }
enum idx_dtype idx_dtype(const struct idx *x) { return x->dtype; }
uint64_t idx_n_sequences(const struct idx *x) { return x->n_seqs; }
uint64_t idx_n_documents(const struct idx *x) { return x->n_offsets - 1; }
bool idx_has_modes(const struct idx *x) { return x->documents + 8 * x->n_offsets < x->idx + x->idx_size; }
int32_t idx_length(const struct idx *x, uint64_t i) { return i32_at(x->lengths, i); }

static uint64_t place(const struct idx *x, const uint8_t *array, uint64_t i, unsigned size)
{
    return (uint64_t)(array - x->idx) + i * size;
}

int idx_sequence(const struct idx *x, uint64_t i, const void **tokens, int32_t *length,
                 struct err *e)
{
    int64_t at;
    int32_t n;

    if (i >= x->n_seqs)
        return err_set(e, ERR_ARG, "'%s' has no sequence %" PRIu64, x->prefix, i);
    n = i32_at(x->lengths, i);
    at = i64_at(x->offsets, i);
    if (n < 0)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": sequence %" PRIu64
                       " has a length of %d", x->prefix, place(x, x->lengths, i, 4), i, n);
    if (at < 0 || (uint64_t)at > x->bin_size || (uint64_t)n * x->size > x->bin_size - (uint64_t)at)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": sequence %" PRIu64
                       " (%d tokens at byte %" PRId64 ") lies outside '%s.bin' of %zu bytes",
                       x->prefix, place(x, x->offsets, i, 8), i, n, at, x->prefix, x->bin_size);
    *tokens = x->bin + at;
    *length = n;
    return 0;
}

int idx_check_sequence(const struct idx *x, uint64_t i, struct err *e)
{
    const void *tokens = x->bin;
    int32_t n = 0;
    uint64_t at, end, next;

    TRY(idx_sequence(x, i, &tokens, &n, e));
    at = (uint64_t)((const uint8_t *)tokens - x->bin);
    end = at + (uint64_t)n * x->size;
    next = i + 1 < x->n_seqs ? (uint64_t)i64_at(x->offsets, i + 1) : x->bin_size;
    if (end != next || (i == 0 && at != 0))
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": sequence %" PRIu64 ", %d tokens of %zu bytes, begins at"
                       " byte %" PRIu64 " of the .bin, and what follows it at byte %" PRIu64,
                       x->prefix, place(x, x->offsets, i, 8), i, n, x->size, at, next);
    return 0;
}

int idx_document(const struct idx *x, uint64_t d, uint64_t *first, uint64_t *end, struct err *e)
{
    int64_t a, b;

    if (d >= x->n_offsets - 1)
        return err_set(e, ERR_ARG, "'%s' has no document %" PRIu64, x->prefix, d);
    a = i64_at(x->documents, d);
    b = i64_at(x->documents, d + 1);
    if (a < 0 || b < a || (uint64_t)b > x->n_seqs)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": document %" PRIu64
                       " has the sequences %" PRId64 " to %" PRId64 " of %" PRIu64, x->prefix,
                       place(x, x->documents, d, 8), d, a, b, x->n_seqs);
    *first = (uint64_t)a;
    *end = (uint64_t)b;
    return 0;
}

int idx_document_of(const struct idx *x, uint64_t i, uint64_t *document, int64_t *before, struct err *e)
{
    uint64_t lo = 0, hi = idx_n_documents(x), first = 0, end = 0;

    /* Where each document is one sequence, i is its number. */
    for (uint64_t d = i < hi ? i : hi / 2; lo < hi; d = lo + (hi - lo) / 2) {
        TRY(idx_document(x, d, &first, &end, e));
        if (i >= first && i < end) {
            *document = d;
            *before = 0;
            for (uint64_t s = first; s < i; s++)
                *before += idx_length(x, s);
            return 0;
        }
        if (i < first)
            hi = d;
        else
            lo = d + 1;
    }
    return err_set(e, ERR_FORMAT, "'%s.idx': sequence %" PRIu64 " is of no document", x->prefix, i);
}

#define WIDEN(type)                                                            \
    do {                                                                       \
        for (int64_t k = 0; k < n; k++) {                                      \
            type v;                                                            \
            memcpy(&v, p + (size_t)k * sizeof v, sizeof v);                    \
            out[k] = (int32_t)v;                                               \
        }                                                                      \
    } while (0)

static int widen(const struct idx *x, const uint8_t *p, int64_t n, int32_t *out, struct err *e)
{
    switch (x->dtype) {
    case IDX_U8: WIDEN(uint8_t); return 0;
    case IDX_I8: WIDEN(int8_t); return 0;
    case IDX_I16: WIDEN(int16_t); return 0;
    case IDX_U16: WIDEN(uint16_t); return 0;
    case IDX_I32: memcpy(out, p, (size_t)n * 4); return 0;
    case IDX_I64:
        for (int64_t k = 0; k < n; k++) {
            int64_t v = i64_at(p, (uint64_t)k);
            if (v < INT32_MIN || v > INT32_MAX)
                return err_set(e, ERR_FORMAT, "'%s.bin' at byte %td: id %" PRId64 " is not within 32 bits",
                               x->prefix, p - x->bin + k * 8, v);
            out[k] = (int32_t)v;
        }
        return 0;
    default:
        return err_set(e, ERR_UNSUPPORTED, "'%s' holds %s, not token ids", x->prefix,
                       idx_dtype_name(x->dtype));
    }
}

int idx_tokens_i32(const struct idx *x, uint64_t i, int64_t from, int64_t n, int32_t *out,
                   struct err *e)
{
    const void *p = NULL;
    int32_t length = 0;

    TRY(idx_sequence(x, i, &p, &length, e));
    if (from < 0 || n < 0 || from > length || n > length - from)
        return err_set(e, ERR_ARG, "tokens %" PRId64 " to %" PRId64 " of sequence %" PRIu64
                       ", which has %d", from, from + n, i, length);
    return widen(x, (const uint8_t *)p + (size_t)from * x->size, n, out, e);
}

/* ---- verify ---- */

static int verify_sequences(const struct idx *x, struct idx_report *r, struct err *e)
{
    uint64_t at = 0;

    r->shortest = x->n_seqs ? INT32_MAX : 0;
    for (uint64_t i = 0; i < x->n_seqs; i++) {
        const void *p = NULL;
        int32_t n = 0;
        TRY(idx_sequence(x, i, &p, &n, e));
        if (n == 0)
            return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": sequence %" PRIu64 " is empty",
                           x->prefix, place(x, x->lengths, i, 4), i);
        if ((uint64_t)i64_at(x->offsets, i) != at)
            return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": sequence %" PRIu64
                           " begins at byte %" PRId64 " of the .bin, not %" PRIu64, x->prefix,
                           place(x, x->offsets, i, 8), i, i64_at(x->offsets, i), at);
        at += (uint64_t)n * x->size;
        r->longest = n > r->longest ? n : r->longest;
        r->shortest = n < r->shortest ? n : r->shortest;
    }
    if (at != x->bin_size)
        return err_set(e, ERR_FORMAT, "'%s.bin' has %zu bytes, the sequences %" PRIu64, x->prefix,
                       x->bin_size, at);
    r->tokens = at / x->size;
    return 0;
}

static int verify_documents(const struct idx *x, struct idx_report *r, struct err *e)
{
    uint64_t first = 0, end = 0, at = 0;

    for (uint64_t d = 0; d + 1 < x->n_offsets; d++) {
        TRY(idx_document(x, d, &first, &end, e));
        if (first != at)
            return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": document %" PRIu64
                           " begins with sequence %" PRIu64 ", not %" PRIu64, x->prefix,
                           place(x, x->documents, d, 8), d, first, at);
        r->empty_documents += first == end;
        at = end;
    }
    if (at != x->n_seqs || i64_at(x->documents, x->n_offsets - 1) != (int64_t)x->n_seqs)
        return err_set(e, ERR_FORMAT, "'%s.idx' at byte %" PRIu64 ": the last document ends at sequence %"
                       PRIu64 " of %" PRIu64, x->prefix, place(x, x->documents, x->n_offsets - 1, 8),
                       at, x->n_seqs);
    return 0;
}

/* Work on chunks of a file, shared among threads; the first fault by place wins. */
struct scan {
    const struct idx *x;
    const uint8_t *p;
    size_t n, chunks;
    const uint64_t *want; /* checksums, or NULL: look at ids */
    int64_t vocab;
    uint64_t next, fault; /* fault: byte offset, UINT64_MAX: none */
    int64_t fault_id, max_id;
    pthread_mutex_t lock;
};

static void note_fault(struct scan *s, uint64_t at, int64_t id)
{
    pthread_mutex_lock(&s->lock);
    if (at < s->fault) {
        s->fault = at;
        s->fault_id = id;
    }
    pthread_mutex_unlock(&s->lock);
}

static int64_t id_at(const struct idx *x, const uint8_t *p)
{
    switch (x->dtype) {
    case IDX_U8: return *p;
    case IDX_I8: return (int8_t)*p;
    case IDX_I16: { int16_t v; memcpy(&v, p, 2); return v; }
    case IDX_U16: { uint16_t v; memcpy(&v, p, 2); return v; }
    case IDX_I32: return i32_at(p, 0);
    default: return i64_at(p, 0);
    }
}

static void scan_ids(struct scan *s, size_t from, size_t to)
{
    int64_t max = -1;

    for (size_t at = from; at < to; at += s->x->size) {
        int64_t id = id_at(s->x, s->p + at);
        if (id < 0 || id >= s->vocab) {
            note_fault(s, at, id);
            break;
        }
        max = id > max ? id : max;
    }
    pthread_mutex_lock(&s->lock);
    s->max_id = max > s->max_id ? max : s->max_id;
    pthread_mutex_unlock(&s->lock);
}

static void scan_chunks(void *arg, int thread)
{
    struct scan *s = arg;
    uint64_t k;

    (void)thread;
    while ((k = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->chunks) {
        size_t from = k * IDX_CHUNK, to = s->n - from < IDX_CHUNK ? s->n : from + IDX_CHUNK;
        if (!s->want)
            scan_ids(s, from, to);
        else if (idx_sum_chunk(s->p, s->n, k) != s->want[k])
            note_fault(s, from, 0);
    }
}

static void scan_run(struct scan *s, int jobs)
{
    struct err e;

    s->chunks = (s->n + IDX_CHUNK - 1) / IDX_CHUNK;
    s->fault = UINT64_MAX;
    s->max_id = -1;
    pthread_mutex_init(&s->lock, NULL);
    pool_run(jobs, scan_chunks, s, &e); /* fewer threads do as well */
    pthread_mutex_destroy(&s->lock);
}

static int verify_file(const struct idx *x, const struct node *sums, const char *kind,
                       const uint8_t *p, size_t n, int jobs, struct err *e)
{
    const struct node *f = node_get(sums, kind), *list = node_get(f, "xxh3"), *c;
    size_t chunks = (n + IDX_CHUNK - 1) / IDX_CHUNK, k = 0;
    struct scan s = {.x = x, .p = p, .n = n};
    uint64_t *want;

    if (node_int(f, "bytes", -1) != (int64_t)n)
        return err_set(e, ERR_FORMAT, "'%s.%s' has %zu bytes, not %" PRId64 " as '%s.sum.json' says",
                       x->prefix, kind, n, node_int(f, "bytes", -1), x->prefix);
    if (node_int(f, "chunk", 0) != IDX_CHUNK || !list || list->count != (int64_t)chunks)
        return err_set(e, ERR_FORMAT, "'%s.sum.json': not the checksums of %zu chunks", x->prefix, chunks);
    want = calloc(chunks + 1, sizeof *want);
    if (!want)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (c = list->child; c; c = c->next)
        want[k++] = c->type == NODE_STR ? strtoull(c->str.p, NULL, 16) : 0;
    s.want = want;
    scan_run(&s, jobs);
    free(want);
    if (s.fault != UINT64_MAX)
        return err_set(e, ERR_FORMAT, "'%s.%s' at byte %" PRIu64 ": the chunk of %d bytes there is damaged "
                       "(checksum)", x->prefix, kind, s.fault, IDX_CHUNK);
    return 0;
}

static int verify_sums(const struct idx *x, int jobs, struct idx_report *r, struct err *e)
{
    char path[IDX_PATH_MAX + 16];
    struct arena a = {0};
    struct node *sums;
    int rc;

    snprintf(path, sizeof path, "%s.sum.json", x->prefix);
    if (!x->idx_map.p || access(path, F_OK) != 0)
        return 0;
    r->sums = true;
    rc = node_load_json(&a, path, &sums, e);
    if (rc == 0)
        rc = verify_file(x, sums, "idx", x->idx, x->idx_size, jobs, e);
    if (rc == 0)
        rc = verify_file(x, sums, "bin", x->bin, x->bin_size, jobs, e);
    arena_free(&a);
    return rc;
}

int idx_verify(const struct idx *x, int64_t vocab, int jobs, struct idx_report *r, struct err *e)
{
    struct scan s = {.x = x, .p = x->bin, .n = x->bin_size, .vocab = vocab};

    *r = (struct idx_report){.max_id = -1};
    TRY(verify_sequences(x, r, e));
    TRY(verify_documents(x, r, e));
    TRY(verify_sums(x, jobs, r, e));
    if (vocab <= 0)
        return 0;
    if (x->dtype == IDX_F32 || x->dtype == IDX_F64)
        return err_set(e, ERR_UNSUPPORTED, "'%s' holds %s, not token ids", x->prefix,
                       idx_dtype_name(x->dtype));
    scan_run(&s, jobs);
    r->max_id = s.max_id;
    if (s.fault != UINT64_MAX)
        return err_set(e, ERR_FORMAT, "'%s.bin' at byte %" PRIu64 ": id %" PRId64
                       " is not within 0..%" PRId64, x->prefix, s.fault, s.fault_id, vocab - 1);
    return 0;
}
