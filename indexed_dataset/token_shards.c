#include "indexed_dataset/token_shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "indexed_dataset/idx_write.h"
#include "indexed_dataset/npy.h"

enum { LLMC_HEADER = 1024, READ_BACK = 1 << 20 };

struct token_shards {
    XXH3_state_t sum; /* of this file's tokens */
    char prefix[IDX_PATH_MAX];
    enum token_shards_form form;
    int width;
    uint64_t full, files, n; /* whole files; tokens in the one that is written */
    struct file_out *out;    /* NULL: not begun */
    struct buf done;         /* JSON of the whole files */
};

static size_t header(const struct token_shards *s, char h[LLMC_HEADER])
{
    int32_t head[3] = {s->width == 2 ? 20240520 : 20240801, s->width == 2 ? 1 : 7, (int32_t)s->n};

    if (s->form == TOKEN_SHARDS_NPY)
        return npy_header(s->width == 2 ? NPY_U2 : NPY_U4, (int64_t)s->n, 0, h);
    memset(h, 0, LLMC_HEADER);
    memcpy(h, head, sizeof head);
    return LLMC_HEADER;
}

static void path_of(const struct token_shards *s, uint64_t k, char path[IDX_PATH_MAX + 64])
{
    snprintf(path, IDX_PATH_MAX + 64, "%s_%06" PRIu64 ".%s", s->prefix, k, s->form == TOKEN_SHARDS_NPY ? "npy" : "bin");
}

static int shards_new(struct token_shards **out, const char *prefix, enum token_shards_form form, int width,
                      uint64_t full, struct err *e)
{
    struct token_shards *s = mem_aligned(sizeof *s);

    *out = NULL;
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory");
    memset(s, 0, sizeof *s);
    s->form = form;
    s->width = width;
    s->full = full;
    XXH3_64bits_reset(&s->sum);
    if (snprintf(s->prefix, sizeof s->prefix - 64, "%s", prefix) >= (int)sizeof s->prefix - 64) {
        free(s);
        return err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", prefix);
    }
    *out = s;
    return 0;
}

/* Without PREFIX.sum.json the files are no whole: it goes first. */
static int remove_sums(const struct token_shards *s)
{
    char path[IDX_PATH_MAX + 16];

    snprintf(path, sizeof path, "%s.sum.json", s->prefix);
    return unlink(path);
}

static int begin_file(struct token_shards *s, struct err *e)
{
    char path[IDX_PATH_MAX + 64], h[LLMC_HEADER];

    path_of(s, s->files, path);
    s->n = 0;
    XXH3_64bits_reset(&s->sum);
    TRY(file_resume(&s->out, path, 0, e)); /* under a name that a later run finds */
    return file_write(s->out, h, header(s, h), e);
}

