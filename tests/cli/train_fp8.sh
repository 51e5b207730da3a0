#!/usr/bin/env bash
# quern train --fp8-format: beside bf16, on both devices, on several ranks, resumed; what it refuses.
# shellcheck source=tests/lib.sh disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME="$T/cache"
data

run="--data-path data --seq-length 16 --vocab-size 64 --micro-batch-size 2 --global-batch-size 8 --lr 0.003 --eval-iters 1 --bf16
    --eval-interval 4 --split 80,10,10 -j 1 --train-iters 12 --num-layers 4"
# shellcheck disable=SC2034
gpt="--hidden-size 32 --num-attention-heads 2"
# shellcheck disable=SC2034
llama="--hidden-size 32 --num-attention-heads 4 --ffn-hidden-size 64 --position-embedding-type rope --normalization RMSNorm
    --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0"
# shellcheck disable=SC2034
moe="$gpt --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 64 --moe-aux-loss-coeff 0.01"
# shellcheck disable=SC2034
mixtral="$llama --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 32 --moe-layer-freq 2"
delayed="--fp8-format hybrid --fp8-amax-history-len 3 --fp8-amax-compute-algo max"

# train NAME ARG...: to NAME.jsonl
train() {
    local name=$1
    shift
    rm -f "$name.jsonl"
    status "$name" 0 quern-train $run "$@" --device cpu --log-file "$name.jsonl"
}
# beside NAME A B TOL: losses of training of two logs, step by step; they are not all the same.
beside() {
    if paste <(grep -o '"loss":[^,]*' "$2.jsonl" | cut -d: -f2) <(grep -o '"loss":[^,]*' "$3.jsonl" | cut -d: -f2) |
        awk -v tol="$4" '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= tol * $1)) exit 1; if (d > 0) n++ } END { exit NR < 12 || n < 6 }'
    then ok "$1"; else bad "$1"; fi
}
same_losses() { same "$1" <(losses "$2.jsonl") <(losses "$3.jsonl"); }

for model in gpt llama moe mixtral; do
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
for model in gpt moe; do
    train recomputed ${!model} $delayed --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
    same_losses "$model, recomputed: the same bits" $model-delayed recomputed
done
train capped $moe $delayed --moe-expert-capacity-factor 0.8 --moe-pad-expert-input-to-capacity
train capped-bf16 $moe --moe-expert-capacity-factor 0.8 --moe-pad-expert-input-to-capacity
beside "experts with a capacity: near bf16" capped-bf16 capped 0.02
train unseen $gpt $delayed --eval-iters 0
same "evaluation changes nothing" <(losses gpt-delayed.jsonl | sed 's/,*"valid_loss":[^,}]*//') <(losses unseen.jsonl)
train wide $gpt $delayed --micro-batch-size 4
beside "other micro-batches" gpt-delayed wide 0.01

# ---- checkpoints ----
# half FROM TO: the first of its two checkpoints alone.
half() {
    rm -rf "$2" && cp -r "$1" "$2" && rm -rf "$2/iter_0000012" && echo 6 >"$2/latest_checkpointed_iteration.txt"
}
for model in moe gpt; do
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
for model in gpt moe; do
    rm -f cuda.jsonl
    status "$model: CUDA's kernels" 0 env QUERN_CUDA="$B/tests/simt-cuda.so" quern-train $run ${!model} $delayed --train-iters 4 \
        --device cuda --log-file cuda.jsonl
    check "$model: the CPU's losses" test "$(paste <(grep -o '"loss":[^,]*' cuda.jsonl | cut -d: -f2) \
        <(grep -o '"loss":[^,]*' $model-delayed.jsonl | cut -d: -f2) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d <= 0.02 * $2) n++ } END { print n + 0 }')" = 4
done

# ---- several ranks ----
if [ -f "$QUERN_MPI" ]; then
    ranks() {
        local name=$1 n=$2
        shift 2
        rm -f "$name.jsonl"
        status "$name" 0 timeout 600 mpirun --oversubscribe -n "$n" quern-train $run "$@" --device cpu --log-file "$name.jsonl"
    }
    train alone $gpt $delayed --deterministic
    ranks data 2 $gpt $delayed --deterministic
    same_losses "data-parallel ranks scale as one process: the same bits" alone data
    ranks sharded 2 $gpt $delayed --deterministic --use-distributed-optimizer
    same_losses "and share the optimizer" alone sharded
    ranks zero3 2 $gpt $delayed --data-parallel-sharding-strategy optim_grads_params
    beside "and the weights" gpt-delayed zero3 0.01
    ranks tensor 2 $gpt $delayed --tensor-model-parallel-size 2 --sequence-parallel --save tensor --save-interval 6
    beside "tensor ranks" gpt-delayed tensor 0.02
    ranks stages 2 $gpt $delayed --pipeline-model-parallel-size 2
    beside "stages" gpt-delayed stages 0.02
    ranks context 2 $gpt $delayed --context-parallel-size 2
    beside "context ranks" gpt-delayed context 0.02
    half tensor one && half tensor rest
    ranks rest-tensor 2 $gpt $delayed --tensor-model-parallel-size 2 --sequence-parallel --save rest
    same "tensor ranks go on with the same bits" <(losses tensor.jsonl | sed 1,6d) <(losses rest-tensor.jsonl)
    train rest-one $gpt $delayed --save one
    check "one process goes on from there" test "$(grep -c '"loss"' rest-one.jsonl)" = 6
    equal "with its scales" "$(grep -c "no scales" err)" 0

    # Experts that ranks share: scales of each are of all rows that it gets.
    ep="--expert-model-parallel-size 2"
    train alone $moe $delayed --deterministic
    ranks data 2 $moe $delayed --deterministic
    same_losses "experts, data-parallel ranks: the same bits" alone data
    ranks shared 2 $moe $delayed $ep --save shared --save-interval 6
    beside "experts that ranks share" moe-delayed shared 0.01
    ranks both 4 $moe $delayed $ep --tensor-model-parallel-size 2 --sequence-parallel
    beside "and tensor ranks too" moe-delayed both 0.02
    ranks zero3 2 $moe $delayed --deterministic --data-parallel-sharding-strategy optim_grads_params
    same_losses "and divided weights: the same bits" alone zero3
    ranks current 2 $mixtral --fp8-format e4m3 --fp8-recipe tensorwise $ep
    beside "and scales of the tensor at hand" mixtral-tensorwise current 0.02
    half shared rest && half shared wider && half shared one
    ranks rest-shared 2 $moe $delayed $ep --save rest
    same "they go on with the same bits" <(losses shared.jsonl | sed 1,6d) <(losses rest-shared.jsonl)
    ranks rest-wider 4 $moe $delayed --expert-model-parallel-size 4 --save wider
    equal "four ranks go on from there, with the scales" "$(grep -c '"loss"' rest-wider.jsonl),$(grep -c 'no scales' err)" 6,0
    train rest-one $moe $delayed --save one
    equal "one process too" "$(grep -c '"loss"' rest-one.jsonl),$(grep -c 'no scales' err)" 6,0
fi

# ---- refused ----
status "an odd width" 2 quern-train $run --hidden-size 40 --num-attention-heads 2 $delayed
has "is named" err "multiples of 16"
status "an odd micro-batch" 2 quern-train $run $gpt $delayed --seq-length 12 --micro-batch-size 1
has "too" err "multiple of 16"
status "experts of an odd width" 2 quern-train $run $moe $delayed --moe-ffn-hidden-size 40
has "are named" err "local_experts.0.linear_fc1.weight"
finish
