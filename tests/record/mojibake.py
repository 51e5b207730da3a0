#!/usr/bin/env python3
"""Writes curate/clean/repair_data.inc: the character sets that text is mistaken for, the role
each character has in mojibake, and plain forms, as ftfy (6.3.1) and Python's codecs have
them.  Run from the repository root with a Python that has ftfy."""
import re

from ftfy import chardata
from ftfy.badness import MOJIBAKE_CATEGORIES

ROLES = ["c1", "bad", "upper_accented", "lower_accented", "box", "start_punctuation",
         "end_punctuation", "currency", "numeric", "law", "upper_common", "lower_common",
         "kaomoji", "common"]
CLUES = ["utf8_first_of_2", "utf8_first_of_3", "utf8_first_of_4", "utf8_continuation",
         "utf8_continuation_strict"]

sets = [re.compile("[" + MOJIBAKE_CATEGORIES[r] + "]") for r in ROLES]
sets += [re.compile("[" + chardata.UTF8_CLUES[c] + "]") for c in CLUES]
first = [s for s in sets[len(ROLES):len(ROLES) + 3]]
roles = []
for cp in [*range(0xD800), *range(0xE000, 0x110000)]:
    bits = sum(1 << i for i, s in enumerate(sets) if s.match(chr(cp)))
    assert sum(bool(s.match(chr(cp))) for s in first) <= 1
    if bits:
        assert cp < 0x10000
        roles.append((cp, bits))


def fill(items):
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > 98:
            lines.append(line)
            line = ""
        line += (" " if line else "") + item
    return "\n".join(lines + [line]) + "\n"


out = """/* curate/clean/repair_data.inc -- what characters are in mojibake, as in ftfy 6.3.1 (Apache-2.0).
 * Written by tests/record/mojibake.py. */
#ifdef REPAIR_CHARSETS
/* Name, whether unassigned bytes and U+FFFD (as 0x1A) count, characters of 0x80..0xFF. */
"""
for name in chardata.CHARMAP_ENCODINGS:
    sloppy = name.startswith("sloppy-")
    chars = bytes(range(0x80, 0x100)).decode(name)
    assert len(chars) == 128 and max(map(ord, chars)) < 0x10000
    assert (b"\x1a".decode(name) == "\ufffd") == sloppy
    assert bytes(b for b in range(0x80) if b != 0x1A).decode(name) == "".join(chr(b) for b in range(0x80) if b != 0x1A)
    out += '{"%s", %s,\n{' % (name.removeprefix("sloppy-"), "true" if sloppy else "false")
    out += fill("0x%X," % ord(c) for c in chars)[:-2] + "}},\n"
out += "#endif\n#ifdef REPAIR_ROLES\n/* First and last code point, roles (enum role). */\n"
runs = []
for cp, bits in roles:
    if runs and runs[-1][1] == cp - 1 and runs[-1][2] == bits:
        runs[-1][1] = cp
    else:
        runs.append([cp, cp, bits])
out += fill("{0x%X, 0x%X, 0x%X}," % tuple(r) for r in runs)
out += "#endif\n#ifdef REPAIR_PLAIN\n/* Code point, option, plain form. */\n"


def plain(kind, table):
    return ["{0x%X, %s, {%s}}," % (cp, kind, ", ".join("0x%X" % ord(c) for c in to))
            for cp, to in sorted(table.items())]


out += fill(sorted(plain("LIGATURE", chardata.LIGATURES) + plain("WIDTH", chardata.WIDTH_MAP),
                   key=lambda s: int(s[3:s.index(",")], 16)))
out += "#endif\n"
with open("curate/clean/repair_data.inc", "w") as f:
    f.write(out)
