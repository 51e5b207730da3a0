#!/usr/bin/env python3
"""Records what small models that predict tokens behind the next one compute: tests/data/train/mtp_parity.safetensors.

    pip install torch safetensors numpy;  python tests/record/mtp_parity.py

Written from the paper (arXiv:2412.19437, 2.2), with what it leaves open as in Megatron Core: depths go on from what the output
layer takes, behind the norm; the embedding stands before the stream in eh_proj's input; each depth's mean loss counts factor /
depths.  Ten steps of clipping and AdamW as in gpt2_parity.py, in float64: losses of the next token, of each depth, and gradient
norms.  "gpt" is the GPT of gpt2_parity.py with two depths; "llama" has RMS norms,
rotary positions, groups of queries, a gated MLP and an output layer of its own, and one depth.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import H, HEADS, L, T, V, loss_of, main, train, turn, weights  # noqa: E402
from gpt2_parity import shapes as gpt_shapes  # noqa: E402

DEPTHS, FACTOR, D, GROUPS, FFN = {"gpt": 2, "llama": 1}, 0.3, 16, 2, 64


def llama_layer(before):
    return [(before + "input_layernorm.weight", (H,)), (before + "self_attention.linear_qkv.weight", ((HEADS + 2 * GROUPS) * D, H)),
            (before + "self_attention.linear_proj.weight", (H, HEADS * D)), (before + "pre_mlp_layernorm.weight", (H,)),
            (before + "mlp.linear_fc1.weight", (2 * FFN, H)), (before + "mlp.linear_fc2.weight", (H, FFN))]


def shapes(kind):
    gpt = kind == "gpt"
    layer = [(n.split("layers.0.")[1], s) for n, s in gpt_shapes() if "layers.0." in n] if gpt else llama_layer("")
    s = [(n, x) for n, x in gpt_shapes() if n.startswith("embedding.word") or (gpt and n.startswith("embedding."))]
    for i in range(L):
        s += [(f"decoder.layers.{i}." + n, x) for n, x in layer]
    for k in range(DEPTHS[kind]):
        p = f"mtp.layers.{k}."
        for norm in ("enorm", "hnorm", "final_layernorm"):
            s += [(p + norm + ".weight", (H,))] + ([(p + norm + ".bias", (H,))] if gpt else [])
        s += [(p + "eh_proj.weight", (H, 2 * H))] + [(p + "transformer_layer." + n, x) for n, x in layer]
    s += [("decoder.final_layernorm.weight", (H,))] + ([("decoder.final_layernorm.bias", (H,))] if gpt else [])
    return s + ([] if gpt else [("output_layer.weight", (V, H))])


class Model:
    def __init__(self, kind):
        self.kind, self.gpt = kind, kind == "gpt"
        self.w = weights(shapes(kind))

    def norm(self, x, name):
        if self.gpt:
            return F.layer_norm(x, (H,), self.w[name + ".weight"], self.w[name + ".bias"], 1e-5)
        return F.rms_norm(x, (H,), self.w[name + ".weight"], 1e-6)

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w.get(name + ".bias"))

    def layer(self, h, p):
        b, t, d, groups = *h.shape[:2], H // HEADS if self.gpt else D, HEADS if self.gpt else GROUPS
        x = self.linear(self.norm(h, p + "input_layernorm"), p + "self_attention.linear_qkv")
        q, k, v = (z.view(b, t, -1, d).transpose(1, 2) for z in x.split([HEADS * d, groups * d, groups * d], 2))
        if not self.gpt:
            q, k = turn(q), turn(k)
        k, v = (z.repeat_interleave(HEADS // groups, 1) for z in (k, v))
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, HEADS * d)
        h = h + self.linear(x, p + "self_attention.linear_proj")
        x = self.linear(self.norm(h, p + "pre_mlp_layernorm"), p + "mlp.linear_fc1")
        if self.gpt:
            x = F.gelu(x, approximate="tanh")
        else:
            x = F.silu(x[..., :FFN]) * x[..., FFN:]
        return h + self.linear(x, p + "mlp.linear_fc2")

    def embed(self, tokens, positions):
        h = self.w["embedding.word_embeddings.weight"][tokens]
        return h + self.w["embedding.position_embeddings.weight"][positions] if self.gpt else h

    def logits(self, h):
        return h @ self.w["embedding.word_embeddings.weight" if self.gpt else "output_layer.weight"].T

    def losses(self, ids):
        """The mean losses of the next token and of each depth."""
        tokens = ids[:, :-1]
        h = self.embed(tokens, torch.arange(T))
        for i in range(L):
            h = self.layer(h, f"decoder.layers.{i}.")
        h = self.norm(h, "decoder.final_layernorm")
        losses = [loss_of(self.logits(h), ids)]
        for k in range(1, DEPTHS[self.kind] + 1):
            p = f"mtp.layers.{k - 1}."
            further = F.pad(tokens[:, k:], (0, k))
            positions = F.pad(torch.arange(k, T), (0, k))
            x = torch.cat([self.norm(self.embed(further, positions), p + "enorm"), self.norm(h, p + "hnorm")], -1)
            h = self.norm(self.layer(self.linear(x, p + "eh_proj"), p + "transformer_layer."), p + "final_layernorm")
            losses.append(loss_of(self.logits(h)[:, :T - k], ids[:, k:]))
        return losses


def record(kind, ids):
    m = Model(kind)
    further = []

    def step(s):
        each = m.losses(torch.tensor(ids[s]))
        (each[0] + FACTOR / DEPTHS[kind] * sum(each[1:])).backward()
        further.append([x.item() for x in each[1:]])
        return each[0].item()

    out = train(m.w.values(), step)
    return {**out, "further": np.float32(further)}


if __name__ == "__main__":
    main("mtp_parity", 13, DEPTHS, record)
