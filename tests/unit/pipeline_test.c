/* Stages and schedules: which layers a stage has; the order of passes is legal, ends, keeps its bounds, and is
 * idle for as long as the formula says, by a simulated clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "train/pipeline.h"
#include "train/stages.h"

enum { MOST_STAGES = 16, MOST_CHUNKS = 8, MOST_MICROS = 64, MOST_OPS = 2 * MOST_CHUNKS * MOST_MICROS };

/* ---- layers ---- */

static void layers_are_shared_out(void **state)
{
    static const struct {
        struct stages s;
        int64_t first[8], n[8]; /* stage by stage, chunk by chunk */
    } want[] = {
        {{.layers = 7, .stages = 1, .chunks = 1}, {0}, {7}},
        {{.layers = 8, .stages = 2, .chunks = 1}, {0, 4}, {4, 4}},
        {{.layers = 8, .stages = 2, .chunks = 2}, {0, 4, 2, 6}, {2, 2, 2, 2}},
        {{.layers = 9, .stages = 4, .chunks = 1, .first = 1, .last = 2}, {0, 1, 4, 7}, {1, 3, 3, 2}},
        {{.layers = 9, .stages = 2, .chunks = 1, .last = 3}, {0, 6}, {6, 3}},
        {{.layers = 10, .stages = 3, .chunks = 2, .first = 2, .last = 4}, {0, 5, 1, 6, 3, 8}, {1, 1, 2, 2, 2, 2}},
        {{.layers = 10, .stages = 3, .chunks = 2, .embedding = true, .head = true}, {0, 5, 1, 7, 3, 9}, {1, 2, 2, 2, 2, 1}},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct stages *s = &want[i].s;

        assert_int_equal(stages_check(s, &e), 0);
        for (int k = 0; k < s->stages * s->chunks; k++) {
            int64_t first, n;

            stages_layers(s, k / s->chunks, k % s->chunks, &first, &n);
            assert_int_equal(first, want[i].first[k]);
            assert_int_equal(n, want[i].n[k]);
        }
    }
}

static void what_cannot_be_shared_is_refused(void **state)
{
    static const struct {
        struct stages s;
        const char *why;
    } bad[] = {
        {{.layers = 7, .stages = 2, .chunks = 1}, "7 layers cannot be shared evenly by 2 stages"},
        {{.layers = 8, .stages = 2, .chunks = 3}, "2 stages of 3 parts"},
        {{.layers = 3, .stages = 4, .chunks = 1, .head = true, .embedding = true}, "3 layers, with what counts as one"},
        {{.layers = 2, .stages = 4, .chunks = 1, .first = 1, .last = 1}, "one would be empty"},
        {{.layers = 3, .stages = 4, .chunks = 1, .head = true}, "one would be empty"},
        {{.layers = 9, .stages = 2, .chunks = 1, .first = 3, .last = 4}, "3 and 4 in the last stage are not 9"},
        {{.layers = 9, .stages = 3, .chunks = 1, .first = 10}, "-1 layers cannot"},
        {{.layers = 9, .stages = 3, .chunks = 2, .first = 3}, "no multiple of the 2 chunks"},
        {{.layers = 9, .stages = 3, .chunks = 1, .first = 3, .head = true}, "--account-for-loss-in-pipeline-split"},
        {{.layers = 9, .stages = 1, .chunks = 1, .first = 3}, "--pipeline-model-parallel-size is 1"},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(stages_check(&bad[i].s, &e), ERR_ARG);
        if (!strstr(e.msg, bad[i].why))
            fail_msg("'%s' does not say '%s'", e.msg, bad[i].why);
    }
}

/* ---- a clock ---- */

/* What pipeline_pass does with its messages: a receive is posted when the one before it is consumed, a buffer is
 * sent from again when the message before the last one has arrived. */
struct clock {
    struct pipeline_shape shape;
    double forward, backward; /* of a chunk */
    int64_t at[MOST_STAGES];  /* the next operation */
    double now[MOST_STAGES], busy[MOST_STAGES];
    double end[2][MOST_STAGES][MOST_CHUNKS][MOST_MICROS];      /* of an operation; < 0: not yet */
    double begin[2][MOST_STAGES][MOST_CHUNKS][MOST_MICROS];
    struct pipeline_op sent[2][MOST_STAGES][MOST_OPS]; /* operations of a stage that give, in order */
    int n_sent[2][MOST_STAGES];
};

/* The part that takes what op gives (or, not gives, that gives what it takes); false: the model ends there. */
static bool neighbour(const struct clock *c, int stage, const struct pipeline_op *op, bool gives, int *to, int *chunk)
{
    int step = gives != op->back ? 1 : -1, v = op->chunk * c->shape.stages + stage + step;

    *to = v % c->shape.stages;
    *chunk = v / c->shape.stages;
    return v >= 0 && v < c->shape.stages * c->shape.chunks;
}

/* When the message that op of a stage gives has arrived: sent, and its receive posted, which is when the receiver
 * began with the message before.  < 0: not yet. */
static double arrival(const struct clock *c, int stage, int nth, bool back)
{
    const struct pipeline_op *op = &c->sent[back][stage][nth];
    double sent = c->end[back][stage][op->chunk][op->micro], posted = 0;
    int to, chunk;

    if (nth) {
        const struct pipeline_op *before = op - 1;

        neighbour(c, stage, before, true, &to, &chunk);
        posted = c->begin[back][to][chunk][before->micro];
    }
    return posted < 0 || sent < 0 ? -1 : fmax(sent, posted);
}

