#include "curate/stream/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/file_kind.h"

static int64_t max_line(const struct feed *f)
{
    return f->max_line ? f->max_line : 256 << 20;
}

static size_t block_bytes(const struct feed *f)
{
    return f->block_bytes ? f->block_bytes : BLOCK_BYTES;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a block of input");
}

void block_reset(struct feed_block *b)
{
    arena_reset(&b->arena);
    buf_clear(&b->bytes);
    if (b->bytes.cap > 8 * (size_t)BLOCK_BYTES) /* one long line: give it back */
        buf_free(&b->bytes);
    b->n = 0;
    b->weight = 0;
}

void block_free(struct feed_block *b)
{
    arena_free(&b->arena);
    buf_free(&b->bytes);
    free(b->item);
    *b = (struct feed_block){0};
}

static struct item *add_item(struct feed_block *b)
{
    if (mem_grow(&b->item, &b->cap, (size_t)b->n + 1, sizeof *b->item) < 0)
        return NULL;
    b->item[b->n] = (struct item){0};
    return &b->item[b->n++];
}

static int add_bad(struct feed_block *b, const char *file, uint64_t offset, const char *why,
                   struct err *e)
{
    struct item *it = add_item(b);

    if (it)
        it->bad = arena_dup(&b->arena, span_of(why)).p;
    if (!it || !it->bad)
        return no_memory(e);
    it->file = file;
    it->offset = offset;
    return 0;
}

/* ---- JSON lines ---- */

static const char *const standard_input[] = {"-"};

bool feed_is_pipe(const char *path)
{
    struct stat st;

    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

int feed_check(struct feed *f, struct err *e)
{
    bool pipes = false;

    if (f->n_inputs == 0 && !f->source) {
        union { const char *const *in; char *const *out; } u = {standard_input};
        f->inputs = u.out;
        f->n_inputs = 1;
    }
    f->size = 0;
    for (int i = 0; i < f->n_inputs && !f->source; i++) {
        struct file_in *in;
        int rc;

        if (feed_is_pipe(f->inputs[i])) { /* to open it is to read it */
            pipes = true;
            continue;
        }
        TRY(file_open(&in, f->inputs[i], e));
        f->size += file_size(in);
        rc = file_kind_check(in, e);
        file_close(in);
        TRY(rc);
    }
    if (pipes) /* the whole is not known */
        f->size = 0;
    return 0;
}

/* Opens the next input.  1, or 0 when there is none. */
static int open_next(struct feed *f, struct err *e)
{
    if (f->at == f->n_inputs)
        return 0;
    TRY(file_open(&f->in, f->inputs[f->at], e));
    file_set_threads(f->in, f->jobs);
    file_set_columns(f->in, f->columns);
    f->at++;
    f->offset = 0;
    f->broken = false;
    buf_clear(&f->tail);
    return 1;
}

static void close_input(struct feed *f)
{
    if (f->in) {
        f->consumed += file_size(f->in);
        file_close(f->in);
    }
    f->in = NULL;
}

/* Reads more into b->bytes, with JSON_PADDING behind.  1: more; 0: end of this file; 2: damage, noted in b. */
static int read_some(struct feed *f, struct feed_block *b, struct err *e)
{
    bool first = file_tell(f->in) == 0;
    ssize_t n;

    if (buf_reserve(&b->bytes, BLOCK_BYTES + JSON_PADDING) < 0)
        return no_memory(e);
    n = file_read(f->in, b->bytes.p + b->bytes.n, BLOCK_BYTES, e);
    if (n == ERR_FORMAT || n == ERR_LIMIT || n == ERR_UNSUPPORTED) {
        TRY(add_bad(b, NULL, 0, e->msg, e));
        f->broken = true;
        return 2;
    }
    if (n < 0)
        return (int)n;
    if (first)
        TRY(file_kind_refuse(file_name(f->in), (struct span){b->bytes.p + b->bytes.n, (size_t)n}, e));
    b->bytes.n += (size_t)n;
    return n > 0;
}

static int add_too_long(struct feed *f, struct feed_block *b, uint64_t offset, struct err *e)
{
    char why[80];

    snprintf(why, sizeof why, "the line is longer than %" PRId64 " bytes", max_line(f));
    return add_bad(b, f->inputs[f->at - 1], offset, why, e);
}

/* Passes over the rest of a line that is too long; what follows it goes to tail. */
static int skip_line(struct feed *f, struct feed_block *b, struct err *e)
{
    uint64_t start = f->offset;
    int more = 1;

    for (;;) {
        char *nl = b->bytes.n ? memchr(b->bytes.p, '\n', b->bytes.n) : NULL;
        if (nl) {
            size_t used = (size_t)(nl + 1 - b->bytes.p);
            f->offset += used;
            if (buf_put(&f->tail, nl + 1, b->bytes.n - used) < 0)
                return no_memory(e);
            break;
        }
        f->offset += b->bytes.n;
        buf_clear(&b->bytes);
        more = read_some(f, b, e);
        if (more < 0)
            return more;
        if (more != 1)
            break;
    }
    if (more == 0)
        close_input(f);
    buf_clear(&b->bytes);
    return add_too_long(f, b, start, e);
}

static int add_line(struct feed *f, struct feed_block *b, const char *p, const char *q, struct err *e)
{
    const char *file = f->inputs[f->at - 1], *s = p;
    uint64_t offset = f->offset + (uint64_t)(p - b->bytes.p);
    struct item *it;

    while (s < q && (*s == ' ' || *s == '\t' || *s == '\r'))
        s++;
    if (s == q)
        return 0;
    if (q - p > max_line(f))
        return add_too_long(f, b, offset, e);
    TRY(failure_find((struct span){s, (size_t)(q - s)}, e));
    it = add_item(b);
    if (!it)
        return no_memory(e);
    it->file = file;
    it->offset = offset;
    it->line = (struct span){p, (size_t)(q - p)};
    return 0;
}

/* Cuts b->bytes into lines up to the first that ends at block_bytes or behind; the rest goes
 * to tail.  So a block is a matter of where it begins, not of how the file was read. */
static int cut_lines(struct feed *f, struct feed_block *b, bool ended, struct err *e)
{
    const char *p = b->bytes.p, *end = p + b->bytes.n;

    while (p < end && (size_t)(p - b->bytes.p) < block_bytes(f)) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl && !ended)
            break;
        TRY(add_line(f, b, p, nl ? nl : end, e));
        p = nl ? nl + 1 : end;
    }
    b->weight = (uint64_t)(p - b->bytes.p);
    f->offset += b->weight;
    return buf_put(&f->tail, p, (size_t)(end - p)) < 0 ? no_memory(e) : 0;
}

