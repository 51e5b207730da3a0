#!/usr/bin/env bash
# Deduplication as the collection grows: a synthetic crawl (bench/corpus_bench.c) of each of SIZES, in MB, by a pipe, in
# --memory MEMORY (1G) with two threads.  Processor seconds a MB, peak memory, and peak disk in TMPDIR.  Compare only what was
# measured in turns: on a busy machine the same run takes up to a third more.  Takes some 2 minutes by default.
#   SIZES="1000 5000 15000" KINDS="exact fuzzy lines" TMPDIR=/disk make bench BENCH=scale   # 15 minutes, 39 GB
#   SIZES="200 800 5000" KINDS=substring make bench BENCH=scale
. bench/lib.sh
program corpus_bench

# watch PID: until it ends; the most memory, the most bytes of nameless files that it has, what it wrote and read, in MB.
watch() {
    local peak=0 disk=0 now used io="0 0"
    while now=$(awk '/VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [ -n "$now" ]; do
        peak=$now
        used=$(stat -L -c '%h %i %b' "/proc/$1/fd/"* 2>/dev/null | awk '$1 == 0 && !seen[$2]++ { n += $3 } END { print n + 0 }')
        [ "$used" -gt "$disk" ] && disk=$used
        now=$(awk '/^[rw]char/ { printf "%s ", $2 }' "/proc/$1/io" 2>/dev/null) && [ -n "$now" ] && io=$now
        sleep 0.2
    done
    awk -v m="$peak" -v d="$disk" -v io="$io" 'BEGIN { split(io, v); printf "%.0f %.0f %.0f %.0f\n", m * 1024 / 1e6, d * 512 / 1e6, v[2] / 1e6, v[1] / 1e6 }'
}

for kind in ${KINDS:-exact fuzzy lines substring}; do
    for size in ${SIZES:-100 400}; do
        mkfifo "$T/pipe"
        "$B/bench/corpus_bench" web "$size" >"$T/pipe" &
        # shellcheck disable=SC2086
        ( TIMEFORMAT='%U %S'; time quern-dedup $kind --memory "${MEMORY:-1G}" -j 2 -q --stats "$T/stats" -o /dev/null <"$T/pipe" ) 2>"$T/cpu" &
        sub=$!
        until p=$(pgrep -P "$sub") || ! kill -0 "$sub" 2>/dev/null; do sleep 0.01; done
        read -r peak disk written all_read < <(watch "$p")
        wait "$sub" || { echo "scale: $kind of $size MB failed: $(cat "$T/cpu")" >&2; exit 1; }
        rm "$T/pipe"
        seconds=$(awk '{ print $1 + $2 }' "$T/cpu")
        row "scale-$kind-$size" "$(awk -v s="$seconds" -v b="$size" 'BEGIN { printf "%.2f", 1000 * s / b }')" "ms/MB" \
            "processor, two threads: $(cat "$T/cpu") s (user, system); peak memory $peak MB, disk $disk MB, written $written, read $all_read; of $(field docs_in "$T/stats") documents $(field docs_out "$T/stats") stay"
    done
done
