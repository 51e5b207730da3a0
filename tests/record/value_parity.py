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

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import H, HEADS, L, T, V, f32, loss_of, main, train, turn, weights  # noqa: E402

GROUPS, D, FFN, CHANNELS = 2, 16, 64, 12


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


class Model:
    def __init__(self, kind):
        self.chat = kind == "nanochat"
        self.w = weights(shapes(kind))

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


def record(kind, ids):
    m, out = Model(kind), {}

    def step(s):
        t = torch.tensor(ids[s])
        logits = m.logits(t[:, :-1])
        loss = loss_of(15 * torch.tanh(logits / 15) if m.chat else logits, t)
        loss.backward()
        if s == 0:
            out["logits"] = f32(logits)
            for name, x in m.w.items():
                if "layers.0.mlp" not in name and "word_embeddings" not in name and "output" not in name:
                    out["grad." + name] = f32(x.grad)
        return loss.item()

    return {**train(m.w.values(), step), **out}


if __name__ == "__main__":
    main("value_parity", 19, ("values", "nanochat"), record)
