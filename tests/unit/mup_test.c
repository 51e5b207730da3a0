/* muP (arXiv:2203.03466, table 8): initial weights and rates of each kind of parameter; what follows from settings; streams and
 * logits of a wide model are as large as those of a narrow one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "train/trainer.h"

enum { LAYERS = 2, ROWS = 4 * 16, VOCAB = 64, STEPS = 4 };

static struct device *dev;
static struct comm *world;
static struct err e;

static int start(void **state)
{
    (void)state;
    return device_open(&dev, "cpu", 2, &e) < 0 || comm_open_self(&world, &e) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    comm_close(world);
    device_close(dev);
    return 0;
}

/* A model four times as wide as its base; with experts, an output layer of its own and learned positions. */
static struct model_config wide(bool mup)
{
    struct model_config m = {
        .layers = LAYERS, .hidden = 64, .heads = 4, .seq = 16, .vocab = VOCAB, .experts = 2, .moe_freq = 2, .untie = true,
        .init_std = 0.02, .mup = mup, .mup_base_hidden = mup ? 16 : 0,
    };

    if (model_config_check(&m, 1, &e) < 0)
        fail_msg("%s", e.msg);
    return m;
}

static const struct param *named(const struct params *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0)
            return &p->v[i];
    fail_msg("no %s", name);
    return NULL;
}

/* What table 8 says of a parameter: std over that without muP, and rate over that of the step. */
static void check(int optimizer, const char *name, double std, double rate)
{
    const struct model_config m = wide(true), plain = wide(false);
    struct optim_conf c;
    struct params p, q;
    const struct param *one;
    struct update u;

    optim_conf_init(&c);
    c.kind = optimizer;
    assert_int_equal(params_init(&p, &m, NULL, &e), 0);
    assert_int_equal(params_init(&q, &plain, NULL, &e), 0);
    optim_rules(&c, &p);
    optim_rules(&c, &q);
    one = named(&p, name);
    assert_true(fabs(one->std - std * named(&q, name)->std) < 1e-12);
    u = optim_update(&(struct optim_step){.conf = &c, .step = 1, .lr = 0.25, .decoupled_lr = 0.25}, one);
    if (fabs(u.lr - 0.25 * rate) > 1e-12)
        fail_msg("%s: rate %g, not %g", name, u.lr, 0.25 * rate);
    if (optimizer == OPTIM_ADAM)
        assert_true(fabs(u.eps - c.adam_eps * rate) < 1e-20);
    u = optim_update(&(struct optim_step){.conf = &c, .step = 1, .lr = 0.25, .decoupled_lr = 0.25}, named(&q, name));
    assert_true(u.lr == 0.25 && u.eps == c.adam_eps);
    params_free(&p);
    params_free(&q);
}

static void test_table_8(void **state)
{
    static const char *const matrices[] = {
        "decoder.layers.0.self_attention.linear_qkv.weight", "decoder.layers.1.self_attention.linear_proj.weight",
        "decoder.layers.1.mlp.linear_fc1.weight", "decoder.layers.1.mlp.linear_fc2.weight", "decoder.layers.0.mlp.router.weight",
        "decoder.layers.0.mlp.experts.local_experts.1.linear_fc1.weight",
        "decoder.layers.0.mlp.experts.local_experts.0.linear_fc2.weight",
    };
    static const char *const others[] = {
        "embedding.word_embeddings.weight", "embedding.position_embeddings.weight", "output_layer.weight",
        "decoder.layers.0.input_layernorm.weight", "decoder.layers.1.mlp.linear_fc1.bias", "decoder.final_layernorm.bias",
    };

    (void)state;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        check(OPTIM_ADAM, matrices[i], 0.5, 0.25);
        check(OPTIM_LION, matrices[i], 0.5, 0.25);
        check(OPTIM_SGD, matrices[i], 0.5, 1);
        check(OPTIM_MUON, matrices[i], 0.5, 1);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        check(OPTIM_ADAM, others[i], 1, 1);
        check(OPTIM_LION, others[i], 1, 1);
        check(OPTIM_SGD, others[i], 1, 4);
        check(OPTIM_MUON, others[i], 1, 1);
    }
}

