# shellcheck shell=bash
# --deterministic: losses, norms, weights and moments of any number of stages, interleaved or not, of any number of data-parallel
# ranks, and whatever these share, are one process's bytes.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck disable=SC2034,SC2154
{
    moe="$llama --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-z-loss-coeff 0.001"
    capped="$gpt --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-expert-capacity-factor 0.6"
}
# shellcheck disable=SC2154
short="--train-iters 8 --eval-interval 4 --eval-iters 1 --deterministic"
pp=--pipeline-model-parallel-size virtual="--num-layers-per-virtual-pipeline-stage 1"

# trains NAME MODEL N ARG...: N ranks with ARG; leaves NAME.jsonl and the checkpoint jNAME.
trains() {
    local to=$1 model=$2 n=$3 run="ranks_train $3"
    shift 3
    [ "$n" != 1 ] || run=quern-train
    rm -rf "$to" "$to.jsonl"
    # shellcheck disable=SC2086
    check "$model, $n ranks: $*" $run ${!model} $short "$@" --log-file "$to.jsonl" --save "$to"
    check "$model, $n ranks: $*: joined" joined "$to"
}
# as_bits MODEL N ARG...: the same as what trains left at `one`.
as_bits() {
    local f
    # shellcheck disable=SC2068
    trains many $@
    same "$*: losses and norms" <(losses one.jsonl) <(losses many.jsonl)
    for f in model optimizer; do
        same "$*: $f" {jone,jmany}/iter_0000008/$f.safetensors
    done
}

# gpt's embedding is tied, llama's is not.
for m in gpt llama; do
    trains one $m 1
    as_bits $m 2 $pp 2
    as_bits $m 4 $pp 4
    as_bits $m 2 $pp 2 "$virtual"
    as_bits $m 4 $pp 2
    as_bits $m 4 $pp 2 "$virtual" --use-distributed-optimizer "$beside" --ddp-bucket-size 5000
    as_bits $m 4 $pp 2 "$virtual" "$zero2"
    as_bits $m 4 $pp 2 "$zero3" "$beside"
    as_bits $m 2 "$zero3"
    as_bits $m 8 $pp 4 --use-distributed-optimizer
done
# Experts, on one rank each or shared: the same choices for every token.
ep=--expert-model-parallel-size
trains one moe 1
as_bits moe 4 $pp 2 "$virtual" --use-distributed-optimizer
as_bits moe 4 $pp 4 "$zero3"
as_bits moe 2 $ep 2
as_bits moe 4 $ep 4 --use-distributed-optimizer "$beside"
as_bits moe 4 $ep 2 $pp 2
as_bits moe 2 $ep 2 "$zero2"
as_bits moe 4 $ep 2 "$zero3" "$beside"
trains one capped 1
as_bits capped 4 $ep 2 --use-distributed-optimizer
as_bits capped 4 $ep 4 "$zero2" --recompute-granularity full
# In bf16, where a stream leaves a stage rounded once; with layers computed again; in FP8.
trains one gpt 1 --bf16
as_bits gpt 4 --bf16 $pp 2 "$virtual" "$zero3" "$beside"
as_bits gpt 2 --bf16 $pp 2 --recompute-granularity full
trains one moe 1 --bf16
as_bits moe 4 --bf16 $ep 2 "$zero3" "$beside"
trains one gpt 1 --bf16 --fp8-format hybrid
as_bits gpt 4 --bf16 --fp8-format hybrid $pp 2 --use-distributed-optimizer
# Where the embedding is not tied, also without.
trains one llama 2 --no-deterministic
as_bits llama 4 --no-deterministic $pp 2 "$virtual"
# Stages change no bit beside tensor and context ranks either.
trains one gpt 2 --tensor-model-parallel-size 2 --sequence-parallel
as_bits gpt 4 --tensor-model-parallel-size 2 --sequence-parallel $pp 2 "$virtual"
trains one gpt 2 --context-parallel-size 2
as_bits gpt 4 --context-parallel-size 2 $pp 2
finish
