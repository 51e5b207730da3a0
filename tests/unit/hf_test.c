/* Checkpoints of transformers (tests/record/hf_models.py): the same logits, the same weights back, and
 * every kind of wrong folder refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/node.h"
#include "tests/temp_folder.h"
#include "train/evaluate.h"
#include "train/hf.h"
#include "train/hf_family.h"

enum { T = 12, V = 61 };
static const char *const names[] = {"gpt2", "llama", "qwen2", "qwen3", "mixtral", "qwen3_moe", "qwen2_moe",
                                    "mistral", "phi3", "olmo2", "gpt_neox", "gpt_neox_serial", "gemma",
                                    "gemma2", "gemma3_text", "smollm3", "granite", "starcoder2", "nemotron",
                                    "glm4_moe", "deepseek_v2", "deepseek_v3", "gpt_oss", "nanochat",
                                    "deepseek_v2_groups"};
static const char *const dtypes[] = {"F16", "BF16", "F32", "F32", "BF16", "BF16", "BF16", "F32", "F32", "F32",
                                     "F32", "F32", "F32", "F32", "F32", "F32", "F32", "F32",
                                     "F32",
                                     "BF16", "F32", "F32", "F32", "F32", "F32"};
enum { MODELS = sizeof names / sizeof *names };

static struct device *dev;
static struct err e;

/* The folder of a model; good until the next call. */
static const char *recorded(const char *model)
{
    static char path[64];

    snprintf(path, sizeof path, "tests/data/train/hf/%s", model);
    return path;
}

static int start(void **state)
{
    log_init("hf_test", LOG_ERROR);
    return make_dir(state) == 0 ? device_open(&dev, "cpu", 2, &e) : -1;
}

static int end(void **state)
{
    device_close(dev);
    return remove_dir(state);
}

static void ok(int rc)
{
    if (rc < 0)
        fail_msg("%s", e.msg);
}

static void shell(const char *fmt, ...)
{
    char cmd[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(cmd, sizeof cmd, fmt, ap);
    va_end(ap);
    assert_int_equal(system(cmd), 0);
}

/* The largest difference to the recorded logits of name, as a share of the largest logit. */
static double logits_differ(const char *store, const char *name)
{
    struct arena a = {0};
    struct file_map map;
    struct safetensors st;
    struct checkpoint *ck;
    struct model *m;
    int32_t targets[T] = {0};
    struct model_batch batch = {.targets = targets};
    double loss, worst = 0, most = 0;

    ok(file_map_open(&map, "tests/data/train/hf/logits.safetensors", &e));
    ok(safetensors_parse(&a, "logits", (struct span){(const char *)map.p, map.n}, &st, &e));
    ok(checkpoint_open(&ck, store, 0, &e));
    ok(model_restore(&m, ck, dev, &(struct model_run){.use = MODEL_EVAL, .b = 1, .t = T}, &e));
    batch.tokens = (const int32_t *)(const void *)safetensors_find(&st, "ids")->data.p;
    ok(model_take(m, &batch, &e));
    ok(model_forward(m, &batch, &loss, &e));
    const float *want = (const float *)(const void *)safetensors_find(&st, name)->data.p;
    for (int i = 0; i < T * V; i++) {
        most = fmax(most, fabs(want[i]));
        worst = fmax(worst, fabs(xent_capped((float)m->config.logit_cap,
                                             ((float *)m->head.logits)[i / V * m->config.padded_vocab + i % V]) - want[i]));
    }
    model_close(m);
    checkpoint_close(ck);
    arena_free(&a);
    file_map_close(&map);
    return worst / most;
}

static void the_same_logits(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        ok(hf_import(recorded(names[i]), at(names[i]), 16, 128, &e));
        double d = logits_differ(at(names[i]), names[i]);

        if (!(d < 5e-6)) /* Gemma 2 bounds its logits twice */
            fail_msg("%s: logits differ by %.3g of the largest", names[i], d);
    }
}

/* Every tensor of the folder a in b, with the same bytes. */
static void same_tensors(const char *a, const char *b)
{
    struct hf_files *x, *y;
    const struct safetensor *t, *u;
    const char *file;
    int n = 0;

    ok(hf_files_open(&x, a, &e));
    ok(hf_files_open(&y, b, &e));
    for (; (t = hf_files_tensor(x, n, &file)); n++) {
        u = hf_files_tensor(y, hf_files_find(y, t->name.p), &file);
        if (!u || strcmp(t->dtype, u->dtype) != 0 || t->dims != u->dims || t->data.n != u->data.n ||
            memcmp(t->shape, u->shape, sizeof t->shape) != 0 || memcmp(t->data.p, u->data.p, t->data.n) != 0)
            fail_msg("%s: '%s' is not the same in %s", a, t->name.p, b);
    }
    assert_true(n > 10 && !hf_files_tensor(y, n, &file));
    hf_files_close(x);
    hf_files_close(y);
}

