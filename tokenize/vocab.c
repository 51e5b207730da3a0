#include "tokenize/vocab.h"

#include <stdlib.h>

#include "base/hash.h"

struct vocab_entry {
    uint64_t at;
    uint32_t n;
    uint32_t there; /* enum */
};

enum { HOLE, MODEL, ADDED };

static struct vocab_entry *entry(const struct vocab *v, uint32_t id)
{
    return (struct vocab_entry *)(void *)v->entries.p + id;
}

struct span vocab_get(const struct vocab *v, uint32_t id)
{
    struct span s = {NULL, 0};

    if (id < v->n && entry(v, id)->there) {
        s.p = v->bytes.p + entry(v, id)->at;
        s.n = entry(v, id)->n;
    }
    return s;
}

/* The slot that holds s, or the free one where it would go. */
static uint32_t find_slot(const struct vocab *v, struct span s)
{
    uint32_t i = (uint32_t)hash_xxh3_64(s) & v->mask;

    while (v->slots[i] && !span_eq(vocab_get(v, v->slots[i] - 1), s))
        i = (i + 1) & v->mask;
    return i;
}

int64_t vocab_find(const struct vocab *v, struct span s)
{
    return v->slots ? (int64_t)v->slots[find_slot(v, s)] - 1 : VOCAB_NONE;
}

static int grow_table(struct vocab *v, struct err *e)
{
    uint32_t *old = v->slots, old_size = old ? v->mask + 1 : 0, size = old ? old_size * 2 : 1024;

    v->slots = calloc(size, sizeof *v->slots);
    if (!v->slots) {
        v->slots = old;
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    }
    v->mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i])
            v->slots[find_slot(v, vocab_get(v, old[i] - 1))] = old[i];
    free(old);
    return 0;
}

int vocab_add(struct vocab *v, uint32_t id, struct span s, struct err *e)
{
    struct vocab_entry *x;
    uint32_t slot;

    if (id > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "token id %u is above %d", id, VOCAB_MAX_ID);
    if (s.n > UINT32_MAX)
        return err_set(e, ERR_FORMAT, "token %u is longer than 4 GiB", id);
    if (id >= v->n) {
        size_t more = (size_t)(id + 1 - v->n) * sizeof *x;
        if (buf_reserve(&v->entries, more) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
        memset(v->entries.p + v->entries.n, 0, more);
        v->entries.n += more;
        v->n = id + 1;
    }
    x = entry(v, id);
    if (x->there)
        return err_set(e, ERR_FORMAT, "token id %u is given twice", id);
    if ((v->used + 1) * 2 > (v->slots ? v->mask + 1 : 0))
        TRY(grow_table(v, e));
    slot = find_slot(v, s);
    x->at = v->bytes.n;
    x->n = (uint32_t)s.n;
    x->there = MODEL;
    if (buf_put_span(&v->bytes, s) < 0) {
        x->there = HOLE;
        return err_set(e, ERR_NOMEM, "out of memory for a vocabulary");
    }
    if (!v->slots[slot]) {
        v->slots[slot] = id + 1;
        v->used++;
    }
    return 0;
}

void vocab_mark_added(struct vocab *v, uint32_t id)
{
    entry(v, id)->there = ADDED;
}

bool vocab_is_added(const struct vocab *v, uint32_t id)
{
    return id < v->n && entry(v, id)->there == ADDED;
}

void vocab_free(struct vocab *v)
{
    buf_free(&v->bytes);
    buf_free(&v->entries);
    free(v->slots);
    memset(v, 0, sizeof *v);
}
