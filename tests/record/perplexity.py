#!/usr/bin/env python3
"""Records KenLM's and CCNet's answers: tests/data/perplexity.

Makes small language models of made text as ARPA files, by absolute discounting, some of whose middle n-grams are left out;
KenLM's build_binary, compiled here from its sources, makes binary files of every kind of them.  Then kenlm scores made lines by
each, and CCNet's own normaliser, SentencePiece and kenlm a document by each pieces model.

    python3 tests/record/perplexity.py KENLM CC_NET tests/data/tokenizer tests/data/perplexity

KENLM: kenlm 0.3.0's source distribution, unpacked.  CC_NET: that of cc_net 1.0.0.
"""
import collections
import glob
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import kenlm
import sentencepiece

sources, cc_net, tokenizers, out = sys.argv[1:5]
rng = random.Random(11)

SYLLABLES = "ka tor vel ish mun dra göl øst lo mi ra na sol bé ca ño шу ти ла 山 水路".split()
WORDS = ["".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 3))) for _ in range(90)]
NORMALISED = [
    "", " ", "\n", "\u3000x\u00a0", "The Mill's FLOUR", "Straße ÉCOLE naïve ﬁn", "İstanbul ISIK ı",
    "ΣΑΣ ΟΔΟΣ Σ. ΑΣ1 'ΑΣ' ΑΣ\u0301",
    "1234 ٣٤ ५६ ２０２５ ½ ② １", "„a” “b” «c» 「d」 《e》 ´f´ ‘g’ —h– … ━ ►", "ｗｏｒｄ，。、：？！（）；．～％【】〈〉∶",
    "한국어 조선말 각",
    "e\u0301 e\u0323\u0301 a\u0328\u0302 \u05e9\u05c1\u05b8 \u0939\u093f\u0928\u094d\u0926\u0940",
    "tab\there\nnew\r\nline\x0b\x0c\x1c\x7f\x85\x9fend",
    "\U0001d400\U0001f600 𝟘𝟙 \u200b\u200d\ufeff", "Ǆ ǅ ǆ ß ẞ ŉ ΐ", "\ud7a3\u1100\u1161\u11a8", "a\u0300\u0316b\u302e\u0323", "x" * 300,
    "Мельница, Ёлка й Й", "Đặng Thị Hồng", "\u212a\u212b\u2126", "\x00a\x00b", "kator VELISH, göl øst. Kator velish 12!",
]


def model(lines, order, least, drop, path):
    """An ARPA file; least: of each order, the count from which an n-gram is kept."""
    counts = [collections.Counter() for _ in range(order)]
    for line in lines:
        words = ["<s>"] + line + ["</s>"]
        for n in range(order):
            counts[n].update(tuple(words[i:i + n + 1]) for i in range(len(words) - n))
    del counts[0][("<s>",)]
    total, off = sum(counts[0].values()), 0.6
    rest = off * len(counts[0]) / total / (len(counts[0]) + 1)
    probs = [{g: (c - off) / total + rest for g, c in counts[0].items()}]
    probs[0][("<unk>",)] = rest
    backoffs = [{} for _ in range(order)]

    def prob(g):
        p = probs[len(g) - 1].get(g)
        return p if p is not None else backoffs[len(g) - 2].get(g[:-1], 1) * prob(g[1:])

    for n in range(1, order):
        begun = collections.Counter()
        for g, c in counts[n].items():
            begun[g[:-1]] += c
        keep = {g: c for g, c in counts[n].items() if c >= least[n] and (n == 1 or g[:-1] in probs[n - 1])}
        seen = collections.Counter()
        for g, c in keep.items():
            seen[g[:-1]] += (c - off) / begun[g[:-1]]
        probs.append({g: (c - off) / begun[g[:-1]] + (1 - seen[g[:-1]]) * prob(g[1:]) for g, c in keep.items()})
        backoffs[n - 1] = {h: 1 - x for h, x in seen.items()}
    for n in range(1, order - 1):
        needed = {g[:-1] for g in probs[n + 1]}
        for g in [g for g in probs[n] if g not in needed and rng.random() < drop]:
            del probs[n][g]
    probs[0][("<s>",)] = None
    with open(path, "w") as f:
        f.write("\\data\\\n" + "".join(f"ngram {n + 1}={len(p)}\n" for n, p in enumerate(probs)))
        for n, p in enumerate(probs):
            f.write(f"\n\\{n + 1}-grams:\n")
            for g, x in p.items():
                back = f"\t{math.log10(backoffs[n][g]):.5g}" if g in backoffs[n] else ""
                f.write(f"{-99 if x is None else math.log10(x):.5g}\t{' '.join(g)}{back}\n")
        f.write("\n\\end\\\n")


