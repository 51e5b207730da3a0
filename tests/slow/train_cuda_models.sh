#!/usr/bin/env bash
# quern train, eval and generate with --device cuda: the CUDA kernels, run on the CPU by a backend that is opened as the real one
# is (tests/simt_backend.cpp), against the CPU's own.
# shellcheck source=tests/lib.sh disable=SC2046,SC2086
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/cuda_lib.sh
. "$ROOT/tests/cuda_lib.sh"

as_the_cpu llama experts documents

# ---- two data-parallel ranks: micro-batches as graphs, their gradients summed behind them ----
ranks="--mock-data --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61 --micro-batch-size 1
    --global-batch-size 6 --lr 0.01 --train-iters 4 --eval-iters 1 --eval-interval 3 -j 1 --device cuda"
for how in "" "--bf16 --use-distributed-optimizer" \
    "--bf16 --fp8-format hybrid --use-distributed-optimizer --ddp-bucket-size 5000"; do
    for graph in none local; do
        SIMT_LATE=1 SIMT_GRAPHS=1 status "two ranks $how, graphs: $graph" 0 timeout 200 mpirun --oversubscribe -n 2 quern-train \
            $ranks $how --cuda-graph-impl $graph --log-file $graph.jsonl
        # Of 3 micro-batches in 4 steps the first of each kind are launched by themselves.
        n=$(grep -cE 'simt: ([6-9]|1[0-2]) graphs' err)
        equal "ranks that ran some" "$n" "$([ $graph = none ] && echo 0 || echo 2)"
    done
    same "the same bits" <(losses none.jsonl) <(losses local.jsonl)
    equal "of all steps" "$(grep -c '"loss":' local.jsonl)" 4
    rm -f none.jsonl local.jsonl
done
finish
