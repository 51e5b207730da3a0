#!/usr/bin/env python3
"""Holds quern against published tokenizers, by their own files: 20,000 random strings and 1,000 texts in many languages.

usage: tokenizer_real.py QUERN TEXTS.jsonl... -- FILE[=PATTERN]...
FILE: a tokenizer.json (Hugging Face's tokenizers), a .model of SentencePiece, a rank file with tiktoken's PATTERN.
For each: how many of 21,000 differ, a hash of file, and of all ids (64-bit FNV-1a as in tokenizer_families.py).
"""
import base64
import hashlib
import json
import random
import subprocess
import sys
import tempfile

quern, *rest = sys.argv[1:]
at = rest.index("--")
files, tokenizers = rest[:at], rest[at + 1:]

def strings(n):
    r = random.Random(20261123)
    pool = json.load(open("tests/data/tokenizer/families.json", encoding="utf-8"))["pool"]
    for i in range(n):
        if i % 4 == 3:  # any characters
            yield "".join(chr(r.choice((r.randrange(0x20, 0x3000), r.randrange(0x20, 0xD800), r.randrange(0xE000, 0x20000))))
                          for _ in range(r.randrange(1, 30)))
        else:
            yield "".join(r.choice(pool) for _ in range(r.randrange(1, 60)))

def texts(n):
    each, all_texts = n // len(files), []
    for f in files:
        lines = subprocess.Popen(["zstd", "-dcq", f], stdout=subprocess.PIPE).stdout if f.endswith(".zst") else open(f, "rb")
        some = [json.loads(line)["text"] for line in lines]
        r = random.Random(7)
        for t in r.sample(some, min(each, len(some))):
            begin = r.randrange(max(1, len(t) - 20000))
            all_texts.append(t[begin:begin + 20000])
    return all_texts

def encoder(path, pattern):
    if path.endswith(".json"):
        import tokenizers
        t = tokenizers.Tokenizer.from_file(path)
        t.encode_special_tokens = True  # as plain text, as quern has it
        return lambda some: [e.ids for e in t.encode_batch(some, add_special_tokens=False)]
    head = open(path, "rb").read(100)
    if head[0] == 10:
        import sentencepiece
        t = sentencepiece.SentencePieceProcessor(model_file=path)
        return lambda some: t.encode(some)
    import tiktoken
    ranks = {base64.b64decode(a): int(b) for a, b in (l.split() for l in open(path) if l.strip())}
    t = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda some: t.encode_ordinary_batch(some, num_threads=1)

def fnv(h, ids):
    for i in [*ids, 0xFFFFFFFF]:
        for b in i.to_bytes(4, "little"):
            h = (h ^ b) * 0x100000001b3 % 2**64
    return h

drawn, real = list(strings(20000)), texts(1000)
for name in tokenizers:
    path, _, pattern = name.partition("=")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        h = 0xcbf29ce484222325
        for text, ids in zip(drawn + real, encoder(path, pattern)(drawn + real)):
            h = fnv(h, ids)
            f.write(json.dumps({"text": text, "ids": ids}, ensure_ascii=False) + "\n")
        f.flush()
        said = subprocess.run([quern, "tokenizer", "verify", "--tokenizer", path, "--against", f.name],
                              capture_output=True, text=True)
    digest = hashlib.sha256(open(path, "rb").read()).hexdigest()[:16]
    print(f"{path}\t{len(real)} texts, {sum(map(len, real))} characters\tfile {digest}\tids {h:016x}\t"
          f"{(said.stdout + said.stderr).strip()}", flush=True)
