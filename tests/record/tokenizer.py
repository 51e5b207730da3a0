#!/usr/bin/env python3
"""Records tests/data/tokenizer: merges that Hugging Face's trainer finds, and the ids
that its library and tiktoken give for hard strings.

usage: tokenizer.py FOLDER      (needs tokenizers and tiktoken; recorded with 0.23.3 and 0.14.0)
"""
import base64
import json
import os
import sys

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

out = sys.argv[1]
CORPUS = """The quern is a hand mill that grinds grain into flour. The miller's daughter turns the
upper stone, the lower stone lies still, and the flour falls between them into a bowl.
It isn't hard work, she'd say; we've done it for 2,000 years, and they'll do it when we're gone.
Im Winter mahlt die Mühle langsam, weil das Wasser gefroren ist; im Frühling läuft sie wieder.
Мельница мелет муку, а мука становится хлебом. Хлеб пекут утром, и утро пахнет хлебом.
石臼は穀物を粉にする。粉はパンになる。 磨坊把粮食磨成面粉。
def grind(grain, stone=2):
    for kernel in grain:
        if kernel.hard:
            yield stone * kernel.weight  # 3.14159
    return None
http://mill.example/flour?bags=12&price=3.50  GRAIN-mill_42 McMill iPhone HTTPServer
the the the mill mill mill grain grain flour flour stone stone stone and and and
"""
HARD = [
    "", " ", "  ", "   ", "\n", "\r\n", "\n\n\n", " \n", "\n ", " \n \n x", "x \n\n  y", "\t\tx", " \t x",
    "x   ", "x\n   ", "x \n\t \n", "  x  y   z    ", "a\u00a0b", "a \u3000b\u2003\u2003c", "a\u0085b", "\ufeffa",
    "a\u200bb", "don't DON'T we'Re 'tis 'S's ''s 's's", "'\u017f '\u017fs x'\u212a 'maint 'lla", "it's\u2019s", "I'll've",
    "1", "12", "123", "1234", "12345678901", "1,234.5", "\u0661\u0662\u0663\u0664", "\u00bd\u2167\u3007", "a1b22c333d4444", " 1 12 1234",
    "!", "!!", "(a", " (a", "((a", ". a", ".\n\na", "!\r\n\r\n x", "a/b//c", ".\n/x/", "//\n//y", "-\n-", "#include <x.h>",
    "camelCase HTTPServer XMLHttpRequest aB ABc ABC aBC \u01c5x", "\u00dcBER \u00fcber \u01c8a", "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
    "e\u0301 a\u0300\u0316 \u1e9b\u0323", "\u0301abc", " \u0301\u0301A", "\uac01\u1100\u1161\u11a8", "\u30d1\u30f3 \u7c89\u306f", "\u0e42\u0e23\u0e07\u0e2a\u0e35",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea", "\U00010400\U00010428 \U0001e900", "\x00\x01\x1c\x1d\x1e\x1f a", "<|endoftext|>", "x<|endoftext|>y",
    "The quern grinds.   The  mill\n\n\tgrinds 1234567 bags (of grain) -- it's \u201cfine\u201d flour\u2026\n" * 6,
    "    if x:\n        return y\n\n\n    else:\n        z = 'don\\'t'\n" * 5, "a" * 300, " " * 200 + "b", "\n" * 150, "1" * 200, "-=" * 150,
    "ab" * 200 + " " + "\u00e9" * 100, "x" * 61 + "'ll go", "y" * 62 + "'ll go", "z" * 63 + "'s 's", "w" * 64 + "'ve", "v" * 59 + " \n  \n   k",
    ("q" * 50 + "\n" + " " * 30) * 4 + "end", "n" * 60 + "1234567890 " * 3,
]
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
LLAMA3 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
WORD = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = WORD % (SUFFIX, SUFFIX, r"\p{N}{1,3}")
TEKKEN = WORD % ("", "", r"\p{N}")


def write(name, text):
    with open(os.path.join(out, name), "w", encoding="utf-8") as f:
        f.write(text)


def pairs(texts, ids):
    return "".join(json.dumps({"text": t, "ids": i}, separators=(",", ":")) + "\n" for t, i in zip(texts, ids))


def train(pre, texts, size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


write("corpus.txt", CORPUS)
trained = train(pre_tokenizers.ByteLevel(add_prefix_space=False), CORPUS.splitlines(keepends=True), 420)
write("trained.txt", "".join(" ".join(m) + "\n" for m in json.loads(trained.to_str())["model"]["merges"]))

# For the patterns: merges that cross every boundary which a pattern could make, so that ids
# tell how the text was cut.
base = train(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
             CORPUS.splitlines(keepends=True) + HARD + [c for t in HARD for c in (t[:40], t[-40:])] * 2, 800)
model = json.loads(base.to_str())["model"]
write("merges.txt", "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
write("vocab.json", json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":")) + "\n")

# The same tokens as ranks: tiktoken wants no holes among merges, and its order is by rank.
unmap = {c: b for b, c in enumerate(
    chr(b) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174 else None for b in range(256)) if c}
n = 0
for b in range(256):
    if b not in unmap.values():
        unmap[chr(256 + n)] = b
        n += 1
ranks = {bytes(unmap[c] for c in t): i for t, i in model["vocab"].items() if t != "<|endoftext|>"}
write("ranks.tiktoken", "".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items()))
for name, pattern in (("gpt2", GPT2), ("cl100k", CL100K), ("o200k", O200K)):
    enc = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    write(f"{name}.tiktoken.jsonl", pairs(HARD, [enc.encode_ordinary(t) for t in HARD]))


def variant(name, pre, normalizer=None, added=(), ignore=False):
    t = Tokenizer.from_str(base.to_str())
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.model.ignore_merges = ignore
    t.add_tokens(list(added))
    write(f"{name}.json", t.to_str() + "\n")
    write(f"{name}.hf.jsonl", pairs(HARD, [t.encode(s, add_special_tokens=False).ids for s in HARD]))


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


variant("gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False))
variant("llama3", split(LLAMA3), ignore=True)
variant("qwen2", split(QWEN2), normalizers.NFC())
variant("o200k", split(O200K))
variant("tekken", split(TEKKEN))
variant("neox", pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC(),
        [AddedToken(" " * n, normalized=True) for n in range(16, 1, -1)] +
        [AddedToken("mill", lstrip=True, normalized=False), AddedToken("\u00e9\u00e9", rstrip=True, normalized=True)])
