#!/usr/bin/env bash
# A whole chain as a pipe and as a plan, wall clock and CPU time, on the same input.
set -u
data=$SHARED/data/text/prose
if [ ! -r "$data/books-dev.jsonl.zst" ]; then
    printf 'curate\t-\t-\tleft out: no %s\n' "$data"
    exit 0
fi
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
cd "$T" || exit 1
for f in books man docs; do zstd -qdc "$data/$f-dev.jsonl.zst"; done >in.jsonl
bytes=$(wc -c <in.jsonl)
cat >plan.yaml <<END
input: in.jsonl
stages:
  - clean
  - langid: {keep: "en:0.65"}
  - filter: {preset: [gopher-quality, gopher-repetition, c4, fineweb]}
  - dedup exact
  - dedup fuzzy
output: out.jsonl
END
pipe() {
    quern clean -q in.jsonl | quern langid -q --keep en:0.65 |
        quern filter -q --preset gopher-quality,gopher-repetition,c4,fineweb |
        quern dedup exact -q | quern dedup fuzzy -q -o pipe.jsonl
}
plan() { quern curate -q --again plan.yaml; }
TIMEFORMAT='%R %U %S'
for _ in 1 2 3; do
    { time pipe; } 2>>pipe.times
    { time plan; } 2>>plan.times
done
cmp pipe.jsonl out.jsonl || exit 1
median() { awk -v c="$2" '{ print c == 1 ? $1 : $2 + $3 }' "$1" | sort -g | sed -n 2p; }
for how in pipe plan; do
    wall=$(median $how.times 1) cpu=$(median $how.times 2)
    awk -v h=$how -v b="$bytes" -v w="$wall" -v c="$cpu" 'BEGIN {
        printf "curate-%s\t%.1f\tMB/s\twall clock; %.2f s, %.2f s of CPU\n", h, b / 1e6 / w, w, c }'
done
awk -v a="$(median pipe.times 1)" -v b="$(median plan.times 1)" -v c="$(median pipe.times 2)" -v d="$(median plan.times 2)" 'BEGIN {
    printf "curate-plan-to-pipe\t%.2f\ttimes as fast\t%.2f times by CPU time; same bytes\n", a / b, c / d }'
