"""Documents to try the languages of quern filter on, from the UDHR: languages.py DOCS.jsonl

`kind` is right (the declaration, of each language in all its forms), wrong (labelled as each of
the other languages), or one of four kinds of noise made from it: words (each word's letters shuffled), menu (short lines of a word or two),
loop (one article over and over), digits (every second word a number)."""
import collections
import json
import os
import random
import sys

LANGS = dict(de="deu", fr="fra", es="spa", it="ita", pt="por", nl="nld", pl="pol", ru="rus", uk="ukr", cs="ces", sv="swe",
             da="dan", nb="nob", fi="fin", hu="hun", ro="ron", bg="bul", el="ell", tr="tur", ar="arb", fa="pes", he="heb",
             hi="hin", bn="ben", id="ind", vi="vie", th="tha", ja="jpn", ko="kor", zh="cmn")
parts = collections.defaultdict(list)
for line in open(os.environ["SHARED"] + "/data/langid/udhr/dev.jsonl"):
    d = json.loads(line)
    parts[d["iso6393"], d["code"]].append(d["text"])
rng = random.Random(11)


def shuffled(word):
    return "".join(rng.sample(word, len(word)))


def chunks(text, spaced):
    """Words, or runs of four characters where there are no spaces."""
    return text.split() if spaced else [text[i:i + 4] for i in range(0, len(text), 4)]


with open(sys.argv[1], "w") as out:
    def put(kind, lang, code, text):
        out.write(json.dumps({"id": "%s %s %s" % (kind, lang, code), "lang": lang, "text": text}) + "\n")

    for lang, three in LANGS.items():
        spaced = lang not in ("th", "ja", "zh")
        for (iso, code), texts in parts.items():
            if iso != three or code in ("vie_han", "068"):  # another script; another language
                continue
            text = "\n".join(texts)
            put("right", lang, code, text)
            for other in LANGS:
                if other != lang:
                    put("wrong", other, code, text)
            words = chunks(text, spaced)
            put("words", lang, code, "\n".join(" ".join(map(shuffled, chunks(x, spaced))) for x in texts))
            put("menu", lang, code, "\n".join(" ".join(words[i:i + 2]) for i in range(0, 200, 2)))
            put("loop", lang, code, "\n".join([texts[3]] * 40))
            put("digits", lang, code, " ".join("%s %d" % (w, rng.randrange(10 ** 6)) for w in words))
