#!/usr/bin/env python3
"""Records what QK-clip does to small models: tests/data/train/qk_clip.safetensors.

    pip install torch safetensors numpy;  python tests/record/qk_clip.py

Written from the paper (arXiv:2507.20534, 2.1), where it leaves something open as in Megatron Core: heads that share a key are
scaled by the largest logit of them all.  "groups": attention with two heads to a key and value, and biases, which are scaled too;
"latent": attention with latents, alpha 0.3.  Six steps of two micro-batches, clipping and AdamW in float64: losses, the largest
logit of each head of each layer, and in the end what makes queries and keys in the second layer.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import B, HEADS, L, f32, loss_of, main, made_up, train, turn  # noqa: E402

V, H, GROUPS, D, FFN, T, STEPS = 61, 32, 2, 8, 48, 16, 6
Q_RANK, KV_RANK, FLAT, TURN, VALUE = 10, 12, 6, 4, 5
KINDS = {"groups": (3.0, 0.5), "latent": (2.6, 0.3)}  # threshold, alpha
KEPT = {"groups": ["linear_qkv.weight", "linear_qkv.bias"], "latent": ["linear_q_up_proj.weight", "linear_kv_up_proj.weight"]}


def shapes(kind):
    s = [("embedding.word_embeddings.weight", (V, H))]
    for i in range(L):
        p = f"decoder.layers.{i}."
        a = p + "self_attention."
        s.append((p + "input_layernorm.weight", (H,)))
        if kind == "groups":
            wide = (HEADS + 2 * GROUPS) * D
            s += [(a + "linear_qkv.weight", (wide, H)), (a + "linear_qkv.bias", (wide,))]
        else:
            s += [(a + "linear_q_down_proj.weight", (Q_RANK, H)), (a + "linear_q_up_proj.weight", (HEADS * (FLAT + TURN), Q_RANK)),
                  (a + "linear_kv_down_proj.weight", (KV_RANK + TURN, H)),
                  (a + "linear_kv_up_proj.weight", (HEADS * (FLAT + VALUE), KV_RANK)),
                  (a + "q_layernorm.weight", (Q_RANK,)), (a + "kv_layernorm.weight", (KV_RANK,))]
        s += [(a + "linear_proj.weight", (H, HEADS * (D if kind == "groups" else VALUE))), (p + "pre_mlp_layernorm.weight", (H,)),
              (p + "mlp.linear_fc1.weight", (2 * FFN, H)), (p + "mlp.linear_fc2.weight", (H, FFN))]
    return s + [("decoder.final_layernorm.weight", (H,))]


class Model:
    def __init__(self, kind):
        self.kind, (self.threshold, self.alpha) = kind, KINDS[kind]
        self.w = {n: torch.tensor(made_up(k, n, s), dtype=torch.float64) * (5 if n.endswith(("q_up_proj.weight", "qkv.bias")) else 2)
                  for k, (n, s) in enumerate(shapes(kind))}
        for x in self.w.values():
            x.requires_grad_()
        self.most = torch.zeros(L, HEADS)

    def norm(self, x, name):
        return F.rms_norm(x, x.shape[-1:], self.w[name + ".weight"], 1e-6)

    def heads(self, x, a):
        """Queries, keys and values, (b, heads, t, width)."""
        b, w = x.shape[0], self.w
        split = lambda z, n: z.view(b, T, n, -1).transpose(1, 2)  # noqa: E731
        if self.kind == "groups":
            z = F.linear(x, w[a + "linear_qkv.weight"], w[a + "linear_qkv.bias"]).split([HEADS * D, GROUPS * D, GROUPS * D], -1)
            q, k, v = split(z[0], HEADS), split(z[1], GROUPS), split(z[2], GROUPS)
            return turn(q), *(y.repeat_interleave(HEADS // GROUPS, 1) for y in (turn(k), v))
        q = split(F.linear(self.norm(F.linear(x, w[a + "linear_q_down_proj.weight"]), a + "q_layernorm"),
                           w[a + "linear_q_up_proj.weight"]), HEADS)
        latent, key = F.linear(x, w[a + "linear_kv_down_proj.weight"]).split([KV_RANK, TURN], -1)
        k, v = split(F.linear(self.norm(latent, a + "kv_layernorm"), w[a + "linear_kv_up_proj.weight"]), HEADS).split([FLAT, VALUE], -1)
        key = turn(split(key, 1)).expand(-1, HEADS, -1, -1)
        return torch.cat([q[..., :FLAT], turn(q[..., FLAT:])], -1), torch.cat([k, key], -1), v

    def loss(self, ids):
        w = self.w
        h = w["embedding.word_embeddings.weight"][ids[:, :-1]]
        for i in range(L):
            p = f"decoder.layers.{i}."
            q, k, v = self.heads(self.norm(h, p + "input_layernorm"), p + "self_attention.")
            s = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
            s = s.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
            self.most[i] = torch.maximum(self.most[i], s.detach().amax((0, 2, 3)))
            x = (s.softmax(-1) @ v).transpose(1, 2).reshape(*h.shape[:2], -1)
            h = h + F.linear(x, w[p + "self_attention.linear_proj.weight"])
            gate, up = F.linear(self.norm(h, p + "pre_mlp_layernorm"), w[p + "mlp.linear_fc1.weight"]).chunk(2, -1)
            h = h + F.linear(F.silu(gate) * up, w[p + "mlp.linear_fc2.weight"])
        logits = self.norm(h, "decoder.final_layernorm") @ w["embedding.word_embeddings.weight"].T
        return loss_of(logits, ids)

    @torch.no_grad()
    def clip(self):
        for i in range(L):
            a = f"decoder.layers.{i}.self_attention."
            for h in range(HEADS):
                if self.kind == "latent":
                    eta = min(1.0, self.threshold / self.most[i, h].item())
                    q = self.w[a + "linear_q_up_proj.weight"].view(HEADS, FLAT + TURN, Q_RANK)
                    q[h, :FLAT] *= eta ** self.alpha
                    q[h, FLAT:] *= eta
                    self.w[a + "linear_kv_up_proj.weight"].view(HEADS, FLAT + VALUE, KV_RANK)[h, :FLAT] *= eta ** (1 - self.alpha)
                    continue
                each = HEADS // GROUPS
                g = h // each
                eta = min(1.0, self.threshold / self.most[i, g * each:(g + 1) * each].max().item())
                for name in ("linear_qkv.weight", "linear_qkv.bias"):
                    rows = self.w[a + name].view(HEADS + 2 * GROUPS, D, -1)
                    rows[h] *= eta ** self.alpha
                    if h % each == 0:
                        rows[HEADS + g] *= eta ** (1 - self.alpha)


def record(kind, ids):
    m = Model(kind)
    most = []

    def step(s):
        m.most.zero_()
        total = 0.0
        for sample in torch.tensor(ids[s]).split(1):
            loss = m.loss(sample) / B
            loss.backward()
            total += loss.item()
        most.append(m.most.numpy().copy())
        return total

    losses = train(m.w.values(), step, STEPS, m.clip)["losses"]
    print("largest logits", most[0].round(2).tolist(), most[-1].round(2).tolist(), "above",
          [(x > m.threshold).sum().item() for x in most])
    return {"losses": losses, "most": np.float32(most),
            **{n: f32(m.w[f"decoder.layers.1.self_attention.{n}"]) for n in KEPT[kind]}}


if __name__ == "__main__":
    main("qk_clip", 17, KINDS, record, (STEPS, B, T + 1), V)
