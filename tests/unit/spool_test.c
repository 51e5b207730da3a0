/* What is put aside comes back in order, whoever wrote it first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/pool.h"
#include "curate/stream/spool.h"

enum { PIECES = 500, LONGEST = 700 };

struct pieces {
    struct spool *spool;
    struct spool_piece piece[PIECES];
    int next;
};

static void fill(char *to, int i)
{
    for (int k = 0; k < LONGEST; k++)
        to[k] = (char)(i * 31 + k * 7);
}

static void write_some(void *arg, int thread)
{
    struct pieces *p = arg;
    char bytes[LONGEST];
    struct err e;
    int i;

    (void)thread;
    while ((i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < PIECES) {
        int n = PIECES - 1 - i; /* the last ones first */

        fill(bytes, n);
        assert_int_equal(spool_write(p->spool, &p->piece[n], bytes, &e), 0);
    }
}

static void pieces_come_back_in_order(void **s)
{
    struct pieces *p = calloc(1, sizeof *p);
    char want[LONGEST], got[LONGEST];
    struct spool_piece x;
    uint64_t size = 0;
    struct err e;

    (void)s;
    assert_int_equal(spool_open(&p->spool, NULL, &e), 0);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(spool_reserve(p->spool, (size_t)(i * 37 % LONGEST), &p->piece[i], &e), 0);
        size += (uint64_t)(i * 37 % LONGEST);
    }
    assert_int_equal(spool_size(p->spool), size);
    pool_run(4, write_some, p, NULL);
    for (int i = 0; i < PIECES; i++) {
        assert_true(spool_next(p->spool, &x));
        assert_int_equal(x.n, i * 37 % LONGEST);
        assert_int_equal(spool_read(p->spool, &x, got, &e), 0);
        fill(want, i);
        assert_memory_equal(got, want, x.n);
    }
    assert_false(spool_next(p->spool, &x));
    spool_close(p->spool);
    free(p);
    assert_int_equal(spool_open(&(struct spool *){NULL}, "/nonexistent/folder", &e), ERR_IO);
    spool_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_come_back_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
