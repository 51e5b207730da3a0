#!/usr/bin/env bash
# Shuffling 2 GB of documents in 256 MB of memory: time, peak memory, and what the disk does
# with the same bytes; GNU shuf (all in memory) and sort -R on the same input in one run.
. bench/lib.sh
books=$SHARED/data/text/prose/books-dev.jsonl.zst
if [ ! -r "$books" ]; then
    printf 'mix\t-\t-\tleft out: no %s\n' "$books"
    exit 0
fi
zstd -dcq "$books" >"$T/books"
n=${MIX_COPIES:-19}
for ((i = 0; i < n; i++)); do sed "s/^{\"id\": *\"/&$i-/" "$T/books"; done >"$T/in.jsonl"
rm "$T/books"
bytes=$(wc -c <"$T/in.jsonl")
# timed NAME COMMAND...: seconds and peak KiB in $secs, $peak.
timed() {
    /usr/bin/env bash -c 'TIMEFORMAT="%R %U %S"; time "$@"' - "$@" 2>"$T/time"
    secs=$(tail -n 1 "$T/time" | cut -d' ' -f1)
    cpu=$(tail -n 1 "$T/time" | awk '{ print $2 + $3 }')
}
rate() { awk -v b="$bytes" -v s="$1" 'BEGIN { printf "%.0f", b / 1e6 / s }'; }
# The most resident memory of a command, looked at every 20 ms.
peak() {
    "$@" &
    local most=0 now
    while now=$(awk '/VmHWM/ { print $2 }' /proc/$!/status 2>/dev/null) && [ -n "$now" ]; do
        most=$now
        sleep 0.02
    done
    wait $!
    echo "$most"
}
row mix-input "$((bytes / 1000000))" MB "documents of books, $n times with new ids"
timed cp "$T/in.jsonl" "$T/copy"
copy=$secs
row mix-copy "$(rate "$secs")" MB/s "cp of the same bytes"
rm "$T/copy"
timed quern-mix -q --memory 256M --tmp "$T" -o "$T/out.jsonl" "$T/in.jsonl"
ours=$secs
row mix-shuffle "$(rate "$secs")" MB/s "256 MB of memory, all processors, fsync included"
row mix-shuffle-cpu "$(rate "$cpu")" MB/s "a core"
row mix-copy-ratio "$(awk -v a="$ours" -v b="$copy" 'BEGIN { printf "%.1f", a / b }')" x "time of cp"
row mix-peak "$(($(peak quern-mix -q --memory 256M --tmp "$T" -o "$T/out.jsonl" "$T/in.jsonl") / 1024))" MiB "resident, at --memory 256M"
timed quern-mix -q --memory 256M --compress-tmp --tmp "$T" -o "$T/out.jsonl" "$T/in.jsonl"
row mix-shuffle-compressed "$(rate "$secs")" MB/s "temporary file compressed"
timed shuf "$T/in.jsonl" -o "$T/out.jsonl"
row mix-shuf "$(awk -v a="$ours" -v b="$secs" 'BEGIN { printf "%.2f", b / a }')" x "time of GNU shuf, which holds all in memory, over ours"
timed env LC_ALL=C sort -R -S 256M -T "$T" "$T/in.jsonl" -o "$T/out.jsonl"
row mix-sort-R "$(awk -v a="$ours" -v b="$secs" 'BEGIN { printf "%.2f", b / a }')" x "time of sort -R in 256 MB over ours"
