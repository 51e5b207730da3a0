#!/usr/bin/env bash
# Tokens behind the next one are predicted too: on one process and on ranks that share the work, resumed, evaluated, generated from.
# shellcheck disable=SC2034,SC2048,SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --hidden-dropout 0 --train-iters 6 --mtp-loss-scaling-factor 0.3"
gpt="--mtp-num-layers 2 --untie-embeddings-and-output-weights"
rope="--mtp-num-layers 2 --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear"
moe="$rope --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 16 --moe-aux-loss-coeff 0.02 --moe-layer-freq 0,1
    --moe-router-score-function sigmoid --moe-router-enable-expert-bias --moe-router-bias-update-rate 0.01"
documents="$rope --reset-position-ids --reset-attention-mask --eod-mask-loss --eod-id 7"
per_token="$documents --calculate-per-token-loss"
dropout="$gpt --hidden-dropout 0.1 --attention-dropout 0.1"
lora="$rope --lora-rank 4"
lora_moe="$moe --lora-rank 3 --lora-target *linear_*"
further() { grep -o '"mtp_losses":[^]]*' "$1" | tr -cs '0-9.\n' ' '; }
# alike A B: the losses further on of two logs.
alike() {
    paste -d ' ' <(further "$1") <(further "$2") |
        awk '{ for (i = 1; i < 3; i++) { d = $i - $(i + 2); if (d < -1e-5 || d > 1e-5) exit 1; n++ } } END { exit n != 12 }'
}
# shared RANKS KIND FLAG...: `on`, with the losses further on.
shared() {
    on "$@"
    check "$2, ${*:3}: further on too" alike $2.log log
}

for kind in gpt rope moe documents per_token dropout lora lora_moe; do
    alone $kind 3 9
    equal "$kind: memory as planned" "$(grep '^memory allocated' $kind.out | grep -c 'as planned$')" 1
    equal "$kind: the log has two losses more" "$(grep -cE '"mtp_losses":\[[0-9.]+,[0-9.]+\]' $kind.log)" 6
    for how in full selective; do
        rm -f log
        check "$kind, $how" quern-train $flags ${!kind} --recompute-granularity $how --log-file log
        equal "$kind, $how: the same bits" "$(numbers log)" "$(numbers $kind.log)"
    done
    shared 2 $kind --tensor-model-parallel-size 2 --sequence-parallel
    check "$kind, bf16" quern-train $flags ${!kind} --bf16 --main-params-dtype bf16
    check "$kind, evaluated" quern-eval --load $kind --data-path data --part whole --eval-iters 2
    check "$kind, a sample" quern-generate --load $kind --prompt-ids 1,2,3 --max-tokens 4 --print-ids
    status "$kind: transformers' models have none" 3 quern-checkpoint export --output $kind.hf $kind
done
shared 2 gpt --tensor-model-parallel-size 2
shared 2 gpt --context-parallel-size 2
shared 2 documents --context-parallel-size 2
shared 2 rope --pipeline-model-parallel-size 2
for kind in moe lora_moe; do
    shared 2 $kind --pipeline-model-parallel-size 2
    shared 2 $kind --expert-model-parallel-size 2 --recompute-granularity full
done
for kind in gpt rope moe lora lora_moe; do
    shared 2 $kind --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
    shared 2 $kind --data-parallel-sharding-strategy optim_grads_params
done
shared 2 documents --use-distributed-optimizer
shared 2 per_token --use-distributed-optimizer

# The names are Megatron's, the bytes the same for any division.
check 'tensors' quern-checkpoint info gpt --tensors
for name in enorm hnorm eh_proj final_layernorm transformer_layer.mlp.linear_fc1; do
    has "$name" out "mtp.layers.1.$name.weight"
done
check 'tensors of experts' quern-checkpoint info moe --tensors
has 'with biases of their choice' out 'mtp.layers.0.transformer_layer.mlp.router.expert_bias'
same_joined rope

# Adapters of these layers too; merged they give the same losses.
# further_on KIND PATTERN: how many of a kind's tensors of both depths match.
further_on() { quern-checkpoint info $1 --tensors | grep -c "^  mtp\.layers\.[01]\.transformer_layer\.$2"; }
equal 'adapters of both depths' "$(further_on lora '.*\.lora_[AB]\.')" 16
equal 'of their experts' "$(further_on lora_moe 'mlp\.experts\.local_experts\.[0-3]\.linear_fc[12]\.lora_[AB]\.')" 32
for kind in lora lora_moe; do
    check "$kind, merged" quern-checkpoint merge $kind --save $kind.merged
    rm -f log one.log
    check "$kind goes on" quern-train $flags ${!kind} --load $kind --finetune --train-iters 1 --log-file one.log
    plainly=${!kind}
    check "$kind, merged, goes on" \
        quern-train $flags ${plainly%%--lora*} --load $kind.merged --finetune --train-iters 1 --log-file log
    for f in one.log log; do
        numbers $f | grep loss | tr -cs '0-9.\n' ' ' >$f.losses
    done
    check "$kind: the same losses" awk '{ getline x <"log.losses"; split(x, y); for (i = 1; i <= NF; i++) { d = $i - y[i]; n++;
        if (d * d > 1e-11) exit 1 } } END { exit n != 3 }' one.log.losses
done

# The main loss is that of the next token, which the others change by its gradient.
rm -f log
check 'without' quern-train $flags ${rope#* * } --log-file log
equal 'the first loss is the same' "$(numbers rope.log | grep '"loss"' | head -n 1)" "$(numbers log | head -n 1)"
check 'the last is not' bash -c "! cmp -s <(grep -o '\"loss\":[^,]*' rope.log | tail -n 1) <(grep -o '\"loss\":[^,]*' log | tail -n 1)"
rm -f log
check 'counted as nothing' quern-train $flags $rope --mtp-loss-scaling-factor 0 --log-file log
equal 'there are losses' "$(grep -c mtp_losses log)" 6

# refused NAME RANKS FLAG...: by the flag's name.
refused() {
    status "$1" 3 plain $2 quern-train $flags --distributed-backend tcp ${*:3}
    has "$1: is named" err "mtp-num-layers"
}
refused 'FP8' 1 $rope --bf16 --fp8-format hybrid
refused 'an output layer apart on another stage' 2 $rope --untie-embeddings-and-output-weights --pipeline-model-parallel-size 2
refused 'positions on another stage' 2 --mtp-num-layers 1 --pipeline-model-parallel-size 2
status 'another number than the checkpoint has' 2 quern-train $flags ${rope/num-layers 2/num-layers 1} --load rope
has 'is named' err 'mtp-num-layers is 2, not 1'
status 'more than tokens' 2 quern-train $flags --mtp-num-layers 4 --seq-length 4
has 'are named' err 'mtp-num-layers'
finish
