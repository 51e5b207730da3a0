#!/usr/bin/env bash
# The whole chain, from web archives to tokens, beside datatrove's from the same archives to filtered documents (its
# language filter wants a model from the network, its deduplication and tokens are runs of their own: none is in its time).
# Processor seconds of all processes; of turns, in which each goes once, the middle one by its ratio.  TURNS=3
. bench/lib.sh
pages=$SHARED/data/extraction/wcxb/wcxb-dev.tar.zst gpt2=$SHARED/data/tokenizers/gpt2
if [ ! -f "$pages" ] || [ ! -d "$gpt2" ]; then
    row chain - - "left out: no $pages or $gpt2"
    exit 0
fi
mkdir "$T/pages" "$T/warc"
zstd -dc --long=27 "$pages" | tar -C "$T/pages" -x --wildcards '*/html/*'
find "$T/pages" -type f -exec mv -t "$T/pages" {} +
find "$T/pages" -mindepth 1 -type d -delete
python3 bench/chain_peer.py pack "$T/pages" "$T/warc/pages.warc.gz" || exit 1
cat >"$T/chain" <<'END'
set -eo pipefail
quern extract -q "$1"/*.warc.gz | quern clean -q | quern langid -q --keep en |
    quern filter -q --preset gopher-quality,gopher-repetition,fineweb | quern dedup exact -q | quern dedup fuzzy -q -o "$2.jsonl"
quern tokenize -q --tokenizer "$3" --append-eod --output-prefix "$2" "$2.jsonl"
END
raw=$(gzip -dc "$T/warc/pages.warc.gz" | wc -c) packed=$(stat -c %s "$T/warc/pages.warc.gz")
runs=1
for ((turn = 0; turn < ${TURNS:-3}; turn++)); do
    ours=$(cpu bash "$T/chain" "$T/warc" "$T/out" "$gpt2")
    theirs=0
    [ -z "$PEERS" ] || theirs=$(cpu "$PEERS" bench/chain_peer.py run "$T/warc" "$T/peer")
    echo "$ours $theirs"
done | sort -g -k2 | awk '{ o[NR] = $1; t[NR] = $2 } END { m = int((NR + 1) / 2); print o[m], t[m] }' >"$T/seconds"
read -r ours theirs <"$T/seconds"
rate() { awk -v b="$1" -v s="$2" 'BEGIN { printf "%.1f", b / s / 1e6 }'; }
documents=$(wc -l <"$T/out.jsonl")
row chain "$(rate "$raw" "$ours")" MB/s "WARC to tokens, a core: $(rate "$raw" 1) MB of pages ($(rate "$packed" 1) compressed) in $ours s of CPU; $documents documents"
row chain-compressed "$(rate "$packed" "$ours")" MB/s "by the bytes of the .warc.gz"
row chain-crawl "$(awk -v p="$packed" -v s="$ours" 'BEGIN { printf "%.0f", 90e12 / p * s / 3600 }')" "core hours" "a crawl of 90 TB of .warc.gz, by these"
if [ "$theirs" = 0 ]; then
    row chain-datatrove - MB/s "left out: no PEERS"
else
    kept=$(zcat "$T"/peer/*.jsonl.gz 2>/dev/null | wc -l)
    [ "$kept" -gt 0 ] || { echo "chain: datatrove wrote no document" >&2; exit 1; }
    row chain-datatrove "$(rate "$raw" "$theirs")" MB/s "WARC to filtered documents alone: $theirs s of CPU; $kept documents"
    row chain-ratio "$(over "$theirs" "$ours")" times "processor time, datatrove's over quern's"
    row chain-datatrove-crawl "$(awk -v p="$packed" -v s="$theirs" 'BEGIN { printf "%.0f", 90e12 / p * s / 3600 }')" "core hours" "90 TB"
fi
