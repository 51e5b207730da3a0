/* tests/twins_memory.h -- memory on both devices of a comparison, for the files of cases. */
#ifndef TESTS_TWINS_MEMORY_H
#define TESTS_TWINS_MEMORY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tests/twins.h"

enum { BLOCKS = 64 };
/* Everything that a case made: host memory, and memory of both devices. */
struct made {
    struct twins *t;
    void *host[BLOCKS], *on[2][BLOCKS];
    int hosts, blocks;
    struct err e;
};

static inline struct device *device_of(const struct twins *t, int which)
{
    return which ? t->other : t->cpu;
}

/* Every comparison ends here. */
static inline void found(struct twins *t, const struct twins_found *f)
{
    t->compared++;
    t->failed += f->why[0] != 0;
    if (f->why[0] && !t->wrong[0])
        snprintf(t->wrong, sizeof t->wrong, "%.255s", f->why);
    if (t->found)
        t->found(f);
}

/* What is wrong beside the elements of a comparison. */
__attribute__((format(printf, 2, 3))) static inline void wrong(struct twins *t, const char *fmt, ...)
{
    struct twins_found f = {.how = t->how, .n = 1, .wrong = 1};
    char why[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    f.what = "";
    f.why = why;
    found(t, &f);
}

#define CHECK(m, call) ((call) < 0 ? wrong((m)->t, "%s (%s)", (m)->e.msg, #call) : (void)0)

static inline void *host_of(struct made *m, size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);

    if (!p || m->hosts == BLOCKS) {
        fprintf(stderr, "twins: out of memory\n");
        exit(3);
    }
    memset(p, 0xa5, bytes);
    return m->host[m->hosts++] = p;
}

/* The same bytes on both; its number. */
static inline int give(struct made *m, const void *host, size_t bytes)
{
    int i = m->blocks++;

    for (int w = 0; w < 2; w++) {
        CHECK(m, device_alloc(device_of(m->t, w), &m->on[w][i], bytes, &m->e));
        if (m->on[w][i] && bytes)
            CHECK(m, device_put(device_of(m->t, w), m->on[w][i], host, bytes, &m->e));
    }
    return i;
}

/* Room for results, poisoned, with a canary of 64 bytes behind. */
static inline int room(struct made *m, size_t bytes)
{
    return give(m, host_of(m, bytes + 64), bytes + 64);
}

static inline void compare(struct made *m, const char *what, int block, size_t bytes)
{
    unsigned char *a = host_of(m, bytes + 64), *b = host_of(m, bytes + 64);
    struct twins_found f = {.what = what, .how = m->t->how, .n = (int64_t)bytes};
    char why[256] = "";

    CHECK(m, device_get(m->t->cpu, a, m->on[0][block], bytes + 64, &m->e));
    CHECK(m, device_get(m->t->other, b, m->on[1][block], bytes + 64, &m->e));
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i] && f.wrong++ == 0)
            snprintf(why, sizeof why, "%s: byte %zu of %zu is %02x, not %02x", what, i, bytes, b[i], a[i]);
    for (size_t i = bytes; i < bytes + 64 && !why[0]; i++)
        if (a[i] != 0xa5 || b[i] != 0xa5)
            snprintf(why, sizeof why, "%s: wrote behind its end", what);
    f.why = why;
    found(m->t, &f);
}

static inline void forget(struct made *m)
{
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < m->blocks; i++)
            device_free(device_of(m->t, w), m->on[w][i]);
    while (m->hosts)
        free(m->host[--m->hosts]);
    m->blocks = 0;
    m->t->how[0] = '\0';
}

/* Numbers without a pattern, a pure function of both. */
static inline uint64_t number(uint64_t seed, int64_t i)
{
    uint32_t w[4];

    rng_philox(seed, (uint64_t)i, 5, w);
    return w[0] | (uint64_t)w[1] << 32;
}

#endif
