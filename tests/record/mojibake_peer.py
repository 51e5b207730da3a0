"""What tests/record/mojibake_diff.py and mojibake_cases.py share: damaging text, and ftfy
with the settings of `quern clean`."""
import html
import random

import ftfy
from ftfy.chardata import CHARMAP_ENCODINGS

OFF = dict(fix_line_breaks=False, remove_control_chars=False, normalization=None, fix_surrogates=False,
           explain=False)
ALL_OFF = dict(OFF, unescape_html=False, remove_terminal_escapes=False, fix_latin_ligatures=False,
               fix_character_width=False, uncurl_quotes=False)
SETTINGS = [
    ("fix_encoding", ["--unescape", "off", "--no-terminal-escapes"],
     lambda t: ftfy.fix_encoding(t) if "\n" not in t else ftfy.fix_text(t, **ALL_OFF)),
    ("defaults", [], lambda t: ftfy.fix_text(t, **dict(ALL_OFF, unescape_html="auto", remove_terminal_escapes=True))),
    ("everything", ["--quotes", "ascii", "--ligatures", "--width"], lambda t: ftfy.fix_text(t, **OFF)),
    ("unescape on", ["--unescape", "on"],
     lambda t: ftfy.fix_text(t, **dict(ALL_OFF, unescape_html=True, remove_terminal_escapes=True))),
]
INSERTS = ["\ufffd", "?", "\x1a", " ", "\xa0", "&amp;", "&eacute;", "&NTILDE;", "&#8217;", "&#x92;", "&lt;", "<",
           "\x1b[31m", "\n", "\u201c", "\u2019", "\ufb01", "\uff21", "\x85", "\x92", "Ã", "Â", "â€™", "à", "œ",
           "\xc0\x80", "\U0001f4a9", "í\xa0½í²©", "&", ";", "BUNDESSTRA&SZLIG;E", "Ã la", "Ã quele", "√©", "‚Äô",
           "вЂ™", "ГўВЂВњ", "Ђ", "΄", "Ґ", "║", "¶", "ª"]


def misread(t, rng):
    enc = rng.choice(CHARMAP_ENCODINGS)
    b = t.encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        b = t.encode("utf-16-be", "surrogatepass")
        b = "".join(map(chr, (b[i] << 8 | b[i + 1] for i in range(0, len(b), 2)))).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        return b.decode(enc.removeprefix("sloppy-"), "replace")
    return b.decode(enc)


def damage(t, rng):
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3))):
        if rng.random() < 0.7:
            t = misread(t, rng)
        else:
            a, b = sorted((rng.randrange(len(t) + 1), rng.randrange(len(t) + 1)))
            t = t[:a] + misread(t[a:b], rng) + t[b:]
        if rng.random() < 0.3:
            t = t.replace("\xa0", " ")
        if rng.random() < 0.1:
            t = t.replace("\u2019", "'")
    for _ in range(rng.choice((0, 0, 1, 2, 5))):
        a = rng.randrange(len(t) + 1)
        b = a + rng.choice((0, 0, 1, 2))
        t = t[:a] + rng.choice(INSERTS + [t[a:b] * 2, ""]) + t[b:]
    if rng.random() < 0.1:
        t = html.escape(t)
    return "".join(c for c in t if not 0xD800 <= ord(c) < 0xE000)
