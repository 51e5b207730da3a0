#include "tokenize/pages.h"

#include <stdint.h>
#include <sys/mman.h>

enum { HUGE = 2 << 20 };

void *pages_new(struct pages *m, size_t size)
{
    size_t room = size < HUGE / 2 ? 0 : 2 * (size_t)HUGE; /* less is not worth a huge page */
    char *p;

    m->mapped = size + room;
    m->map = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->map == MAP_FAILED) {
        m->map = NULL;
        return NULL;
    }
    if (!room)
        return m->map;
    p = (char *)(((uintptr_t)m->map + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    madvise(p, m->mapped - HUGE, MADV_HUGEPAGE);
    return p;
}

void pages_free(struct pages *m)
{
    if (m->map)
        munmap(m->map, m->mapped);
    m->map = NULL;
}
