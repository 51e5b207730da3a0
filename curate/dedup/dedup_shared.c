#include "curate/dedup/dedup_shared.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct finder {
    struct span text;
    uint8_t *seen;  /* by how many of the others, of each byte */
    uint32_t *slot; /* 1 + where a window of the other text begins, by its hash */
    size_t mask;
};

static struct span look(struct span s)
{
    if (s.n > SHARED_LOOK)
        s.n = SHARED_LOOK;
    return s;
}

static size_t slot_of(const struct finder *f, const char *window)
{
    return XXH3_64bits(window, SHARED_LEAST) & f->mask;
}

static void mark_other(struct finder *f, struct span other)
{
    size_t i = 0;

    memset(f->slot, 0, (f->mask + 1) * sizeof *f->slot);
    for (size_t j = 0; j + SHARED_LEAST <= other.n; j++) {
        uint32_t *at = &f->slot[slot_of(f, other.p + j)];
        *at = *at ? *at : (uint32_t)j + 1;
    }
    while (i + SHARED_LEAST <= f->text.n) {
        uint32_t at = f->slot[slot_of(f, f->text.p + i)];
        size_t n = 0;

        while (at && i + n < f->text.n && at - 1 + n < other.n && f->text.p[i + n] == other.p[at - 1 + n])
            n++;
        if (n < SHARED_LEAST) {
            i++;
            continue;
        }
        for (size_t k = 0; k < n; k++)
            f->seen[i + k]++;
        i += n;
    }
}

/* Keeps the longest; of equal ones the first. */
static void keep(struct shared *s, struct span p)
{
    int at = s->n;

    while (at > 0 && s->passage[at - 1].n < p.n)
        at--;
    if (at == SHARED_MOST)
        return;
    s->n += s->n < SHARED_MOST;
    memmove(&s->passage[at + 1], &s->passage[at], (size_t)(s->n - at - 1) * sizeof p);
    s->passage[at] = p;
}

static bool inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static void collect(const struct finder *f, int n, struct shared *s)
{
    size_t all = 0;

    for (size_t i = 0, end; i < f->text.n; i = end) {
        size_t from = i, to;
        end = i + 1;
        if (f->seen[i] < n)
            continue;
        while (end < f->text.n && f->seen[end] >= n)
            end++;
        all += end - i;
        for (to = end; from < to && inside(f->text.p[from]);) /* whole characters */
            from++;
        while (to > from && to < f->text.n && inside(f->text.p[to]))
            to--;
        if (to - from >= SHARED_LEAST)
            keep(s, (struct span){f->text.p + from, to - from});
    }
    s->share = f->text.n ? (double)all / (double)f->text.n : 0;
}

int shared_find(struct span text, const struct span *other, int n, struct shared *s, struct err *e)
{
    struct finder f = {.text = look(text), .mask = 1023};

    *s = (struct shared){0};
    for (int i = 0; i < n; i++)
        while (f.mask < 2 * look(other[i]).n)
            f.mask = 2 * f.mask + 1;
    f.seen = calloc(f.text.n + 1, 1);
    f.slot = malloc((f.mask + 1) * sizeof *f.slot);
    if (f.seen && f.slot) {
        for (int i = 0; i < n; i++)
            mark_other(&f, look(other[i]));
        collect(&f, n, s);
    }
    free(f.seen);
    free(f.slot);
    return f.seen && f.slot ? 0 : err_set(e, ERR_NOMEM, "out of memory to compare texts");
}
