#!/usr/bin/env bash
# quern train --mlp-activation: each kind of MLP trains, on one process or on tensor ranks, and goes on from its checkpoints.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
data
# At a rate five times as high the first steps of AdamW make 1e-4 of a difference in the last place (SwiGLU, QUERN_ISA=base).
flags="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61
    --micro-batch-size 2 --global-batch-size 4 --lr 0.002 --attention-dropout 0 --hidden-dropout 0 --eval-iters 0 -j 1 --device cpu
    --train-iters 8"
# numbers LOG: the losses and norms.
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }

# All that there are, by the help.
kinds=$(quern-train --help | grep -A 1 -e --mlp-activation | grep -oE '[a-z0-9-]+(\|[a-z0-9-]+)+' | tr '|' ' ')
has 'kinds are known' <(echo "$kinds") 'gelu swiglu'
for kind in $kinds; do
    rm -f log
    check "$kind" quern-train $flags --mlp-activation $kind --save $kind --save-interval 4 --log-file log
    cp log $kind.log
    numbers log >$kind.numbers
    check "$kind learns" awk -F: '/"loss"/ { if (!n++) first = $2; last = $2 } END { exit !(n == 8 && last < first) }' $kind.numbers
    rm -f log
    check "$kind, resumed" quern-train $flags --mlp-activation $kind --load $kind --ckpt-step 4 --log-file log
    equal "$kind, resumed: the same bits" "$(numbers log)" "$(tail -n 8 $kind.numbers)"
    rm -f log
    check "$kind, two tensor ranks" plain 2 quern-train $flags --mlp-activation $kind --distributed-backend tcp --log-file log \
        --tensor-model-parallel-size 2
    check "$kind, two tensor ranks: as one process" close $kind.log log 16
    rm -f log
    check "$kind, FP8" quern-train $flags --mlp-activation $kind --bf16 --fp8-format hybrid --log-file log
    check "$kind, experts" quern-train $flags --mlp-activation $kind --num-experts 4 --moe-ffn-hidden-size 16
done
equal 'no two kinds have the same losses' "$(sort -u <(for k in $kinds; do tail -n 1 $k.numbers; done) | wc -l)" "$(wc -w <<<"$kinds")"
rm -f log
check 'Megatron'"'"'s flag for a kind' quern-train $flags --swiglu --log-file log
equal 'is that kind' "$(numbers log)" "$(cat swiglu.numbers)"
check 'a kind beside a preset that has another' quern-train $flags --preset llama3-8b --mlp-activation gelu --num-query-groups 2 --verbose
has 'goes before it' out 'mlp-activation                       gelu'
status 'another kind than the checkpoint has' 2 quern-train $flags --mlp-activation swiglu --ffn-hidden-size 128 --load gelu
has 'is named' err 'mlp-activation'
rm -f log
check 'and for another' quern-train $flags --squared-relu --log-file log
equal 'is that one' "$(numbers log)" "$(cat relu2.numbers)"
status 'two kinds' 2 quern-train $flags --squared-relu --swiglu
has 'are named' err '--swiglu and --mlp-activation'
status 'a kind that there is not' 2 quern-train $flags --mlp-activation tanh
finish
