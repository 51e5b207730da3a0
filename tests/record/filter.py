#!/usr/bin/env python3
"""Records what datatrove's filters say and measure, to hold quern filter against.

    pip install datatrove spacy
    python tests/record/filter.py own              >tests/data/filter/own.tsv
    python tests/record/filter.py shared $SHARED   | zstd -19 >tests/data/filter/shared.tsv.zst

`own` reads tests/data/filter/own.jsonl.  `shared` picks documents from the folder data/ of
$SHARED, named by file and line number (a group of lines for the files of sentences).
Columns: name, reason of each filter ("-": kept), CRC-32 of the text after c4, signals.
The values are those that datatrove itself compares: each threshold is an object that
notes what it is compared with.
"""
import json
import sys
import zlib

from datatrove.data import Document
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter)

from filter_docs import shared


class Spy:
    """A threshold that nothing passes and that remembers what it was compared with."""

    def __init__(self, seen, name):
        self.seen, self.name = seen, name

    def note(self, other):
        self.seen[self.name] = float(other)
        return False

    __lt__ = __gt__ = note

    def __ne__(self, other):
        return True

    __hash__ = None


seen = {}
QUALITY = dict(min_doc_words="gopher_short_doc", max_doc_words="gopher_long_doc",
               min_avg_word_length="gopher_below_avg_threshold", max_avg_word_length="gopher_above_avg_threshold",
               max_bullet_lines_ratio="gopher_too_many_bullets", max_ellipsis_lines_ratio="gopher_too_many_end_ellipsis",
               max_non_alpha_words_ratio="gopher_below_alpha_threshold", min_stop_words="gopher_enough_stop_words")


class TwoSpies(Spy):
    """max_symbol_word_ratio serves two rules, one after the other."""

    def note(self, other):
        name = "gopher_too_many_ellipsis" if "gopher_too_many_hashes" in self.seen else "gopher_too_many_hashes"
        self.seen[name] = float(other)
        return False

    __lt__ = __gt__ = note


REPETITION = ["dup_para_frac", "dup_para_char_frac", "dup_line_frac", "dup_line_char_frac"]
FINEWEB = dict(line_punct_thr="line_punct_ratio", short_line_thr="short_line_ratio",
               char_duplicates_ratio="char_dup_ratio", new_line_ratio="list_ratio")
C4 = dict(zip(["too_long_word", "no_terminal_punc", "too_few_words", "javascript", "policy"],
              ["line_too_long_word", "line_no_terminal_punct", "line_too_few_words", "line_javascript", "line_policy"]))
spying = [
    GopherQualityFilter(max_symbol_word_ratio=TwoSpies(seen, ""), **{k: Spy(seen, v) for k, v in QUALITY.items()}),
    GopherRepetitionFilter(**{k: Spy(seen, k) for k in REPETITION},
                           top_n_grams=tuple((n, Spy(seen, "top_%d_gram" % n)) for n in (2, 3, 4)),
                           dup_n_grams=tuple((n, Spy(seen, "duplicated_%d_n_grams" % n)) for n in range(5, 11))),
    FineWebQualityFilter(**{k: Spy(seen, v) for k, v in FINEWEB.items()}),
]


class SentenceSpy(Spy):
    def __eq__(self, other):
        return False


spying_c4 = C4QualityFilter(min_num_sentences=SentenceSpy(seen, "too_few_sentences"))


def note_line(stat, *_, **__):
    name = C4.get(stat.replace("line-filter-", ""))
    if name:
        seen[name] = seen.get(name, 0) + 1


spying_c4.stat_update = note_line
deciding = [GopherQualityFilter(), GopherRepetitionFilter(), C4QualityFilter(), FineWebQualityFilter()]
NAMES = (list(QUALITY.values()) + ["gopher_too_many_hashes", "gopher_too_many_ellipsis"] + REPETITION +
         ["top_%d_gram" % n for n in (2, 3, 4)] + ["duplicated_%d_n_grams" % n for n in range(5, 11)] +
         list(C4.values()) + ["too_few_sentences"] + list(FINEWEB.values()))


def record(name, text):
    seen.clear()
    row = [name]
    after = "-"
    for f in deciding:
        d = Document(text=text, id=name)
        r = f.filter(d)
        row.append("-" if r is True else r[1])
        if r is True and isinstance(f, C4QualityFilter):
            after = "%08x" % zlib.crc32(d.text.encode())
    row.append(after)
    for f in spying:
        try:
            f.filter(Document(text=text, id=name))
        except ZeroDivisionError:  # no words, no lines: what comes behind stays blank
            pass
    if row[3] not in ("lorem_ipsum", "curly_bracket"):  # there it stops in the middle
        for v in C4.values():
            seen[v] = 0
        spying_c4.filter(Document(text=text, id=name))
    row += ["%.9g" % seen[n] if n in seen else "" for n in NAMES]
    print("\t".join(row))


if __name__ == "__main__":
    print("\t".join(["name", "gopher-quality", "gopher-repetition", "c4", "fineweb", "after"] + NAMES))
    if sys.argv[1] == "own":
        for line in open("tests/data/filter/own.jsonl"):
            doc = json.loads(line)
            record(doc["id"], doc["text"])
    else:
        for name, text in shared(sys.argv[2]):
            record(name, text)
