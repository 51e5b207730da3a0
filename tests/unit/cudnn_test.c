/* Attention through cuDNN: by the stand-in for it (tests/simt_dnn.cpp) against the CPU; and the library's own checks of our
 * graphs, for an H200 that is not here, which wants the library and the driver's stub of the CUDA toolkit (CUDA=/usr/local/cuda);
 * without them there is nothing to check, and the test says so. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/dnn_api.h"
#include "tests/simt_device.h"
#include "tests/train_twins/train_twins.h"

static char library[4096];

static int find(void **s)
{
    const char *cuda = getenv("CUDA") ? getenv("CUDA") : "/usr/local/cuda";
    char stub[4096];

    (void)s;
    snprintf(library, sizeof library, "%s/lib64/libcudnn.so.9", cuda);
    snprintf(stub, sizeof stub, "%s/lib64/stubs/libcuda.so", cuda);
    if (access(library, R_OK) != 0 || !dlopen(stub, RTLD_NOW | RTLD_GLOBAL)) {
        printf("no cuDNN with the driver's stub in %s\n", cuda);
        library[0] = '\0';
    }
    return 0;
}

/* Versions that are known to be wrong, by direction and number of keys. */
static void versions_with_bugs_are_not_used(void **s)
{
    static const struct {
        size_t version;
        int64_t keys;
        bool forward, backward;
    } of[] = {
        {90100, 1024, true, true},  {90900, 1024, true, true},  {91000, 1024, false, false}, {91001, 1024, false, false},
        {91002, 1024, true, true},  {91300, 1024, true, true},  {91300, 1000, true, false},  {90500, 64, true, false},
        {91000, 1000, false, false}, {91500, 1000, true, false}, {91500, 1024, true, true},   {91501, 1000, true, true},
        {91900, 350, true, true},
    };

    (void)s;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct dnn_asked asked = {.keys = of[i].keys, .d = 64};
        if ((dnn_distrusted(of[i].version, &asked) == NULL) != of[i].forward)
            fail_msg("forward by %zu over %lld keys", of[i].version, (long long)of[i].keys);
        asked.backward = true;
        if ((dnn_distrusted(of[i].version, &asked) == NULL) != of[i].backward)
            fail_msg("backward by %zu over %lld keys", of[i].version, (long long)of[i].keys);
    }
}

/* The first version that each kind is asked of. */
static void kinds_are_asked_of_versions_that_have_them(void **s)
{
    static const struct {
        struct dnn_asked asked;
        size_t first;
    } of[] = {
        {{1024, 64, false, true, false}, 90800}, {{1024, 64, true, true, false}, 90800}, {{1024, 256, true, false, false}, 90800},
        {{1024, 128, false, false, true}, 91002}, {{1000, 128, true, false, true}, 91002}, {{1024, 128, true, true, true}, 91002},
    };

    (void)s;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_non_null(dnn_distrusted(of[i].first - 1, &of[i].asked));
        assert_null(dnn_distrusted(of[i].first, &of[i].asked));
        assert_null(dnn_distrusted(91900, &of[i].asked));
    }
}

static void old_versions_get_zeroed_sums(void **s)
{
    (void)s;
    assert_true(dnn_wants_zeros(90501));
    assert_false(dnn_wants_zeros(90600));
    assert_false(dnn_wants_zeros(91900));
}

