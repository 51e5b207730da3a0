#!/usr/bin/env python3
"""Records how other systems score and sample documents: tests/data/classify/answers.jsonl.

    python3 tests/record/classify.py > tests/data/classify/answers.jsonl

Needs fasttext-wheel 0.9.2, datatrove 0.10.1 and, for CURATOR, the unpacked wheel of nemo-curator
1.4.0.  The model is tests/data/fasttext/binary.bin.  DCLM's rule is written out here: its mapper
strips the text, joins its lines by spaces, and takes 1 - p where the best label is cc.
"""
import importlib.util
import json
import os
import random
import sys
import types

import fasttext

fasttext.FastText.eprint = lambda *a: None
MODEL = "tests/data/fasttext/binary.bin"


def curator():
    root = os.environ["CURATOR"] + "/nemo_curator/stages/text/filters/"
    base = types.ModuleType("nemo_curator.stages.text.filters.doc_filter")
    base.DocumentFilter = object
    for name in ("nemo_curator", "nemo_curator.stages", "nemo_curator.stages.text", "nemo_curator.stages.text.filters"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[base.__name__] = base
    spec = importlib.util.spec_from_file_location("filters", root + "fasttext/fasttext_filters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    f = module.FastTextQualityFilter(MODEL, alpha=3, seed=42)
    f.load_model()
    return f


def dclm(model, text):
    labels, p = model.predict(" ".join(text.strip().splitlines()))
    return 1 - p[0] if labels[0] == "__label__cc" else p[0]


def texts():
    rng = random.Random(11)
    parts = "ka tor vel ish mun lo mi ra na sol шу ти ла ма".split()
    joins = [" ", " ", " ", "\n", "\n\n", "\t", "\r\n", "\u2028", "\x1c", "\u00a0", "__label__", " __label__hq ", "</s>", "\x0b"]
    for _ in range(120):
        yield "".join("".join(rng.choices(parts, k=rng.randint(1, 3))) + rng.choice(joins) for _ in range(rng.randint(1, 9)))
    yield from ["", " \n ", "\u2003kator vel\u2003\n", "kator\nvel", "kator\n\nvel\n"]


def main():
    model = fasttext.load_model(MODEL)
    from datatrove.data import Document
    from datatrove.pipeline.filters.fasttext_filter import FastTextClassifierFilter

    trove = FastTextClassifierFilter(MODEL)
    trove._model = model
    nemo = curator()
    for text in texts():
        doc = Document(text=text, id="0")
        trove.filter(doc)
        score = nemo.score_document(text)
        print(json.dumps({"text": text, "datatrove": doc.metadata["__label__hq"], "nemo": score,
                          "keep": bool(nemo.keep_document(score)), "dclm": float(dclm(model, text))}))


main()
