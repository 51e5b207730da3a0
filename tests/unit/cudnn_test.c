/* cuDNN's own checks of our attention graphs, for an H200 that is not here.  Wants the library and the driver's stub of the CUDA
 * toolkit (CUDA=/usr/local/cuda); without them there is nothing to check, and the test says so. */
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
        if ((dnn_distrusted(of[i].version, of[i].keys, false) == NULL) != of[i].forward)
            fail_msg("forward by %zu over %lld keys", of[i].version, (long long)of[i].keys);
        if ((dnn_distrusted(of[i].version, of[i].keys, true) == NULL) != of[i].backward)
            fail_msg("backward by %zu over %lld keys", of[i].version, (long long)of[i].keys);
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
    static const struct {
        int64_t b, t, heads, kv_heads, d;
        int backward;
    } shape[] = {
        {4, 1024, 12, 12, 64, 0}, {4, 1024, 12, 12, 64, 1}, {8, 1024, 25, 25, 64, 0}, {8, 1024, 25, 25, 64, 1},
        {1, 4096, 32, 32, 128, 0}, {1, 4096, 32, 32, 128, 1}, {2, 2048, 32, 8, 128, 0},  {2, 2048, 32, 8, 128, 1},
        {8, 2048, 32, 8, 64, 1},   {3, 350, 2, 2, 64, 0},     {3, 350, 2, 2, 64, 1},     {6, 650, 2, 1, 64, 1},
        {3, 400, 1, 1, 96, 0},     {3, 400, 1, 1, 96, 1},
    };
    struct err e;

    (void)s;
    if (!library[0])
        skip();
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        int engines = 0;
        int rc = simt_dnn_engines(library, shape[i].b, shape[i].t, shape[i].heads, shape[i].kv_heads, shape[i].d,
                                  shape[i].backward, &engines, &e);
        if (rc < 0)
            fail_msg("shape %zu: %s", i, e.msg);
        if (engines < 1)
            fail_msg("shape %zu: no engine", i);
    }
}

static void a_missing_library_is_named(void **s)
{
    struct err e = {0};
    int engines = 7;

    (void)s;
    assert_int_equal(simt_dnn_engines("/nowhere/libcudnn.so.9", 1, 64, 1, 1, 64, 0, &engines, &e), ERR_UNSUPPORTED);
    assert_int_equal(engines, 0);
    assert_non_null(strstr(e.msg, "/nowhere/libcudnn.so.9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { /* in this order: a library once opened stays */
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(graphs_are_supported),
        cmocka_unit_test(versions_with_bugs_are_not_used),
        cmocka_unit_test(old_versions_get_zeroed_sums),
    };

    return cmocka_run_group_tests_name("cudnn", tests, find, NULL);
}
