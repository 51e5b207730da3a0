/* The table of families.  Sources: each family's configuration and model in transformers 5.23. */
#include <math.h>
#include <string.h>

#include "kernels/rope.h"
#include "train/hf_family.h"

/* ---- keys of config.json ---- */

#define AT(field) offsetof(struct model_config, field)
#define SIZE(key, field, fallback) {key, HF_SIZE, AT(field), fallback, NULL, NULL, 0}
#define NUM(key, field, fallback) {key, HF_NUM, AT(field), fallback, NULL, NULL, 0}
#define INVERSE(key, field) {key, HF_INVERSE, AT(field), 1, NULL, NULL, 0}
#define BOOL(key, field, fallback) {key, HF_BOOL, AT(field), fallback, NULL, NULL, 0}
#define NOT(key, field, fallback) {key, HF_NOT, AT(field), fallback, NULL, NULL, 0}
#define SWITCH(key, field, on, fallback) {key, HF_SWITCH, AT(field), fallback, NULL, NULL, on}
#define ALSO(key, kind, field, fallback, also) {key, kind, AT(field), fallback, NULL, also, 0}
#define OF(key, kind, fallback, value) {key, kind, 0, fallback, value, NULL, 0}
#define IS(key, value) {key, HF_IS, 0, 0, value, NULL, 0}
#define PART(key) {key, HF_PART, 0, 0, NULL, NULL, 0}
#define KEYS_END {NULL, HF_PART, 0, 0, NULL, NULL, 0}

/* The sizes that all but GPT-2 name alike; g, p, e: where groups, positions and the norms' epsilon are absent. */
#define SIZES(g, p) \
    SIZE("num_hidden_layers", layers, HF_NEEDED), SIZE("hidden_size", hidden, HF_NEEDED), \
    SIZE("num_attention_heads", heads, HF_NEEDED), SIZE("max_position_embeddings", positions, p), \
    SIZE("num_key_value_heads", groups, g)
/* Rotary angles, and what is read with them. */
#define ROPE(theta) \
    OF("rope_theta", HF_THETA, theta, NULL), PART("rope_scaling"), PART("rope_parameters"), \
    PART("original_max_position_embeddings")
#define WHOLE OF("partial_rotary_factor", HF_SHARE, 1, "whole")
#define LLAMA_LIKE(g, p, e, theta, tied) \
    SIZES(g, p), NUM("rms_norm_eps", norm_eps, e), OF("hidden_act", HF_ACT, 0, NULL), ROPE(theta), WHOLE, \
    NOT("tie_word_embeddings", untie, tied)
#define WINDOW OF("sliding_window", HF_WINDOW, 0, NULL), PART("layer_types")
#define LAYERED(size, every) \
    {"sliding_window", HF_WINDOW, 0, size, NULL, NULL, every}, OF("layer_types", HF_LAYERS, 0, NULL), \
    PART("sliding_window_pattern")
#define WINDOW_OR_NOT \
    OF("sliding_window", HF_WINDOW, 0, NULL), OF("layer_types", HF_LAYERS, 0, NULL), \
    OF("use_sliding_window", HF_SLIDES, 0, NULL), PART("max_window_layers")
#define ROUTED SIZE("num_experts_per_tok", topk, HF_NEEDED), PART("router_aux_loss_coef"), PART("output_router_logits")
#define QWEN_ROUTED \
    ROUTED, ALSO("num_experts", HF_SIZE, experts, HF_NEEDED, "num_local_experts"), \
    SIZE("moe_intermediate_size", moe_ffn, HF_NEEDED), IS("decoder_sparse_step", "1"), IS("mlp_only_layers", "[]"), \
    NOT("norm_topk_prob", pre_softmax, false), SIZE("intermediate_size", ffn, HF_NEEDED)
/* DeepSeek's: sigmoids, biases for the choice, experts in groups. */
#define BIASED_ROUTED \
    ROUTED, ALSO("n_routed_experts", HF_SIZE, experts, HF_NEEDED, "num_local_experts"), \
    SIZE("moe_intermediate_size", moe_ffn, HF_NEEDED), OF("n_shared_experts", HF_SHARED, 1, NULL), \
    {"n_group", HF_GROUPS, 0, 1, NULL, "topk_group", 0}, OF("norm_topk_prob", HF_NORMED, true, NULL), \
    NUM("routed_scaling_factor", router_scale, 1), OF("first_k_dense_replace", HF_DENSE, 1, NULL), \
    SIZE("intermediate_size", ffn, HF_NEEDED), \
    {"num_nextn_predict_layers", HF_LEFT, 0, 0, "0", "num_mtp_layers", 0}
