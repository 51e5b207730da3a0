/* Errors, memory, options, random numbers, UTF-8, gates. */
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/ascii.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "tests/sanitized.h"

static void err_prepends_context_and_cuts(void **s)
{
    struct err e;
    char big[2000];

    (void)s;
    assert_int_equal(err_set(&e, ERR_FORMAT, "byte %d", 7), ERR_FORMAT);
    assert_int_equal(err_wrap(&e, "file '%s'", "x"), ERR_FORMAT);
    assert_string_equal(e.msg, "file 'x': byte 7");
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    err_wrap(&e, "%s", big);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), ERR_IO);
}

/* As ctype.h has them in the C locale; no byte from 0x80 on is in any, as char or as a code point. */
static void ascii_classes_are_those_of_the_c_locale(void **s)
{
    (void)s;
    for (int c = 0; c < 256; c++) {
        uint32_t as[] = {(uint32_t)c, (uint32_t)(char)c, 0x100 + (uint32_t)c};

        for (int i = 0; i < 3; i++) {
            int want = c < 0x80 && i < 2 ? c : 0x7f; /* DEL is in no class */
            assert_int_equal(ascii_is_digit(as[i]), isdigit(want) != 0);
            assert_int_equal(ascii_is_lower(as[i]), islower(want) != 0);
            assert_int_equal(ascii_is_upper(as[i]), isupper(want) != 0);
            assert_int_equal(ascii_is_letter(as[i]), isalpha(want) != 0);
            assert_int_equal(ascii_is_alnum(as[i]), isalnum(want) != 0);
            assert_int_equal(ascii_is_hex(as[i]), isxdigit(want) != 0);
            assert_int_equal(ascii_is_html_space(as[i]), isspace(want) && want != '\v');
            assert_int_equal(ascii_is_space(as[i]), isspace(want) && want != '\v' && want != '\f');
        }
    }
}

static void spans_begin_and_end(void **s)
{
    (void)s;
    assert_true(span_starts(span_of("a.gz"), "a.") && !span_starts(span_of("a"), "a."));
    assert_true(span_ends(span_of("a.gz"), ".gz") && span_ends(span_of(".gz"), ".gz") && !span_ends(span_of("gz"), ".gz"));
    assert_true(span_starts_nocase(span_of("Content-Type"), "content-") && !span_starts_nocase(span_of("con"), "content-"));
    assert_true(span_is_nocase(span_of("GZIP"), "gzip") && !span_is_nocase(span_of("gzip2"), "gzip"));
    assert_false(span_starts((struct span){0}, "a") || span_ends((struct span){0}, "a"));
}

static void buf_grows_and_respects_its_cap(void **s)
{
    struct buf b = {.max = 1000};

    (void)s;
    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_put(&b, "0123456789", 10), 0);
    assert_int_equal(b.n, 1000);
    assert_int_equal(buf_putc(&b, 'x'), ERR_LIMIT);
    assert_int_equal(b.n, 1000);
    assert_int_equal(b.p[b.n], 0);
    buf_clear(&b);
    assert_int_equal(buf_printf(&b, "%d-%s", 42, "x"), 0);
    assert_string_equal(b.p, "42-x");
    buf_free(&b);
}

static void a_shortage_is_remembered_and_is_no_other_error(void **s)
{
    struct buf b = {0};
    struct err e;

    (void)s;
    if (ASAN)
        skip(); /* it ends a program that asks for so much */
    mem_short_reset();
    assert_int_equal(buf_puts(&b, "kept"), 0);
    b.max = 8;
    assert_int_equal(buf_reserve(&b, 5), ERR_LIMIT); /* a cap is none */
    assert_int_equal(buf_putc(&b, '.'), 0);
    assert_false(mem_was_short());
    b.max = 0;
    assert_int_equal(buf_reserve(&b, SIZE_MAX / 4), ERR_NOMEM);
    assert_int_equal(buf_putc(&b, '!'), ERR_NOMEM);
    assert_true(mem_was_short());
    assert_true(span_is(buf_span(&b), "kept."));
    buf_free(&b);
    assert_int_equal(buf_putc(&b, '!'), 0);
    buf_free(&b);
    mem_short_reset();
    assert_false(mem_was_short());
    errno = ENOMEM;
    assert_int_equal(err_sys(&e, ERR_FORMAT, "cannot map 'x'"), ERR_NOMEM);
    assert_int_equal(e.code, ERR_NOMEM);
    errno = ENOENT;
    assert_int_equal(err_sys(&e, ERR_IO, "cannot map 'x'"), ERR_IO);
}

