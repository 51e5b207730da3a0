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
from safetensors.numpy import save_file
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeTopkRouter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import B, BETAS, CLIP, DECAY, EPS, H, HEADS, L, LR, STEPS, T, V, made_up  # noqa: E402
from gpt2_parity import shapes as gpt_shapes  # noqa: E402

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


def gpt(kind):
    experts = SIZES[kind][0]
    shapes = []
    for name, shape in gpt_shapes():
        if "layers.0.mlp" not in name:
            shapes.append((name, shape))
        elif "linear_fc1.weight" in name:
            shapes.append(("decoder.layers.0.mlp.router.weight", (experts, H)))
            for x in range(experts):
                e = f"decoder.layers.0.mlp.experts.local_experts.{x}."
                shapes += [(e + "linear_fc1.weight", (FFN, H)), (e + "linear_fc1.bias", (FFN,)),
                           (e + "linear_fc2.weight", (H, FFN)), (e + "linear_fc2.bias", (H,))]
    w = {n: torch.tensor(made_up(k, n, s), dtype=torch.float64, requires_grad=True) for k, (n, s) in enumerate(shapes)}
    router = router_of(kind)

    def mlp(x, before):
        x = F.gelu(F.linear(x, w[before + "linear_fc1.weight"], w[before + "linear_fc1.bias"]), approximate="tanh")
        return F.linear(x, w[before + "linear_fc2.weight"], w[before + "linear_fc2.bias"])

    def run(tokens, bias):
        h = w["embedding.word_embeddings.weight"][tokens] + w["embedding.position_embeddings.weight"]
        b, t = tokens.shape
        for i in range(L):
            p = lambda n: w[f"decoder.layers.{i}.{n}"]  # noqa: E731,B023
            x = F.layer_norm(h, (H,), p("input_layernorm.weight"), p("input_layernorm.bias"), 1e-5)
            q, k, v = F.linear(x, p("self_attention.linear_qkv.weight"), p("self_attention.linear_qkv.bias")).split(H, 2)
            q, k, v = (z.view(b, t, HEADS, H // HEADS).transpose(1, 2) for z in (q, k, v))
            x = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, H)
            h = h + F.linear(x, p("self_attention.linear_proj.weight"), p("self_attention.linear_proj.bias"))
            x = F.layer_norm(h, (H,), p("pre_mlp_layernorm.weight"), p("pre_mlp_layernorm.bias"), 1e-5)
            if i:
                h = h + mlp(x, f"decoder.layers.{i}.mlp.")
                continue
            logits, weights, chosen = router(p("mlp.router.weight"), bias, x.reshape(-1, H))
            share = torch.zeros(logits.shape, dtype=torch.float64).scatter(1, chosen, weights.double())
            h = h + sum(share[:, e].view(b, t, 1) * mlp(x, f"decoder.layers.0.mlp.experts.local_experts.{e}.")
                        for e in range(experts))
        h = F.layer_norm(h, (H,), w["decoder.final_layernorm.weight"], w["decoder.final_layernorm.bias"], 1e-5)
        return h @ w["embedding.word_embeddings.weight"].T, logits.double(), torch.bincount(chosen.flatten(), minlength=experts)

    return w.values(), run


def record(kind, ids, out):
    params, run = gpt(kind)
    opt = torch.optim.AdamW([{"params": [x for x in params if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in params if x.dim() < 2], "weight_decay": 0.0}], lr=LR, betas=BETAS, eps=EPS)
    bias = torch.zeros(SIZES[kind][0], dtype=torch.float32)
    losses, norms, biases = [], [], []
    for s in range(STEPS):
        t = torch.tensor(ids[s])
        logits, router, load = run(t[:, :-1], bias)
        loss = F.cross_entropy(logits.reshape(-1, V), t[:, 1:].reshape(-1))
        opt.zero_grad()
        (loss + auxiliary(kind, router)).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(list(params), CLIP).item())
        losses.append(loss.item())
        opt.step()
        if kind == "v3":
            bias = bias + RATE * torch.sign(load.double().mean() - load).float()
            biases.append(bias.numpy())
    out[kind + ".losses"], out[kind + ".norms"] = np.float32(losses), np.float32(norms)
    if biases:
        out[kind + ".biases"] = np.stack(biases)
    print(kind, "losses", losses[0], losses[-1], "norm", norms[0], norms[-1], *biases[-1:])


def choices(out):
    rng = np.random.RandomState(9)
    logits = torch.tensor(rng.randn(100, 12), dtype=torch.float32)
    bias = torch.tensor(rng.randn(12) * 0.1, dtype=torch.float32)
    router = router_of("v3")
    weight = torch.zeros(12, H)
    weight[:, :12] = torch.eye(12)
    rows = torch.zeros(100, H)
    rows[:, :12] = logits
    _, weights, chosen = router(weight, bias, rows)
    order = torch.argsort(torch.gather(torch.sigmoid(logits) + bias, 1, chosen), dim=1, descending=True)
    out["logits"], out["bias"] = logits.numpy(), bias.numpy()
    out["weights"] = torch.gather(weights, 1, order).numpy().copy()
    out["choice"] = torch.gather(chosen, 1, order).numpy().astype(np.int32)


def main(path):
    ids = np.random.RandomState(10).randint(0, V, (STEPS, B, T + 1))
    out = {"ids": ids.astype(np.int32)}
    choices(out)
    torch.set_default_dtype(torch.float64)
    for kind in SIZES:
        record(kind, ids, out)
    save_file(out, path)
    print(path, "torch", torch.__version__, "transformers", transformers.__version__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/router_parity.safetensors")
