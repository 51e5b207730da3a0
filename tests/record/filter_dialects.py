#!/usr/bin/env python3
"""Records what NeMo Curator, dolma and DCLM say and measure, to hold quern filter against.

    pip download --no-deps nemo-curator==1.4.0 dolma==1.2.1, unzip both into $PEERS
    pip install loguru regex msgspec typing_extensions uniseg==0.10.1 fasttext-wheel
    python tests/record/filter_dialects.py docs                        >tests/data/filter/dialects.jsonl
    python tests/record/filter_dialects.py nemo $PEERS/nemo            >tests/data/filter/nemo.tsv
    python tests/record/filter_dialects.py nemo $PEERS/nemo $SHARED    | zstd -19 >tests/data/filter/nemo.tsv.zst
    (the same with dolma $PEERS/dolma, and with dclm -)

Columns: name, reason ("-": kept), CRC-32 of the text that is left ("-": nothing changes it; dolma: without the
lines that C4's two rules on lines mark), signals.  A
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


# ---- dolma ----

def dolma(root):
    load(root, "dolma", "dolma.core", "dolma.taggers")
    from dolma.taggers import c4, gopher

    grams = ["fraction_of_characters_in_most_common_%dgrams" % n for n in (2, 3, 4)]
    dups = ["fraction_of_characters_in_duplicate_%dgrams" % n for n in range(5, 11)]
    # configs/dolma-v1_5/mixing/cc-head.yaml, with the names that the tagger writes ("2grams", not "2gram")
    config = [("word_count", 50, 100000), ("median_word_length", 3, 10), ("symbol_to_word_ratio", None, 0.1),
              ("fraction_of_words_with_alpha_character", 0.8, None), ("required_word_count", 2, None),
              ("fraction_of_lines_starting_with_bullet_point", None, 0.9),
              ("fraction_of_lines_ending_with_ellipsis", None, 0.3), ("fraction_of_duplicate_lines", None, 0.3),
              ("fraction_of_characters_in_duplicate_lines", None, 0.3), *zip(grams, [None] * 3, [0.2, 0.18, 0.16]),
              *zip(dups, [None] * 6, [0.15, 0.14, 0.13, 0.12, 0.11, 0.10])]
    lines = ["lines_with_no_ending_punctuation", "lines_with_too_few_words"]
    flags = ["has_javascript", "has_lorem_ipsum", "has_curly_brace"]
    names = [c[0] for c in config] + ["character_count", "line_count"] + lines + flags

    def judge(text):
        seen = {s.type: s.score for s in gopher.get_attributes(text).as_spans()}
        spans = c4.get_attributes(text).as_spans()
        seen.update({s.type: s.score for s in spans if s.type == "line_count" or s.type in flags})
        seen.update({name: sum(s.type == name for s in spans) for name in lines})
        seen.update({name: 0 for name in flags if name not in seen})
        reason = "-"
        for name, low, high in config:
            x = round(seen[name], 5) if name in seen else None  # what BaseTagger.group_output writes
            if x is not None and low is not None and x < low:
                reason = name
            elif x is not None and high is not None and x > high:
                reason = name + ("_max" if low is not None else "")
            if reason != "-":
                break
        gone = {(s.start, s.end) for s in spans if s.type in lines}  # what the mixer takes out if it is told to
        at, left = 0, []
        for line in text.split("\n"):
            end = min(at + len(line) + 1, len(text))
            if (at, end) not in gone:
                left.append(text[at:end])
            at = end
        return reason, "".join(left), [seen.get(name) for name in names]

    return names, judge


# ---- DCLM ----

def dclm(_):
    import re
    from collections import Counter

    import fasttext
    from uniseg.wordbreak import words as uniseg_words

    stop = {"the", "be", "to", "of", "and", "that", "have", "with"}
    counted = ("likes|shares|comments|retweets|reposts|quotes|bookmarks|upvotes|downvotes|downloads|views|followers")
    counter = re.compile(r"^\W*\d(?:,|\.|\d)*(?:K|k|M|m|B|b)?\s+(?:%s)\W*$" % counted)
    phrases = [re.compile(p, re.I) for p in (r"\s?(?:items in cart)", r"\s?(?:read more...)$", r"^(?:sign-in)\s?")]
    names = ["page_length", "word_length", "symbol_ratio", "bullet_count", "ellipsis_count", "alphabetic_word_ratio",
             "stop_word", "repetition_line", "repetition_paragraph", "repetition_line_char", "repetition_paragraph_char"]
    names += ["repetition_%d_gram" % n for n in range(2, 11)] + ["nothing_left", "word_removal_ratio"]

    def share(a, b):
        return a / b if b else None

    def count_tokens(text):
        return sum(w[0].isalnum() for w in fasttext.FastText.tokenize(text))

    def pieces(text, cut):
        return [s for s in map(str.strip, text.split(cut)) if s]

    def repeated(parts, by_chars):
        if not parts:
            return None
        weigh = len if by_chars else lambda s: 1
        return sum(weigh(s) * n for s, n in Counter(parts).items() if n > 1) / sum(map(weigh, parts))

    def repeated_grams(words, n):
        grams = [tuple(words[i:i + n]) for i in range(len(words) - n + 1)]
        counts = Counter(grams)
        most = max(counts.values(), default=1)
        if most == 1:
            return 0
        if n <= 4:
            chars = most * max(sum(map(len, g)) for g, c in counts.items() if c == most)
        else:
            at = {j for i, g in enumerate(grams) if counts[g] > 1 for j in range(i, i + n)}
            chars = sum(len(words[j]) for j in at)
        return chars / sum(map(len, words))

    def without(lines, gone):
        return "\n".join(s for s in lines if not gone(s)).strip()

    def cut_phrase(text, phrase):
        left = []
        for s in text.split("\n"):
            if len(s.split()) <= 10:
                cut = phrase.sub("", s)
                if s and not cut.strip():
                    continue
                s = cut
            left.append(s)
        return "\n".join(left).strip()

    def take_steps(text):
        text = without(text.split("\n"), lambda s: s and sum(c.isupper() for c in s) / len(s) > 0.5)
        text = without(text.split("\n"), lambda s: s and sum(c.isdigit() for c in s) / len(s) > 0.999999)
        text = without(text.split("\n"), lambda s: counter.search(s.lower()))
        text = "\n".join(s for s in text.split("\n") if not s or len(s.split()) >= 2)
        for p in phrases:
            text = cut_phrase(text, p)
        return text

    def judge(text):
        text = re.sub(r"\n{3,}", "\n\n", text)
        words, lines, paragraphs = text.split(), pieces(text, "\n"), pieces(text, "\n\n")
        before = count_tokens(text)
        uniseg = [w for w in uniseg_words(text) if w[0].isalnum()]
        left = take_steps(text)
        x = dict(zip(names, [
            before, share(sum(map(len, words)), len(words)),
            share(sum(text.count(s) for s in ("#", "...", ". . .", "\u2026")), len(words)),
            share(sum(s.startswith(("\u25cf", "\u2022", "*", "-")) for s in lines), len(lines)),
            share(sum(s.endswith(("...", ". . .", "\u2026")) for s in lines), len(lines)),
            share(sum(not any(c.isalpha() for c in w) for w in words), len(words)),
            sum(w.lower() in stop for w in words),
            repeated(lines, False), repeated(paragraphs, False), repeated(lines, True), repeated(paragraphs, True),
            *[repeated_grams(uniseg, n) for n in range(2, 11)],
            int(left == ""), share(before - count_tokens(left), before)]))
        low = dict(page_length=50, word_length=3, stop_word=2)
        high = dict(page_length=100000, word_length=10, symbol_ratio=0.1, bullet_count=0.9, ellipsis_count=0.3,
                    alphabetic_word_ratio=0.2, repetition_line=0.3, repetition_paragraph=0.3, repetition_line_char=0.2,
                    repetition_paragraph_char=0.2, repetition_2_gram=0.2, repetition_3_gram=0.18, repetition_4_gram=0.16,
                    nothing_left=0, word_removal_ratio=0.05)
        high.update({"repetition_%d_gram" % n: (20 - n) / 100 for n in range(5, 11)})
        reason = "-"
        for name in names:
            if x[name] is not None and name in low and x[name] < low[name]:
                reason = name
            elif x[name] is not None and name in high and x[name] > high[name]:
                reason = name + ("_max" if name in low else "")
            if reason != "-":
                break
        return reason, left, [x[name] for name in names]

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
    names, judge = {"nemo": nemo, "dolma": dolma, "dclm": dclm}[what](sys.argv[2])
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
