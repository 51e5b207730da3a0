#!/usr/bin/env bash
# quern train --keep-last, --keep-every: which checkpoints stay, whoever is killed when, and with several ranks.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
flags="--mock-data --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --vocab-size 61 --micro-batch-size 2
    --lr 0.01 --eval-iters 0 -j 1 --device cpu"
# steps DIR: of the checkpoints there.
steps() { find "$1" -name 'iter_*' | sed 's/.*iter_0*//' | sort -n | paste -sd' '; }

check 'all of them' quern-train $flags --train-iters 6 --save all --save-interval 1
equal 'all stay by default' "$(steps all)" '1 2 3 4 5 6'
check 'the last two' quern-train $flags --train-iters 6 --save two --save-interval 1 --keep-last 2
equal 'the newest two stay' "$(steps two)" '5 6'
check 'written beside training' quern-train $flags --train-iters 6 --save two --save-interval 1 --keep-last 2 --async-save
check 'one, and every third' quern-train $flags --train-iters 8 --save some --save-interval 1 --keep-last 1 --keep-every 3
equal 'the newest and every third stay' "$(steps some)" '3 6 8'
check 'they are whole' quern-checkpoint verify some
equal 'nothing is left over' "$(find two some -name '.iter*')" ''
same 'the newest is that of a run that keeps all' all/iter_0000006/model.safetensors two/iter_0000006/model.safetensors
check 'an older step is gone on from' quern-train $flags --train-iters 5 --load all --ckpt-step 4 --save all --finetune --keep-last 1
check 'another run in the folder' quern-train $flags --train-iters 4 --load some --ckpt-step 3 --save other --keep-last 1
status '--keep-every alone' 2 quern-train $flags --train-iters 1 --save x --keep-every 3
has '--keep-every alone: what it needs' err '--keep-every needs --keep-last'
status '--keep-last without --save' 2 quern-train $flags --train-iters 1 --keep-last 3

check 'two ranks' plain 2 quern-train $flags --global-batch-size 4 --train-iters 5 --save ranks --save-interval 1 --keep-last 2 \
    --distributed-backend tcp --use-distributed-optimizer
equal 'two ranks: the newest two stay' "$(steps ranks)" '4 5'
check 'two ranks: they are whole' quern-checkpoint verify ranks

# What a kill between the new one's name and the old one's end leaves is cleared as the run goes on, before it saves.
cp -r all/iter_0000005 some/iter_0000007
check 'goes on beside one too many' quern-train $flags --train-iters 8 --save some --save-interval 1 --keep-last 1 --keep-every 3
equal 'it is gone, and nothing was saved' "$(steps some)" '3 6 8'

# One that cannot be removed is told; the run goes on, and what it saves is whole.
check 'an old one' quern-train $flags --train-iters 1 --save held
if chattr +i held/iter_0000001 2>/dev/null; then
    check 'an old one that cannot be removed' quern-train $flags --train-iters 4 --save held --save-interval 2 --keep-last 1
    has 'is named' err "--keep-last: cannot rename 'held/iter_0000001'"
    chattr -i held/iter_0000001
else
    ok 'an old one that cannot be removed (left out: no immutable files here)'
fi

# Killed at any moment, also between the new one's name and the old one's end.
torn=0 most=0 kills=${KILLS:-6}
lines() { cat log.jsonl 2>/dev/null | wc -l; }
for i in $(seq "$kills"); do
    want=$(($(lines) + 1 + i % 3))
    quern-train $flags --train-iters 100000 --save kill --save-interval 1 --keep-last 1 --log-file log.jsonl >out 2>err &
    pid=$!
    while [ "$(lines)" -lt "$want" ] && kill -0 $pid 2>kill.err; do sleep 0.01; done
    sleep "0.00$((i * 7 % 9 + 1))"
    kill -9 $pid 2>kill.err
    wait $pid 2>kill.err
    n=$(find kill -name 'iter_*' | wc -l)
    [ "$n" -gt "$most" ] && most=$n
    quern-checkpoint verify kill >out 2>err || torn=$((torn + 1))
done 2>kill.err
equal "$kills kills: what is there is whole each time" "$torn" 0
if [ "$most" -ge 1 ] && [ "$most" -le 2 ]; then ok "$kills kills: one checkpoint, or two"; else bad "$kills kills: one checkpoint, or two" "$most"; fi
finish
