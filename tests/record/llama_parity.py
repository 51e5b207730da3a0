#!/usr/bin/env python3
"""Records what small Llama-like models in transformers compute: tests/data/train/llama_parity.safetensors.

    pip install torch transformers safetensors numpy;  python tests/record/llama_parity.py

As gpt2_parity.py: float64, weights by a formula, ten steps of clipping and AdamW.  Of the
Llama (grouped queries, heads wider than hidden / heads, Llama 3.1's rotary angles, untied)
logits and every gradient of the first batch are kept; of the others losses and gradient
norms: Qwen2 (biases of q, k, v; tied), Qwen3 (normalised q and k), GPT-NeoX (layer norms, biases,
a quarter of each head turned).
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.numpy import save_file

L, H, HEADS, GROUPS, D, FFN, T, V, B, STEPS = 2, 48, 4, 2, 16, 64, 32, 211, 2, 10
LR, BETAS, EPS, DECAY, CLIP = 1e-3, (0.9, 0.95), 1e-5, 0.1, 0.5
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


def made_up(k, name, shape):
    """As in gpt2_parity.py."""
    x = (np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(k * 1000003)) & np.uint64(0xFFFFFFFF)
    for _ in range(2):
        x = ((x ^ (x >> np.uint64(16))) * np.uint64(0x45D9F3B)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(16)
    u = ((x >> np.uint64(8)).astype(np.float32) * np.float32(2**-24) - np.float32(0.5)) * np.float32(0.4)
    return (u + np.float32("layernorm.weight" in name)).reshape(shape)


def by_kind(kind, name, x):
    """Rows of linear_qkv: GPT-NeoX has them head by head (q, k, v of a head together)."""
    if kind != "neox" or "linear_qkv" not in name:
        return x
    return x.reshape(HEADS, 3, H // HEADS, -1).swapaxes(0, 1).reshape(x.shape)


def by_head(kind, name, x):
    if kind != "neox" or "linear_qkv" not in name:
        return x
    return x.reshape(3, HEADS, H // HEADS, -1).swapaxes(0, 1).reshape(x.shape)


def build(kind):
    """The model, with its weights made up, and its parameters."""
    torch.set_default_dtype(torch.float64)
    cls, config = MODELS[kind]
    model = cls(config).double()
    params = dict(model.named_parameters())
    model.train()
    for k, (name, theirs) in enumerate(names(kind)):
        shape = [sum(params[t].shape[0] for t in theirs), *params[theirs[0]].shape[1:]]
        value = torch.tensor(np.ascontiguousarray(by_head(kind, name, made_up(k, name, shape))), dtype=torch.float64)
        for t, part in zip(theirs, value.split([params[t].shape[0] for t in theirs])):
            params[t].data.copy_(part)
    used = {t for _, theirs in names(kind) for t in theirs}
    assert used == set(params), set(params) ^ used
    return model, params


def record(kind, ids, out):
    model, params = build(kind)
    opt = torch.optim.AdamW([{"params": [x for x in params.values() if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in params.values() if x.dim() == 1], "weight_decay": 0.0}],
                            lr=LR, betas=BETAS, eps=EPS)
    losses, norms = [], []
    f32 = lambda x: np.ascontiguousarray(x.detach().numpy().astype(np.float32))  # noqa: E731
    for s in range(STEPS):
        t = torch.tensor(ids[s])
        logits = model(input_ids=t[:, :-1]).logits
        loss = F.cross_entropy(logits.reshape(-1, V), t[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        if s == 0 and kind == "llama":
            out["llama.logits"] = f32(logits)
            for name, theirs in names(kind):
                out["llama.grad." + name] = np.concatenate([f32(params[x].grad) for x in theirs])
        norms.append(torch.nn.utils.clip_grad_norm_(list(params.values()), CLIP).item())
        losses.append(loss.item())
        opt.step()
    out[kind + ".losses"], out[kind + ".norms"] = np.float32(losses), np.float32(norms)
    print(kind, "losses", losses[0], losses[-1], "norm", norms[0])


def main(path):
    ids = np.random.RandomState(6).randint(0, V, (STEPS, B, T + 1))
    out = {"ids": ids.astype(np.int32)}
    for kind in MODELS:
        record(kind, ids, out)
    save_file(out, path)
    print(path, "torch", torch.__version__, "transformers", transformers.__version__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/llama_parity.safetensors")
