#!/usr/bin/env bash
# Output logits that are capped, and a loss of their log-sum-exp: on one process and on tensor ranks, evaluated and generated from.
# shellcheck disable=SC2034,SC2048,SC2086,SC2046
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
data
flags="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61
    --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --attention-dropout 0 --hidden-dropout 0 --eval-iters 0 -j 1 --device cpu
    --train-iters 6 --init-method-std 0.3"
plain_head=
cap="--final-logit-softcapping 2"
z="--z-loss-coeff 0.01"
both="$cap $z"
kinds='plain_head cap z both'
numbers() { grep -oE '"(loss|grad_norm)":[^,}]*' "$1"; }

for kind in $kinds; do
    rm -f log
    check "$kind" quern-train $flags ${!kind} --save $kind --save-interval 3 --log-file log
    cp log $kind.log
    rm -f log
    check "$kind, resumed" quern-train $flags ${!kind} --load $kind --ckpt-step 3 --log-file log
    equal "$kind, resumed: the same bits" "$(numbers log)" "$(numbers $kind.log | tail -n 6)"
    for how in --tensor-model-parallel-size --pipeline-model-parallel-size --context-parallel-size; do
        rm -f log
        check "$kind, $how" plain 2 quern-train $flags ${!kind} --distributed-backend tcp --log-file log $how 2
        check "$kind, $how: as one process" close $kind.log log 12
    done
    check "$kind, bf16" quern-train $flags ${!kind} --bf16
    check "$kind, evaluated" quern-eval --load $kind --data-path data --part whole --eval-iters 2
    cp out $kind.eval
    check "$kind, a sample" quern-generate --load $kind --prompt-ids 1,2,3 --max-tokens 40 --print-ids --temperature 1 --seed 3
    cp out $kind.sample
    status "$kind, exported" $(case $kind in cap | both) echo 3 ;; *) echo 0 ;; esac) quern-checkpoint export --output $kind.hf $kind
done
equal 'no two have the same losses' "$(sort -u <(for k in $kinds; do numbers $k.log | tail -n 1; done) | wc -l)" \
    "$(wc -w <<<"$kinds")"
equal 'the first loss is without the other' "$(numbers z.log | head -n 1)" "$(numbers plain_head.log | head -n 1)"
check 'a cap is of the evaluation' bash -c '! cmp -s plain_head.eval cap.eval'
finish
