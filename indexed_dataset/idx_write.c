#include "indexed_dataset/idx_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "indexed_dataset/idx_sum.h"

struct idx_writer {
    char prefix[IDX_PATH_MAX];
    enum idx_dtype dtype;
    struct file_out *bin;
    FILE *lengths;   /* i32 a sequence */
    FILE *documents; /* i64 a document: the sequences up to its end */
    struct idx_sum bin_sum, idx_sum;
    struct idx_totals total;
    uint64_t ended; /* sequences up to the end of the last document */
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

/* A file without a name in the folder of prefix. */
static int open_nameless(FILE **f, const char *prefix, struct err *e)
{
    int fd = file_nameless(prefix, e);

    if (fd < 0)
        return fd;
    *f = fdopen(fd, "w+");
    if (!*f) {
        close(fd);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    return 0;
}

int idx_create(struct idx_writer **out, const char *prefix, enum idx_dtype dtype, struct err *e)
{
    struct idx_writer *w = calloc(1, sizeof *w);
    char path[IDX_PATH_MAX];
    int rc;

    *out = NULL;
    if (!w)
        return err_set(e, ERR_NOMEM, "out of memory");
    w->dtype = dtype;
    idx_sum_init(&w->bin_sum);
    idx_sum_init(&w->idx_sum);
    rc = name_of(w->prefix, prefix, "", e);
    if (rc == 0)
        rc = name_of(path, prefix, ".bin", e);
    if (rc == 0)
        rc = file_create(&w->bin, path, 0, e);
    if (rc == 0)
        rc = open_nameless(&w->lengths, prefix, e);
    if (rc == 0)
        rc = open_nameless(&w->documents, prefix, e);
    if (rc < 0) {
        idx_abort(w);
        return rc;
    }
    *out = w;
    return 0;
}

static int put_bytes(struct idx_writer *w, const void *p, size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (idx_sum_add(&w->bin_sum, p, n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return file_write(w->bin, p, n, e);
}

static int spool_failed(const struct idx_writer *w, struct err *e)
{
    return err_sys(e, ERR_IO, "cannot write a temporary file beside '%s'", w->prefix);
}

static int put_length(struct idx_writer *w, int32_t length, struct err *e)
{
    if (length < 0)
        return err_set(e, ERR_ARG, "a sequence of %d tokens", length);
    if (length == 0)
        return 0;
    if (fwrite(&length, sizeof length, 1, w->lengths) != 1)
        return spool_failed(w, e);
    w->total.sequences++;
    w->total.tokens += (uint64_t)length;
    return 0;
}

/* The document ends behind `seqs` sequences in all. */
static int put_document(struct idx_writer *w, uint64_t seqs, struct err *e)
{
    if (fwrite(&seqs, sizeof seqs, 1, w->documents) != 1)
        return spool_failed(w, e);
    w->total.documents++;
    w->ended = seqs;
    return 0;
}

int idx_add_block(struct idx_writer *w, const void *bytes, const int32_t *lengths,
                  size_t n_seqs, const uint64_t *docs, size_t n_docs, struct err *e)
{
    uint64_t tokens = w->total.tokens;
    size_t d = 0;

    for (size_t i = 0; i <= n_seqs; i++) {
        for (; docs && d < n_docs && docs[d] == i; d++)
            TRY(put_document(w, w->total.sequences, e));
        if (i == n_seqs)
            break;
        TRY(put_length(w, lengths[i], e));
        if (!docs)
            TRY(put_document(w, w->total.sequences, e));
    }
    if (docs && d < n_docs)
        return err_set(e, ERR_ARG, "the documents of a block of %zu sequences are out of order", n_seqs);
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
    TRY(put_ids(w, ids, n, e));
    TRY(put_length(w, (int32_t)n, e));
    return put_document(w, w->total.sequences, e);
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
    int32_t len[8192];
    int64_t at[8192], offset = 0;
    int64_t size = (int64_t)idx_dtype_size(w->dtype);
    size_t n;

    rewind(w->lengths);
    while ((n = fread(len, sizeof *len, 8192, w->lengths)) > 0) {
        for (size_t i = 0; i < n && offsets; i++) {
            at[i] = offset;
            offset += len[i] * size;
        }
        TRY(put_idx(w, f, offsets ? (void *)at : (void *)len, n * (offsets ? 8 : 4), e));
    }
    return ferror(w->lengths) ? spool_failed(w, e) : 0;
}

static int put_documents(struct idx_writer *w, struct file_out *f, struct err *e)
{
    int64_t end[8192] = {0};
    size_t n;

    TRY(put_idx(w, f, end, 8, e)); /* the first document begins at 0 */
    rewind(w->documents);
    while ((n = fread(end, sizeof *end, 8192, w->documents)) > 0)
        TRY(put_idx(w, f, end, n * 8, e));
    return ferror(w->documents) ? spool_failed(w, e) : 0;
}

static int put_all(struct idx_writer *w, struct file_out *f, struct err *e)
{
    if (fflush(w->lengths) != 0 || fflush(w->documents) != 0)
        return spool_failed(w, e);
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

/* With everything on disk under temporary names: the old .idx goes first and the new
 * one comes last, so that a kill in between leaves no .idx over another's .bin. */
static int publish(struct idx_writer *w, struct file_out *idx, struct span extra, struct err *e)
{
    struct file_out *bin = w->bin;
    char path[IDX_PATH_MAX];
    int rc = name_of(path, w->prefix, ".idx", e);

    if (rc == 0 && unlink(path) < 0 && errno != ENOENT)
        rc = err_sys(e, ERR_IO, "cannot replace '%s'", path);
    if (rc == 0) {
        w->bin = NULL;
        rc = file_commit(bin, e);
        if (rc == 0)
            rc = write_sums(w, extra, e);
        if (rc == 0)
            return file_commit(idx, e);
        if (name_of(path, w->prefix, ".bin", NULL) == 0)
            unlink(path);
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
    if (rc == 0)
        rc = file_create(&f, path, 0, e);
    if (rc == 0)
        rc = put_all(w, f, e);
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

void idx_abort(struct idx_writer *w)
{
    if (!w)
        return;
    file_abort(w->bin);
    if (w->lengths)
        fclose(w->lengths);
    if (w->documents)
        fclose(w->documents);
    buf_free(&w->bin_sum.chunks);
    buf_free(&w->idx_sum.chunks);
    free(w);
}

struct idx_totals idx_totals(const struct idx_writer *w)
{
    return w->total;
}
