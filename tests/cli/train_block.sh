#!/usr/bin/env bash
# quern train: where norms stand, modules side by side, weights of norms as the offset from one, multipliers, biases of some layers
# alone.  Each trains, goes on from its checkpoint, on tensor ranks with shared rows and on stages; FP8 takes it; text is generated
# through the cache as without.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
data
flags="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61
    --micro-batch-size 2 --global-batch-size 4 --lr 0.0005 --attention-dropout 0 --hidden-dropout 0.1 --eval-iters 0 -j 1
    --device cpu --train-iters 6 --init-method-std 0.1"
# numbers LOG: the losses and norms.
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }
# ranks NAME ARGS...: on two ranks, as on one process.
ranks() {
    rm -f log
    check "$kind, $1" plain 2 quern-train $flags ${blocks[$kind]} --distributed-backend tcp --log-file log "${@:2}"
    check "$kind, $1: as one process" close $kind.log log 12
}
rope='--position-embedding-type rope --normalization RMSNorm --disable-bias-linear'
declare -A blocks=(
    [post]="$rope --norm-placement post --qk-layernorm"
    [both]="$rope --norm-placement both --apply-layernorm-1p --embedding-multiplier 5.657 --add-proj-bias"
    [beside]="--parallel-block two-norms --residual-multiplier 0.8 --add-mlp-bias --disable-bias-linear"
    [beside-one]="--parallel-block one-norm --logits-multiplier 0.5"
)
for kind in post both beside beside-one; do
    rm -f log
    check "$kind" quern-train $flags ${blocks[$kind]} --save $kind --save-interval 3 --log-file log
    cp log $kind.log
    check "$kind learns" awk -F: '/"loss"/ { if (!n++) first = $2; last = $2 } END { exit !(n == 6 && last < first) }' <(numbers log)
    rm -f log
    check "$kind, resumed" quern-train $flags ${blocks[$kind]} --load $kind --ckpt-step 3 --log-file log
    equal "$kind, resumed: the same bits" "$(numbers log)" "$(numbers $kind.log | tail -n 6)"
    ranks 'tensor ranks that share rows' --tensor-model-parallel-size 2 --sequence-parallel
    ranks 'stages' --pipeline-model-parallel-size 2 --recompute-granularity full
    ranks 'context ranks' --context-parallel-size 2
    check "$kind, FP8" quern-train $flags ${blocks[$kind]} --bf16 --fp8-format hybrid
    check "$kind, a greedy text" quern-generate --load $kind --prompt-ids 5,9,2 --temperature 0 --max-tokens 6 --print-ids
    cp out $kind.ids
    check "$kind, its first half" quern-generate --load $kind --prompt-ids 5,9,2 --temperature 0 --max-tokens 3 --print-ids
    # shellcheck disable=SC2046
    check "$kind, from there" quern-generate --load $kind --prompt-ids 5,9,2,$(tr -s ' \n' , <out | sed 's/,$//') --temperature 0 \
        --max-tokens 3 --print-ids
    equal "$kind, from there the same" "$(tr -s ' \n' '\n\n' <out)" "$(tr -s ' \n' '\n\n' <$kind.ids | tail -n 3)"
done
equal 'no two have the same losses' "$(for k in post both beside beside-one; do numbers $k.log | tail -n 1; done | sort -u | wc -l)" 4
status 'a norm over all heads among tensor ranks' 2 plain 2 quern-train $flags --qk-layernorm --qk-layernorm-full-width \
    --distributed-backend tcp --tensor-model-parallel-size 2
has 'is named' err 'qk-layernorm-full-width'
status 'a checkpoint of another block' 2 quern-train $flags --norm-placement post --load both
has 'is named' err 'normalization'
finish
