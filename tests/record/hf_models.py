#!/usr/bin/env python3
"""Small models of transformers, for tests/unit/hf_test.c: tests/data/train/hf.

    pip install torch transformers safetensors numpy
    python tests/record/hf_models.py                 # records
    python tests/record/hf_models.py check build     # ours, exported, load there: same weights, same text
    python tests/record/hf_models.py published build # the same of models under config.json as they were published

gpt2: fp16, one file.  llama: bf16, several files, Llama 3.1's rotary angles, grouped queries.
qwen3: fp32, normalised queries and keys, tied.  qwen2: fp32, biases.  mixtral, qwen3_moe and qwen2_moe (a shared expert with
a gate): bf16, several files, 4 experts.  The others, fp32: mistral, phi3 (fused queries, keys and values; half a head turns),
olmo2 (norms after modules), gpt_neox (modules side by side, or one after the other), gemma, gemma2 (bounded logits), gemma3_text
(windows with angles of their own, norms before and after modules), smollm3 (a layer without angles), granite (multipliers),
starcoder2, nemotron (layer norms with weights less one, ReLU squared).  deepseek_v2, deepseek_v2_groups and deepseek_v3: fp32,
latents.  glm4_moe: bf16, but fp32 biases of experts, which are in
groups.  nanochat: norms without weights, queries and keys normalised after they turn the other way.  logits.safetensors has the ids of a text and each model's logits (fp32, of the weights as stored).  configs/NAME.json are
other config.json for the weights of one of them, with logits of their own: scaled rotary angles, as transformers 5 writes them
(rope_parameters) and 4 (rope_scaling), other activations, and Mistral.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from safetensors.torch import load_file

OUT = "tests/data/train/hf"
ONLY = os.environ.get("ONLY", "")  # of check and published, models with this in their names
V, T = 61, 12
LLAMA = dict(vocab_size=V, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=32, bos_token_id=None, eos_token_id=None)
NEOX = dict(vocab_size=V, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=32, bos_token_id=None, eos_token_id=None)
DEEPSEEK = dict(LLAMA, pad_token_id=None, num_key_value_heads=4, num_hidden_layers=3, moe_intermediate_size=8,
                n_routed_experts=8, n_shared_experts=2, first_k_dense_replace=1, kv_lora_rank=10, qk_nope_head_dim=6,
                qk_rope_head_dim=4, v_head_dim=5, experts_implementation="eager")
MODELS = {
    "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config(
        vocab_size=V, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None),
        torch.float16, "5GB"),
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(
        **LLAMA, head_dim=8, rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
        torch.bfloat16, "6KB"),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**LLAMA, tie_word_embeddings=False), torch.float32,
              "5GB"),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**LLAMA, head_dim=8, tie_word_embeddings=True),
              torch.float32, "5GB"),
    "mixtral": (transformers.MixtralForCausalLM, transformers.MixtralConfig(
        **LLAMA, head_dim=8, num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=False,
        experts_implementation="eager"), torch.bfloat16, "12KB"),
    "qwen3_moe": (transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig(
        **LLAMA, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True,
        tie_word_embeddings=False, experts_implementation="eager"), torch.bfloat16, "12KB"),
    "qwen2_moe": (transformers.Qwen2MoeForCausalLM, transformers.Qwen2MoeConfig(
        **LLAMA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=20,
        tie_word_embeddings=False, experts_implementation="eager"), torch.bfloat16, "12KB"),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig(
        **LLAMA, head_dim=8, sliding_window=None, tie_word_embeddings=False), torch.float32, "6KB"),
    "phi3": (transformers.Phi3ForCausalLM, transformers.Phi3Config(
        **dict(LLAMA, pad_token_id=None), rope_parameters={"rope_type": "default", "rope_theta": 1e4,
                                                           "partial_rotary_factor": 0.5}), torch.float32, "5GB"),
    "olmo2": (transformers.Olmo2ForCausalLM, transformers.Olmo2Config(**dict(LLAMA, pad_token_id=None)), torch.float32, "6KB"),
    "gpt_neox": (transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(
        **NEOX, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}), torch.float32, "5GB"),
    "gpt_neox_serial": (transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(
        **NEOX, use_parallel_residual=False, attention_bias=False, hidden_act="gelu_new"), torch.float32, "6KB"),
    "gemma": (transformers.GemmaForCausalLM, transformers.GemmaConfig(**dict(LLAMA, pad_token_id=None), head_dim=8),
              torch.float32, "5GB"),
    "gemma3_text": (transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig(
        **dict(LLAMA, pad_token_id=None, num_hidden_layers=3), head_dim=8, sliding_window=5, query_pre_attn_scalar=16,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e5},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}), torch.float32, "9KB"),
    "smollm3": (transformers.SmolLM3ForCausalLM, transformers.SmolLM3Config(
        **dict(LLAMA, pad_token_id=None), no_rope_layers=[1, 0], no_rope_layer_interval=2,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}), torch.float32, "5GB"),
    "granite": (transformers.GraniteForCausalLM, transformers.GraniteConfig(
        **LLAMA, embedding_multiplier=6.0, residual_multiplier=0.4, logits_scaling=3.0, attention_multiplier=0.3,
        attention_bias=True, rope_parameters={"rope_type": "default", "rope_theta": 1e4}), torch.float32, "6KB"),
    "starcoder2": (transformers.Starcoder2ForCausalLM, transformers.Starcoder2Config(
        **LLAMA, sliding_window=5, rope_parameters={"rope_type": "default", "rope_theta": 1e4}), torch.float32, "5GB"),
    "nemotron": (transformers.NemotronForCausalLM, transformers.NemotronConfig(
        **LLAMA, mlp_bias=True, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
        torch.float32, "6KB"),
    "gemma2": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config(
        **dict(LLAMA, pad_token_id=None), head_dim=8, sliding_window=5, query_pre_attn_scalar=16, attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0, layer_types=["sliding_attention", "full_attention"], attn_implementation="eager"),
        torch.float32, "6KB"),
    "glm4_moe": (transformers.Glm4MoeForCausalLM, transformers.Glm4MoeConfig(
        **dict(LLAMA, num_hidden_layers=3), head_dim=8, n_routed_experts=8, num_experts_per_tok=4, moe_intermediate_size=12,
        n_shared_experts=2, first_k_dense_replace=1, n_group=4, topk_group=2, routed_scaling_factor=1.5, use_qk_norm=True,
        attention_bias=True, num_mtp_layers=0, rope_parameters={"rope_type": "default", "rope_theta": 1e4,
                                                                "partial_rotary_factor": 0.5}), torch.bfloat16, "12KB"),
    "deepseek_v2": (transformers.DeepseekV2ForCausalLM, transformers.DeepseekV2Config(
        **DEEPSEEK, q_lora_rank=None, num_experts_per_tok=3, routed_scaling_factor=1.5,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}), torch.float32, "5GB"),
    "deepseek_v3": (transformers.DeepseekV3ForCausalLM, transformers.DeepseekV3Config(
        **DEEPSEEK, q_lora_rank=14, num_experts_per_tok=4, n_group=4, topk_group=2, num_nextn_predict_layers=0,
        rope_parameters=dict(rope_type="yarn", rope_theta=50.0, factor=4.0, original_max_position_embeddings=8, mscale=0.7,
                             mscale_all_dim=1.4, beta_fast=1.5, beta_slow=0.25)), torch.float32, "9KB"),
    "gpt_oss": (transformers.GptOssForCausalLM, transformers.GptOssConfig(
        **dict(LLAMA, pad_token_id=None), head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=5,
        layer_types=["sliding_attention", "full_attention"], experts_implementation="eager",
        rope_parameters={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 50.0,
                         "beta_fast": 1.1, "beta_slow": 0.1, "truncate": False}), torch.float32, "12KB"),
    "nanochat": (transformers.NanoChatForCausalLM, transformers.NanoChatConfig(
        **dict(LLAMA, pad_token_id=None), rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        final_logit_softcapping=3.0), torch.float32, "6KB"),
    "deepseek_v2_groups": (transformers.DeepseekV2ForCausalLM, transformers.DeepseekV2Config(
        **DEEPSEEK, q_lora_rank=14, num_experts_per_tok=3, n_group=4, topk_group=2, topk_method="group_limited_greedy",
        routed_scaling_factor=4.0, rope_parameters={"rope_type": "default", "rope_theta": 1e4}), torch.float32, "9KB"),
}

# Which alone bounds logits of attention.
EAGER = {}, {"attn_implementation": "eager"}

# Of each: the model whose weights it has, and what its config.json has in place of that one's.
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 50.0}
OTHERS = {
    "linear": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    "dynamic": ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}}),
    "yarn": ("llama", {"rope_parameters": YARN}),
    "yarn_exact": ("llama", {"rope_parameters": dict(YARN, beta_fast=1.1, beta_slow=0.1, attention_factor=1.5, truncate=False)}),
    "yarn_mscale": ("llama", {"rope_parameters": dict(YARN, beta_fast=1.5, beta_slow=0.25, mscale=0.7, mscale_all_dim=1.4)}),
    "yarn_old": ("qwen2", {"rope_parameters": None, "rope_theta": 50.0, "max_position_embeddings": 12,
                           "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 8, "type": "yarn"}}),
    "linear_old": ("llama", {"rope_parameters": None, "rope_theta": 1e3, "rope_scaling": {"type": "linear", "factor": 2.5}}),
    "relu2": ("gpt2", {"activation_function": "relu2"}),
    "gelu_exact": ("gpt2", {"activation_function": "gelu"}),
    "geglu": ("llama", {"hidden_act": "gelu_pytorch_tanh"}),
    "reglu": ("qwen2_moe", {"hidden_act": "relu"}),
    "mistral_window": ("llama", {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 5}),
    "qwen2_window": ("qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0,
                               "layer_types": ["sliding_attention", "full_attention"]}),
}


def record_others(ids, out):
    os.makedirs(f"{OUT}/configs", exist_ok=True)
    for name, (base, words) in OTHERS.items():
        with open(f"{OUT}/{base}/config.json") as f:
            config = {k: v for k, v in {**json.load(f), **words}.items() if v is not None}
        with open(f"{OUT}/configs/{name}.json", "w") as f:
            json.dump(config, f)
        with tempfile.TemporaryDirectory() as tmp:
            shutil.copytree(f"{OUT}/{base}", tmp, dirs_exist_ok=True)
            shutil.copy(f"{OUT}/configs/{name}.json", f"{tmp}/config.json")
            model = transformers.AutoModelForCausalLM.from_pretrained(tmp, dtype=torch.float32)
        with torch.no_grad():
            out[name] = model(torch.tensor(ids)[None]).logits[0].numpy()


def biases_of_experts(model):
    for m in model.modules():
        if hasattr(m, "e_score_correction_bias"):
            m.e_score_correction_bias = torch.nn.Buffer(torch.empty(m.e_score_correction_bias.shape).normal_(0, 0.2))


def record():
    torch.manual_seed(3)
    ids = np.random.RandomState(4).randint(0, V, T)
    out = {"ids": ids.astype(np.int32)}
    for name, (cls, config, dtype, shard) in MODELS.items():
        model = cls(config)
        for p in model.parameters():
            p.data.normal_(0, 0.3).add_(float(p.dim() == 1))
        for p in (p for n, p in model.named_parameters() if name == "gpt_oss" and n.endswith("gate_up_proj")):
            p.data.mul_(6)  # so that some are beyond the bounds
        model = model.to(dtype)
        biases_of_experts(model)
        model.save_pretrained(f"{OUT}/{name}", max_shard_size=shard)
        os.remove(f"{OUT}/{name}/generation_config.json")
        # .float() would keep rounded rotary angles
        model = cls.from_pretrained(f"{OUT}/{name}", dtype=torch.float32, **EAGER[name == "gemma2"])
        with torch.no_grad():
            out[name] = model(torch.tensor(ids)[None]).logits[0].numpy()
    record_others(ids, out)
    save_file(out, f"{OUT}/logits.safetensors")
    print("torch", torch.__version__, "transformers", transformers.__version__)


def weights(path):
    out = {}
    for f in os.listdir(path):
        if f.endswith(".safetensors"):
            out.update(load_file(f"{path}/{f}"))
    return out


def quern(build, *args):
    return subprocess.run([f"{build}/bin/quern", *args], check=True, capture_output=True, text=True).stdout


def greedy(build, store, prompt):
    ids = quern(build, "generate", "--load", store, "--prompt-ids", ",".join(map(str, prompt)), "--temperature", "0",
                "--max-tokens", "20", "--print-ids")
    return list(map(int, ids.split()))


def llama(kind="Llama", **more):
    words = dict(LLAMA, architectures=[f"{kind}ForCausalLM"], hidden_act="silu", initializer_range=0.02, use_cache=True,
                 bos_token_id=1, eos_token_id=2, model_type=kind.lower(), rms_norm_eps=1e-5, tie_word_embeddings=False,
                 torch_dtype="bfloat16", transformers_version="4.40.0")
    return dict(words, **more)


# Of each: what its config.json says beside the sizes.
LLAMA3 = dict(attention_bias=False, attention_dropout=0.0, rope_theta=5e5)
SCALED = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16, rope_type="llama3")
QWEN = dict(rms_norm_eps=1e-6, rope_theta=1e6, max_window_layers=2, use_sliding_window=False, attention_dropout=0.0)
QWEN3 = dict(QWEN, head_dim=8, attention_bias=False, rope_scaling=None, sliding_window=None)
LATENT = dict(attention_bias=False, attention_dropout=0.0, aux_loss_alpha=0.001, ep_size=1, first_k_dense_replace=1,
              kv_lora_rank=8, moe_intermediate_size=12, moe_layer_freq=1, n_shared_experts=2, qk_nope_head_dim=6,
              qk_rope_head_dim=4, routed_scaling_factor=1.0, seq_aux=True, v_head_dim=6, rms_norm_eps=1e-6,
              num_key_value_heads=4)
LATENT_YARN = dict(beta_fast=32, beta_slow=1, factor=4, mscale=0.707, mscale_all_dim=0.707, type="yarn",
                   original_max_position_embeddings=16)
PUBLISHED = {
    "gpt2": dict(activation_function="gelu_new", architectures=["GPT2LMHeadModel"], attn_pdrop=0.1, embd_pdrop=0.1,
                 layer_norm_epsilon=1e-5, model_type="gpt2", n_ctx=64, n_embd=16, n_head=2, n_layer=2, n_positions=64,
                 resid_pdrop=0.1, summary_type="cls_index", vocab_size=V,
                 task_specific_params={"text-generation": {"do_sample": True}}),
    "llama1": {k: v for k, v in llama(max_sequence_length=64, pad_token_id=0).items()
               if k not in ("max_position_embeddings", "num_key_value_heads")},
    "llama2": llama(pretraining_tp=1, rope_scaling=None),
    "llama3": llama(**LLAMA3, rope_scaling=None),
    "llama3.1": llama(**LLAMA3, mlp_bias=False, rope_scaling=SCALED),
    "llama3.2": llama(**LLAMA3, mlp_bias=False, head_dim=8, rope_scaling=dict(SCALED, factor=32.0), tie_word_embeddings=True),
    "llama, biases": llama(attention_bias=True, mlp_bias=True),
    "mistral 0.1": llama("Mistral", sliding_window=48, rope_theta=1e4, max_position_embeddings=64),
    "mistral 0.3": llama("Mistral", sliding_window=None, rope_theta=1e6),
    "mistral nemo": llama("Mistral", head_dim=8, sliding_window=None, rope_theta=1e6),
    "mixtral": llama("Mixtral", sliding_window=None, rope_theta=1e6, num_local_experts=4, num_experts_per_tok=2,
                     output_router_logits=False, router_aux_loss_coef=0.02),
    "qwen2": llama("Qwen2", **QWEN, sliding_window=131072, tie_word_embeddings=True),
    "qwen2.5": llama("Qwen2", **QWEN, sliding_window=131072, use_mrope=False),
    "qwen3": llama("Qwen3", **QWEN3, tie_word_embeddings=True),
    "qwen3-moe": llama("Qwen3Moe", **QWEN3, model_type="qwen3_moe", decoder_sparse_step=1, mlp_only_layers=[],
                       norm_topk_prob=True, moe_intermediate_size=20, num_experts=4, num_experts_per_tok=2,
                       router_aux_loss_coef=0.001),
    "qwen1.5-moe": llama("Qwen2Moe", **QWEN, model_type="qwen2_moe", decoder_sparse_step=1, norm_topk_prob=False,
                         moe_intermediate_size=20, shared_expert_intermediate_size=24, num_experts=4, num_experts_per_tok=2,
                         sliding_window=32768, output_router_logits=False, router_aux_loss_coef=0.001),
    "phi-3-mini-4k": llama("Phi3", auto_map={"AutoConfig": "configuration_phi3.Phi3Config"}, embd_pdrop=0.0, resid_pdrop=0.0,
                           original_max_position_embeddings=64, pad_token_id=0, rope_scaling=None, rope_theta=1e4,
                           sliding_window=47, attention_dropout=0.0),
    "glm-4.5": llama("Glm4Moe", model_type="glm4_moe", attention_bias=True, attention_dropout=0.0, head_dim=8,
                     moe_intermediate_size=20, routed_scaling_factor=2.5, n_group=1, topk_group=1, n_shared_experts=1,
                     n_routed_experts=4, num_experts_per_tok=2, first_k_dense_replace=1, num_nextn_predict_layers=1,
                     norm_topk_prob=True, partial_rotary_factor=0.5, rope_scaling=None, rope_theta=1000000, use_qk_norm=True,
                     pad_token_id=0, eos_token_id=[1, 2]),
    "gpt-oss-20b": llama("GptOss", model_type="gpt_oss", attention_bias=True, attention_dropout=0.0, experts_per_token=2,
                         head_dim=8, initial_context_length=8, layer_types=["sliding_attention", "full_attention"],
                         num_experts_per_tok=2, num_local_experts=4, output_router_logits=False, pad_token_id=0,
                         rope_scaling=dict(beta_fast=32.0, beta_slow=1.0, factor=4.0, original_max_position_embeddings=8,
                                           rope_type="yarn", truncate=False), rope_theta=150000, router_aux_loss_coef=0.9,
                         sliding_window=6, swiglu_limit=7.0),
    "olmo 2": llama("Olmo2", model_type="olmo2", attention_bias=False, attention_dropout=0.0, rms_norm_eps=1e-6, pad_token_id=1,
                    rope_scaling=None, rope_theta=5e5),
    "pythia": dict(architectures=["GPTNeoXForCausalLM"], bos_token_id=0, eos_token_id=0, hidden_act="gelu", hidden_size=16,
                   initializer_range=0.02, intermediate_size=64, layer_norm_eps=1e-5, max_position_embeddings=64,
                   model_type="gpt_neox", num_attention_heads=2, num_hidden_layers=2, rotary_emb_base=10000, rotary_pct=0.25,
                   tie_word_embeddings=False, torch_dtype="float16", transformers_version="4.24.0", use_cache=True,
                   use_parallel_residual=True, vocab_size=V),
    "gemma": dict({k: v for k, v in llama("Gemma").items() if k != "tie_word_embeddings"}, head_dim=8, hidden_act="gelu",
                  hidden_activation=None, attention_bias=False, attention_dropout=0.0, pad_token_id=0, rope_scaling=None,
                  rope_theta=1e4, rms_norm_eps=1e-6),
    "gemma 2 2b": dict({k: v for k, v in llama("Gemma2").items() if k != "tie_word_embeddings"}, head_dim=8,
                       hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", attention_bias=False,
                       attention_dropout=0.0, attn_logit_softcapping=50.0, final_logit_softcapping=30.0,
                       cache_implementation="hybrid", pad_token_id=0, query_pre_attn_scalar=256, rope_theta=10000.0,
                       rms_norm_eps=1e-6, sliding_window=6),
    "gemma 3 1b": dict({k: v for k, v in llama("Gemma3").items() if k not in ("tie_word_embeddings", "hidden_act")}, head_dim=8,
                       model_type="gemma3_text", hidden_activation="gelu_pytorch_tanh", attention_bias=False, attention_dropout=0.0,
                       attn_logit_softcapping=None, final_logit_softcapping=None, cache_implementation="hybrid", pad_token_id=0,
                       query_pre_attn_scalar=256, rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000,
                       rms_norm_eps=1e-6, sliding_window=6, sliding_window_pattern=2),
    "smollm3": llama("SmolLM3", model_type="smollm3", attention_bias=False, attention_dropout=0.0, max_window_layers=28,
                     mlp_bias=False, no_rope_layer_interval=2, no_rope_layers=[1, 0], pad_token_id=0, pretraining_tp=2,
                     layer_types=["full_attention"] * 2, rope_scaling=None, rope_theta=5e6, sliding_window=None,
                     use_sliding_window=False, rms_norm_eps=1e-6, tie_word_embeddings=True),
    "granite 3": llama("Granite", attention_bias=False, attention_dropout=0.1, attention_multiplier=0.0625, mlp_bias=False,
                       embedding_multiplier=12.0, logits_scaling=16.0, residual_multiplier=0.22, pad_token_id=0,
                       rope_scaling=None, rope_theta=5e6, tie_word_embeddings=True),
    "starcoder2": {k: v for k, v in llama("Starcoder2", model_type="starcoder2", activation_function="gelu",
                                          attention_dropout=0.1, embedding_dropout=0.1, hidden_act="gelu_pytorch_tanh",
                                          mlp_type="default", norm_epsilon=1e-5, norm_type="layer_norm", residual_dropout=0.1,
                                          rope_theta=999999.4, sliding_window=6, use_bias=True).items()
                   if k not in ("rms_norm_eps", "tie_word_embeddings")},
    "nemotron": {k: v for k, v in llama("Nemotron", model_type="nemotron", attention_bias=False, attention_dropout=0.0,
                                        hidden_dropout=0.0, hidden_act="relu2", head_dim=8, mlp_bias=False, norm_eps=1e-5,
                                        partial_rotary_factor=0.5, rope_theta=1e4).items() if k != "rms_norm_eps"},
    "nanochat d32": llama("NanoChat", model_type="nanochat", attention_bias=False, attention_dropout=0.0,
                          final_logit_softcapping=15.0, hidden_act="relu2", num_key_value_heads=4, pad_token_id=1,
                          rms_norm_eps=1e-6, rope_theta=1e4,
                          rope_parameters=dict(rope_theta=1e4, rope_type="default")),
    "deepseek v2 lite": llama("DeepseekV2", **LATENT, model_type="deepseek_v2", norm_topk_prob=False, num_experts_per_tok=2,
                              q_lora_rank=None, scoring_func="softmax", topk_method="greedy", n_group=1, topk_group=1,
                              n_routed_experts=4, rope_scaling=LATENT_YARN, rope_theta=10000),
    "deepseek v2": llama("DeepseekV2", **LATENT, model_type="deepseek_v2", norm_topk_prob=False, num_experts_per_tok=4,
                         q_lora_rank=12, scoring_func="softmax", topk_method="group_limited_greedy", n_group=4, topk_group=3,
                         n_routed_experts=8, rope_scaling=LATENT_YARN, rope_theta=10000),
    "deepseek v3": llama("DeepseekV3", **LATENT, model_type="deepseek_v3", norm_topk_prob=True, num_experts_per_tok=4,
                         q_lora_rank=12, scoring_func="sigmoid", topk_method="noaux_tc", n_group=4, topk_group=2,
                         n_routed_experts=8, num_nextn_predict_layers=1, rope_scaling=LATENT_YARN, rope_theta=10000),
    "qwen3-moe, weights of all": llama("Qwen3Moe", **QWEN3, model_type="qwen3_moe", decoder_sparse_step=1, mlp_only_layers=[],
                                       norm_topk_prob=False, moe_intermediate_size=20, num_experts=4, num_experts_per_tok=2),
}


def published(build):
    auto = transformers.AutoModelForCausalLM
    x = torch.tensor([[5, 9, 2, 44, 7, 60, 1, 1, 30, 12]])
    for name, words in ((name, words) for name, words in PUBLISHED.items() if ONLY in name):
        with tempfile.TemporaryDirectory() as tmp:
            torch.manual_seed(3)
            os.mkdir(f"{tmp}/words")
            with open(f"{tmp}/words/config.json", "w") as f:
                json.dump(words, f)
            model = auto.from_config(transformers.AutoConfig.from_pretrained(f"{tmp}/words"))
            for p in model.parameters():
                p.data.normal_(0, 0.3).add_(float(p.dim() == 1))
            model.to(torch.bfloat16)
            biases_of_experts(model)
            model.save_pretrained(f"{tmp}/theirs", max_shard_size="6KB")
            os.replace(f"{tmp}/words/config.json", f"{tmp}/theirs/config.json")
            quern(build, "checkpoint", "import", f"{tmp}/theirs", "--save", f"{tmp}/ours")
            quern(build, "checkpoint", "export", f"{tmp}/ours", "--output", f"{tmp}/back")
            first, back = (auto.from_pretrained(f"{tmp}/{d}", dtype=torch.float32, **EAGER[name == "gemma 2 2b"]).eval()
                           for d in ("theirs", "back"))
            assert torch.equal(first(x).logits, back(x).logits), name
            want = x
            for _ in range(20):
                want = torch.cat([want, first(want).logits[:, -1:].argmax(-1)], 1)
            got = greedy(build, f"{tmp}/ours", x[0].tolist())
            assert want[0, x.shape[1]:].tolist() == got, (name, want, got)
            print(f"{name}: logits equal, 20 greedy tokens equal")


def check(build):
    prompt = [5, 9, 2, 44]
    with tempfile.TemporaryDirectory() as tmp:
        for name in (name for name in MODELS if ONLY in name):
            quern(build, "checkpoint", "import", f"{OUT}/{name}", "--save", f"{tmp}/{name}")
            quern(build, "checkpoint", "export", f"{tmp}/{name}", "--output", f"{tmp}/{name}-hf", "--max-shard-size", "5K")
            ours, theirs = weights(f"{tmp}/{name}-hf"), weights(f"{OUT}/{name}")
            assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
            assert all(torch.equal(ours[k], theirs[k].float()) for k in ours), name
            first, model = (transformers.AutoModelForCausalLM.from_pretrained(d, dtype=torch.float32, **EAGER[name == "gemma2"])
                            for d in (f"{OUT}/{name}", f"{tmp}/{name}-hf"))
            x = torch.tensor([prompt])
            same = (model(x).logits - first(x).logits).abs().max().item()
            want = model.generate(x, max_new_tokens=20, do_sample=False, pad_token_id=0)[0, len(prompt):].tolist()
            got = greedy(build, f"{tmp}/{name}", prompt)
            assert want == got, (name, want, got)
            assert same == 0, same
            print(f"{name}: weights equal, logits equal, 20 greedy tokens equal")
        # A model that began here.
        for name, flags in (("gpt2", []), ("llama", ["--preset", "llama3-8b", "--num-query-groups", "2", "--ffn-hidden-size",
                                                     "96"])):
            quern(build, "train", *flags, "--mock-data", "--vocab-size", "300", "--num-layers", "2", "--hidden-size", "64",
                  "--num-attention-heads", "4", "--seq-length", "64", "--max-position-embeddings", "64",
                  "--micro-batch-size", "4", "--train-iters", "3", "--lr", "1e-2", "--eval-iters", "0", "--save",
                  f"{tmp}/own-{name}", "-q")
            quern(build, "checkpoint", "export", f"{tmp}/own-{name}", "--output", f"{tmp}/own-{name}-hf", "--dtype", "fp32")
            model = transformers.AutoModelForCausalLM.from_pretrained(f"{tmp}/own-{name}-hf")
            want = model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False, pad_token_id=0)[0, len(prompt):]
            got = greedy(build, f"{tmp}/own-{name}", prompt)
            assert want.tolist() == got, (name, want, got)
            print(f"own {name}: {type(model).__name__}, 20 greedy tokens equal")


if len(sys.argv) == 3:
    {"check": check, "published": published}[sys.argv[1]](sys.argv[2])
else:
    record()