#define QWEN LLAMA_LIKE(HF_NEEDED, HF_NEEDED, HF_NEEDED, HF_NEEDED, false), WINDOW_OR_NOT, IS("use_mrope", "false")

static const struct hf_key gpt2_keys[] = {
    SIZE("n_layer", layers, HF_NEEDED), SIZE("n_embd", hidden, HF_NEEDED), SIZE("n_head", heads, HF_NEEDED),
    SIZE("n_inner", ffn, 0), SIZE("n_positions", positions, 1024), NUM("layer_norm_epsilon", norm_eps, 1e-5),
    OF("activation_function", HF_ACT, 0, NULL), NOT("tie_word_embeddings", untie, true),
    IS("scale_attn_by_inverse_layer_idx", "false"), IS("scale_attn_weights", "true"), IS("add_cross_attention", "false"),
    PART("n_ctx"), PART("reorder_and_upcast_attn"), KEYS_END,
};
static const struct hf_key llama_keys[] = {
    LLAMA_LIKE(0, 2048, 1e-6, 10000, false), SIZE("intermediate_size", ffn, HF_NEEDED), SIZE("head_dim", head_dim, 0),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), OF("mlp_bias", HF_BIAS_MLP, false, NULL),
    PART("max_sequence_length"), KEYS_END,
};
static const struct hf_key mistral_keys[] = {
    LLAMA_LIKE(HF_NEEDED, HF_NEEDED, HF_NEEDED, 10000, false), SIZE("intermediate_size", ffn, HF_NEEDED),
    SIZE("head_dim", head_dim, 0), WINDOW, IS("attention_bias", "false"), IS("mlp_bias", "false"), KEYS_END,
};
static const struct hf_key qwen2_keys[] = {QWEN, SIZE("intermediate_size", ffn, HF_NEEDED), KEYS_END};
static const struct hf_key qwen3_keys[] = {
    QWEN, SIZE("intermediate_size", ffn, HF_NEEDED), SIZE("head_dim", head_dim, 128),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), KEYS_END,
};
static const struct hf_key mixtral_keys[] = {
    LLAMA_LIKE(HF_NEEDED, HF_NEEDED, HF_NEEDED, HF_NEEDED, false), OF("intermediate_size", HF_WIDTH, HF_NEEDED, NULL),
    SIZE("head_dim", head_dim, 0), WINDOW, ROUTED, ALSO("num_local_experts", HF_SIZE, experts, HF_NEEDED, "num_experts"),
    PART("router_jitter_noise"), IS("attention_bias", "false"), KEYS_END,
};
static const struct hf_key qwen3_moe_keys[] = {
    QWEN, QWEN_ROUTED, SIZE("head_dim", head_dim, 0), OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), KEYS_END,
};
static const struct hf_key qwen2_moe_keys[] = {
    QWEN, QWEN_ROUTED, SIZE("head_dim", head_dim, 0), SIZE("shared_expert_intermediate_size", moe_shared, HF_NEEDED),
    OF("qkv_bias", HF_BIAS_QKV, true, NULL), KEYS_END,
};
static const struct hf_key glm4_moe_keys[] = {
    SIZES(HF_NEEDED, HF_NEEDED), NUM("rms_norm_eps", norm_eps, 1e-5), OF("hidden_act", HF_ACT, 0, NULL), ROPE(10000),
    OF("partial_rotary_factor", HF_SHARE, 0.5, NULL), NOT("tie_word_embeddings", untie, false), SIZE("head_dim", head_dim, 0),
    OF("attention_bias", HF_BIAS_QKV, false, NULL), BOOL("use_qk_norm", qk_norm, false), BIASED_ROUTED, KEYS_END,
};
/* Attention with latents, whose norms have the epsilon of 1e-6 whatever the others have. */
#define LATENT(p) \
    SIZES(0, p), IS("rms_norm_eps", "1e-06"), OF("hidden_act", HF_ACT, 0, NULL), ROPE(10000), WHOLE, \
    NOT("tie_word_embeddings", untie, false), SIZE("q_lora_rank", q_rank, 0), SIZE("kv_lora_rank", kv_rank, 512), \
    SIZE("qk_nope_head_dim", qk_flat, 128), SIZE("qk_rope_head_dim", qk_turn, 64), SIZE("v_head_dim", v_dim, 128), \
    IS("attention_bias", "false"), IS("moe_layer_freq", "1"), PART("head_dim"), PART("qk_head_dim"), PART("aux_loss_alpha"), \
    PART("seq_aux"), PART("ep_size")
