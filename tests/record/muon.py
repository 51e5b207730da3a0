#!/usr/bin/env python3
"""Records what Muon computes: tests/data/train/muon.safetensors.

    pip install torch safetensors numpy;  python tests/record/muon.py

Weights and gradients by the formula of gpt2_parity.py.  "ns.SET.ROWSxCOLS": what Newton-Schulz iterations by the formulas of
arXiv:2502.16982 make of a matrix in float64, with each set of coefficients.  "HOW.NAME": matrices of a layer after each of ten
updates by given gradients, from weights of 0: "split" in float64 with the three parts of linear_qkv apart; "nesterov" the same with
Nesterov's momentum, one set of coefficients and linear_qkv whole; "torch" is the second by torch.optim.Muon, which iterates in bf16.
"losses": 200 steps of the GPT of gpt2_parity.py in fp32, its matrices in layers trained by Muon as in "split" and all else by
torch.optim.AdamW; "again": the same with the gradients of samples summed one after another and two threads.
"""
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_parity import B, BETAS, CLIP, DECAY, EPS, LR, T, V, forward, groups, loss_of, made_up, shapes, weights  # noqa: E402

SETS = {
    "quintic": [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046),
                (2.8366, -3.0525, 1.2012)],
    "simple": [(3.4445, -4.7750, 2.0315)] * 5,
    "polar_express": [(8.2051, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250), (3.2856, -2.4153, 0.4853),
                      (2.2779, -1.6198, 0.3985)],
}
MOMENTUM, SCALE, UPDATES, STEPS, BATCHES, SMALL = 0.95, 0.2, 10, 200, 10, 16


def newton_schulz(g, coefficients):
    x = (g if g.shape[0] <= g.shape[1] else g.T) / g.norm()
    for a, b, c in coefficients:
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x if g.shape[0] <= g.shape[1] else x.T


class Muon(torch.optim.Optimizer):
    """nesterov: with linear_qkv whole and one set of coefficients."""

    def __init__(self, params, lr, nesterov):
        super().__init__(params, {"lr": lr})
        self.nesterov = nesterov

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            lr = self.param_groups[0]["lr"]
            m = self.state[p].setdefault("m", torch.zeros_like(p))
            m.mul_(MOMENTUM).add_(p.grad, alpha=1 - MOMENTUM)
            g = (1 - MOMENTUM) * p.grad + MOMENTUM * m if self.nesterov else m
            parts = g.split(p.shape[1]) if p.shape[0] == 3 * p.shape[1] and not self.nesterov else [g]
            o = [newton_schulz(x, SETS["simple" if self.nesterov else "quintic"]) * SCALE * max(x.shape) ** 0.5 for x in parts]
            p.mul_(1 - lr * DECAY).sub_(torch.cat(o), alpha=lr)


def updates(how):
    layer = {"self_attention.linear_qkv": (3 * SMALL, SMALL), "self_attention.linear_proj": (SMALL, SMALL),
             "mlp.linear_fc1": (4 * SMALL, SMALL), "mlp.linear_fc2": (SMALL, 4 * SMALL)}
    w = {n: torch.zeros(s, dtype=torch.float64, requires_grad=True) for n, s in layer.items()}
    if how == "torch":
        opt = torch.optim.Muon(w.values(), lr=0.01, weight_decay=DECAY, momentum=MOMENTUM, nesterov=True,
                               adjust_lr_fn="match_rms_adamw")
    else:
        opt = Muon(w.values(), 0.01, how == "nesterov")
    after = {n: [] for n in w}
    for s in range(UPDATES):
        for k, (n, x) in enumerate(w.items()):
            x.grad = torch.tensor(made_up(100 + 10 * s + k, "", tuple(x.shape)), dtype=torch.float64)
        opt.step()
        for n, x in w.items():
            after[n].append(x.detach().numpy().astype(np.float32))
    return {f"{how}.{n}": np.stack(x) for n, x in after.items()}


def train(ids, again):
    torch.set_num_threads(2 if again else 1)
    w = weights(shapes(), torch.float32)
    inner = {n: x for n, x in w.items() if x.dim() > 1 and n.startswith("decoder")}
    opts = [Muon(inner.values(), LR, False),
            torch.optim.AdamW(groups(x for n, x in w.items() if n not in inner), lr=LR, betas=BETAS, eps=EPS)]
    losses = []
    for s in range(STEPS):
        t = torch.tensor(ids[s % BATCHES])
        for x in w.values():
            x.grad = None
        losses.append(0.0)
        for part in t.split(1 if again else B):
            loss = loss_of(forward(w, part[:, :-1]), part) * len(part) / B
            loss.backward()
            losses[-1] += loss.item()
        torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP)
        for o in opts:
            o.step()
    return np.float32(losses)


def main(path):
    out = {}
    for k, shape in enumerate([(48, 80), (80, 48), (64, 64), (1, 40)]):
        g = torch.tensor(made_up(k, "", shape), dtype=torch.float64)
        out.update({f"ns.{name}.{shape[0]}x{shape[1]}": np.ascontiguousarray(newton_schulz(g, c).numpy().astype(np.float32))
                    for name, c in SETS.items()})
    for how in ("split", "nesterov", "torch"):
        out.update(updates(how))
    ids = np.random.RandomState(5).randint(0, V, (BATCHES, B, T + 1))
    out["ids"] = ids.astype(np.int32)
    out["losses"], out["again"] = train(ids, False), train(ids, True)
    save_file(out, path)
    print(path, "torch", torch.__version__, "losses", out["losses"][0], out["losses"][-1], "spread",
          np.abs(out["losses"] - out["again"]).max())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/data/train/muon.safetensors")