static void test_multipliers(void **state)
{
    struct model_config m = wide(true);

    (void)state;
    assert_true(m.logits_scale == 0.25 && m.softmax_scale == 1.0 / 16); /* as Megatron has it: 1 / width of a head */
    m = wide(false);
    assert_true(m.logits_scale == 1 && m.softmax_scale == 0);
    m.mup = true;
    m.mup_base_head = 4;
    m.logits_scale = 3;
    assert_int_equal(model_config_check(&m, 1, &e), 0);
    assert_true(m.mup_base_hidden == 64 && m.logits_scale == 3 && m.softmax_scale == 2.0 / 16);
    m = wide(false);
    m.mup_base_hidden = 16;
    assert_int_equal(model_config_check(&m, 1, &e), ERR_ARG);
    assert_string_equal(e.msg, "--mup-base-hidden-size needs --use-mup");
}

/* Means of |x| of the last stream and of the logits, of each step. */
struct seen {
    struct trainer *t;
    double stream[STEPS], logits[STEPS];
};

static double size_of(const float *x, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += fabs((double)x[i]) / (double)n;
    return sum;
}

static void look(void *arg, const struct train_step *s)
{
    struct seen *seen = arg;
    struct model *m = seen->t->parts->model;
    int32_t ids[ROWS];
    double loss;

    for (int i = 0; i < ROWS; i++)
        ids[i] = i * i % VOCAB;
    assert_int_equal(model_take(m, &(struct model_batch){.tokens = ids, .targets = ids}, &e), 0);
    assert_int_equal(model_forward(m, &(struct model_batch){0}, &loss, &e), 0);
    seen->stream[s->step - 1] = size_of(m->slot->final.s, ROWS * m->config.hidden);
    seen->logits[s->step - 1] = size_of(m->head.logits, ROWS * VOCAB);
}

static void train(struct seen *seen, int64_t width, bool mup, bool untie)
{
    struct train_config c;
    volatile sig_atomic_t stop = 0;
    enum train_end how;

    train_config_init(&c);
    c.model = (struct model_config){
        .layers = LAYERS, .hidden = width, .heads = width / 16, .seq = 16, .vocab = VOCAB, .init_std = 0.02, .untie = untie,
        .mup = mup, .mup_base_hidden = mup ? 32 : 0, .mup_base_head = mup ? 16 : 0,
    };
    c.vocab_divisor = 1;
    c.micro_batch = c.global_batch = 4;
    c.train_iters = STEPS;
    c.lr = 0.01;
    c.lr_style = LR_CONSTANT;
    c.mock_data = true;
    c.eval_iters = 0;
    if (train_config_check(&c, &e) < 0 || trainer_open(&seen->t, &c, dev, world, &e) < 0 ||
        trainer_run(seen->t, &stop, look, seen, &how, &e) < 0)
        fail_msg("%s", e.msg);
    trainer_close(seen->t);
    train_config_free(&c);
}

/* bench/mup_bench.c prints the same of more widths. */
static void test_coordinates(void **state)
{
    struct seen base, other, plain;

    (void)state;
    for (int untie = 0; untie < 2; untie++) {
        train(&base, 32, true, untie);
        train(&plain, 32, false, untie);
        assert_memory_equal(base.stream, plain.stream, sizeof base.stream); /* the base is what it was */
        train(&other, 512, true, untie);
        train(&plain, 512, false, untie);
        for (int i = 0; i < STEPS; i++) {
            double s = other.stream[i] / base.stream[i], l = other.logits[i] / base.logits[i];

            if (s < 1 / 3.0 || s > 3 || l < 1 / 3.0 || l > 3)
                fail_msg("step %d: a stream %g times as large, logits %g times", i + 1, s, l);
            s = plain.stream[i] / base.stream[i];
            if (i > 0 && s < 5)
                fail_msg("step %d: without muP a stream only %g times as large", i + 1, s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_8), cmocka_unit_test(test_multipliers), cmocka_unit_test(test_coordinates),
    };

    return cmocka_run_group_tests(tests, start, end);
}
