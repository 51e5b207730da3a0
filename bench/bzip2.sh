#!/usr/bin/env bash
# Decompressing bzip2, one stream and many, beside bzip2, lbzip2 and pbzip2 (Debian's packages)
# on the same file in turn: MB a second of what comes out, by the clock, median of three.
# BZ2_TEXT: what is compressed; by default the first of the prose in $SHARED, eight times over.
. bench/lib.sh
prose=$SHARED/data/text/prose/docs-dev.jsonl.zst
cpus=$(nproc)
if [ -n "${BZ2_TEXT:-}" ]; then
    cp "$BZ2_TEXT" "$T/x"
elif [ -r "$prose" ]; then
    zstd -dqc "$prose" >"$T/one"
    for _ in 1 2 3 4 5 6 7 8; do cat "$T/one"; done | head -c 40000000 >"$T/x"
    rm "$T/one"
else
    printf 'bzip2\t-\t-\tleft out: no %s; set BZ2_TEXT\n' "$prose"
    exit 0
fi
command -v bzip2 >/dev/null || { printf 'bzip2\t-\t-\tleft out: no bzip2\n'; exit 0; }
program bzip2_bench
bytes=$(stat -c %s "$T/x")
bzip2 -c "$T/x" >"$T/one.bz2"
split -b 1000000 -a 4 "$T/x" "$T/part."
for p in "$T"/part.*; do bzip2 -c "$p"; done >"$T/many.bz2"
rm "$T"/part.* "$T/x"

# clock COMMAND...: seconds.
clock() { { TIMEFORMAT=%R; time "$@" >/dev/null 2>&1; } 2>&1; }
for f in one many; do
    for _ in 1 2 3; do
        printf 'quern, 1 thread\t%s\n' "$(clock "$B/bench/bzip2_bench" "$T/$f.bz2" 1)"
        printf 'quern, %d threads\t%s\n' "$cpus" "$(clock "$B/bench/bzip2_bench" "$T/$f.bz2" "$cpus")"
        for peer in bzip2 lbzip2 pbzip2; do
            command -v $peer >/dev/null || continue
            printf '%s\t%s\n' $peer "$(clock $peer -dc "$T/$f.bz2")"
        done
    done >"$T/times"
    cut -f 1 "$T/times" | awk '!seen[$0]++' | while read -r who; do
        awk -F '\t' -v w="$who" '$1 == w { print $2 }' "$T/times" | sort -g | sed -n 2p |
            awk -v w="$who" -v f=$f -v b="$bytes" '{ printf "bzip2 %s: %s\t%.0f\tMB/s\t%s of 900 kB blocks\n", f, w, b / 1e6 / $1,
                f == "one" ? "one stream" : "streams of 1 MB" }'
    done
done
for peer in lbzip2 pbzip2; do
    command -v $peer >/dev/null || printf '%s\t-\t-\tleft out: apt-get install %s\n' $peer $peer
done
