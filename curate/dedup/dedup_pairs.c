#include "curate/dedup/dedup_pairs.h"

#include <stdlib.h>

#include "base/spill.h"
#include "curate/stream/doc_name.h"

enum { READ = 1 << 18, SLICES = 1 << 12 };

struct pair {
    uint32_t doc, other;
    float similarity;
};

struct dedup_pairs {
    struct spill file;
    uint64_t width;         /* documents of a slice */
    uint64_t count[SLICES]; /* pairs in it */
};

int dedup_pairs_open(struct dedup_pairs **p, uint64_t n, const char *dir, struct err *e)
{
    struct dedup_pairs *s = calloc(1, sizeof *s);

    *p = NULL;
    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory for pairs");
    s->width = n / SLICES + 1;
    if (spill_open(&s->file, dir, READ, e) < 0) {
        dedup_pairs_close(s);
        return e ? e->code : ERR_IO;
    }
    *p = s;
    return 0;
}

void dedup_pairs_close(struct dedup_pairs *p)
{
    if (p)
        spill_close(&p->file);
    free(p);
}

int dedup_pairs_put(void *arg, uint32_t other, uint32_t doc, float similarity, struct err *e)
{
    struct dedup_pairs *p = arg;
    struct pair r = {doc, other, similarity};

    p->count[doc / p->width]++;
    return spill_put(&p->file, &r, sizeof r, e);
}

/* Documents of --against, which are numbered after the run's, come before these. */
static uint64_t other_place(const struct pair *p)
{
    return p->other > p->doc ? p->other : p->other | UINT64_C(1) << 32;
}

static int by_doc(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    if (a->doc != b->doc)
        return a->doc < b->doc ? -1 : 1;
    return other_place(a) < other_place(b) ? -1 : other_place(a) > other_place(b);
}

/* The n pairs of documents in [first, last). */
static int give_slices(struct dedup_pairs *p, uint64_t first, uint64_t last, size_t n, const struct dedup_listener *to,
                       struct err *e)
{
    struct pair *r = malloc(n * sizeof *r), next;
    struct spill_reader in;
    size_t got = 0;
    int rc;

    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory for %zu pairs", n);
    rc = spill_reader_open(&in, &p->file, 0, p->file.size, READ, e);
    while (got < n && rc == 0) {
        rc = spill_next(&in, &next, sizeof next, e);
        if (rc == 0 && next.doc >= first && next.doc < last)
            r[got++] = next;
    }
    spill_reader_close(&in);
    qsort(r, got, sizeof *r, by_doc);
    for (size_t i = 0; i < got && rc == 0; i++)
        rc = to->pair(to->arg, r[i].other, r[i].doc, r[i].similarity, e);
    free(r);
    return rc;
}

int dedup_pairs_give(struct dedup_pairs *p, int64_t memory, const struct dedup_listener *to, struct err *e)
{
    size_t room = (size_t)memory / 2 / sizeof(struct pair), n = 0; /* sorting takes as much again */

    TRY(spill_flush(&p->file, e));
    for (uint64_t i = 0, from = 0; i < SLICES; i++) {
        n += p->count[i];
        if (n && (i + 1 == SLICES || n + p->count[i + 1] > room)) {
            TRY(give_slices(p, from * p->width, (i + 1) * p->width, n, to, e));
            n = 0;
        }
        from = n ? from : i + 1;
    }
    return 0;
}

/* ---- lines ---- */

/* An id as a field of a line: tabs, newlines and backslashes are escaped. */
static int put_field(struct buf *b, struct span id)
{
    for (size_t i = 0; i < id.n; i++) {
        const char *escape = id.p[i] == '\t'   ? "\\t"
                             : id.p[i] == '\n' ? "\\n"
                             : id.p[i] == '\r' ? "\\r"
                             : id.p[i] == '\\' ? "\\\\"
                                               : NULL;
        if (escape)
            TRY(buf_puts(b, escape));
        else
            TRY(buf_putc(b, id.p[i]));
    }
    return 0;
}

int dedup_pairs_put_line(struct buf *line, struct span x, struct span y, float similarity)
{
    struct span x_place = doc_name_place(x), y_place = doc_name_place(y);

    TRY(put_field(line, doc_name_id(x)));
    TRY(buf_putc(line, '\t'));
    TRY(put_field(line, doc_name_id(y)));
    TRY(buf_printf(line, "\t%.6f", similarity));
    if (x_place.p && y_place.p) {
        TRY(buf_putc(line, '\t'));
        TRY(put_field(line, x_place));
        TRY(buf_putc(line, '\t'));
        TRY(put_field(line, y_place));
    }
    return buf_putc(line, '\n');
}
