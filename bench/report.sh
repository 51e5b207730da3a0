#!/usr/bin/env bash
# Searching accounts and counting a corpus: CPU time of whole runs; grep, and datatrove's DocStats and
# LineStats, beside on the same input.
. bench/lib.sh
data=$SHARED/data/text/prose
per_s() { awk -v b="$1" -v s="$2" 'BEGIN { printf "%.2f", b / 1e9 / s }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

awk 'BEGIN { for (i = 0; i < 8000000; i++) printf "{\"id\":\"<urn:uuid:%08x-aaaa-bbbb-cccc-%012x>\",\"stage\":\"filter\",\"rule\":\"gopher_short_doc\",\"value\":%d,\"threshold\":50}\n", i, i * 7, i % 50 }' >"$T/rejects"
zstd -q -1 "$T/rejects" -o "$T/rejects.zst"
bytes=$(wc -c <"$T/rejects")
id='<urn:uuid:0000ffff-aaaa-bbbb-cccc-00000006fff9>'
awk 'BEGIN { for (i = 0; i < 10000; i++) printf "<urn:uuid:%08x-aaaa-bbbb-cccc-%012x>\n", i * 100, i * 700 }' >"$T/ids"
greps() { grep -cF "$@" "$T/rejects" | cat; } # into /dev/null it stops at the first line
many() { quern-why - --rejects "$T/rejects" <"$T/ids"; }
one=$(cpu quern-why "$id" --rejects "$T/rejects")
row why-one "$(per_s "$bytes" "$one")" GB/s "an id in 8 million lines"
row why-many "$(per_s "$bytes" "$(cpu many)")" GB/s "10,000 ids"
row why-zst "$(per_s "$bytes" "$(cpu quern-why "$id" --rejects "$T/rejects.zst")")" GB/s "decompressed; an id, zstd"
row why-grep "$(ratio "$(cpu greps "$id")" "$one")" times "CPU time of grep -F over ours, an id"
row why-grep-many "$(ratio "$(cpu greps -f "$T/ids")" "$(cpu many)")" times "10,000 ids"
row report "$(per_s "$bytes" "$(cpu quern-report --rejects "$T/rejects" -o "$T/report.html")")" GB/s "a page from 8 million lines"

zstd -dcq "$data/books-dev.jsonl.zst" >"$T/books" 2>/dev/null
if [ ! -s "$T/books" ]; then
    row stats - - "left out: no $data"
    exit 0
fi
row stats "$(per_s "$(wc -c <"$T/books")" "$(cpu quern-stats -j1 "$T/books")")" GB/s "books, a core"
zstd -dcq "$data/docs-dev.jsonl.zst" | quern-filter -q --preset gopher-quality,gopher-repetition,nemo --annotate >"$T/signals"
row stats-signals "$(per_s "$(wc -c <"$T/signals")" "$(cpu quern-stats -j1 "$T/signals")")" GB/s "documents with 52 signals each"
if [ -z "${PEERS:-}" ]; then
    row stats-datatrove - - "left out: PEERS is not set"
    exit 0
fi
head -500 "$T/books" >"$T/few"
theirs=$("$PEERS" - "$T/few" <<'PY'
import json, sys, time
from datatrove.data import Document
from datatrove.pipeline.stats import DocStats, LineStats
stats = [DocStats("/tmp"), LineStats("/tmp")]
start = time.process_time()
for line in open(sys.argv[1]):
    d = json.loads(line)
    for s in stats:
        s.extract_stats(Document(text=d["text"], id=str(d["id"])))
print(time.process_time() - start)
PY
)
all=$(cpu quern-stats -j1 "$T/books")
ours=$(awk -v s="$all" -v f="$(wc -c <"$T/few")" -v b="$(wc -c <"$T/books")" 'BEGIN { print s * f / b }')
row stats-datatrove "$(ratio "${theirs:-0}" "$ours")" times "CPU time of DocStats and LineStats over ours, books"
