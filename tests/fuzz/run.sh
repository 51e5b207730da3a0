#!/usr/bin/env bash
# run.sh FUZZER SECONDS: runs one fuzzer from its seeds (tests/fuzz/seeds/NAME, NAME as in
# NAME_fuzz) in a corpus that is thrown away.  A finding is a case that fails, and its input stays in
# NAME_fuzz-findings beside the fuzzer.
set -u
fuzzer=$(realpath "$1") seconds=$2 # whole paths: a fuzzer may go to a folder of its own
name=$(basename "$fuzzer" _fuzz)
seeds=$PWD/tests/fuzz/seeds/$name
found=$fuzzer-findings
log=$fuzzer.log
corpus=$(mktemp -d) || exit 1
trap 'rm -rf "$corpus"' EXIT
mkdir -p "$found"
[ -d "$seeds" ] || seeds=
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# A single allocation may be 3 GiB: zstd's largest window is 2 GiB, of which only what
# is used becomes resident.
if "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -malloc_limit_mb=3072 -timeout=10 \
    -print_final_stats=1 -artifact_prefix="$found/" "$corpus" ${seeds:+"$seeds"} >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "ok - $name: ${runs:-?} runs in $seconds s, nothing found"
    rmdir "$found" 2>/dev/null
    exit 0
fi
grep -E 'ERROR|SUMMARY|runtime error|Test unit written|ABORTING|^Base64' "$log" || tail -20 "$log"
grep -E '^ +#[0-9]+ .*\.(c|cpp|h):[0-9]+' "$log" | head -n 20 # where, in what has lines
echo "not ok - $name: input in $found/, log in $log"
exit 1
