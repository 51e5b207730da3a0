#!/usr/bin/env python3
"""Records the quality signals of RedPajama-Data v2, to hold the preset rpv2 against.

    pip install nltk==3.8.1   # the one of its time: later ones cut words otherwise
    python tests/record/rpv2.py own              >tests/data/filter/rpv2.tsv
    python tests/record/rpv2.py shared $SHARED   | zstd -19 >tests/data/filter/rpv2_shared.tsv.zst

The definitions are those of app/src/core (document.py, quality_signals/*.py) and
app/src/utilities/text of togethercomputer/RedPajama-Data, with the same calls of Python (str, re,
unicodedata) and NLTK, which is where the values come from.  Columns: name, signals of the
document ("-": None), then a CRC-32 of each signal of lines as compact JSON of [start, end,
value], and in `own` nothing else.  Bad words: tests/data/filter/bad.txt.
"""
import json
import math
import os
import re
import string
import sys
import unicodedata
import zlib
from collections import Counter

from nltk.tokenize import WordPunctTokenizer

sys.path.insert(0, os.path.dirname(__file__))
NO_PUNCT = {ord(c): None for c in string.punctuation}
BULLETS = tuple("\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013")
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
STOP = set(re.search(r'\{"en",(.*?)\}', open(ROOT + "/curate/text/rpv2_stop_words.inc").read(), re.S)[1]
           .replace('"', " ").split())
BAD = {x.strip() for x in open(ROOT + "/tests/data/filter/bad.txt") if not x.startswith("#")}


def normal(text):
    text = text.translate(NO_PUNCT).lower().strip()
    return unicodedata.normalize("NFD", re.sub(r"\s+", " ", text))


def grams(words, n):
    return [tuple(words[i:i + n]) for i in range(len(words) - n + 1)]


def r8(x):
    return round(x, 8)


def top(words, n):
    found = Counter(grams(words, n)).most_common(1)
    if not found or found[0][1] <= 1:
        return 0.0
    return r8(sum(map(len, found[0][0])) * found[0][1] / sum(map(len, words)))


def covered(words, n):
    total = sum(map(len, words))
    if len(words) < n or total == 0:
        return 0.0
    count = Counter(grams(words, n))
    hit = [False] * len(words)
    for i, g in enumerate(grams(words, n)):
        if count[g] > 1:
            hit[i:i + n] = [True] * n
    return r8(sum(len(w) for w, h in zip(words, hit) if h) / total)


def document(text):
    raw, norm = WordPunctTokenizer().tokenize(text), normal(text)
    words = norm.split()
    lines = [m.group() for m in re.finditer(r"([^\n]*\n|[^\n]+$)", text)]
    n, w = len(raw), len(words)
    d = {}

    def put(name, value):
        d["rps_doc_" + name] = value

    put("word_count", w)
    put("mean_word_length", r8(sum(map(len, words)) / w) if w else None)
    put("symbol_to_word_ratio", r8(sum(map(text.count, ("#", "...", "…"))) / n) if n else None)
    for k in (2, 3, 4):
        put("frac_chars_top_%dgram" % k, top(words, k))
    for k in range(5, 11):
        put("frac_chars_dupe_%dgrams" % k, covered(words, k))
    put("frac_lines_end_with_ellipsis",
        r8(sum(x.rstrip().endswith(("...", "…")) for x in lines) / len(lines)) if lines else None)
    put("frac_no_alph_words", r8(1.0 - sum(bool(re.search("[a-zA-Z]", x)) for x in raw) / n) if n else None)
    put("stop_word_fraction", r8(sum(x in STOP for x in raw) / n) if w else 0.0)
    put("frac_unique_words", r8(len(set(words)) / w) if w else None)
    put("unigram_entropy", r8(sum(-x / w * math.log(x / w) for x in Counter(words).values())) if w else None)
    put("frac_all_caps_words", r8(sum(map(str.isupper, raw)) / n) if n else None)
    put("num_sentences", float(len(re.findall(r"\b[^.!?]+[.!?]*", text))))
    put("lorem_ipsum", r8(len(re.findall("lorem ipsum", norm, re.I)) / len(norm)) if "lorem ipsum" in norm else 0.0)
    put("curly_bracket", r8((text.count("{") + text.count("}")) / len(text)) if text else 0.0)
    put("ldnoobw_words", float(sum(" ".join(g) in BAD for k in {1 + x.count(" ") for x in BAD}
                                   for g in grams(words, k))))
    return d, line_signals(text, lines)


def line_signals(text, lines):
    at, rows = 0, []
    for x in lines:
        rows.append((at, at + len(x), x, normal(x)))
        at += len(x)
    of = {
        "javascript_counts": lambda x, y: float(y.split().count("javascript")),
        "ending_with_terminal_punctution_mark": lambda x, y: float(x.rstrip().endswith((".", "!", "?", "”"))),
        "num_words": lambda x, y: len(y.split()),
        "uppercase_letter_fraction": lambda x, y: r8(sum(map(str.isupper, x)) / len(x)) if x else 0.0,
        "numerical_chars_fraction": lambda x, y: r8(sum(map(str.isnumeric, y)) / len(y)) if y else 0.0,
        "start_with_bulletpoint": lambda x, y: float(x.lstrip().startswith(BULLETS)),
    }
    d = {"rps_lines_" + k: [[a, b, f(x, y)] for a, b, x, y in rows] for k, f in of.items()}
    if not rows:
        d["rps_lines_start_with_bulletpoint"] = [[0, len(text), None]]
    return d


def crc(rows):
    """Of values with 6 decimals, so that it does not hang on the last digit."""
    return "%08x" % zlib.crc32(" ".join("%d %d %s" % (a, b, "-" if v is None else "%.6f" % v)
                                        for a, b, v in rows).encode())


def main():
    if sys.argv[1] == "own":
        docs = [(d["id"], d["text"]) for d in map(json.loads, open(ROOT + "/tests/data/filter/own.jsonl"))]
        docs += [(d["id"], d["text"]) for d in map(json.loads, open(ROOT + "/tests/data/filter/rpv2.jsonl"))]
    else:
        from filter_docs import shared
        docs = shared(sys.argv[2], keep=0.5)
    first = True
    for name, text in docs:
        d, lines = document(text)
        if first:
            print("\t".join(["name", *d, *lines]))
            first = False
        print("\t".join([name, *("-" if v is None else "%.9g" % v for v in d.values()), *map(crc, lines.values())]))


if __name__ == "__main__":
    main()