static const struct hf_key deepseek_v2_keys[] = {
    LATENT(2048), ROUTED, ALSO("n_routed_experts", HF_SIZE, experts, HF_NEEDED, "num_experts"),
    SIZE("moe_intermediate_size", moe_ffn, HF_NEEDED), OF("n_shared_experts", HF_SHARED, 2, NULL),
    NUM("routed_scaling_factor", router_scale, 1), OF("first_k_dense_replace", HF_DENSE, 0, NULL),
    SIZE("intermediate_size", ffn, HF_NEEDED), OF("topk_method", HF_METHOD, 0, NULL), IS("norm_topk_prob", "false"),
    IS("scoring_func", "\"softmax\""), IS("mlp_bias", "false"), PART("n_group"), PART("topk_group"), KEYS_END,
};
static const struct hf_key deepseek_v3_keys[] = {
    LATENT(4096), BIASED_ROUTED, IS("topk_method", "\"noaux_tc\""), IS("scoring_func", "\"sigmoid\""),
    IS("rope_interleave", "true"), KEYS_END,
};
static const struct hf_key gpt_oss_keys[] = {
    SIZES(HF_NEEDED, HF_NEEDED), NUM("rms_norm_eps", norm_eps, 1e-5), IS("hidden_act", "\"silu\""), ROPE(HF_NEEDED), WHOLE,
    NOT("tie_word_embeddings", untie, false), OF("intermediate_size", HF_WIDTH, HF_NEEDED, NULL),
    SIZE("head_dim", head_dim, 64), OF("attention_bias", HF_BIAS_ATTENTION, true, NULL), LAYERED(128, 2), ROUTED,
    ALSO("num_local_experts", HF_SIZE, experts, HF_NEEDED, "num_experts"), IS("swiglu_alpha", "1.702"),
    IS("swiglu_limit", "7.0"), PART("experts_per_token"), PART("initial_context_length"), KEYS_END,
};
static const struct hf_key gpt_neox_keys[] = {
    SIZE("num_hidden_layers", layers, HF_NEEDED), SIZE("hidden_size", hidden, HF_NEEDED),
    SIZE("num_attention_heads", heads, HF_NEEDED), SIZE("max_position_embeddings", positions, 2048),
    SIZE("intermediate_size", ffn, HF_NEEDED), NUM("layer_norm_eps", norm_eps, 1e-5), OF("hidden_act", HF_ACT, 0, NULL),
    OF("rotary_emb_base", HF_THETA, 10000, NULL), OF("rotary_pct", HF_SHARE, 0.25, NULL), PART("rope_scaling"),
    PART("rope_parameters"), PART("rope_theta"), PART("partial_rotary_factor"), PART("original_max_position_embeddings"),
    SWITCH("use_parallel_residual", parallel, PARALLEL_NORMS, true), OF("attention_bias", HF_BIAS_ATTENTION, true, NULL),
    NOT("tie_word_embeddings", untie, false), PART("classifier_dropout"), KEYS_END,
};
static const struct hf_key phi3_keys[] = {
    SIZES(0, HF_NEEDED), NUM("rms_norm_eps", norm_eps, 1e-5), OF("hidden_act", HF_ACT, 0, NULL), ROPE(10000),
    OF("partial_rotary_factor", HF_SHARE, 1, NULL), NOT("tie_word_embeddings", untie, false),
    SIZE("intermediate_size", ffn, HF_NEEDED), WINDOW, IS("attention_bias", "false"), KEYS_END,
};
static const struct hf_key olmo2_keys[] = {
    LLAMA_LIKE(0, HF_NEEDED, 1e-5, 10000, false), SIZE("intermediate_size", ffn, HF_NEEDED),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), KEYS_END,
};
static const struct hf_key gemma_keys[] = {
    SIZES(HF_NEEDED, HF_NEEDED), NUM("rms_norm_eps", norm_eps, 1e-6), ROPE(10000), WHOLE,
    OF("hidden_act", HF_ACT, 0, "gelu"), IS("hidden_activation", "\"gelu_pytorch_tanh\""),
    NOT("tie_word_embeddings", untie, true), SIZE("intermediate_size", ffn, HF_NEEDED), SIZE("head_dim", head_dim, 256),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), IS("use_bidirectional_attention", "false"), KEYS_END,
};

