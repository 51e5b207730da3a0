/* A Parquet file as JSON lines: a member is a row group.  The metadata stand at the end, so what cannot seek is first put aside
 * in a nameless temporary file. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file_in.h"
#include "base/parquet_ahead.h"
#include "base/spill.h"

enum { SPILL_CAP = 256 << 10 };

struct parquet_in {
    struct parquet_reader reader;
    struct spill spill;
    const uint8_t *mem;
    struct parquet_block block; /* its lines from `at` on are to be given out */
    size_t at;
    bool started;    /* a row group has been begun */
    uint64_t passed; /* rows of the groups before it */
    struct parquet_ahead *ahead; /* threads that make lines, or NULL */
};

static int read_mem(void *file, uint64_t at, void *p, size_t n, struct err *e)
{
    const struct parquet_in *q = ((struct file_in *)file)->parquet;

    (void)e;
    memcpy(p, q->mem + at, n);
    return 0;
}

static int read_spilled(void *file, uint64_t at, void *p, size_t n, struct err *e)
{
    const struct parquet_in *q = ((struct file_in *)file)->parquet;

    return spill_read(&q->spill, at, p, n, e);
}

static int read_file(void *file, uint64_t at, void *p, size_t n, struct err *e)
{
    const struct file_in *f = file;
    ssize_t got = fd_read_at(f->fd, p, n, f->start + at);

    if (got < 0)
        return err_sys(e, ERR_IO, "cannot read at offset %" PRIu64, at);
    return (size_t)got == n ? 0 : err_set(e, ERR_IO, "it has become shorter while it was read");
}

/* Puts a stream that cannot seek aside. */
static int spill_all(struct file_in *f, struct spill *s)
{
    TRY(spill_open(s, NULL, SPILL_CAP, &f->why));
    for (;;) {
        TRY(file_in_fill(f, 1));
        if (f->at == f->n)
            return spill_flush(s, &f->why);
        TRY(spill_put(s, f->in + f->at, f->n - f->at, &f->why));
        f->at = f->n;
    }
}

static int open_reader(struct file_in *f, struct parquet_in *q)
{
    q->reader.source = (struct parquet_source){.read = read_file, .arg = f, .size = f->size};
    if (!f->own) {
        q->mem = f->in;
        q->reader.source.read = read_mem;
    } else if (!f->seekable) {
        TRY(spill_all(f, &q->spill));
        q->reader.source.read = read_spilled;
        q->reader.source.size = q->spill.size;
    }
    f->at = f->n = 0;
    f->base = 0;
    return f->columns ? parquet_reader_open_some(&q->reader, f->columns, &f->why) : parquet_reader_open(&q->reader, &f->why);
}

static int fail(struct file_in *f)
{
    struct err why = f->why;

    return file_in_broken(f, why.code, "%s", why.msg);
}

int file_parquet_begin(struct file_in *f)
{
    struct parquet_in *q = f->parquet;

    if (!q) {
        q = f->parquet = calloc(1, sizeof *q);
        if (!q)
            return file_in_broken(f, ERR_NOMEM, "out of memory");
        q->spill.fd = -1;
        if (open_reader(f, q) < 0)
            return fail(f);
        if (f->threads > 1 && q->reader.meta->n_groups > 1) /* without them it goes on as well */
            parquet_ahead_open(&q->ahead, &q->reader, 0, f->threads, NULL);
    } else if (q->started) {
        q->passed += q->reader.meta->group[q->reader.group++].rows;
        if (q->ahead)
            parquet_ahead_turn(q->ahead);
    }
    if (q->reader.group == q->reader.meta->n_groups)
        return 0;
    q->started = true;
    f->member = q->reader.meta->group[q->reader.group].chunk[0].at;
    if (!q->ahead)
        parquet_reader_start(&q->reader);
    return 1;
}

/* How far it has come, in bytes of the file. */
static uint64_t where(const struct parquet_in *q, uint64_t size)
{
    const struct parquet_meta *m = q->reader.meta;
    uint64_t done = q->passed + q->block.row;

    return (uint64_t)((double)size * (double)done / (double)(m->rows ? m->rows : 1));
}

/* Makes the next lines of the row group, or takes those that were made. */
static void next_lines(struct file_in *f, struct parquet_in *q)
{
    q->at = 0;
    if (q->ahead)
        parquet_ahead_next(q->ahead, &q->block);
    else
        parquet_block_make(&q->block, &q->reader);
    f->base = where(q, f->size);
}

ssize_t file_parquet_read(struct file_in *f, void *p, size_t n)
{
    struct parquet_in *q = f->parquet;
    size_t k;

    if (q->at == q->block.lines.n && q->block.why.code == 0)
        next_lines(f, q);
    k = q->block.lines.n - q->at < n ? q->block.lines.n - q->at : n;
    if (k == 0 && q->block.why.code < 0) {
        f->why = q->block.why;
        q->block.why.code = 0;
        return fail(f);
    }
    if (k)
        memcpy(p, q->block.lines.p + q->at, k);
    q->at += k;
    return (ssize_t)k;
}

int file_parquet_skip(struct file_in *f)
{
    const struct parquet_in *q = f->parquet;

    f->state = q && q->started && q->reader.group + 1 < q->reader.meta->n_groups ? BETWEEN : END;
    return f->state == BETWEEN;
}

void file_parquet_close(struct file_in *f)
{
    struct parquet_in *q = f->parquet;

    if (!q)
        return;
    parquet_ahead_close(q->ahead);
    parquet_reader_close(&q->reader);
    spill_close(&q->spill);
    buf_free(&q->block.lines);
    free(q);
}
