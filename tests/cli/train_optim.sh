#!/usr/bin/env bash
# quern train --optimizer: each kind of optimizer trains, sharded or not, on the host or not, and goes on from its checkpoints.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
data
flags="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61 --micro-batch-size 2
    --global-batch-size 4 --lr 0.01 --attention-dropout 0 --hidden-dropout 0 --eval-iters 0 -j 1 --device cpu --train-iters 8 --weight-decay 0.1"
# numbers LOG: the losses and norms.
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }

for kind in adam lion sgd muon; do
    rm -f log
    extra=
    [ $kind != muon ] || extra='--muon-extra-scale-factor 0.2 --muon-nesterov --muon-fp32-matmul-prec high'
    check "$kind" quern-train $flags --optimizer $kind $extra --save $kind --save-interval 4 --log-file log
    cp log $kind.log
    numbers log >$kind.numbers
    check "$kind learns" awk -F: '/"loss"/ { if (!n++) first = $2; last = $2 } END { exit !(n == 8 && last < first) }' $kind.numbers
    rm -f log
    check "$kind, resumed" quern-train $flags --optimizer $kind $extra --load $kind --ckpt-step 4 --log-file log
    equal "$kind, resumed: the same bits" "$(numbers log)" "$(tail -n 8 $kind.numbers)"
    rm -f log
    [ $kind = muon ] || check "$kind, state on the host" quern-train $flags --optimizer $kind $extra --optimizer-cpu-offload --log-file log
    [ $kind = muon ] || equal "$kind, state on the host: the same bits" "$(numbers log)" "$(cat $kind.numbers)"
    for strategy in optim optim_grads_params; do
        rm -f log
        check "$kind, $strategy" plain 2 quern-train $flags --optimizer $kind $extra --distributed-backend tcp --log-file log \
            --data-parallel-sharding-strategy $strategy
        check "$kind, $strategy: as one process" close $kind.log log 16
    done
    rm -f log
    check "$kind, bf16 weights alone" quern-train $flags --optimizer $kind $extra --bf16 --main-params-dtype bf16 --log-file log
done
check 'adam and lion differ' test "$(cat adam.numbers)" != "$(cat lion.numbers)"
equal 'lion keeps less' "$(quern-checkpoint info lion | grep -c 'no optimizer state')" 0
status 'another kind than the checkpoint has' 2 quern-train $flags --optimizer sgd --load lion
has 'is named' err 'no state of this --optimizer there (momentum_buffer): --no-load-optim begins without'
check 'its weights alone' quern-train $flags --optimizer sgd --load lion --no-load-optim

# Frozen parameters stay as they are, and are in no norm.
hash_of() { grep -oE "\"$2\":\"[0-9a-f]{16}\"" "$1/metadata.json" | head -n 1; }
first=decoder.layers.0.mlp.linear_fc1.weight second=decoder.layers.1.mlp.linear_fc1.weight
for how in '' --optimizer-cpu-offload '--bf16 --main-params-dtype bf16'; do
    rm -rf frozen log
    check "frozen, ${how:-plain}" quern-train $flags --freeze 'decoder.layers.0.*' --freeze 'embedding.*' --save frozen --save-interval 4 \
        --log-file log $how
    [ -n "$how" ] || numbers log >frozen.numbers
    equal "frozen, ${how:-plain}: they stay" "$(hash_of frozen/iter_0000004 $first)" "$(hash_of frozen/iter_0000008 $first)"
    check "frozen, ${how:-plain}: the others do not" \
        test "$(hash_of frozen/iter_0000004 $second)" != "$(hash_of frozen/iter_0000008 $second)"
done
check 'frozen: a smaller norm' test "$(sed -n 2p frozen.numbers)" != "$(sed -n 2p adam.numbers)"
check 'frozen, two ranks' plain 2 quern-train $flags --freeze 'decoder.layers.0.*' --freeze 'embedding.*' --distributed-backend tcp \
    --data-parallel-sharding-strategy optim_grads_params --log-file two.log
numbers two.log >two.numbers
check 'frozen, two ranks: as one process' close two.log <(cat frozen.numbers) 16
status 'a name that there is not' 2 quern-train $flags --freeze 'decoder.layers.7.*'
has 'is said' err "--freeze: no parameter's name matches 'decoder.layers.7.*'"
status 'a kind that there is not' 2 quern-train $flags --optimizer adagrad
finish
