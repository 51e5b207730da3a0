#!/usr/bin/env bash
# quern train, eval and generate with --device cuda: the CUDA kernels, run on the CPU by a backend that is opened as the real one
# is (tests/simt_backend.cpp), against the CPU's own.
# shellcheck source=tests/lib.sh disable=SC2046,SC2086
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/cuda_lib.sh
. "$ROOT/tests/cuda_lib.sh"

as_the_cpu llama latents experts documents

# ---- attention through cuDNN's stand-in, late, launch by launch and as graphs ----
whole="--num-layers 1 --hidden-size 64 --num-attention-heads 1 --seq-length 64 --attention-dropout 0 --hidden-dropout 0 --bf16
    --micro-batch-size 1 --global-batch-size 2 --lr 0.001"
status "a model for cuDNN, cpu" 0 quern-train $run $whole --device cpu --log-file whole-cpu.jsonl
for graph in none local; do
    SIMT_DNN=91900 QUERN_ATTENTION=cudnn SIMT_LATE=1 status "through cuDNN, graphs: $graph" 0 quern-train $run $whole \
        --device cuda --cuda-graph-impl $graph --log-file whole-$graph.jsonl
    near "the CPU's losses" whole-cpu.jsonl whole-$graph.jsonl 2e-2
done

# ---- dropout and documents by it: another mask than the CPU's, the same one in a run that is resumed, recomputed or recorded ----
dropped="$whole --attention-dropout 0.3"
again="--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
export SIMT_DNN=91900 QUERN_ATTENTION=cudnn
status "dropout through cuDNN" 0 quern-train $run $dropped --device cuda --log-file dropped.jsonl
status "as graphs" 0 quern-train $run $dropped --device cuda --cuda-graph-impl local --log-file dropped-graphs.jsonl
status "recomputed, half of it" 0 quern-train $run $dropped $again --device cuda --save dropped --save-interval 3 --exit-interval 3 \
    --log-file dropped-again.jsonl
status "and resumed" 0 quern-train $run $dropped $again --device cuda --load dropped --log-file dropped-resumed.jsonl
tail -n +1 dropped-resumed.jsonl >>dropped-again.jsonl
near "graphs draw the same masks" dropped.jsonl dropped-graphs.jsonl 1e-3
near "so does a run that is resumed and recomputes" dropped.jsonl dropped-again.jsonl 1e-3
masks="--eod-id 0 --reset-position-ids --reset-attention-mask"
status "documents, cpu" 0 quern-train $run $whole $masks --device cpu --log-file parts-cpu.jsonl
for graph in none local; do
    status "documents through cuDNN, graphs: $graph" 0 quern-train $run $whole $masks --device cuda --cuda-graph-impl $graph \
        --log-file parts.jsonl
    near "the CPU's losses" parts-cpu.jsonl parts.jsonl 2e-2
    rm -f parts.jsonl
done
SIMT_DNN=90800 QUERN_CUDA_NOTES=1 status "documents by a version that has none" 0 quern-train $run $whole $masks --device cuda
has "which is asked" err "documents need cuDNN 9.10.2"
SIMT_DNN=90501 QUERN_CUDA_NOTES=1 status "dropout by a version that is not known to" 0 quern-train $run $dropped --device cuda
has "which is asked" err "asked of cuDNN 9.8 and later"
unset SIMT_DNN QUERN_ATTENTION

SIMT_DNN=91300 QUERN_CUDA_NOTES=1 status "a version with bugs" 0 quern-train $run $whole --device cuda --log-file whole-old.jsonl
has "is not asked for gradients" err "gradients of cuDNN up to 9.15.0"
near "but for the rest" whole-cpu.jsonl whole-old.jsonl 2e-2

# ---- two data-parallel ranks: micro-batches as graphs, their gradients summed behind them ----
ranks="--mock-data --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61 --micro-batch-size 1
    --global-batch-size 6 --lr 0.01 --train-iters 4 --eval-iters 1 --eval-interval 3 -j 1 --device cuda"
for how in "" "--bf16 --use-distributed-optimizer" \
    "--bf16 --fp8-format hybrid --use-distributed-optimizer --ddp-bucket-size 5000"; do
    for graph in none local; do
        SIMT_LATE=1 SIMT_GRAPHS=1 status "two ranks $how, graphs: $graph" 0 timeout -k 10 200 mpirun --oversubscribe -n 2 quern-train \
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
