#!/usr/bin/env python3
"""Records what tests/data/tokenizer/forms.jsonl.zst holds: small tokenizer.json files that use every normaliser, pre-tokenizer, model and
decoder, with the ids and texts that Hugging Face's tokenizers makes of hard strings.  A line: {"name", "json" (as a string), "cases":
[[text, ids, decoded], ...]}.  zstd -19 makes it small.

usage: tokenizer_forms.py FILE [TEXTS_JSONL]      (needs tokenizers; recorded with 0.23.3)
With a file of texts, it writes the tokenizers with all ids for those instead, for a comparison that is not kept.
"""
import base64
import json
import os
import struct
import sys

from tokenizers import Tokenizer

here = os.path.dirname(os.path.abspath(__file__))
source = open(os.path.join(here, "tokenizer.py"), encoding="utf-8").read()
names = {}
exec(source[source.index("CORPUS = "):source.index("def write")], names)
CORPUS, LLAMA3, QWEN2 = names["CORPUS"], names["LLAMA3"], names["QWEN2"]
HARD = [t[:120] for t in names["HARD"] if t] + [
    "<mill> x<mill>y <mill><mill>s amill mill mill. _mill", "</s> <s> <unk> <0x41>", "\u2581a \u2581\u2581 b\u2581c",
    "A \u00c9cole \u0130stanbul \u00df \u03a3\u03c2 \u01c5", "\u3000full\u3000width \uff21\uff22\uff23 \ufb01ne \u2460 \u337f",
    "\u78e8\u574a\u628a \u7cae\u98df 123 \u30d1\u30f3 abc\u3042", "caf\u00e9 cafe\u0301 \u00e5\u0323", "tab\tnew\nline\r\nend  ",
    "word-word, (it's) \u201cfine\u201d! $5.00 50% a_b x@y.z", "e\u0301\u0301\u0301x \u0e01\u0e33 \u0915\u094d\u0937 \u200d\u200b\u00adx\u0007\u007f\u0085y",
    "\u00b2\u00bd\u0661\u2167 1a2b333", "\U0001f600\U0001f468\u200d\U0001f469 x", "the the  mill",
    "\u1c89\u1c8a\ua7cb \U0002ebf0\U00031350 \U0001fae9\U0001fadf\u2427 \U00016d70\u1b7f\U00011bf3 \u00b2\u00be\u24b6\u0e33", "(_x)\nbee\nx9,fg"]
BYTES = {b: chr(b) for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174}
for b in range(256):
    BYTES.setdefault(b, chr(256 + len(BYTES) - 188))


def bpe_merges(words, n):
    """Plain BPE on lists of symbols, for vocabularies of characters or bytes."""
    words, merges = [list(w) for w in words], []
    while len(merges) < n:
        counts = {}
        for w in words:
            for p in zip(w, w[1:]):
                counts[p] = counts.get(p, 0) + 1
        if not counts:
            break
        best = max(sorted(counts), key=counts.get)
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def vocab_of(first, merges):
    v = {}
    for t in list(first) + ["".join(m) for m in merges]:
        v.setdefault(t, len(v))
    return v


MARKED = [("\u2581" + line.replace(" ", "\u2581")) for line in CORPUS.splitlines() if line] * 2
CHAR_MERGES = bpe_merges(MARKED, 220)
CHARS = sorted({c for line in MARKED for c in line})
SPECIALS = ["<unk>", "<s>", "</s>"]
FALLBACK = [f"<0x{b:02X}>" for b in range(256)]
BYTE_MERGES = bpe_merges(["".join(BYTES[b] for b in line.encode()) for line in CORPUS.splitlines(keepends=True)], 250)


def chars(fallback=True, fuse=True, unk="<unk>", pairs=True, **more):
    first = SPECIALS + (FALLBACK if fallback else []) + CHARS
    return {"type": "BPE", "dropout": None, "unk_token": unk, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": fuse, "byte_fallback": fallback, "ignore_merges": False, "vocab": vocab_of(first, CHAR_MERGES),
            "merges": [list(m) if pairs else " ".join(m) for m in CHAR_MERGES], **more}


def octets(lack=(), **more):
    first = [c for c in BYTES.values() if c not in lack]
    merges = [m for m in BYTE_MERGES if not set("".join(m)) & set(lack)]
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab_of(first, merges),
            "merges": [" ".join(m) for m in merges], **more}


