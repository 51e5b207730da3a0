# shellcheck shell=bash
# A model shared by ranks trains as it does in one process: losses and gradient norms over 20 steps
# (dropout included) and validation losses within 1e-5.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"

for m in gpt llama; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 2 --tensor-model-parallel-size 2
    as_one $m 4 --tensor-model-parallel-size 2 --sequence-parallel
    as_one $m 2 --tensor-model-parallel-size 2 --sequence-parallel --recompute-granularity full
    as_one $m 2 --tensor-model-parallel-size 2 --sequence-parallel --recompute-granularity selective
done
as_one gpt 4 --tensor-model-parallel-size 4 --sequence-parallel

# Stages: gpt's embedding is tied, so the first and the last have it; llama's is not.
for m in gpt llama; do
    as_one $m 2 --pipeline-model-parallel-size 2
    as_one $m 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --recompute-granularity full
    cp log.jsonl $m.stages.jsonl
done
as_one gpt 8 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2
as_one gpt 4 --pipeline-model-parallel-size 4
as_one gpt 4 --pipeline-model-parallel-size 2
as_one gpt 2 --pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 1 --recompute-granularity selective
as_one gpt 3 --pipeline-model-parallel-size 3 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
as_one llama 4 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel --num-virtual-stages-per-pipeline-rank 2

as_one llama 4 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --use-distributed-optimizer --overlap-grad-reduce \
    --overlap-param-gather --ddp-bucket-size 5000
# --deterministic holds for stages and their tied embedding too.
for n in 4 8; do
    # shellcheck disable=SC2086
    check "$n deterministic ranks" ranks_train $n $gpt --tensor-model-parallel-size 2 \
        --pipeline-model-parallel-size 2 --deterministic --exit-interval 4 --save bits$n
    check "their files as one" quern-checkpoint join bits$n --save whole$n
done
same 'the same weights' whole4/iter_0000004/model.safetensors whole8/iter_0000004/model.safetensors
same 'the same moments' whole4/iter_0000004/optimizer.safetensors whole8/iter_0000004/optimizer.safetensors

# Every message is the one that is due, also where processes may not read each other's memory, as in containers.
check 'messages of two interleaved stages' mpirun --oversubscribe -n 2 "$B/tests/pipeline_ranks" 3 6 0
check 'messages of four stages' mpirun --oversubscribe -n 4 "$B/tests/pipeline_ranks" 1 8 0
check 'messages without the help of the system' env OMPI_MCA_btl_vader_single_copy_mechanism=none \
    mpirun --oversubscribe -n 4 "$B/tests/pipeline_ranks" 2 8 0

# A checkpoint of one layout goes on in another.
sed -n '11,$p' gpt.jsonl >rest.jsonl
# shellcheck disable=SC2086
check 'half of it' ranks_train 8 $gpt --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 --exit-interval 10 --save half
for how in '1' '2' '4 --pipeline-model-parallel-size 4' '8 --tensor-model-parallel-size 4 --sequence-parallel'; do
    rm -rf go log.jsonl
    cp -r half go
    # shellcheck disable=SC2086
    check "the rest: $how" ranks_train ${how%% *} $gpt ${how#?} --save go \
        --log-file log.jsonl
    check "the rest: $how: as without a stop" close rest.jsonl log.jsonl 23
done
rm -rf half
# shellcheck disable=SC2086
check 'half of it, by stages' ranks_train 2 $gpt --pipeline-model-parallel-size 2 \
    --num-layers-per-virtual-pipeline-stage 1 --exit-interval 10 --save half
rm -f log.jsonl
# shellcheck disable=SC2086
check 'the rest of it, by the same stages' ranks_train 2 $gpt --pipeline-model-parallel-size 2 \
    --num-layers-per-virtual-pipeline-stage 1 --save half --log-file log.jsonl
same 'the rest of it, by the same stages: the same bits' <(sed -n '11,$p' gpt.stages.jsonl | cut -d, -f 1-3) <(cut -d, -f 1-3 log.jsonl)

# shellcheck disable=SC2086
status 'heads that ranks cannot share' 2 ranks_train 3 $gpt --tensor-model-parallel-size 3
has 'is said' err '3 ranks cannot share 4 attention heads'
# shellcheck disable=SC2086
status 'groups that ranks cannot share' 2 ranks_train 4 $llama --tensor-model-parallel-size 4
has 'is said' err '4 ranks cannot share 2 query groups'
# shellcheck disable=SC2086
status 'layers that stages cannot share' 2 ranks_train 3 $gpt --pipeline-model-parallel-size 3
has 'is said' err '4 layers cannot be shared evenly by 3 stages'
# shellcheck disable=SC2086
status 'micro-batches that interleaved stages cannot take' 2 ranks_train 2 $gpt --global-batch-size 6 \
    --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
has 'is said' err '3 micro-batches a step are no multiple of the 2 stages'
finish
