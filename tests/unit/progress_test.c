/* How far a run is: what is printed of it, for a person and for a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/progress.h"

static const char *line_of(const struct progress *p, double first, double seconds)
{
    static struct buf b;

    buf_clear(&b);
    assert_int_equal(progress_put_line(&b, p, first, seconds), 0);
    assert_int_equal(buf_putc(&b, 0), 0);
    return b.p;
}

static const char *json_of(const struct progress *p, double first, double seconds)
{
    static struct buf b;

    buf_clear(&b);
    assert_int_equal(progress_put_json(&b, "quern-x", p, first, seconds), 0);
    assert_int_equal(buf_putc(&b, 0), 0);
    return b.p;
}

static void a_line_says_phase_input_share_rate_and_end(void **state)
{
    struct progress p = {.phase = "pass 1 of 3", .input = "a.warc", .done = 250e6, .total = 1000e6,
                         .count = {{"read", 12}, {"bad", 0}}};

    (void)state;
    assert_string_equal(line_of(&p, 0, 10), "pass 1 of 3, a.warc: 25.0 % of 1000.0 MB, 25.0 MB/s, 0:00:30 left; read 12, bad 0");
    p = (struct progress){.unit = "steps", .done = 100, .total = 40000, .count = {{"loss", 3.25}}};
    assert_string_equal(line_of(&p, 0, 100), "0.2 % of 40000 steps, 1 steps/s, 11:05:00 left; loss 3.25");
}

static void what_was_there_at_the_start_is_no_rate(void **state)
{
    const struct progress p = {.done = 900e6, .total = 1000e6};

    (void)state;
    assert_string_equal(line_of(&p, 800e6, 10), "90.0 % of 1000.0 MB, 10.0 MB/s, 0:00:10 left");
    assert_string_equal(line_of(&p, 900e6, 0), "90.0 % of 1000.0 MB");
}

static void an_input_of_unknown_size_has_neither_share_nor_end(void **state)
{
    const struct progress p = {.input = "-", .done = 12e9};

    (void)state;
    assert_string_equal(line_of(&p, 0, 100), "-: 12.0 GB, 120.0 MB/s");
    assert_string_equal(json_of(&p, 0, 100), "{\"tool\":\"quern-x\",\"phase\":null,\"input\":\"-\",\"unit\":\"bytes\","
                        "\"done\":12000000000,\"total\":null,\"share\":null,\"rate\":120000000,\"seconds\":100,"
                        "\"left\":null,\"counts\":{}}\n");
}

static void an_object_has_numbers_as_numbers(void **state)
{
    const struct progress p = {.phase = "training", .unit = "steps", .done = 50, .total = 100,
                               .count = {{"loss", 2.5}, {"tokens", 1000}}};

    (void)state;
    assert_string_equal(json_of(&p, 0, 25), "{\"tool\":\"quern-x\",\"phase\":\"training\",\"input\":null,\"unit\":\"steps\","
                        "\"done\":50,\"total\":100,\"share\":0.5,\"rate\":2,\"seconds\":25,\"left\":25,"
                        "\"counts\":{\"loss\":2.5,\"tokens\":1000}}\n");
}

static void a_name_can_steer_no_terminal(void **state)
{
    const struct progress p = {.input = "a\033[2J\xc2\x9b\xff" "\xc3\xa9"};

    (void)state;
    assert_string_equal(line_of(&p, 0, 0), "a?[2J??\xc3\xa9: 0.0 MB");
    assert_non_null(strstr(json_of(&p, 0, 0), "\"input\":\"a\\u001b[2J"));
}

/* More done than there was to be, as of a file that grows: no share above 1, and no time below 0. */
static void more_than_all_is_all(void **state)
{
    const struct progress p = {.done = 2e6, .total = 1e6};

    (void)state;
    assert_string_equal(line_of(&p, 0, 1), "100.0 % of 1.0 MB, 2.0 MB/s, 0:00:00 left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_says_phase_input_share_rate_and_end),
        cmocka_unit_test(what_was_there_at_the_start_is_no_rate),
        cmocka_unit_test(an_input_of_unknown_size_has_neither_share_nor_end),
        cmocka_unit_test(an_object_has_numbers_as_numbers),
        cmocka_unit_test(a_name_can_steer_no_terminal),
        cmocka_unit_test(more_than_all_is_all),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
