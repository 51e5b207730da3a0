#!/usr/bin/env bash
# quern train with ranks by NCCL, for which tests/fake_nccl.c stands, and by TCP: each layout trains as one process does.  On the
# CPU, whose memory the stand-in takes; and on the CUDA kernels that run on the CPU (tests/simt_backend.cpp), whose streams are
# threads, the device's own too: there a call that does not wait for what it needs, or is not waited for, shows.
# shellcheck source=tests/lib.sh disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive
. "$ROOT/tests/train_lib.sh"
export QUERN_NCCL=$B/tests/fake-nccl.so XDG_CACHE_HOME="$T/cache"
export QUERN_CUDA=$B/tests/simt-cuda.so

status 'GPT, one process' 0 quern-train $gpt --device cpu --log-file gpt.jsonl
nccl="--device cpu --distributed-backend nccl"
few="--mock-data -j 1 --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --micro-batch-size 2
    --global-batch-size 8 --lr 0.002 --train-iters 3 --eval-iters 1 --eval-interval 3"
status 'a few steps, one process' 0 quern-train $few --device cpu --log-file few.jsonl
as_plain gpt 2 45 $nccl --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 5000
as_plain few 2 8 $nccl
as_plain few 2 8 $nccl --tensor-model-parallel-size 2 --sequence-parallel
as_plain few 2 8 $nccl --context-parallel-size 2
as_plain few 2 8 $nccl --pipeline-model-parallel-size 2
as_plain few 2 8 --device cpu --distributed-backend tcp --tensor-model-parallel-size 2

# Experts: what goes to their ranks and back, as much as the router gives each.
experts="$few --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-aux-loss-coeff 0.01"
ep='--expert-model-parallel-size 2'
status 'experts, one process' 0 quern-train $experts --device cpu --log-file experts.jsonl
as_plain experts 2 8 --device cpu --distributed-backend tcp $ep
mv log.jsonl tcp.jsonl
as_plain experts 2 8 $nccl $ep
same 'experts, by NCCL: the same bits as over TCP' <(losses tcp.jsonl) <(losses log.jsonl)
as_plain experts 4 8 $nccl $ep --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 5000

rm -f log.jsonl
check 'under mpirun' timeout -k 10 600 mpirun --oversubscribe -n 2 quern-train $few $nccl --log-file log.jsonl
check 'the same training' close few.jsonl log.jsonl 8

# ---- on the kernels, with streams ----

export SIMT_LATE=1
cuda="--device cuda --distributed-backend nccl"
as_plain few 2 8 $cuda --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 5000
as_plain few 2 8 $cuda --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
as_plain few 2 8 $cuda --context-parallel-size 2
as_plain few 3 8 $cuda --pipeline-model-parallel-size 3 --decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 1
as_plain experts 2 8 $cuda $ep --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 5000
as_plain few 2 8 --device cuda --distributed-backend tcp --use-distributed-optimizer --overlap-grad-reduce --ddp-bucket-size 5000

unset SIMT_LATE
finish
