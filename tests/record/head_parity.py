#!/usr/bin/env python3
"""Records what a small GPT with another loss computes: tests/data/train/head_parity.safetensors.

    pip install torch safetensors numpy;  python tests/record/head_parity.py

The GPT of gpt2_parity.py, by ten steps of clipping and AdamW as there: losses and gradient norms.  "cap" has output logits x as
3 tanh(x / 3), as Gemma 2's (arXiv:2408.00118); "z" is trained on 0.1 log(Z)^2 a token too, PaLM's z-loss (arXiv:2204.02311),
which its losses are without; "both" has both.
"""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import forward, loss_of, main, shapes, train, weights  # noqa: E402

CAP, Z = 3.0, 0.1


def record(kind, ids):
    w = weights(shapes())

    def step(s):
        t = torch.tensor(ids[s])
        logits = forward(w, t[:, :-1])
        if kind != "z":
            logits = CAP * torch.tanh(logits / CAP)
        loss = loss_of(logits, t)
        more = Z * torch.logsumexp(logits, -1).square().mean() if kind != "cap" else 0
        (loss + more).backward()
        return loss.item()

    return train(w.values(), step)


if __name__ == "__main__":
    main("head_parity", 11, ("cap", "z", "both"), record)
