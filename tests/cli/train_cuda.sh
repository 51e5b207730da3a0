#!/usr/bin/env bash
# quern train, eval and generate with --device cuda: the CUDA kernels, run on the CPU by a backend that is opened as the real one
# is (tests/simt_backend.cpp), against the CPU's own.
# shellcheck source=tests/lib.sh disable=SC2046,SC2086
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive
QUERN_CUDA=$(cd "$ROOT" && cd "$B" && pwd)/tests/simt-cuda.so
export QUERN_CUDA XDG_CACHE_HOME="$T/cache"

. "$ROOT/tests/train_lib.sh"
data

run="--data-path data --seq-length 16 --vocab-size 64 --micro-batch-size 4 --global-batch-size 8 --lr 0.01 --eval-iters 1
    --eval-interval 3 --split 80,10,10 -j 1 --train-iters 6"
# shellcheck disable=SC2034
gpt="--num-layers 2 --hidden-size 32 --num-attention-heads 2"
# shellcheck disable=SC2034
llama="--num-layers 2 --hidden-size 48 --num-attention-heads 4 --group-query-attention --num-query-groups 2 --ffn-hidden-size 64
    --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --qk-layernorm
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --recompute-granularity full
    --recompute-method uniform --recompute-num-layers 1"
# shellcheck disable=SC2034
experts="--num-layers 1 --hidden-size 32 --num-attention-heads 2 --num-experts 4 --moe-ffn-hidden-size 32 --moe-aux-loss-coeff 0.01
    --moe-z-loss-coeff 0.001"
# shellcheck disable=SC2034
documents="--num-layers 1 --hidden-size 128 --num-attention-heads 2 --eod-id 0 --reset-position-ids --reset-attention-mask
    --eod-mask-loss --lr 0.001" # heads of 64: with bf16 by the tensor cores

# near NAME FILE1 FILE2 TOL: losses and norms of gradients of two logs, step by step.
near() {
    if paste -d' ' <(tr -s '{}:,"' ' ' <"$2") <(tr -s '{}:,"' ' ' <"$3") | awk -v tol="$4" '
        { n = NF / 2; for (i = 1; i < n; i++) if ($i == "loss" || $i == "grad_norm" || $i == "valid_loss") {
              a = $(i + 1) + 0; b = $(n + i + 1) + 0; d = a > b ? a - b : b - a; k++
              if ($(n + i) != $i || !(d <= tol * a)) { print NR, $i, a, b; bad = 1 } } }
        END { exit bad || k < 12 }' >differ; then ok "$1"; else bad "$1" "$(head -c 300 differ)"; fi
}

for model in gpt llama; do
    for type in fp32 bf16; do
        o="${!model}"
        tol=2e-6
        [ $type = fp32 ] || { o="$o --bf16" tol=2e-2; }
        for device in cpu cuda; do
            status "$model, $type, $device" 0 quern-train $run $o --device $device --log-file $model-$type-$device.jsonl \
                --save $model-$type-$device --save-interval 3
        done
        near "$model, $type: the CPU's losses" $model-$type-cpu.jsonl $model-$type-cuda.jsonl $tol
    done
done

SIMT_LATE=1 status "the same again, queued and late" 0 quern-train $run $gpt --bf16 --device cuda --log-file again.jsonl
same "the same bits" <(sed 's/,"tokens_per_s.*//' gpt-bf16-cuda.jsonl) <(sed 's/,"tokens_per_s.*//' again.jsonl)

# ---- checkpoints go from one device to the other ----
check "algorithms are kept" grep -q "by tests/simt.h" cache/quern/cublaslt.tsv
n=$(wc -l <cache/quern/cublaslt.tsv)
status "algorithms are found again" 0 quern-train $run $gpt --bf16 --device cuda --train-iters 1
equal "and are not sought again" "$(wc -l <cache/quern/cublaslt.tsv)" "$n"
rm -rf half && cp -r gpt-fp32-cuda half && rm -rf half/iter_0000006 && echo 3 >half/latest_checkpointed_iteration.txt
status "a resumed run" 0 quern-train $run $gpt --device cuda --save half --log-file rest.jsonl
same "goes on with the same bits" <(sed 's/,"tokens_per_s.*//;1,3d' gpt-fp32-cuda.jsonl) <(sed 's/,"tokens_per_s.*//' rest.jsonl)
for device in cpu cuda; do
    status "eval on $device" 0 quern-eval --load llama-fp32-cuda --data-path data --split 80,10,10 --device $device
    grep -o 'loss [0-9.]*' out | cut -c1-11 >eval-$device
    status "generate on $device" 0 quern-generate --load gpt-fp32-cuda --prompt-ids 1,2,3 --max-tokens 8 --temperature 0 --device $device
    cp out text-$device
done
same "the same loss" eval-cpu eval-cuda
same "the same tokens" text-cpu text-cuda
status "auto takes it" 0 quern-train $run $gpt --device auto --train-iters 1
has "and says so" out "device: cuda"
status "no GPU: told why" 3 env QUERN_CUDA=/no/such.so quern-train $run $gpt --device cuda
has "what is missing" err "/no/such.so"
finish
