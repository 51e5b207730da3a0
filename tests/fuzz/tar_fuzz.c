/* Any bytes as a tar archive, read in pieces. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "curate/archive/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t read_piece(void *arg, void *p, size_t n, struct err *e)
{
    struct span *s = arg;

    (void)e;
    if (n > 700)
        n = 700;
    if (n > s->n)
        n = s->n;
    if (n)
        memcpy(p, s->p, n);
    s->p += n;
    s->n -= n;
    return (ssize_t)n;
}

/* The member's bytes, at most n at a time. */
static int read_member(struct tar *t, struct buf *b, size_t n, struct err *e)
{
    char p[4096];
    ssize_t k;

    while ((k = tar_read(t, p, n, e)) > 0)
        if (buf_put(b, p, (size_t)k) < 0)
            return ERR_LIMIT;
    return (int)k;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span s = {(const char *)data, size};
    struct buf b = {.max = 1 << 16};
    struct tar_member m;
    struct tar *t;
    struct err e;
    int rc;

    tar_begins(s);
    if (tar_open(&t, "x", read_piece, &s, &e) < 0)
        abort();
    while ((rc = tar_next(t, &m, &e)) == 1 || rc == ERR_FORMAT) {
        if (rc < 0)
            continue;
        buf_clear(&b);
        if (m.size % 3) /* some are passed over */
            rc = read_member(t, &b, m.size % 3 == 1 ? 4096 : 100, &e);
        if (rc < 0 && rc != ERR_FORMAT && rc != ERR_LIMIT)
            abort();
        if (rc == 0 && m.size % 3 && b.n != m.size)
            abort();
    }
    if (rc != 0)
        abort();
    tar_close(t);
    buf_free(&b);
    return 0;
}
