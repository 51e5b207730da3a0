#!/usr/bin/env python3
"""Writes tokenize/ucd_table.c from Unicode's UnicodeData.txt.

usage: unicode_classes.py UnicodeData.txt VERSION >tokenize/ucd_table.c
(Debian: package unicode-data, /usr/share/unicode/UnicodeData.txt; VERSION is 15.0.0)
"""
import sys

UPPER, LOWER, OTHER, MARK, NUMBER, SPACE, PUNCT, SYMBOL = (1 << i for i in range(8))
CLASS = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": OTHER, "Lo": OTHER}
MAJOR = {"M": MARK, "N": NUMBER, "P": PUNCT, "S": SYMBOL}
# White_Space (PropList.txt); stable since Unicode 6.3.
SPACES = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
          0x202F, 0x205F, 0x3000]
BLOCK = 128

cls = bytearray(0x110000)
first = None
for line in open(sys.argv[1], encoding="ascii"):
    f = line.split(";")
    cp, name, cat = int(f[0], 16), f[1], f[2]
    if name.endswith(", First>"):
        first = cp
        continue
    lo = first if name.endswith(", Last>") else cp
    first = None
    v = CLASS.get(cat) or MAJOR.get(cat[0], 0)
    cls[lo:cp + 1] = bytes([v]) * (cp + 1 - lo)
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

print(f"""/* Written by tests/record/unicode_classes.py from Unicode {sys.argv[2]}: do not edit. */
#include "tokenize/ucd.h"

const char ucd_version[] = "{sys.argv[2]}";

const uint8_t ucd_index[{len(index)}] = {{
{rows(index)}}};

const uint8_t ucd_blocks[{len(blocks)}][{BLOCK}] = {{""")
for b in blocks:
    print("    {\n" + rows(b) + "    },")
print("};")
