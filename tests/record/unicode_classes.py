#!/usr/bin/env python3
"""Writes tokenize/ucd_table.c: general categories of Unicode 16.0, the version that today's tiktoken (0.14) and Hugging Face's
tokenizers (0.23) go by; and what differs from 14.0, the version of Debian 12's PCRE2.

usage: unicode_classes.py >tokenize/ucd_table.c      (Python 3.11, whose unicodedata is 14.0; needs unicodedata2 16.0.0)
"""
import unicodedata

import unicodedata2

UPPER, LOWER, OTHER, MARK, NUMBER, SPACE, PUNCT, SYMBOL = (1 << i for i in range(8))
CLASS = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": OTHER, "Lo": OTHER}
MAJOR = {"M": MARK, "N": NUMBER, "P": PUNCT, "S": SYMBOL}
# White_Space (PropList.txt); stable since Unicode 6.3.
SPACES = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
          0x202F, 0x205F, 0x3000]
BLOCK = 128

cls = bytearray(0x110000)
for cp in range(0x110000):
    cat = unicodedata2.category(chr(cp))
    cls[cp] = CLASS.get(cat) or MAJOR.get(cat[0], 0)
for cp in SPACES:
    cls[cp] |= SPACE

blocks, index = {}, []
for at in range(0, len(cls), BLOCK):
    index.append(blocks.setdefault(bytes(cls[at:at + BLOCK]), len(blocks)))
assert len(blocks) <= 256

def rows(values):
    values, out = list(values), ""
    while values:
        out += "    " + ",".join(map(str, values[:24])) + ",\n"
        values = values[24:]
    return out

print(f"""/* Written by tests/record/unicode_classes.py from Unicode {unicodedata2.unidata_version}: do not edit. */
#include "tokenize/ucd.h"

const char ucd_version[] = "{unicodedata2.unidata_version}";

const uint8_t ucd_index[{len(index)}] = {{
{rows(index)}}};

const uint8_t ucd_blocks[{len(blocks)}][{BLOCK}] = {{""")
for b in blocks:
    print("    {\n" + rows(b) + "    },")
print("};")

late = []
for cp in range(0x110000):
    cat = unicodedata2.category(chr(cp))
    if cat == unicodedata.category(chr(cp)):
        continue
    if late and late[-1][1] == cp - 1 and late[-1][2] == cat:
        late[-1][1] = cp
    else:
        late.append([cp, cp, cat])
late = [f'{{0x{a:x}, 0x{b:x}, "{cat}"}},' for a, b, cat in late]
print("\nconst struct ucd_late ucd_late[] = {")
for at in range(0, len(late), 5):
    print("    " + " ".join(late[at:at + 5]))
print("};\nconst uint32_t ucd_n_late = sizeof ucd_late / sizeof *ucd_late;")
