#!/usr/bin/env python3
"""Records what optimizers compute: tests/data/train/optimizers.safetensors.

    pip install torch torchao safetensors numpy;  python tests/record/optimizers.py

Weights and gradients by the formula of gpt2_parity.py.  "HOW.NAME": all parameters of a GPT of one layer of width 8 after each of
ten updates by given gradients: "adafactor" by torch.optim.Adafactor with its defaults, in float32; "adafactor.other" with others,
in float64, and gradients times 0.01.

A matrix of 64 by 64 after 1, 2, 5, 10, 20 and 50 updates, all in float32: "adamw" by torch.optim.AdamW; "adamw8bit" by
torchao.optim.AdamW8bit.  "bf16.rms" and "bf16.mean": how far AdamW's weights are from "adamw" when its moments are kept in bf16,
rounded stochastically, and the update is made of moments that are not rounded yet: root mean square and mean, by eight seeds.
"""
import os
import sys

os.environ["TORCHDYNAMO_DISABLE"] = "1"
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torchao.optim import AdamW8bit  # noqa: E402
from torchao.optim.quant_utils import _fp32_to_bf16_sr  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpt2_parity as g  # noqa: E402

UPDATES, SIDE, KEPT, SEEDS = 10, 64, (1, 2, 5, 10, 20, 50), 8
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}


def ten_updates(how, dtype, scale, decay, make):
    g.L, g.H, g.T, g.V = 1, 8, 16, 32
    w = g.weights(g.shapes(), dtype)
    opt = make(g.groups(w.values(), decay))
    after = {n: [] for n in w}
    for s in range(UPDATES):
        for k, (n, x) in enumerate(w.items()):
            x.grad = torch.tensor(g.made_up(100 + 20 * s + k, "", tuple(x.shape)) * np.float32(scale), dtype=dtype)
        opt.step()
        for n, x in w.items():
            after[n].append(x.detach().numpy().astype(np.float32))
    return {f"{how}.{n}": np.stack(x) for n, x in after.items()}


class Bf16Moments(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, ADAMW)
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        for p in self.param_groups[0]["params"]:
            s, (b1, b2) = self.state[p], ADAMW["betas"]
            m = s.get("m", torch.zeros_like(p)).float().lerp(p.grad, 1 - b1)
            v = s.get("v", torch.zeros_like(p)).float().lerp(p.grad**2, 1 - b2)
            s["m"], s["v"] = _fp32_to_bf16_sr(m), _fp32_to_bf16_sr(v)
            p.mul_(1 - ADAMW["lr"] * ADAMW["weight_decay"])
            p.sub_(ADAMW["lr"] / (1 - b1**self.t) * m / (v.sqrt() / (1 - b2**self.t) ** 0.5 + ADAMW["eps"]))


def matrix(make):
    w = torch.tensor(g.made_up(3, "", (SIDE, SIDE)), requires_grad=True)
    opt, after = make([w]), []
    for s in range(max(KEPT)):
        w.grad = torch.tensor(g.made_up(1000 + s, "", (SIDE, SIDE)) * np.float32(1 + s % 7))
        opt.step()
        if s + 1 in KEPT:
            after.append(w.detach().numpy().copy())
    return np.stack(after)


def adamws():
    out = {"adamw": matrix(lambda p: torch.optim.AdamW(p, **ADAMW)), "adamw8bit": matrix(lambda p: AdamW8bit(p, **ADAMW))}
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        d = (matrix(Bf16Moments) - out["adamw"]).reshape(len(KEPT), -1).astype(np.float64)
        out.setdefault("bf16.rms", []).append((d**2).mean(1) ** 0.5)
        out.setdefault("bf16.mean", []).append(d.mean(1))
    return {n: np.float32(x) for n, x in out.items()}


def main(path):
    out = ten_updates("adafactor", torch.float32, 1, 0, lambda p: torch.optim.Adafactor(p))
    out.update(ten_updates("adafactor.other", torch.float64, 0.01, 0.1, lambda p: torch.optim.Adafactor(
        p, lr=0.6, beta2_decay=-0.5, eps=(2e-3, 0.15), d=1.5)))
    out.update(adamws())
    save_file(out, path)
    print(path, "torch", torch.__version__, "rms by updates", out["bf16.rms"].mean(0), "+-", out["bf16.rms"].std(0))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/optimizers.safetensors")
