#!/usr/bin/env python3
"""Records what small mixtures of experts compute: tests/data/train/moe_parity.safetensors.

    pip install torch transformers safetensors numpy megatron-core;  python tests/record/moe_parity.py

As gpt2_parity.py: float64, weights by a formula, ten steps of clipping and AdamW.  The auxiliary losses, and the
choice of the second model, are Megatron Core's functions.  "mixtral" is transformers' model (softmax
over the chosen experts); of it logits and every gradient of the first batch are kept.  "gpt" is the GPT of
gpt2_parity.py with experts in its first layer (softmax over all, biases, GELU): losses and gradient norms.  "probs" and
"position" are that one with a capacity of the experts, the second with softmax over the chosen: by Megatron Core's function,
and by one that takes the first tokens (Core's takes whichever torch.topk does of equal numbers).  "qwen2_moe" is transformers'
model with a shared expert and its gate (as Core's SharedExpertMLP), "shared" the same with the gate open: losses and norms.
"""
import os
import sys

import torch
import torch.nn.functional as F
import transformers
from megatron.core.transformer.moe.moe_utils import (apply_router_token_dropping, get_capacity, switch_load_balancing_loss_func,
                                                     topk_routing_with_score_function, z_loss_func)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import (H, HEADS, L, T, V, expert_shapes, f32, forward, loss_of, made_up, main, mixture,  # noqa: E402
                         train, weights)

GROUPS, D, FFN = 2, 16, 16
EXPERTS, TOPK, AUX, Z, CAPACITY, SHARED = 4, 2, 0.05, 0.01, 0.7, 24


def auxiliary(logits):
    """What one layer adds to the loss of a micro-batch; logits (tokens, experts)."""
    scores = torch.softmax(logits, dim=-1)
    tokens = torch.bincount(torch.topk(scores, TOPK, dim=1).indices.flatten(), minlength=EXPERTS)
    return switch_load_balancing_loss_func(scores, tokens, logits.shape[0], TOPK, EXPERTS, AUX) + z_loss_func(logits, Z)


SIZES = dict(hidden_size=H, num_hidden_layers=L, num_attention_heads=HEADS, num_key_value_heads=GROUPS, head_dim=D, vocab_size=V,
             num_experts_per_tok=TOPK, max_position_embeddings=T, rms_norm_eps=1e-6, tie_word_embeddings=False,
             attn_implementation="eager", experts_implementation="eager",
             rope_parameters={"rope_type": "default", "rope_theta": 1e4})


def open_gate(x):
    return torch.full((*x.shape[:-1], 1), torch.inf, dtype=x.dtype)


def theirs(kind):
    if kind == "mixtral":
        return transformers.MixtralForCausalLM(transformers.MixtralConfig(
            **SIZES, intermediate_size=FFN, num_local_experts=EXPERTS)).double()
    model = transformers.Qwen2MoeForCausalLM(transformers.Qwen2MoeConfig(
        **SIZES, moe_intermediate_size=FFN, shared_expert_intermediate_size=SHARED, num_experts=EXPERTS)).double()
    for layer in model.model.layers if kind == "shared" else ():
        del layer.mlp.shared_expert_gate
        layer.mlp.shared_expert_gate = open_gate
    return model


