#!/usr/bin/env bash
# Training with merges across words beside BPE, in the same run on the same bytes: tokens of a text that was kept out, their
# ratio, the ratio of CPU time, and how fast both encode.  VOCAB=200000, JOBS=2.
TMPDIR=/dev/shm . bench/lib.sh
data=$SHARED/data/text/prose
VOCAB=${VOCAB:-200000} JOBS=${JOBS:-2}
if [ ! -r "$data/books-dev.jsonl.zst" ]; then
    row tokenizer-across - - "left out: no $data/books-dev.jsonl.zst"
    exit 0
fi
# Every fortieth book by the hash of its title is kept out; books and documentation are English for the most part.
zstd -dcq "$data/books-dev.jsonl.zst" "$data/docs-dev.jsonl.zst" | python3 -c '
import json, sys, zlib
train, held = (open(p, "w", encoding="utf-8") for p in sys.argv[1:])
for line in sys.stdin:
    d = json.loads(line)
    title = "/".join(d["id"].split("/")[:3])
    held_out = d["id"].startswith("book/") and zlib.crc32(title.encode()) % 40 == 0
    (held if held_out else train).write(json.dumps({"text": d["text"]}, ensure_ascii=False) + "\n")' "$T/train" "$T/held" || exit 1
runs=1
for model in bpe superbpe; do
    s=$(cpu quern-tokenizer train -q -j"$JOBS" --memory 2G --model $model --vocab-size "$VOCAB" -o "$T/$model.json" "$T/train")
    row "tokenizer-train-$model-$VOCAB" "$s" s "of CPU, $(stat -c %s "$T/train") bytes of JSON lines"
    n=$(quern-tokenizer encode --tokenizer "$T/$model.json" --jsonl "$T/held" | tr , '\n' | wc -l)
    row "tokenizer-tokens-$model" "$n" tokens "of $(stat -c %s "$T/held") bytes of JSON lines that were kept out"
    echo "$model $s $n" >>"$T/rows"
done
awk 'NR == 1 { s = $2; n = $3 } NR == 2 { printf "tokenizer-across-time\t%.2f\ttimes\tCPU time over BPE\047s\ntokenizer-across-fewer\t%.1f\t%%\tfewer tokens than BPE\047s\n", $2 / s, 100 - 100 * $3 / n }' "$T/rows"
program tokenize_bench
python3 -c '
import json, sys
for line in sys.stdin:
    sys.stdout.write(json.loads(line)["text"] + "\n")' <"$T/held" >"$T/plain"
for model in bpe superbpe; do "$B/bench/tokenize_bench" "$T/$model.json" "$model" "$T/plain"; done