def compile_builder(folder):
    program = os.path.join(folder, "build_binary")
    files = [f for part in ("lm", "util", "util/double-conversion") for f in glob.glob(f"{sources}/{part}/*.cc")]
    files = [f for f in files if not f.endswith(("_main.cc", "_test.cc"))] + [f"{sources}/lm/build_binary_main.cc"]
    subprocess.run(["g++", "-O1", "-DKENLM_MAX_ORDER=6", f"-I{sources}", *files, "-lrt", "-lpthread", "-o", program], check=True)
    return program


KINDS = {
    "probing": ["probing"], "trie": ["trie"], "array": ["-a", "22", "trie"], "quant": ["-q", "5", "-b", "4", "trie"],
    "both": ["-q", "8", "-b", "8", "-a", "22", "trie"], "full": ["-p", "1.1", "probing"],
}


def main():
    os.makedirs(out, exist_ok=True)
    scratch = tempfile.mkdtemp()
    builder = compile_builder(scratch)
    text = []
    for _ in range(120):
        word = rng.randrange(len(WORDS))
        line = []
        for _ in range(rng.randint(2, 9)):
            line.append(WORDS[word])
            word = (word * 3 + rng.choice([1, 1, 1, 2, 40])) % len(WORDS)
        text.append(line)
    sp = sentencepiece.SentencePieceProcessor(model_file=f"{tokenizers}/spm_unigram.model")
    spec = importlib.util.spec_from_file_location("text_normalizer", f"{cc_net}/cc_net/text_normalizer.py")
    normalizer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(normalizer)
    with open(f"{tokenizers}/corpus.txt") as f:
        pieces = [sp.encode_as_pieces(normalizer.normalize(x)) for x in f.read().split("\n") + NORMALISED]
    model(text, 5, [1, 1, 1, 1, 1], 0.4, f"{out}/five.arpa")
    model(text, 2, [1, 1], 0, f"{out}/two.arpa")
    model([x for x in pieces if x], 3, [1, 1, 2], 0.2, f"{out}/pieces.arpa")
    made = {"five": list(KINDS), "two": ["probing", "trie", "both"], "pieces": ["both"]}
    for name, kinds in made.items():
        for kind in kinds:
            subprocess.run([builder, "-T", scratch + "/", *KINDS[kind], f"{out}/{name}.arpa", f"{out}/{name}.{kind}"], check=True,
                           stderr=subprocess.DEVNULL)
    asked = [" ".join(x) for x in text[::9]] + ["", " ", "none", "<unk>", "<s> </s>", WORDS[0], "\t".join(WORDS[:5]) + "\v\f\r x"]
    asked += [" ".join(rng.choice(WORDS + ["never"]) for _ in range(rng.randint(1, 30))) for _ in range(20)]
    asked += [" ".join(t[2:] + ["never"] + t[:3]) for t in text[::17]]
    with open(f"{out}/scores.jsonl", "w") as f:
        for name in ("five", "two"):
            for kind in ["arpa", *made[name]]:
                m = kenlm.Model(f"{out}/{name}.{kind}")
                scores = [float(f"{m.score(x):.9g}") for x in asked]
                f.write(json.dumps({"model": f"{name}.{kind}", "scores": scores}) + "\n")
        f.write(json.dumps({"texts": asked}, ensure_ascii=False) + "\n")
    with open(f"{out}/ccnet.jsonl", "w") as f:
        m = kenlm.Model(f"{out}/pieces.both")
        for x in NORMALISED:
            normal = normalizer.normalize(x)
            tokenized = " ".join(sp.encode_as_pieces(normal))
            log10, length = m.score(tokenized), len(tokenized.split()) + 1
            f.write(json.dumps({"text": x, "normal": normal, "perplexity_log10": float(f"{log10:.9g}"),
                                "perplexity_tokens": length, "perplexity": 10 ** (-log10 / length)}, ensure_ascii=False) + "\n")


main()
