#!/usr/bin/env bash
# Repair and personal data: in memory, whole runs, and ftfy and datatrove's PIIFormatter on
# some of the same documents in the same run.
. bench/lib.sh
data=$SHARED/data
if [ ! -r "$data/text/prose/books-dev.jsonl.zst" ]; then
    printf 'clean-repair\t-\t-\tleft out: no %s\n' "$data/text/prose"
    exit 0
fi
zstd -dcq "$data/text/prose/books-dev.jsonl.zst" 2>/dev/null | head -c 40000000 | sed '$d' >"$T/english.jsonl"
zstd -dcq "$data/text/prose/man-dev.jsonl.zst" 2>/dev/null | head -c 40000000 | sed '$d' >"$T/manuals.jsonl"
for _ in 1 2 3 4 5; do cat "$data/langid/udhr/dev.jsonl"; done >"$T/languages.jsonl"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    grep -v '"steps": \[\]' "$data/unicode/mojibake-dev.jsonl"
done | sed 's/"original":/"text":/' >"$T/mojibake.jsonl"
sets="english manuals languages mojibake"

program clean_bench
for s in $sets; do "$B/bench/clean_bench" "$s" "$T/$s.jsonl" || exit 1; done

if [ -z "${PEERS:-}" ]; then
    printf 'clean-ftfy\t-\t-\tleft out: PEERS is not set\n'
    exit 0
fi
cat >"$T/peer.py" <<'PY'
import json, sys, time
if sys.argv[1] == "ftfy":
    from datatrove.pipeline.formatters import FTFYFormatter as formatter
else:
    from datatrove.pipeline.formatters import PIIFormatter as formatter
f = formatter()
f.format("Loads what it needs.")
start = time.process_time()
for line in open(sys.argv[2], encoding="utf-8"):
    f.format(json.loads(line)["text"])
print(time.process_time() - start)
PY
only="--form any --no-controls --no-zero-width --no-soft-hyphens --no-spaces --no-newlines"
for s in $sets; do
    every=20
    [ "$s" = mojibake ] && every=10
    awk -v n=$every 'NR % n == 0' "$T/$s.jsonl" >"$T/few.jsonl"
    few=$(wc -c <"$T/few.jsonl")
    for _ in $(seq 20); do cat "$T/few.jsonl"; done >"$T/many.jsonl" # long enough to measure
    for kind in ftfy datatrove-pii; do
        options=
        [ $kind = datatrove-pii ] && options="--no-repair --unescape off --no-terminal-escapes --pii-preset datatrove"
        # shellcheck disable=SC2086
        ours=$(cpu quern-clean -q -j1 $only $options "$T/many.jsonl")
        theirs=$("$PEERS" "$T/peer.py" $kind "$T/few.jsonl") ||
            { printf 'clean-%s-%s\t-\t-\tleft out: it does not run\n' $kind "$s"; continue; }
        awk -v n="$few" -v k=$kind -v s="$s" -v a="$ours" -v b="$theirs" 'BEGIN {
            printf "clean-%s-%s\t%.1f\tMB/s\ta core; some of the documents\n", k, s, n / 1e6 / b
            printf "clean-ratio-%s-%s\t%.0f\tx\tits CPU time over that of a whole run of ours, same documents\n", k, s, 20 * b / a
        }'
    done
done
