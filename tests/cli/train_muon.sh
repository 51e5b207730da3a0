#!/usr/bin/env bash
# quern train --optimizer muon where ranks share a model: matrices are taken whole, so each division trains as one process does.
# shellcheck disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
flags="--mock-data -j 1 --micro-batch-size 1 --global-batch-size 4 --lr 0.002 --train-iters 6 --eval-iters 0 --optimizer muon --device cpu
    --muon-nesterov --muon-extra-scale-factor 0.2 --muon-fp32-matmul-prec high --weight-decay 0.1"
# gpt: gated halves and heads that share keys; moe: experts in every other layer, and one for all tokens.
gpt="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --group-query-attention
    --num-query-groups 2 --swiglu --normalization RMSNorm"
moe="$gpt --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 16"
tcp='--distributed-backend tcp'

for name in gpt moe; do
    check "$name" quern-train $flags ${!name} --log-file $name.log
    check "$name learns" test "$(numbers $name.log | wc -l)" = 12
    on 2 $name --tensor-model-parallel-size 2
    on 4 $name --tensor-model-parallel-size 2 --sequence-parallel --data-parallel-sharding-strategy optim_grads_params
done
on 2 gpt --pipeline-model-parallel-size 2
on 2 gpt --context-parallel-size 2 --use-distributed-optimizer
on 2 moe --expert-model-parallel-size 2
on 4 moe --expert-model-parallel-size 2 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 1000

# The same bits however gradients are divided, in bf16 too.
divided gpt
divided gpt --bf16 --muon-fp32-matmul-prec medium

# What four ranks have saved two of another layout take up, and one.
rm -f log
check 'four save' plain 4 quern-train $flags $moe $tcp --expert-model-parallel-size 2 --data-parallel-sharding-strategy optim_grads_params \
    --save store --save-interval 3
check 'two go on' plain 2 quern-train $flags $moe $tcp --tensor-model-parallel-size 2 --load store --ckpt-step 3 --log-file log
check 'two go on: as if none had stopped' close <(tail -n 3 moe.log) log 6
rm -f log
check 'joined' quern-checkpoint join store --ckpt-step 3 --save whole
check 'one goes on' quern-train $flags $moe --load whole --ckpt-step 3 --log-file log
check 'one goes on: as if none had stopped' close <(tail -n 3 moe.log) log 6
finish
