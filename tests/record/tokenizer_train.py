#!/usr/bin/env python3
"""Records tests/data/tokenizer/train: merges that Hugging Face's trainer and tiktoken's educational
one find in the hard strings of tests/data/tokenizer, by pattern and by option, and in texts that are hard to train on.

usage: tokenizer_train.py TESTS/DATA/TOKENIZER      (needs tokenizers and tiktoken; recorded with 0.23.3 and 0.14.0)
"""
import base64
import json
import os
import re
import subprocess
import sys

from tiktoken import _educational
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

folder = sys.argv[1]
out = os.path.join(folder, "train")
os.makedirs(out, exist_ok=True)
texts = [json.loads(line)["text"] for line in open(os.path.join(folder, "gpt2.hf.jsonl"), encoding="utf-8")]
texts += open(os.path.join(folder, "corpus.txt"), encoding="utf-8").read().splitlines(keepends=True)
with open(os.path.join(out, "texts.jsonl"), "w", encoding="utf-8") as f:
    f.writelines(json.dumps(t, ensure_ascii=False) + "\n" for t in texts)

recorder = open(os.path.join(os.path.dirname(__file__), "tokenizer.py"), encoding="utf-8").read()
patterns = {}
exec("\n".join(re.findall(r"^(?:GPT2|CL100K|LLAMA3|QWEN2|WORD|SUFFIX|O200K|TEKKEN) = .*$", recorder, re.M)), patterns)
level = pre_tokenizers.ByteLevel


def train(name, pattern, texts=texts, **options):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = level(add_prefix_space=False) if pattern == "gpt2" else pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(patterns[pattern.upper()]), "isolated"), level(add_prefix_space=False, use_regex=False)])
    options = {"vocab_size": 600, "special_tokens": ["<|endoftext|>"], **options}
    t.train_from_iterator(texts, trainers.BpeTrainer(show_progress=False, initial_alphabet=level.alphabet(), **options))
    t.model.save(out, name)


for p in ("gpt2", "llama3", "qwen2", "o200k", "tekken"):
    train(p, p)
train("frequency", "llama3", vocab_size=2000, min_frequency=4)
train("specials", "o200k", special_tokens=["<s>", "the", "</s>", "<s>", "12"])
train("short", "gpt2", max_token_length=6)
for kind, size in (("words", 3000), ("long", 2000), ("same", 300), ("chinese", 2000), ("code", 1500)):
    awk = subprocess.run(["awk", "-v", f"kind={kind}", "-f", os.path.join(out, "hard.awk")], stdout=subprocess.PIPE, check=True)
    train(kind, "gpt2", awk.stdout.decode().splitlines(keepends=True), vocab_size=size)
    os.remove(os.path.join(out, f"{kind}-vocab.json"))  # the ids are in order

# The trainer takes one string, and one text here.
text = "".join(texts)
with open(os.path.join(out, "one.jsonl"), "w", encoding="utf-8") as f:
    f.write(json.dumps(text, ensure_ascii=False) + "\n")
ranks = _educational.bpe_train(text, 600, patterns["CL100K"], visualise=None)
with open(os.path.join(out, "educational.tiktoken"), "w", encoding="ascii") as f:
    f.writelines(f"{base64.b64encode(t).decode()} {r}\n" for t, r in sorted(ranks.items(), key=lambda x: x[1]))
