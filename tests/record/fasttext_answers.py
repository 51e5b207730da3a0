#!/usr/bin/env python3
"""Records fastText's answers: tests/data/fasttext.

Trains small models of every kind (loss, subwords, word n-grams, quantisation) on made text
and asks them about made lines.  Needs the program fasttext (Debian) to train and fasttext-wheel 0.9.2
to answer.  answers.tsv: model, text as a JSON string, then label=score.

    python3 tests/record/fasttext_answers.py tests/data/fasttext
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import fasttext

fasttext.FastText.eprint = lambda *a: None
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(7)

SYLLABLES = {
    "north": "ka tor vel ish mun dra göl øst".split(),
    "south": "lo mi ra na sol bé ca ño".split(),
    "east": "шу ти ла ма кор зен 山 水路".split(),
}


def word(label):
    return "".join(rng.choice(SYLLABLES[label]) for _ in range(rng.randint(1, 4)))


def line(label, n):
    words = [word(label) for _ in range(n)]
    return " ".join(w if rng.random() < 0.8 else word(rng.choice(list(SYLLABLES))) for w in words)


def write(path, lines):
    with open(path, "w") as f:
        f.writelines(s + "\n" for s in lines)


def run(what, data, model, settings):
    options = [x for k, v in settings.items() for x in (["-" + k] if v is True else ["-" + k, str(v)])]
    subprocess.run(["fasttext", what, "-input", data, "-output", model, *options], check=True)


def main():
    labels = list(SYLLABLES)
    train = [f"__label__{l} {line(l, rng.randint(3, 12))}" for l in rng.choices(labels, [5, 3, 2], k=900)]
    asked = [line(rng.choice(labels), rng.randint(0, 9)) for _ in range(60)]
    asked += ["", "   ", "kator", "</s> kator", "kator </s> lomi lomi lomi", "__label__north lomi", "__label__nowhere",
              "ka\ttor\vvel\fish\rmun", "ka\0tor", "< >", "x", "é", "水路" * 40, "lo" * 300, " ".join(["kator"] * 200),
              "\u00a0lo\u2003mi", "\U0001f600 \U0001f600\U0001f601"]
    many = [f"__label__n{i % 300} {line('north', 2)} n{i % 300}" for i in range(1500)]
    asked_many = [f"n{rng.randrange(300)} {line('north', 2)}" for _ in range(6)]
    binary = [f"__label__{'hq' if l == 'north' else 'cc'} {line(l, 8)}" for l in rng.choices(labels, k=400)]
    common = dict(dim=6, epoch=8, lr=0.2, thread=1, verbose=0, seed=3)
    kinds = {
        "softmax.bin": (train, dict(loss="softmax", minn=2, maxn=4, bucket=300, minCount=4)),
        "hs.bin": (train, dict(loss="hs", minn=1, maxn=3, bucket=200, minCount=5)),
        "ova.bin": (train, dict(loss="ova", wordNgrams=3, bucket=250, minCount=5)),
        "ns.bin": (train, dict(loss="ns", neg=2, lr=0.05, minCount=8)),
        "pruned.ftz": (train, dict(loss="hs", minn=2, maxn=4, wordNgrams=2, bucket=900)),
        "norms.ftz": (train, dict(loss="softmax", minn=3, maxn=3, bucket=300)),
        "binary.bin": (binary, dict(loss="softmax", wordNgrams=2, bucket=200, minCount=4)),
        "many.ftz": (many, dict(loss="softmax", minCount=3, epoch=2)),
    }
    quantise = {
        "pruned.ftz": dict(cutoff=400, dsub=3),
        "norms.ftz": dict(qnorm=True, dsub=2),
        "many.ftz": dict(qnorm=True, qout=True, dsub=5),
    }
    with tempfile.TemporaryDirectory() as tmp, open(f"{out}/answers.tsv", "w") as answers:
        for name, (lines, settings) in kinds.items():
            write(f"{tmp}/train.txt", lines)
            run("supervised", f"{tmp}/train.txt", f"{tmp}/m", {**common, **settings})
            if name in quantise:
                run("quantize", f"{tmp}/train.txt", f"{tmp}/m", quantise[name])
            shutil.copy(f"{tmp}/m{name[-4:]}", f"{out}/{name}")
            m = fasttext.load_model(f"{out}/{name}")
            for text in asked_many if name == "many.ftz" else asked:
                found = m.f.predict(text + "\n", -1, 0.0, "strict")
                if name == "many.ftz":
                    found = found[:12]
                escaped = json.dumps(text)
                answers.write("\t".join([name, escaped] + [f"{label[9:]}={p:.9g}" for p, label in found]) + "\n")


main()
