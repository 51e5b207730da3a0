#!/usr/bin/env bash
# Deduplication as the collection grows: a synthetic crawl (bench/corpus_bench.c) of each of SIZES, in MB, by a pipe, in
# --memory MEMORY with two threads.  Processor seconds a MB and the exponent by which they grow, peak memory, and peak
# disk in TMPDIR (2.3 times the size for fuzzy, for KINDS with substring up to 6 times).
#   SIZES="1000 5000 15000" KINDS="exact fuzzy lines" TMPDIR=/disk make bench BENCH=scale
#   SIZES="200 800 5000" KINDS=substring MEMORY=1G make bench BENCH=scale
. bench/lib.sh
program corpus_bench

# watch PID: until it ends, the most memory and the most bytes of nameless files that it has, in MB, on one line.
watch() {
    local peak=0 disk=0 now used
    while now=$(awk '/VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [ -n "$now" ]; do
        peak=$now
        used=$(stat -L -c '%h %i %b' "/proc/$1/fd/"* 2>/dev/null | awk '$1 == 0 && !seen[$2]++ { n += $3 } END { print n + 0 }')
        [ "$used" -gt "$disk" ] && disk=$used
        sleep 0.2
    done
    awk -v m="$peak" -v d="$disk" 'BEGIN { printf "%.0f %.0f\n", m * 1024 / 1e6, d * 512 / 1e6 }'
}

for kind in ${KINDS:-exact fuzzy lines substring}; do
    first='' first_size=''
    for size in ${SIZES:-100 400}; do
        mkfifo "$T/pipe"
        "$B/bench/corpus_bench" web "$size" >"$T/pipe" &
        # shellcheck disable=SC2086
        ( TIMEFORMAT='%U %S'; time quern-dedup $kind --memory "${MEMORY:-1G}" -j 2 -q --stats "$T/stats" -o /dev/null <"$T/pipe" ) 2>"$T/cpu" &
        sub=$!
        until p=$(pgrep -P "$sub") && [ -n "$p" ]; do sleep 0.01; done
        read -r peak disk < <(watch "$p")
        wait "$sub" || { echo "scale: $kind of $size MB failed: $(cat "$T/cpu")" >&2; exit 1; }
        rm "$T/pipe"
        seconds=$(awk '{ print $1 + $2 }' "$T/cpu")
        row "scale-$kind-$size" "$(awk -v s="$seconds" -v b="$size" 'BEGIN { printf "%.2f", 1000 * s / b }')" "ms/MB" \
            "processor, two threads: $(cat "$T/cpu") s (user, system); peak memory $peak MB, disk $disk MB; of $(field docs_in "$T/stats") documents $(field docs_out "$T/stats") stay"
    done
done