/* Now that its tokens are counted. */
static int end_file(struct token_shards *s, struct err *e)
{
    struct file_out *out = s->out;
    char h[LLMC_HEADER];
    const char *name = strrchr(file_out_name(out), '/');
    int rc = file_patch(out, 0, h, header(s, h), e);

    TRY(rc);
    if (buf_puts(&s->done, s->done.n ? ",{\"file\":" : "{\"file\":") < 0 ||
        json_put_string(&s->done, span_of(name ? name + 1 : file_out_name(out))) < 0 ||
        buf_printf(&s->done, ",\"tokens\":%" PRIu64 ",\"xxh3\":\"%016" PRIx64 "\"}", s->n,
                   (uint64_t)XXH3_64bits_digest(&s->sum)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (s->files == 0)
        remove_sums(s);
    s->out = NULL;
    s->files++;
    return file_commit(out, e);
}

int token_shards_create(struct token_shards **s, const char *prefix, enum token_shards_form form, int width,
                        uint64_t full, struct err *e)
{
    int rc;

    TRY(shards_new(s, prefix, form, width, full, e));
    rc = begin_file(*s, e); /* so that what cannot be written is known at once */
    if (rc < 0) {
        token_shards_abort(*s);
        *s = NULL;
    }
    return rc;
}

int token_shards_add(struct token_shards *s, const void *tokens, uint64_t n, struct err *e)
{
    const char *p = tokens;

    while (n) {
        uint64_t k;
        if (s->out && s->n == s->full)
            TRY(end_file(s, e));
        if (!s->out)
            TRY(begin_file(s, e));
        k = s->full - s->n < n ? s->full - s->n : n;
        XXH3_64bits_update(&s->sum, p, k * (size_t)s->width);
        TRY(file_write(s->out, p, k * (size_t)s->width, e));
        s->n += k;
        p += k * (size_t)s->width;
        n -= k;
    }
    return 0;
}

static int finish(struct token_shards *s, struct span extra, struct err *e)
{
    char path[IDX_PATH_MAX + 64];
    struct buf b = {0};
    int rc = s->out ? end_file(s, e) : 0;

    TRY(rc);
    for (uint64_t k = s->files;; k++) {
        path_of(s, k, path);
        if (unlink(path) < 0)
            break;
    }
    snprintf(path, sizeof path, "%s.sum.json", s->prefix);
    if (buf_puts(&b, "{\"shards\":[") < 0 || buf_put_span(&b, buf_span(&s->done)) < 0 || buf_puts(&b, "]") < 0 ||
        (extra.n && (buf_putc(&b, ',') < 0 || buf_put_span(&b, extra) < 0)) || buf_puts(&b, "}\n") < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    else
        rc = file_write_all(path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

int token_shards_commit(struct token_shards *s, struct span extra, struct err *e)
{
    int rc = finish(s, extra, e);

    token_shards_abort(s);
    return rc;
}

void token_shards_abort(struct token_shards *s)
{
    if (!s)
        return;
    file_abort(s->out);
    buf_free(&s->done);
    free(s);
}

/* ---- going on ---- */

void token_shards_leave(struct token_shards *s)
{
    if (!s)
        return;
    file_leave(s->out);
    buf_free(&s->done);
    free(s);
}

int token_shards_checkpoint(struct token_shards *s, struct buf *state, struct err *e)
{
    if (s->out)
        TRY(file_sync(s->out, e));
    if (buf_printf(state, "{\"files\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"sum\":\"%016" PRIx64 "\",\"done\":", s->files,
                   s->n, (uint64_t)XXH3_64bits_digest(&s->sum)) < 0 ||
        json_put_string(state, buf_span(&s->done)) < 0 || buf_putc(state, '}') < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return 0;
}

/* The file that was being written at the checkpoint, under its temporary name again if it has been
 * finished since. */
static int reopen(struct token_shards *s, const struct node *state, struct err *e)
{
    char path[IDX_PATH_MAX + 64], part[IDX_PATH_MAX + 80], h[LLMC_HEADER];
    uint64_t at = header(s, h), end = at + s->n * (uint64_t)s->width;
    const char *sum = node_str(state, "sum"), *slash;
    char *block = malloc(READ_BACK);
    int rc = block ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    path_of(s, s->files, path);
    slash = strrchr(path, '/');
    int dir = slash ? (int)(slash + 1 - path) : 0;
    snprintf(part, sizeof part, "%.*s.%s.part", dir, path, path + dir);
    if (rc == 0 && access(part, F_OK) != 0 && rename(path, part) < 0)
        rc = err_sys(e, ERR_FORMAT, "'%s', half-written, is gone", part);
    if (rc == 0)
        rc = file_resume(&s->out, path, end, e);
    while (rc == 0 && at < end) {
        ssize_t n = file_reread(s->out, at, block, end - at < READ_BACK ? (size_t)(end - at) : READ_BACK, e);
        if (n <= 0)
            rc = n < 0 ? (int)n : err_set(e, ERR_FORMAT, "'%s' was cut", part);
        else
            XXH3_64bits_update(&s->sum, block, (size_t)n);
        at += n > 0 ? (uint64_t)n : 0;
    }
    free(block);
    if (rc == 0 && (!sum || XXH3_64bits_digest(&s->sum) != strtoull(sum, NULL, 16)))
        rc = err_set(e, ERR_FORMAT, "'%s' has not the bytes that were written", part);
    return rc;
}

int token_shards_resume(struct token_shards **out, const char *prefix, enum token_shards_form form, int width,
                        uint64_t full, const struct node *state, struct err *e)
{
    const char *done = node_str(state, "done");
    struct token_shards *s;
    int rc;

    TRY(shards_new(out, prefix, form, width, full, e));
    s = *out;
    s->files = (uint64_t)node_int(state, "files", 0);
    s->n = (uint64_t)node_int(state, "tokens", 0);
    rc = done && buf_puts(&s->done, done) == 0 ? 0 : err_set(e, ERR_FORMAT, "no state of token shards");
    if (rc == 0)
        rc = reopen(s, state, e);
    if (rc < 0) {
        token_shards_leave(s);
        *out = NULL;
    }
    return rc;
}
