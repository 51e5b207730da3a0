#!/usr/bin/env python3
"""Records what a small GPT-2 in PyTorch computes: tests/data/train/gpt2_parity.safetensors.

    pip install torch safetensors numpy;  python tests/record/gpt2_parity.py

Everything runs in float64 and is stored as float32.  The weights come from a formula
that tests/unit/parity_test.c repeats, so that they need not be stored.  Recorded with
PyTorch 2 on the CPU: logits, loss and every gradient of the first batch; then ten steps
of clip_grad_norm_ and torch.optim.AdamW: their losses, gradient norms, and the weights
after the last.
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


def forward(w, tokens, positions=slice(T), mask=None):
    """mask (b, 1, t, t): where it is False a query sees no key; None: causal."""
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
        x = F.gelu(F.linear(x, p("mlp.linear_fc1.weight"), p("mlp.linear_fc1.bias")), approximate="tanh")
        h = h + F.linear(x, p("mlp.linear_fc2.weight"), p("mlp.linear_fc2.bias"))
    h = F.layer_norm(h, (H,), w["decoder.final_layernorm.weight"], w["decoder.final_layernorm.bias"], 1e-5)
    return h @ w["embedding.word_embeddings.weight"].T


def main(path):
    w = {n: torch.tensor(made_up(k, n, s), dtype=torch.float64, requires_grad=True)
         for k, (n, s) in enumerate(shapes())}
    rng = np.random.RandomState(5)
    ids = rng.randint(0, V, (STEPS, B, T + 1))
    out = {"ids": ids.astype(np.int32)}
    f32 = lambda x: np.ascontiguousarray(x.detach().numpy().astype(np.float32))  # noqa: E731
    opt = torch.optim.AdamW([{"params": [x for x in w.values() if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in w.values() if x.dim() == 1], "weight_decay": 0.0}],
                            lr=LR, betas=BETAS, eps=EPS)
    losses, norms = [], []
    for s in range(STEPS):
        t = torch.tensor(ids[s])
        logits = forward(w, t[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, V), t[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        if s == 0:
            out["logits"] = f32(logits)
            out.update({"grad." + n: f32(x.grad) for n, x in w.items()})
        norms.append(torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP).item())
        losses.append(loss.item())
        opt.step()
    out.update({"after." + n: f32(x) for n, x in w.items()})
    out["losses"], out["norms"] = np.float32(losses), np.float32(norms)
    save_file(out, path)
    print(path, "torch", torch.__version__, "losses", losses[0], losses[-1], "norm", norms[0])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/gpt2_parity.safetensors")