#define GEMMA_LAYERED(theta, cap, window, every) \
    SIZES(HF_NEEDED, HF_NEEDED), NUM("rms_norm_eps", norm_eps, 1e-6), ROPE(theta), WHOLE, \
    ALSO("hidden_activation", HF_ACT, mlp, 0, "hidden_act"), NOT("tie_word_embeddings", untie, true), \
    SIZE("intermediate_size", ffn, HF_NEEDED), SIZE("head_dim", head_dim, 256), \
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), IS("use_bidirectional_attention", "false"), \
    {"query_pre_attn_scalar", HF_SCALE, 0, 256, NULL, NULL, 1}, \
    {"attn_logit_softcapping", HF_CAP, AT(softcap), cap, NULL, NULL, 0}, LAYERED(window, every)
static const struct hf_key gemma2_keys[] = {
    GEMMA_LAYERED(10000, 50, 4096, 2), {"final_logit_softcapping", HF_CAP, AT(logit_cap), 30, NULL, NULL, 0}, KEYS_END,
};
static const struct hf_key gemma3_keys[] = {
    GEMMA_LAYERED(1e6, 0, 4096, 6), OF("rope_local_base_freq", HF_LOCAL, 10000, NULL),
    {"final_logit_softcapping", HF_CAP, AT(logit_cap), 0, NULL, NULL, 0}, KEYS_END,
};
static const struct hf_key smollm3_keys[] = {
    LLAMA_LIKE(4, HF_NEEDED, 1e-6, 2000000, true), SIZE("intermediate_size", ffn, HF_NEEDED),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), OF("mlp_bias", HF_BIAS_MLP, false, NULL),
    {"no_rope_layers", HF_NO_ROPE, 0, 4, NULL, "no_rope_layer_interval", 0}, IS("use_sliding_window", "false"),
    PART("sliding_window"), PART("layer_types"), PART("max_window_layers"), KEYS_END,
};
static const struct hf_key granite_keys[] = {
    LLAMA_LIKE(0, 2048, 1e-6, 10000, false), SIZE("intermediate_size", ffn, HF_NEEDED),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), OF("mlp_bias", HF_BIAS_MLP, false, NULL),
    NUM("embedding_multiplier", embedding_scale, 1), NUM("residual_multiplier", residual_scale, 1),
    INVERSE("logits_scaling", logits_scale), {"attention_multiplier", HF_SCALE, 0, 1, NULL, NULL, 0}, KEYS_END,
};
static const struct hf_key starcoder2_keys[] = {
    SIZES(2, 4096), NUM("norm_epsilon", norm_eps, 1e-5), {"hidden_act", HF_ACT, 0, 0, NULL, NULL, 1}, ROPE(10000), WHOLE,
    NOT("tie_word_embeddings", untie, true), SIZE("intermediate_size", ffn, HF_NEEDED), WINDOW, NOT("use_bias", no_bias, true),
    IS("norm_type", "\"layer_norm\""), IS("mlp_type", "\"default\""), IS("position_embedding_type", "\"rope\""),
    IS("use_sliding_window", "true"), PART("residual_dropout"), PART("activation_function"), KEYS_END,
};
static const struct hf_key nanochat_keys[] = {
    LLAMA_LIKE(0, 2048, 1e-6, 10000, false), SIZE("intermediate_size", ffn, 8192), SIZE("head_dim", head_dim, 0),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL),
    {"final_logit_softcapping", HF_CAP, AT(logit_cap), 15, NULL, NULL, 0}, KEYS_END,
};
static const struct hf_key nemotron_keys[] = {
    SIZES(0, 4096), NUM("norm_eps", norm_eps, 1e-5), OF("hidden_act", HF_ACT, 0, NULL), ROPE(10000),
    OF("partial_rotary_factor", HF_SHARE, 0.5, NULL), NOT("tie_word_embeddings", untie, false),
    SIZE("intermediate_size", ffn, HF_NEEDED), SIZE("head_dim", head_dim, 0),
    OF("attention_bias", HF_BIAS_ATTENTION, false, NULL), OF("mlp_bias", HF_BIAS_MLP, false, NULL), KEYS_END,
};

