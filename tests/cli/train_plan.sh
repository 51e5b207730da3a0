# shellcheck shell=bash
# A run says what it has allocated, by kind, and holds it against its plan, to the byte on every rank; SWEEP=1: in every layout.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
small="--train-iters 2 --eval-interval 0 --log-interval 100"
# planned MODEL N ARG...: N ranks allocate what is planned.
planned() {
    local name=$1 n=$2
    shift 2
    rm -rf store
    # shellcheck disable=SC2086
    check "$name, $n ranks: $*" timeout -k 10 600 mpirun --oversubscribe -n "$n" quern-train ${!name} $small "$@"
    equal "$name, $n ranks: $*: memory as planned" "$(grep '^memory allocated' out | grep -c 'as planned$')" 1
}
planned gpt 1 --save store
planned llama 1 --bf16 --async-save --save store
if [ -n "${SWEEP-}" ]; then
    planned gpt 1 --recompute-granularity full --recompute-method uniform --recompute-num-layers 2
    planned llama 1 --recompute-granularity full --recompute-method block --recompute-num-layers 1
    planned gpt 1 --bf16 --recompute-granularity selective --micro-batch-size 4
    planned gpt 1 --bf16 --fp8-format hybrid
    planned llama 1 --bf16 --fp8-format hybrid --num-experts 4 --moe-ffn-hidden-size 32
    planned gpt 1 --mtp-num-layers 2 --recompute-granularity full --save store
    planned llama 1 --mtp-num-layers 1 --num-experts 4 --bf16
    planned gpt 2 --deterministic
    planned gpt 2 --tensor-model-parallel-size 2 --save store
    planned llama 2 --tensor-model-parallel-size 2 --sequence-parallel --bf16 --async-save --save store
    planned llama 2 --context-parallel-size 2 --bf16
    planned gpt 2 --pipeline-model-parallel-size 2 --async-save --save store
    planned llama 2 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --bf16
    planned gpt 2 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --num-layers 6 --recompute-granularity full \
        --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
    planned llama 2 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --num-experts 4 --moe-layer-freq 2
    planned gpt 2 --pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 1 --recompute-granularity selective
    planned gpt 2 --use-distributed-optimizer --async-save --save store
    planned llama 2 --use-distributed-optimizer --bf16 --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 2000 --async-save --save store
    planned gpt 2 --data-parallel-sharding-strategy optim_grads --use-distributed-optimizer --bf16
    planned llama 4 --data-parallel-sharding-strategy optim_grads_params --use-distributed-optimizer --deterministic
    planned gpt 2 --optimizer-cpu-offload --use-distributed-optimizer --grad-reduce-in-bf16 --bf16
    planned llama 2 --num-experts 4 --use-distributed-optimizer
    planned gpt 2 --optimizer muon --tensor-model-parallel-size 2 --async-save --save store
    planned llama 2 --optimizer muon --num-experts 4 --use-distributed-optimizer --async-save --save store
    planned llama 2 --exp-avg-dtype 8bit --exp-avg-sq-dtype 8bit --num-experts 4 --use-distributed-optimizer --async-save --save store
    planned llama 2 --optimizer adafactor --num-experts 4 --tensor-model-parallel-size 2 --async-save --save store
    planned gpt 1 --bf16 --fp8-format hybrid --first-last-layers-bf16 --recompute-granularity selective
    planned llama 2 --lora-rank 4 --tensor-model-parallel-size 2 --num-experts 4 --lora-target '*' --async-save --save store
    planned llama 2 --lora-rank 4 --data-parallel-sharding-strategy optim_grads_params --bf16 --fp8-format hybrid
    planned llama 4 --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 --async-save --save store
fi
n=${SWEEP:+8} layout="--tensor-model-parallel-size 2 ${SWEEP:+--pipeline-model-parallel-size 2} --use-distributed-optimizer --bf16 --async-save --save store"
# shellcheck disable=SC2086
planned gpt ${n:-4} $layout
has 'the step is held against the plan too' out 'a step took '
# What --plan says of such a run is what it allocates.
used=$(sed -nE 's/^memory allocated: weights ([0-9]+) \+ gradients ([0-9]+) \+ optimizer ([0-9]+) \+ activations ([0-9]+) .*/\1+\2+\3+\4/p' out)
used=$((used))
# shellcheck disable=SC2086
check 'the plan of it' quern-train --plan --plan-ranks ${n:-4} $gpt $layout
planned=$(sed -nE 's/^memory of the fullest rank: .*\(([0-9]+) bytes\)/\1/p' out)
equal "has these bytes" "$used" "$planned"
has 'and the copy for saving, of the host' out 'memory of its host: optimizer 0.00 + copy for saving 0.00 GB'
finish
