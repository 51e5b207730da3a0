#!/usr/bin/env bash
# quern train --use-mup: a run goes on from its checkpoints and is divided as any; what it is made of is in them.
# shellcheck disable=SC2034,SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 1 --global-batch-size 4 --lr 0.01 --hidden-dropout 0 --train-iters 6"
mup='--use-mup --mup-base-hidden-size 8 --mup-base-head-dim 4'

alone mup 3 6
has 'a checkpoint knows it' mup/iter_0000006/metadata.json '"use_mup":true,"mup_base_hidden_size":8'
has 'and its multipliers' mup/iter_0000006/metadata.json '"logits_multiplier":0.25'
status 'goes on without' 2 quern-train $flags --load mup
has 'is named' err "its --logits-multiplier is 0.25, not 1"
rm -f log
check 'its multipliers by themselves are another run' quern-train $flags --logits-multiplier 0.25 --softmax-scale 0.125 --log-file log
check 'with other numbers' test "$(numbers log)" != "$(numbers mup.log)"
for how in '--tensor-model-parallel-size 2' '--pipeline-model-parallel-size 2' '--data-parallel-sharding-strategy optim_grads_params'; do
    on 2 mup $how
done
check 'evaluation' quern-eval --load mup --data-path data --split 1,0,0 --part train --device cpu
status 'a base without it' 2 quern-train $flags --mup-base-hidden-size 8
has 'is said' err '--mup-base-hidden-size needs --use-mup'
finish
