#!/usr/bin/env python3
"""Records tests/data/tokenizer/train/superbpe.jsonl.zst: the ids that Hugging Face's tokenizers gives 2,500 texts with a small tokenizer
whose merges go across words, which quern trains.

usage: tokenizer_across.py FOLDER QUERN      (needs tokenizers; recorded with 0.23.3)
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

out, quern = sys.argv[1:]
source = os.path.join(out, "texts.jsonl")
texts = [json.loads(line) for line in open(source, encoding="utf-8")]
words = "".join(texts).split(" ")
random.seed(4)
for _ in range(2500 - len(texts)):
    at, n = random.randrange(len(words)), random.randrange(1, 12)
    some = words[at:at + n] + random.choices(words, k=2)
    random.shuffle(some) if random.random() < .3 else None
    texts.append(random.choice((" ", " ", " ", "  ", "\n", " 1234")).join(some)[:200])
with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "t.json")
    subprocess.run([quern, "tokenizer", "train", "--model", "superbpe", "--vocab-size", "1500", "-o", path, source], check=True,
                   stderr=subprocess.DEVNULL)
    t = Tokenizer.from_file(path)
lines = (json.dumps({"text": s[:300], "ids": t.encode(s[:300], add_special_tokens=False).ids}, separators=(",", ":")) + "\n" for s in texts)
with open(os.path.join(out, "superbpe.jsonl.zst"), "wb") as f:
    f.write(subprocess.run(["zstd", "-19", "-q"], input="".join(lines).encode(), stdout=subprocess.PIPE, check=True).stdout)
