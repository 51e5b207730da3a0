#!/usr/bin/env bash
# What a version of quern leaves behind, small, for tests/cli/older.sh: a checkpoint in the middle of a run, indexes of
# documents, the work folder of half a plan, the state of a tokenizing that was killed.  Run with the bin folder of that
# version in PATH; writes to the folder named.
#   PATH=OLD/bin:$PATH tests/record/older.sh tests/data/older
# tests/data/older is of 0.1.0.
set -eu
out=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
for i in 1 2 3 4 5 6; do
    echo "{\"id\":\"d$i\",\"text\":\"the text number $((i % 4)) says what it says, and says it so that a shingle finds it among others\"}"
done >a.jsonl
sed 's/"d/"e/' a.jsonl >b.jsonl
quern dedup exact a.jsonl --index "$out/exact.index" -o /dev/null
quern dedup fuzzy a.jsonl --index "$out/fuzzy.index" -o /dev/null
printf 'input: [a.jsonl, b.jsonl]\nstages: [clean, dedup exact]\noutput: out.jsonl\n' >plan.yaml
quern curate plan.yaml --task 0 --tasks 2 --no-wait
rm -rf "$out/work"
cp -r out.jsonl.work "$out/work"
quern train --mock-data --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --vocab-size 61 \
    --micro-batch-size 1 --lr 0.01 --eval-iters 0 -j 1 --train-iters 4 --exit-interval 2 --save checkpoint
rm -rf "$out/checkpoint"
cp -r checkpoint "$out/checkpoint"
quern tokenizer train --vocab-size 300 -o tokenizer.json a.jsonl
for _ in $(seq 20000); do cat a.jsonl; done >big.jsonl
quern tokenize --tokenizer tokenizer.json --checkpoint 0 --output-prefix tokens -j 1 big.jsonl &
while [ ! -e .tokens.resume ]; do sleep .01; done
kill -9 $!
cp .tokens.resume "$out/tokens.resume"
