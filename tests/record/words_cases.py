#!/usr/bin/env python3
"""Writes tests/data/words/cases.jsonl: strings made of what the word splitter has rules
for, with the words and the number of sentences that datatrove gets from spaCy.

    pip install datatrove spacy && python tests/record/words_cases.py >tests/data/words/cases.jsonl
"""
import json
import random

from datatrove.utils.word_tokenizers import load_word_tokenizer

t = load_word_tokenizer("eng")
rules = sorted(t.tokenizer.tokenizer.rules)
rng = random.Random(11)
PIECES = (list("abZé Яя中ا1235²°★😀ー。、！．¿·…’‘“”«$€.,:;!?'\"()[]{}<>_#*&-–—~+=/@^|\\`´%§©sSDoOx\n\t\u00a0\u3000\u2028\x1c") +
          ["foo", "Bar", "23", "°C", "km", "kg", "m/s", "US$", "A$", "..", "...", "……", "--", "---", "——", "://", "http",
           "example.com", "192.168.0.1", "8.8.8.8", "10.0.0.1", "172.16.0.1", "user@host.org", ":8080", "?q=1", "'s",
           "’s", "'S", "n't", "a.m.", "e.g", "Mr", "St", "\u200d", "\u0301", "\u0661"] + [" "] * 12)
for _ in range(260):
    s = "".join(rng.choice(rules) if rng.random() < 0.15 else rng.choice(PIECES) for _ in range(rng.randint(1, 40)))
    print(json.dumps({"text": s, "words": t.word_tokenize(s), "sentences": max(1, len(t.span_tokenize(s)))},
                     ensure_ascii=False))