/* The config.json of b has the model_type of a's. */
static void same_type(const char *a, const char *b)
{
    const char *const dirs[] = {a, b};
    struct arena arena = {0};
    struct node *root[2];
    char path[512];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/config.json", dirs[i]);
        ok(node_load_json(&arena, path, &root[i], &e));
    }
    assert_string_equal(node_str(root[0], "model_type"), node_str(root[1], "model_type"));
    arena_free(&arena);
}

static void out_again_with_the_same_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        struct checkpoint *ck;
        const char *out = at("out");

        ok(checkpoint_open(&ck, at(names[i]), 0, &e));
        assert_false(checkpoint_has(ck, CHECKPOINT_EXP_AVG));
        ok(hf_export(ck, out, &(struct hf_written){dtypes[i], i % 2 ? 5000 : 1 << 30, NULL, NULL}, &e));
        same_tensors(recorded(names[i]), out);
        assert_int_equal(hf_export(ck, out, &(struct hf_written){dtypes[i], 5000, NULL, NULL}, &e), ERR_ARG); /* not empty */
        same_type(recorded(names[i]), out);
        checkpoint_close(ck);
        ok(hf_import(out, at("again"), 0, 1, &e));
        assert_true(logits_differ(at("again"), names[i]) < 5e-6);
        shell("rm -rf '%s' '%s'", out, at("again"));
    }
}

/* config.json as older releases of transformers wrote it, as models are published. */
static void published_configs_say_the_same(void **state)
{
    static const char old[] = "\"vocab_size\":61,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,"
                              "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"hidden_act\":\"silu\",\"head_dim\":8,";
    static const char rope[] = "\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"
                               "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":16},";
    static const struct {
        const char *model, *rest;
        int64_t positions;
    } t[] = {
        {"llama", "\"model_type\":\"llama\",\"max_position_embeddings\":131072,\"attention_bias\":false,\"mlp_bias\":false,"
                  "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"eos_token_id\":[1,2],\"tie_word_embeddings\":false", 131072},
        {"llama", "\"model_type\":\"llama\",\"max_sequence_length\":2048,\"rms_norm_eps\":1e-05", 2048},
        {"llama", "\"model_type\":\"mistral\",\"max_position_embeddings\":32768,\"sliding_window\":4096,\"rms_norm_eps\":1e-05",
         32768},
        {"qwen2", "\"model_type\":\"qwen2\",\"max_position_embeddings\":32768,\"sliding_window\":4096,"
                  "\"use_sliding_window\":false,\"rope_theta\":10000.0,\"rms_norm_eps\":1e-06,\"use_mrope\":false", 32768},
        {"qwen3", "\"model_type\":\"qwen3\",\"max_position_embeddings\":40960,\"sliding_window\":null,\"attention_bias\":false,"
                  "\"rope_theta\":10000.0,\"rms_norm_eps\":1e-06,\"tie_word_embeddings\":true", 40960},
        {"mixtral", "\"model_type\":\"mixtral\",\"max_position_embeddings\":32768,\"sliding_window\":null,\"rms_norm_eps\":1e-05,"
                    "\"rope_theta\":1000000.0,\"num_local_experts\":4,\"num_experts_per_tok\":2,"
                    "\"router_aux_loss_coef\":0.02", 32768},
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *copy = at("copy"), *store = at("published");
        bool scaled = strcmp(t[i].model, "llama") == 0, qwen2 = strcmp(t[i].model, "qwen2") == 0;
        struct checkpoint *ck;
        char text[1024], config[128];

        shell("rm -rf '%s' '%s'; cp -r 'tests/data/train/hf/%s' '%s'", copy, store, t[i].model, copy);
        snprintf(text, sizeof text, "{%.*s%s%s}", (int)(sizeof old - 1 - (qwen2 ? strlen("\"head_dim\":8,") : 0)), old,
                 scaled ? rope : "\"rope_scaling\":null,", t[i].rest);
        snprintf(config, sizeof config, "%s/copy/config.json", dir);
        ok(file_write_all(config, span_of(text), &e));
        ok(hf_import(copy, store, 0, 128, &e));
        if (!(logits_differ(store, t[i].model) < 2e-6))
            fail_msg("%s", text);
        ok(checkpoint_open(&ck, store, 0, &e));
        assert_int_equal(checkpoint_info(ck)->model.positions, t[i].positions);
        checkpoint_close(ck);
    }
}

