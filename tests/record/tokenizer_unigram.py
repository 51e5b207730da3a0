#!/usr/bin/env python3
"""Records tests/data/tokenizer/unigram.jsonl.zst: Unigram models of SentencePiece, tokenizer.json files of the shapes of T5, XLM-R and
ALBERT with the same pieces, and what their ids of 20,000 strings are, as hashes: many of the strings are runs of a few characters, where
ways are equally good but for rounding.

usage: tokenizer_unigram.py TEXTS_JSONL >unigram.jsonl; zstd -19 unigram.jsonl      (sentencepiece 0.2.3 and tokenizers 0.23.3)
       tokenizer_unigram.py unigram.jsonl >more.jsonl                               (with sentencepiece 0.2.1: its ids of the same models)
       tokenizer_unigram.py unigram.jsonl TEXTS_JSONL FOLDER                        (ids for `quern tokenizer verify`, of every 18th text)

TEXTS_JSONL: documents with "text" in many languages; the record was made with the declaration of human rights in 450 of them.  more.jsonl
is put behind unigram.jsonl.  The strings are made by strings(), and so in tests/unit/tokenizer_unigram_test.c.
"""
import base64
import io
import json
import os
import struct
import sys

import sentencepiece
from tokenizers import Tokenizer

STRINGS, GROUP = 20000, 100
MASK = (1 << 64) - 1
META = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}


def strings(symbols, state=1):
    def number(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        return (state >> 33) % n

    for _ in range(STRINGS):
        kind = number(3)
        if kind == 0:
            symbol = symbols[number(len(symbols))]
            yield symbol * (1 + number(120))
        elif kind == 1:
            yield "".join([symbols[number(len(symbols))] for _ in range(1 + number(80))])
        else:
            s = ""
            for _ in range(1 + number(12)):
                symbol = symbols[number(len(symbols))]
                s += symbol * (1, 2, 3, 7, 20)[number(5)]
            yield s


def hashes(encode, symbols):
    out, h = [], 0
    for i, s in enumerate(strings(symbols)):
        h = 0xCBF29CE484222325 if i % GROUP == 0 else h
        for x in encode(s) + [0xFFFFFFFF]:
            h = ((h ^ x) * 0x100000001B3) & MASK
        if i % GROUP == GROUP - 1:
            out.append(f"{h:016x}")
    return out


def fields(b):
    """The fields of a protocol buffer."""
    i = 0

    def varint():
        nonlocal i
        x = shift = 0
        while True:
            i += 1
            x |= (b[i - 1] & 127) << shift
            shift += 7
            if b[i - 1] < 128:
                return x

    while i < len(b):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            n = varint() if key & 7 == 2 else 4
            value = b[i:i + n]
            i += n
        yield key >> 3, value


def pieces_of(model):
    for number, value in fields(model):
        if number == 1:
            f = {2: b"\0\0\0\0", 3: 1, **dict(fields(value))}
            yield f[1].decode(), struct.unpack("<f", f[2])[0], f[3]


def form(kind, model):
    """A tokenizer.json as transformers makes of such a model."""
    pieces = list(pieces_of(model))
    vocab = [[p, s] for p, s, _ in pieces]
    unknown = next(i for i, p in enumerate(pieces) if p[2] == 2)
    normalizer, pre = {"type": "NFKC"}, META
    if kind == "t5":
        pre = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, META]}
    if kind == "xlmr":
        vocab = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + vocab[3:] + [["<mask>", 0.0]]
        unknown = 3
        normalizer = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]}
    if kind == "albert":
        normalizer = {"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": "``"}, "content": '"'}, {"type": "NFKD"}, {"type": "StripAccents"},
            {"type": "Lowercase"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    if kind == "bytes":
        normalizer, pre = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}, None
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
                       "pre_tokenizer": pre, "post_processor": None, "decoder": META,
                       "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocab, "byte_fallback": kind == "bytes"}},
                      ensure_ascii=False, separators=(",", ":"))


def put(**line):
    print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))


def train(texts, **options):
    f = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=f, model_type="unigram", num_threads=1, minloglevel=2, character_coverage=0.98, **options)
    return f.getvalue()


def put_model(name, model, symbols):
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    put(name=name, sentencepiece=sentencepiece.__version__, model=base64.b64encode(model).decode(), hashes=hashes(sp.encode, symbols))


def encoder(line):
    if "json" in line:
        t = Tokenizer.from_str(line["json"])
        return lambda s: t.encode(s, add_special_tokens=False).ids
    return sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(line["model"])).encode


lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
if "text" in lines[0]:
    texts = [line["text"] for line in lines if len(line["text"]) < 4000]
    words = [w for t in texts[::37] for w in t.split()]
    symbols = list("=-aboex10 \n*_.\u00e9\u00df\u4e2d\u6587\u7684\u3042\u30f3\u0439\u043e\u0627\u306e\u0915\U0001f600") + [" ", "  ", "==", "the ", " x"] * 2 + \
        [w + " " for w in words[::max(1, len(words) // 150)]]
    put(symbols=symbols)
    models = {"plain": train(texts, vocab_size=2000, normalization_rule_name="identity"),
              "small": train(texts, vocab_size=2000, normalization_rule_name="identity", split_by_whitespace=False, user_defined_symbols=["==", "[xyz]"]),
              "bytes": train(texts, vocab_size=2000, normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False,
                             add_dummy_prefix=False, user_defined_symbols=["<x>", "ooo"])}
    for name, model in models.items():
        put_model(name, model, symbols)
    for kind, base in (("t5", "plain"), ("xlmr", "plain"), ("albert", "small"), ("bytes", "bytes")):
        text = form(kind, models[base])
        put(name=kind + ".json", json=text, hashes=hashes(encoder({"json": text}), symbols))
elif len(sys.argv) == 2:
    for line in lines[1:]:
        if "model" in line:
            put(name=line["name"], sentencepiece=sentencepiece.__version__, hashes=hashes(encoder(line), lines[0]["symbols"]))
else:
    texts = [json.loads(line)["text"] for line in open(sys.argv[2], encoding="utf-8")][::18]
    for line in lines[1:]:
        if "json" in line or "model" in line:
            name = os.path.join(sys.argv[3], line["name"])
            with open(name if "json" in line else name + ".model", "wb") as f:
                f.write(line["json"].encode() if "json" in line else base64.b64decode(line["model"]))
            encode = encoder(line)
            with open(name + ".jsonl", "w", encoding="utf-8") as f:
                for t in texts:
                    f.write(json.dumps({"text": t, "ids": encode(t)}, separators=(",", ":")) + "\n")
