#!/usr/bin/env python3
"""Trains nanoGPT's models in PyTorch as quern trains them: from the same weights, on the same batches.

    python tests/record/nanogpt_parity.py [quern-train] >tests/data/train/nanogpt.tsv
    python tests/record/nanogpt_parity.py --recipe TEXT [quern-train]
    python tests/record/nanogpt_parity.py --gpt2 IDS [quern-train]

The model is nanoGPT's (bias=False): learned positions, LayerNorm without bias, exact GELU, a tied output layer, no dropout;
AdamW with decay of matrices alone, a cosine to a tenth of the rate, gradients clipped to 1.  quern makes the initial weights
and the order of samples, which are read from its checkpoint and its cache.  Characters are the bytes of an ASCII text, of
which the last tenth is for validation.

Without --recipe: small, on this repository's LICENSE; lines "STEP LOSS" of every tenth step, then "valid LOSS" over all of
it: tests/cli/train_recipes.sh holds quern to them.  With it: the recipe of nanoGPT's README for a CPU (4 layers of 128, 64
characters, 12 a step, 2000 steps), trained by both, whose losses are printed side by side.  With --gpt2: GPT-2 124M (12 layers of 768, 1,024 tokens, 4 a step,
490 steps, 2 million tokens) at nanoGPT's rates, in bf16 (PyTorch's by autocast), two threads each; IDS are tokens of GPT-2 as
16-bit numbers (the .bin of quern tokenize), of which the last 2 % are for validation.
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

EPS, DECAY, CLIP = 1e-8, 0.1, 1.0
CHARACTERS = dict(lr=1e-3, beta2=0.99, vocab=128, ids=np.uint8, bf16=False, threads=1)
SMALL = dict(CHARACTERS, layers=2, hidden=64, heads=4, seq=32, batch=8, steps=300, warmup=30)
RECIPE = dict(CHARACTERS, layers=4, hidden=128, heads=4, seq=64, batch=12, steps=2000, warmup=100)
GPT2 = dict(layers=12, hidden=768, heads=12, seq=1024, batch=4, steps=490, warmup=49,
            lr=6e-4, beta2=0.95, vocab=50304, ids=np.uint16, bf16=True, threads=2)


def dataset(name, ids):
    """One document, as Megatron writes it: of bytes (its type 1) or of 16-bit numbers (8)."""
    ids.tofile(name + ".bin")
    with open(name + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQiqqq", 1, {1: 1, 2: 8}[ids.itemsize], 1, 2, len(ids), 0, 0, 1))


def train(quern, c, *more):
    """What quern trains, but for what `more` says."""
    flags = {"num-layers": c["layers"], "hidden-size": c["hidden"], "num-attention-heads": c["heads"], "seq-length": c["seq"],
             "vocab-size": c["vocab"], "micro-batch-size": c["batch"], "train-iters": c["steps"], "lr": c["lr"], "min-lr": c["lr"] / 10,
             "lr-warmup-iters": c["warmup"], "lr-decay-style": "cosine", "adam-beta2": c["beta2"], "adam-eps": EPS,
             "weight-decay": DECAY, "clip-grad": CLIP, "mlp-activation": "gelu-exact", "freeze": "*layernorm.bias",
             "attention-dropout": 0, "hidden-dropout": 0,
             "train-data-path": "train", "valid-data-path": "valid", "data-cache-path": "cache",
             "eval-iters": c["valid"], "eval-interval": c["steps"]}
    words = [w for k, v in flags.items() for w in ("--" + k, str(v))]
    subprocess.run([quern, "-q", *words, "--disable-bias-linear", "-j", str(c["threads"]), *more], check=True)


def samples(split, c, n):
    """Tokens of the first n samples in the order in which quern draws them, (n, seq + 1)."""
    path = lambda what: glob.glob(f"cache/*-{split}-{what}_index.npy")[0]  # noqa: E731
    order, starts = np.load(path("shuffle")), np.load(path("sample"))
    text = np.fromfile(split + ".bin", dtype=c["ids"])
    # one document again and again: row j of starts is (place in the documents, token in it)
    at = starts[order[:n]].astype(np.int64)
    at = at[:, 0] * len(text) + at[:, 1]
    return torch.from_numpy(text[(at[:, None] + np.arange(c["seq"] + 1)) % len(text)].astype(np.int64))


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
    return F.linear(F.layer_norm(s, (h,), w["decoder.final_layernorm.weight"]), word[:c["vocab"]])


def loss_of(w, c, ids):
    with torch.autocast("cpu", torch.bfloat16, enabled=c["bf16"]):
        logits = forward(w, c, ids[:, :-1])
    return F.cross_entropy(logits.reshape(-1, c["vocab"]).float(), ids[:, 1:].reshape(-1))


def rate(c, step):
    """Of step 0, 1, ...: nanoGPT's, with its first warm-up, from 0."""
    if step <= c["warmup"]:
        return c["lr"] * step / c["warmup"]
    share = (step - c["warmup"]) / (c["steps"] - c["warmup"])
    return c["lr"] * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))