static void arena_gives_aligned_pieces_within_its_cap(void **s)
{
    struct arena a = {.max = 1 << 20};

    (void)s;
    for (size_t i = 1; i < 500; i++) {
        char *p = arena_alloc(&a, i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, 1, i);
    }
    assert_null(arena_alloc(&a, 1 << 20));
    assert_null(arena_alloc(&a, SIZE_MAX - 5));
    arena_reset(&a);
    assert_int_equal(a.used, 0);
    assert_true(span_is(arena_dup(&a, span_of("abc")), "abc"));
    arena_free(&a);
}

static void options_parse_every_type(void **s)
{
    bool flag = true, given = false;
    const char *str = NULL;
    int64_t n = 3, size = 0;
    double x = 0;
    int word = 0;
    struct opt_list list = {0};
    struct opt opts[] = {
        OPT_FLAG('f', "flag", &flag, "h"), OPT_STR('s', "str", &str, "S", "h"),
        OPT_INT('n', "num", &n, -5, 10, "h"), OPT_SIZE(0, "size", &size, 0, INT64_MAX, "h"),
        OPT_NUM(0, "x", &x, 0, 1, "h"), OPT_ENUM(0, "word", &word, "red|green|blue", "h"),
        OPT_LIST('l', "list", &list, "L", "h"), OPT_END};
    char *argv[] = {"t", "in1", "--no-flag", "-sabc", "--num=-5", "--size", "3M", "--x", "0.5",
                    "-l", "a", "--word", "blue", "-l", "b", "-", "--", "--in2"};
    struct err e;
    struct buf text = {0};
    char twice[OPT_TWICE];

    (void)s;
    opts[1].given = &given;
    assert_int_equal(opt_parse(opts, sizeof argv / sizeof *argv, argv, twice, &e), 3);
    assert_string_equal(twice, "");
    assert_string_equal(argv[1], "in1");
    assert_string_equal(argv[2], "-");
    assert_string_equal(argv[3], "--in2");
    assert_false(flag);
    assert_true(given);
    assert_string_equal(str, "abc");
    assert_int_equal(n, -5);
    assert_int_equal(size, 3 << 20);
    assert_true(x == 0.5);
    assert_int_equal(word, 2);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[1], "b");
    assert_int_equal(opt_put_text(&text, &opts[3]), 0);
    assert_int_equal(opt_put_text(&text, &opts[5]), 0);
    assert_string_equal(text.p, "3Mblue");
    buf_free(&text);
    assert_int_equal(opt_set(opts, "num", "7", &e), 0);
    assert_int_equal(n, 7);
    opt_list_free(&list);
}

/* A list as text is the same list again: with commas and backslashes in its words, an empty word, and far longer than a line. */
static void options_that_are_lists_go_there_and_back(void **s)
{
    struct opt_list list = {0}, again = {0};
    const struct opt there[] = {OPT_LIST('l', "list", &list, "L", "h"), OPT_END};
    const struct opt back[] = {OPT_LIST('l', "list", &again, "L", "h"), OPT_END};
    struct buf text = {0};
    struct arena a = {0};
    char many[1000][16];
    struct err e;

    (void)s;
    assert_int_equal(opt_put_text(&text, there), 0);
    assert_int_equal(text.n, 0);
    assert_int_equal(opt_set_text(back, "", &a, &e), 0);
    assert_int_equal(again.n, 0);
    assert_int_equal(opt_list_add(&list, "a,b\\", &e), 0);
    assert_int_equal(opt_list_add(&list, "", &e), 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(many[i], sizeof many[i], "shard_%d", i);
        assert_int_equal(opt_list_add(&list, many[i], &e), 0);
    }
    assert_int_equal(opt_put_text(&text, there), 0);
    assert_int_equal(strncmp(text.p, "a\\,b\\\\,,shard_0,shard_1,", 24), 0);
    assert_int_equal(opt_set_text(back, text.p, &a, &e), 0);
    assert_int_equal(again.n, list.n);
    for (int i = 0; i < list.n; i++)
        assert_string_equal(again.v[i], list.v[i]);
    opt_list_free(&list);
    opt_list_free(&again);
    buf_free(&text);
    arena_free(&a);
}

