#!/usr/bin/env python3
"""Records what NeMo Curator, dolma and DCLM say and measure, to hold quern filter against.

    pip download --no-deps nemo-curator==1.4.0 dolma==1.2.1, unzip both into $PEERS
    pip install loguru regex msgspec typing_extensions uniseg==0.10.1 fasttext-wheel
    python tests/record/filter_dialects.py docs                        >tests/data/filter/dialects.jsonl
    python tests/record/filter_dialects.py nemo $PEERS/nemo            >tests/data/filter/nemo.tsv
    python tests/record/filter_dialects.py nemo $PEERS/nemo $SHARED    | zstd -19 >tests/data/filter/nemo.tsv.zst
    (the same with dolma $PEERS/dolma, and with dclm -)

Columns: name, reason ("-": kept), CRC-32 of the text that is left ("-" if none is written), signals.  A
signal that the original cannot compute (it divides by 0) is blank.
NeMo and dolma are the originals, loaded from their own files without the rest of the packages.  DCLM is not
on PyPI: its rules are written down here from baselines/mappers/ of github.com/mlfoundations/dclm
(commits c7ed275, 15af3ce), over the original word splitters, uniseg and fastText.
"""
import json
import random
import sys
import types
import zlib

from filter_docs import shared


def load(root, *names):
    """Lets the modules below root be imported without running the packages' __init__."""
    for name in names:
        m = types.ModuleType(name)
        m.__path__ = [root + "/" + name.replace(".", "/")]
        sys.modules[name] = m


# ---- NeMo Curator ----

def nemo(root):
    text = "nemo_curator.stages.text."
    load(root, "nemo_curator", "nemo_curator.stages", "nemo_curator.stages.text", text + "filters", text + "utils",
         text + "filters.heuristic", text + "filters.heuristic.repetition")
    from nemo_curator.stages.text.filters.heuristic import string as s
    from nemo_curator.stages.text.filters.heuristic.repetition import repetition as r

    # Of several n-grams that are equally frequent it takes the first in a set of strings, which
    # Python orders anew in each run.  With this one the first is the one seen first.
    r.set = dict.fromkeys
    filters = [
        s.NonAlphaNumericFilter(), s.SymbolsToWordsFilter(), s.NumbersFilter(), s.UrlsFilter(), s.WhiteSpaceFilter(),
        s.ParenthesesFilter(), s.BoilerPlateStringFilter(), r.RepeatedLinesFilter(), r.RepeatedParagraphsFilter(),
        r.RepeatedLinesByCharFilter(), r.RepeatedParagraphsByCharFilter(), s.WordCountFilter(), s.PunctuationFilter(),
        s.WordsWithoutAlphabetsFilter(), s.CommonEnglishWordsFilter(), s.MeanWordLengthFilter(), s.LongWordFilter(),
        s.EllipsisFilter(),
        *[r.RepeatingTopNGramsFilter(n, x) for n, x in [(2, 0.2), (3, 0.18), (4, 0.16)]],
        *[r.RepeatingDuplicateNGramsFilter(n, (20 - n) / 100) for n in range(5, 11)],
        s.BulletsFilter(),
    ]
    assert len(filters) == 28
    names = [f._name for f in filters]

    def judge(text):
        reason, values = "-", []
        for f in filters:
            try:
                x = f.score_document(text)
            except (ZeroDivisionError, ValueError):
                values.append(None)
                continue
            values.append(x)
            if reason == "-" and not f.keep_document(x):
                high = f._name in ("word_count", "mean_word_length") and x >= 10 and not (f._name == "word_count" and x < 50)
                reason = f._name + ("_max" if high else "")
        return reason, None, values

    return names, judge


# ---- documents of our own ----

def make_docs():
    """Texts of odd pieces, on which the rules differ from what one would think."""
    rng = random.Random(11)
    pieces = [
        "the", "be", "to", "of", "and", "that", "have", "with", "The", "river", "runs", "stone", "a", "b", "naïve",
        "straße", "река", "中文", "42", "3.14", "٣٤", "#", "##", "#tag", "#a#", "...", "[...]", "(...)", "…", "[…]",
        "-»", "read more", "Read More..", "•", "‣", "⦿", "-", "*", "●", "{", "}", "[x]", "(y)", "⟨z⟩",
        "http://a.example/x?y=%20#z", "https://b.example", "http://", "https://é.example", "(http://c.example/%zz)",
        "terms of use", "Privacy Policy", "privacy overview", "cookie policy", "uses cooKies", "Lorem Ipsum",
        "javascript", "JavaScript:", "necessary cookies", "\u00a0", "\u2028", "\x1c", "\u3000", "  ", "\t",
        "items in cart", "Read more...", "Sign-in", "3 likes", "1,204 Followers", "12k views", "ALL CAPS HERE",
        "1234", "don't", "can't.", "e.g.", "U.S.A.", "x_y", "שלום", "ש\"ס", "カタカナ", "\U0001f1e9\U0001f1ea\U0001f1eb",
        "👩\u200d🌾", "e\u0301", "A\u030a", "1,000.50", "a:b", "a'b", "ab"]
    ends = [".", "?", "!", '"', "'", "", "", ",", "...", " . . .", "…", ":"]
    for i in range(90):
        few = rng.sample(pieces, rng.randint(3, len(pieces)))
        phrase = " ".join(rng.choice(few) for _ in range(rng.randint(2, 12)))
        lines = []
        for _ in range(rng.randint(1, 14)):
            what = rng.random()
            if what < 0.15:
                lines.append("")
            elif what < 0.3 and lines:
                lines.append(rng.choice(lines))
            elif what < 0.5:
                lines.append(phrase + rng.choice(ends))
            else:
                line = rng.choice([" ", " ", " ", "  "]).join(rng.choice(few) for _ in range(rng.randint(1, 16)))
                lines.append(line + rng.choice(ends))
        yield "odd%d" % i, rng.choice(["\n", "\n", "\n\n", "\n \n"]).join(lines)
    words = ["%s%s" % (a, b) for a in "kltmns" for b in ("a", "ore", "ith", "ume")] + ["the", "of", "to", "and"]
    for i in range(30):  # repetition of every kind and length
        text, prose = [], [rng.choice(words) for _ in range(40)]
        while len(text) < 120:
            at, n = rng.randrange(len(prose)), rng.randint(1, 14)
            text += prose[at:at + n] if rng.random() < 0.2 + i / 40 else [rng.choice(words)]
        yield "again%d" % i, "".join(w + rng.choice([" ", " ", " ", " ", " ", ". ", ".\n", ".\n\n", "  "]) for w in text)
    yield "blank", " \n\n\t\n"
    yield "newlines", "\n\n\n\n"
    yield "one", "word"
    yield "two", "word word"
    yield "long", "x" * 1001 + " y"


def main():
    what = sys.argv[1]
    if what == "docs":
        for name, text in make_docs():
            print(json.dumps({"id": name, "text": text}, ensure_ascii=False))
        return
    names, judge = {"nemo": nemo}[what](sys.argv[2])
    if len(sys.argv) > 3:
        docs = shared(sys.argv[3], 0.25)
    else:
        docs = ((d["id"], d["text"]) for f in ("own", "dialects")
                for d in map(json.loads, open("tests/data/filter/%s.jsonl" % f)))
    print("\t".join(["name", "reason", "after"] + names))
    for name, text in docs:
        reason, left, values = judge(text)
        after = "-" if left is None else "%08x" % zlib.crc32(left.encode())
        print("\t".join([name, reason, after] + ["" if v is None else "%.9g" % v for v in values]))


if __name__ == "__main__":
    main()
