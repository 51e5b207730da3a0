#!/usr/bin/env bash
# quern train: where norms stand, modules side by side, weights of norms as the offset from one or none, a norm of the embeddings,
# multipliers, biases of some layers alone.  Each trains, goes on from its checkpoint, on tensor ranks with shared rows, on
# stages and on ranks that divide the weights; FP8 takes it; text is generated through the cache as without.
# shellcheck disable=SC2034,SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --micro-batch-size 2 --global-batch-size 4 --lr 0.0005 --hidden-dropout 0.1 --train-iters 6 --init-method-std 0.1"
rope='--position-embedding-type rope --normalization RMSNorm --disable-bias-linear'
post="$rope --norm-placement post --qk-layernorm --embedding-multiplier 5.657"
both="$rope --norm-placement both --apply-layernorm-1p --embedding-layernorm --add-proj-bias --untie-embeddings-and-output-weights"
beside="--parallel-block two-norms --residual-multiplier 0.8 --add-mlp-bias --disable-bias-linear"
beside_one="--parallel-block one-norm --logits-multiplier 0.5"
bare="$rope --disable-norm-weight --embedding-layernorm --qk-layernorm --squared-relu --final-logit-softcapping 15 --lr 0.002"
kinds='post both beside beside_one bare'
for kind in $kinds; do
    alone $kind 3 6
    check "$kind learns" learns $kind.log
    on 2 $kind --tensor-model-parallel-size 2 --sequence-parallel
    on 2 $kind --pipeline-model-parallel-size 2 --recompute-granularity full
    on 2 $kind --context-parallel-size 2
    on 2 $kind --data-parallel-sharding-strategy optim_grads_params
    check "$kind, FP8" quern-train $flags ${!kind} --bf16 --fp8-format hybrid
    cached $kind
done
differ $kinds
status 'a norm over all heads among tensor ranks' 2 plain 2 quern-train $flags --qk-layernorm --qk-layernorm-full-width \
    --distributed-backend tcp --tensor-model-parallel-size 2
has 'is named' err 'qk-layernorm-full-width'
status 'a checkpoint of another block' 2 quern-train $flags --norm-placement post --untie-embeddings-and-output-weights \
    --load both
has 'is named' err 'normalization'
finish
