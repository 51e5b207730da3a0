#!/usr/bin/env python3
"""Records what small models of transformers with other attention compute: tests/data/train/attention_parity.safetensors.

    pip install torch transformers safetensors numpy;  python tests/record/attention_parity.py

As llama_parity.py, with logits and every gradient of the first batch and ten steps: SmolLM3 (every second layer without
rotary angles, the others with a window), Gemma 2 (bounded logits, a scale of its own, windows), Gemma 3 (windows whose rotary
angles have another base), a Mistral whose attention is gpt-oss's (sinks, windows), Qwen3-Next with attention in all layers (a
gate of its output).
"""
import os
import sys

import numpy as np
import torch
import transformers
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.mistral import modeling_mistral

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import H, HEADS, L, main  # noqa: E402
from llama_parity import D, GROUPS, LLAMA, build, trained  # noqa: E402


def with_sinks(config):
    model = transformers.MistralForCausalLM(config)
    for layer in model.model.layers:
        layer.self_attn.sinks = torch.nn.Parameter(torch.zeros(HEADS))
    return model


modeling_mistral.eager_attention_forward = modeling_gpt_oss.eager_attention_forward
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
WINDOW = dict(sliding_window=6, layer_types=["sliding_attention", "full_attention"])
GEMMA = dict(LLAMA, pad_token_id=None, tie_word_embeddings=True, hidden_activation="gelu_pytorch_tanh",
             query_pre_attn_scalar=9, **WINDOW)
MODELS = {
    "smollm3": (transformers.SmolLM3ForCausalLM, transformers.SmolLM3Config(
        **{k: v for k, v in LLAMA.items() if k != "head_dim"}, tie_word_embeddings=True, no_rope_layers=[1, 0],
        use_sliding_window=True, rope_parameters=PLAIN, pad_token_id=None, **WINDOW)),
    "gemma2": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config(
        **GEMMA, attn_logit_softcapping=1.5, final_logit_softcapping=None, rope_parameters=PLAIN)),
    "gemma3": (transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig(
        **GEMMA, rope_parameters={"sliding_attention": dict(PLAIN, rope_theta=100.0),
                                  "full_attention": {"rope_type": "linear", "rope_theta": 1e4, "factor": 8.0}})),
    "sinks": (with_sinks, transformers.MistralConfig(
        **LLAMA, tie_word_embeddings=True, sliding_window=6, rope_parameters=PLAIN)),
    "gate": (transformers.Qwen3NextForCausalLM, transformers.Qwen3NextConfig(
        **LLAMA, tie_word_embeddings=True, layer_types=["full_attention"] * L, num_experts=0, mlp_only_layers=list(range(L)),
        rope_parameters=dict(PLAIN, partial_rotary_factor=0.25))),
}


def names(kind):
    """As in llama_parity.py."""
    out = [("embedding.word_embeddings.weight", ["model.embed_tokens.weight"])]
    both = kind.startswith("gemma")
    for i in range(L):
        p, q = f"decoder.layers.{i}.", f"model.layers.{i}."
        out += [(p + "input_layernorm.weight", [q + "input_layernorm.weight"]),
                (p + "self_attention.linear_qkv.weight", [q + f"self_attn.{x}_proj.weight" for x in "qkv"])]
        if kind in ("gemma3", "gate"):
            out += [(p + f"self_attention.{x}_layernorm.weight", [q + f"self_attn.{x}_norm.weight"]) for x in "qk"]
        if kind == "sinks":
            out.append((p + "self_attention.core_attention.softmax_offset", [q + "self_attn.sinks"]))
        out.append((p + "self_attention.linear_proj.weight", [q + "self_attn.o_proj.weight"]))
        if both:
            out.append((p + "self_attention.linear_proj.post_layernorm.weight", [q + "post_attention_layernorm.weight"]))
        norm = "pre_feedforward_layernorm" if both else "post_attention_layernorm"
        out += [(p + "pre_mlp_layernorm.weight", [q + norm + ".weight"]),
                (p + "mlp.linear_fc1.weight", [q + "mlp.gate_proj.weight", q + "mlp.up_proj.weight"]),
                (p + "mlp.linear_fc2.weight", [q + "mlp.down_proj.weight"])]
        if both:
            out.append((p + "mlp.linear_fc2.post_layernorm.weight", [q + "post_feedforward_layernorm.weight"]))
    return out + [("decoder.final_layernorm.weight", ["model.norm.weight"])]


def theirs_of(kind, name, x):
    """Rows of linear_qkv: Qwen3-Next has each head's gate behind its query."""
    if kind != "gate" or "linear_qkv" not in name:
        return x
    q, k, v, g = np.split(x, np.cumsum([HEADS * D, GROUPS * D, GROUPS * D]))
    return np.concatenate([np.stack([q.reshape(HEADS, D, H), g.reshape(HEADS, D, H)], 1).reshape(-1, H), k, v])


def ours_of(kind, name, x):
    if kind != "gate" or "linear_qkv" not in name:
        return x
    q, k, v = np.split(x, np.cumsum([2 * HEADS * D, GROUPS * D]))
    q = q.reshape(HEADS, 2, D, H)
    return np.concatenate([q[:, 0].reshape(-1, H), k, v, q[:, 1].reshape(-1, H)])


def record(kind, ids):
    kept = [x for x in names(kind) if "layers.1.mlp" not in x[0] and "embeddings" not in x[0]]
    return trained(*build(kind, MODELS, names, theirs_of), ids, kept, lambda name, x: ours_of(kind, name, x))


if __name__ == "__main__":
    main("attention_parity", 9, MODELS, record)
