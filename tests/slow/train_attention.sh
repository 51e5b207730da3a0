# shellcheck shell=bash
# Kinds of attention by layers, by Megatron's names: ranks train as one process does, over 20 steps (dropout included) and
# validation.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck disable=SC2034
window="$gpt --window-size 5,0 --attn-logit-softcapping 2 --softmax-scale 0.5"
# shellcheck disable=SC2034
mixed="$llama --window-size 3 --window-attn-skip-freq 2 --softmax-type learnable
    --attention-output-gate --no-rope-freq 3 --rotary-base-local 100"
# shellcheck disable=SC2034
latent="$gpt --swiglu --normalization RMSNorm --position-embedding-type yarn --rope-scaling-original 8 --qk-layernorm
    --multi-latent-attention --q-lora-rank 12 --kv-lora-rank 10 --qk-head-dim 6 --qk-pos-emb-head-dim 4 --v-head-dim 5
    --mscale 0.7 --mscale-all-dim 1.4"

for m in window mixed latent; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 2 --context-parallel-size 2
    as_one $m 4 --context-parallel-size 4
    as_one $m 4 --context-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel
    as_one $m 2 --tensor-model-parallel-size 2 --recompute-granularity full
    as_one $m 4 --pipeline-model-parallel-size 2
    as_one $m 2 --data-parallel-sharding-strategy optim_grads_params
done
