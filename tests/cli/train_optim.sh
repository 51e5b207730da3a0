#!/usr/bin/env bash
# quern train --optimizer: each kind of optimizer trains, sharded or not, on the host or not, and goes on from its checkpoints.
# shellcheck disable=SC2034,SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 4 --lr 0.01 --hidden-dropout 0 --train-iters 8 --weight-decay 0.1"
adam='--optimizer adam'
lion='--optimizer lion'
sgd='--optimizer sgd'
muon='--optimizer muon --muon-extra-scale-factor 0.2 --muon-nesterov --muon-fp32-matmul-prec high'
adafactor='--optimizer adafactor'

for kind in adam lion sgd muon adafactor; do
    alone $kind 4 8
    check "$kind learns" learns $kind.log
    if [ $kind != adafactor ]; then
        rm -f log
        check "$kind, state on the host" quern-train $flags ${!kind} --optimizer-cpu-offload --log-file log
        equal "$kind, state on the host: the same bits" "$(numbers log)" "$(numbers $kind.log)"
    fi
    for strategy in optim optim_grads_params; do
        on 2 $kind --data-parallel-sharding-strategy $strategy
    done
    rm -f log
    check "$kind, bf16 weights alone" quern-train $flags ${!kind} --bf16 --main-params-dtype bf16 --log-file log
done
check 'adam and lion differ' test "$(numbers adam.log)" != "$(numbers lion.log)"
equal 'lion keeps less' "$(quern-checkpoint info lion | grep -c 'no optimizer state')" 0
status 'another kind than the checkpoint has' 2 quern-train $flags --optimizer sgd --load lion
has 'is named' err 'no state of this --optimizer there (momentum_buffer): --no-load-optim begins without'
check 'its weights alone' quern-train $flags --optimizer sgd --load lion --no-load-optim

# Without the moments the first update is that of step 1: by the rate in each element, whatever the step.  What follows goes on from
# there, also after a resume.
anew="$flags --lr-decay-style constant --train-iters 6 --load adam --ckpt-step 4"
for kind in adam adafactor; do
    rm -f log anew.log whole.log
    check "$kind anew at step 4" quern-train $anew ${!kind} --no-load-optim --log-file whole.log
    rm -rf anew
    check "$kind anew, saved" quern-train $anew ${!kind} --no-load-optim --exit-interval 5 --save anew --log-file anew.log
    has 'of one update' anew/iter_0000005/metadata.json '"updates":1,'
    check "$kind anew, gone on with" quern-train ${anew% --ckpt-step 4} ${!kind} --save anew --log-file anew.log
    equal "$kind anew: the same bits" "$(numbers anew.log)" "$(numbers whole.log)"
done

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
check 'frozen: a smaller norm' test "$(sed -n 2p frozen.numbers)" != "$(numbers adam.log | sed -n 2p)"
check 'frozen, two ranks' plain 2 quern-train $flags --freeze 'decoder.layers.0.*' --freeze 'embedding.*' --distributed-backend tcp \
    --data-parallel-sharding-strategy optim_grads_params --log-file two.log
numbers two.log >two.numbers
check 'frozen, two ranks: as one process' close two.log <(cat frozen.numbers) 16
status 'a name that there is not' 2 quern-train $flags --freeze 'decoder.layers.7.*'
has 'is said' err "--freeze: no parameter's name matches 'decoder.layers.7.*'"
status 'a kind that there is not' 2 quern-train $flags --optimizer adagrad
finish
