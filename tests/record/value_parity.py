#!/usr/bin/env python3
"""Records what small models with embeddings of values compute: tests/data/train/value_parity.safetensors.

    pip install torch safetensors numpy;  python tests/record/value_parity.py

As attention_parity.py, with logits (before they are bounded) and gradients of the first batch and ten steps.  "values" is a Llama
whose layers all add half a row of a table of their own to their values, as modded-nanogpt began with; "nanochat" has what
nanochat's gpt.py has: a table in the last of every two layers with gates of 12 channels that go up to 3, norms without weights, of
the embeddings too, normalised queries and keys, ReLU squared, bounded logits.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import made_up  # noqa: E402

L, H, HEADS, GROUPS, D, FFN, T, V, B, STEPS, CHANNELS = 2, 48, 4, 2, 16, 64, 32, 211, 2, 10, 12
LR, BETAS, EPS, DECAY, CLIP = 1e-3, (0.9, 0.95), 1e-5, 0.1, 0.5
KINDS = ("values", "nanochat")


def shapes(kind):
    chat = kind == "nanochat"
    s = [("embedding.word_embeddings.weight", (V, H))]
    for i in range(L):
        p = f"decoder.layers.{i}."
        s += [] if chat else [(p + "input_layernorm.weight", (H,))]
        s.append((p + "self_attention.linear_qkv.weight", ((HEADS + 2 * GROUPS) * D, H)))
        if not chat or i % 2 == (L - 1) % 2:
            s.append((p + "self_attention.value_embedding.weight", (V, GROUPS * D)))
        if chat and i % 2 == (L - 1) % 2:
            s.append((p + "self_attention.value_gate.weight", (GROUPS, CHANNELS)))
        s.append((p + "self_attention.linear_proj.weight", (H, HEADS * D)))
        s += [] if chat else [(p + "pre_mlp_layernorm.weight", (H,))]
        s += [(p + "mlp.linear_fc1.weight", (FFN if chat else 2 * FFN, H)), (p + "mlp.linear_fc2.weight", (H, FFN))]
    return s + ([("output_layer.weight", (V, H))] if chat else [("decoder.final_layernorm.weight", (H,))])


def turn(x):
    """Rotary positions of (b, heads, t, D)."""
    angle = torch.arange(T, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    one, two = x.chunk(2, -1)
    return torch.cat([one * angle.cos() - two * angle.sin(), two * angle.cos() + one * angle.sin()], -1)


class Model:
    def __init__(self, kind):
        self.chat = kind == "nanochat"
        self.w = {n: torch.tensor(made_up(k, n, s), dtype=torch.float64, requires_grad=True)
                  for k, (n, s) in enumerate(shapes(kind))}

    def norm(self, x, name=""):
        return F.rms_norm(x, x.shape[-1:], None if self.chat else self.w[name + "layernorm.weight"], 1e-6)

    def attention(self, x, tokens, a):
        b, w = x.shape[0], self.w
        split = lambda z: z.view(b, T, -1, D).transpose(1, 2)  # noqa: E731
        q, k, v = F.linear(x, w[a + "linear_qkv.weight"]).split([HEADS * D, GROUPS * D, GROUPS * D], -1)
        table = w.get(a + "value_embedding.weight")
        if table is not None:
            added = table[tokens]
            if self.chat:
                gate = 3 * torch.sigmoid(F.linear(x[..., :CHANNELS], w[a + "value_gate.weight"]))
                added = (added.view(b, T, GROUPS, D) * gate[..., None]).flatten(2)
            v = v + (added if self.chat else 0.5 * added)
        q, k, v = turn(split(q)), turn(split(k)), split(v)
        if self.chat:
            q, k = self.norm(q), self.norm(k)
        k, v = (z.repeat_interleave(HEADS // GROUPS, 1) for z in (k, v))
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, T, HEADS * D)
        return F.linear(x, w[a + "linear_proj.weight"])

    def logits(self, tokens):
        w = self.w
        h = w["embedding.word_embeddings.weight"][tokens]
        if self.chat:
            h = self.norm(h)
        for i in range(L):
            p = f"decoder.layers.{i}."
            h = h + self.attention(self.norm(h, p + "input_"), tokens, p + "self_attention.")
            x = F.linear(self.norm(h, p + "pre_mlp_"), w[p + "mlp.linear_fc1.weight"])
            x = F.relu(x).square() if self.chat else F.silu(x[..., :FFN]) * x[..., FFN:]
            h = h + F.linear(x, w[p + "mlp.linear_fc2.weight"])
        return F.linear(self.norm(h, "decoder.final_"), w["output_layer.weight" if self.chat else "embedding.word_embeddings.weight"])


def record(kind, ids, out):
    m = Model(kind)
    params = list(m.w.values())
    opt = torch.optim.AdamW([{"params": [x for x in params if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in params if x.dim() < 2], "weight_decay": 0.0}], lr=LR, betas=BETAS, eps=EPS)
    f32 = lambda x: np.ascontiguousarray(x.detach().numpy().astype(np.float32))  # noqa: E731
    losses, norms = [], []
    for s in range(STEPS):
        t = torch.tensor(ids[s])
        logits = m.logits(t[:, :-1])
        loss = F.cross_entropy((15 * torch.tanh(logits / 15) if m.chat else logits).reshape(-1, V), t[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        if s == 0:
            out[kind + ".logits"] = f32(logits)
            for name, x in m.w.items():
                if "layers.0.mlp" not in name and "word_embeddings" not in name and "output" not in name:
                    out[f"{kind}.grad.{name}"] = f32(x.grad)
        norms.append(torch.nn.utils.clip_grad_norm_(params, CLIP).item())
        losses.append(loss.item())
        opt.step()
    out[kind + ".losses"], out[kind + ".norms"] = np.float32(losses), np.float32(norms)
    print(kind, "losses", losses[0], losses[-1], "norm", norms[0])


def main(path):
    ids = np.random.RandomState(19).randint(0, V, (STEPS, B, T + 1))
    out = {"ids": ids.astype(np.int32)}
    for kind in KINDS:
        record(kind, ids, out)
    save_file(out, path)
    print(path, "torch", torch.__version__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/value_parity.safetensors")
