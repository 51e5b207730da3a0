#include "indexed_dataset/idx_merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "indexed_dataset/idx_read.h"

enum { BLOCK = 8192 }; /* sequences and documents appended at a time */

struct block {
    const char *bytes, *end; /* the sequences lie one after another in the part's .bin */
    int32_t length[BLOCK];
    uint64_t doc[BLOCK]; /* the sequences of the block before its end */
    size_t n_seqs, n_docs;
};

static int flush(struct idx_writer *w, struct block *b, struct err *e)
{
    int rc = idx_add_block(w, b->bytes, b->length, b->n_seqs, b->doc, b->n_docs, e);

    b->n_seqs = b->n_docs = 0;
    return rc;
}

static int add_part(struct idx_writer *w, struct block *b, const struct idx *x, struct err *e)
{
    uint64_t at = 0, first, end;

    for (uint64_t d = 0; d < idx_n_documents(x); d++) {
        TRY(idx_document(x, d, &first, &end, e));
        if (first != at)
            return err_set(e, ERR_FORMAT, "'%s.idx': document %" PRIu64 " begins with sequence %" PRIu64
                           ", not %" PRIu64, idx_prefix(x), d, first, at);
        for (; at < end; at++) {
            const void *p = NULL;
            int32_t n = 0;
            TRY(idx_sequence(x, at, &p, &n, e));
            if (n == 0)
                return err_set(e, ERR_FORMAT, "'%s.idx': sequence %" PRIu64 " is empty", idx_prefix(x), at);
            if (b->n_seqs == BLOCK || (b->n_seqs && p != b->end))
                TRY(flush(w, b, e));
            if (b->n_seqs == 0)
                b->bytes = p;
            b->end = (const char *)p + (size_t)n * idx_dtype_size(idx_dtype(x));
            b->length[b->n_seqs++] = n;
        }
        b->doc[b->n_docs++] = b->n_seqs;
        if (b->n_docs == BLOCK)
            TRY(flush(w, b, e));
    }
    if (at != idx_n_sequences(x))
        return err_set(e, ERR_FORMAT, "'%s.idx': its documents end at sequence %" PRIu64 " of %" PRIu64,
                       idx_prefix(x), at, idx_n_sequences(x));
    return flush(w, b, e);
}

/* Whether PREFIX.bin is the part's: it would be read while it is replaced. */
static bool same_file(const char *prefix, const struct idx *x)
{
    char a[IDX_PATH_MAX + 8], b[IDX_PATH_MAX + 8];
    struct stat s, t;

    snprintf(a, sizeof a, "%.*s.bin", IDX_PATH_MAX, prefix);
    snprintf(b, sizeof b, "%s.bin", idx_prefix(x));
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

static int check_parts(const char *prefix, struct idx *const *x, const char *const *part, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        if (idx_dtype(x[i]) != idx_dtype(x[0]))
            return err_set(e, ERR_ARG, "'%s' holds %s, '%s' %s", part[0], idx_dtype_name(idx_dtype(x[0])),
                           part[i], idx_dtype_name(idx_dtype(x[i])));
        if (same_file(prefix, x[i]))
            return err_set(e, ERR_ARG, "'%s' is both a part and the result", prefix);
    }
    return 0;
}

static int write_all(const char *prefix, struct idx *const *x, int n, struct err *e)
{
    struct block *b = calloc(1, sizeof *b);
    struct idx_writer *w;
    int rc;

    if (!b)
        return err_set(e, ERR_NOMEM, "out of memory");
    b->bytes = "";
    rc = idx_create(&w, prefix, idx_dtype(x[0]), e);
    if (rc == 0) {
        for (int i = 0; i < n && rc == 0; i++)
            rc = add_part(w, b, x[i], e);
        if (rc == 0)
            rc = idx_commit(w, (struct span){0}, e);
        else
            idx_abort(w);
    }
    free(b);
    return rc;
}

int idx_merge(const char *prefix, const char *const *part, int n, struct err *e)
{
    struct idx **x = calloc((size_t)(n > 0 ? n : 1), sizeof *x);
    int rc = n > 0 ? 0 : err_set(e, ERR_ARG, "nothing to merge");

    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; i < n && rc == 0; i++)
        rc = idx_open(&x[i], part[i], e);
    if (rc == 0)
        rc = check_parts(prefix, x, part, n, e);
    if (rc == 0)
        rc = write_all(prefix, x, n, e);
    for (int i = 0; i < n; i++)
        idx_close(x[i]);
    free(x);
    return rc;
}
