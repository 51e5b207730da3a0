#!/usr/bin/env bash
# quern train --fp8-recipe blockwise, with scales that are powers of two and with any: beside bf16, on both devices, on several
# ranks, resumed; what it refuses.
# shellcheck source=tests/lib.sh disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME="$T/cache"
data
. "$ROOT/tests/fp8_lib.sh"

wide="--num-layers 2 --hidden-size 128 --num-attention-heads 2 --ffn-hidden-size 256"
gpt="$gpt $wide" mixtral="$mixtral $wide --group-query-attention --num-query-groups 2 --num-experts 4
    --moe-ffn-hidden-size 128"
blocks="--fp8-format e4m3 --fp8-recipe blockwise" any="--fp8-format e4m3 --fp8-recipe blockwise --fp8-block-scaling-fp32-scales"

for model in gpt mixtral; do
    train $model-bf16 ${!model}
    train $model-blocks ${!model} $blocks
    train $model-hybrid ${!model} --fp8-format hybrid --fp8-recipe blockwise
    train $model-any ${!model} $any
    for way in blocks hybrid any; do
        beside "$model, $way: near bf16" $model-bf16 $model-$way 0.02
    done
    beside "$model: other scales" $model-blocks $model-any 0.02
    for way in blocks any; do
        train again ${!model} ${!way} --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
        same_losses "$model, $way, recomputed: the same bits" $model-$way again
        rm -rf whole
        train whole ${!model} ${!way} --save whole --save-interval 6
        half whole half
        train rest ${!model} ${!way} --save half
        same "$model, $way: a resumed run goes on with the same bits" <(losses $model-$way.jsonl | sed 1,6d) <(losses rest.jsonl)
        rm -f cuda.jsonl
        status "$model, $way: CUDA's kernels" 0 env QUERN_CUDA="$B/tests/simt-cuda.so" quern-train $run ${!model} ${!way} \
            --train-iters 2 --device cuda --log-file cuda.jsonl
        within "$model, $way: the CPU's losses" $model-$way cuda 2
    done
    has "$model: a checkpoint says so" whole/iter_0000012/metadata.json '"fp8-block-scaling-fp32-scales":"true"'
done
train ends $gpt $blocks --first-last-layers-bf16 --num-layers-at-end-in-bf16 0
beside "a layer in bf16" gpt-bf16 ends 0.02
train base $gpt --save base --save-interval 12
train lora-bf16 $gpt --load base --lora-rank 4
train lora $gpt $blocks --load base --lora-rank 4
beside "adapters beside them" lora-bf16 lora 0.02

ranks() {
    local name=$1
    shift
    rm -f "$name.jsonl"
    status "$name" 0 ranks_train 2 $run "$@" --device cpu --log-file "$name.jsonl"
}
train wider $gpt --hidden-size 256 $blocks
ranks tensor $gpt --hidden-size 256 $blocks --tensor-model-parallel-size 2 --sequence-parallel
beside "tensor ranks" wider tensor 0.02
for way in blocks any; do
    train alone $gpt ${!way} --deterministic
    ranks data $gpt ${!way} --deterministic --use-distributed-optimizer
    same_losses "$way, data-parallel ranks: the same bits" alone data
    ranks zero3 $gpt ${!way} --deterministic --data-parallel-sharding-strategy optim_grads_params
    same_losses "$way, and divided weights" alone zero3
    ranks stages $gpt ${!way} --deterministic --pipeline-model-parallel-size 2
    same_losses "$way, stages" alone stages
done
ranks experts $mixtral $any --expert-model-parallel-size 2
within "experts that ranks share" mixtral-any experts 12

status "widths that are no whole blocks" 2 quern-train $run $gpt --hidden-size 64 $blocks
has "say so" err "by blocks need multiples of 128"
status "scales of blocks without blocks" 2 quern-train $run $gpt --fp8-format e4m3 --fp8-block-scaling-fp32-scales
has "say so" err "needs --fp8-recipe blockwise"
finish
