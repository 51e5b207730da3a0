#include "indexed_dataset/idx_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "indexed_dataset/idx_sum.h"
#include "indexed_dataset/ledger.h"
#include "indexed_dataset/loss_mask.h"

enum { BLOCK = 8192 };

struct idx_writer {
    char prefix[IDX_PATH_MAX];
    enum idx_dtype dtype;
    struct file_out *bin;
    struct file_out *lengths;   /* i32 a sequence */
    struct file_out *documents; /* i64 a document: the sequences up to its end */
    struct idx_sum bin_sum, idx_sum;
    struct idx_totals total;
    uint64_t ended; /* sequences up to the end of the last document */
    struct ledger_writer *ledger; /* or NULL */
    bool masked;                  /* the loss mask beside it is its own */
    uint8_t root[SHA256_SUM];     /* of it, once it is whole */
};

size_t idx_dtype_size(int dtype)
{
    static const uint8_t size[9] = {0, 1, 1, 2, 4, 8, 8, 4, 2};
    return dtype > 0 && dtype < 9 ? size[dtype] : 0;
}

const char *idx_dtype_name(int dtype)
{
    static const char *const name[9] = {"?", "uint8", "int8", "int16", "int32", "int64",
                                        "float64", "float32", "uint16"};
    return name[dtype > 0 && dtype < 9 ? dtype : 0];
}

enum idx_dtype idx_dtype_for_vocab(uint64_t vocab_size)
{
    return vocab_size < 65500 ? IDX_U16 : IDX_I32;
}

static int name_of(char *path, const char *prefix, const char *ending, struct err *e)
{
    if (snprintf(path, IDX_PATH_MAX, "%s%s", prefix, ending) >= IDX_PATH_MAX)
        return err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", prefix);
    return 0;
}

/* Lengths and documents wait beside the .bin under names that never become final. */
static int open_file(struct idx_writer *w, struct file_out **f, const char *ending, uint64_t size, struct err *e)
{
    char path[IDX_PATH_MAX];

    TRY(name_of(path, w->prefix, ending, e));
    return file_resume(f, path, size, e);
}

/* Takes over w->total: so much is in the files.  The documents come first: who has them has it all. */
static int open_documents(struct idx_writer *w, struct err *e)
{
    return open_file(w, &w->documents, ".documents", w->total.documents * sizeof(uint64_t), e);
}

static int open_others(struct idx_writer *w, struct err *e)
{
    TRY(open_file(w, &w->bin, ".bin", w->total.tokens * idx_dtype_size(w->dtype), e));
    return open_file(w, &w->lengths, ".lengths", w->total.sequences * sizeof(int32_t), e);
}

static int writer_new(struct idx_writer **out, const char *prefix, enum idx_dtype dtype, struct err *e)
{
    struct idx_writer *w = mem_aligned(sizeof *w); /* XXH3's state wants it */
    char path[IDX_PATH_MAX];
    int rc;

    *out = NULL;
    if (!w)
        return err_set(e, ERR_NOMEM, "out of memory");
    memset(w, 0, sizeof *w);
    w->dtype = dtype;
    idx_sum_init(&w->bin_sum);
    idx_sum_init(&w->idx_sum);
    rc = name_of(path, prefix, ".documents.part", e); /* the longest */
    if (rc < 0) {
        free(w);
        return rc;
    }
    memcpy(w->prefix, prefix, strlen(prefix) + 1);
    *out = w;
    return 0;
}

int idx_create(struct idx_writer **out, const char *prefix, enum idx_dtype dtype, struct err *e)
{
    int rc;

    TRY(writer_new(out, prefix, dtype, e));
    rc = open_documents(*out, e);
    if (rc == 0)
        rc = open_others(*out, e);
    if (rc < 0) {
        idx_abort(*out);
        *out = NULL;
    }
    return rc;
}

int idx_keep_ledger(struct idx_writer *w, struct err *e)
{
    return ledger_create(&w->ledger, w->prefix, 0, 0, 0, e);
}

void idx_has_mask(struct idx_writer *w) { w->masked = true; }

int idx_add_ledger(struct idx_writer *w, struct span records, const struct ledger_item *item, size_t n, struct err *e)
{
    return ledger_add(w->ledger, records, item, n, e);
}