/* A string that another one took the place of is told; the same again, and numbers, are not. */
static void options_tell_a_string_that_was_lost(void **s)
{
    const char *str = "default";
    int64_t n = 0;
    const struct opt opts[] = {OPT_STR('s', "str", &str, "S", "h"), OPT_INT('n', "num", &n, 0, 10, "h"), OPT_END};
    char *lost[] = {"t", "-sa", "--str=b", "--str", "c"}, *same[] = {"t", "-sa", "--str", "a", "-n1", "-n2"};
    char twice[OPT_TWICE];
    struct err e;

    (void)s;
    assert_int_equal(opt_parse(opts, 5, lost, twice, &e), 0);
    assert_string_equal(twice, "--str is given twice: 'b' counts, not 'a'");
    assert_string_equal(str, "c");
    assert_int_equal(opt_parse(opts, 6, same, twice, &e), 0);
    assert_string_equal(twice, "");
    assert_int_equal(n, 2);
}

static void options_refuse_nonsense_by_name(void **s)
{
    int64_t n = 3, size = 0;
    double x = 0;
    int word = 0;
    bool f = false;
    const struct opt opts[] = {OPT_INT('n', "num", &n, 0, 10, "h"),
                               OPT_SIZE(0, "size", &size, 0, INT64_MAX, "h"),
                               OPT_NUM(0, "x", &x, 0, 1, "h"),
                               OPT_ENUM(0, "word", &word, "red|green", "h"),
                               OPT_FLAG('f', "flag", &f, "h"), OPT_END};
    const char *bad[][2] = {{"--num=11", "--num"}, {"--num=1x", "1x"}, {"--size=9999999T", "--size"},
                            {"--size=3Q", "3Q"}, {"--x=nan", "nan"}, {"--x=2", "--x"},
                            {"--word=gre", "gre"}, {"--flag=1", "no value"}, {"--nope", "--nope"},
                            {"-z", "-z"}, {"--num", "needs a value"}, {"--no-num", "--no-num"},
                            {"--num=99999999999999999999", "outside 0..10"}, {"--num=-99999999999999999999", "outside 0..10"},
                            {"--size=1.5G", "a whole number, then"}, {"--no-flag=1", "--no-flag takes no value"},
                            {"--wo=red", "did you mean '--word'?"}};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char arg[32], *argv[] = {"t", arg};
        strcpy(arg, bad[i][0]);
        assert_int_equal(opt_parse(opts, 2, argv, NULL, &e), ERR_ARG);
        assert_non_null(strstr(e.msg, bad[i][1]));
    }
}

/* numpy 1.24: RandomState(42).randint raw words; RandomState(1234).permutation(10). */
static void mt19937_draws_what_numpy_draws(void **s)
{
    struct rng_mt r;
    uint32_t a[10];
    static const uint32_t want[10] = {7, 2, 9, 1, 0, 8, 4, 5, 6, 3};

    (void)s;
    rng_mt_seed(&r, 42);
    assert_int_equal(rng_mt_u32(&r), 1608637542u);
    assert_int_equal(rng_mt_u32(&r), 3421126067u);
    rng_mt_seed(&r, 1234);
    for (uint32_t i = 0; i < 10; i++)
        a[i] = i;
    rng_mt_shuffle_u32(&r, a, 10);
    assert_memory_equal(a, want, sizeof a);
    rng_mt_seed(&r, 5);
    assert_true(rng_mt_double(&r) == 0.22199317108973948);
}

