#!/usr/bin/env python3
"""Records tests/data/tokenizer/train/KIND.jsonl: the ids that Hugging Face's tokenizers gives hard strings with small tokenizers that
quern trains, and checks that SentencePiece gives the same with the models of its format.

usage: tokenizer_kinds.py FOLDER QUERN      (needs tokenizers and sentencepiece; recorded with 0.23.3 and 0.2.3)
"""
import json
import os
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer

out, quern = sys.argv[1:]
source = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.py"), encoding="utf-8").read()
names = {}
exec(source[source.index("CORPUS = "):source.index("GPT2 = ")], names)
HARD = [t[:300] for t in names["HARD"] if t] + ["(\u00e9t\u00e9) 12345 don't  stop\u2026 \u4e2d\u6587\u5b57", "  two  spaces ", "\u2581mark \u2581\u2581x"]
for kind, options in {"wordpiece": [], "byte-fallback": ["--sentencepiece-model"]}.items():
    with tempfile.TemporaryDirectory() as d:
        files = os.path.join(d, "t.json"), os.path.join(d, "t.model")
        subprocess.run([quern, "tokenizer", "train", "--model", kind, "--vocab-size", "900", "-o", files[0], *options,
                        *files[1:1 + len(options)], os.path.join(out, "texts.jsonl")], check=True, stderr=subprocess.DEVNULL)
        t = Tokenizer.from_file(files[0])
        other = sentencepiece.SentencePieceProcessor(model_file=files[1]) if options else None
        with open(os.path.join(out, kind + ".jsonl"), "w", encoding="utf-8") as f:
            for s in HARD:
                ids = t.encode(s, add_special_tokens=False).ids
                if other and other.encode(s) != ids:
                    sys.exit(f"SentencePiece gives other ids of {s!r}")
                f.write(json.dumps({"text": s, "ids": ids}, separators=(",", ":")) + "\n")
