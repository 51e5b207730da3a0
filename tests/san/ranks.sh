# shellcheck shell=bash
# Ranks that train without MPI, over TCP and by NCCL (tests/fake_nccl.c), for sanitizers: `make check-san-ranks`.  In each rank
# work several threads of a kernel, the thread that writes a checkpoint, and with NCCL streams and their watcher.
# shellcheck disable=SC2034,SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=1" OMP_NUM_THREADS=2 PATIENCE=500
export QUERN_NCCL=$B/tests/fake-nccl.so QUERN_CUDA=$B/tests/simt-cuda.so XDG_CACHE_HOME="$T/cache"

gpt="--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 --mock-data -j 2 --micro-batch-size 2
    --global-batch-size 8 --lr 0.002 --train-iters 6 --eval-iters 1 --eval-interval 3"
moe="$gpt --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 48 --moe-aux-loss-coeff 0.01"
few="$gpt --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 4 --vocab-size 16 --micro-batch-size 1
    --global-batch-size 2 --train-iters 2 --eval-interval 2"
few_moe="$few --num-experts 2 --moe-router-topk 2 --moe-ffn-hidden-size 16"
for m in gpt moe few few_moe; do
    check "$m, one process" quern-train ${!m} --device cpu --log-file $m.jsonl
done
tcp="--device cpu --distributed-backend tcp --save s --save-interval 2 --async-save"
nccl="--distributed-backend nccl"
zero="--use-distributed-optimizer --ddp-bucket-size 5000"
beside="$zero --overlap-grad-reduce --overlap-param-gather"
ep="--expert-model-parallel-size 2"

# over N MODEL ARG...: N ranks over TCP, saving beside training.
over() {
    rm -rf s
    as_plain $2 $1 15 $tcp "${@:3}"
}
over 2 gpt $beside
over 4 gpt $beside
over 4 gpt $zero --overlap-grad-reduce --tensor-model-parallel-size 2 --sequence-parallel
over 4 gpt $beside --pipeline-model-parallel-size 2
over 2 gpt $zero --context-parallel-size 2
for how in optim_grads optim_grads_params; do
    over 2 gpt $beside --data-parallel-sharding-strategy $how
    over 4 gpt $beside --data-parallel-sharding-strategy $how
done
over 2 moe $ep $beside
over 4 moe $ep $beside

# By NCCL: on the CPU; and on kernels that run on the CPU, whose streams are threads.
as_plain gpt 2 15 $nccl --device cpu $beside --save t --save-interval 2 --async-save
as_plain gpt 2 15 $nccl --device cpu --pipeline-model-parallel-size 2
as_plain moe 2 15 $nccl --device cpu $ep
as_plain moe 4 15 $nccl --device cpu $ep $beside
as_plain few 2 6 $nccl --device cuda $beside
as_plain few_moe 2 6 $nccl --device cuda $ep $beside
finish
