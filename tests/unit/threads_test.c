/* How many threads, and where a team goes when one of its threads waits for its processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sched.h>

#include "base/limits.h"
#include "kernels/threads.h"

static void numbers(void **state)
{
    int all = limits_cpus();

    (void)state;
    setenv("OMP_NUM_THREADS", "3,2", 1);
    assert_int_equal(threads_count(5, 1, 1), 5);
    assert_int_equal(threads_count(0, 2, 2), 3);
    setenv("OMP_NUM_THREADS", "many", 1);
    assert_int_equal(threads_count(0, 1, 1), all);
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(threads_count(0, 1, 1), all);
    assert_int_equal(threads_count(0, all, all), 1);
    assert_int_equal(threads_count(0, 2 * all, 2 * all), 1);
}

/* A window at a time, of a cost, with a thread that waits and processors that are idle. */
static bool see(struct crowd_place *p, double now, double cost, double waited, double idle)
{
    return crowd_judge(p, &(struct crowd_window){now, cost, waited, idle});
}

static void leaves_a_busy_processor(void **state)
{
    struct crowd_place p = {0};

    (void)state;
    assert_false(see(&p, 1, 10, 0.01, 0));
    assert_true(see(&p, 2, 20, 0.5, 0));
    assert_true(see(&p, 2.25, 30, 0.5, 0)); /* the kernel is still moving things */
    assert_true(see(&p, 3, 15, 0.5, 0));    /* it is faster: they stay */
    assert_true(see(&p, 4, 15, 0.5, 0.1));
}

static void comes_back(void **state)
{
    (void)state;
    for (int why = 0; why < 3; why++) {
        struct crowd_place p = {0};

        assert_true(see(&p, 1, 20, 0.5, 0));
        assert_true(see(&p, 2, 15, 0.5, 0));
        assert_false(see(&p, why == 2 ? 40 : 3, why == 1 ? 25 : 15, 0.5, why == 0 ? 0.9 : 0));
        assert_true(see(&p, 41, 20, 0.5, 0)); /* and leaves again at once where it is needed */
    }
}

static void gives_up_what_brings_nothing(void **state)
{
    struct crowd_place p = {0};

    (void)state;
    assert_true(see(&p, 1, 20, 0.5, 0));
    assert_false(see(&p, 2, 20, 0.5, 0));
    assert_false(see(&p, 3, 20, 0.5, 0)); /* not again at once, */
    assert_true(see(&p, 4.5, 20, 0.5, 0));
    assert_false(see(&p, 5.5, 20, 0.5, 0));
    assert_false(see(&p, 9, 20, 0.5, 0)); /* and later each time */
    assert_true(see(&p, 10, 20, 0.5, 0));
}

/* A team that nobody disturbs computes where it was, and the processors are all there afterwards. */
static void leaves_no_trace(void **state)
{
    cpu_set_t before, after;
    int team = 2;
    struct crowd *c;

    (void)state;
    sched_getaffinity(0, sizeof before, &before);
    c = crowd_open(2, &team);
    for (int i = 0; i < 5; i++)
        crowd_step(c, 0.001, 1);
    crowd_close(c);
    crowd_leave();
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
    assert_int_equal(team, 2);
    crowd_step(NULL, 1, 1);
    crowd_close(NULL);
    assert_null(crowd_open(1, &team));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(leaves_a_busy_processor), cmocka_unit_test(comes_back),
        cmocka_unit_test(gives_up_what_brings_nothing), cmocka_unit_test(leaves_no_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