def unigram(fallback=False, mark=True):
    pieces = SPECIALS + (FALLBACK if fallback else []) + CHARS + ["".join(m) for m in CHAR_MERGES]
    pieces = list(dict.fromkeys(p for p in pieces if mark or "\u2581" not in p))
    return {"type": "Unigram", "unk_id": 0, "byte_fallback": fallback,
            "vocab": [[p, 0.0 if i < 3 else -4.0 - (i * 7 % 90) / 16 + 0.5 * len(p)] for i, p in enumerate(pieces)]}


def wordpiece(limit=20):
    words = sorted({w for line in CORPUS.lower().splitlines() for w in line.replace(",", " ").replace(".", " ").split()})
    parts = [w[:k] for w in words for k in (1, 2, 3, len(w))] + ["##" + w[k:k + n] for w in words for k in (1, 2, 3) for n in (1, 2, 9) if w[k:k + n]]
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": limit,
            "vocab": vocab_of(["[UNK]", "[CLS]"] + list(".,'!?()1234567890-") + parts, [])}


def wordlevel():
    return {"type": "WordLevel", "vocab": vocab_of(["[UNK]"] + sorted(set(CORPUS.split())) + list(".,'()"), []), "unk_token": "[UNK]"}


def suffixed():
    words = [list(w[:-1]) + [w[-1] + "</w>"] for line in CORPUS.splitlines() for w in line.lower().split()]
    merges = bpe_merges(words, 150)
    first = sorted({s for w in words for s in w} | {c for w in words for c in "".join(w).replace("</w>", "")})
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": "</w>",
            "fuse_unk": False, "byte_fallback": False, "vocab": vocab_of(["<unk>"] + first, merges), "merges": [" ".join(m) for m in merges]}


def prefixed():
    letters = "abcdefghilmnorstuwy"
    merges = [("t", "##h"), ("th", "##e"), ("##i", "##n"), ("##in", "##d"), ("g", "##r"), ("gr", "##ind"), ("m", "##i"), ("##l", "##l"), ("mi", "##ll")]
    v = vocab_of(["<unk>"] + list(letters) + ["##" + c for c in letters] + ["th", "the", "##in", "##ind", "gr", "grind", "mi", "##ll", "mill"], [])
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": "##", "end_of_word_suffix": None,
            "fuse_unk": True, "byte_fallback": False, "vocab": v, "merges": [list(m) for m in merges]}


def charsmap(rules):
    """A precompiled_charsmap: a Darts-clone double array of the rules, built one trie node at a time."""
    texts, keys = b"", {}
    for key, value in rules:
        keys[key.encode()] = len(texts)
        texts += value.encode() + b"\0"
    units, used = [0] * 4096, {0}

    def build(prefix, node):
        labels = sorted({k[len(prefix)] for k in keys if k.startswith(prefix) and len(k) > len(prefix)})
        slots = ([0] if prefix in keys else []) + labels
        base = next(b for b in range(1, 2000) if all(b ^ c not in used for c in slots) and (node ^ b) < 1 << 21)
        used.update(base ^ c for c in slots)
        units[node] |= (base ^ node) << 10 | (1 << 8 if prefix in keys else 0)
        if prefix in keys:
            units[base] = keys[prefix] | 1 << 31
        for c in labels:
            units[base ^ c] |= c
        for c in labels:
            build(prefix + bytes([c]), base ^ c)

    build(b"", 0)
    n = max(used) + 256
    blob = struct.pack(f"<{n}I", *units[:n])
    return base64.b64encode(struct.pack("<I", len(blob)) + blob + texts).decode()


def token(i, content, **more):
    return {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **more}


def seq(kind, *items):
    key = {"n": "normalizers", "p": "pretokenizers", "d": "decoders"}[kind]
    return {"type": "Sequence", key: list(items)}


def split(pattern, behavior="Isolated", invert=False, regex=True):
    return {"type": "Split", "pattern": {"Regex" if regex else "String": pattern}, "behavior": behavior, "invert": invert}


def n(kind, **more):
    return {"type": kind, **more}


