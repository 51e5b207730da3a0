#!/usr/bin/env bash
# Families of tokenizers by their normalizers and pre-tokenizers: quern and gigatoken in turns, on the same bytes.
# FILES='NAME=FILE ...': published files to be measured too.  ONLY=DeepSeek: families of that name.  CODE: a file of code.
# The families' own files cannot be had from here: a file with the merges of cl100k_base stands for each; for those whose tokens are
# made of characters, and for Unigram, one that is trained on the same texts.
TMPDIR=/dev/shm . bench/lib.sh
data=$SHARED/data MB=${MB:-12}
if [ ! -r "$data/text/prose/books-dev.jsonl.zst" ] || [ -z "${PEERS-}" ]; then
    row tokenizer-families - - "left out: no $data/text/prose/books-dev.jsonl.zst, or PEERS is not set"
    exit 0
fi
program tokenize_bench
# English: books; Chinese: documents of which a fifth and more is ideographs, without kana.
"$PEERS" - "$data/text/prose" "$T" "$MB" <<'PY' || exit 1
import json, subprocess, sys
folder, out, most = sys.argv[1], sys.argv[2], int(sys.argv[3]) * 1000000
def texts(name):
    lines = subprocess.Popen(["zstd", "-dcq", f"{folder}/{name}-dev.jsonl.zst"], stdout=subprocess.PIPE).stdout
    return (json.loads(l)["text"] for l in lines)
def share(t, first, last):
    return sum(first <= c <= last for c in t[:4000]) / max(1, min(len(t), 4000))
def write(name, some):
    n = 0
    with open(f"{out}/{name}", "w", encoding="utf-8") as f:
        for t in some:
            n += len(t.encode())
            f.write(t + "\n")
            if n > most:
                break
write("english", (t for t in texts("books") if share(t, "\0", "\x7f") >= 0.99))
write("chinese", (t for n in ("man", "docs") for t in texts(n) if share(t, "\u4e00", "\u9fff") > .2 and share(t, "\u3040", "\u30ff") < .02))
PY
cat ${CODE:-"$data"/tokenizers/texts/code_* "$data"/tokenizers/texts/html_page.txt} >"$T/code" || exit 1
for of in english code chinese; do
    head -c 4000000 "$T/$of" | iconv -c -f UTF-8 -t UTF-8 2>/dev/null
done >"$T/train"
quern tokenizer train -q --model byte-fallback --vocab-size 64000 -o "$T/chars.json" "$T/train" || exit 1
quern tokenizer train -q --model unigram --vocab-size 32000 -o "$T/unigram.json" "$T/train" || exit 1
RAYON_NUM_THREADS=1 "$PEERS" - "$B/bench/tokenize_bench" "$data/tokenizers/hf/cl100k-derived/tokenizer.json" "$T" "${ONLY-}" ${FILES-} <<'PY'
import base64, json, statistics, subprocess, sys, time
import gigatoken
bench, merges, tmp, only, *files = sys.argv[1:]
model = json.load(open(merges, encoding="utf-8"))
families = {}
for f in json.load(open("tests/data/tokenizer/families.json", encoding="utf-8"))["families"]:
    if "pre_tokenizer" in f:
        path = families[f["name"]] = f"{tmp}/{len(families)}.json"
        json.dump({**model, "normalizer": f["normalizer"], "pre_tokenizer": f["pre_tokenizer"]}, open(path, "w"))
def field(message, wanted):
    """The bytes of a field of a protobuf message."""
    at = 0
    def number():
        nonlocal at
        n = shift = 0
        while True:
            n |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return n
    while at < len(message):
        key = number()
        size = number() if key & 7 in (0, 2) else 8 if key & 7 == 1 else 4
        if key & 7 == 0:
            continue
        if key >> 3 == wanted:
            return message[at:at + size]
        at += size
spm = open(merges.split("/hf/")[0] + "/sentencepiece/sp8k_unigram_nmt_nfkc.model", "rb").read()
charsmap = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(field(field(spm, 3), 2)).decode()}
replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
meta = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
for name, of, normalizer, pre in (
        ("Gemma 2 and 3", "chars", replace, {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}),
        ("Llama 2, Mistral 7B", "chars", {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, replace]}, None),
        ("T5", "unigram", charsmap, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, meta]}),
        ("XLM-R", "unigram", {"type": "Sequence", "normalizers": [charsmap, {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]}, meta)):
    path = families[name] = f"{tmp}/{len(families)}.json"
    whole = {**json.load(open(f"{tmp}/{of}.json", encoding="utf-8")), "normalizer": normalizer, "pre_tokenizer": pre}
    if "Gemma" in name:  # whose files have the tab in the place of a token for its byte
        vocab = whole["model"]["vocab"]
        vocab["<none>" if "\t" in vocab else "\t"] = vocab.pop("<0x09>")
    json.dump(whole, open(path, "w"))
families.update(f.split("=", 1) for f in files)
for name, path in families.items():
    if only not in name:
        continue
    for of in ("english", "code", "chinese"):
        ours = subprocess.run([bench, path, "x", f"{tmp}/{of}"], capture_output=True, text=True).stdout.split("\n")
        cold, warm = (float(l.split("\t")[1]) for l in ours[1:3])
        text = open(f"{tmp}/{of}", encoding="utf-8").read()
        parts = [text[i:i + 16384] for i in range(0, len(text), 16384)]
        runs = []
        try:
            g = gigatoken.Tokenizer.from_tiktoken(path) if path.endswith(".tiktoken") else gigatoken.Tokenizer(path)
            for _ in range(5):
                t0 = time.process_time()
                g.encode_batch(parts, parallel=False)
                runs.append(len(text.encode()) / 1e6 / (time.process_time() - t0))
            theirs = f"{runs[0]:.0f}\t{statistics.median(runs[1:]):.0f}\t{cold / runs[0]:.2f}\t{warm / statistics.median(runs[1:]):.2f}"
        except Exception as e:
            theirs = "refused: " + str(e).split("\n")[0]
        print(f"{name}\t{of}\t{cold:.0f}\t{warm:.0f}\t{theirs}", flush=True)
PY
