#include "curate/dedup/dedup_note.h"

#include <stdlib.h>

#include "curate/stream/stage.h"

/* Bytes of a note that is in memory, and of those of a file that are read at a time. */
enum { MOST = NOTE_LONG, READ = 1 << 16 };

struct head {
    uint64_t unused[2], n, more; /* bytes that follow; the others are 0 */
};
_Static_assert(sizeof(struct head) == NOTE_HEAD, "a long note's head is what is in memory");

void dedup_note_close(struct dedup_note *w)
{
    buf_free(&w->b);
    spill_close(&w->file);
}

void dedup_note_begin(struct dedup_note *w, const struct doc *d)
{
    buf_clear_most(&w->b, 2 * MOST);
    w->rest = d->note_rest;
}

/* What there is of the note goes to the file, and more. */
static int put_out(struct dedup_note *w, const void *p, size_t n, struct err *e)
{
    if (w->file.fd < 0)
        TRY(spill_open(&w->file, w->dir, READ, e));
    if (!w->rest->s)
        *w->rest = (struct spill_part){&w->file, w->file.size, 0};
    TRY(spill_put(&w->file, w->b.p, w->b.n, e));
    buf_clear(&w->b);
    return spill_put(&w->file, p, n, e);
}

int dedup_note_put(struct dedup_note *w, const void *p, size_t n, struct err *e)
{
    if (w->rest && w->b.n + n > MOST)
        return put_out(w, p, n, e);
    return buf_put(&w->b, p, n) < 0 ? err_set(e, ERR_NOMEM, "out of memory for the parts of a text") : 0;
}

int dedup_note_end(struct dedup_note *w, struct arena *a, struct span *note, struct err *e)
{
    struct head *h;

    if (w->rest && w->rest->s) {
        TRY(put_out(w, NULL, 0, e));
        TRY(spill_write_out(&w->file, e));
        w->rest->n = w->file.size - w->rest->at;
    }
    h = arena_alloc(a, sizeof *h + w->b.n);
    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory for the parts of a text");
    *h = (struct head){.n = w->rest && w->rest->s ? w->rest->n : w->b.n};
    if (w->b.n)
        memcpy(h + 1, w->b.p, w->b.n);
    *note = (struct span){(const char *)h, sizeof *h + w->b.n};
    return 0;
}

int dedup_noter_open(void **thread, size_t size, const char *dir, struct err *e)
{
    TRY(dedup_text_thread(thread, size, e));
    ((struct dedup_noter *)*thread)->note = (struct dedup_note){.file.fd = -1, .dir = dir};
    return 0;
}

void dedup_noter_close(void *stage, void *thread)
{
    struct dedup_noter *t = thread;

    (void)stage;
    dedup_text_close(&t->text);
    dedup_note_close(&t->note);
    free(t);
}

int dedup_note_open(struct dedup_note_reader *r, struct span note, const struct spill_part *rest, struct err *e)
{
    *r = (struct dedup_note_reader){0};
    if (note.n < NOTE_HEAD)
        return err_set(e, ERR_IO, "a note is cut off");
    r->left = (struct span){note.p + NOTE_HEAD, note.n - NOTE_HEAD};
    return rest ? spill_reader_open(&r->in, rest->s, rest->at, rest->at + rest->n, READ, e) : 0;
}

int dedup_note_next(struct dedup_note_reader *r, void *to, size_t n, size_t *got, struct err *e)
{
    if (r->in.s) {
        TRY(spill_ahead(&r->in, n, got, e));
        memcpy(to, r->in.buf + r->in.pos, *got);
        r->in.pos += *got;
        return 0;
    }
    *got = n < r->left.n ? n : r->left.n;
    memcpy(to, r->left.p, *got);
    r->left = (struct span){r->left.p + *got, r->left.n - *got};
    return 0;
}

void dedup_note_reader_close(struct dedup_note_reader *r)
{
    spill_reader_close(&r->in);
}
