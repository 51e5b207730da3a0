#include "kernels/minhash_chars.h"

#include <stdlib.h>

#include "kernels/cpu.h"
#include "kernels/minhash_window.h"

/* What one thread needs for its longest document so far. */
struct work {
    uint32_t *start;
    uint64_t *hash;
    size_t cap;
};

static int make_room(struct work *w, size_t n)
{
    if (w->start && n <= w->cap)
        return 0;
    free(w->start);
    free(w->hash);
    w->cap = n + n / 4;
    w->start = malloc((w->cap + 1) * sizeof *w->start);
    w->hash = malloc(w->cap * sizeof *w->hash);
    if (w->start && w->hash)
        return 0;
    w->cap = 0;
    return ERR_NOMEM;
}

static int sign(struct work *w, const struct minhash *m, const struct minhash_chars *p, int64_t d, uint64_t *sig)
{
    const char *text = p->text + p->docs.begin[d];
    size_t bytes = (size_t)(p->docs.end[d] - p->docs.begin[d]), chars = 0, width = (size_t)p->width, count;

    TRY(make_room(w, bytes + 1));
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            w->start[chars++] = (uint32_t)i;
    w->start[chars] = (uint32_t)bytes;
    count = chars < width ? 0 : chars - width + 1;
    if (chars && chars < width && p->short_whole) {
        w->start[1] = (uint32_t)bytes;
        count = width = 1;
    }
    for (int j = 0; j < m->n && !count; j++)
        sig[j] = MINHASH_EMPTY;
    if (count) {
        ISA_PICK(minhash_window_chars)(text, w->start, (int)width, count, p->seed, w->hash);
        minhash_signature(m, w->hash, count, sig);
    }
    return 0;
}

int minhash_chars_cpu(struct device *dev, const struct minhash *m, const struct minhash_chars *p,
                      uint64_t *sig, struct err *e)
{
    int failed = 0;

    if (m->family != MINHASH_U32 || p->width < 1 || p->width > MINHASH_CHARS_MAX)
        return err_set(e, ERR_ARG, "shingles of %d characters cannot be signed", p->width);
#pragma omp parallel num_threads(cpu_team(dev, p->docs.length))
    {
        struct work w = {0};
#pragma omp for schedule(dynamic, 16)
        for (int64_t d = 0; d < p->docs.n; d++)
            if (sign(&w, m, p, d, sig + d * m->n) < 0)
                __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
        free(w.start);
        free(w.hash);
    }
    return failed ? err_set(e, ERR_NOMEM, "out of memory for the shingles of a document") : 0;
}
