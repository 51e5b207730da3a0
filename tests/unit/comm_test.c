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
#include "comm/rendezvous.h"

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
    unsetenv("OMPI_COMM_WORLD_SIZE"), unsetenv("PMI_SIZE"), unsetenv("SLURM_PROCID"), unsetenv("RANK"), unsetenv("WORLD_SIZE");
    assert_int_equal(comm_ranks_started(), 1);
    assert_int_equal(comm_open(&c, "gloo", 1, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "no backend 'gloo'"));
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
    unsetenv("OMPI_COMM_WORLD_SIZE");
    setenv("WORLD_SIZE", "8", 1);
    assert_int_equal(comm_ranks_started(), 4); /* no RANK: not torchrun's */
    setenv("RANK", "7", 1);
    assert_int_equal(comm_ranks_started(), 8);
}

static void nodes_of_slurm(void **s)
{
    static const char *const lists[][2] = {
        {"login", "login"}, {"gpu[003-010,12],login", "gpu003"}, {"a[1,3],b", "a1"},
        {"r[1-2]n[07-9]x,q", "r1n07x"}, {"n1,n2", "n1"},
    };
    static const char *const bad[] = {"", ",n1", "n[1-2", "[", "n 1", "n]["};
    char node[20];
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_int_equal(rendezvous_first_node(lists[i][0], node, sizeof node, &e), 0);
        assert_string_equal(node, lists[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rendezvous_first_node(bad[i], node, sizeof node, &e), ERR_ARG);
    assert_int_equal(rendezvous_first_node("a-name-that-is-too-long", node, sizeof node, &e), ERR_ARG);
}

static void ranks_by_environment(void **s)
{
    struct rendezvous r;
    struct err e;

    (void)s;
    setenv("RANK", "1", 1), setenv("WORLD_SIZE", "2", 1);
    unsetenv("MASTER_ADDR"), setenv("MASTER_PORT", "29500", 1), setenv("SLURM_STEP_NODELIST", "gpu[07-09]", 1);
    assert_int_equal(rendezvous_from_environment(&r, &e), 0);
    assert_true(r.rank == 1 && r.size == 2);
    assert_string_equal(r.host, "gpu07");
    assert_string_equal(r.port, "29500");
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1), setenv("MASTER_ADDR", "here", 1);
    assert_int_equal(rendezvous_from_environment(&r, &e), 0);
    assert_string_equal(r.host, "here");
    assert_string_equal(r.port, "29501");
    unsetenv("RANK"), unsetenv("MASTER_PORT");
    setenv("SLURM_PROCID", "3", 1), setenv("SLURM_STEP_NUM_TASKS", "4", 1), setenv("SLURM_JOB_ID", "1234567", 1);
    assert_int_equal(rendezvous_from_environment(&r, &e), 0);
    assert_true(r.rank == 3 && r.size == 4);
    assert_string_equal(r.port, "24567");
    setenv("SLURM_PROCID", "x", 1);
    assert_int_equal(rendezvous_from_environment(&r, &e), ERR_UNSUPPORTED);
}

/* Every prefix of a hello may become one; any other byte in front makes it none. */
static void hellos(void **s)
{
    const struct rendezvous r = {.rank = 0, .size = 300, .job = 0x123456789abcdef0};
    struct rendezvous_hello h = {.size = 300, .rank = 299, .port = 65535, .job = r.job, .word = "fifteen letters"}, got;
    unsigned char text[RENDEZVOUS_HELLO];
    struct err e;

    (void)s;
    rendezvous_put_hello(text, &h);
    for (size_t n = 0; n < sizeof text; n++)
        assert_int_equal(rendezvous_get_hello(&got, &r, text, n, &e), 0);
    assert_int_equal(rendezvous_get_hello(&got, &r, text, sizeof text, &e), 1);
    assert_true(got.size == h.size && got.rank == h.rank && got.port == h.port && got.job == h.job);
    assert_memory_equal(got.word, h.word, sizeof h.word);
    for (int i = 0; i < 32; i++) {
        text[i] ^= 0x81;
        if (i < 12 || i >= 18) /* ranks and ports there may be others */
            assert_int_equal(rendezvous_get_hello(&got, &r, text, sizeof text, &e), ERR_FORMAT);
        text[i] ^= 0x81;
    }
    h.rank = 300;
    rendezvous_put_hello(text, &h);
    assert_int_equal(rendezvous_get_hello(&got, &r, text, sizeof text, &e), ERR_FORMAT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_a_tree),
        cmocka_unit_test(bf16_is_summed_in_fp32),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(backends_by_name),
        cmocka_unit_test(nodes_of_slurm),
        cmocka_unit_test(ranks_by_environment),
        cmocka_unit_test(hellos),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
