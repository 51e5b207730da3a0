# shellcheck shell=bash
# Sequences shared by ranks train as in one process: losses and gradient norms over 20 steps (dropout
# included) and validation losses within 1e-5.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"

for m in gpt llama; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 2 --context-parallel-size 2
    as_one $m 4 --context-parallel-size 4
    as_one $m 4 --context-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel
    as_one $m 4 --context-parallel-size 2 # and two data-parallel ones
    as_one $m 2 --context-parallel-size 2 --recompute-granularity full
done
as_one gpt 8 --context-parallel-size 2 --tensor-model-parallel-size 2 # and two data-parallel ones
as_one gpt 4 --context-parallel-size 2 --pipeline-model-parallel-size 2
as_one gpt 4 --context-parallel-size 2 --use-distributed-optimizer

# shellcheck disable=SC2086
status 'a sequence that ranks cannot cut' 2 ranks_train 3 $gpt --context-parallel-size 3
has 'is said' err '3 ranks cut a sequence in 6 equal parts; --seq-length 16 is no multiple of that'

# A checkpoint goes on in one process.
sed -n '11,$p' gpt.jsonl >rest.jsonl
# shellcheck disable=SC2086
check 'half of it' ranks_train 2 $gpt --context-parallel-size 2 \
    --exit-interval 10 --save half
rm -f log.jsonl
# shellcheck disable=SC2086
check 'the rest' quern-train $gpt --save half --log-file log.jsonl
check 'the rest: as without a stop' close rest.jsonl log.jsonl 23

# With --deterministic the bits do not depend on how many data-parallel ranks there are.
for n in 2 4; do
    # shellcheck disable=SC2086
    check "deterministic, $n ranks" ranks_train $n $gpt --context-parallel-size 2 \
        --deterministic --log-file bits$n.jsonl
    grep -oE '"(loss|grad_norm|valid_loss)":[^,}]*' bits$n.jsonl >bits$n
done
same 'deterministic: the same bits' bits2 bits4
finish
