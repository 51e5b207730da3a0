#!/usr/bin/env bash
# quern train --fp8-format: beside bf16, on both devices, resumed; what it refuses.
# shellcheck source=tests/lib.sh disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME="$T/cache"
data
. "$ROOT/tests/fp8_lib.sh"

for model in gpt ${SWEEP:+llama moe} mixtral; do
    train $model-bf16 ${!model}
    train $model-delayed ${!model} $delayed
    train $model-tensorwise ${!model} --fp8-format e4m3 --fp8-recipe tensorwise
    train $model-ends ${!model} $delayed --first-last-layers-bf16
    for way in delayed tensorwise ends; do
        beside "$model, $way: near bf16" $model-bf16 $model-$way 0.02
    done
done
train margin $gpt $delayed --fp8-margin 2
beside "a margin leaves room" gpt-delayed margin 0.02
train again $gpt $delayed
same_losses "the same bits again" gpt-delayed again
for model in gpt mixtral; do
    train recomputed ${!model} $delayed --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
    same_losses "$model, recomputed: the same bits" $model-delayed recomputed
done
train capped $moe $delayed --moe-expert-capacity-factor 0.8 --moe-pad-expert-input-to-capacity
train capped-bf16 $moe --moe-expert-capacity-factor 0.8 --moe-pad-expert-input-to-capacity
beside "experts with a capacity: near bf16" capped-bf16 capped 0.02
train unseen $gpt $delayed --eval-iters 0
same "evaluation changes nothing" <(losses gpt-delayed.jsonl | sed 's/,*"valid_loss":[^,}]*//' | grep '"loss":') <(losses unseen.jsonl)
train wide $gpt $delayed --micro-batch-size 4
beside "other micro-batches" gpt-delayed wide 0.01

# ---- checkpoints ----
for model in mixtral gpt; do
    rm -rf whole
    train whole ${!model} $delayed --save whole --save-interval 6
    same_losses "$model: saving changes nothing" $model-delayed whole
    half whole half
    train rest ${!model} $delayed --save half
    same "$model: a resumed run goes on with the same bits" <(losses $model-delayed.jsonl | sed 1,6d) <(losses rest.jsonl)
done
half whole other && half whole cold
status "what a checkpoint has" 0 quern-checkpoint info --tensors whole
has "its scales" out "fp8.decoder.layers.0.self_attention.linear_qkv.weight"
train colder $gpt --fp8-format hybrid --fp8-amax-history-len 2 --save cold
has "another history is told" err "no scales of FP8 for these settings"
train plain $gpt --save other
equal "a run goes on without FP8" "$(grep -c '"loss"' plain.jsonl)" 6

# ---- the kernels of the GPU, run on the CPU ----
for model in gpt ${SWEEP:+mixtral}; do
    rm -f cuda.jsonl
    status "$model: CUDA's kernels" 0 env QUERN_CUDA="$B/tests/simt-cuda.so" quern-train $run ${!model} $delayed --train-iters 4 \
        --device cuda --log-file cuda.jsonl
    within "$model: the CPU's losses" $model-delayed cuda 4
done

# ---- refused ----
status "an odd width" 2 quern-train $run --hidden-size 40 --num-attention-heads 2 $delayed
has "is named" err "multiples of 16"
status "an odd micro-batch" 2 quern-train $run $gpt $delayed --seq-length 12 --micro-batch-size 1
has "too" err "multiple of 16"
status "experts of an odd width" 2 quern-train $run $moe $delayed --moe-ffn-hidden-size 40
has "are named" err "local_experts.0.linear_fc1.weight"
finish
