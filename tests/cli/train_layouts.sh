# shellcheck shell=bash
# Two ranks that share a model, its experts, its documents or the optimizer train as one process does: one layout of each kind;
# all of them, and what they mean together, are in tests/slow.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
# shellcheck disable=SC2034,SC2154
{
    moe="$llama --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-aux-loss-coeff 0.01
        --moe-shared-expert-intermediate-size 40"
    documents="${gpt/--vocab-size 61/--vocab-size 9} --eod-id 7 --reset-position-ids --reset-attention-mask --eod-mask-loss"
}
for m in gpt moe documents; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
done
as_one gpt 2 --tensor-model-parallel-size 2 --sequence-parallel
as_one gpt 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
as_one moe 2 --expert-model-parallel-size 2
check 'how evenly experts are used is in the log' grep -q '"load_balancing_loss":1\.' log.jsonl
as_one documents 2 --context-parallel-size 2

# Ranks that share the optimizer's state train as those that each have all of it, to the bit.
# shellcheck disable=SC2086
{
    check 'two ranks' timeout -k 10 600 mpirun --oversubscribe -n 2 quern-train $gpt --log-file a.jsonl
    check 'they share the optimizer' timeout -k 10 600 mpirun --oversubscribe -n 2 quern-train $gpt --log-file b.jsonl \
        --use-distributed-optimizer --ddp-bucket-size 5000 --overlap-grad-reduce --overlap-param-gather
}
same 'the same bits' <(losses a.jsonl) <(losses b.jsonl)

# With --deterministic stages train as one process does, to the bit.
# shellcheck disable=SC2086
{
    check 'one process' quern-train $gpt --deterministic --log-file a.jsonl
    check 'two stages' timeout -k 10 600 mpirun --oversubscribe -n 4 quern-train $gpt --deterministic --log-file b.jsonl \
        --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --use-distributed-optimizer
}
same 'the same bits by stages' <(losses a.jsonl) <(losses b.jsonl)

# A checkpoint of stages goes on in one process.
sed -n '11,$p' gpt.jsonl >rest.jsonl
# shellcheck disable=SC2086
{
    check 'half of it, by stages' timeout -k 10 600 mpirun --oversubscribe -n 2 quern-train $gpt --pipeline-model-parallel-size 2 \
        --exit-interval 10 --save half
    rm -f log.jsonl
    check 'the rest' quern-train $gpt --save half --log-file log.jsonl
}
check 'the rest: as without a stop' close rest.jsonl log.jsonl 23

# shellcheck disable=SC2086
status 'heads that ranks cannot share' 2 mpirun --oversubscribe -n 3 quern-train $gpt --tensor-model-parallel-size 3
has 'is said' err '3 ranks cannot share 4 attention heads'
# shellcheck disable=SC2086
status 'documents without an id' 2 quern-train $gpt --reset-attention-mask
has 'is said too' err '--reset-attention-mask needs --eod-id'
finish