/* After damage: on to the next member.  1, or 0 when there is none. */
static int mend(struct feed *f, struct err *e)
{
    int rc = file_skip_member(f->in, e);

    if (rc < 0)
        return rc;
    f->broken = false;
    buf_clear(&f->tail);
    f->offset = file_tell(f->in);
    if (rc == 0)
        close_input(f);
    return rc;
}

/* One block of lines of the open file; may be empty at the end of the file. */
static int fill_from_file(struct feed *f, struct feed_block *b, struct err *e)
{
    size_t looked = 0, line = 0; /* where the last line begins */
    bool cut = f->tail.n && memchr(f->tail.p, '\n', f->tail.n); /* lines from before the damage */
    int more = f->broken && cut ? 2 : 1;

    if (f->broken && !cut) {
        int rc = mend(f, e);
        if (rc <= 0)
            return rc;
    }
    if (buf_put_span(&b->bytes, buf_span(&f->tail)) < 0)
        return no_memory(e);
    buf_clear(&f->tail);
    for (;;) {
        const char *nl = b->bytes.n > looked ? memrchr(b->bytes.p + looked, '\n', b->bytes.n - looked) : NULL;

        line = nl ? (size_t)(nl + 1 - b->bytes.p) : line;
        looked = b->bytes.n;
        if (line >= block_bytes(f))
            break;
        if (more == 1 && (int64_t)(b->bytes.n - line) > max_line(f)) {
            if (!line)
                return skip_line(f, b, e);
            break;
        }
        if (more != 1)
            break;
        more = read_some(f, b, e);
        if (more < 0)
            return more;
    }
    TRY(cut_lines(f, b, more == 0, e));
    if (more == 0 && !f->tail.n)
        close_input(f);
    return 0;
}