def torch_trains(c):
    """The losses of its steps, and the loss of the validation."""
    torch.set_num_threads(c["threads"])
    file = glob.glob("init/iter_*/model.safetensors")[0]
    w = {n: x.requires_grad_() for n, x in load_file(file).items() if n.endswith(".weight")}
    opt = torch.optim.AdamW([{"params": [x for x in w.values() if x.dim() > 1], "weight_decay": DECAY},
                             {"params": [x for x in w.values() if x.dim() == 1], "weight_decay": 0.0}],
                            lr=c["lr"], betas=(0.9, c["beta2"]), eps=EPS)
    losses, b = [], c["batch"]
    ids = samples("train", c, c["steps"] * b)
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
        v = samples("valid", c, c["valid"] * b)
        return losses, np.mean([loss_of(w, c, v[i:i + b]).item() for i in range(0, len(v), b)])


def main(args):
    mode = args.pop(0) if args[:1] in (["--recipe"], ["--gpt2"]) else None
    c = {None: SMALL, "--recipe": RECIPE, "--gpt2": GPT2}[mode]
    text = np.fromfile(args.pop(0) if mode else "LICENSE", dtype=c["ids"])
    quern = os.path.abspath(args[0] if args else shutil.which("quern-train") or "build/bin/quern-train")
    assert text.max() < c["vocab"]
    cut = len(text) * 98 // 100 if mode == "--gpt2" else len(text) * 9 // 10
    c["valid"] = (len(text) - cut - 1) // (c["seq"] * c["batch"])
    os.chdir(tempfile.mkdtemp())
    dataset("train", text[:cut])
    dataset("valid", text[cut:])
    train(quern, c, "--exit-interval", "1", "--save", "init")  # the rate of the first step is 0
    losses, valid = torch_trains(c)
    if not mode:
        for step in range(9, c["steps"], 10):
            print(step + 1, f"{losses[step]:.4f}", sep="\t")
        print("valid", f"{valid:.4f}", sep="\t")
        return
    train(quern, c, "--log-file", "log.jsonl", *(["--bf16"] if c["bf16"] else []))
    log = open("log.jsonl").read()
    ours = [float(x) for x in re.findall(r'"loss":([^,]*)', log)]
    for step in (*(n for n in (1, 10, 100, 250, 500, 1000, 1500) if n < c["steps"]), c["steps"]):
        print(f"step {step}: torch {losses[step - 1]:.6f}, quern {ours[step - 1]:.6f}")
    print("largest difference of a step's loss:", max(abs(a - b) for a, b in zip(losses, ours)))
    print(f"validation: torch {valid:.6f}, quern {re.findall(r'valid_loss.:([^,}]*)', log)[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
