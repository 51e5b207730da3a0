/* tests/jobs.c: a job that fails, ends its process or does not end leaves the others alone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/jobs.c"

enum { N = 8 };
static struct device *dev;
static int opened; /* times, in the process */
static FILE *trail;

static const char *name(int i)
{
    static const char *const names[N] = {"fine", "wrong", "killed", "fine", "endless", "ended", "fine", "slow"};

    return names[i];
}

static int open_it(void)
{
    struct err e;

    opened++;
    return device_open_dedup(&dev, "cpu", 1, NULL, &e);
}

static int run(int i)
{
    fprintf(trail, "%d%d ", i, opened);
    fflush(trail);
    if (i == 2)
        kill(getpid(), SIGKILL);
    if (i == 4)
        for (;;)
            pause();
    if (i == 5)
        _exit(7);
    if (i == 7)
        usleep(200000);
    return i == 1;
}

static void check(const struct job_set *j, int rc, int passed, int failed, int left, const char *steps)
{
    struct jobs_result r;
    char text[100] = "";
    int out = dup(STDOUT_FILENO), none = open("/dev/null", O_WRONLY);

    trail = tmpfile();
    assert_non_null(trail);
    setvbuf(trail, NULL, _IONBF, 0);
    fflush(stdout);
    dup2(none, STDOUT_FILENO); /* what it says of them is no test's failure */
    assert_int_equal(jobs_run(j, &r), rc);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(none);
    rewind(trail);
    assert_true(fgets(text, sizeof text, trail) || !*steps);
    fclose(trail);
    assert_int_equal(r.passed, passed);
    assert_int_equal(r.failed, failed);
    assert_int_equal(r.left, left);
    assert_string_equal(text, steps);
}

static void the_others_go_on(void **s)
{
    const struct job_set j = {.n = N, .name = name, .open = open_it, .run = run, .dev = &dev, .limit = 3};

    (void)s;
    check(&j, 0, 4, 4, 0, "01 11 21 31 41 51 61 71 "); /* opened once in each process */
}

static int no_open(void) { return -1; }
static int stuck_open(void) { return usleep(30000000); }
static int endless_from_one(int i)
{
    fprintf(trail, "%d ", i);
    while (i > 0)
        pause();
    return 0;
}

static void limits_hold(void **s)
{
    struct job_set j = {.n = 3, .name = name, .open = no_open, .run = run, .dev = &dev, .limit = 0.2};

    (void)s;
    check(&j, ERR_DEVICE, 0, 0, 3, "");
    j.open = stuck_open;
    check(&j, ERR_DEVICE, 0, 0, 3, "");
    j.open = open_it;
    j.limit = 100;
    j.run = endless_from_one;
    j.budget = 2; /* over while the second runs, which is left out as the third is */
    check(&j, 0, 1, 0, 2, "0 1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_others_go_on), cmocka_unit_test(limits_hold)};

    return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
