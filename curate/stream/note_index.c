#include "curate/stream/note_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "curate/stream/pass.h"

#define MAGIC "quern-index 1\n"
enum { VERSION = 12, LATEST = 2 }; /* which byte of it says which; of near-duplicates there is a second (docs/dedup.md) */
enum { BLOCK = 1 << 20 };
static const uint64_t MAX_BLOCK = UINT64_C(1) << 40;

struct note_index {
    struct file_out *out;
    struct buf block;
    uint64_t sum;
};

/* Nothing appears. */
static void note_index_abort(struct note_index *x)
{
    if (!x)
        return;
    file_abort(x->out);
    buf_free(&x->block);
    free(x);
}

int note_index_create(struct note_index **out, const char *path, const char *kind, struct err *e)
{
    struct note_index *x = calloc(1, sizeof *x);
    int rc;

    *out = NULL;
    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    rc = file_create(&x->out, path, 0, e);
    if (rc == 0)
        rc = file_write(x->out, MAGIC, sizeof MAGIC - 1, e);
    if (rc == 0)
        rc = file_write(x->out, kind, strlen(kind), e);
    if (rc == 0)
        rc = file_write(x->out, "\n", 1, e);
    if (rc < 0)
        note_index_abort(x);
    else
        *out = x;
    return rc;
}

static uint64_t add_sum(uint64_t sum, uint64_t hash)
{
    return hash_mix64(sum ^ hash) + hash;
}

static int put_block(struct note_index *x, struct err *e)
{
    uint64_t head[2] = {x->block.n, hash_xxh3_64(buf_span(&x->block))};

    x->sum = add_sum(x->sum, head[1]);
    TRY(file_write(x->out, head, sizeof head, e));
    TRY(file_write(x->out, x->block.p, x->block.n, e));
    buf_clear(&x->block);
    return 0;
}

