"""Records what datatrove makes of some texts: tests/data/dedup/datatrove.jsonl.

    python tests/record/minhash.py > tests/data/dedup/datatrove.jsonl

Needs datatrove (0.10.1 was used) with spacy and xxhash.  A line a text: the words, their
number of different shingles, the first four of the 112 hashes, and XXH64 of all 112 as
little-endian 64-bit numbers.  With --stdin the texts are those of JSON lines on standard
input and the digests alone are printed, for comparing whole collections.
"""
import json
import sys

import numpy as np
import xxhash
from datatrove.pipeline.dedup.minhash import MinhashDedupSignature
from datatrove.utils.text import simplify_text

TEXTS = [
    "The miller ground the wheat between two heavy stones, and the flour fell into a sack.",
    "one two three four",
    "one two three four five",
    "",
    "  ...  !!! \u00a0 \u2014 ",
    "In 1984 the price was 1,234.56 crowns; by 2024 it had risen to 1.2.3 or 12\u066b5, about 40%.",
    "I can't say I'm sure they'd've gone; you're gonna lemme know, aren't you? We'll see what's what.",
    "dont cant wont im ive youre theyre cannot gonna gotta lets its whats wouldnt couldve c'mon y'all",
    "Caf\u00e9 na\u00efve r\u00e9sum\u00e9 Z\u00fcrich \u0141\u00f3d\u017a \u0130stanbul \u1e9eTRASSE \u00c5ngstr\u00f6m \u212bngstr\u00f6m co\u00f6perate",
    "\u039f\u03a3 \u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03a3\u0391\u03a3 \u03a3 \u03b1\u03a3\u0301 \u03a3\u03c5\u03c3\u03c4\u03b7\u03bc\u03b1 \u0391\u03a3.\u0391 \u1f48\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2",
    "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc740 \uc774\ub807\uac8c \uc0dd\uacbc\ub2e4 \uadf8\ub9ac\uace0 \uc790\ubaa8\ub85c \ub098\ub258\ub2e4",
    "\u3053\u308c\u306f\u65e5\u672c\u8a9e\u306e\u6587\u3067\u3059\u3002\u305d\u3057\u3066\u3001\u7a7a\u767d\u304c\u3042\u308a\u307e\u305b\u3093\uff01 \u4e8c \u4e09 \u56db \u4e94 \u516d",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902 \u090f\u0915 \u0935\u093e\u0915\u094d\u092f \u0939\u0948 \u0967\u0968\u0969 \u0914\u0930 \u0968\u0966\u0968\u096a",
    "He walked 12km at 5kg 30\u00b0C for 20\u20ac or \u00a3300 \u2013 and \u2022 bullets \u2192 arrows \u2018quoted\u2019 \u00bfqu\u00e9? \u00a71 \u00b15",
    "Emoji \U0001f600\U0001f44d\U0001f3fd split? ok\U0001f389done \u2603snow\u2764\ufe0f end of the line here",
    "a\u00b7b x\u00b2 H\u2082O 3\u00d74 \u00bd cup \u2116 5 \u2122 caf\u00e9\u2019s o\u2019clock rock \u2019n\u2019 roll '90s e-mail and/or",
    "Greek question\u037e mark and \u1fef grave \u0387 dot and \u2126 ohm and \ufb01ne ligatures \ufb03x",
    "the cat sat on the mat and the cat sat on the mat and the cat sat on the mat again",
    "Tabs\tand\nnewlines\r\nand\x0bvertical\x0cforms\x1cseparators\x85next\u2028line\u3000wide space",
    "Visit http://example.org/a_b?c=d or mail me@example.org, e.g. at 10 a.m. on Jan. 3rd, i.e. now (U.S.A.).",
    "\u0627\u0644\u0633\u0639\u0631 \u0661\u0662\u066b\u0665 \u0631\u064a\u0627\u0644\u060c \u0648\u0627\u0644\u0643\u062a\u0627\u0628\u064f \u062c\u0645\u064a\u0644\u064c \u061f \u0646\u0639\u0645",
    "w o r d s " * 300,
]


def describe(step, text):
    shingles = step.get_shingles(text)
    words = step.word_tokenizer.word_tokenize(simplify_text(text, step.config.norm_config))
    out = {"text": text, "words": " ".join(words), "shingles": len(set(shingles.ravel().tolist()))}
    if shingles.size:
        with np.errstate(over="ignore"):
            sig = [v for band in step.get_signature(shingles) for v in band]
        out["first"] = [str(v) for v in sig[:4]]
        out["digest"] = xxhash.xxh64_hexdigest(np.array(sig, dtype="<u8").tobytes(), seed=0)
    return out


def main():
    step = MinhashDedupSignature("/tmp/quern-record-minhash")
    if "--stdin" in sys.argv:
        for line in sys.stdin:
            print(describe(step, json.loads(line)["text"]).get("digest", "-"))
        return
    for text in TEXTS:
        print(json.dumps(describe(step, text)))


main()