def mixtral(kind):
    """Weights by our names in our order, and what gives logits and the routers' logits."""
    model = theirs(kind)
    p = dict(model.named_parameters())
    names = [("embedding.word_embeddings.weight", [p["model.embed_tokens.weight"]])]
    for i in range(L):
        a, b = f"decoder.layers.{i}.", f"model.layers.{i}."
        names += [(a + "input_layernorm.weight", [p[b + "input_layernorm.weight"]]),
                  (a + "self_attention.linear_qkv.weight", [p[b + f"self_attn.{x}_proj.weight"] for x in "qkv"])]
        if kind != "mixtral":
            names += [(a + "self_attention.linear_qkv.bias", [p[b + f"self_attn.{x}_proj.bias"] for x in "qkv"])]
        names += [(a + "self_attention.linear_proj.weight", [p[b + "self_attn.o_proj.weight"]]),
                  (a + "pre_mlp_layernorm.weight", [p[b + "post_attention_layernorm.weight"]])]
        if kind != "mixtral":
            names += [(a + "mlp.shared_experts.linear_fc1.weight",
                       [p[b + f"mlp.shared_expert.{x}_proj.weight"] for x in ("gate", "up")]),
                      (a + "mlp.shared_experts.linear_fc2.weight", [p[b + "mlp.shared_expert.down_proj.weight"]])]
        names += [(a + "mlp.router.weight", [p[b + "mlp.gate.weight"]])]
        if kind == "qwen2_moe":
            names += [(a + "mlp.shared_experts.gate_weight", [p[b + "mlp.shared_expert_gate.weight"]])]
        for x in range(EXPERTS):
            e = f"{a}mlp.experts.local_experts.{x}."
            names += [(e + "linear_fc1.weight", [(p[b + "mlp.experts.gate_up_proj"], x)]),
                      (e + "linear_fc2.weight", [(p[b + "mlp.experts.down_proj"], x)])]
    names += [("decoder.final_layernorm.weight", [p["model.norm.weight"]]), ("output_layer.weight", [p["lm_head.weight"]])]
    whole = lambda x: x[0].data[x[1]] if isinstance(x, tuple) else x.data  # noqa: E731
    for k, (name, parts) in enumerate(names):
        rows = [whole(x).shape[0] for x in parts]
        value = torch.tensor(made_up(k, name, [sum(rows), *whole(parts[0]).shape[1:]]), dtype=torch.float64)
        for x, v in zip(parts, value.split(rows)):
            whole(x).copy_(v)
    grad = lambda x: x[0].grad[x[1]] if isinstance(x, tuple) else x.grad  # noqa: E731

    def run(tokens):
        out = model(input_ids=tokens, output_router_logits=True)
        return out.logits, out.router_logits

    return p.values(), {n: lambda parts=parts: torch.cat([grad(x) for x in parts]) for n, parts in names}, run


def drop(policy, probs, chosen):
    """Weights without those of tokens beyond an expert's capacity."""
    if policy == "probs":
        return apply_router_token_dropping(probs, chosen, TOPK, CAPACITY, "probs")[0]
    if policy == "position":
        return probs * (chosen.int().cumsum(0) <= get_capacity(len(probs) * TOPK, EXPERTS, CAPACITY))
    return probs


def gpt(policy=""):
    w = weights(expert_shapes(EXPERTS, FFN))

    def run(tokens):
        routers = []

        def first(x):
            logits = F.linear(x, w["decoder.layers.0.mlp.router.weight"]).reshape(-1, EXPERTS)
            probs, chosen = topk_routing_with_score_function(logits, TOPK, use_pre_softmax=policy != "position")
            routers.append(logits)
            return mixture(w, x, drop(policy, probs, chosen))

        return forward(w, tokens, first=first), routers

    return w.values(), {}, run


def record(kind, ids):
    torch.set_default_dtype(torch.float64)
    params, grads, run = mixtral(kind) if kind in ("mixtral", "qwen2_moe", "shared") else gpt(kind.removeprefix("gpt"))
    out = {}

    def step(s):
        t = torch.tensor(ids[s])
        logits, routers = run(t[:, :-1])
        loss = loss_of(logits, t)
        (loss + sum(auxiliary(x) for x in routers)).backward()
        if kind == "mixtral" and s == 0:
            out["logits"] = f32(logits)
            out.update({"grad." + n: f32(g()) for n, g in grads.items()})
        return loss.item()

    return {**train(params, step), **out}


if __name__ == "__main__":
    main("moe_parity", 8, ("mixtral", "gpt", "probs", "position", "qwen2_moe", "shared"), record)