/* Of any family. */
static const char idle_keys[] =
    " model_type architectures torch_dtype dtype transformers_version _name_or_path auto_map name_or_path use_cache bos_token_id"
    " eos_token_id pad_token_id unk_token_id sep_token_id cls_token_id decoder_start_token_id forced_bos_token_id"
    " forced_eos_token_id initializer_range initializer_factor pretraining_tp _attn_implementation attn_implementation"
    " _flash_attn_2_enabled _attn_implementation_autoset _commit_hash attention_dropout hidden_dropout resid_pdrop embd_pdrop"
    " attn_pdrop embedding_dropout resid_dropout output_attentions output_hidden_states return_dict return_dict_in_generate"
    " is_encoder_decoder is_decoder torchscript use_bfloat16 gradient_checkpointing chunk_size_feed_forward"
    " tie_encoder_decoder pruned_heads task_specific_params summary_type summary_use_proj summary_activation"
    " summary_proj_to_labels summary_first_dropout problem_type finetuning_task id2label label2id num_labels prefix"
    " cross_attention_hidden_size tokenizer_class temperature top_k top_p typical_p repetition_penalty length_penalty"
    " no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids num_beams num_beam_groups diversity_penalty"
    " num_return_sequences do_sample early_stopping max_length min_length max_new_tokens suppress_tokens begin_suppress_tokens"
    " remove_invalid_values exponential_decay_length_penalty output_scores tf_legacy_loss experts_implementation"
    " _experts_implementation unsloth_version unsloth_fixed torch_compile cache_implementation ";

bool hf_listed(const char *list, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = list; n && (at = strstr(at, key)); at += n)
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

bool hf_key_idle(const char *key)
{
    return key[0] == '_' || hf_listed(idle_keys, key);
}

const char *const hf_rope_name[HF_ROPES] = {
    [ROPE_LLAMA3] = "llama3", [ROPE_LINEAR] = "linear", [ROPE_YARN] = "yarn", [ROPE_DYNAMIC] = "dynamic",
};

