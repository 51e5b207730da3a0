#!/usr/bin/env python3
"""Writes tokenize/script_table.c: scripts of characters as SentencePiece's trainer knows them (its unicode_script_map.h,
of Unicode 9.0): what is not named there is Common; Hiragana, Katakana and U+30FC count as Han.

usage: unicode_scripts.py UNICODE_SCRIPT_MAP_H > tokenize/script_table.c      (of SentencePiece 0.2.1)
"""
import re
import sys

source = open(sys.argv[1], encoding="utf-8").read()
script = ["Common"] * 0x110000
for first, last, one, name in re.findall(
        r"(?:c = 0x([0-9A-F]+); c <= 0x([0-9A-F]+); \+\+c\)|^)\s*\(\*smap\)\[(?:c|0x([0-9A-F]+))\] =\s*U_(\w+)", source, re.M):
    for c in range(int(first or one, 16), int(last or one, 16) + 1):
        script[c] = name
script[0x30FC] = "Han"
script = ["Han" if s in ("Hiragana", "Katakana") else s for s in script]
numbers = {"Common": 0, "Inherited": 1}
runs = []
for c, s in enumerate(script):
    if not c or s != script[c - 1]:
        runs.append(f"0x{c << 8 | numbers.setdefault(s, len(numbers)):x},")
print("/* Written by tests/record/unicode_scripts.py from SentencePiece 0.2.1's table (Unicode 9.0): do not edit. */")
print('#include "tokenize/script.h"\n')
print("const uint32_t script_runs[] = {")
line = "   "
for r in runs:
    if len(line) + len(r) + 1 > 128:
        print(line)
        line = "   "
    line += " " + r
print(line)
print("};")
print("const size_t script_n_runs = sizeof script_runs / sizeof *script_runs;")
