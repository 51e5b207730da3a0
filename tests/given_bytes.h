/* tests/given_bytes.h -- bytes in memory as a stream of XML that gives a few at a time, and is damaged at one place. */
#ifndef TESTS_GIVEN_BYTES_H
#define TESTS_GIVEN_BYTES_H

#include "curate/xml/xml_stream.h"

struct given_bytes {
    struct span all;
    size_t at, step;
    size_t broken; /* where it is damaged; SIZE_MAX: nowhere */
    bool ends;     /* nothing is behind the damage */
};

static inline ssize_t given_read(void *of, void *p, size_t n, struct err *e)
{
    struct given_bytes *g = of;
    size_t end = g->broken < g->all.n ? g->broken : g->all.n;

    if (g->at >= g->broken)
        return err_set(e, ERR_FORMAT, "'mem': damaged");
    n = n > g->step ? g->step : n;
    n = n > end - g->at ? end - g->at : n;
    if (n)
        memcpy(p, g->all.p + g->at, n);
    g->at += n;
    return (ssize_t)n;
}

static inline int given_resume(void *of, struct err *e)
{
    struct given_bytes *g = of;

    (void)e;
    g->broken = SIZE_MAX;
    return !g->ends;
}

static inline struct xml_input given_input(struct given_bytes *g)
{
    return (struct xml_input){.read = given_read, .resume = given_resume, .of = g, .name = "mem"};
}
#endif
