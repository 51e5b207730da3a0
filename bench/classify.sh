#!/usr/bin/env bash
# fastText classifiers and languages: CPU time of whole runs on one core, JSON in and out, and
# fastText's Python module on the same documents in the same run.  LANGID_MODEL=FILE: also
# that model (lid.176.bin, lid.176.ftz).
. bench/lib.sh
data=$SHARED/data/text/prose
if [ ! -r "$data/books-dev.jsonl.zst" ]; then
    printf 'classify\t-\t-\tleft out: no %s\n' "$data"
    exit 0
fi
for f in books docs man; do
    zstd -dcq "$data/$f-dev.jsonl.zst" 2>/dev/null | head -c 20000000 | sed '$d' >"$T/$f.jsonl"
done
cat "$T/books.jsonl" "$T/docs.jsonl" "$T/man.jsonl" >"$T/all.jsonl"
bytes=$(wc -c <"$T/all.jsonl") docs=$(wc -l <"$T/all.jsonl")

over() { awk -v a="$1" -v b="$2" -v f="${3:-%.1f}" 'BEGIN { printf f, a / b }'; }

# What DCLM trains: words and pairs of words, 100 dimensions; and a model of characters.
train=$(cpu quern-classify train -q --wordNgrams 2 --bucket 200000 --epoch 1 --positive "$T/books.jsonl" \
    --negative "$T/man.jsonl" -o "$T/pairs.bin")
row classify-train "$(over "$(cat "$T/books.jsonl" "$T/man.jsonl" | wc -c)" "$train" | awk '{ printf "%.1f", $1 / 1e6 }')" MB/s \
    "a core; pairs of words, 100 dimensions, 1 epoch"
quern-classify train -q --dim 16 --minn 2 --maxn 4 --bucket 200000 --epoch 1 --positive "$T/books.jsonl" \
    --negative "$T/man.jsonl" -o "$T/parts.bin" || exit 1
peer() { # MODEL: CPU seconds of fastText's own module
    "$PEERS" - "$1" "$T/all.jsonl" <<'PY'
import json, sys, time
import fasttext
fasttext.FastText.eprint = lambda *a: None
model = fasttext.load_model(sys.argv[1])
start = time.process_time()
for line in open(sys.argv[2]):
    d = json.loads(line)
    model.f.predict(d["text"].replace("\n", " ") + "\n", 1, 0.0, "strict")
print(time.process_time() - start)
PY
}
measure() { # NAME NOTE MODEL COMMAND...
    local name=$1 note=$2 model=$3 ours theirs
    shift 3
    ours=$(cpu "$@" -q -j1 --model "$model" "$T/all.jsonl")
    row "$name" "$(over "$bytes" "$ours" | awk '{ printf "%.1f", $1 / 1e6 }')" MB/s "a core; $note"
    row "$name-docs" "$(over "$docs" "$ours" %.0f)" documents/s "a core; $((bytes / docs)) bytes each"
    if [ -z "${PEERS:-}" ]; then
        row "$name-peer" - - "left out: PEERS is not set"
    elif theirs=$(peer "$model"); then
        row "$name-peer" "$(over "$bytes" "$theirs" | awk '{ printf "%.1f", $1 / 1e6 }')" MB/s "a core; fasttext-wheel"
        row "$name-ratio" "$(over "$theirs" "$ours")" x "CPU time of fasttext-wheel over ours, same documents"
    else
        row "$name-peer" - - "left out: fasttext does not run"
    fi
}
measure classify-pairs "pairs of words, 100 dimensions" "$T/pairs.bin" quern-classify score
measure classify-parts "2 to 4 characters, 16 dimensions" "$T/parts.bin" quern-classify score
if [ -n "${LANGID_MODEL:-}" ]; then
    measure langid-model "$(basename "$LANGID_MODEL")" "$LANGID_MODEL" quern-langid
else
    row langid-model - - "left out: LANGID_MODEL is not set"
fi