/* The weights of one model under other config.json: in, out, and in again. */
static void other_configs_give_other_logits(void **state)
{
    static const char *const t[][2] = {
        {"linear", "llama"}, {"dynamic", "llama"}, {"yarn", "llama"}, {"yarn_exact", "llama"}, {"yarn_mscale", "llama"},
        {"yarn_old", "qwen2"}, {"linear_old", "llama"}, {"mistral_window", "llama"}, {"qwen2_window", "qwen2"},
        {"relu2", "gpt2"}, {"gelu_exact", "gpt2"}, {"geglu", "llama"}, {"reglu", "qwen2_moe"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *copy = at("copy"), *store = at("other"), *out = at("out"), *again = at("again");
        struct checkpoint *ck;
        double d[2];

        shell("rm -rf '%s' '%s' '%s' '%s'; cp -r 'tests/data/train/hf/%s' '%s'; cp 'tests/data/train/hf/configs/%s.json' "
              "'%s/config.json'", copy, store, out, again, t[i][1], copy, t[i][0], copy);
        ok(hf_import(copy, store, T, 128, &e));
        d[0] = logits_differ(store, t[i][0]);
        ok(checkpoint_open(&ck, store, 0, &e));
        ok(hf_export(ck, out, &(struct hf_written){"F32", 1 << 30, NULL, NULL}, &e));
        checkpoint_close(ck);
        ok(hf_import(out, again, 0, 1, &e));
        d[1] = logits_differ(again, t[i][0]);
        if (!(d[0] < 5e-6 && d[1] < 5e-6))
            fail_msg("%s: logits differ by %.3g of the largest, out and in again by %.3g", t[i][0], d[0], d[1]);
    }
}

static void wrong_folders_are_named(void **state)
{
    static const struct {
        const char *model, *edit, *says; /* edit: a shell command in a copy */
    } t[] = {
        {"llama", "rm config.json", "config.json"},
        {"llama", "rm model-00002-of-00003.safetensors", "model-00002-of-00003.safetensors"},
        {"llama", "sed -i 's/weight_map/map/' *.index.json", "no weight_map"},
        {"llama", "sed -i 's/layers.1.mlp.up_proj/layers.1.mlp.down_proj2/' *.index.json", "down_proj2"},
        {"llama", "sed -i 's/down_proj.weight\": \"model-0000[0-9]/down_proj.weight\": \"model-00002/' *.index.json",
         "is not in"},
        {"llama", "sed -i 's/: \"model-00001-of/: \"..\\/model-00001-of/' *.index.json", "no file with a name"},
        {"llama", "sed -i 's/\"hidden_size\": 16/\"hidden_size\": 24/' config.json", "is 61 x 16, not 61 x 24"},
        {"llama", "sed -i 's/\"num_hidden_layers\": 2/\"num_hidden_layers\": 3/' config.json", "no tensor 'model.layers.2."},
        {"llama", "sed -i 's/\"num_hidden_layers\": 2/\"num_hidden_layers\": 1/' config.json", "has no place in the model"},
        {"llama", "sed -i 's/\"num_hidden_layers\": 2/\"num_hidden_layers\": 1000000000/' config.json", "--num-layers"},
        {"llama", "sed -i 's/\"num_attention_heads\": 4/\"num_attention_heads\": 5/' config.json", "--num-query-groups"},
        {"llama", "sed -i 's/\"silu\"/\"relu2\"/' config.json", "hidden_act 'relu2'"},
        {"llama", "sed -i 's/\"llama3\"/\"longrope\"/' config.json", "rope_type 'longrope'"},
        {"llama", "sed -i 's/\"factor\": 8.0/\"factor\": 0.5/' config.json", "'llama3' without a factor of at least 1"},
        {"llama", "sed -i 's/{/{\"partial_rotary_factor\":0.5,/' config.json", "partial_rotary_factor"},
        {"qwen3", "sed -i 's/\"rope_parameters\": {/&\"full_attention\":{},/' config.json", "from layer to layer"},
        {"llama", "sed -i 's/\"model_type\": \"llama\"/\"model_type\": \"mamba\"/' config.json", "model_type 'mamba'"},
        {"llama", "sed -i 's/\"vocab_size\": 61/\"vocab_size\": -1/' config.json", "vocab_size"},
        {"llama", "echo '{' >config.json", "config.json"},
        {"llama", "truncate -s 5000 model-00001-of-00003.safetensors", "model-00001-of-00003.safetensors"},
        {"mixtral", "sed -i '/rope_theta/d' config.json", "rope_theta"},
        {"qwen3", "sed -i '/num_key_value_heads/d' config.json", "num_key_value_heads"},
        {"gpt2", "sed -i 's/gelu_new/relu/' config.json", "activation_function"},
        {"gpt2", "sed -i 's/\"n_embd\": 16/\"n_embd\": 32/' config.json", "'transformer.wte.weight' is 61 x 16, not 61 x 32"},
        {"gpt2", "sed -i 's/\"tie_word_embeddings\": true/\"tie_word_embeddings\": false/' config.json", "lm_head.weight"},
        {"gpt2", "rm model.safetensors", "neither model.safetensors"},
        {"gpt2", "mv model.safetensors pytorch_model.bin", "pytorch_model.bin: a pickle is not read"},
        {"llama", "sed -i '1s/{/{\"logit_cap\":30,/' config.json", "'logit_cap' is no key of a llama"},
        {"qwen3", "sed -i 's/\"rope_parameters\": {/&\"long_factor\":[1],/' config.json", "rotary angles with long_factor"},
        {"phi3", "sed -i 's/\"default\"/\"longrope\"/' config.json", "rope_type 'longrope'"},
        {"olmo2", "sed -i 's/layers.1.post_feedforward_layernorm.weight/layers.1.post_forward_layernorm.weight/' *.index.json",
         "post_forward_layernorm"},
        {"gpt_neox", "sed -i 's/\"use_parallel_residual\": true/\"use_parallel_residual\": 1/' config.json",
         "neither true nor false"},
        {"gemma", "sed -i '1s/{/{\"use_bidirectional_attention\":true,/' config.json", "use_bidirectional_attention"},
        {"llama", "sed -i 's/{/{\"quantization_config\":{},/' config.json", "quantization_config"},
        {"llama", "sed -i 's/\"attention_bias\": false/\"attention_bias\": true/' config.json", "q_proj.bias"},
        {"qwen3", "sed -i 's/full_attention/linear_attention/' config.json", "layer_types"},
        {"qwen3_moe", "sed -i 's/\"decoder_sparse_step\": 1/\"decoder_sparse_step\": 2/' config.json", "decoder_sparse_step"},
        {"qwen2_moe", "sed -i 's/\"shared_expert_inter.*/\"x\":1,/' config.json", "no shared_expert_intermediate_size"},
        {"deepseek_v2", "sed -i 's/\"greedy\"/\"group_limited_greedy\"/' config.json", "no n_group"},
        {"deepseek_v2", "sed -i 's/\"greedy\"/\"noaux_tc\"/' config.json", "topk_method 'noaux_tc'"},
        {"deepseek_v2", "sed -i 's/\"rms_norm_eps\": 1e-06/\"rms_norm_eps\": 1e-05/' config.json", "rms_norm_eps"},
        {"deepseek_v3", "sed -i 's/\"rope_interleave\": true/\"rope_interleave\": false/' config.json", "rope_interleave"},
        {"glm4_moe", "sed -i 's/\"norm_topk_prob\": true/\"norm_topk_prob\": false/' config.json", "norm_topk_prob"},
        {"glm4_moe", "sed -i 's/\"topk_group\": 2/\"topk_group\": 3/' config.json", "judged by their two best"},
        {"glm4_moe", "sed -i 's/\"first_k_dense_replace\": 1/\"first_k_dense_replace\": 3/' config.json", "3 of 3 layers"},
        {"glm4_moe", "sed -i 's/\"num_hidden_layers\": 3/\"num_hidden_layers\": 4/' config.json", "no tensor 'model.layers.3."},
        {"gpt_oss", "sed -i '1s/{/{\"quantization_config\":{\"quant_method\":\"mxfp4\"},/' config.json",
         "Mxfp4Config(dequantize"},
        {"gpt_oss", "sed -i 's/rope_parameters/summary_type/' config.json", "rope_theta"},
        {"gpt_oss", "sed -i 's/\"num_local_experts\": 4/\"num_local_experts\": 3/' config.json", "router.weight"},
        {"nanochat", "sed -i 's/\"default\"/\"yarn\"/' config.json", "rope_type 'yarn'"},
        {"nanochat", "sed -i 's/layers.1.mlp.fc1.weight/layers.1.mlp.fc3.weight/' *.index.json", "mlp.fc3.weight"},
        {"qwen3_moe", "sed -i 's/layers.1.mlp.gate.weight/layers.1.mlp.gate2.weight/' *.index.json", "gate2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const char *copy = at("copy");

        shell("rm -rf '%s'; cp -r 'tests/data/train/hf/%s' '%s' && cd '%s' && %s", copy, t[i].model, copy, copy, t[i].edit);
        if (hf_import(copy, at("none"), 0, 128, &e) >= 0)
            fail_msg("%s: taken as it is", t[i].edit);
        if (!strstr(e.msg, t[i].says))
            fail_msg("%s: '%s' does not say %s", t[i].edit, e.msg, t[i].says);
        assert_int_equal(access(at("none/iter_0000000"), F_OK), -1);
    }
    ok(hf_import("tests/data/train/hf/gpt2", at("short"), 32, 128, &e));
    assert_int_equal(hf_import("tests/data/train/hf/gpt2", at("long"), 33, 128, &e), ERR_ARG);
}

/* GLM-4.5 and DeepSeek-V3 have one behind the last, which predicts a further token. */
static void one_more_layer_is_left_out(void **state)
{
    const char *copy = at("copy");

    (void)state;
    shell("rm -rf '%s'; cp -r tests/data/train/hf/glm4_moe '%s' && sed -i 's/\"num_hidden_layers\": 3/\"num_hidden_layers\": 2/' "
          "'%s/config.json'", copy, copy, copy);
    ok(hf_import(copy, at("one"), 0, 128, &e));
}

static void models_that_nobody_has_are_refused(void **state)
{
    struct model_config m = {.layers = 1, .hidden = 16, .heads = 2, .seq = 8, .vocab = 50};
    const struct hf_family *f;

    (void)state;
    ok(model_config_check(&m, 1, &e));
    ok(hf_family_of(&m, &f, &e));
    assert_string_equal(f->type, "gpt2");
    m.mlp = MLP_SWIGLU;
    assert_int_equal(hf_family_of(&m, &f, &e), ERR_UNSUPPORTED);
    m.norm = NORM_RMS;
    m.position = POSITION_ROPE;
    ok(hf_family_of(&m, &f, &e));
    assert_string_equal(f->type, "llama"); /* with biases */
    m.rotary_percent = 0.5;
    assert_int_equal(hf_family_of(&m, &f, &e), ERR_UNSUPPORTED);
}

/* Every F16 there and back; rounding against the exact neighbours. */
static void halves_are_exact(void **state)
{
    enum { N = 0x10000 };
    static uint16_t in[N], out[N], mid_out[N], above_out[N];
    static float x[N], mid[N], above[N];
    float big = 70000;
    const struct hf_at as_it_is = {.of = N};

    (void)state;
    for (int h = 0; h < N; h++)
        in[h] = (uint16_t)h;
    ok(hf_widen(x, in, "F16", (struct hf_shape){N, 1}, &as_it_is, &e));
    ok(hf_narrow(out, x, "F16", (struct hf_shape){N, 1}, &as_it_is, &e));
    for (int h = 0; h < N; h++) {
        bool last = (h & 0x7fff) >= 0x7bff; /* of its sign, or no number */

        mid[h] = last ? 0 : (x[h] + x[h + 1]) / 2;
        above[h] = last ? 0 : nextafterf(mid[h], x[h + 1]);
    }
    ok(hf_narrow(mid_out, mid, "F16", (struct hf_shape){N, 1}, &as_it_is, &e));
    ok(hf_narrow(above_out, above, "F16", (struct hf_shape){N, 1}, &as_it_is, &e));
    for (int h = 0; h < N; h++) {
        if (isnan(x[h]) ? (out[h] & 0x7fff) <= 0x7c00 : out[h] != h)
            fail_msg("%04x is %g is %04x", (unsigned)h, x[h], out[h]);
        if ((h & 0x7fff) >= 0x7bff)
            continue;
        assert_int_equal(mid_out[h], h & 1 ? h + 1 : h); /* halfway: to the even one */
        assert_int_equal(above_out[h], h + 1);
    }
    assert_int_equal(hf_narrow(out, &big, "F16", (struct hf_shape){1, 1}, &as_it_is, &e), ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_logits),
        cmocka_unit_test(out_again_with_the_same_bytes),
        cmocka_unit_test(published_configs_say_the_same),
        cmocka_unit_test(other_configs_give_other_logits),
        cmocka_unit_test(wrong_folders_are_named),
        cmocka_unit_test(one_more_layer_is_left_out),
        cmocka_unit_test(models_that_nobody_has_are_refused),
        cmocka_unit_test(halves_are_exact),
    };

    return cmocka_run_group_tests_name("hf", tests, start, end);
}