/* Shuffles, by the definition: for i = n-1 .. 1 exchange with interval(i). */
static void shuffles_follow_their_definition(void **s)
{
    static const size_t sizes[] = {0, 1, 2, 3, 64, 65, 128, 129, 130, 257, 1000, 4096, 4097, 70000};
    uint32_t *a = malloc(70000 * sizeof *a), *want = malloc(70000 * sizeof *want);
    uint64_t *wide = malloc(70000 * sizeof *wide);

    (void)s;
    assert_true(a && want && wide);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct rng_mt r, r32, r64, skip;
        size_t n = sizes[k];
        rng_mt_seed(&r, (uint32_t)k);
        r32 = r64 = skip = r;
        for (size_t i = 0; i < n; i++)
            wide[i] = a[i] = want[i] = (uint32_t)i;
        for (size_t i = n; i-- > 1;) {
            size_t j = (size_t)rng_mt_interval(&r, i);
            uint32_t t = want[i];
            want[i] = want[j];
            want[j] = t;
        }
        rng_mt_shuffle_u32(&r32, a, n);
        rng_mt_shuffle_u64(&r64, wide, n);
        rng_mt_skip_shuffle(&skip, n);
        for (size_t i = 0; i < n; i++)
            assert_true(a[i] == want[i] && wide[i] == want[i]);
        uint32_t next = rng_mt_u32(&r);
        assert_true(rng_mt_u32(&r32) == next && rng_mt_u32(&r64) == next && rng_mt_u32(&skip) == next);
    }
    free(a);
    free(want);
    free(wide);
}

/* Known answers published with Random123 for philox4x32-10. */
static void philox_gives_its_known_answers(void **s)
{
    uint32_t w[4];
    static const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};

    (void)s;
    rng_philox(0, 0, 0, w);
    assert_memory_equal(w, zero, sizeof w);
    rng_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, w);
    assert_memory_equal(w, ones, sizeof w);
}

static void utf8_repairs_by_maximal_subpart(void **s)
{
    static const char *const cases[][2] = {
        {"abc\xF0\x9F\x98\x80", "abc\xF0\x9F\x98\x80"},
        {"\xEF\xBF\xBD ok", "\xEF\xBF\xBD ok"},
        {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xE2\x82", "\xEF\xBF\xBD"},
        {"\xF0\x9F\x98z", "\xEF\xBF\xBDz"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"12345678\x80", "12345678\xEF\xBF\xBD"}};

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b = {0};
        assert_int_equal(utf8_repair(span_of(cases[i][0]), &b), 0);
        assert_string_equal(b.p, cases[i][1]);
        assert_int_equal(utf8_valid(span_of(cases[i][0])), strcmp(cases[i][0], cases[i][1]) == 0);
        buf_free(&b);
    }
    for (uint32_t cp = 0; cp < 0x110000; cp += 37) {
        char o[4];
        uint32_t back;
        if (cp >= 0xD800 && cp < 0xE000)
            continue;
        int n = utf8_put(o, cp);
        assert_int_equal(utf8_next(o, o + n, &back), n);
        assert_int_equal(back, cp);
    }
}

