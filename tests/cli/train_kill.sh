#!/usr/bin/env bash
# quern train killed at random moments, also while it saves: what it goes on from is whole, and the losses are those
# of a run that was never killed, KILLS=4 times.  TensorBoard's files; a save that fails on the way.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive

flags="--mock-data --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 500
    --micro-batch-size 2 --rampup-batch-size 2,2,40 --global-batch-size 4 --train-samples 600 --lr 0.01 --eval-iters 0
    --spike-factor 1.2 --spike-window 8 --max-bad-steps 100 -j 1"
# shellcheck disable=SC2086
train() { quern-train $flags "$@"; }
losses() { sed -E 's/,"tokens_per_s.*//' "$1" | sort -u -t: -k2n; }

check "a run without a stop" train --log-file whole.jsonl --tensorboard-dir board
n=$(wc -l <whole.jsonl)
has "its batches" whole.jsonl '"batch":2,'
torn=0 kills=${KILLS:-4}
lines() { cat parts.jsonl 2>/dev/null | wc -l; }
for i in $(seq "$kills"); do
    want=$(($(lines) + 1 + i % 3)) # nearly all the time a save is under way
    # shellcheck disable=SC2086
    quern-train $flags --save store --save-interval 1 --async-save --log-file parts.jsonl >out 2>err &
    pid=$!
    while [ "$(lines)" -lt "$want" ] && kill -0 $pid 2>kill.err; do sleep 0.002; done
    sleep "0.0$((i * 7 % 30 + 10))"
    kill -9 $pid 2>kill.err
    wait $pid 2>kill.err
    grep -q 'checksum\|cut short\|none of its' err && torn=$((torn + 1))
done 2>kill.err
equal "$kills kills: nothing torn" "$torn" 0
check "to the end" train --save store --save-interval 1 --async-save --log-file parts.jsonl
equal "each step's loss is the same every time" "$(losses parts.jsonl | wc -l)" "$n"
losses whole.jsonl >a
losses parts.jsonl >b
same "the losses of a run without a stop" a b
check "every checkpoint is whole" quern-checkpoint verify store
rm -rf store

# A disk that is full while a save is under way: training goes on, and the earlier checkpoint stands.
check "some steps" train --save store --exit-interval 20
(
    ulimit -f 100
    # shellcheck disable=SC2086
    quern-train $flags --save store --save-interval 5 --async-save --exit-interval 40 >out 2>err
)
equal "no room: exit status" $? 3
has "no room: training went on" err "training goes on"
check "no room: what was there is whole" quern-checkpoint verify store --ckpt-step 20

# An event file begins with the version, and has every step.
equal "event file: version" "$(head -c 36 board/events.* | tail -c 13)" "brain.Event:2"
equal "event file: steps" "$(grep -ao 'grad-norm' board/events.* | wc -l)" "$n"
finish
