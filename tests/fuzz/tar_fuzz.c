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

/* As tar_read, a few bytes at a time. */
static int read_some(struct tar *t, struct buf *b, struct err *e)
{
    char p[100];
    ssize_t k;

    while ((k = tar_read_some(t, p, sizeof p, e)) > 0)
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
        if (m.size % 3 == 1) /* some are passed over */
            rc = tar_read(t, &b, &e);
        else if (m.size % 3 == 2)
            rc = read_some(t, &b, &e);
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