static int fill_lines(struct feed *f, struct feed_block *b, struct err *e)
{
    while (b->n == 0) {
        if (!f->in) {
            int rc = open_next(f, e);
            if (rc <= 0)
                return rc;
        }
        block_reset(b);
        TRY(fill_from_file(f, b, e));
    }
    return 0;
}

/* ---- a source ---- */

static int fill_items(struct feed *f, struct feed_block *b, struct err *e)
{
    size_t total = 0;

    while (total < block_bytes(f) && b->n < BLOCK_ITEMS) {
        struct item *it;
        void *raw = NULL;
        size_t size = 0;
        bool bad = false;

        TRY(f->source->ops->read(f->source->state, &raw, &size, &bad, e));
        if (bad) {
            TRY(add_bad(b, NULL, 0, e->msg, e));
            continue;
        }
        if (!raw)
            break;
        it = add_item(b);
        if (!it) {
            f->source->ops->item_free(f->source->state, raw);
            return no_memory(e);
        }
        it->raw = raw;
        total += size;
    }
    b->weight = total;
    return 0;
}

/* ---- the spool ---- */

struct frame {
    uint64_t offset, file_n, n; /* file_n: with its NUL */
};

int frame_put_doc(struct buf *b, const struct doc *d)
{
    struct frame h = {d->offset, d->file ? strlen(d->file) + 1 : 0, 0};
    size_t at = b->n;

    TRY(buf_put(b, &h, sizeof h));
    if (d->file)
        TRY(buf_put(b, d->file, h.file_n));
    TRY(doc_write(d, b));
    b->n--; /* the newline */
    h.n = b->n - at - sizeof h - h.file_n;
    memcpy(b->p + at, &h, sizeof h);
    return 0;
}

int frame_put_note(struct buf *b, struct span note)
{
    static const char fill[16];
    uint64_t head[2] = {note.n, 0};

    TRY(buf_put(b, head, sizeof head));
    TRY(buf_put_span(b, note));
    return buf_put(b, fill, -note.n % 16);
}

int frame_next_note(struct span all, size_t *at, struct span *note, struct err *e)
{
    uint64_t n;

    if (*at == all.n)
        return 0;
    if (all.n - *at < 16)
        return err_set(e, ERR_FORMAT, "notes end within one");
    memcpy(&n, all.p + *at, sizeof n);
    if (n > all.n - *at - 16 || n + 15 > UINT64_MAX - 16 || (n + 15) / 16 * 16 > all.n - *at - 16)
        return err_set(e, ERR_FORMAT, "notes end within one");
    *note = (struct span){all.p + *at + 16, n};
    *at += 16 + (n + 15) / 16 * 16;
    return 1;
}

static int read_kept(struct feed *f, struct feed_block *b, size_t n, struct err *e)
{
    if (buf_reserve(&b->bytes, n + JSON_PADDING) < 0)
        return no_memory(e);
    if (fread(b->bytes.p + b->bytes.n, 1, n, f->file) != n)
        return ferror(f->file) ? err_sys(e, ERR_IO, "cannot read the kept documents")
                                : err_set(e, ERR_IO, "the kept documents end too soon");
    b->bytes.n += n;
    return 0;
}

/* The next frame's head, of this file or the next that has one.  1, or 0 at the end of all. */
static int read_head(struct feed *f, struct frame *h, struct err *e)
{
    for (;;) {
        if (f->file && fread(h, sizeof *h, 1, f->file) == 1)
            return 1;
        if (f->file && ferror(f->file))
            return err_sys(e, ERR_IO, "cannot read the kept documents");
        if (f->at_kept == f->n_kept)
            return 0;
        if (f->file) {
            f->consumed += (uint64_t)ftello(f->file);
            fclose(f->file);
        }
        f->file = fopen(f->kept[f->at_kept], "re");
        if (!f->file)
            return err_sys(e, ERR_IO, "cannot open '%s'", f->kept[f->at_kept]);
        f->at_kept++;
        setvbuf(f->file, NULL, _IOFBF, 1 << 20);
    }
}

/* A document that was put aside. */
static int add_kept(struct feed *f, struct feed_block *b, const struct frame *h, struct item **out, struct err *e)
{
    struct item *it = add_item(b);

    if (!it)
        return no_memory(e);
    it->offset = h->offset;
    it->line.n = h->n;
    it->judged.account = f->account;
    *out = it;
    if (f->judge.ask)
        TRY(f->judge.ask(f->judge.of, f->count + (uint64_t)b->n - 1, &it->judged, &it->reply, &b->arena, e));
    return 0;
}

