#!/usr/bin/env python3
"""Records what datatrove's filters say with FineWeb-2's parameters, to hold fineweb2-icu against.

    pip install datatrove spacy PyICU     # PyICU over the same ICU as quern's
    python tests/record/languages.py icu DOCS.jsonl >tests/data/filter/languages.tsv
    python tests/record/languages.py own DOCS.jsonl >...   # with datatrove's own tokenizers

DOCS.jsonl is what tests/shared/languages.py writes, through quern clean.  With `icu` the filters
get the words of ICU, cut as curate/text/segment.h says: decisions must be equal.  With `own` they
get those of the tokenizer that datatrove has for the language, and differ where that matters.
Parameters: curate/text/lang_data.inc.  Lines: name, reason of the first filter that drops or "-"; "?" where a
tokenizer does not run.
"""
import json
import os
import re
import sys

from datatrove.data import Document
from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
from datatrove.utils.word_tokenizers import WordTokenizer

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
ROWS = re.findall(r'LANG\("(\w\w)", "([^"]*)", ([\w |]+), NUMBERS\(([^)]*)\),\s*"([^"]*)"\)', open(ROOT + "/curate/text/lang_data.inc").read())


class Icu(WordTokenizer):
    def __init__(self, elides):
        from icu import BreakIterator, Locale
        super().__init__()
        self.elides, self.breaks = elides, BreakIterator.createWordInstance(Locale(""))

    def word_tokenize(self, text):
        units = text.encode("utf-16-le")
        self.breaks.setText(text)
        words, at = [], 0
        for end in self.breaks:
            piece = units[2 * at:2 * end].decode("utf-16-le").strip()
            at = end
            if not piece:
                continue
            if self.elides:
                piece = re.sub(r"(?<=[^\W\d_])(['\u2019])(?=[^\W\d_])", "\\1\n", piece)
            words += piece.split("\n") if self.elides else [piece]
        return words

    def sent_tokenize(self, text):
        raise NotImplementedError

    span_tokenize = sent_tokenize


def name_of(code, others):
    """As FineWeb-2 calls it: ISO 639-3 and script."""
    three = {"nb": "nob", "he": "heb", "id": "ind", "zh": "cmn"}.get(code, others.split()[0])
    script = dict(ru="Cyrl", uk="Cyrl", bg="Cyrl", el="Grek", ar="Arab", fa="Arab", he="Hebr", hi="Deva", bn="Beng", th="Thai",
                  ja="Jpan", ko="Hang", zh="Hani")
    return "%s_%s" % (three, script.get(code, "Latn"))


def filters(code, others, trait, numbers, stop, own):
    n = [float(x) for x in numbers.split(",")]
    language = name_of(code, others) if own else Icu(trait == "LANG_ELIDES")
    quality = dict(max_avg_word_length=n[8], min_avg_word_length=n[9], stop_words=stop.split(), max_non_alpha_words_ratio=n[10],
                   min_stop_words=2)
    return [
        GopherRepetitionFilter(language=language, dup_para_frac=0, dup_line_char_frac=0, dup_para_char_frac=0, dup_line_frac=n[0],
                               top_n_grams=tuple(zip((2, 3, 4), n[12:])), dup_n_grams=tuple(zip(range(5, 11), n[1:7]))),
        FineWebQualityFilter(language=language, short_line_thr=999, char_duplicates_ratio=0.1, line_punct_thr=n[7],
                             new_line_ratio=n[11]),
        GopherQualityFilter(language=language, **quality),
    ]


def main():
    own = sys.argv[1] == "own"
    by_lang = {row[0]: filters(*row, own) for row in ROWS}
    for line in open(sys.argv[2]):
        d = json.loads(line)
        try:
            answers = (f.filter(Document(text=d["text"], id="")) for f in by_lang[d["lang"]])
            reason = next((x[1] for x in answers if x is not True), "-")
        except (ImportError, OSError):
            reason = "?"
        print(d["id"], reason, sep="\t", flush=True)


if __name__ == "__main__":
    main()
