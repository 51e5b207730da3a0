#!/usr/bin/env python3
"""Writes tests/data/tokenizer/families.json: for the normalizer and the pre-tokenizers of each family of published tokenizers a
hash of the ids that Hugging Face's tokenizers, or tiktoken, give 20,000 strings.

usage: tokenizer_families.py >tests/data/tokenizer/families.json      (in the repository; tokenizers 0.23.3, tiktoken 0.14.0)

The vocabulary is that of tests/data/tokenizer/gpt2.json (or ranks.tiktoken), whose merges cross every boundary that a pattern
can make, so that ids show how text was cut.  The strings are drawn from "pool" by the generator below, which
tests/unit/tokenizer_families_test.c has too.  Hashes: 64-bit FNV-1a of the ids, 4 bytes each, and 0xFFFFFFFF behind a string.
"""
import base64
import json
import sys

import tiktoken
import tokenizers

STRINGS, MOST = 20000, 40
POOL = ["a", "b", "x", "Q", "the", " the", "Mill", "ABC", "aB", "e", "s", " ", " ", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n",
        "\n    ", "\r", "1", "12", "2024", "1234567", "0", "'", "'s", "'S", "'ll", "'Re", "'x", "n't", "''", "'\u017f", ".", ",", "!!",
        "(", ")", "[", "]", "|", "_", "`", "\\", "{}", "/", "//", ".\n/", "-", "#", "\v", "\f", "\x1c", "\x00", "        ", "é", "É",
        "\u017f", "\u212a", "р", "Ж", "ش", "١", "ह", "ि", "्", "中", "国", "\u9fa5", "\u9fa6", "の", "カ", "々", "〇", "한", "\u0800",
        "\ud7ff", "\u0300", "\u0301", "e\u0301", "\xa0", "\x85", "\u3000", "\u2003", "\u2028", "\u200b", "\ufeff", "\u180e", "½", "²",
        "Ⅷ", "“", "”", "’", "—", "…", "😀", "🇬", "👩\u200d🔬", "𐐀", "𝟘", "ǅ", "ῼ", "ʰ", "\u0345", "\u20dd", "\xad", "\ufffd",
        "\U0010ffff", "\ue000", "𠀀", "。", "、", "،", "।", "！", "～", "€", "£", "fi\ufb01", "ﬀ", "ß", "İ", "ı"]

A = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
def o200k(digits, suffix, slash, less=""):
    return "|".join((r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + less + r"]*[\p{Ll}\p{Lm}\p{Lo}\p{M}" + less + "]+" + suffix,
                     r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + less + r"]+[\p{Ll}\p{Lm}\p{Lo}\p{M}" + less + "]*" + suffix,
                     digits, r" ?[^\s\p{L}\p{N}]+[\r\n" + slash + "]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"))
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
KIMI = r"[\p{Han}]+|" + o200k(r"\p{N}{1,3}", SUFFIX, "", r"&&[^\p{Han}]")
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^
\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[
]*|\s*[
]+|\s+(?!\S)|\s+""".replace("\n", "\r\n")

def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
def level(regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}
def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}
def digits(each):
    return {"type": "Digits", "individual_digits": each}

NFC = {"type": "NFC"}
HF = {  # name: normalizer, pre-tokenizer
    "GPT-2, RoBERTa, Phi-2": (None, level(True)),
    "GPT-NeoX, OLMo, ModernBERT": (NFC, level(True)),
    "Llama 3, GLM-4, Phi-4, OLMo 2": (None, sequence(split(A % r"\p{N}{1,3}"), level(False))),
    "Qwen 2 and 3": (NFC, sequence(split(A % r"\p{N}"), level(False))),
    "gpt-oss, Llama 4, MiniMax M2": (None, sequence(split(o200k(r"\p{N}{1,3}", SUFFIX, "/")), level(False))),
    "Mistral Nemo (tekken)": (None, sequence(split(o200k(r"\p{N}", "", "/")), level(False))),
    "Kimi K2, in Oniguruma's words": (None, sequence(split(KIMI), level(False))),
    "DeepSeek V3, R1": (None, sequence(split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), level(False))),
    "DeepSeek Coder": (None, sequence(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥\u0800-一가-\ud7ff]+"),
                                      digits(True), level(False))),
    "DeepSeek LLM, V2": (None, sequence(split("[\r\n]"), split(r"\s?[A-Za-zµÀ-ÖØ-öø-ƺ]+"), split(r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
                                        split(r"\s+$"), split("[一-龥\u0800-一가-\ud7ff]+"), digits(True), level(False))),
    "Command R": (NFC, sequence(digits(True), level(True))),
    "StarCoder, SmolLM": (None, sequence(digits(True), level(True))),
    "BLOOM": (None, sequence(split(r" ?[^(\s|[.,!?…。，、।۔،])]+"), level(False))),
    "Falcon": (None, sequence({"type": "Punctuation", "behavior": "Contiguous"}, level(True), digits(False), split("[0-9][0-9][0-9]"))),
}
RANKS = {  # name: the pattern
    "cl100k_base": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
    "Kimi K2": KIMI,
}

def strings():
    x = 20261123
    def draw(n):
        nonlocal x
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
        return (x >> 33) % n
    for _ in range(STRINGS):
        yield "".join(POOL[draw(len(POOL))] for _ in range(1 + draw(MOST)))

def fnv(all_ids):
    h = 0xcbf29ce484222325
    for ids in all_ids:
        for i in [*ids, 0xFFFFFFFF]:
            for b in i.to_bytes(4, "little"):
                h = (h ^ b) * 0x100000001b3 % 2**64
    return f"{h:016x}"

texts = list(strings())
model = json.load(open("tests/data/tokenizer/gpt2.json", encoding="utf-8"))
ranks = {base64.b64decode(a): int(b) for a, b in (l.split() for l in open("tests/data/tokenizer/ranks.tiktoken"))}
out = []
for name, (normalizer, pre_tokenizer) in HF.items():
    print(name, file=sys.stderr)
    own = {**model, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
    t = tokenizers.Tokenizer.from_str(json.dumps(own))
    ids = [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
    out.append({"name": name, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "hash": fnv(ids)})
for name, pattern in RANKS.items():
    print(name, file=sys.stderr)
    t = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    out.append({"name": name, "pattern": pattern, "hash": fnv(t.encode_ordinary_batch(texts, num_threads=1))})
print(json.dumps({"strings": STRINGS, "most": MOST, "pool": POOL, "families": out}, ensure_ascii=False, indent=1))