double hf_yarn_attention(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* ---- names of tensors ---- */

#define LAYER "decoder.layers.*."
#define HF_LAYER "model.layers.*."
#define NAMES_END {NULL, NULL, HF_ROWS}
#define EXPERT LAYER "mlp.experts.local_experts.*."

static const struct hf_name gpt2_names[] = {
    {"embedding.word_embeddings.", "transformer.wte.", HF_ROWS},
    {"embedding.position_embeddings.", "transformer.wpe.", HF_ROWS},
    {LAYER "input_layernorm.", "transformer.h.*.ln_1.", HF_ROWS},
    {LAYER "self_attention.linear_qkv.", "transformer.h.*.attn.c_attn.", HF_TURNED},
    {LAYER "self_attention.linear_proj.", "transformer.h.*.attn.c_proj.", HF_TURNED},
    {LAYER "pre_mlp_layernorm.", "transformer.h.*.ln_2.", HF_ROWS},
    {LAYER "mlp.linear_fc1.", "transformer.h.*.mlp.c_fc.", HF_TURNED},
    {LAYER "mlp.linear_fc2.", "transformer.h.*.mlp.c_proj.", HF_TURNED},
    {"decoder.final_layernorm.", "transformer.ln_f.", HF_ROWS},
    {"output_layer.", "lm_head.", HF_ROWS},
    NAMES_END,
};
static const struct hf_name llama_names[] = {
    {"embedding.word_embeddings.", "model.embed_tokens.", HF_ROWS},
    {LAYER "input_layernorm.", HF_LAYER "input_layernorm.", HF_ROWS},
    {LAYER "self_attention.q_layernorm.", HF_LAYER "self_attn.q_norm.", HF_ROWS},
    {LAYER "self_attention.k_layernorm.", HF_LAYER "self_attn.k_norm.", HF_ROWS},
    {LAYER "self_attention.linear_qkv.",
     HF_LAYER "self_attn.q_proj.|" HF_LAYER "self_attn.k_proj.|" HF_LAYER "self_attn.v_proj.", HF_ROWS},
    {LAYER "self_attention.linear_proj.", HF_LAYER "self_attn.o_proj.", HF_ROWS},
    {LAYER "pre_mlp_layernorm.", HF_LAYER "post_attention_layernorm.", HF_ROWS},
    {LAYER "mlp.linear_fc1.", HF_LAYER "mlp.gate_proj.|" HF_LAYER "mlp.up_proj.", HF_ROWS},
    {LAYER "mlp.linear_fc2.", HF_LAYER "mlp.down_proj.", HF_ROWS},
    {LAYER "mlp.router.", HF_LAYER "mlp.gate.", HF_ROWS},
    {EXPERT "linear_fc1.", HF_LAYER "mlp.experts.*.gate_proj.|" HF_LAYER "mlp.experts.*.up_proj.", HF_ROWS},
    {EXPERT "linear_fc2.", HF_LAYER "mlp.experts.*.down_proj.", HF_ROWS},
    {LAYER "mlp.shared_experts.linear_fc1.", HF_LAYER "mlp.shared_expert.gate_proj.|" HF_LAYER "mlp.shared_expert.up_proj.",
     HF_ROWS},
    {LAYER "mlp.shared_experts.linear_fc2.", HF_LAYER "mlp.shared_expert.down_proj.", HF_ROWS},
    {LAYER "mlp.shared_experts.gate_", HF_LAYER "mlp.shared_expert_gate.", HF_ROWS},
    {"decoder.final_layernorm.", "model.norm.", HF_ROWS},
    {"output_layer.", "lm_head.", HF_ROWS},
    NAMES_END,
};
/* Mixtral's w1 is the gate, w3 the other half, w2 the way back. */
#define MIXTURE HF_LAYER "block_sparse_moe."
static const struct hf_name mixtral_names[] = {
    {LAYER "mlp.router.", MIXTURE "gate.", HF_ROWS},
    {EXPERT "linear_fc1.", MIXTURE "experts.*.w1.|" MIXTURE "experts.*.w3.", HF_ROWS},
    {EXPERT "linear_fc2.", MIXTURE "experts.*.w2.", HF_ROWS},
    NAMES_END,
};
#define BIASED_NAMES \
    {LAYER "mlp.router.expert_", HF_LAYER "mlp.gate.e_score_correction_", HF_FP32}, \
    {LAYER "mlp.shared_experts.linear_fc1.", HF_LAYER "mlp.shared_experts.gate_proj.|" HF_LAYER "mlp.shared_experts.up_proj.", \
     HF_ROWS}, \
    {LAYER "mlp.shared_experts.linear_fc2.", HF_LAYER "mlp.shared_experts.down_proj.", HF_ROWS}
static const struct hf_name biased_names[] = {BIASED_NAMES, NAMES_END};
static const struct hf_name deepseek_names[] = {
    {LAYER "self_attention.linear_q_down_proj.", HF_LAYER "self_attn.q_a_proj.", HF_ROWS},
    {LAYER "self_attention.linear_q_up_proj.", HF_LAYER "self_attn.q_b_proj.", HF_HEAD_PAIRS},
    {LAYER "self_attention.linear_q_proj.", HF_LAYER "self_attn.q_proj.", HF_HEAD_PAIRS},
    {LAYER "self_attention.linear_kv_down_proj.", HF_LAYER "self_attn.kv_a_proj_with_mqa.", HF_LAST_PAIRS},
    {LAYER "self_attention.linear_kv_up_proj.", HF_LAYER "self_attn.kv_b_proj.", HF_ROWS},
    {LAYER "self_attention.q_layernorm.", HF_LAYER "self_attn.q_a_layernorm.", HF_ROWS},
    {LAYER "self_attention.kv_layernorm.", HF_LAYER "self_attn.kv_a_layernorm.", HF_ROWS},
    BIASED_NAMES, NAMES_END,
};
static const struct hf_name gpt_oss_names[] = {
    {LAYER "self_attention.core_attention.softmax_offset", HF_LAYER "self_attn.sinks", HF_ROWS},
    {LAYER "mlp.router.", HF_LAYER "mlp.router.", HF_ROWS},
    {EXPERT "linear_fc1.weight", HF_LAYER "mlp.experts.gate_up_proj", HF_PAIRS},
    {EXPERT "linear_fc1.bias", HF_LAYER "mlp.experts.gate_up_proj_bias", HF_PAIRS},
    {EXPERT "linear_fc2.weight", HF_LAYER "mlp.experts.down_proj", HF_STACKED},
    {EXPERT "linear_fc2.bias", HF_LAYER "mlp.experts.down_proj_bias", HF_STACKED},
    NAMES_END,
};
#define NEOX_LAYER "gpt_neox.layers.*."
static const struct hf_name gpt_neox_names[] = {
    {"embedding.word_embeddings.", "gpt_neox.embed_in.", HF_ROWS},
    {LAYER "input_layernorm.", NEOX_LAYER "input_layernorm.", HF_ROWS},
    {LAYER "self_attention.linear_qkv.", NEOX_LAYER "attention.query_key_value.", HF_BY_HEAD},
    {LAYER "self_attention.linear_proj.", NEOX_LAYER "attention.dense.", HF_ROWS},
    {LAYER "pre_mlp_layernorm.", NEOX_LAYER "post_attention_layernorm.", HF_ROWS},
    {LAYER "mlp.linear_fc1.", NEOX_LAYER "mlp.dense_h_to_4h.", HF_ROWS},
    {LAYER "mlp.linear_fc2.", NEOX_LAYER "mlp.dense_4h_to_h.", HF_ROWS},
    {"decoder.final_layernorm.", "gpt_neox.final_layer_norm.", HF_ROWS},
    {"output_layer.", "embed_out.", HF_ROWS},
    NAMES_END,
};
static const struct hf_name phi3_names[] = {
    {LAYER "self_attention.linear_qkv.", HF_LAYER "self_attn.qkv_proj.", HF_ROWS},
    {LAYER "mlp.linear_fc1.", HF_LAYER "mlp.gate_up_proj.", HF_ROWS},
    NAMES_END,
};
/* MLPs that do not gate. */
static const struct hf_name up_names[] = {{LAYER "mlp.linear_fc1.", HF_LAYER "mlp.up_proj.", HF_ROWS}, NAMES_END};
static const struct hf_name starcoder2_names[] = {
    {LAYER "mlp.linear_fc1.", HF_LAYER "mlp.c_fc.", HF_ROWS}, {LAYER "mlp.linear_fc2.", HF_LAYER "mlp.c_proj.", HF_ROWS},
    NAMES_END,
};
/* Angles turn the other way, which is how they turn here where halves of heads change places. */
static const struct hf_name nanochat_names[] = {
    {LAYER "self_attention.linear_qkv.",
     HF_LAYER "self_attn.q_proj.|" HF_LAYER "self_attn.k_proj.|" HF_LAYER "self_attn.v_proj.", HF_HALVES},
    {LAYER "mlp.linear_fc1.", HF_LAYER "mlp.fc1.", HF_ROWS}, {LAYER "mlp.linear_fc2.", HF_LAYER "mlp.fc2.", HF_ROWS},
    NAMES_END,
};
/* Norms of what attention and the MLP add, by the names of norms before them elsewhere. */
static const struct hf_name post_names[] = {
    {LAYER "self_attention.linear_proj.post_layernorm.", HF_LAYER "post_attention_layernorm.", HF_ROWS},
    {LAYER "mlp.linear_fc2.post_layernorm.", HF_LAYER "post_feedforward_layernorm.", HF_ROWS},
    {LAYER "pre_mlp_layernorm.", HF_LAYER "pre_feedforward_layernorm.", HF_ROWS},
    NAMES_END,
};

/* ---- the families; of two that have the same model the first one is written ---- */

#define RMS_ROPE_ANY .norm = NORM_RMS, .position = POSITION_ROPE, .no_bias = true
#define RMS_ROPE RMS_ROPE_ANY, .mlp = MLP_SWIGLU
#define LAYERNORM .norm = NORM_LAYER
const struct hf_family hf_families[] = {
    {.type = "gpt2", .class = "GPT2LMHeadModel", .base = {LAYERNORM}, .keys = gpt2_keys, .names = gpt2_names},
    {.type = "llama", .class = "LlamaForCausalLM", .base = {RMS_ROPE}, .keys = llama_keys, .names = llama_names},
    {.type = "qwen2", .class = "Qwen2ForCausalLM", .base = {RMS_ROPE, .qkv_bias = true}, .keys = qwen2_keys,
     .names = llama_names},
    {.type = "qwen3", .class = "Qwen3ForCausalLM", .base = {RMS_ROPE, .qk_norm = true}, .keys = qwen3_keys,
     .names = llama_names},
    {.type = "mixtral", .class = "MixtralForCausalLM", .base = {RMS_ROPE}, .keys = mixtral_keys, .names = mixtral_names,
     .others = llama_names},
    {.type = "qwen3_moe", .class = "Qwen3MoeForCausalLM", .base = {RMS_ROPE, .qk_norm = true}, .keys = qwen3_moe_keys,
     .names = llama_names},
    {.type = "qwen2_moe", .class = "Qwen2MoeForCausalLM", .base = {RMS_ROPE, .shared_gate = true}, .keys = qwen2_moe_keys,
     .names = llama_names},
    {.type = "glm4_moe", .class = "Glm4MoeForCausalLM", .keys = glm4_moe_keys, .names = biased_names, .others = llama_names,
     .base = {RMS_ROPE, .router_score = ROUTER_SIGMOID, .expert_bias = true}, .next_layer = true},
    {.type = "gpt_oss", .class = "GptOssForCausalLM", .keys = gpt_oss_keys, .names = gpt_oss_names, .others = llama_names,
     .base = {RMS_ROPE_ANY, .mlp = MLP_CLAMPED, .mlp_bias = true, .router_bias = true, .softmax = SOFTMAX_LEARNABLE},
     .scaled_rope = true},
    {.type = "mistral", .class = "MistralForCausalLM", .base = {RMS_ROPE}, .keys = mistral_keys, .names = llama_names},
    {.type = "phi3", .class = "Phi3ForCausalLM", .base = {RMS_ROPE}, .keys = phi3_keys, .names = phi3_names,
     .others = llama_names, .plain_rope = true},
    {.type = "olmo2", .class = "Olmo2ForCausalLM", .keys = olmo2_keys, .names = post_names, .others = llama_names,
     .base = {RMS_ROPE, .norm_place = NORM_POST, .qk_norm = true, .qk_norm_wide = true}},
    {.type = "gpt_neox", .class = "GPTNeoXForCausalLM", .keys = gpt_neox_keys, .names = gpt_neox_names,
     .base = {LAYERNORM, .position = POSITION_ROPE, .mlp = MLP_GELU_EXACT, .no_bias = true, .mlp_bias = true}},
    {.type = "gemma", .class = "GemmaForCausalLM", .keys = gemma_keys, .names = llama_names, .embeds_root = true,
     .base = {RMS_ROPE_ANY, .mlp = MLP_GEGLU, .norm_1p = true}},
    {.type = "gemma2", .class = "Gemma2ForCausalLM", .keys = gemma2_keys, .names = post_names, .others = llama_names,
     .base = {RMS_ROPE_ANY, .mlp = MLP_GEGLU, .norm_1p = true, .norm_place = NORM_BOTH}, .embeds_root = true},
    {.type = "gemma3_text", .class = "Gemma3ForCausalLM", .keys = gemma3_keys, .names = post_names, .others = llama_names,
     .base = {RMS_ROPE_ANY, .mlp = MLP_GEGLU, .norm_1p = true, .norm_place = NORM_BOTH, .qk_norm = true}, .embeds_root = true},
    {.type = "smollm3", .class = "SmolLM3ForCausalLM", .base = {RMS_ROPE}, .keys = smollm3_keys, .names = llama_names},
    {.type = "granite", .class = "GraniteForCausalLM", .base = {RMS_ROPE}, .keys = granite_keys, .names = llama_names},
    {.type = "starcoder2", .class = "Starcoder2ForCausalLM", .base = {LAYERNORM, .position = POSITION_ROPE, .mlp = MLP_GELU},
     .keys = starcoder2_keys, .names = starcoder2_names, .others = llama_names},
    {.type = "nemotron", .class = "NemotronForCausalLM", .keys = nemotron_keys, .names = up_names, .others = llama_names,
     .base = {LAYERNORM, .norm_1p = true, .position = POSITION_ROPE, .mlp = MLP_RELU2, .no_bias = true}},
    {.type = "nanochat", .class = "NanoChatForCausalLM", .keys = nanochat_keys, .names = nanochat_names, .others = llama_names,
     .base = {RMS_ROPE_ANY, .norm_bare = true, .embedding_norm = true, .qk_norm = true, .mlp = MLP_RELU2}, .plain_rope = true},
    {.type = "deepseek_v2", .class = "DeepseekV2ForCausalLM", .keys = deepseek_v2_keys, .names = deepseek_names,
     .others = llama_names, .base = {RMS_ROPE, .latent = true, .qk_norm = true, .norm_eps = 1e-6, .pre_softmax = true}},
    {.type = "deepseek_v3", .class = "DeepseekV3ForCausalLM", .keys = deepseek_v3_keys, .names = deepseek_names,
     .others = llama_names, .next_layer = true,
     .base = {RMS_ROPE, .latent = true, .qk_norm = true, .norm_eps = 1e-6, .router_score = ROUTER_SIGMOID, .expert_bias = true}},
};
const int hf_families_n = sizeof hf_families / sizeof *hf_families;

const struct hf_family *hf_family_named(const char *type)
{
    for (int i = 0; i < hf_families_n; i++)
        if (strcmp(hf_families[i].type, type) == 0)
            return &hf_families[i];
    return NULL;
}