static void graphs_are_supported(void **s)
{
    static const struct simt_dnn_shape shape[] = {
        {4, 1024, 12, 12, 64, 0, 0, 0},  {8, 1024, 25, 25, 64, 0, 0, 0},  {1, 4096, 32, 32, 128, 0, 0, 0},
        {2, 2048, 32, 8, 128, 0, 0, 0},  {8, 2048, 32, 8, 64, 0, 0, 0},   {3, 350, 2, 2, 64, 0, 0, 0},
        {6, 650, 2, 1, 64, 0, 0, 0},     {3, 400, 1, 1, 96, 0, 0, 0},     {2, 2048, 8, 2, 192, 0, 0, 0},
        {2, 2048, 8, 2, 256, 0, 0, 0},   {8, 1024, 25, 25, 64, 0, 0, 0.1}, {2, 2048, 32, 8, 128, 0, 0, 0.1},
        {2, 2048, 8, 2, 256, 0, 0, 0.1}, {64, 1024, 25, 25, 64, 0, 1, 0}, {128, 4096, 32, 8, 128, 0, 1, 0},
        {1, 350, 2, 1, 64, 0, 1, 0},     {64, 1024, 12, 12, 64, 0, 1, 0.1}, {64, 1024, 12, 4, 256, 0, 1, 0},
    };
    struct err e;

    (void)s;
    if (!library[0])
        skip();
    for (size_t i = 0; i < 2 * sizeof shape / sizeof *shape; i++) {
        struct simt_dnn_shape of = shape[i / 2];
        int engines = 0;

        of.backward = i % 2;
        if (simt_dnn_engines(library, &of, &engines, &e) < 0)
            fail_msg("shape %zu, %d: %s", i / 2, of.backward, e.msg);
        if (engines < 1)
            fail_msg("shape %zu, %d: no engine", i / 2, of.backward);
    }
}

/* One graph of tests/data/cudnn/graphs.txt, whose head is `graph`, against ours. */
static void compare_graph(const char *graph, const char *want)
{
    struct simt_dnn_shape of;
    long long n[7];
    const char *got;
    struct err e;
    int line = 0;

    assert_int_equal(sscanf(graph, "graph %*d %lld %lld %lld %lld %lld %lld %lf %lld", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5],
                            &of.drop, &n[6]), 8);
    of = (struct simt_dnn_shape){n[0], n[1], n[2], n[3], n[4], (int)n[5], (int)n[6], of.drop};
    got = simt_dnn_text(&of, &e);
    if (!got)
        fail_msg("%.60s: %s", graph, e.msg);
    for (; *got && *want; line++) {
        size_t a = strcspn(got, "\n"), b = strcspn(want, "\n");
        if (a != b || memcmp(got, want, a) != 0)
            fail_msg("%.60s: operation %d is\n%.*s\nnot\n%.*s", graph, line, (int)a, got, (int)b, want);
        got += a + 1;
        want += b + 1;
    }
    if (*got || *want)
        fail_msg("%.60s: more than %d operations on one side", graph, line);
}

/* What differs from the graphs that NVIDIA's own frontend builds, engines may take and run wrongly. */
static void graphs_are_those_of_the_frontend(void **s)
{
    static char text[1 << 17];
    FILE *f = fopen("tests/data/cudnn/graphs.txt", "r");
    char *graph = text;
    int graphs = 0;

    (void)s;
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    setenv("SIMT_DNN", "91900", 1);
    while (*graph) {
        char *ops = strchr(graph, '\n') + 1, *next = strstr(ops, "graph ");
        char old = next ? *next : '\0';
        if (next)
            *next = '\0';
        compare_graph(graph, ops);
        graphs++;
        if (!next)
            break;
        *next = old;
        graph = next;
    }
    unsetenv("SIMT_DNN");
    assert_int_equal(graphs, 8);
}

static void a_missing_library_is_named(void **s)
{
    const struct simt_dnn_shape of = {1, 64, 1, 1, 64, 0, 0, 0};
    struct err e = {0};
    int engines = 7;

    (void)s;
    assert_int_equal(simt_dnn_engines("/nowhere/libcudnn.so.9", &of, &engines, &e), ERR_UNSUPPORTED);
    assert_int_equal(engines, 0);
    assert_non_null(strstr(e.msg, "/nowhere/libcudnn.so.9"));
}

/* ---- the stand-in ---- */

static struct twins twins;

/* Attention of all shapes by this version: how many calls of it there are, and how many comparisons fail. */
struct came {
    int forward, backward, failed;
};
static struct came calls_by(int version, void (*cases)(struct twins *t))
{
    struct simt_dnn_calls before = simt_dnn_calls;
    char name[20];

    snprintf(name, sizeof name, "%d", version);
    setenv("SIMT_DNN", name, 1);
    twins.failed = 0;
    twins.wrong[0] = '\0';
    cases(&twins);
    return (struct came){simt_dnn_calls.forward - before.forward, simt_dnn_calls.backward - before.backward, twins.failed};
}

