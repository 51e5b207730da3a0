#!/usr/bin/env python3
"""Records what a small GPT with another loss computes: tests/data/train/head_parity.safetensors.

    pip install torch safetensors numpy;  python tests/record/head_parity.py

The GPT of gpt2_parity.py, by ten steps of clipping and AdamW as there: losses and gradient norms.  "cap" has output logits x as
3 tanh(x / 3), as Gemma 2's (arXiv:2408.00118); "z" is trained on 0.1 log(Z)^2 a token too, PaLM's z-loss (arXiv:2204.02311),
which its losses are without; "both" has both.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import B, BETAS, CLIP, DECAY, EPS, LR, STEPS, T, V, forward, made_up, shapes  # noqa: E402

CAP, Z = 3.0, 0.1


def record(kind, ids, out):
    w = {n: torch.tensor(made_up(k, n, s), dtype=torch.float64, requires_grad=True) for k, (n, s) in enumerate(shapes())}
    params = list(w.values())
    opt = torch.optim.AdamW([{"params": [x for x in params if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in params if x.dim() < 2], "weight_decay": 0.0}], lr=LR, betas=BETAS, eps=EPS)
    losses, norms = [], []
    for s in range(STEPS):
        t = torch.tensor(ids[s])
        logits = forward(w, t[:, :-1])
        if kind != "z":
            logits = CAP * torch.tanh(logits / CAP)
        loss = F.cross_entropy(logits.reshape(-1, V), t[:, 1:].reshape(-1))
        more = Z * torch.logsumexp(logits, -1).square().mean() if kind != "cap" else 0
        opt.zero_grad()
        (loss + more).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(params, CLIP).item())
        losses.append(loss.item())
        opt.step()
    out[kind + ".losses"], out[kind + ".norms"] = np.float32(losses), np.float32(norms)
    print(kind, "losses", losses[0], losses[-1], "norm", norms[0], norms[-1])


def main(path):
    ids = np.random.RandomState(11).randint(0, V, (STEPS, B, T + 1))
    out = {"ids": ids.astype(np.int32)}
    for kind in ("cap", "z", "both"):
        record(kind, ids, out)
    save_file(out, path)
    print(path, "torch", torch.__version__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/head_parity.safetensors")
