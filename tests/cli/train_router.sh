#!/usr/bin/env bash
# Routers of experts: each kind trains alike on one process and on ranks that share the work, and goes on from its checkpoints.
# shellcheck disable=SC2034,SC2048,SC2086,SC2046
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --hidden-dropout 0 --train-iters 6
    --num-experts 8 --moe-router-topk 4 --moe-ffn-hidden-size 16 --moe-aux-loss-coeff 0.02"
sigmoid="--moe-router-score-function sigmoid --moe-router-topk-scaling-factor 2.5 --moe-z-loss-coeff 0.001"
groups="--moe-router-pre-softmax --moe-router-num-groups 4 --moe-router-group-topk 2"
both="$sigmoid --moe-router-num-groups 2 --moe-router-group-topk 1"
limited="$groups --moe-router-group-limited-greedy"
sequences="$groups --moe-router-load-balancing-type seq_aux_loss"
v3="$both --moe-router-enable-expert-bias --moe-router-bias-update-rate 0.01 --moe-router-load-balancing-type seq_aux_loss"
kinds='sigmoid groups limited both sequences v3'

for kind in $kinds; do
    alone $kind 3 6
    on 2 $kind --tensor-model-parallel-size 2 --sequence-parallel
    on 2 $kind --expert-model-parallel-size 2 --recompute-granularity full
    check "$kind, bf16" quern-train $flags ${!kind} --bf16 --main-params-dtype bf16 --moe-expert-capacity-factor 1.5
    check "$kind, evaluated" quern-eval --load $kind --data-path data --part whole --eval-iters 2
    check "$kind, a sample" quern-generate --load $kind --prompt-ids 1,2,3 --max-tokens 4 --print-ids
    status "$kind: transformers' models have no such router" 3 quern-checkpoint export --output $kind.hf $kind
done
for how in '2 --micro-batch-size 2' '2 --pipeline-model-parallel-size 2' '2 --context-parallel-size 2' \
    '2 --tensor-model-parallel-size 2 --recompute-granularity selective'; do
    on ${how%% *} v3 ${how#* }
done

# Counts of a step so far, of all ranks: of those that take its micro-batches at the same time as of one that has these as one.
global='--moe-router-pre-softmax --moe-router-load-balancing-type global_aux_loss'
alone global 3 6
on 2 global --tensor-model-parallel-size 2 --sequence-parallel
on 2 global --pipeline-model-parallel-size 2 --recompute-granularity full
on 2 global --context-parallel-size 2
large='--moe-router-pre-softmax --micro-batch-size 8'
alone large 3 6
on 2 large --moe-router-load-balancing-type global_aux_loss --micro-batch-size 4
# With more of them than go at a time: the same as long as as many go at a time, whatever ranks share.
turns="$global --micro-batch-size 4"
alone turns 3 6
for how in '4 --micro-batch-size 1' '2' '2 --use-distributed-optimizer --overlap-grad-reduce' '2 --expert-model-parallel-size 2' \
    '2 --data-parallel-sharding-strategy optim_grads' '4 --context-parallel-size 2 --expert-model-parallel-size 4' \
    '4 --pipeline-model-parallel-size 2'; do
    on ${how%% *} turns --micro-batch-size 2 ${how#?}
done

# Biases: Megatron's name, no moments, the same bytes however the work is divided, and those of the checkpoint afterwards.
check 'tensors' quern-checkpoint info v3 --tensors
has 'biases are among them' out 'decoder.layers.1.mlp.router.expert_bias'
check 'as weights alone' bash -c "! grep -q 'exp_avg.*expert_bias' out"
same_joined v3
rm -rf one
check 'other biases' quern-train $flags $v3 --deterministic --moe-router-bias-update-rate 0 --save one
check 'joined' quern-checkpoint join one --save other
check 'are other bytes' bash -c '! cmp -s {other,whole}/iter_0000006/model.safetensors'
rm -f log
check 'biases on the host' quern-train $flags $v3 --optimizer-cpu-offload --save host --log-file log
equal 'are the same' "$(numbers log)" "$(numbers v3.log)"
same 'in the checkpoint too' {host,v3}/iter_0000006/model.safetensors
rm -f log
check 'goes on from the joined one' plain 2 quern-train $flags $v3 --load joined --train-iters 8 --tensor-model-parallel-size 2 \
    --distributed-backend tcp --log-file log
cp log two.log
rm -f log
check 'and one process' quern-train $flags $v3 --load joined --train-iters 8 --log-file log
check 'alike' close two.log log 4
status 'a bias without sigmoids' 2 quern-train $flags --moe-router-enable-expert-bias
has 'is refused' err 'needs --moe-router-score-function sigmoid'

# Which layers have experts.
deep="--num-layers 4 --ffn-hidden-size 48"
with_experts() { quern-checkpoint info "$1" --tensors | sed -n 's/^ *decoder\.layers\.\([0-9]*\)\.mlp\.router\.weight.*/\1/p' | tr '\n' ' '; }
# list LIST LAYERS: a model with --moe-layer-freq LIST has experts in LAYERS, and goes on.
list() {
    rm -rf deep
    check "layers $1" quern-train $flags $v3 $deep --moe-layer-freq "$1" --save deep --train-iters 1
    equal "layers $1: have experts" "$(with_experts deep)" "$2"
    check "layers $1: goes on" quern-train $flags $v3 $deep --moe-layer-freq "$1" --load deep --train-iters 2
}
list '([0]*1+[1]*3)' '1 2 3 '
list '0,1,1,0' '1 2 '
list '([1]+[0])*2' '0 2 '
check 'layers 2: the same' quern-train $flags $v3 $deep --moe-layer-freq 2 --load deep --train-iters 2
status 'others' 2 quern-train $flags $v3 $deep --moe-layer-freq '[0]*2+[1]*2' --load deep --train-iters 2
has 'are named' err 'moe-layer-'
dense_first="$v3 $deep --moe-layer-freq [0]*2+[1]*2"
rm -f log
check 'dense ones first' quern-train $flags $dense_first --log-file log
cp log dense_first.log
on 2 dense_first --pipeline-model-parallel-size 2
on 2 dense_first --expert-model-parallel-size 2
for bad in '[0]*3+[1]*58' '[0,1' '[2]*4' '0,1,1,1,1' '[0]*4' '[1]*x' 'often'; do
    status "layers $bad" 2 quern-train $flags $v3 $deep --moe-layer-freq "$bad"
    has 'are no layers' err 'moe-layer-freq'
done

differ $kinds global large turns
status 'another kind than the checkpoint has' 2 quern-train $flags --load sigmoid
has 'is named' err 'moe-router-score-function is sigmoid, not softmax'
status 'groups that are not equal' 2 quern-train $flags --moe-router-num-groups 3 --moe-router-group-topk 2
has 'are named' err '8 experts in 3 equal groups'
status 'groups with too few experts' 2 quern-train $flags --moe-router-num-groups 4 --moe-router-group-topk 1
has 'are named' err '1 of 4 groups of 2 experts'
status 'groups, but of how many' 2 quern-train $flags --moe-router-num-groups 4
has 'is asked' err 'give both or neither'
finish
