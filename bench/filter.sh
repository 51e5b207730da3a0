#!/usr/bin/env bash
# Cleaning, languages and filters: CPU time of whole runs on one core, JSON in and out, and
# the originals of the filters on some of the same documents in the same run.
# NEMO=DIR, DOLMA=DIR: wheels of nemo-curator and dolma, unzipped (tests/record/filter_dialects.py).
. bench/lib.sh
data=$SHARED/data/text/prose
if [ ! -r "$data/books-dev.jsonl.zst" ]; then
    printf 'filter\t-\t-\tleft out: no %s\n' "$data"
    exit 0
fi
for f in books docs man; do
    zstd -dcq "$data/$f-dev.jsonl.zst" 2>/dev/null | head -c 25000000 | sed '$d'
done >"$T/docs.jsonl"
bytes=$(wc -c <"$T/docs.jsonl")

rate() { awk -v b="$1" -v s="$2" 'BEGIN { printf "%.1f", b / 1e6 / s }'; }

four=gopher-quality,gopher-repetition,c4,fineweb
clean=$(cpu quern-clean -q -j1 "$T/docs.jsonl")
row clean "$(rate "$bytes" "$clean")" MB/s "a core"
row langid "$(rate "$bytes" "$(cpu quern-langid -q -j1 "$T/docs.jsonl")")" MB/s "a core"
for p in gopher-quality gopher-repetition c4 fineweb nemo dolma dclm; do
    row "filter-$p" "$(rate "$bytes" "$(cpu quern-filter -q -j1 --preset $p "$T/docs.jsonl")")" MB/s "a core"
done
all=$(cpu quern-filter -q -j1 --preset $four "$T/docs.jsonl")
row filter-four "$(rate "$bytes" "$all")" MB/s "a core; all presets"
row filter-annotate "$(rate "$bytes" "$(cpu quern-filter -q -j1 --annotate --preset $four "$T/docs.jsonl")")" MB/s \
    "a core; every signal"
for p in nemo dolma dclm; do
    row "filter-$p-annotate" "$(rate "$bytes" "$(cpu quern-filter -q -j1 --annotate --preset $p "$T/docs.jsonl")")" MB/s \
        "a core; every signal"
done
row clean-filter-four "$(rate "$bytes" "$(awk -v a="$clean" -v b="$all" 'BEGIN { print a + b }')")" MB/s "a core; one after the other"

if [ -z "${PEERS:-}" ]; then
    row filter-datatrove - - "left out: PEERS is not set"
    exit 0
fi
awk 'NR % 160 == 0' "$T/docs.jsonl" >"$T/few.jsonl"
few=$(wc -c <"$T/few.jsonl")
for _ in 1 2 3 4 5 6 7 8; do cat "$T/few.jsonl"; done >"$T/eight.jsonl" # long enough to measure
ours=$(cpu quern-filter -q -j1 --preset $four "$T/eight.jsonl")
theirs=$("$PEERS" - "$T/few.jsonl" <<'PY'
import json, sys, time
from datatrove.data import Document
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter)
filters = [GopherQualityFilter(), GopherRepetitionFilter(), C4QualityFilter(), FineWebQualityFilter()]
for f in filters:
    f.filter(Document(text="Loads what it needs.", id=""))
start = time.process_time()
for line in open(sys.argv[1]):
    d = json.loads(line)
    doc = Document(text=d["text"], id=d["id"])
    for f in filters:
        if f.filter(doc) is not True:
            break
print(time.process_time() - start)
PY
) || { row filter-datatrove - - "left out: datatrove does not run"; exit 0; }
row filter-datatrove "$(rate "$few" "$theirs")" MB/s "a core; the four presets on some of the documents"
row filter-ratio "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.0f", 8 * b / a }')" x "CPU time of datatrove over ours, same documents"

for p in nemo:"${NEMO:-}" dolma:"${DOLMA:-}"; do
    name=${p%%:*}
    if [ -z "${p#*:}" ] || ! theirs=$("$PEERS" "$(dirname "$0")/filter_peers.py" "$name" "${p#*:}" "$T/few.jsonl"); then
        row "filter-$name-original" - - "left out: no wheel of it, or what it imports"
        continue
    fi
    ours=$(cpu quern-filter -q -j1 --annotate --preset "$name" "$T/eight.jsonl")
    row "filter-$name-original" "$(rate "$few" "$theirs")" MB/s "a core; every signal of some of the documents"
    row "filter-$name-ratio" "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.0f", 8 * b / a }')" x \
        "CPU time of the original over ours, same documents, every signal"
done