/* The next piece of the spool that has documents. */
static int fill_piece(struct feed *f, struct feed_block *b, struct err *e)
{
    struct spool_piece p = {0};

    while (!p.n)
        if (!spool_next(f->spool, &p))
            return 0;
    if (buf_reserve(&b->bytes, p.n + JSON_PADDING) < 0)
        return no_memory(e);
    TRY(spool_read(f->spool, &p, b->bytes.p, e));
    b->bytes.n = p.n;
    f->consumed += p.n;
    for (size_t at = 0; at < p.n;) {
        struct frame h;
        struct item *it = NULL;

        memcpy(&h, b->bytes.p + at, sizeof h);
        at += sizeof h;
        TRY(add_kept(f, b, &h, &it, e));
        it->file = h.file_n ? b->bytes.p + at : NULL;
        it->line.p = b->bytes.p + at + h.file_n;
        at += h.file_n + h.n;
    }
    return 0;
}

static int fill_kept(struct feed *f, struct feed_block *b, struct err *e)
{
    struct frame h;
    int more;

    while (b->bytes.n < block_bytes(f)) {
        struct item *it = NULL;

        TRY(more = read_head(f, &h, e));
        if (!more)
            break;
        TRY(add_kept(f, b, &h, &it, e));
        it->file = h.file_n ? "" : NULL;
        TRY(read_kept(f, b, h.file_n, e));
        TRY(read_kept(f, b, h.n, e));
    }
    for (size_t at = 0, i = 0; i < (size_t)b->n; i++) { /* the buffer moves no more */
        struct item *it = &b->item[i];
        if (it->file) {
            it->file = b->bytes.p + at;
            at += strlen(it->file) + 1;
        }
        it->line.p = b->bytes.p + at;
        at += it->line.n;
    }
    return 0;
}

int feed_fill(struct feed *f, struct feed_block *b, struct err *e)
{
    block_reset(b);
    TRY(f->spool ? fill_piece(f, b, e) : f->n_kept ? fill_kept(f, b, e) : f->source ? fill_items(f, b, e) : fill_lines(f, b, e));
    if (!b->weight)
        b->weight = b->bytes.n;
    b->first = f->count;
    f->count += (uint64_t)b->n;
    return 0;
}

int feed_skip(struct feed *f, uint64_t n, uint64_t offset, struct err *e)
{
    struct feed_block b = {0};
    int rc = 0;

    if (n && f->n_inputs) {
        TRY(open_next(f, e) < 0 ? e->code : 0);
        rc = file_seek(f->in, offset, e);
        if (rc < 0)
            return rc;
        if (rc == 1) {
            f->offset = offset;
            f->count = n;
            return 0;
        }
    }

    while (rc == 0 && f->count < n) {
        rc = feed_fill(f, &b, e);
        if (rc == 0 && b.n == 0)
            rc = err_set(e, ERR_FORMAT, "the input has only %" PRIu64 " of the %" PRIu64 " records that it had",
                         f->count, n);
        for (int i = 0; i < b.n; i++)
            if (b.item[i].raw)
                f->source->ops->item_free(f->source->state, b.item[i].raw);
    }
    block_free(&b);
    if (rc == 0 && f->count != n)
        rc = err_set(e, ERR_FORMAT, "the input is not what it was: no block ends at record %" PRIu64, n);
    return rc;
}

void feed_where(const struct feed *f, struct source_where *w)
{
    *w = (struct source_where){.consumed = f->consumed, .total = f->size};
    if (f->file) {
        w->consumed += (uint64_t)ftello(f->file);
    } else if (f->source) {
        if (f->source->ops->where)
            f->source->ops->where(f->source->state, w);
    } else if (f->in) {
        w->input = f->inputs[f->at - 1];
        w->consumed += file_consumed(f->in);
        w->state = file_state(f->in);
    }
}

void feed_close(struct feed *f)
{
    close_input(f);
    buf_free(&f->tail);
    if (f->file)
        fclose(f->file);
    f->file = NULL;
    spool_close(f->spool);
    f->spool = NULL;
}
