/* Reductions in the order that comm.h promises; which backend is opened; the group of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/comm.h"
#include "comm/reduce.h"

static void sums_are_a_tree(void **s)
{
    static float v[7][2100];
    const void *from[7];
    void *work = malloc(reduce_work_size(7));
    float to[2100];

    (void)s;
    assert_non_null(work);
    for (int r = 0; r < 7; r++) {
        for (int i = 0; i < 2100; i++)
            v[r][i] = (float)((r * 7919 + i * 104729) % 1000) * (i % 2 ? 1e-6f : 1e6f) + 0.1f;
        from[r] = v[r];
    }
    reduce_ranks(to, from, 7, 2100, COMM_F32, COMM_SUM, work);
    for (int i = 0; i < 2100; i++) {
        float want = ((v[0][i] + v[1][i]) + (v[2][i] + v[3][i])) + ((v[4][i] + v[5][i]) + v[6][i]);
        assert_memory_equal(&to[i], &want, sizeof want);
    }
    free(work);
}

/* 1 + 2^-9 three times: in bf16 steps it would stay 1. */
static void bf16_is_summed_in_fp32(void **s)
{
    uint16_t one = 0x3f80, little = 0x3b00, most = 0x7f7f, nan = 0x7fc0, to;
    const void *from[] = {&one, &little, &little, &little}, *bad[] = {&nan, &one}, *over[] = {&most, &most};
    void *work = malloc(reduce_work_size(4));

    (void)s;
    assert_non_null(work);
    reduce_ranks(&to, from, 4, 1, COMM_BF16, COMM_SUM, work);
    assert_int_equal(to, 0x3f81);
    reduce_ranks(&to, over, 2, 1, COMM_BF16, COMM_SUM, work);
    assert_int_equal(to, 0x7f80); /* infinity */
    for (int op = COMM_SUM; op <= COMM_MIN; op++)
        for (int turn = 0; turn < 2; turn++) {
            const void *two[] = {bad[turn], bad[1 - turn]};
            reduce_ranks(&to, two, 2, 1, COMM_BF16, (enum comm_op)op, work);
            assert_true((to & 0x7f80) == 0x7f80 && (to & 0x7f));
        }
    free(work);
}

static void integers_wrap(void **s)
{
    uint8_t a = 200, b = 100, to;
    int32_t p = INT32_MAX, q = 1, sum;
    const void *small[] = {&a, &b}, *large[] = {&p, &q};
    void *work = malloc(reduce_work_size(2));

    (void)s;
    assert_non_null(work);
    reduce_ranks(&to, small, 2, 1, COMM_U8, COMM_SUM, work);
    assert_int_equal(to, 44);
    reduce_ranks(&sum, large, 2, 1, COMM_I32, COMM_SUM, work);
    assert_int_equal(sum, INT32_MIN);
    reduce_ranks(&to, small, 2, 1, COMM_U8, COMM_MAX, work);
    assert_int_equal(to, 200);
    free(work);
}

static void backends_by_name(void **s)
{
    struct comm *c, *part;
    struct err e;
    size_t two = 2;
    int v[] = {1, 2}, w[2] = {0};

    (void)s;
    unsetenv("OMPI_COMM_WORLD_SIZE"), unsetenv("PMI_SIZE"), unsetenv("SLURM_PROCID");
    assert_int_equal(comm_ranks_started(), 1);
    assert_int_equal(comm_open(&c, "nccl", 1, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "no backend 'nccl'"));
    assert_null(c);
    assert_int_equal(comm_open(&c, "auto", 1, &e), 0);
    assert_string_equal(c->backend->name, "self");
    assert_int_equal(comm_split(c, -1, 0, "none", &part, &e), 0);
    assert_null(part);
    assert_int_equal(comm_split(c, 3, 0, "data", &part, &e), 0);
    assert_int_equal(part->size, 1);
    assert_int_equal(comm_barrier(part, &e), 0);
    assert_int_equal(comm_run(part,
                              &(struct comm_call){.kind = COMM_ALL_TO_ALL_V, .send = v, .recv = w, .type = COMM_I32,
                                                  .send_counts = &two, .recv_counts = &two},
                              &e),
                     0);
    assert_memory_equal(v, w, sizeof v);
    comm_close(part);
    comm_close(c);
    setenv("SLURM_STEP_NUM_TASKS", "4", 1); /* sbatch's own shell: no task of srun */
    assert_int_equal(comm_ranks_started(), 1);
    setenv("SLURM_PROCID", "0", 1);
    assert_int_equal(comm_ranks_started(), 4);
    setenv("QUERN_MPI", "/no/such.so", 1);
    assert_int_equal(comm_open(&c, "auto", 1, &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "4 ranks were started, but cannot be used"));
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    assert_int_equal(comm_ranks_started(), 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_a_tree),
        cmocka_unit_test(bf16_is_summed_in_fp32),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(backends_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
