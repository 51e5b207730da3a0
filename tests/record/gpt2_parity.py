#!/usr/bin/env python3
"""Records what a small GPT-2 in PyTorch computes: tests/data/train/gpt2_parity.safetensors.

    pip install torch safetensors numpy;  python tests/record/gpt2_parity.py

Everything runs in float64 and is stored as float32.  The weights come from a formula
that tests/unit/parity_test.c repeats, so that they need not be stored.  Recorded with
PyTorch 2 on the CPU: logits, loss and every gradient of the first batch; then ten steps
of clip_grad_norm_ and torch.optim.AdamW: their losses, gradient norms, and the weights
after the last.  The scripts beside it that record other models take from here what is not their own.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

L, H, HEADS, T, V, B, STEPS = 2, 48, 4, 32, 211, 2, 10
LR, BETAS, EPS, DECAY, CLIP = 1e-3, (0.9, 0.95), 1e-5, 0.1, 0.5


def shapes():
    s = [("embedding.word_embeddings.weight", (V, H)), ("embedding.position_embeddings.weight", (T, H))]
    for i in range(L):
        p = f"decoder.layers.{i}."
        s += [(p + "input_layernorm.weight", (H,)), (p + "input_layernorm.bias", (H,)),
              (p + "self_attention.linear_qkv.weight", (3 * H, H)), (p + "self_attention.linear_qkv.bias", (3 * H,)),
              (p + "self_attention.linear_proj.weight", (H, H)), (p + "self_attention.linear_proj.bias", (H,)),
              (p + "pre_mlp_layernorm.weight", (H,)), (p + "pre_mlp_layernorm.bias", (H,)),
              (p + "mlp.linear_fc1.weight", (4 * H, H)), (p + "mlp.linear_fc1.bias", (4 * H,)),
              (p + "mlp.linear_fc2.weight", (H, 4 * H)), (p + "mlp.linear_fc2.bias", (H,))]
    return s + [("decoder.final_layernorm.weight", (H,)), ("decoder.final_layernorm.bias", (H,))]


def made_up(k, name, shape):
    """Element i of tensor k: a 32-bit mix of (k, i), scaled to +-0.2; norms' weights 1 more."""
    x = (np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(k * 1000003)) & np.uint64(0xFFFFFFFF)
    for _ in range(2):
        x = ((x ^ (x >> np.uint64(16))) * np.uint64(0x45D9F3B)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(16)
    u = ((x >> np.uint64(8)).astype(np.float32) * np.float32(2**-24) - np.float32(0.5)) * np.float32(0.4)
    return (u + np.float32("layernorm.weight" in name)).reshape(shape)


def weights(shapes, dtype=torch.float64):
    """Parameters by name, of (name, shape)."""
    return {n: torch.tensor(made_up(k, n, s), dtype=dtype, requires_grad=True) for k, (n, s) in enumerate(shapes)}


def mlp(w, x, before):
    x = F.gelu(F.linear(x, w[before + "linear_fc1.weight"], w[before + "linear_fc1.bias"]), approximate="tanh")
    return F.linear(x, w[before + "linear_fc2.weight"], w[before + "linear_fc2.bias"])


def forward(w, tokens, positions=slice(T), mask=None, first=None):
    """mask (b, 1, t, t): where it is False a query sees no key; None: causal.  first(x): in place of the first layer's MLP."""
    h = w["embedding.word_embeddings.weight"][tokens] + w["embedding.position_embeddings.weight"][positions]
    b, t = tokens.shape
    for i in range(L):
        p = lambda n: w[f"decoder.layers.{i}.{n}"]  # noqa: E731
        x = F.layer_norm(h, (H,), p("input_layernorm.weight"), p("input_layernorm.bias"), 1e-5)
        q, k, v = F.linear(x, p("self_attention.linear_qkv.weight"), p("self_attention.linear_qkv.bias")).split(H, 2)
        q, k, v = (z.view(b, t, HEADS, H // HEADS).transpose(1, 2) for z in (q, k, v))
        x = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None).transpose(1, 2).reshape(b, t, H)
        h = h + F.linear(x, p("self_attention.linear_proj.weight"), p("self_attention.linear_proj.bias"))
        x = F.layer_norm(h, (H,), p("pre_mlp_layernorm.weight"), p("pre_mlp_layernorm.bias"), 1e-5)
        h = h + (first(x) if first and i == 0 else mlp(w, x, f"decoder.layers.{i}.mlp."))
    h = F.layer_norm(h, (H,), w["decoder.final_layernorm.weight"], w["decoder.final_layernorm.bias"], 1e-5)
    return h @ w["embedding.word_embeddings.weight"].T


# ---- with experts in the first layer ----

def expert_shapes(experts, ffn):
    out = []
    for name, shape in shapes():
        if "layers.0.mlp" not in name:
            out.append((name, shape))
        elif "linear_fc1.weight" in name:
            out.append(("decoder.layers.0.mlp.router.weight", (experts, H)))
            for x in range(experts):
                e = f"decoder.layers.0.mlp.experts.local_experts.{x}."
                out += [(e + "linear_fc1.weight", (ffn, H)), (e + "linear_fc1.bias", (ffn,)),
                        (e + "linear_fc2.weight", (H, ffn)), (e + "linear_fc2.bias", (H,))]
    return out


def mixture(w, x, share):
    """What experts make of x (b, t, H), times share (b t, experts)."""
    return sum(share[:, e].view(*x.shape[:2], 1) * mlp(w, x, f"decoder.layers.0.mlp.experts.local_experts.{e}.")
               for e in range(share.shape[1]))


# ---- for other models ----

def turn(x):
    """Rotary positions of (b, heads, t, width)."""
    t, d = x.shape[-2:]
    angle = torch.arange(t, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    one, two = x.chunk(2, -1)
    return torch.cat([one * angle.cos() - two * angle.sin(), two * angle.cos() + one * angle.sin()], -1)


# ---- training ----

def f32(x):
    return np.ascontiguousarray(x.detach().numpy().astype(np.float32))


def loss_of(logits, t):
    """Of ids t (b, T + 1), from the logits of all but the last."""
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), t[:, 1:].reshape(-1))


def groups(params, decay=DECAY):
    """For an optimizer: what is no vector decays."""
    params = list(params)
    return [{"params": [x for x in params if x.dim() > 1], "weight_decay": decay},
            {"params": [x for x in params if x.dim() < 2], "weight_decay": 0.0}]


def train(params, step, steps=STEPS, after=lambda: None):
    """Steps of clipping and AdamW, each from the gradients that step(s) leaves, whose loss it gives; after(): behind each."""
    params = list(params)
    opt = torch.optim.AdamW(groups(params), lr=LR, betas=BETAS, eps=EPS)
    losses, norms = [], []
    for s in range(steps):
        opt.zero_grad()
        losses.append(step(s))
        norms.append(torch.nn.utils.clip_grad_norm_(params, CLIP).item())
        opt.step()
        after()
    return {"losses": np.float32(losses), "norms": np.float32(norms)}


def main(name, seed, kinds, record, shape=(STEPS, B, T + 1), vocab=V):
    """Writes NAME.safetensors, or the file that is named: ids, and what record(kind, ids) gives, by kind."""
    path = sys.argv[1] if len(sys.argv) > 1 else f"tests/data/train/{name}.safetensors"
    ids = np.random.RandomState(seed).randint(0, vocab, shape)
    out = {"ids": ids.astype(np.int32)}
    for kind in kinds:
        made = record(kind, ids)
        out.update({f"{kind}.{n}" if kind else n: x for n, x in made.items()})
        if "losses" in made:
            print(kind or name, "losses", *made["losses"][[0, -1]])
    save_file(out, path)
    print(path, "torch", torch.__version__)


def record(_, ids):
    w, out = weights(shapes()), {}

    def step(s):
        t = torch.tensor(ids[s])
        logits = forward(w, t[:, :-1])
        loss = loss_of(logits, t)
        loss.backward()
        if s == 0:
            out["logits"] = f32(logits)
            out.update({"grad." + n: f32(x.grad) for n, x in w.items()})
        return loss.item()

    out.update(train(w.values(), step))
    return {**out, **{"after." + n: f32(x) for n, x in w.items()}}


if __name__ == "__main__":
    main("gpt2_parity", 5, [""], record)
