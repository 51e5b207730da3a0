/* Seconds by phase. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/laps.h"
#include "base/pool.h"

static const char *const names[] = {"one", "two", "three"};

static void sleep_some(void *arg, int thread)
{
    uint64_t t = laps_now();

    (void)thread;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    t = laps_add(arg, 0, t);
    laps_add(arg, 1, t);
}

static void phases_of_threads_add_up(void **s)
{
    struct laps laps = {.name = names, .n = 3};

    (void)s;
    pool_run(4, sleep_some, &laps, NULL);
    assert_true(laps.ns[0] >= 20000000);
    assert_true(laps.ns[1] < laps.ns[0]);
    assert_int_equal(laps.ns[2], 0);
    laps_more(NULL, 0, 5); /* nobody wants to know */
    laps_add(NULL, 0, laps_now());
}

static void they_are_seconds_in_json(void **s)
{
    struct laps laps = {.name = names, .n = 3, .ns = {1500000000, 0, 2000999}};
    struct buf b = {0};

    (void)s;
    assert_int_equal(laps_json(&laps, &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, "{\"one\":1.5,\"two\":0,\"three\":0.002}");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_of_threads_add_up),
        cmocka_unit_test(they_are_seconds_in_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
