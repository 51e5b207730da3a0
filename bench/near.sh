#!/usr/bin/env bash
# Near-duplicates beside the peers on a synthetic crawl with known answers (bench/corpus_bench.c, its pages in Latin script,
# MB megabytes before that): processor seconds, peak memory, and what each keeps and drops by the true Jaccard similarity.
# Threshold .8, datatrove with its 14 buckets of 8 hashes.  Takes some 20 minutes with all the peers.  SYSTEMS names some of them.
#   PEERS=python SYSTEMS="rensa datasketch" MB=20 make bench BENCH=near
. bench/lib.sh
program corpus_bench
docs=$T/docs.jsonl
"$B/bench/corpus_bench" web "${MB:-250}" | grep '"script":"latin"' >"$docs"
megabytes=$(awk -v b="$(stat -c %s "$docs")" 'BEGIN { printf "%.0f", b / 1e6 }')
row near-documents "$(wc -l <"$docs")" "" "$megabytes MB of JSON lines"
mkdir "$T/kept"
for how in quern quern-no-verify quern-datatrove; do
    option=()
    case $how in *verify) option=(--no-verify) ;; *datatrove) option=(--preset datatrove --no-verify) ;; esac
    seconds=$(cpu quern-dedup fuzzy -q -j 1 ${option[@]+"${option[@]}"} "$docs" -o "$T/out")
    grep -o '^{"id":"[^"]*' "$T/out" | cut -c 8- >"$T/kept/$how"
    row "near-$how" "$seconds" s "processor, a thread, with input and output; $(wc -l <"$T/kept/$how") stay"
done
if [ -z "$PEERS" ]; then
    row near-peers - - "left out: PEERS is not set"
    exit 0
fi
for system in ${SYSTEMS:-rensa datasketch text_dedup datatrove}; do
    if read -r seconds peak < <("$PEERS" bench/near_peers.py keep "$system" "$docs" "$T/$system" "$T/kept/$system" 2>"$T/error" | tail -n 1); then
        row "near-$system" "$seconds" s "processor, a process; peak memory $peak MB; $(wc -l <"$T/kept/$system") stay"
    else
        row "near-$system" - - "left out: $(tail -n 1 "$T/error")"
    fi
    rm -rf "${T:?}/$system"
done
"$PEERS" bench/near_peers.py truth "$docs" "$T/pairs" && "$PEERS" bench/near_peers.py judge "$docs" "$T/pairs" "$T"/kept/*
