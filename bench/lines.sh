#!/usr/bin/env bash
# Repeated lines and passages: whole runs over prose, and datatrove's sentence deduplication
# beside ours on the same documents.
set -u
data=$SHARED/data/text/prose
if [ ! -r "$data/books-dev.jsonl.zst" ]; then
    printf 'lines\t-\t-\tleft out: no %s\n' "$data"
    exit 0
fi
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
for f in books docs man; do zstd -dcq "$data/$f-dev.jsonl.zst"; done >"$T/docs.jsonl" || exit 1

# CPU seconds and peak memory in MiB of a command; the median of three by CPU
run() {
    for _ in 1 2 3; do
        ( TIMEFORMAT='%U %S'
        time ( "$@" >/dev/null 2>&1 & p=$!
            peak=0
            while m=$(awk '/VmHWM/ { print int($2 / 1024) }' /proc/$p/status 2>/dev/null) && [ -n "$m" ]; do
                peak=$m; sleep 0.05
            done
            wait $p; echo "$peak" >"$T/peak" ) ) 2>&1 | tail -n 1 | awk -v p="$(cat "$T/peak" 2>/dev/null)" '{ print $1 + $2 }'
    done | sort -n | sed -n 2p
}
rate() { awk -v b="$1" -v s="$2" 'BEGIN { printf "%.1f", b / 1e6 / s }'; }
quern-dedup lines -q "$T/docs.jsonl" -o "$T/out" --stats "$T/s" || exit 1
bytes=$(sed 's/.*"bytes_in":\([0-9]*\),"bytes_out".*"seconds".*/\1/' "$T/s")
while read -r kind; do
    # shellcheck disable=SC2086
    s=$(run quern-dedup $kind -j 1 -q "$T/docs.jsonl" -o "$T/out")
    printf 'dedup-%s\t%s\tMB/s\twhole run with input and output, a core; %s s of CPU, peak %s MiB\n' \
        "$(echo "$kind" | tr -d -- - | tr ' ' -)" "$(rate "$bytes" "$s")" "$s" "$(cat "$T/peak")"
    [ "$kind" = "substring --memory 256M" ] && mv "$T/out" "$T/little"
done <<'K'
lines
lines --preset ccnet
lines --preset datatrove
lines --memory 16M
substring --memory 256M
substring --memory 2G
substring --memory 256M --tokens 50
K
quern-dedup substring -q --memory 2G "$T/docs.jsonl" -o "$T/out"
cmp -s "$T/little" "$T/out" && same=yes || same=no
printf 'dedup-substring-same\t%s\t\tthe same bytes with 256 MB and 2 GB\n' "$same"

if [ -z "$PEERS" ]; then
    printf 'lines-datatrove\t-\t-\tleft out: PEERS is not set\n'
    exit 0
fi
{ zstd -dcq "$data/man-dev.jsonl.zst" | head -n 600; zstd -dcq "$data/docs-dev.jsonl.zst" | head -n 300; } >"$T/few.jsonl" 2>/dev/null
cat >"$T/peer.py" <<'P'
import json, sys, time
from datatrove.data import Document
from datatrove.pipeline.dedup import sentence_dedup as s
docs = [Document(text=d["text"], id=d["id"]) for d in map(json.loads, open(sys.argv[1]))]
out = sys.argv[2]
c = s.SentDedupConfig()
size = sum(len(d.text.encode()) for d in docs)
first = s.SentenceDedupSignature(out + "/sig", config=c)
first.tokenizer.word_tokenize("load the tokenizer before the clock starts")
start = time.process_time()
first.run(iter(docs), 0, 1)
s.SentenceFindDedups(out + "/sig", out + "/dup", config=c).run(None, 0, 1)
kept = sum(1 for _ in s.SentenceDedupFilter(out + "/dup", config=c).run(iter(docs), 0, 1))
print(time.process_time() - start, kept, size)
P
peer=$("$PEERS" "$T/peer.py" "$T/few.jsonl" "$T/peer" 2>/dev/null | tail -n 1)
if [ -z "$peer" ]; then
    printf 'lines-datatrove\t-\t-\tleft out: it does not run here\n'
    exit 0
fi
read -r secs kept few <<<"$peer"
ours=$(run quern-dedup lines --preset datatrove -j 1 -q "$T/few.jsonl" -o "$T/out")
printf 'lines-datatrove\t%s\tMB/s\tdatatrove, signatures to filter, 900 documents; it keeps %s\n' "$(rate "$few" "$secs")" "$kept"
printf 'lines-datatrove-ratio\t%s\ttimes\tour CPU seconds on the same documents with input and output; we keep %s\n' \
    "$(awk -v a="$secs" -v b="$ours" 'BEGIN { printf "%.0f", a / b }')" "$(wc -l <"$T/out")"