static int put_bytes(struct idx_writer *w, const void *p, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (idx_sum_add(&w->bin_sum, p, n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return file_write(w->bin, p, n, e);
}

/* Lengths of sequences: those of no tokens are none. */
static int put_lengths(struct idx_writer *w, const int32_t *lengths, size_t n, struct err *e)
{
    uint64_t tokens = 0;
    size_t some = 0;

    for (size_t i = 0; i < n; i++) {
        if (lengths[i] < 0)
            return err_set(e, ERR_ARG, "a sequence of %d tokens", lengths[i]);
        tokens += (uint64_t)lengths[i];
        some += lengths[i] > 0;
    }
    w->total.tokens += tokens;
    w->total.sequences += some;
    if (some == n)
        return n ? file_write(w->lengths, lengths, n * sizeof *lengths, e) : 0;
    for (size_t i = 0; i < n; i++)
        if (lengths[i])
            TRY(file_write(w->lengths, &lengths[i], sizeof *lengths, e));
    return 0;
}

/* n documents, which end behind so many sequences in all. */
static int put_ends(struct idx_writer *w, const uint64_t *ends, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    w->total.documents += n;
    w->ended = ends[n - 1];
    return file_write(w->documents, ends, n * sizeof *ends, e);
}

/* Each sequence is a document. */
static int put_single(struct idx_writer *w, const int32_t *lengths, size_t n, struct err *e)
{
    uint64_t ends[BLOCK];

    while (n) {
        size_t k = n < BLOCK ? n : BLOCK;
        uint64_t seqs = w->total.sequences;
        for (size_t i = 0; i < k; i++)
            ends[i] = seqs += lengths[i] > 0;
        TRY(put_lengths(w, lengths, k, e));
        TRY(put_ends(w, ends, k, e));
        lengths += k;
        n -= k;
    }
    return 0;
}

/* docs[j] of the lengths stand before the end of document j. */
static int put_grouped(struct idx_writer *w, const int32_t *lengths, size_t n, const uint64_t *docs, size_t n_docs,
                       struct err *e)
{
    uint64_t ends[BLOCK], seqs = w->total.sequences;
    size_t at = 0, fill = 0;

    for (size_t d = 0; d < n_docs; d++) {
        if (docs[d] < at || docs[d] > n)
            return err_set(e, ERR_ARG, "the documents of a block of %zu sequences are out of order", n);
        for (; at < docs[d]; at++)
            seqs += lengths[at] > 0;
        ends[fill++] = seqs;
        if (fill == BLOCK || d + 1 == n_docs) {
            TRY(put_ends(w, ends, fill, e));
            fill = 0;
        }
    }
    return put_lengths(w, lengths, n, e);
}

int idx_add_block(struct idx_writer *w, const void *bytes, const int32_t *lengths,
                  size_t n_seqs, const uint64_t *docs, size_t n_docs, struct err *e)
{
    uint64_t tokens = w->total.tokens;

    TRY(docs ? put_grouped(w, lengths, n_seqs, docs, n_docs, e) : put_single(w, lengths, n_seqs, e));
    return put_bytes(w, bytes, (w->total.tokens - tokens) * idx_dtype_size(w->dtype), e);
}

/* Ids in the dataset's dtype, a piece at a time. */
static int put_ids(struct idx_writer *w, const uint32_t *ids, size_t n, struct err *e)
{
    uint64_t piece[512];
    size_t size = idx_dtype_size(w->dtype), fill = 0;
    uint64_t most = size < 4 ? (1ULL << (8 * size)) - 1 : INT32_MAX;

    if (w->dtype == IDX_I8 || w->dtype == IDX_I16)
        most >>= 1;
    if (w->dtype == IDX_F32 || w->dtype == IDX_F64)
        return err_set(e, ERR_ARG, "token ids cannot be %s", idx_dtype_name(w->dtype));
    for (size_t i = 0; i < n; i++) {
        uint64_t v = ids[i];
        if (v > most)
            return err_set(e, ERR_ARG, "id %u does not fit %s", ids[i], idx_dtype_name(w->dtype));
        memcpy((char *)piece + fill, &v, size); /* little-endian */
        fill += size;
        if (fill + size > sizeof piece || i + 1 == n) {
            TRY(put_bytes(w, piece, fill, e));
            fill = 0;
        }
    }
    return 0;
}

int idx_add_document(struct idx_writer *w, const uint32_t *ids, size_t n, struct err *e)
{
    if (n > INT32_MAX)
        return err_set(e, ERR_ARG, "a document of %zu tokens; a sequence has room for %d", n, INT32_MAX);
    int32_t length = (int32_t)n;
    TRY(put_ids(w, ids, n, e));
    return put_single(w, &length, 1, e);
}

/* ---- the .idx ---- */

static int put_idx(struct idx_writer *w, struct file_out *f, const void *p, size_t n, struct err *e)
{
    if (idx_sum_add(&w->idx_sum, p, n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return file_write(f, p, n, e);
}

static int put_header(struct idx_writer *w, struct file_out *f, struct err *e)
{
    uint8_t h[IDX_HEADER] = "MMIDIDX\0";
    uint64_t version = 1, n = w->total.documents + 1;

    memcpy(h + 9, &version, 8);
    h[17] = (uint8_t)w->dtype;
    memcpy(h + 18, &w->total.sequences, 8);
    memcpy(h + 26, &n, 8);
    return put_idx(w, f, h, sizeof h, e);
}

/* Lengths as they are, then the offsets that follow from them. */
static int put_sequences(struct idx_writer *w, struct file_out *f, bool offsets, struct err *e)
{
    int32_t len[BLOCK];
    int64_t at[BLOCK], offset = 0;
    int64_t size = (int64_t)idx_dtype_size(w->dtype);

    for (uint64_t i = 0; i < w->total.sequences;) {
        ssize_t n = file_reread(w->lengths, i * sizeof *len, len, sizeof len, e);
        if (n < (ssize_t)sizeof *len)
            return n < 0 ? (int)n : err_set(e, ERR_IO, "a temporary file beside '%s' was cut", w->prefix);
        n /= (ssize_t)sizeof *len;
        for (ssize_t k = 0; k < n && offsets; k++) {
            at[k] = offset;
            offset += len[k] * size;
        }
        TRY(put_idx(w, f, offsets ? (void *)at : (void *)len, (size_t)n * (offsets ? 8 : 4), e));
        i += (uint64_t)n;
    }
    return 0;
}

static int put_documents(struct idx_writer *w, struct file_out *f, struct err *e)
{
    int64_t end[BLOCK] = {0};

    TRY(put_idx(w, f, end, 8, e)); /* the first document begins at 0 */
    for (uint64_t i = 0; i < w->total.documents;) {
        ssize_t n = file_reread(w->documents, i * sizeof *end, end, sizeof end, e);
        if (n < (ssize_t)sizeof *end)
            return n < 0 ? (int)n : err_set(e, ERR_IO, "a temporary file beside '%s' was cut", w->prefix);
        n /= (ssize_t)sizeof *end;
        TRY(put_idx(w, f, end, (size_t)n * 8, e));
        i += (uint64_t)n;
    }
    return 0;
}

static int put_all(struct idx_writer *w, struct file_out *f, struct err *e)
{
    TRY(put_header(w, f, e));
    TRY(put_sequences(w, f, false, e));
    TRY(put_sequences(w, f, true, e));
    return put_documents(w, f, e);
}

static int write_sums(struct idx_writer *w, struct span extra, struct err *e)
{
    struct buf b = {0};
    char path[IDX_PATH_MAX];
    int rc = buf_puts(&b, "{\"bin\":");

    if (rc == 0)
        rc = idx_sum_finish(&w->bin_sum, &b);
    if (rc == 0)
        rc = buf_puts(&b, ",\"idx\":");
    if (rc == 0)
        rc = idx_sum_finish(&w->idx_sum, &b);
    if (rc == 0 && w->ledger) {
        char hex[2 * SHA256_SUM + 1];
        sha256_hex(w->root, hex);
        rc = buf_printf(&b, ",\"ledger\":{\"documents\":%" PRIu64 ",\"sha256\":\"%s\"}", w->total.documents, hex);
    }
    if (rc == 0 && extra.n)
        rc = buf_putc(&b, ',') < 0 || buf_put_span(&b, extra) < 0 ? ERR_NOMEM : 0;
    if (rc == 0)
        rc = buf_puts(&b, "}\n");
    if (rc < 0)
        err_set(e, rc, "out of memory for the checksums of '%s'", w->prefix);
    else if ((rc = name_of(path, w->prefix, ".sum.json", e)) == 0)
        rc = file_write_all(path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

static int remove_file(const struct idx_writer *w, const char *ending, struct err *e)
{
    char path[IDX_PATH_MAX];

    TRY(name_of(path, w->prefix, ending, e));
    return unlink(path) < 0 && errno != ENOENT ? err_sys(e, ERR_IO, "cannot replace '%s'", path) : 0;
}

static int remove_mask(const struct idx_writer *w, struct err *e)
{
    TRY(remove_file(w, LOSS_MASK_SUFFIX ".idx", e));
    TRY(remove_file(w, LOSS_MASK_SUFFIX ".sum.json", e));
    return remove_file(w, LOSS_MASK_SUFFIX ".bin", e);
}

/* With everything on disk under temporary names: the old .idx goes first and the new
 * one comes last, so that a kill in between leaves no .idx over another's .bin, ledger or loss mask.
 * What a killed run would need to go on (lengths, documents, leaves) goes when all have their names. */
static int publish(struct idx_writer *w, struct file_out *idx, struct span extra, struct err *e)
{
    struct file_out *bin = w->bin;
    int rc = remove_file(w, ".idx", e);

    if (rc == 0)
        rc = remove_file(w, ".ledger", e);
    if (rc == 0 && !w->masked)
        rc = remove_mask(w, e);
    if (rc == 0) {
        w->bin = NULL;
        rc = file_commit(bin, e);
        if (rc == 0)
            rc = write_sums(w, extra, e);
        if (rc == 0 && w->ledger)
            rc = ledger_commit(w->ledger, e);
        if (rc == 0)
            return file_commit(idx, e);
        remove_file(w, ".ledger", NULL);
        remove_file(w, ".bin", NULL);
    }
    file_abort(idx);
    return rc;
}

int idx_commit(struct idx_writer *w, struct span extra, struct err *e)
{
    char path[IDX_PATH_MAX];
    struct file_out *f = NULL;
    int rc = name_of(path, w->prefix, ".idx", e);

    if (rc == 0 && w->ended != w->total.sequences)
        rc = err_set(e, ERR_ARG, "the last document of '%s' has no end", w->prefix);
    if (rc == 0 && w->ledger && ledger_written(w->ledger) != w->total.documents)
        rc = err_set(e, ERR_ARG, "the ledger of '%s' lacks documents", w->prefix);
    if (rc == 0)
        rc = file_create(&f, path, 0, e);
    if (rc == 0)
        rc = put_all(w, f, e);
    if (rc == 0 && w->ledger)
        rc = ledger_finish(w->ledger, w->root, e);
    if (rc == 0)
        rc = file_flush(w->bin, e);
    if (rc == 0)
        rc = file_flush(f, e);
    if (rc == 0)
        rc = publish(w, f, extra, e);
    else
        file_abort(f);
    idx_abort(w);
    return rc;
}

static void release(struct idx_writer *w)
{
    buf_free(&w->bin_sum.chunks);
    buf_free(&w->idx_sum.chunks);
    free(w);
}

void idx_abort(struct idx_writer *w)
{
    if (!w)
        return;
    file_abort(w->bin);
    file_abort(w->lengths);
    file_abort(w->documents);
    ledger_abort(w->ledger);
    release(w);
}

struct idx_totals idx_totals(const struct idx_writer *w)
{
    return w->total;
}

/* ---- going on ---- */

void idx_leave(struct idx_writer *w)
{
    if (!w)
        return;
    file_leave(w->bin);
    file_leave(w->lengths);
    file_leave(w->documents);
    ledger_leave(w->ledger);
    release(w);
}

int idx_checkpoint(struct idx_writer *w, struct buf *state, struct err *e)
{
    TRY(file_sync(w->bin, e));
    TRY(file_sync(w->lengths, e));
    TRY(file_sync(w->documents, e));
    if (w->ledger)
        TRY(ledger_sync(w->ledger, e));
    if (buf_printf(state, "{\"documents\":%" PRIu64 ",\"sequences\":%" PRIu64 ",\"tokens\":%" PRIu64
                   ",\"ended\":%" PRIu64 ",\"sum\":", w->total.documents, w->total.sequences, w->total.tokens,
                   w->ended) < 0 ||
        idx_sum_save(&w->bin_sum, state) < 0 ||
        (w->ledger && buf_printf(state, ",\"ledger\":%" PRIu64, ledger_bytes(w->ledger)) < 0) || buf_putc(state, '}') < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return 0;
}

static void part_path(char path[IDX_PATH_MAX + 32], const char *prefix, const char *ending)
{
    const char *slash = strrchr(prefix, '/');
    int dir = slash ? (int)(slash + 1 - prefix) : 0;

    snprintf(path, IDX_PATH_MAX + 32, "%.*s.%s.%s.part", dir, prefix, prefix + dir, ending);
}

static bool exists(const char *prefix, const char *ending)
{
    char path[IDX_PATH_MAX + 8];

    snprintf(path, sizeof path, "%s%s", prefix, ending);
    return access(path, F_OK) == 0;
}

/* Whether the run was killed when the dataset had both its names; then what is left of it goes. */
static bool stands(const char *prefix)
{
    static const char *const left[] = {"lengths", "documents", "leaves"};
    char part[IDX_PATH_MAX + 32];

    part_path(part, prefix, "bin");
    if (access(part, F_OK) == 0 || !exists(prefix, ".bin") || !exists(prefix, ".idx"))
        return false;
    for (int i = 0; i < 3; i++) {
        part_path(part, prefix, left[i]);
        unlink(part);
    }
    return true;
}

/* A run that was killed between the first name and the last: the .bin (or the ledger) gets its temporary name back. */
static int undo_name(const char *prefix, const char *ending, struct err *e)
{
    char part[IDX_PATH_MAX + 32], named[IDX_PATH_MAX + 8];

    part_path(part, prefix, ending);
    snprintf(named, sizeof named, "%s.%s", prefix, ending);
    if (access(part, F_OK) == 0 || access(named, F_OK) != 0)
        return 0;
    return rename(named, part) < 0 ? err_sys(e, ERR_IO, "cannot rename '%s'", named) : 0;
}

/* The ledger of a run that keeps one. */
static int resume_ledger(struct idx_writer *w, const struct node *state, struct err *e)
{
    if (!node_get(state, "ledger"))
        return 0;
    TRY(undo_name(w->prefix, "ledger", e));
    return ledger_create(&w->ledger, w->prefix, w->total.documents, (uint64_t)node_int(state, "ledger", 0), w->total.tokens, e);
}

/* The checksums so far; those of the chunk that is not full yet are made anew. */
static int resume_sums(struct idx_writer *w, const struct node *state, struct err *e)
{
    uint64_t bytes = w->total.tokens * idx_dtype_size(w->dtype), part = bytes % IDX_CHUNK;
    char *p = malloc(IDX_CHUNK);
    ssize_t n = p ? file_reread(w->bin, bytes - part, p, part, e) : err_set(e, ERR_NOMEM, "out of memory");
    int rc = n < 0 ? (int)n : idx_sum_restore(&w->bin_sum, node_get(state, "sum"), bytes, p, e);

    free(p);
    return rc < 0 ? err_wrap(e, "'%s.bin', half-written", w->prefix) : 0;
}

int idx_resume(struct idx_writer **out, const char *prefix, enum idx_dtype dtype, const struct node *state,
               struct err *e)
{
    int rc;

    *out = NULL;
    if (stands(prefix))
        return 0;
    TRY(writer_new(out, prefix, dtype, e));
    (*out)->total.documents = (uint64_t)node_int(state, "documents", 0);
    (*out)->total.sequences = (uint64_t)node_int(state, "sequences", 0);
    (*out)->total.tokens = (uint64_t)node_int(state, "tokens", 0);
    (*out)->ended = (uint64_t)node_int(state, "ended", 0);
    rc = open_documents(*out, e); /* locked against a run that is still at it */
    if (rc == 0)
        rc = undo_name(prefix, "bin", e);
    if (rc == 0)
        rc = open_others(*out, e);
    if (rc == 0)
        rc = resume_ledger(*out, state, e);
    if (rc == 0)
        rc = resume_sums(*out, state, e);
    if (rc < 0) {
        idx_leave(*out);
        *out = NULL;
    }
    return rc;
}
