#!/usr/bin/env bash
# quern train with ranks by NCCL, for which tests/fake_nccl.c stands, and by TCP: data-parallel ranks train as one process does.  On the
# CPU, whose memory the stand-in takes; and on the CUDA kernels that run on the CPU (tests/simt_backend.cpp), whose streams are
# threads, the device's own too: there a call that does not wait for what it needs, or is not waited for, shows.
# shellcheck source=tests/lib.sh disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive
. "$ROOT/tests/train_lib.sh"
export QUERN_NCCL=$B/tests/fake-nccl.so XDG_CACHE_HOME="$T/cache"
export QUERN_CUDA=$B/tests/simt-cuda.so

nccl="--device cpu --distributed-backend nccl"
few="--mock-data -j 1 --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --micro-batch-size 2
    --global-batch-size 8 --lr 0.002 --train-iters 3 --eval-iters 1 --eval-interval 3"
status 'a few steps, one process' 0 quern-train $few --device cpu --log-file few.jsonl
as_plain few 2 8 $nccl --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --ddp-bucket-size 5000

status 'deterministic sums' 3 quern-train $gpt $nccl --deterministic
has 'are not NCCL'"'"'s' err '--deterministic needs sums in an order that NCCL'"'"'s do not have'
QUERN_NCCL=/no/such.so status 'no NCCL' 3 quern-train $gpt $nccl
has 'is said' err 'cannot open NCCL'

# ---- on the kernels, with streams ----

SIMT_LATE=1 as_plain few 2 8 --device cuda --distributed-backend nccl --use-distributed-optimizer --overlap-grad-reduce \
    --overlap-param-gather --ddp-bucket-size 5000

# ---- a profiler ----

FAKE_PROFILER=ranges NVTX_INJECTION64_PATH=$B/tests/fake-profiler.so status 'under a profiler' 0 quern-train $few --device cpu
for range in 'forward of micro-batch 3' '  forward 2' 'backward of micro-batch 0' '  backward 0' 'reduce 3' 'optimizer 3'; do
    check "it is told of '$range'" grep -qx "$range" ranges
done
equal 'ranges that begin end' "$(tail -n 1 ranges)" 'ends'
NVTX_INJECTION64_PATH=/no/such.so status 'a profiler that is not there' 0 quern-train $few --device cpu
finish
