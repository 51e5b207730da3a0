#!/usr/bin/env bash
# Adapters beside weights that are multiplied in FP8: near those of bf16, the same bits however it is done, on ranks, resumed.
# shellcheck source=tests/lib.sh disable=SC2034,SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME="$T/cache"
data
. "$ROOT/tests/fp8_lib.sh"
run="$run --attention-dropout 0 --hidden-dropout 0"
lora="--lora-rank 4 --lora-target *linear_*"
tensorwise="--fp8-format e4m3 --fp8-recipe tensorwise"
# ranks NAME N ARG...: as train, on N of them.
ranks() {
    local name=$1 n=$2
    shift 2
    rm -f "$name.jsonl"
    check "$name" plain "$n" quern-train $run "$@" --distributed-backend tcp --device cpu --log-file "$name.jsonl"
}
# first FIELD LOG: of the first step.
first() { grep -o "\"$1\":[^,}]*" $2.jsonl | head -n 1 | cut -d: -f2; }
# norms_beside NAME A B: norms of gradients of the first steps of two logs are within 3 % of each other.
norms_beside() {
    check "$1" awk -v a="$(first grad_norm $2)" -v b="$(first grad_norm $3)" 'BEGIN { exit !(a > 0 && a < 1.03 * b && b < 1.03 * a) }'
}

for model in gpt llama mixtral moe; do
    train $model-bf16 ${!model} $lora
    train $model-delayed ${!model} $lora $delayed
    equal "$model: memory as planned" "$(grep '^memory allocated' out | grep -c 'as planned$')" 1
    train $model-tensorwise ${!model} $lora $tensorwise
    train $model-ends ${!model} $lora $delayed --first-last-layers-bf16
    for way in delayed tensorwise ends; do
        beside "$model, $way: near bf16" $model-bf16 $model-$way 0.005
        norms_beside "$model, $way: norms of gradients too" $model-bf16 $model-$way
    done
    train whole ${!model} $delayed
    equal "$model: B is 0, so the first loss is that of FP8 without adapters" "$(first loss $model-delayed)" "$(first loss whole)"
    train recomputed ${!model} $lora $delayed --recompute-granularity full
    same_losses "$model, recomputed: the same bits" $model-delayed recomputed
    train selected ${!model} $lora $delayed --recompute-granularity selective
    same_losses "$model, activations made again: the same bits" $model-delayed selected
    rm -rf saved half
    train saving ${!model} $lora $delayed --save saved --save-interval 6
    same_losses "$model: saving changes nothing" $model-delayed saving
    half saved half
    train rest ${!model} $lora $delayed --load half
    same "$model: a resumed run goes on with the same bits" <(losses $model-delayed.jsonl | sed 1,6d) <(losses rest.jsonl)
done
check "a checkpoint has scales of what is multiplied" quern-checkpoint info --tensors saved
has "of experts" out "fp8.decoder.layers.0.mlp.experts.local_experts.3.linear_fc1.weight"
equal "none of adapters" "$(grep -c 'fp8\..*lora_' out)" 0
check "it learns" learns gpt-delayed.jsonl
check "merged" quern-checkpoint merge saved --save merged
train capped $moe $lora $delayed --moe-expert-capacity-factor 0.8 --moe-pad-expert-input-to-capacity
train capped-bf16 $moe $lora --moe-expert-capacity-factor 0.8 --moe-pad-expert-input-to-capacity
beside "experts with a capacity: near bf16" capped-bf16 capped 0.005

# A base that was trained in FP8, with its weights as they were.
train base $gpt $delayed --save base
train tuned $gpt $lora $delayed --load base
train tuned-bf16 $gpt $lora --load base
beside "adapters of it: near bf16" tuned-bf16 tuned 0.005

for model in gpt moe; do
    train one ${!model} $lora $delayed --deterministic
    ranks data 2 ${!model} $lora $delayed --deterministic
    same_losses "$model, data-parallel ranks: the same bits" one data
    ranks zero3 2 ${!model} $lora $delayed --deterministic --data-parallel-sharding-strategy optim_grads_params
    same_losses "$model, and divided weights: the same bits" one zero3
    ranks stages 2 ${!model} $lora $delayed --deterministic --pipeline-model-parallel-size 2
    same_losses "$model, stages: the same bits" one stages
    ranks tensor 2 ${!model} $lora $delayed --tensor-model-parallel-size 2 --sequence-parallel
    beside "$model, tensor ranks" $model-delayed tensor 0.005
done
ranks shared 2 $moe $lora $delayed --expert-model-parallel-size 2
beside "experts that ranks share" moe-delayed shared 0.005

# The kernels of the GPU, run on the CPU.
for model in gpt moe; do
    rm -f cuda.jsonl
    status "$model: CUDA's kernels" 0 env QUERN_CUDA="$B/tests/simt-cuda.so" quern-train $run ${!model} $lora $delayed --train-iters 2 \
        --device cuda --log-file cuda.jsonl
    within "$model: the CPU's losses" $model-delayed cuda 2
done
status "an odd width" 2 quern-train $run $lora --hidden-size 40 --num-attention-heads 2 $delayed
has "is named, the rank may be any" err "multiples of 16"
finish
