#!/usr/bin/env python3
"""Records what small mixtures of experts with other routers compute: tests/data/train/router_parity.safetensors.

    pip install torch transformers safetensors numpy;  python tests/record/router_parity.py

The GPT of gpt2_parity.py with experts in its first layer, by ten steps of clipping and AdamW as there: losses and gradient
norms.  Choice and weights are transformers': "sigmoid" has GLM-4.5's router, "groups" DeepSeek-V3's with its groups of
experts, and "v3" that with its bias too, which moves after each step by the sign of the mean load less the load
(arXiv:2408.15664) and is kept, and with the auxiliary loss of each sequence by itself (arXiv:2412.19437, 2.1.2).
"sequences" is a softmax over all with that loss.  "global" takes each sequence as a micro-batch: its loss is of how often experts
were chosen in the step so far, on average over micro-batches (arXiv:2501.11873, with the buffer of its section 3), as Megatron
Core's global_aux_loss with one data-parallel rank.  "choice" and "weights" are what DeepSeek-V3's router makes of "logits" with
a bias.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeTopkRouter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import B, H, expert_shapes, forward, loss_of, main, mixture, train, weights  # noqa: E402

FFN, AUX, Z, RATE, SCALE = 16, 0.05, 0.01, 0.02, 2.5
# experts, topk, groups, of which so many
SIZES = {"sigmoid": (4, 2, 1, 1), "sequences": (4, 2, 1, 1), "global": (4, 2, 1, 1), "groups": (12, 4, 4, 2), "v3": (12, 4, 4, 2)}


def router_of(kind):
    """Logits, weights and choice of (weight, bias, rows)."""
    experts, topk, groups, of = SIZES[kind]
    sizes = dict(num_experts_per_tok=topk, hidden_size=H, n_group=groups, topk_group=of, norm_topk_prob=True,
                 routed_scaling_factor=SCALE, n_routed_experts=experts)
    if kind == "sigmoid":
        router = Glm4MoeTopkRouter(transformers.Glm4MoeConfig(**sizes))
    else:
        router = DeepseekV3TopkRouter(transformers.DeepseekV3Config(**sizes))

    def softmax(weight, bias, x):
        logits = F.linear(x, weight)
        return logits, *torch.softmax(logits, -1).topk(topk)

    def theirs(weight, bias, x):
        return torch.func.functional_call(router, {"weight": weight, "e_score_correction_bias": bias}, x)

    return softmax if kind in ("sequences", "global") else theirs


def auxiliary(kind, logits):
    """Of a micro-batch's logits (tokens, experts), by sequences or as one."""
    experts, topk = SIZES[kind][:2]
    scores = torch.softmax(logits, -1) if kind in ("sequences", "global") else torch.sigmoid(logits)
    scores = scores / scores.sum(-1, keepdim=True)
    parts = scores.view(B if kind in ("v3", "sequences", "global") else 1, -1, experts)
    counts = torch.stack([torch.bincount(x.topk(topk).indices.flatten(), minlength=experts) for x in parts])
    if kind == "global":
        counts = counts.double().cumsum(0) / torch.arange(1, B + 1)[:, None]
    each = (parts.sum(1) * counts).sum(-1) * AUX * experts / (topk * parts.shape[1] ** 2)
    return each.mean() + Z * torch.logsumexp(logits, -1).square().mean()


def choices():
    rng = np.random.RandomState(9)
    logits = torch.tensor(rng.randn(100, 12), dtype=torch.float32)
    bias = torch.tensor(rng.randn(12) * 0.1, dtype=torch.float32)
    router = router_of("v3")
    weight = torch.zeros(12, H)
    weight[:, :12] = torch.eye(12)
    rows = torch.zeros(100, H)
    rows[:, :12] = logits
    _, share, chosen = router(weight, bias, rows)
    order = torch.argsort(torch.gather(torch.sigmoid(logits) + bias, 1, chosen), dim=1, descending=True)
    return {"logits": logits.numpy(), "bias": bias.numpy(), "weights": torch.gather(share, 1, order).numpy().copy(),
            "choice": torch.gather(chosen, 1, order).numpy().astype(np.int32)}


def record(kind, ids):
    if not kind:
        return choices()
    torch.set_default_dtype(torch.float64)
    experts, w, router = SIZES[kind][0], weights(expert_shapes(SIZES[kind][0], FFN)), router_of(kind)
    bias, biases = torch.zeros(experts, dtype=torch.float32), []

    def step(s):
        nonlocal bias
        t, seen = torch.tensor(ids[s]), []

        def first(x):
            logits, share, chosen = router(w["decoder.layers.0.mlp.router.weight"], bias, x.reshape(-1, H))
            seen.extend((logits.double(), torch.bincount(chosen.flatten(), minlength=experts)))
            return mixture(w, x, torch.zeros(logits.shape, dtype=torch.float64).scatter(1, chosen, share.double()))

        loss = loss_of(forward(w, t[:, :-1], first=first), t)
        logits, load = seen
        (loss + auxiliary(kind, logits)).backward()
        if kind == "v3":
            bias = bias + RATE * torch.sign(load.double().mean() - load).float()
            biases.append(bias.numpy())
        return loss.item()

    out = train(w.values(), step)
    return {**out, "biases": np.stack(biases)} if biases else out


if __name__ == "__main__":
    main("router_parity", 10, ("", *SIZES), record)
