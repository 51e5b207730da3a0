#!/usr/bin/env python3
"""Records tests/data/tokenizer/tekken_*: small files of Mistral's kind and the ids that mistral-common gives by them for the hard
strings of tests/data/tokenizer.

usage: tokenizer_tekken.py TESTS/DATA/TOKENIZER      (needs mistral-common; recorded with 1.13.1 and tiktoken 0.14.0)
"""
import base64
import json
import os
import random
import re
import sys

from mistral_common.tokens.tokenizers.tekken import Tekkenizer

folder = sys.argv[1]
texts = [json.loads(line)["text"] for line in open(os.path.join(folder, "gpt2.tiktoken.jsonl"), encoding="utf-8")]
recorder = open(os.path.join(os.path.dirname(__file__), "tokenizer.py"), encoding="utf-8").read()
patterns = {}
exec("\n".join(re.findall(r"^(?:WORD|SUFFIX|TEKKEN) = .*$", recorder, re.M)), patterns)
joined = [base64.b64decode(line.split()[0]) for line in open(os.path.join(folder, "ranks.tiktoken"), encoding="ascii")]
joined = [t for t in joined if len(t) > 1]
shuffled = random.Random(1).sample(joined, len(joined))  # tokens may come before their parts


def record(name, tokens, pattern, specials, size=None, **more):
    tokens = [bytes([b]) for b in range(256)] + tokens
    named = more.get("special_tokens")
    file = {
        "config": {"pattern": pattern, "num_vocab_tokens": len(tokens), "default_vocab_size": (size or len(tokens)) + specials,
                   "default_num_special_tokens": specials, "version": more.pop("config_version", "v3")},
        "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)],
        **more, "special_tokens": named and [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(named)]}
    path = os.path.join(folder, f"tekken_{name}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(file, f, separators=(",", ":"))
    mistral = Tekkenizer.from_file(path)
    with open(os.path.join(folder, f"tekken_{name}.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": t, "ids": mistral.encode(t, False, False)}, separators=(",", ":")) + "\n" for t in texts)


record("usual", joined, patterns["TEKKEN"], 20)
record("words", shuffled[:300], r"\w+|\W+", 8, config_version="v15", special_tokens=["<s>", "[INST]", "\u6f22"], version=1, type="Tekken",
       model_settings_builder={})
record("cut", joined[:200], r"(?s:.)\b|(?s:.)+?$|[\s\S]", 0, size=400, special_tokens=[])
