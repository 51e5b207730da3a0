#!/usr/bin/env bash
# Merging, verifying and indexing datasets.  DOCUMENTS=N [1000000], of 500 tokens on average; D=folder [a RAM disk].
TMPDIR=${D:-/dev/shm} . bench/lib.sh
set -e
D=$T
N=${DOCUMENTS:-1000000}
program dataset_bench
seconds() { # COMMAND...: of wall clock, the best of three
    for _ in 1 2 3; do
        local start=$EPOCHREALTIME
        "$@" >/dev/null 2>&1
        perl -e 'printf "%.3f\n", $ARGV[1] - $ARGV[0]' "$start" "$EPOCHREALTIME"
    done | sort -n | head -1
}
rate() { perl -e 'printf "%s\t%.2f\tGB/s\t%s\n", $ARGV[0], $ARGV[1] / $ARGV[2] / 1e9, $ARGV[3]' "$@"; }
"$B/bench/dataset_bench" make "$D/one" "$N" 500
head -c "$(stat -c %s "$D/one.bin")" /dev/urandom >"$D/full" && mv "$D/full" "$D/one.bin"
bytes=$(($(stat -c %s "$D/one.bin") + $(stat -c %s "$D/one.idx")))
t=$(seconds quern dataset merge -o "$D/two" "$D/one" "$D/one")
rate "merge, quern" $((2 * bytes)) "$t" "of output"
[ -z "$PEERS" ] || rate "merge, Megatron" $((2 * bytes)) "$("$PEERS" bench/dataset_peers.py merge "$D/other" "$D/one" "$D/one" | tail -1)" "the same bytes: $(cmp "$D/two.bin" "$D/other.bin" && cmp "$D/two.idx" "$D/other.idx" && echo yes)"
rm -f "$D"/other.*
for j in 1 2; do rate "verify, quern, -j$j" $((2 * bytes)) "$(seconds quern dataset verify -j$j "$D/two")" "checksums"; done
rate "verify with ids, quern, -j2" $((2 * bytes)) "$(seconds quern dataset verify -j2 --vocab-size 65536 "$D/two")" ""
printf 'info, quern\t%s\ts\t%s documents\n' "$(seconds quern dataset info "$D/two")" $((2 * N))
rm -f "$D"/two.* "$D"/one.bin
"$B/bench/dataset_bench" make "$D/index" $((10 * N)) 500
for j in 1 2; do
    printf 'index, quern, %s threads\t%s\n' $j "$("$B/bench/dataset_bench" index "$D/index" 4096 1 $j "$D/cache$j")"
done
if [ -n "$PEERS" ]; then
    printf 'index, Megatron\t%s\ts\t%s documents, the same arrays: ' "$("$PEERS" bench/dataset_peers.py index "$D/index" 4096 "$D/cache" 2>/dev/null | tail -1)" $((10 * N))
    for f in document sample shuffle; do cmp "$D"/cache/*-"${f}_index.npy" "$D"/cache2/*-"${f}_index.npy" || echo no; done && echo yes
fi
