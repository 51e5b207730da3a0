#!/usr/bin/env bash
# What quern train tells a person, a program, and nobody: lines of steps, progress, -q.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
tiny="--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --vocab-size 64 --micro-batch-size 4 --lr 0.01
    --eval-iters 2 --eval-interval 2 --split 80,10,10 -j 1 --device cpu --data-path data"

status 'a run' 0 quern-train $tiny --train-iters 4 --log-interval 1
line=$(grep '^step 2/4 ' out)
for what in '  loss ' ' tokens  ' ' ms  ' ' tokens/s' ' left'; do
    case $line in *"$what"*) ok "a step's line has$what" ;; *) bad "a step's line has$what" "$line" ;; esac
done
equal 'tokens are those seen so far' "$(sed -nE 's/^step 3.*  ([0-9]+) tokens  .*/\1/p' out)" $((3 * 4 * 16))
equal 'the last step has none left' "$(grep -c '^step 4/4.*left' out)" 0

status 'quiet' 0 quern-train $tiny --train-iters 4 --log-interval 1 -q --save q --log-file q.jsonl
equal 'quiet: nothing on standard output' "$(cat out)" ''
equal 'quiet: nothing on standard error' "$(cat err)" ''
equal 'quiet: the log is there' "$(wc -l <q.jsonl)" 5
status 'quiet, and going on' 0 quern-train $tiny --train-iters 6 -q --save q
equal 'quiet, and going on: nothing' "$(cat out err)" ''
status 'quiet, and wrong' 3 quern-train $tiny --train-iters 4 -q --save /dev/null/x
equal 'quiet, and wrong: it says why' "$(grep -c "cannot make the folder '/dev/null/x'" err)" 1

status 'progress for a program' 0 quern-train $tiny --train-iters 4 --progress json
last=$(grep '^{' err | tail -n 1)
has 'is JSON lines of this tool' <(echo "$last") '"tool":"quern-train"'
has 'in tokens of all' <(echo "$last") "\"unit\":\"tokens\",\"done\":$((4 * 4 * 16)),\"total\":$((4 * 4 * 16)),\"share\":1,"
has 'the last evaluation is told' <(echo "$last") '"phase":"evaluating, 2 of 2 micro-batches"'

# What no step can have reached is not told: a peak measured beside others may be less than what training does.
status 'an mfu' 0 quern-train $tiny --train-iters 20 --log-file mfu.jsonl
equal 'no share of the peak is above 1' "$(sed -nE 's/.*"mfu":([0-9.e+-]+).*/\1/p' mfu.jsonl | awk '$1 > 1' | wc -l)" 0
finish
