#!/usr/bin/env python3
"""Trains nanoGPT's model for characters in PyTorch as quern trains it: from the same weights, on the same batches.

    python tests/record/nanogpt_parity.py [quern-train] >tests/data/train/nanogpt.tsv
    python tests/record/nanogpt_parity.py --recipe TEXT [quern-train]

The model is nanoGPT's (bias=False): learned positions, LayerNorm without bias, exact GELU, a tied output layer, no dropout;
AdamW (beta2 0.99) with decay of matrices alone, a cosine from 1e-3 to 1e-4, gradients clipped to 1.  quern makes the initial
weights and the order of samples, which are read from its checkpoint and its cache.  Characters are the bytes of an ASCII
text, of which the last tenth is for validation.

Without --recipe: small, on this repository's LICENSE; lines "STEP LOSS" of every tenth step, then "valid LOSS" over all of
it: tests/cli/train_recipes.sh holds quern to them.  With it: the recipe of nanoGPT's README for a CPU (4 layers of 128, 64
characters, 12 a step, 2000 steps), trained by both, whose losses are printed side by side.
"""
import glob
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

LR, MIN_LR, BETAS, EPS, DECAY, CLIP, VOCAB = 1e-3, 1e-4, (0.9, 0.99), 1e-8, 0.1, 1.0, 128
SMALL = dict(layers=2, hidden=64, heads=4, seq=32, batch=8, steps=300, warmup=30)
RECIPE = dict(layers=4, hidden=128, heads=4, seq=64, batch=12, steps=2000, warmup=100)


