#!/usr/bin/env python3
"""Records what small Llama-like models in transformers compute: tests/data/train/llama_parity.safetensors.

    pip install torch transformers safetensors numpy;  python tests/record/llama_parity.py

As gpt2_parity.py: float64, weights by a formula, ten steps of clipping and AdamW.  Of the
Llama (grouped queries, heads wider than hidden / heads, Llama 3.1's rotary angles, untied)
logits and every gradient of the first batch are kept; of the others losses and gradient
norms: Qwen2 (biases of q, k, v; tied), Qwen3 (normalised q and k), GPT-NeoX (layer norms, biases,
a quarter of each head turned).
"""
import os
import sys

import numpy as np
import torch
import transformers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import H, HEADS, L, T, V, f32, loss_of, made_up, main, train  # noqa: E402

GROUPS, D, FFN = 2, 16, 64
ANY = dict(hidden_size=H, num_hidden_layers=L, num_attention_heads=HEADS, vocab_size=V, max_position_embeddings=T,
           attn_implementation="eager")
LLAMA = dict(ANY, num_key_value_heads=GROUPS, head_dim=D, intermediate_size=FFN, rms_norm_eps=1e-6)
SCALED = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8}
MODELS = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(
        **LLAMA, tie_word_embeddings=False, rope_parameters=SCALED)),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(
        **{k: v for k, v in LLAMA.items() if k != "head_dim"}, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6})),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(
        **LLAMA, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e4})),
    "neox": (transformers.GPTNeoXForCausalLM, transformers.GPTNeoXConfig(
        **ANY, intermediate_size=4 * H, hidden_act="gelu_new", use_parallel_residual=False, layer_norm_eps=1e-5,
        tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})),
}


def names(kind):
    """Our names in our order, each with those of transformers whose rows it joins."""
    neox = kind == "neox"
    top = "gpt_neox." if neox else "model."
    out = [("embedding.word_embeddings.weight", [top + ("embed_in" if neox else "embed_tokens") + ".weight"])]
    for i in range(L):
        p, q = f"decoder.layers.{i}.", f"{top}layers.{i}."
        if neox:
            for ours, theirs in (("input_layernorm", "input_layernorm"), ("self_attention.linear_qkv", "attention.query_key_value"),
                                 ("self_attention.linear_proj", "attention.dense"),
                                 ("pre_mlp_layernorm", "post_attention_layernorm"),
                                 ("mlp.linear_fc1", "mlp.dense_h_to_4h"), ("mlp.linear_fc2", "mlp.dense_4h_to_h")):
                out += [(p + ours + s, [q + theirs + s]) for s in (".weight", ".bias")]
            continue
        out.append((p + "input_layernorm.weight", [q + "input_layernorm.weight"]))
        for s in (".weight", ".bias") if kind == "qwen2" else (".weight",):
            out.append((p + "self_attention.linear_qkv" + s, [q + f"self_attn.{x}_proj{s}" for x in "qkv"]))
        if kind == "qwen3":
            out += [(p + f"self_attention.{x}_layernorm.weight", [q + f"self_attn.{x}_norm.weight"]) for x in "qk"]
        out += [(p + "self_attention.linear_proj.weight", [q + "self_attn.o_proj.weight"]),
                (p + "pre_mlp_layernorm.weight", [q + "post_attention_layernorm.weight"]),
                (p + "mlp.linear_fc1.weight", [q + "mlp.gate_proj.weight", q + "mlp.up_proj.weight"]),
                (p + "mlp.linear_fc2.weight", [q + "mlp.down_proj.weight"])]
    out += [("decoder.final_layernorm" + s, [top + ("final_layer_norm" if neox else "norm") + s])
            for s in ((".weight", ".bias") if neox else (".weight",))]
    if kind in ("llama", "neox"):
        out.append(("output_layer.weight", ["lm_head.weight"]))
    return out


def by_head(kind, name, x):
    """Rows of linear_qkv: GPT-NeoX has them head by head (q, k, v of a head together)."""
    if kind != "neox" or "linear_qkv" not in name:
        return x
    return x.reshape(3, HEADS, H // HEADS, -1).swapaxes(0, 1).reshape(x.shape)


def build(kind, models=MODELS, names=names, theirs_of=by_head):
    """The model, with its weights made up, and its parameters."""
    torch.set_default_dtype(torch.float64)
    cls, config = models[kind]
    model = cls(config).double()
    params = dict(model.named_parameters())
    model.train()
    for k, (name, theirs) in enumerate(names(kind)):
        shape = [sum(params[t].shape[0] for t in theirs), *params[theirs[0]].shape[1:]]
        value = torch.tensor(np.ascontiguousarray(theirs_of(kind, name, made_up(k, name, shape))), dtype=torch.float64)
        for t, part in zip(theirs, value.split([params[t].shape[0] for t in theirs])):
            params[t].data.copy_(part)
    used = {t for _, theirs in names(kind) for t in theirs}
    assert used == set(params), set(params) ^ used
    return model, params


def trained(model, params, ids, kept, ours_of=lambda name, x: x):
    """Ten steps; of the first batch logits and the gradients of kept, some of names(kind)."""
    out = {}

    def step(s):
        t = torch.tensor(ids[s])
        logits = model(input_ids=t[:, :-1]).logits
        loss = loss_of(logits, t)
        loss.backward()
        if s == 0 and kept:
            out["logits"] = f32(logits)
            out.update({"grad." + name: np.ascontiguousarray(ours_of(name, np.concatenate([f32(params[x].grad) for x in theirs])))
                        for name, theirs in kept})
        return loss.item()

    return {**train(params.values(), step), **out}


def record(kind, ids):
    return trained(*build(kind), ids, names(kind) if kind == "llama" else [])


if __name__ == "__main__":
    main("llama_parity", 6, MODELS, record)