BL = n("ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)
BLR = {**BL, "use_regex": True}
BLD = n("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True)
META = n("Metaspace", replacement="\u2581", prepend_scheme="always", split=True)
PREPEND = n("Prepend", prepend="\u2581")
TO_MARK = n("Replace", pattern={"String": " "}, content="\u2581")
LLAMA_D = seq("d", n("Replace", pattern={"String": "\u2581"}, content=" "), n("ByteFallback"), n("Fuse"), n("Strip", content=" ", start=1, stop=0))
SPECIAL_TOKENS = [token(0, "<unk>", special=True), token(1, "<s>", special=True), token(2, "</s>", special=True)]
TWICE = [token(9000, "mill", lstrip=True, rstrip=True), token(9000, "mill", single_word=True), token(9001, "  ", normalized=True, lstrip=True),
         token(9001, "  ", normalized=True, lstrip=True, rstrip=True), token(9002, "\n", lstrip=True, rstrip=True),
         token(9004, "the", normalized=True), token(9005, "\u00e9")]
MILL = [token(9000, "<mill>", lstrip=True), token(9001, "mill", single_word=True, normalized=True), token(9002, "\u00c9", normalized=True), token(9003, "x@", rstrip=True)]
DEEPSEEK = [split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
            split(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")]
MAP = charsmap([("\uff21", "A"), ("\uff22", "BC"), ("\ufb01", "fi"), ("\r", " "), ("\n", " "), ("\t", " "), ("\u3000", " "), ("e\u0301", "\u00e9"),
                ("e\u0301\u0301", "E"), ("\u0085", ""), ("th", "TH"), ("a", "a"), ("\u2460", "1")])
BERT = n("BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
WPD = n("WordPiece", prefix="##", cleanup=True)
FORMS = {
    "llama2": (seq("n", PREPEND, TO_MARK), None, chars(), LLAMA_D, SPECIAL_TOKENS),
    "mistral": (None, n("Metaspace", replacement="\u2581", prepend_scheme="first", split=False), chars(), LLAMA_D, SPECIAL_TOKENS + MILL),
    "gemma": (TO_MARK, split(" ", "MergedWithPrevious", regex=False), chars(pairs=False), seq("d", n("Replace", pattern={"String": "\u2581"}, content=" "), n("ByteFallback"), n("Fuse")), SPECIAL_TOKENS),
    "phi3": (seq("n", PREPEND, TO_MARK), None, chars(), LLAMA_D, SPECIAL_TOKENS + [token(9100, "<mill>", rstrip=True, special=True), token(9101, "  ", normalized=True)]),
    "chars-unknown": (TO_MARK, None, chars(fallback=False), None, []),
    "chars-unknown-apart": (TO_MARK, None, chars(fallback=False, fuse=False), None, []),
    "chars-dropped": (TO_MARK, None, chars(fallback=False, unk=None), None, []),
    "chars-whole": (None, META, chars(ignore_merges=True), n("Metaspace", replacement="\u2581", prepend_scheme="always", split=True), []),
    "t5": (n("Precompiled", precompiled_charsmap=MAP), seq("p", n("WhitespaceSplit"), META), unigram(), n("Metaspace", replacement="\u2581", prepend_scheme="always", split=True), SPECIAL_TOKENS),
    "xlmr": (seq("n", n("Precompiled", precompiled_charsmap=MAP), n("Strip", strip_left=False, strip_right=True), n("Replace", pattern={"Regex": " {2,}"}, content="\u2581")), META, unigram(), n("Metaspace", replacement="\u2581", prepend_scheme="always", split=True), SPECIAL_TOKENS + MILL),
    "unigram-bytes": (seq("n", n("NFKC"), PREPEND, TO_MARK), None, unigram(True), LLAMA_D, []),
    "unigram-words": (n("Nmt"), n("WhitespaceSplit"), unigram(mark=False), None, []),
    "bert": (BERT, n("BertPreTokenizer"), wordpiece(), WPD, [token(0, "[UNK]", special=True), token(1, "[CLS]", special=True)]),
    "bert-cased": ({**BERT, "lowercase": False, "handle_chinese_chars": False, "strip_accents": True}, n("Whitespace"), wordpiece(5), {**WPD, "cleanup": False}, MILL),
    "wordlevel": (seq("n", n("NFD"), n("StripAccents"), n("Lowercase"), n("Strip", strip_left=True, strip_right=True)), seq("p", n("Whitespace"), n("Digits", individual_digits=True)), wordlevel(), None, MILL),
    "clip": (seq("n", n("NFC"), n("Replace", pattern={"Regex": r"\s+"}, content=" "), n("Lowercase")), split(r"'s|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+", "Removed", True), suffixed(), n("BPEDecoder", suffix="</w>"), []),
    "prefixed": (n("Lowercase"), n("WhitespaceSplit"), prefixed(), WPD, []),
    "ctc": (None, split("", "Isolated", regex=True) if False else n("FixedLength", length=1), wordlevel(), n("CTC", pad_token="[UNK]", word_delimiter_token=",", cleanup=True), []),
    "deepseek": (seq("n"), seq("p", *DEEPSEEK, BL), octets(), n("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True), MILL[:1]),
    "falcon": (None, seq("p", n("Punctuation", behavior="Contiguous"), BLR, n("Digits", individual_digits=False), split("[0-9][0-9][0-9]")), octets(), BLD, []),
    "starcoder": (None, seq("p", n("Digits", individual_digits=True), BLR), octets(), BLD, []),
    "bloom": (None, seq("p", split(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), BL), octets(), BLD, []),
    "gpt2-prefix": (None, {**BLR, "add_prefix_space": True}, octets(), BLD, MILL[:2]),
    "bytes-missing": (None, BLR, octets(lack=("\u0120", "\u00c3", "q"), unk_token="a"), BLD, []),
    "bytes-normal": (n("ByteLevel"), split("\u0120", "MergedWithNext", regex=False), octets(), BLD, []),
    "previous": (None, seq("p", split(r"\s+", "MergedWithPrevious"), split("[aeiou]", "MergedWithNext"), BL), octets(), BLD, []),
    "contiguous": (n("NFKD"), seq("p", split(r"\p{L}", "Contiguous"), n("CharDelimiterSplit", delimiter="-"), n("Punctuation", behavior="MergedWithPrevious"), BL), octets(), BLD, []),
    "inverted": (None, seq("p", split(r"\w+", "MergedWithPrevious", True), split("a$|^b", "Isolated"), BL), octets(), BLD, []),
    "fixed": (None, seq("p", n("FixedLength", length=3), {**BL, "add_prefix_space": True}), octets(), BLD, []),
    "classes": (n("Replace", pattern={"Regex": r"[\W_&&[^ \s]]"}, content="o"), seq("p", split(r"[\p{L}&&[^\p{Han}]]+|\p{Han}|[^\S\n]+"), split(r"\w{,3}$"), BL), octets(), BLD, []),
    "classes-negated": (n("Replace", pattern={"Regex": r"[^\P{L}a-e[x-z]]\p{^L}"}, content="o"), seq("p", split(r"(?m:i.)|^[[:punct:]\h]|\d|[\D&&\p{N}]", "MergedWithNext"), BL), octets(), BLD, []),
    "categories": (None, seq("p", split(r"\p{S}+", "Removed"), split(r"[\p{P}\p{M}]|[^\p{L}\s]", "Isolated"), split(r"(?i)q|\P{Lu}+"), BL), octets(), BLD, []),
    "added-twice": (n("Lowercase"), BLR, octets(), BLD, TWICE),
    "split-nothing": (None, split("", regex=False), chars(), seq("d"), []),
    "split-maybe": (None, seq("p", split("x*", "MergedWithPrevious"), BL), octets(), BLD, []),
    "replace-nothing": (n("Replace", pattern={"String": ""}, content=" "), n("Whitespace"), wordlevel(), n("BPEDecoder", suffix=""), []),
    "prefixed-added": (n("Lowercase"), n("WhitespaceSplit"), prefixed(), None, [token(9000, "##\u00e9", special=True), token(9001, "grind", normalized=True)]),
    "unigram-no-unknown": (TO_MARK, None, {**unigram(), "unk_id": None}, None, []),
    "meta-never": (None, n("Metaspace", replacement="_", prepend_scheme="never", split=True), chars(), n("Metaspace", replacement="_", prepend_scheme="never", split=True), []),
}
texts = [json.loads(line)["text"] for line in open(sys.argv[2], encoding="utf-8")] if len(sys.argv) > 2 else HARD
with open(sys.argv[1], "w", encoding="utf-8") as f:
    for name, (normalizer, pre, model, decoder, added) in FORMS.items():
        if len(sys.argv) > 3 and name not in sys.argv[3:]:
            continue
        tokens = [p for p, _ in model["vocab"]] if isinstance(model["vocab"], list) else model["vocab"]
        given = {}
        for t in added:
            given[t["content"]] = (dict(zip(tokens, range(len(tokens)))).get(t["content"]) if t["content"] in tokens else
                                   max([len(tokens) - 1] + list(given.values())) + 1)
        added = [{**t, "id": given[t["content"]]} for t in added]
        form = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
                "pre_tokenizer": pre, "post_processor": None, "decoder": decoder, "model": model}
        t = Tokenizer.from_str(json.dumps(form))
        cases = []
        for s in texts:
            try:
                ids = t.encode(s, add_special_tokens=False).ids
            except BaseException:  # a panic of the library is no Exception
                continue
            cases.append([s, ids, t.decode(ids, skip_special_tokens=False)])
        f.write(json.dumps({"name": name, "json": json.dumps(form, separators=(",", ":"), ensure_ascii=False), "cases": cases}, separators=(",", ":")) + "\n")