struct ordered {
    struct gate g;
    uint64_t ticket, seen[1000];
    int n;
};
static void draw_and_pass(void *arg, int thread)
{
    struct ordered *o = arg;
    (void)thread;
    for (;;) {
        uint64_t t = __atomic_fetch_add(&o->ticket, 1, __ATOMIC_RELAXED);
        if (t >= 1000)
            return;
        assert_int_equal(gate_enter(&o->g, t), 0);
        o->seen[o->n++] = t;
        gate_leave(&o->g);
    }
}
static void gate_lets_tickets_through_in_order(void **s)
{
    static struct ordered o;
    struct err e;

    (void)s;
    gate_init(&o.g);
    assert_int_equal(pool_run(7, draw_and_pass, &o, &e), 0);
    assert_int_equal(o.n, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(o.seen[i], i);
    gate_stop(&o.g);
    assert_int_equal(gate_enter(&o.g, 5000), ERR_STOPPED);
    gate_destroy(&o.g);
}

enum { BELT_THINGS = 5, BELT_USES = 1000, BELT_FAILS = 700 };
struct conveyed {
    struct belt b;
    uint64_t number, thing[BELT_THINGS], seen[BELT_USES];
    int n, fail_at, stopped;
};
static int use_thing(void *arg, void *thing, struct err *e)
{
    struct conveyed *o = arg;

    o->seen[o->n++] = *(uint64_t *)thing;
    return o->n == o->fail_at ? err_set(e, ERR_IO, "as told") : 0;
}
static void make_and_put(void *arg, int thread)
{
    struct conveyed *o = arg;
    struct err e;
    void *thing;

    (void)thread;
    while (belt_take(&o->b, &thing) == 0) {
        uint64_t i = __atomic_fetch_add(&o->number, 1, __ATOMIC_RELAXED);
        if (i >= BELT_USES)
            return;
        if (i % 50 == 0)
            sched_yield();
        *(uint64_t *)thing = i;
        if (belt_put(&o->b, i, thing, use_thing, o, &e) < 0)
            break;
    }
    __atomic_fetch_add(&o->stopped, 1, __ATOMIC_RELAXED);
}
static void belt_brings_things_in_order(void **s)
{
    (void)s;
    for (int fail_at = 0; fail_at <= BELT_FAILS; fail_at += BELT_FAILS) {
        struct conveyed o = {.fail_at = fail_at};
        struct err e;
        void *thing;
        assert_int_equal(belt_init(&o.b, BELT_THINGS, &e), 0);
        for (int i = 0; i < BELT_THINGS; i++)
            belt_add(&o.b, &o.thing[i]);
        assert_int_equal(pool_run(4, make_and_put, &o, &e), 0);
        assert_int_equal(o.n, fail_at ? fail_at : BELT_USES);
        assert_int_equal(o.stopped, fail_at ? 4 : 0);
        for (int i = 0; i < o.n; i++)
            assert_int_equal(o.seen[i], i);
        belt_stop(&o.b);
        assert_int_equal(belt_take(&o.b, &thing), ERR_STOPPED);
        belt_destroy(&o.b);
    }
}

/* Values of the xxHash library's own xxhsum: XXH3 of the empty string and of "abc". */
static void hashes_are_xxhash(void **s)
{
    (void)s;
    assert_true(hash_xxh3_64(span_of("")) == 0x2d06800538d394c2ULL);
    assert_true(hash_xxh64(span_of("abc"), 0) == 0x44bc2cf5ad770999ULL);
    assert_true(hash_xxh3_128(span_of("")).hi == 0x99aa06d3014798d8ULL);
}

/* Each thread of a crew runs once in each run, and all have when it returns. */
static int count_thread(void *arg, int thread, struct err *e)
{
    int *ran = arg;

    __atomic_fetch_add(&ran[thread], 1, __ATOMIC_RELAXED);
    return ran[thread] == 2001 ? err_set(e, ERR_LIMIT, "thread %d", thread) : 0;
}

static void a_crew_runs_again_and_again(void **s)
{
    static const int sizes[] = {0, 1, 2, 5};
    struct crew *c;
    struct err e;

    (void)s;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int ran[6] = {0}, n = sizes[k] > 1 ? sizes[k] : 1;

        assert_int_equal(crew_open(&c, sizes[k], &e), 0);
        for (int run = 1; run <= 2000; run++) {
            assert_int_equal(crew_share(c, count_thread, ran, &e), 0);
            for (int i = 0; i < 6; i++)
                assert_int_equal(ran[i], i < n ? run : 0);
        }
        assert_int_equal(crew_share(c, count_thread, ran, &e), ERR_LIMIT); /* every thread fails: one of them is named */
        assert_non_null(strstr(e.msg, "thread "));
        assert_int_equal(crew_share(c, count_thread, ran, NULL), 0);
        crew_close(c);
    }
    crew_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(err_prepends_context_and_cuts),
        cmocka_unit_test(ascii_classes_are_those_of_the_c_locale),
        cmocka_unit_test(spans_begin_and_end),
        cmocka_unit_test(buf_grows_and_respects_its_cap),
        cmocka_unit_test(a_shortage_is_remembered_and_is_no_other_error),
        cmocka_unit_test(arena_gives_aligned_pieces_within_its_cap),
        cmocka_unit_test(options_parse_every_type),
        cmocka_unit_test(options_that_are_lists_go_there_and_back),
        cmocka_unit_test(options_tell_a_string_that_was_lost),
        cmocka_unit_test(options_refuse_nonsense_by_name),
        cmocka_unit_test(mt19937_draws_what_numpy_draws),
        cmocka_unit_test(shuffles_follow_their_definition),
        cmocka_unit_test(philox_gives_its_known_answers),
        cmocka_unit_test(utf8_repairs_by_maximal_subpart),
        cmocka_unit_test(gate_lets_tickets_through_in_order),
        cmocka_unit_test(belt_brings_things_in_order),
        cmocka_unit_test(a_crew_runs_again_and_again),
        cmocka_unit_test(hashes_are_xxhash),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
