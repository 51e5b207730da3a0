# shellcheck shell=bash
# Mixtures of experts: ranks that share the experts train as one process does, losses and gradient norms over 20 steps
# (dropout and both auxiliary losses included) and validation losses within 1e-5; any division loads into any other.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
mix="--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-aux-loss-coeff 0.01 --moe-z-loss-coeff 0.001"
# shellcheck disable=SC2034,SC2154
{
    moe="$gpt $mix"
    mixtral="$gpt $mix --group-query-attention --num-query-groups 2 --swiglu --normalization RMSNorm
        --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights"
    some="$gpt $mix --moe-layer-freq 2 --moe-router-pre-softmax --moe-router-topk 3"
    capped="$moe --moe-expert-capacity-factor 0.6"
    padded="$mixtral --moe-expert-capacity-factor 0.6 --moe-token-drop-policy position --moe-pad-expert-input-to-capacity"
}
ep="--expert-model-parallel-size" once=

for m in moe mixtral some; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 2 $ep 2
done
for m in moe mixtral; do
    as_one $m 4 $ep 2
    as_one $m 4 $ep 4 --recompute-granularity full
    as_one $m 4 $ep 2 --pipeline-model-parallel-size 2
done
as_one mixtral 4 $ep 2 --tensor-model-parallel-size 2 --sequence-parallel
as_one moe 2 --tensor-model-parallel-size 2 --recompute-granularity selective
as_one moe 4 $ep 2 --recompute-granularity selective --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --ddp-bucket-size 5000
as_one some 4 $ep 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
check 'how evenly experts are used is in the log' grep -q '"load_balancing_loss":1\.' log.jsonl
balance() { sed -n '20s/.*"load_balancing_loss":\([0-9.]\{7\}\).*/\1/p' "$1"; }
for how in "4 $ep 2 --tensor-model-parallel-size 2 --sequence-parallel" "4 $ep 2 --context-parallel-size 2" \
    '2 --pipeline-model-parallel-size 2'; do
    # shellcheck disable=SC2086
    as_one moe ${how%% *} ${how#?}
    equal "as evenly by $how" "$(balance log.jsonl)" "$(balance moe.jsonl)"
done
# A row for an expert of another rank travels once, whether or not tensor ranks share the layers.
sent() { cat t.? | grep '"name":"all-to-all-v".*"expert"' | grep -oE '"elements":[0-9]+' |
    awk -F: '{ n += $2 } END { print n }'; }
for how in '2' '4 --tensor-model-parallel-size 2' '4 --tensor-model-parallel-size 2 --sequence-parallel'; do
    rm -f t.?
    # shellcheck disable=SC2086
    check "a timeline: $how" ranks_train ${how%% *} $moe ${how#?} $ep 2 --train-iters 1 \
        --eval-iters 0 --trace t
    [ -n "$once" ] || once=$(sent)
    equal "rows travel once: $how" "$(sent)" "$once"
done
# What is dropped is the same in every layout; and it is something.
for m in capped padded; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 4 $ep 2 --tensor-model-parallel-size 2 --sequence-parallel
    as_one $m 4 $ep 4 --recompute-granularity full
done
as_one capped 2 --tensor-model-parallel-size 2
as_one padded 4 $ep 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
for m in 'moe capped' 'mixtral padded'; do
    # shellcheck disable=SC2086
    check "another training: $m" bash -c "! cmp -s <(cut -d, -f 2 ${m% *}.jsonl) <(cut -d, -f 2 ${m#* }.jsonl)"
done
for how in optim_grads optim_grads_params; do
    as_one mixtral 4 $ep 2 --use-distributed-optimizer --data-parallel-sharding-strategy $how
done
for m in moe mixtral; do
    # shellcheck disable=SC2086
    check "$m in bf16" ranks_train 2 ${!m} $ep 2 --bf16 --log-file $m.bf16.jsonl
    # shellcheck disable=SC2016
    check "$m in bf16: near" awk -F'[:,]' 'NR == FNR { a[FNR] = $4; next }
        { d = $4 - a[FNR]; if (!(d < 0.01 && d > -0.01)) exit 1 }' $m.jsonl $m.bf16.jsonl
done

# A checkpoint of one division goes on in another; in the same one to the same bits.
sed -n '11,$p' moe.jsonl >rest.jsonl
rm -f log.jsonl
# shellcheck disable=SC2086
check 'by two ranks' ranks_train 2 $moe $ep 2 --log-file two.jsonl
# shellcheck disable=SC2086
check 'half of it' ranks_train 2 $moe $ep 2 --exit-interval 10 --save half
check 'names of experts' quern-checkpoint info half --tensors
has 'are Megatron Core'"'"'s' out 'decoder.layers.3.mlp.experts.local_experts.7.linear_fc2.weight'
for how in "2 $ep 2" '1' "4 $ep 4" "4 $ep 2 --tensor-model-parallel-size 2 --sequence-parallel" \
    '2 --pipeline-model-parallel-size 2'; do
    rm -rf go log.jsonl
    cp -r half go
    # shellcheck disable=SC2086
    check "the rest: $how" ranks_train ${how%% *} $moe ${how#?} --save go \
        --log-file log.jsonl
    check "the rest: $how: as without a stop" close rest.jsonl log.jsonl 23
    [ "$how" != "2 $ep 2" ] || same 'the rest by two: the same bits' \
        <(sed -n '11,$p' two.jsonl | cut -d, -f 1-3) <(cut -d, -f 1-3 log.jsonl)
done
data
check 'evaluated' quern-eval --load go --data-path data --part whole --eval-iters 2
check 'a sample' quern-generate --load go --prompt-ids 1,2,3 --max-tokens 8 --print-ids
cp out sample
check 'the same sample of the same weights' quern-generate --load go --prompt-ids 1,2,3 --max-tokens 8 --print-ids
same 'is the same' sample out

# What cannot be is said before anything is allocated.
# shellcheck disable=SC2086
{
    status 'experts that ranks cannot share' 2 ranks_train 3 $moe --global-batch-size 12 $ep 3
    has 'is said' err '3 ranks cannot share 8 experts'
    status 'ranks that do not make groups' 2 ranks_train 2 $moe $ep 4
    has 'is said' err '2 data-parallel x 1 context-parallel ranks are no multiple of 4'
    status 'no experts to share' 2 ranks_train 2 $gpt $ep 2
    has 'is said' err 'the model has no experts'
    status 'not the same bits' 2 ranks_train 2 $moe $ep 2 --context-parallel-size 2 --deterministic
    has 'is said' err 'and neither --context-parallel-size nor --fp8-format'
    status 'more choices than experts' 2 quern-train $moe --moe-router-topk 9
    status 'padded to nothing' 2 quern-train $moe --moe-pad-expert-input-to-capacity
}
# shellcheck disable=SC2086
check 'a plan' quern-train --plan --preset mixtral-8x7b --bf16 --use-distributed-optimizer --global-batch-size 128 \
    --plan-ranks 64 $ep 8
has 'has all parameters, and those that a token meets' out '46.7 billion parameters, of which a token meets 12.88'
has 'and the experts' out 'experts shared by 8'
has 'and what uneven use may take' out 'if all tokens choose those of one rank'
# shellcheck disable=SC2086
check 'a plan with a capacity' quern-train --plan --preset mixtral-8x7b --bf16 --use-distributed-optimizer --global-batch-size 128 \
    --plan-ranks 64 $ep 8 --moe-expert-capacity-factor 1.25
check 'has all that it may take' bash -c "! grep -q 'if all tokens choose' out"
finish
