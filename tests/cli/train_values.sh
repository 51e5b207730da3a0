#!/usr/bin/env bash
# quern train: embeddings of values, plain in all layers and gated in some.  Runs go on from their checkpoints, ranks divide them as
# any model, stages behind the first look tokens up; text through the cache is as without; Muon leaves the tables to AdamW.
# shellcheck disable=SC2034,SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
flags="$tiny --num-layers 3 --num-attention-heads 4 --group-query-attention --num-query-groups 2 --micro-batch-size 1
    --global-batch-size 4 --lr 0.005 --hidden-dropout 0.1 --train-iters 6 --init-method-std 0.1"
rope='--position-embedding-type rope --normalization RMSNorm --disable-bias-linear'
plain="$rope --value-embedding-freq 1 --value-embedding-multiplier 0.5 --untie-embeddings-and-output-weights"
gated="$rope --value-embedding-freq 2 --value-embedding-gate 12 --value-embedding-multiplier 3 --disable-norm-weight --qk-layernorm
    --embedding-layernorm --squared-relu"
muon="$gated --optimizer muon --muon-fp32-matmul-prec high"
for kind in plain gated; do
    alone $kind 3 6
    check "$kind learns" learns $kind.log
    on 2 $kind --tensor-model-parallel-size 2 --sequence-parallel
    on 3 $kind --pipeline-model-parallel-size 3 --recompute-granularity full
    on 2 $kind --context-parallel-size 2 --recompute-granularity selective
    on 2 $kind --data-parallel-sharding-strategy optim_grads_params
    check "$kind, FP8" quern-train $flags ${!kind} --bf16 --fp8-format hybrid
    cached $kind
done
alone muon 3 6
on 2 muon --tensor-model-parallel-size 2
differ plain gated muon
check 'a checkpoint has tables of two layers' test "$(grep -ao 'layers.[0-9].self_attention.value_embedding.weight' \
    gated/iter_0000006/model.safetensors | sort -u | tr '\n' ' ')" = \
    'layers.0.self_attention.value_embedding.weight layers.2.self_attention.value_embedding.weight '
status 'a gate of nothing' 2 quern-train $flags --value-embedding-gate 12
has 'is said' err 'needs --value-embedding-freq'
status 'transformers, which has no such model' 3 quern-checkpoint export plain --output hf
has 'is told' err "value_embedding_freq"
finish
