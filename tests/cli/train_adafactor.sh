#!/usr/bin/env bash
# quern train --optimizer adafactor where ranks share a model: all tensors are taken whole, so each division trains as one process
# does, and what is kept of rows and columns goes from any layout to any other.
# shellcheck disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
flags="--mock-data -j 1 --micro-batch-size 1 --global-batch-size 4 --lr 0.05 --train-iters 6 --eval-iters 0 --optimizer adafactor --device cpu
    --weight-decay 0.1"
# gpt: gated halves and heads that share keys; moe: experts in every other layer, and one for all tokens.
gpt="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --group-query-attention
    --num-query-groups 2 --swiglu --add-qkv-bias --normalization RMSNorm"
moe="$gpt --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 16"
tcp='--distributed-backend tcp'

for name in gpt moe; do
    check "$name" quern-train $flags ${!name} --log-file $name.log --save $name --save-interval 3
    check "$name trains" test "$(numbers $name.log | wc -l)" = 12
    on 4 $name --tensor-model-parallel-size 2 --sequence-parallel --data-parallel-sharding-strategy optim_grads_params
done
on 2 gpt --tensor-model-parallel-size 2
on 2 gpt --pipeline-model-parallel-size 2
on 2 gpt --context-parallel-size 2 --use-distributed-optimizer
on 4 moe --expert-model-parallel-size 2 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 1000

# The same bits however gradients are divided, in bf16 too.
divided gpt
divided gpt --bf16 --main-params-dtype bf16

# What is kept is a number a row and one a column, of vectors one an element; it goes from one layout to any other.
check 'info' quern-checkpoint info moe --tensors
equal 'rows and columns' "$(grep -cE '^ *(row|col)_var\.decoder\.layers\.0\.mlp\.router\.weight ' out)" 2
equal 'vectors' "$(grep -cE '^ *variance\.decoder\.final_layernorm\.weight ' out)" 1
equal 'nothing else' "$(grep -cE '^ *(exp_avg|momentum)' out)" 0
# resumed NAME FROM N ARGS...: as if the first run had gone on.
resumed() {
    rm -f log
    check "$1" plain $3 quern-train $flags $moe $tcp --load $2 --ckpt-step 3 --log-file log "${@:4}"
    check "$1: as if none had stopped" close <(tail -n 3 moe.log) log 6
}
resumed 'four go on' moe 4 --tensor-model-parallel-size 2 --expert-model-parallel-size 2
check 'four save' plain 4 quern-train $flags $moe $tcp --tensor-model-parallel-size 2 --data-parallel-sharding-strategy optim_grads_params \
    --pipeline-model-parallel-size 2 --save store --save-interval 3 --async-save
resumed 'two go on' store 2 --use-distributed-optimizer
rm -f log
check 'joined' quern-checkpoint join store --ckpt-step 3 --save whole
check 'one goes on' quern-train $flags $moe --load whole --ckpt-step 3 --log-file log
check 'one goes on: as if none had stopped' close <(tail -n 3 moe.log) log 6
status 'another kind than the checkpoint has' 2 quern-train $flags $moe --optimizer adam --load moe
has 'is named' err 'no state of this --optimizer there (exp_avg)'
status 'rates of muP' 3 quern-train $flags $gpt --use-mup
has 'is said' err '--use-mup: its rates are not known for this --optimizer'
finish