static struct came attention_by(int version)
{
    return calls_by(version, twins_attention_whole);
}

static int open_twins(void **s)
{
    struct err e;

    (void)s;
    twins = (struct twins){.scale = 1};
    return device_open(&twins.cpu, "cpu", 1, &e) < 0 || simt_open(&twins.other, 0, &e) < 0 ? -1 : 0;
}

/* Plans go with the device. */
static int close_twins(void **s)
{
    (void)s;
    device_close(twins.cpu);
    device_close(twins.other);
    simt_dnn_calls.fail = false;
    unsetenv("SIMT_DNN");
    unsetenv("QUERN_ATTENTION");
    return 0;
}

static void graphs_compute_attention(void **s)
{
    struct came is = attention_by(91900);

    (void)s;
    if (is.failed)
        fail_msg("%s", twins.wrong);
    assert_int_equal(is.forward, TWINS_WHOLE);
    assert_int_equal(is.backward, TWINS_WHOLE);
}

/* Documents and wide heads, but no gradients of documents in rows of another width than what they are of. */
static void documents_and_wide_heads_are_computed(void **s)
{
    struct came is = calls_by(91900, twins_attention_more);

    (void)s;
    if (is.failed)
        fail_msg("%s", twins.wrong);
    assert_int_equal(is.forward, TWINS_MORE);
    assert_int_equal(is.backward, TWINS_MORE - 1);
    close_twins(s); /* with its plans */
    assert_int_equal(open_twins(s), 0);
    is = calls_by(90800, twins_attention_more); /* has no plan for documents */
    assert_true(is.failed == 0 && is.forward == 2 && is.backward == 2);
}

static void masks_are_drawn_once_for_both_ways(void **s)
{
    struct came is = calls_by(91900, twins_attention_dropout);

    (void)s;
    if (is.failed)
        fail_msg("%s", twins.wrong);
    assert_true(is.forward > 6 * (TWINS_DROPPED - 1));
    assert_int_equal(is.backward, TWINS_DROPPED - 1); /* not of wide heads and documents, unless that is asked for */
    setenv("QUERN_ATTENTION", "cudnn", 1);
    is = calls_by(91900, twins_attention_dropout);
    if (is.failed)
        fail_msg("%s", twins.wrong);
    assert_int_equal(is.backward, TWINS_DROPPED);
}

/* Whatever the version, results are right: what it would do wrong it is not asked for. */
static void each_version_does_what_it_does_right(void **s)
{
    static const struct {
        int version, forward, backward;
    } of[] = {{90100, TWINS_WHOLE, 1}, {91000, 0, 0}, {91300, TWINS_WHOLE, 1}, {91501, TWINS_WHOLE, TWINS_WHOLE}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct came is = attention_by(of[i].version);
        if (is.failed || is.forward != of[i].forward || is.backward != of[i].backward)
            fail_msg("%d: %d forward, %d backward, %d wrong: %s", of[i].version, is.forward, is.backward, is.failed, twins.wrong);
        close_twins(s);
        assert_int_equal(open_twins(s), 0);
    }
}

/* The faults of a version are there: plans of a good one, run by another. */
static void faults_are_seen(void **s)
{
    (void)s;
    assert_int_equal(attention_by(91900).failed, 0);
    assert_int_equal(attention_by(91500).failed, TWINS_WHOLE - 1); /* gradients, but of 128 keys */
    assert_int_equal(attention_by(91001).failed, 3 * TWINS_WHOLE);
}

static void a_failure_is_made_up_for(void **s)
{
    struct came is;

    (void)s;
    simt_dnn_calls.fail = true;
    is = attention_by(91900);
    assert_true(is.forward == 0 && is.backward == 0 && is.failed == 0);
    simt_dnn_calls.fail = false; /* a plan that has failed is not taken again */
    is = attention_by(91900);
    assert_true(is.forward == 0 && is.backward == 0 && is.failed == 0);
}