/* Runs the next operation of a stage, if what it needs is there. */
static bool tick(struct clock *c, int stage)
{
    struct pipeline_op op;
    double start = c->now[stage], t, there;
    int from, chunk, n;

    if (c->at[stage] == pipeline_ops(&c->shape))
        return false;
    op = pipeline_at(&c->shape, stage, c->at[stage]);
    t = op.back ? c->backward : c->forward;
    n = c->n_sent[op.back][stage];
    if (neighbour(c, stage, &op, false, &from, &chunk)) {
        there = c->end[op.back][from][chunk][op.micro];
        if (there < 0)
            return false;
        start = fmax(start, there);
    }
    if (neighbour(c, stage, &op, true, &from, &chunk)) {
        if (n >= 2) {
            there = arrival(c, stage, n - 2, op.back);
            if (there < 0)
                return false;
            start = fmax(start, there);
        }
        c->sent[op.back][stage][n] = op;
        c->n_sent[op.back][stage]++;
    }
    c->begin[op.back][stage][op.chunk][op.micro] = start;
    c->end[op.back][stage][op.chunk][op.micro] = c->now[stage] = start + t;
    c->busy[stage] += t;
    c->at[stage]++;
    return true;
}

/* The share of bubble in a step: idle time over busy time of a stage, the same for all. */
static double bubble(struct pipeline_shape shape, double forward, double backward)
{
    struct clock *c = malloc(sizeof *c);
    double end = 0, idle;
    bool moved = true;

    assert_non_null(c);
    memset(c, 0, sizeof *c);
    c->shape = shape;
    c->forward = forward;
    c->backward = backward;
    for (double *p = (double *)c->end; p < (double *)c->sent; p++)
        *p = -1;
    while (moved) {
        moved = false;
        for (int s = 0; s < shape.stages; s++)
            while (tick(c, s))
                moved = true;
    }
    for (int s = 0; s < shape.stages; s++) {
        if (c->at[s] != pipeline_ops(&shape))
            fail_msg("%d stages of %d, %d micro-batches: stage %d stands still at %d", shape.stages, shape.chunks,
                     (int)shape.micros, s, (int)c->at[s]);
        end = fmax(end, c->now[s]);
    }
    idle = end / c->busy[0] - 1;
    free(c);
    return idle;
}

/* ---- schedules ---- */

/* Each micro-batch once forward and, behind that, once backward through each chunk, in order; at most as many in
 * between, of all chunks, as there are slots, which is the schedule's bound where there are enough. */
static void check_order(struct pipeline_shape shape, int stage)
{
    int64_t forth[MOST_CHUNKS] = {0}, back[MOST_CHUNKS] = {0}, now = 0, most = 0;
    int64_t ahead = shape.stages - stage, bound = shape.chunks > 1 ? 2 * ahead - 1 + (shape.chunks - 1) * shape.stages : ahead;

    for (int64_t i = 0; i < pipeline_ops(&shape); i++) {
        struct pipeline_op op = pipeline_at(&shape, stage, i);

        assert_in_range(op.chunk, 0, shape.chunks - 1);
        assert_int_equal(op.micro, op.back ? back[op.chunk]++ : forth[op.chunk]++);
        assert_true(back[op.chunk] <= forth[op.chunk]);
        now += op.back ? -1 : 1;
        most = now > most ? now : most;
        if (stage == shape.stages - 1 && op.chunk == shape.chunks - 1 && !op.back)
            assert_true(pipeline_at(&shape, stage, i + 1).back); /* the logits are taken up at once */
    }
    for (int c = 0; c < shape.chunks; c++)
        assert_true(forth[c] == shape.micros && back[c] == shape.micros);
    assert_int_equal(most, pipeline_slots(&shape, stage));
    assert_true(most <= bound);
    assert_true(shape.micros < bound || most == bound);
}

static void orders_are_legal(void **state)
{
    (void)state;
    for (int p = 1; p <= MOST_STAGES; p = p < 6 ? p + 1 : p + 5)
        for (int v = 1; v <= (p > 1 ? MOST_CHUNKS : 1); v = v < 3 ? v + 1 : v + 5)
            for (int m = v > 1 ? p : 1; m <= MOST_MICROS; m += v > 1 ? p : m < 20 ? 1 : 11)
                for (int s = 0; s < p; s++)
                    check_order((struct pipeline_shape){p, v, m, false}, s);
}

/* (p - 1) / (m v), whatever a backward pass takes; also for stages next to each other both ways (2). */
static void bubbles_follow_the_formula(void **state)
{
    static const double backward[] = {1, 2, 3.5};

    (void)state;
    for (int p = 1; p <= MOST_STAGES; p = p < 6 ? p + 1 : p + 5)
        for (int v = 1; v <= (p > 1 ? MOST_CHUNKS : 1); v = v < 3 ? v + 1 : v + 5)
            for (int m = p; m <= MOST_MICROS; m += p)
                for (size_t b = 0; b < sizeof backward / sizeof *backward; b++) {
                    double is = bubble((struct pipeline_shape){p, v, m, false}, 1, backward[b]), want = (p - 1.0) / (m * v);

                    if (!(fabs(is - want) < 1e-9))
                        fail_msg("%d stages of %d, %d micro-batches: %g, not %g", p, v, m, is, want);
                }
}

/* Evaluation: any number of micro-batches, nothing backward. */
static void forward_alone_ends(void **state)
{
    (void)state;
    for (int p = 1; p <= 6; p++)
        for (int v = 1; v <= (p > 1 ? 3 : 1); v++)
            for (int m = 1; m <= 20; m++)
                assert_true(bubble((struct pipeline_shape){p, v, m, true}, 1, 0) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_shared_out),
        cmocka_unit_test(what_cannot_be_shared_is_refused),
        cmocka_unit_test(orders_are_legal),
        cmocka_unit_test(bubbles_follow_the_formula),
        cmocka_unit_test(forward_alone_ends),
    };

    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