int note_index_put(struct note_index *x, struct span note, struct err *e)
{
    if (frame_put_note(&x->block, note) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an index");
    return x->block.n >= BLOCK ? put_block(x, e) : 0;
}

int note_index_finish(struct note_index *x, struct file_group *files, struct err *e)
{
    struct file_out *f = x->out;
    uint64_t end[2] = {0};
    int rc = x->block.n ? put_block(x, e) : 0;

    end[1] = x->sum;
    if (rc == 0)
        rc = file_write(f, end, sizeof end, e);
    if (rc == 0) {
        x->out = NULL;
        rc = file_group_add(files, f, e);
    }
    note_index_abort(x);
    return rc;
}

int note_index_end(struct note_index *x, int rc, struct file_group *files, struct err *e)
{
    if (rc == 0)
        return note_index_finish(x, files, e);
    note_index_abort(x);
    return rc;
}

/* ---- reading ---- */

static int read_exactly(struct file_in *in, void *p, size_t n, struct err *e)
{
    size_t got = 0;

    while (got < n) {
        ssize_t k = file_read(in, (char *)p + got, n - got, e);
        if (k < 0)
            return (int)k;
        if (k == 0)
            return err_set(e, ERR_FORMAT, "the index '%s' is cut short at byte %" PRIu64, file_name(in), file_tell(in));
        got += (size_t)k;
    }
    return 0;
}

/* The first line.  The version: it is an index's; 0: some other file.  ERR_UNSUPPORTED: a later version. */
static int read_magic(struct file_in *in, struct err *e)
{
    char magic[sizeof MAGIC - 1];
    size_t n = 0;
    ssize_t k = 1;

    while (n < sizeof magic && (k = file_read(in, magic + n, sizeof magic - n, e)) > 0)
        n += (size_t)k;
    if (k < 0 || n < sizeof magic || memcmp(magic, MAGIC, VERSION) != 0 || magic[VERSION + 1] != '\n')
        return k < 0 ? (int)k : 0;
    if (magic[VERSION] > '0' + LATEST && magic[VERSION] <= '9')
        return err_set(e, ERR_UNSUPPORTED, "the index '%s' is of version %c; this quern reads %d", file_name(in), magic[VERSION],
                       LATEST);
    return magic[VERSION] >= '1' && magic[VERSION] <= '0' + LATEST ? magic[VERSION] - '0' : 0;
}

static int read_kind(struct file_in *in, char kind[NOTE_INDEX_KIND], struct err *e)
{
    size_t n = 0;

    do {
        if (n == NOTE_INDEX_KIND)
            return err_set(e, ERR_FORMAT, "the index '%s' is damaged: its second line is too long", file_name(in));
        TRY(read_exactly(in, &kind[n], 1, e));
    } while (kind[n++] != '\n');
    kind[n - 1] = '\0';
    return 0;
}

/* Can it be read once more from its beginning?  Not a pipe: it has documents. */
static bool twice(const char *path)
{
    struct stat st;

    return stat(path, &st) < 0 || S_ISREG(st.st_mode);
}

int note_index_kind(const char *path, char kind[NOTE_INDEX_KIND], struct err *e)
{
    struct file_in *in;
    int rc;

    if (!twice(path))
        return 0;
    TRY(file_open(&in, path, e));
    rc = read_magic(in, e);
    if (rc > 0 && read_kind(in, kind, e) < 0)
        rc = e->code;
    file_close(in);
    return rc;
}

/* It must be of this kind. */
static int check_kind(struct file_in *in, const char *kind, struct err *e)
{
    char line[NOTE_INDEX_KIND];

    TRY(read_kind(in, line, e));
    if (strcmp(line, kind) != 0)
        return err_set(e, ERR_FORMAT, "'%s' is an index of '%s', not of '%s'", file_name(in), line, kind);
    return 0;
}

/* A length may be a lie: the bytes are read a piece at a time. */
static int read_block(struct file_in *in, struct buf *b, uint64_t n, struct err *e)
{
    buf_clear(b);
    while (b->n < n) {
        size_t step = n - b->n < BLOCK ? n - b->n : BLOCK;

        if (buf_reserve(b, step) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a block of '%s'", file_name(in));
        TRY(read_exactly(in, b->p + b->n, step, e));
        b->n += step;
    }
    return 0;
}

/* Blocks are buffers that malloc aligned to 16, as notes must be. */
static int take_frames(struct span all, note_taker *take, void *to, struct err *e)
{
    struct span note;
    size_t at = 0;
    int rc;

    while ((rc = frame_next_note(all, &at, &note, e)) > 0)
        TRY(take(to, note, e));
    return rc;
}

/* Nothing may follow. */
static int read_end(struct file_in *in, struct err *e)
{
    uint64_t at = file_tell(in);
    char more;
    ssize_t k = file_read(in, &more, 1, e);

    return k <= 0 ? (int)k : err_set(e, ERR_FORMAT, "the index '%s' is damaged: it goes on at byte %" PRIu64 ", behind"
                                     " its end; make it anew", file_name(in), at);
}

static int read_blocks(struct file_in *in, struct buf *b, note_taker *take, void *to, struct err *e)
{
    uint64_t sum = 0, head[2];

    for (;;) {
        uint64_t at = file_tell(in);

        TRY(read_exactly(in, head, sizeof head, e));
        if (head[0] == 0 && head[1] == sum)
            return read_end(in, e);
        if (head[0] == 0 || head[0] > MAX_BLOCK)
            return err_set(e, ERR_FORMAT, "the index '%s' is damaged at byte %" PRIu64 ": make it anew",
                           file_name(in), at);
        TRY(read_block(in, b, head[0], e));
        if (hash_xxh3_64(buf_span(b)) != head[1])
            return err_set(e, ERR_FORMAT, "the index '%s' is damaged: the block at byte %" PRIu64
                           " has another checksum; make it anew", file_name(in), at);
        sum = add_sum(sum, head[1]);
        TRY(take_frames(buf_span(b), take, to, e));
    }
}

struct taker {
    note_taker *take;
    void *to;
};

static int sink_notes(void *to, struct span frames, struct err *e)
{
    const struct taker *t = to;

    return take_frames(frames, t->take, t->to, e);
}

static int notes_of_documents(char *path, const struct stage *st, int jobs, struct taker *t, struct err *e)
{
    struct stage stage = *st;
    struct feed feed = {.lines = {.paths = &path, .n_paths = 1}};
    struct flows flows;
    struct pass_conf conf = {.stages = &stage, .n_stages = 1, .last = 1, .later = true, .feed = &feed, .jobs = jobs,
                             .notes = {sink_notes, t}, .flows = &flows};
    struct pass *p = NULL;
    int rc = flows_init(&flows, 1) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;

    if (rc == 0)
        rc = pass_open(&p, &conf, e);
    if (rc == 0)
        rc = pass_run(p, 0, e);
    if (rc == 0 && flows_check(&flows, NULL, e) < 0)
        rc = err_wrap(e, "'%s'", path);
    pass_close(p);
    feed_close(&feed);
    flows_free(&flows);
    return rc;
}

int notes_of(const char *path, const struct stage *st, const char *kind, int jobs, note_taker *take, void *to,
             struct err *e)
{
    struct taker t = {take, to};
    struct buf b = {0};
    struct file_in *in = NULL;
    int rc = 0;

    if (twice(path)) {
        TRY(file_open(&in, path, e));
        rc = read_magic(in, e);
    }
    if (rc > 0) {
        bool other = rc != 1;

        rc = check_kind(in, kind, e);
        if (rc == 0 && other)
            rc = err_set(e, ERR_FORMAT, "the index '%s' has no notes", path);
        if (rc == 0)
            rc = read_blocks(in, &b, take, to, e);
        file_close(in);
    } else {
        char *copy = strdup(path);

        file_close(in);
        if (rc == 0)
            rc = copy ? notes_of_documents(copy, st, jobs, &t, e) : err_set(e, ERR_NOMEM, "out of memory");
        free(copy);
    }
    buf_free(&b);
    return rc;
}

int notes_of_all(const struct opt_list *paths, const struct stage *st, const char *kind, note_taker *take, void *to,
                 struct err *e)
{
    for (int i = 0; i < paths->n; i++)
        if (notes_of(paths->v[i], st, kind, limits_cpus(), take, to, e) < 0)
            return e->code = ERR_IO;
    return 0;
}

int notes_list(struct opt_list *to, const struct opt_list *paths, struct err *e)
{
    *to = (struct opt_list){0};
    for (int i = 0; i < paths->n; i++) {
        TRY(file_check_readable(paths->v[i], e));
        TRY(opt_list_add(to, paths->v[i], e));
    }
    return 0;
}
