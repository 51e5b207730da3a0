#include "curate/stream/feed.h"

#include <inttypes.h>
#include <stdlib.h>

static size_t block_bytes(const struct feed *f)
{
    return f->lines.block_bytes ? f->lines.block_bytes : BLOCK_BYTES;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a block of input");
}

void block_reset(struct feed_block *b)
{
    arena_reset(&b->arena);
    line_block_reset(&b->lines);
    b->n = 0;
    b->weight = 0;
}

void block_free(struct feed_block *b)
{
    arena_free(&b->arena);
    line_block_free(&b->lines);
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

/* ---- JSON lines ---- */

int feed_check(struct feed *f, struct err *e)
{
    f->size = 0;
    return f->source ? 0 : lines_check(&f->lines, &f->size, e);
}

static int fill_lines(struct feed *f, struct feed_block *b, struct err *e)
{
    TRY(lines_fill(&f->lines, &b->lines, e));
    if (mem_grow(&b->item, &b->cap, b->lines.n, sizeof *b->item) < 0)
        return no_memory(e);
    for (size_t i = 0; i < b->lines.n; i++) {
        const struct line *x = &b->lines.line[i];
        b->item[i] = (struct item){.file = x->file, .offset = x->offset, .line = x->text, .bad = x->fault};
    }
    b->n = (int)b->lines.n;
    b->weight = b->lines.size;
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
        if (!raw && !bad)
            break;
        it = add_item(b);
        if (it && bad)
            it->bad = arena_dup(&b->arena, span_of(e->msg)).p;
        if (!it || (bad && !it->bad)) {
            if (raw)
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

int frame_put_doc(struct doc_out *o, const struct doc *d)
{
    struct frame h = {d->offset, d->file ? strlen(d->file) + 1 : 0, 0};
    size_t at = o->b.n;
    uint64_t before;

    TRY(buf_put(&o->b, &h, sizeof h));
    if (d->file)
        TRY(buf_put(&o->b, d->file, h.file_n));
    before = doc_out_size(o);
    TRY(doc_out_put(o, d));
    o->b.n--; /* the newline */
    h.n = doc_out_size(o) - before;
    memcpy(o->b.p + at, &h, sizeof h);
    return 0;
}

static const char fill[16]; /* to the next multiple of 16 */

static int put_note_head(struct buf *b, uint64_t n)
{
    uint64_t head[2] = {n, 0};

    return buf_put(b, head, sizeof head);
}

int frame_put_note(struct buf *b, struct span note)
{
    TRY(put_note_head(b, note.n));
    TRY(buf_put_span(b, note));
    return buf_put(b, fill, -note.n % 16);
}

int frame_put_note_of(struct doc_out *o, struct span note, const struct spill_part *rest)
{
    uint64_t n = note.n + (rest->s ? rest->n : 0);

    TRY(put_note_head(&o->b, n));
    TRY(note.n < DOC_OUT_LONG ? buf_put_span(&o->b, note) : doc_out_put_long(o, note));
    TRY(rest->s ? doc_out_put_file(o, rest) : 0);
    return buf_put(&o->b, fill, (size_t)(-n % 16));
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
    if (buf_reserve(&b->lines.bytes, n + JSON_PADDING) < 0)
        return no_memory(e);
    if (fread(b->lines.bytes.p + b->lines.bytes.n, 1, n, f->file) != n)
        return ferror(f->file) ? err_sys(e, ERR_IO, "cannot read the kept documents")
                                : err_set(e, ERR_IO, "the kept documents end too soon");
    b->lines.bytes.n += n;
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
    if (buf_reserve(&b->lines.bytes, p.n + JSON_PADDING) < 0)
        return no_memory(e);
    TRY(spool_read(f->spool, &p, b->lines.bytes.p, e));
    b->lines.bytes.n = p.n;
    f->consumed += p.n;
    for (size_t at = 0; at < p.n;) {
        struct frame h;
        struct item *it = NULL;

        memcpy(&h, b->lines.bytes.p + at, sizeof h);
        at += sizeof h;
        TRY(add_kept(f, b, &h, &it, e));
        it->file = h.file_n ? b->lines.bytes.p + at : NULL;
        it->line.p = b->lines.bytes.p + at + h.file_n;
        at += h.file_n + h.n;
    }
    return 0;
}

static int fill_kept(struct feed *f, struct feed_block *b, struct err *e)
{
    struct frame h;
    int more;

    while (b->lines.bytes.n < block_bytes(f)) {
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
            it->file = b->lines.bytes.p + at;
            at += strlen(it->file) + 1;
        }
        it->line.p = b->lines.bytes.p + at;
        at += it->line.n;
    }
    return 0;
}

int feed_fill(struct feed *f, struct feed_block *b, struct err *e)
{
    block_reset(b);
    TRY(f->spool ? fill_piece(f, b, e) : f->n_kept ? fill_kept(f, b, e) : f->source ? fill_items(f, b, e) : fill_lines(f, b, e));
    if (!b->weight)
        b->weight = b->lines.bytes.n;
    b->first = f->count;
    f->count += (uint64_t)b->n;
    return 0;
}

int feed_skip(struct feed *f, uint64_t n, const struct lines_place *place, struct err *e)
{
    struct feed_block b = {0};
    int rc = 0;

    if (n && f->lines.n_paths) {
        f->count = n;
        return lines_goto(&f->lines, place, e);
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
    *w = (struct source_where){.consumed = f->consumed + lines_consumed(&f->lines), .total = f->size};
    if (f->file) {
        w->consumed += (uint64_t)ftello(f->file);
    } else if (f->source) {
        if (f->source->ops->where)
            f->source->ops->where(f->source->state, w);
    } else {
        w->input = f->lines.in ? f->lines.paths[f->lines.now.at] : NULL;
        w->state = f->lines.state;
    }
}

void feed_close(struct feed *f)
{
    lines_close(&f->lines);
    if (f->file)
        fclose(f->file);
    f->file = NULL;
    spool_close(f->spool);
    f->spool = NULL;
}
