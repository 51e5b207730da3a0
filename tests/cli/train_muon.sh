#!/usr/bin/env bash
# quern train --optimizer muon where ranks share a model: matrices are taken whole, so each division trains as one process does.
# shellcheck disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
flags="--mock-data -j 1 --micro-batch-size 1 --global-batch-size 4 --lr 0.002 --train-iters 6 --eval-iters 0 --optimizer muon --device cpu
    --muon-nesterov --muon-extra-scale-factor 0.2 --muon-fp32-matmul-prec high --weight-decay 0.1"
# gpt: gated halves and heads that share keys; moe: experts in every other layer, and one for all tokens.
gpt="$flags --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --group-query-attention
    --num-query-groups 2 --swiglu --normalization RMSNorm"
moe="$gpt --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 16"
tcp='--distributed-backend tcp'
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }

# alike NAME N ARGS...: N ranks with ARGS train as one process.
alike() {
    local name=$1 n=$2
    shift 2
    rm -f log
    check "$name, $n ranks: $*" plain $n quern-train ${!name} $tcp "$@" --log-file log
    check "$name, $n ranks: $*: the same training" close $name.log log 12
}

for name in gpt moe; do
    check "$name" quern-train ${!name} --log-file $name.log
    check "$name learns" test "$(numbers $name.log | wc -l)" = 12
    alike $name 2 --tensor-model-parallel-size 2
    alike $name 4 --tensor-model-parallel-size 2 --sequence-parallel --data-parallel-sharding-strategy optim_grads_params
done
alike gpt 2 --pipeline-model-parallel-size 2
alike gpt 2 --context-parallel-size 2 --use-distributed-optimizer
alike moe 2 --expert-model-parallel-size 2
alike moe 4 --expert-model-parallel-size 2 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 1000

# Of the same gradients each division of them over data-parallel ranks gives the same bits, in bf16 too.
for how in '' '--bf16 --muon-fp32-matmul-prec medium'; do
    rm -f one.log
    check "deterministic${how:+, $how}" quern-train $gpt --deterministic $how --log-file one.log
    for ranks in '2 no_shard' '2 optim' '4 optim_grads_params'; do
        rm -f log
        check "deterministic, $ranks${how:+, $how}" plain ${ranks% *} quern-train $gpt $tcp --deterministic $how --log-file log \
            --data-parallel-sharding-strategy ${ranks#* }
        equal "deterministic, $ranks${how:+, $how}: the same bits" "$(numbers log)" "$(numbers one.log)"
    done
done

# What four ranks have saved two of another layout take up, and one.
rm -f log
check 'four save' plain 4 quern-train $moe $tcp --expert-model-parallel-size 2 --data-parallel-sharding-strategy optim_grads_params \
    --save store --save-interval 3
check 'two go on' plain 2 quern-train $moe $tcp --tensor-model-parallel-size 2 --load store --ckpt-step 3 --log-file log
check 'two go on: as if none had stopped' close <(tail -n 3 moe.log) log 6
rm -f log
check 'one goes on' quern-train $moe --load store --ckpt-step 3 --log-file log
check 'one goes on: as if none had stopped' close <(tail -n 3 moe.log) log 6
finish
