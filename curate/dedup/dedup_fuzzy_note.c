#include "curate/dedup/dedup_fuzzy_note.h"

/* The size of a note, and where its parts are. */
static size_t note_parts(const struct dedup_bands *shape, struct fuzzy_note *h, bool has_record, struct fuzzy_parts *p)
{
    size_t keys = has_record ? (size_t)shape->bands : 0, sketch = has_record ? shape->sketch_bytes : 0;
    size_t hashes = fuzzy_note_hashes(shape, h->count);

    *p = (struct fuzzy_parts){.hash = h + 1, .has_record = has_record};
    p->record.key = (uint64_t *)(h + 1) + hashes / sizeof(uint64_t);
    p->record.sketch = (uint8_t *)(p->record.key + keys);
    p->id = (char *)p->record.sketch + sketch;
    return sizeof *h + hashes + keys * sizeof(uint64_t) + sketch + h->id_n + h->text_n;
}

struct fuzzy_note *fuzzy_note_new(const struct dedup_bands *shape, struct arena *a, const struct fuzzy_note *head,
                                  bool has_record, struct fuzzy_parts *p, struct span *note, struct err *e)
{
    struct fuzzy_note h = *head, *to;

    note->n = note_parts(shape, &h, has_record, p);
    to = arena_alloc(a, note->n);
    note->p = (char *)to;
    if (!to) {
        err_set(e, ERR_NOMEM, "out of memory for %zu shingles", (size_t)h.count);
        return NULL;
    }
    *to = h;
    note_parts(shape, to, has_record, p);
    if (h.count % 2)
        p->record.key[-1] = 0;
    return to;
}

static int not_one(size_t n, struct err *e)
{
    return err_set(e, ERR_IO, "a note of %zu bytes is none of near-duplicates", n);
}

int fuzzy_note_parse(const struct dedup_bands *shape, struct span note, struct fuzzy_note **h, struct fuzzy_parts *p,
                     struct err *e)
{
    union { const char *in; struct fuzzy_note *h; } u = {note.p}; /* only read */

    *h = u.h;
    if (note.n >= sizeof **h && u.h->count <= note.n / shape->hash_bytes && u.h->id_n <= note.n && u.h->text_n <= note.n &&
        (note_parts(shape, u.h, true, p) == note.n || note_parts(shape, u.h, false, p) == note.n))
        return 0;
    return not_one(note.n, e);
}

/* What it has but for its hashes is a note without any. */
int fuzzy_note_parse_long(const struct dedup_bands *shape, struct span note, const struct spill_part *rest, struct arena *a,
                          struct fuzzy_note **h, struct fuzzy_parts *p, struct err *e)
{
    union { char *bytes; struct fuzzy_note *h; } u;
    struct fuzzy_note head;
    uint64_t hashes, others;

    if (!rest)
        return fuzzy_note_parse(shape, note, h, p, e);
    if (note.n != sizeof head)
        return not_one(note.n, e);
    memcpy(&head, note.p, sizeof head);
    hashes = fuzzy_note_hashes(shape, head.count <= rest->n ? head.count : 0);
    if (head.count > rest->n || hashes > rest->n)
        return not_one(rest->n, e);
    others = rest->n - hashes;
    u.bytes = arena_alloc(a, sizeof head + others);
    if (!u.bytes)
        return err_set(e, ERR_NOMEM, "out of memory for %zu bytes of a note", (size_t)others);
    *u.h = head;
    u.h->count = 0;
    TRY(spill_read(rest->s, rest->at + hashes, u.bytes + sizeof head, others, e));
    TRY(fuzzy_note_parse(shape, (struct span){u.bytes, sizeof head + others}, h, p, e));
    (*h)->count = head.count;
    p->hash = NULL;
    p->hashes = (struct spill_part){rest->s, rest->at, head.count * shape->hash_bytes};
    return 0;
}
