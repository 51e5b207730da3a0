#!/usr/bin/env bash
# What the version before left behind (tests/record/older.sh) is read, or refused by its version.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
old=$ROOT/tests/data/older

cp -r "$old/checkpoint" checkpoint
check "an older checkpoint is whole" quern-checkpoint verify checkpoint
check "training goes on from it" quern-train --mock-data --num-layers 1 --hidden-size 16 --num-attention-heads 2 \
    --seq-length 8 --vocab-size 61 --micro-batch-size 1 --lr 0.01 --eval-iters 0 --log-interval 1 -j 1 --train-iters 4 \
    --load checkpoint --log-file log.jsonl
# Losses of steps 3 and 4 as the version that began the run gave them.
equal "with the losses of that version" \
    "$(grep -oE '"(step|loss)":[0-9.]+' log.jsonl | cut -d: -f2 | awk '{ printf "%.6g ", $1 }')" \
    "3 4.08314 4 3.9914 "

for i in 2 3 5 6 9; do
    echo "{\"id\":\"n$i\",\"text\":\"the text number $i says what it says, and says it so that a shingle finds it among others\"}"
done >new.jsonl
check "an older index of texts is read" quern-dedup exact --against "$old/exact.index" new.jsonl -o exact.out
equal "and what it has is dropped" "$(grep -o '"id":"[^"]*"' exact.out | tr '\n' ' ')" '"id":"n5" "id":"n6" "id":"n9" '
check "an older index of signatures is read" quern-dedup fuzzy --against "$old/fuzzy.index" new.jsonl -o fuzzy.out
equal "and what is like its documents is dropped" "$(grep -o '"id":"[^"]*"' fuzzy.out | tr '\n' ' ')" '"id":"n5" "id":"n6" "id":"n9" '

cp -r "$old/work" out.jsonl.work
for f in a b; do printf '{"id":"%s","text":"the text"}\n' $f >$f.jsonl; done
printf 'input: [a.jsonl, b.jsonl]\nstages: [clean, dedup exact]\noutput: out.jsonl\n' >plan.yaml
status "an older work folder is refused" 2 quern-curate plan.yaml
has "by its version" err "it has 'quern 0.1.0'"
has "with what to do" err "--again"
check "which begins afresh" quern-curate --again plan.yaml

cp "$old/tokens.resume" .tokens.resume
tokenize() { quern-tokenize -q --tokenizer "$ROOT/tests/data/tokenizer/gpt2.json" --output-prefix tokens "$@" a.jsonl; }
status "the state of an older tokenizing is refused" 2 tokenize
has "by its version" err "left by quern 0.1.0"
has "and by this one" err "this is quern $(sed -n 's/^#define QUERN_VERSION "\(.*\)"/\1/p' "$ROOT/base/version.h")"
has "with what to do" err "--again"
sed 's/^{/{"quern":"9.8.7",/' "$old/tokens.resume" >.tokens.resume
status "that of a later one too" 2 tokenize
has "by its version" err "left by quern 9.8.7"
check "and is left as it was" grep -q '^{"quern":"9.8.7"' .tokens.resume
check "--again begins afresh" tokenize --again
check "with whole tokens" quern-dataset verify tokens_text_document
finish
