#!/usr/bin/env python3
"""Writes tokenize/hf_table.c: what Hugging Face's tokenizers takes for words, numbers, punctuation, accents and
so on, asked of the library one character at a time, and what it makes of capitals.

usage: tokenizer_classes.py >tokenize/hf_table.c      (needs tokenizers; recorded with 0.23.3)
"""
from tokenizers import normalizers, pre_tokenizers

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def vanish(normalizer):
    return {c for c in ALL if normalizer.normalize_str(chr(c)) == ""}


def cut(pre):
    return {c for c in ALL if len(pre.pre_tokenize_str("q" + chr(c) + "q")) > 1}


bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
spaces = {c for c in ALL if normalizers.Strip().normalize_str(chr(c)) == ""}
word = {c for c in ALL if len(pre_tokenizers.Whitespace().pre_tokenize_str("q" + chr(c))) == 1} - spaces
classes = [word, cut(pre_tokenizers.Digits(individual_digits=True)), cut(pre_tokenizers.Punctuation()),
           vanish(normalizers.StripAccents()), vanish(normalizers.BertNormalizer(**{**bert, "strip_accents": True})),
           vanish(normalizers.BertNormalizer(**{**bert, "clean_text": True})),
           {c for c in ALL if normalizers.BertNormalizer(**{**bert, "handle_chinese_chars": True}).normalize_str(chr(c)) != chr(c)}]

print('''/* Made by tests/record/tokenizer_classes.py; do not edit. */
#include "tokenize/hf_table.h"

/* The first character of a range << 8 | its classes. */
const uint32_t hf_ranges[] = {''')
rows, last = [], None
for c in range(0x110000):
    bits = sum(1 << i for i, s in enumerate(classes) if c in s)
    if bits != last:
        rows.append(c << 8 | bits)
        last = bits
print("\n".join("    " + " ".join(f"0x{x:x}," for x in rows[i:i + 10]) for i in range(0, len(rows), 10)))
print("};\nconst uint32_t hf_n_ranges = sizeof hf_ranges / sizeof *hf_ranges;\n")

# Runs of capitals: first, last, step, what is added.  U+0130 becomes two characters.
low = {c: ord(s) - c for c in ALL if len(s := normalizers.Lowercase().normalize_str(chr(c))) == 1 and s != chr(c)}
runs = []
for c in sorted(low):
    r = runs[-1] if runs else None
    if r and r[3] == low[c] and c - r[1] in (1, 2) and (r[0] == r[1] or c - r[1] == r[2]):
        r[1], r[2] = c, c - r[1]
    else:
        runs.append([c, c, 1, low[c]])
print("const struct hf_capitals hf_capitals[] = {")
rows = [f"{{0x{a:x}, 0x{b:x}, {s}, {d}}}," for a, b, s, d in runs]
print("\n".join("    " + " ".join(rows[i:i + 4]) for i in range(0, len(rows), 4)))
print("};\nconst uint32_t hf_n_capitals = sizeof hf_capitals / sizeof *hf_capitals;")
