#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "indexed_dataset/ledger_format.h"

enum { BLOCK = 4096 }; /* entries copied at a time */

/* Entries wait beside the records under a name that never becomes final. */
struct ledger_writer {
    struct file_out *records, *entries;
    uint64_t documents, bytes, tokens;
};

static struct span of_bytes(const void *p, size_t n)
{
    return (struct span){p, n};
}

/* ---- records and leaves ---- */

int ledger_put_record(struct buf *b, struct span id, struct span url, struct span source)
{
    uint32_t n[2] = {(uint32_t)id.n, (uint32_t)url.n};

    TRY(buf_put(b, n, sizeof n));
    TRY(buf_put_span(b, id));
    TRY(buf_put_span(b, url));
    return buf_put_span(b, source);
}

void ledger_leaf(enum idx_dtype dtype, struct span record, struct span tokens, uint8_t leaf[SHA256_SUM])
{
    uint8_t start[6] = {0, (uint8_t)dtype};
    uint32_t n = (uint32_t)record.n;

    memcpy(start + 2, &n, sizeof n);
    sha256_of((struct span[]){of_bytes(start, sizeof start), record, tokens}, 3, leaf);
}

/* The node above two. */
static void join(const uint8_t left[SHA256_SUM], const uint8_t right[SHA256_SUM], uint8_t out[SHA256_SUM])
{
    sha256_of((struct span[]){of_bytes("\1", 1), of_bytes(left, SHA256_SUM), of_bytes(right, SHA256_SUM)}, 3, out);
}

void ledger_tree_add(struct ledger_tree *t, const uint8_t leaf[SHA256_SUM])
{
    uint8_t sum[SHA256_SUM];
    int i = 0;

    memcpy(sum, leaf, sizeof sum);
    for (; t->n >> i & 1; i++)
        join(t->whole[i], sum, sum);
    memcpy(t->whole[i], sum, sizeof sum);
    t->n++;
}

void ledger_tree_root(const struct ledger_tree *t, uint8_t root[SHA256_SUM])
{
    bool some = false;

    sha256_of(NULL, 0, root); /* of no leaf */
    for (int i = 0; i < 64; i++)
        if (t->n >> i & 1) {
            if (some)
                join(t->whole[i], root, root);
            else
                memcpy(root, t->whole[i], SHA256_SUM);
            some = true;
        }
}

/* ---- the file ---- */

int ledger_create(struct ledger_writer **out, const char *prefix, uint64_t documents, uint64_t bytes, uint64_t tokens,
                  struct err *e)
{
    char path[IDX_PATH_MAX + 8];
    struct ledger_writer *w;
    int rc;

    *out = NULL;
    if (!sha256_is_built())
        return err_set(e, ERR_UNSUPPORTED, "'%s.ledger': this build has no SHA-256 (nettle-dev)", prefix);
    w = calloc(1, sizeof *w);
    if (!w)
        return err_set(e, ERR_NOMEM, "out of memory");
    *w = (struct ledger_writer){.documents = documents, .bytes = bytes, .tokens = tokens};
    snprintf(path, sizeof path, "%.*s.leaves", IDX_PATH_MAX, prefix);
    rc = file_resume(&w->entries, path, documents * LEDGER_ENTRY, e);
    snprintf(path, sizeof path, "%.*s.ledger", IDX_PATH_MAX, prefix);
    if (rc == 0)
        rc = file_resume(&w->records, path, documents ? LEDGER_HEAD + bytes : 0, e);
    if (rc == 0 && documents == 0)
        rc = file_write(w->records, LEDGER_MAGIC, LEDGER_HEAD, e);
    if (rc == 0) {
        *out = w;
        return 0;
    }
    if (documents)
        ledger_leave(w);
    else
        ledger_abort(w);
    return rc;
}

int ledger_add(struct ledger_writer *w, struct span records, const struct ledger_item *item, size_t n, struct err *e)
{
    struct ledger_entry entry;

    for (size_t i = 0; i < n; i++) {
        w->bytes += item[i].record;
        w->tokens += item[i].tokens;
        entry = (struct ledger_entry){.record_end = w->bytes, .token_end = w->tokens};
        memcpy(entry.leaf, item[i].leaf, sizeof entry.leaf);
        TRY(file_write(w->entries, &entry, sizeof entry, e));
    }
    w->documents += n;
    return records.n ? file_write(w->records, records.p, records.n, e) : 0;
}

uint64_t ledger_written(const struct ledger_writer *w)
{
    return w->documents;
}

uint64_t ledger_bytes(const struct ledger_writer *w)
{
    return w->bytes;
}

int ledger_sync(struct ledger_writer *w, struct err *e)
{
    TRY(file_sync(w->entries, e));
    return file_sync(w->records, e);
}

int ledger_finish(struct ledger_writer *w, uint8_t root[SHA256_SUM], struct err *e)
{
    struct ledger_foot foot = {.documents = w->documents, .bytes = w->bytes};
    struct ledger_tree tree = {.n = 0};
    struct ledger_entry *block = malloc(BLOCK * sizeof *block);
    ssize_t n = 0;
    int rc = block ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (uint64_t i = 0; i < w->documents && rc == 0; i += (uint64_t)n) {
        n = file_reread(w->entries, i * sizeof *block, block, BLOCK * sizeof *block, e);
        if (n < (ssize_t)sizeof *block)
            rc = n < 0 ? (int)n : err_set(e, ERR_IO, "a temporary file beside '%s' was cut", file_out_name(w->records));
        n /= (ssize_t)sizeof *block;
        for (ssize_t k = 0; k < n && rc == 0; k++)
            ledger_tree_add(&tree, block[k].leaf);
        if (rc == 0)
            rc = file_write(w->records, block, (size_t)n * sizeof *block, e);
    }
    free(block);
    TRY(rc);
    ledger_tree_root(&tree, root);
    memcpy(foot.root, root, SHA256_SUM);
    foot.check = ledger_foot_check(&foot);
    TRY(file_write(w->records, &foot, sizeof foot, e));
    return file_flush(w->records, e);
}

int ledger_commit(struct ledger_writer *w, struct err *e)
{
    struct file_out *f = w->records;

    w->records = NULL;
    return file_commit(f, e);
}

void ledger_abort(struct ledger_writer *w)
{
    if (!w)
        return;
    file_abort(w->records);
    file_abort(w->entries);
    free(w);
}

void ledger_leave(struct ledger_writer *w)
{
    if (!w)
        return;
    file_leave(w->records);
    file_leave(w->entries);
    free(w);
}