def dataset(name, text):
    """One document of bytes, as Megatron writes it."""
    open(name + ".bin", "wb").write(text)
    with open(name + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQiqqq", 1, 1, 1, 2, len(text), 0, 0, 1))


def train(quern, c, *more):
    """What quern trains, but for what `more` says."""
    flags = {"num-layers": c["layers"], "hidden-size": c["hidden"], "num-attention-heads": c["heads"], "seq-length": c["seq"],
             "vocab-size": VOCAB, "micro-batch-size": c["batch"], "train-iters": c["steps"], "lr": LR, "min-lr": MIN_LR,
             "lr-warmup-iters": c["warmup"], "lr-decay-style": "cosine", "adam-beta2": BETAS[1], "adam-eps": EPS,
             "weight-decay": DECAY, "clip-grad": CLIP, "mlp-activation": "gelu-exact", "freeze": "*layernorm.bias",
             "attention-dropout": 0, "hidden-dropout": 0,
             "train-data-path": "train", "valid-data-path": "valid", "data-cache-path": "cache",
             "eval-iters": c["valid"], "eval-interval": c["steps"]}
    words = [w for k, v in flags.items() for w in ("--" + k, str(v))]
    subprocess.run([quern, "-q", *words, "--disable-bias-linear", "-j", "1", *more], check=True)


def samples(split, name, seq, first, n):
    """Tokens of samples first .. first + n - 1 in the order in which quern draws them, (n, seq + 1)."""
    path = lambda what: glob.glob(f"cache/*-{split}-{what}_index.npy")[0]  # noqa: E731
    order, starts = np.load(path("shuffle")), np.load(path("sample"))
    text = np.fromfile(name + ".bin", dtype=np.uint8)
    # one document again and again: row j of starts is (place in the documents, token in it)
    at = starts[order[first:first + n]].astype(np.int64)
    at = at[:, 0] * len(text) + at[:, 1]
    return torch.from_numpy(text[(at[:, None] + np.arange(seq + 1)) % len(text)].astype(np.int64))


def forward(w, c, tokens):
    h, heads = c["hidden"], c["heads"]
    b, t = tokens.shape
    word = w["embedding.word_embeddings.weight"]
    s = word[tokens] + w["embedding.position_embeddings.weight"][:t]
    for i in range(c["layers"]):
        p = lambda n: w[f"decoder.layers.{i}.{n}.weight"]  # noqa: E731
        q, k, v = F.linear(F.layer_norm(s, (h,), p("input_layernorm")), p("self_attention.linear_qkv")).split(h, 2)
        q, k, v = (z.view(b, t, heads, h // heads).transpose(1, 2) for z in (q, k, v))
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, h)
        s = s + F.linear(x, p("self_attention.linear_proj"))
        x = F.gelu(F.linear(F.layer_norm(s, (h,), p("pre_mlp_layernorm")), p("mlp.linear_fc1")))
        s = s + F.linear(x, p("mlp.linear_fc2"))
    return F.linear(F.layer_norm(s, (h,), w["decoder.final_layernorm.weight"]), word[:VOCAB])


def loss_of(w, c, ids):
    return F.cross_entropy(forward(w, c, ids[:, :-1]).reshape(-1, VOCAB), ids[:, 1:].reshape(-1))


def rate(c, step):
    """Of step 0, 1, ...: nanoGPT's, with its first warm-up, from 0."""
    if step <= c["warmup"]:
        return LR * step / c["warmup"]
    share = (step - c["warmup"]) / (c["steps"] - c["warmup"])
    return MIN_LR + 0.5 * (1 + math.cos(math.pi * share)) * (LR - MIN_LR)


def torch_trains(c):
    """The losses of its steps, and the loss of the validation."""
    torch.set_num_threads(1)
    file = glob.glob("init/iter_*/model.safetensors")[0]
    w = {n: x.requires_grad_() for n, x in load_file(file).items() if n.endswith(".weight")}
    opt = torch.optim.AdamW([{"params": [x for x in w.values() if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in w.values() if x.dim() == 1], "weight_decay": 0.0}],
                            lr=LR, betas=BETAS, eps=EPS)
    losses, b = [], c["batch"]
    ids = samples("train", "train", c["seq"], 0, c["steps"] * b)
    for step in range(c["steps"]):
        for g in opt.param_groups:
            g["lr"] = rate(c, step)
        loss = loss_of(w, c, ids[step * b:(step + 1) * b])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(w.values()), CLIP)
        opt.step()
        losses.append(loss.item())
    with torch.no_grad():
        v = samples("valid", "valid", c["seq"], 0, c["valid"] * b)
        return losses, np.mean([loss_of(w, c, v[i:i + b]).item() for i in range(0, len(v), b)])


def main(args):
    recipe = args[:1] == ["--recipe"]
    text = open(args[1] if recipe else "LICENSE", "rb").read()
    given = args[2:] if recipe else args
    quern = os.path.abspath(given[0] if given else shutil.which("quern-train") or "build/bin/quern-train")
    c = RECIPE if recipe else SMALL
    assert all(x < VOCAB for x in text)
    cut = len(text) * 9 // 10
    c["valid"] = (len(text) - cut - 1) // (c["seq"] * c["batch"])
    os.chdir(tempfile.mkdtemp())
    dataset("train", text[:cut])
    dataset("valid", text[cut:])
    train(quern, c, "--exit-interval", "1", "--save", "init")  # the rate of the first step is 0
    losses, valid = torch_trains(c)
    if not recipe:
        for step in range(9, c["steps"], 10):
            print(step + 1, f"{losses[step]:.4f}", sep="\t")
        print("valid", f"{valid:.4f}", sep="\t")
        return
    train(quern, c, "--log-file", "log.jsonl")
    log = open("log.jsonl").read()
    ours = [float(x) for x in re.findall(r'"loss":([^,]*)', log)]
    for step in (1, 10, 100, 250, 500, 1000, 1500, c["steps"]):
        print(f"step {step}: torch {losses[step - 1]:.6f}, quern {ours[step - 1]:.6f}")
    print("largest difference of a step's loss:", max(abs(a - b) for a, b in zip(losses, ours)))
    print(f"validation: torch {valid:.6f}, quern {re.findall(r'valid_loss.:([^,}]*)', log)[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
