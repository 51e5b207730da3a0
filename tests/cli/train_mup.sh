#!/usr/bin/env bash
# quern train --use-mup: a run goes on from its checkpoints and is divided as any; what it is made of is in them.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
data
flags="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61 --micro-batch-size 1
    --global-batch-size 4 --lr 0.01 --eval-iters 0 -j 1 --device cpu --train-iters 6 --attention-dropout 0 --hidden-dropout 0"
mup='--use-mup --mup-base-hidden-size 8 --mup-base-head-dim 4'
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }

check 'a run' quern-train $flags $mup --save store --save-interval 3 --log-file whole.log
has 'a checkpoint knows it' store/iter_0000006/metadata.json '"use_mup":true,"mup_base_hidden_size":8'
has 'and its multipliers' store/iter_0000006/metadata.json '"logits_multiplier":0.25'
check 'goes on' quern-train $flags $mup --load store --ckpt-step 3 --log-file log
equal 'goes on: the same bits' "$(numbers log)" "$(tail -n 6 <(numbers whole.log))"
status 'goes on without' 2 quern-train $flags --load store
has 'is named' err "its --logits-multiplier is 0.25, not 1"
rm -f log
check 'its multipliers by themselves are another run' quern-train $flags --logits-multiplier 0.25 --softmax-scale 0.125 --log-file log
check 'with other numbers' test "$(numbers log)" != "$(numbers whole.log)"
for how in '--tensor-model-parallel-size 2' '--pipeline-model-parallel-size 2' '--data-parallel-sharding-strategy optim_grads_params'; do
    rm -f log
    check "two ranks: $how" plain 2 quern-train $flags $mup --distributed-backend tcp $how --log-file log
    check "two ranks: $how: the same training" close whole.log log 12
done
check 'evaluation' quern-eval --load store --data-path data --split 1,0,0 --part train --device cpu
status 'a base without it' 2 quern-train $flags --mup-base-hidden-size 8
has 'is said' err '--mup-base-hidden-size needs --use-mup'
finish
