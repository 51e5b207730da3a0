#!/usr/bin/env python3
"""Writes curate/text/words_data.inc: the facts of spaCy's blank English tokenizer, and the
character sets of datatrove's filters, found by asking both about every code point.

    pip install datatrove spacy && python tests/record/words.py >curate/text/words_data.inc
"""
import re
from importlib.metadata import version

import spacy
from datatrove.utils.text import PUNCTUATION_SET, TERMINAL_PUNCTUATION
from spacy.lang.char_classes import (ALPHA, ALPHA_LOWER, ALPHA_UPPER, CONCAT_QUOTES, LIST_CURRENCY,
                                     LIST_ICONS, LIST_UNITS, PUNCT)
from spacy.pipeline.sentencizer import Sentencizer
from spacy.symbols import ORTH
from spacy.tokenizer import Tokenizer

nlp = spacy.blank("en")
tok = nlp.tokenizer
# The same without exceptions: how the text of an exception falls apart by itself.
bare = Tokenizer(nlp.vocab, rules={}, prefix_search=tok.prefix_search, suffix_search=tok.suffix_search,
                 infix_finditer=tok.infix_finditer, url_match=tok.url_match)


def char_set(cls):
    m = re.compile("[" + cls + "]").match
    return lambda c: bool(m(c))


def single(listing):
    return lambda c: c in listing


currency1 = {c.replace("\\", "") for c in LIST_CURRENCY if len(c.replace("\\", "")) == 1}
# The bits of enum in curate/text/chars.h, in its order.
classes = [
    ("CHAR_ALPHA", char_set(ALPHA)),
    ("CHAR_LOWER", char_set(ALPHA_LOWER)),
    ("CHAR_UPPER", char_set(ALPHA_UPPER)),
    ("CHAR_QUOTE", char_set(CONCAT_QUOTES)),
    ("CHAR_ICON", char_set(LIST_ICONS[0][1:-1])),
    # a full stop after one of these is a suffix
    ("CHAR_DOT_AFTER", char_set("0-9" + ALPHA_LOWER + r"%²\-\+" + PUNCT + "(?:" + CONCAT_QUOTES + ")")),
    ("CHAR_PREFIX", lambda c: tok.find_prefix(c) == 1 and c != "+"),
    ("CHAR_SUFFIX", lambda c: tok.find_suffix(c) == 1),
    ("CHAR_CURRENCY", single(currency1)),
    ("CHAR_TERMINAL", single(TERMINAL_PUNCTUATION)),
    ("CHAR_SYMBOL", single(PUNCTUATION_SET)),
    ("CHAR_SENTENCE_END", single(set(Sentencizer.default_punct_chars))),
]
mask = []
for cp in range(0x110000):
    if 0xD800 <= cp < 0xE000:
        mask.append(0)
        continue
    c = chr(cp)
    mask.append(sum(1 << i for i, (_, f) in enumerate(classes) if f(c)))


def ranges():
    """Runs of equal masks, every code point or every second one."""
    seen = [m == 0 for m in mask]
    for cp, m in enumerate(mask):
        if seen[cp]:
            continue
        ends = {}
        for step in (1, 2):
            end = cp
            while end + step < len(mask) and mask[end + step] == m and not seen[end + step]:
                end += step
            ends[step] = end
        step = 1 if ends[1] - cp >= (ends[2] - cp) // 2 else 2
        for i in range(cp, ends[step] + 1, step):
            seen[i] = True
        yield cp, ends[step], step, m


def literal(text):
    out = '"'
    for b in text.encode():
        out += "\\%03o" % b if b >= 127 or b < 32 or chr(b) in '"\\?' else chr(b)
    return out + '"'


def lengths(tokens):
    return "".join("0123456789abcdefghijklmnopqrstuvwxyz"[len(t.encode())] for t in tokens)


print("/* Made by tests/record/words.py from spaCy %s and datatrove %s: do not edit. */" % (
    spacy.__version__, version("datatrove")))
print("#ifdef WORDS_DATA_CHARS /* first, last, step, classes */")
line = ""
for r in ranges():
    item = "{0x%x,0x%x,%d,0x%x}," % r
    if len(line) + len(item) > 100:
        print(line)
        line = ""
    line += item
print(line)
print("#endif\n#ifdef WORDS_DATA_UNITS /* what may follow a digit as a suffix */")
print(",\n".join(literal(u) for u in sorted(set(LIST_UNITS)) if u.strip()))
print("#endif\n#ifdef WORDS_DATA_SPECIALS")
print("/* Exception; bytes of each of its tokens; and, if it is also found across the tokens of\n"
      " * a text, how the rules without exceptions would cut it (a length is a digit of base 36). */")
for text in sorted(tok.rules, key=lambda s: s.encode()):
    if not text.strip():
        continue  # white space is its own token anyway
    parts = [d[ORTH] if isinstance(d[ORTH], str) else nlp.vocab.strings[d[ORTH]] for d in tok.rules[text]]
    assert "".join(parts) == text
    cut = [t.text for t in bare(text)]
    matched = tok.find_prefix(text) or tok.find_infix(text) or tok.find_suffix(text)
    if len(cut) == 1:
        assert not matched or parts == [text]
        matched = False
    print("{%s, \"%s\", %s}," % (literal(text), lengths(parts), '"%s"' % lengths(cut) if matched else "0"))
print("#endif")