static void a_failure_is_told_where_it_must_not_be(void **s)
{
    (void)s;
    setenv("QUERN_ATTENTION", "cudnn", 1);
    simt_dnn_calls.fail = true;
    assert_true(attention_by(91900).failed >= TWINS_WHOLE);
    assert_non_null(strstr(twins.wrong, "a test has it fail"));
}

/* Gradients of one call, as bytes. */
enum { T = 96, D = 64, GRADIENTS = 3 * T * D };
static void gradients(uint16_t *out)
{
    static float value[GRADIENTS];
    struct made m = {.t = &twins};
    struct tensor qkv = normal(&m, DTYPE_BF16, GRADIENTS, 0, 1, 1, 0), dqkv = normal(&m, DTYPE_BF16, GRADIENTS, 0, 2, 0, 0);
    struct tensor o = normal(&m, DTYPE_BF16, T * D, 0, 3, 0, 0), dout = normal(&m, DTYPE_BF16, T * D, 0, 4, 1, 0);
    struct tensor lse = tensor_of(&m, DTYPE_F32, T, 0, value);
    struct device *dev = twins.other;
    struct attention_view v[5];
    struct attention p = {.b = 1, .t = T, .t_kv = T, .heads = 1, .kv_heads = 1, .d = D, .scale = 0.125f, .lse = on(&m, 1, &lse)};

    for (int i = 0; i < 3; i++)
        v[i] = (struct attention_view){(uint16_t *)on(&m, 1, &qkv) + i * D, T * 3 * D, 3 * D};
    v[3] = (struct attention_view){on(&m, 1, &o), T * D, D};
    v[4] = (struct attention_view){on(&m, 1, &dout), T * D, D};
    p.q = v[0], p.k = v[1], p.v = v[2], p.o = v[3];
    for (int i = 0; i < 3; i++)
        v[i].p = (uint16_t *)on(&m, 1, &dqkv) + i * D;
    CHECK(&m, dev->ops->attention_fwd(dev, DTYPE_BF16, &p, &m.e));
    CHECK(&m, dev->ops->attention_bwd(dev, DTYPE_BF16, &p, v[4], v[0], v[1], v[2], &m.e));
    CHECK(&m, device_get(dev, out, on(&m, 1, &dqkv), GRADIENTS * sizeof *out, &m.e));
    forget(&m);
}

/* How many of some calls give other bits than the first. */
static int differing_calls(void)
{
    static uint16_t first[GRADIENTS], again[GRADIENTS];
    int n = 0;

    gradients(first);
    for (int i = 0; i < 10; i++) {
        gradients(again);
        n += memcmp(first, again, sizeof first) != 0;
    }
    return n;
}

/* The library adds dq up in no fixed order, so it is left out where bits must be the same. */
static void bits_are_the_same_without_it(void **s)
{
    int before;

    (void)s;
    setenv("SIMT_DNN", "91900", 1);
    assert_true(differing_calls() > 0);
    twins.other->deterministic = true;
    before = simt_dnn_calls.backward;
    assert_int_equal(differing_calls(), 0);
    assert_int_equal(simt_dnn_calls.backward, before);
    assert_string_equal(twins.wrong, "");
}

#define WITH_TWINS(f) cmocka_unit_test_setup_teardown(f, open_twins, close_twins)

int main(void)
{
    const struct CMUnitTest tests[] = { /* in this order: a library once opened stays */
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(graphs_are_supported),
        cmocka_unit_test(graphs_are_those_of_the_frontend),
        cmocka_unit_test(versions_with_bugs_are_not_used),
        cmocka_unit_test(kinds_are_asked_of_versions_that_have_them),
        cmocka_unit_test(old_versions_get_zeroed_sums),
        WITH_TWINS(graphs_compute_attention),
        WITH_TWINS(documents_and_wide_heads_are_computed),
        WITH_TWINS(masks_are_drawn_once_for_both_ways),
        WITH_TWINS(each_version_does_what_it_does_right),
        WITH_TWINS(faults_are_seen),
        WITH_TWINS(a_failure_is_made_up_for),
        WITH_TWINS(a_failure_is_told_where_it_must_not_be),
        WITH_TWINS(bits_are_the_same_without_it),
    };

    return cmocka_run_group_tests_name("cudnn", tests, find, NULL);
}
