#!/usr/bin/env bash
# Tokenizing: in memory, from JSON lines on a RAM disk to .bin, training; peers beside it.
TMPDIR=/dev/shm . bench/lib.sh
data=$SHARED/data
if [ ! -r "$data/text/prose/books-dev.jsonl.zst" ]; then
    row tokenize - - "left out: no $data/text/prose/books-dev.jsonl.zst"
    exit 0
fi
zstd -dcq "$data/text/prose/books-dev.jsonl.zst" >"$T/books.jsonl" || exit 1
zstd -dcq "$data"/text/prose/*.jsonl.zst >"$T/all.jsonl" || exit 1
python3 - "$T/books.jsonl" "$T/english" "$T/all.jsonl" "$T/all" <<'PY' || exit 1
import json, sys
def english(d):  # mostly ASCII
    return sum(c < "\x80" for c in d[:4000]) >= 0.99 * min(len(d), 4000)
for src, out in (sys.argv[1:3], sys.argv[3:5]):
    n = 0
    with open(out, "w", encoding="utf-8") as f:
        for line in open(src, encoding="utf-8"):
            text = json.loads(line)["text"]
            if (out.endswith("english") and english(text)) or (out.endswith("all") and not english(text)):
                n += f.write(text + "\n")
            if n > 50e6:
                break
PY
program tokenize_bench
cat "$data"/tokenizers/texts/code_* "$data"/tokenizers/texts/html_page.txt >"$T/code" || exit 1
for t in gpt2 tiktoken/cl100k_base.tiktoken tiktoken/o200k_base.tiktoken; do
    n=$(basename "$t" .tiktoken)
    "$B/bench/tokenize_bench" "$data/tokenizers/$t" "$n-english" "$T/english"
    "$B/bench/tokenize_bench" "$data/tokenizers/$t" "$n-multilingual" "$T/all"
    "$B/bench/tokenize_bench" "$data/tokenizers/$t" "$n-code" "$T/code"
done

rate() { awk -v b="$1" -v s="$2" 'BEGIN { printf "%.1f", b / 1e6 / s }'; }
# run JOBS INPUT: from the beginning each time
run() {
    rm -f "$T"/a_*
    quern-tokenize -q "-j$1" --tokenizer "$data/tokenizers/gpt2" --append-eod --output-prefix "$T/a" "$2"
}
# clock COMMAND...: seconds that pass, the median of $runs
clock() {
    for ((i = 0; i < runs; i++)); do
        { TIMEFORMAT='%R'; time "$@" >/dev/null 2>&1; } 2>&1
    done | median
}
cat "$T/books.jsonl" "$T/books.jsonl" "$T/books.jsonl" >"$T/three.jsonl" || exit 1
bytes=$(stat -c %s "$T/three.jsonl")
s=$(cpu run 1 "$T/three.jsonl") two=$(cpu run 2 "$T/three.jsonl")
row tokenize-run-gpt2 "$(rate "$bytes" "$s")" MB/s \
    "$bytes bytes of JSON lines to .bin and .idx on a RAM disk, a core, whole run; $s s of CPU"
row tokenize-run-gpt2-two "$(over "$(over "$s" 0.5)" "$two")" times "speed of two cores over one, by the CPU time of both"
one=$(clock run 1 "$T/three.jsonl") two=$(clock run 2 "$T/three.jsonl")
row tokenize-run-gpt2-two-clock "$(over "$one" "$two")" times "the same by the clock: $one and $two s"
rm "$T/three.jsonl"
# Lines of 3,000 characters of text, as they are and with what web corpora have beside them.
python3 - "$T/books.jsonl" "$T/flat.jsonl" "$T/nested.jsonl" <<'PY' || exit 1
import json, sys
with open(sys.argv[2], "w", encoding="utf-8") as flat, open(sys.argv[3], "w", encoding="utf-8") as nested:
    for line in open(sys.argv[1], encoding="utf-8"):
        text = json.loads(line)["text"]
        for i in range(0, len(text), 3000):
            d = {"text": text[i:i + 3000], "id": f"<urn:uuid:{i:08x}-0000-4000-8000-{len(text):012x}>"}
            flat.write(json.dumps(d, ensure_ascii=False) + "\n")
            d["metadata"] = {"url": f"https://example.org/books/{len(text)}?from={i}", "date": "2024-05-01T10:00:00Z",
                             "language": "en", "language_score": 0.9713, "scores": [0.0, 0.4545, 0.4615]}
            nested.write(json.dumps(d, ensure_ascii=False) + "\n")
PY
for n in flat nested; do
    s=$(cpu run 1 "$T/$n.jsonl") bytes=$(stat -c %s "$T/$n.jsonl")
    row "tokenize-run-gpt2-$n" "$(rate "$bytes" "$s")" MB/s \
        "$bytes bytes of lines with 3,000 characters of text, a core; $s s of CPU"
done
s=$(cpu quern-tokenizer train -q --vocab-size 32000 -o "$T/t.json" "$T/all.jsonl")
row tokenizer-train-32000 "$s" s "of CPU, $(stat -c %s "$T/all.jsonl") bytes of JSON lines"

if [ -z "$PEERS" ]; then
    row tokenize-peers - - 'left out: PEERS is not set'
    exit 0
fi
RAYON_NUM_THREADS=1 "$PEERS" - "$data/tokenizers" "$T/english" "$T/all" "$T/code" <<'PY'
import base64, statistics, sys, time
folder, *paths = sys.argv[1:]
def parts_of(path):
    text = open(path, encoding="utf-8").read()
    return [text[i:i + 16384] for i in range(0, len(text), 16384)]
texts = dict(zip(("english", "multilingual", "code"), map(parts_of, paths)))
def measure(name, part, fn, of="english"):
    some = texts[of][:max(1, int(len(texts[of]) * part))]
    size, runs = sum(len(d.encode()) for d in some), []
    for _ in range(4):
        t0 = time.process_time()
        fn(some)
        runs.append(size / 1e6 / (time.process_time() - t0))
    print(f"tokenize-{name}-{of}\t{statistics.median(runs[1:]):.1f}\tMB/s\tin memory, warm, CPU time", flush=True)
try:
    import gigatoken
    for n in ("r50k_base", "cl100k_base", "o200k_base"):
        g = gigatoken.Tokenizer.from_tiktoken(f"{folder}/tiktoken/{n}.tiktoken")
        for of in texts:
            measure(f"gigatoken-{n}", 1, lambda s: g.encode_batch(s, parallel=False), of)
except ImportError:
    print("tokenize-gigatoken\t-\t-\tleft out: not installed")
try:
    import tiktoken
    ranks = {base64.b64decode(a): int(b) for a, b in (l.split() for l in open(f"{folder}/tiktoken/r50k_base.tiktoken") if l.strip())}
    t = tiktoken.Encoding("x", pat_str=r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""", mergeable_ranks=ranks, special_tokens={})
    measure("tiktoken-r50k_base", 0.2, lambda s: [t.encode_ordinary(d) for d in s])
except ImportError:
    print("tokenize-tiktoken\t-\t-\tleft out: not installed")
try:
    from tokenizers import Tokenizer
    h = Tokenizer.from_file(f"{folder}/hf/gpt2-derived/tokenizer.json")
    measure("tokenizers-gpt2", 0.05, lambda s: [h.encode(d, add_special_tokens=False) for d in s])
except ImportError:
    print("tokenize-tokenizers\t-\t-\tleft out: not installed")
PY
