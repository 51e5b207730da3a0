#!/usr/bin/env python3
"""Records tests/data/tokenizer/spm_edited.jsonl: SentencePiece models as no trainer makes them, but people who edit models do, and the
ids that a version gives.

usage: tokenizer_edited.py >spm_edited.jsonl        (with sentencepiece 0.2.3, and behind it 0.2.1, whose ids differ)
"""
import base64
import json
import struct

import sentencepiece

NORMAL, UNKNOWN, CONTROL, USER, UNUSED = 1, 2, 3, 4, 5
BPE, CHAR = 2, 4
FIRST = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
LAST = [(c, -10.0 - i, NORMAL) for i, c in enumerate("\u2581teaQx")]


def piece(text, score, kind):
    text = text.encode()
    body = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
    return b"\x0a" + bytes([len(body)]) + body


def model(kind, pieces):
    return b"".join(piece(*p) for p in pieces) + b"\x12\x02\x18" + bytes([kind])


def but(pieces, text, kind):
    return [(t, score, kind if t == text else k) for t, score, k in pieces]


TEXTS = ["te", "tea", "a tea eats", "ttee", "x", "axe", "xx ax", "tetetea te", "Q", "aQ", "Qa", "QQa tQaQQe", "Q\u00e9Q"]
MODELS = {
    # The first merge that a trainer finds has the score -0; pieces that were added by hand often have 0.
    "zeros": model(BPE, FIRST + [("\u2581t", -0.0, NORMAL), ("te", 0.0, NORMAL), ("ea", -1.0, NORMAL)] + LAST),
    "a zero": model(BPE, FIRST + [("\u2581t", -0.0, NORMAL), ("te", -0.0, NORMAL), ("ea", -1.0, NORMAL)] + LAST),
    "control": model(BPE, FIRST + [("Qa", -1.0, NORMAL), ("tQ", -2.0, NORMAL)] + but(LAST, "Q", CONTROL)),
    "control, char": model(CHAR, FIRST + but(LAST, "Q", CONTROL)),
    "unused, char": model(CHAR, FIRST + but(LAST, "x", UNUSED)),
}
for name, proto in MODELS.items():
    sp = sentencepiece.SentencePieceProcessor(model_proto=proto)
    # 0.2.1 has no ids of a text with a character that is a control piece.
    texts = [t for t in TEXTS if sentencepiece.__version__ != "0.2.1" or not name.startswith("control") or "Q" not in t]
    print(json.dumps({"name": name, "sentencepiece": sentencepiece.__version__, "model": base64.b64encode(proto).decode(),
                      "cases": [[t, sp.encode(t)] for t in texts]}, separators=(",", ":")))
