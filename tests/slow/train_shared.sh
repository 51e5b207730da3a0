# shellcheck shell=bash
# Experts that all tokens meet, with a gate and without: any division trains as one process does, and loads what another saved.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
mix="--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-aux-loss-coeff 0.01 --disable-bias-linear
    --moe-shared-expert-intermediate-size 40"
# shellcheck disable=SC2034,SC2154
{
    plain="$gpt $mix --moe-layer-freq 2"
    gated="$gpt $mix --moe-shared-expert-gate --group-query-attention --num-query-groups 2 --swiglu --normalization RMSNorm
        --position-embedding-type rope --add-qkv-bias --untie-embeddings-and-output-weights"
}
ep="--expert-model-parallel-size"

for m in plain gated; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 4 $ep 2 --tensor-model-parallel-size 2 --sequence-parallel
    as_one $m 2 --tensor-model-parallel-size 2 --recompute-granularity selective
    as_one $m 4 $ep 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --recompute-granularity full
    as_one $m 2 $ep 2 --context-parallel-size 2
    as_one $m 2 $ep 2 --use-distributed-optimizer --data-parallel-sharding-strategy optim_grads_params
done
# shellcheck disable=SC2086
check 'gated in bf16' ranks_train 2 $gated --tensor-model-parallel-size 2 --bf16 \
    --log-file bf16.jsonl
# shellcheck disable=SC2016
check 'gated in bf16: near' awk -F'[:,]' 'NR == FNR { a[FNR] = $4; next }
    { d = $4 - a[FNR]; if (!(d < 0.01 && d > -0.01)) exit 1 }' gated.jsonl bf16.jsonl

sed -n '11,$p' gated.jsonl >rest.jsonl
# shellcheck disable=SC2086
check 'half of it, by two' ranks_train 2 $gated $ep 2 --exit-interval 10 --save half
check 'names' quern-checkpoint info half --tensors
has 'are Megatron Core'"'"'s' out 'decoder.layers.3.mlp.shared_experts.linear_fc2.weight'
has 'the gate too' out 'decoder.layers.3.mlp.shared_experts.gate_weight'
for how in 1 '2 --tensor-model-parallel-size 2'; do
    rm -rf go log.jsonl
    cp -r half go
    # shellcheck disable=SC2086
    check "the rest: $how" ranks_train ${how%% *} $gated ${how#?} --save go \
        --log-file log.jsonl
    check "the rest: $how: as without a stop" close rest.jsonl log.jsonl 23
done
data
check 'evaluated' quern-eval --load go --data-path data --part whole --eval-iters 2
check 'a sample' quern-generate --load go --prompt-ids 1,2,3 --max-tokens 8 --print-ids
cp out sample
check 'for transformers' quern-checkpoint export go --output theirs --dtype fp32
check 'and back' quern-checkpoint import theirs --save back
check 'a sample of that' quern-generate --load back --prompt-ids 1,2,3 --max-tokens 8 --print-ids
same 'is the same' sample out

# shellcheck disable=SC2086
{
    status 'biases' 2 quern-train $gpt --num-experts 4 --moe-shared-expert-intermediate-size 40
    has 'are refused' err '--moe-shared-expert-intermediate-size needs --disable-bias-linear'
    status 'a gate of nothing' 2 quern-train $gpt --num-experts 4 --moe-shared-expert-gate
    has 'is refused' err '--moe-shared-expert-gate needs'
    status 'a width that ranks cannot share' 2 ranks_train 2 $plain --tensor-model-parallel-size 2 \
        --moe-shared-expert-intermediate-size 41
    has 'is refused' err '2 ranks cannot share 41 elements of the shared expert'
}
check 'a plan' quern-train --plan --bf16 --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 4096 --swiglu \
    --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --add-qkv-bias --vocab-size 151936 \
    --untie-embeddings-and-output-weights --num-experts 60 --moe-router-topk 4 --moe-ffn-hidden-size 1408 \
    --moe-shared-expert-intermediate-size 5632 --moe-shared-expert-gate --global-batch-size 64 --plan-ranks 8
has "has Qwen1.5-MoE-A2.7B's published parameters" out '14.32 billion parameters, of which a token meets 2.689'
finish
