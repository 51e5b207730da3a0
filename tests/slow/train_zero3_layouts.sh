# shellcheck shell=bash
# Ranks that share gradients (optim_grads) and weights (optim_grads_params) train as one process does: losses and gradient norms of
# 20 steps within 1e-5, with --deterministic to the same bits.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"

for m in gpt llama; do
    # shellcheck disable=SC2086
    {
        check "$m, one process" quern-train ${!m} --log-file $m.jsonl
        as_one $m 2 $zero2
        as_one $m 4 $zero2 --overlap-grad-reduce --tensor-model-parallel-size 2 --sequence-parallel
        as_one $m 2 $zero3
        cp log.jsonl $m.zero3.jsonl
        as_one $m 2 $zero3 $beside --recompute-granularity full --recompute-num-layers 3
        same "$m: the same bits beside the passes and computed again" <(losses $m.zero3.jsonl) <(losses log.jsonl)
        as_one $m 4 $zero3 $beside --tensor-model-parallel-size 2 --sequence-parallel
    }
done
# shellcheck disable=SC2086
{
    as_one gpt 4 $zero3 $beside
    as_one gpt 2 $zero3 --recompute-granularity selective
    as_one llama 4 $zero3 $beside --context-parallel-size 2
    as_one llama 4 $zero3 $beside --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
}

# --deterministic: the same bits for any number of ranks and whatever they share, also with bf16 weights.
for how in '' '--bf16' '--bf16 --main-params-dtype bf16'; do same_bits "$how"; done

# FP8 copies of divided weights are those of a layer at a time: the same bits.
fp8="$gpt --bf16 --fp8-format hybrid --deterministic"
# shellcheck disable=SC2086
{
    check 'FP8: one process' quern-train $fp8 --log-file a.jsonl
    check 'FP8: two share weights' ranks_train 2 $fp8 $zero3 $beside --log-file b.jsonl
}
same 'FP8: the same bits of losses and norms' <(losses a.jsonl) <(losses b.jsonl)
rm -f a.jsonl b.jsonl

# Gradients that leave a rank in bf16: rounded once, whatever is shared, beside the passes or behind them.
ranks2="ranks_train 2 $gpt --grad-reduce-in-bf16 --ddp-bucket-size 5000"
# shellcheck disable=SC2086
{
    check 'in bf16' $ranks2 --log-file a.jsonl
    check 'in bf16, shared, beside the passes' $ranks2 --use-distributed-optimizer $beside --log-file b.jsonl
    check 'in bf16, each micro-batch' $ranks2 $zero3 $beside --log-file c.jsonl --trace tl
}
same 'in bf16: the same bits' <(losses a.jsonl) <(losses b.jsonl)
check 'in bf16: another training than in fp32' bash -c "! cmp -s <(cut -d, -f 2 gpt.jsonl) <(cut -d, -f 2 a.jsonl)"
for x in a c; do
    check "in bf16, $x: nearly the same" awk -F'[:,]' 'NR == FNR { l[FNR] = $4; next } { d = l[FNR] - $4 } d > 2e-3 || d < -2e-3 { exit 1 }
        END { exit FNR < 20 }' gpt.jsonl $x.jsonl
done
equal 'in bf16 on the wire' "$(grep '"name":"reduce-scatter"' tl.0 | grep -o '"type":"[^"]*"' | sort -u)" '"type":"bf16"'

# No section is sent for that is still there: 6 of them (4 layers), of which forward's last two stay for backward, whose last two
# stay for the next forward: 6 + 2 gathers for the first of a step's two micro-batches, 2 + 2 for the other; and two ahead at the end.
# shellcheck disable=SC2086
check 'a timeline' ranks_train 2 $gpt $zero3 $beside --eval-iters 0 --train-iters 4 --trace tl
equal 'as many calls as are needed' "$(grep -c '"name":"all-gather".*replicas' tl.0) $(grep -c '"name":"reduce-scatter"' tl.0)" \
    "$((4 * 12 + 2)) $((4 * 12))"

# A checkpoint goes on in any division; in the same one to the same bits.
# shellcheck disable=SC2086
{
    check 'the first half of two that share weights' ranks_train 2 $llama $zero3 --exit-interval 10 \
        --save half --async-save
    check 'the first half of two by two tensor ranks' ranks_train 4 $llama $zero3 \
        --tensor-model-parallel-size 2 --exit-interval 10 --save half4
    check 'the first half of one process' quern-train $llama --exit-interval 10 --save half1
}
sed -n '11,$p' llama.jsonl >rest.jsonl
sed -n '11,$p' llama.zero3.jsonl >same.jsonl
# rest FROM N ARG...: the other half.
rest() {
    local from=$1 n=$2
    shift 2
    rm -rf go log.jsonl
    cp -r $from go
    # shellcheck disable=SC2086
    check "$from by $n: $*" ranks_train $n $llama "$@" --save go --log-file log.jsonl
    check "$from by $n: $*: as one process" close rest.jsonl log.jsonl 23
}
# shellcheck disable=SC2086
{
    rest half 2 $zero3
    same 'the same layout: the same bits' <(losses same.jsonl) <(losses log.jsonl)
    rest half 2 --use-distributed-optimizer
    rest half4 1
    rest half1 4 $zero3 --tensor-model-parallel-size 2
}

# What it takes: bytes a parameter of 4 ranks, with what one layer and the embedding need while they pass.
memory() { grep "^memory: " out | grep -oE "$1 [0-9.]+" | cut -d' ' -f2; }
big="--mock-data -j 1 --num-layers 16 --hidden-size 128 --num-attention-heads 4 --seq-length 16 --vocab-size 250 --lr 0.002
    --train-iters 1 --eval-iters 0 --bf16 --global-batch-size 4"
for how in no_shard optim_grads optim_grads_params; do
    # shellcheck disable=SC2086
    check "$how: memory" ranks_train 4 $big --data-parallel-sharding-strategy $how
    echo "$how $(memory weights) $(memory gradients) $(memory optimizer)"
done >took
check 'as planned' awk 'function near(x, a, b) { if (!(x >= a && x <= b)) { print NR, x, a, b; bad = 1 } }
    NR == 1 { w = $2 / 6; near($3 / w, 3.95, 4.05) }
    NR == 2 { near($2 / w, 1.95, 2.1); near($3 / w, 1, 1.7); near($4 / w, 3, 3.3) }
    NR == 3 { near($2 / w, 0.2, 0.4); near($3 / w, 1, 1.7); near($4 / w, 3, 3.3) }
    END { exit bad || NR != 3 }' <(grep -v '^ok' took)
for how in no_shard optim_grads_params; do
    # shellcheck disable=SC2086
    check "$how, bf16 weights alone: memory" ranks_train 4 $big --data-parallel-sharding-strategy $how \
        --main-params-dtype bf16
    has 'as planned' out ', as planned'
    echo "$how $(memory weights) $(memory gradients) $(memory optimizer)"
done >low
# The moments, and a quarter of a byte for the sums of squares of 64 gradients each.
check 'bf16 weights alone: two bytes instead of six' awk 'NR == FNR { if (FNR == 1) w = $2 / 6; next }
    function near(x, a, b) { if (!(x >= a && x <= b)) { print FNR, x, a, b; bad = 1 } }
    FNR == 1 { near($2 / w, 1.95, 2.05); near($4 / w, 8.1, 8.4) }
    FNR == 2 { near($2 / w, 0.6, 0.95); near($4 / w, 1.95, 2.3) }
    END { exit bad || FNR != 2 }' <(grep -v '^ok' took) <(grep -v '^ok' low)
finish
