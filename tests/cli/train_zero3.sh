# shellcheck shell=bash
# Ranks that share gradients (optim_grads) and weights (optim_grads_params) train as one process does: losses and gradient norms of
# 20 steps within 1e-5, with --deterministic to the same bits.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"

# shellcheck disable=SC2086
{
    check 'gpt, one process' quern-train $gpt --log-file gpt.jsonl
    as_one gpt 2 $zero2
    as_one gpt 2 $zero3 $beside
    as_one gpt 4 $zero3 $beside --pipeline-model-parallel-size 2
}

# --deterministic: the same bits for any number of ranks and whatever they share, also with bf16 weights.
same_bits --bf16

# What is refused, before anything is allocated.
# shellcheck disable=SC2086
{
    status 'a tree of three ranks' 2 mpirun --oversubscribe -n 3 quern-train $gpt --global-batch-size 6 $zero2 --deterministic
    has 'is said' err 'a power of two of data-parallel ranks'
    status 'rounding and the same bits' 2 quern-train $gpt --deterministic --grad-reduce-in-bf16
    has 'is said' err 'depends on the number of ranks'
    status 'sequences in parts and the same bits' 2 mpirun --oversubscribe -n 4 quern-train $gpt $zero2 --deterministic \
        --context-parallel-size 2
    has 'is said' err 'sum over parts of a sequence'
    status 'bf16 weights of a training in fp32' 2 quern-train $gpt --main-params-dtype bf16
    has 'is said' err 'main-params-dtype bf16 needs --bf16'
}
finish
