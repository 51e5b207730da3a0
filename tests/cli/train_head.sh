#!/usr/bin/env bash
# Output logits that are capped, and a loss of their log-sum-exp: on one process and on tensor ranks, evaluated and generated from.
# shellcheck disable=SC2034,SC2048,SC2086,SC2046
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --hidden-dropout 0 --train-iters 6 --init-method-std 0.3"
plain_head=
cap="--final-logit-softcapping 2"
z="--z-loss-coeff 0.01"
both="$cap $z"
kinds='plain_head cap z both'

for kind in $kinds; do
    alone $kind 3 6
    for how in --tensor-model-parallel-size --pipeline-model-parallel-size --context-parallel-size; do
        on 2 $kind $how 2
    done
    check "$kind, bf16" quern-train $flags ${!kind} --bf16
    check "$kind, evaluated" quern-eval --load $kind --data-path data --part whole --eval-iters 2
    cp out $kind.eval
    check "$kind, a sample" quern-generate --load $kind --prompt-ids 1,2,3 --max-tokens 40 --print-ids --temperature 1 --seed 3
    cp out $kind.sample
    status "$kind, exported" $(case $kind in cap | both) echo 3 ;; *) echo 0 ;; esac) quern-checkpoint export --output $kind.hf $kind
done
differ $kinds
equal 'the first loss is without the other' "$(numbers z.log | head -n 1)" "$(numbers plain_head.log | head -n 1)"
check 'a cap is of the evaluation' bash -c '! cmp -s plain_head.eval cap.eval'
finish
