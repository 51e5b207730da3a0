# shellcheck shell=bash
# For the tests of training by simulated kernels, after tests/lib.sh: models, and what a GPU has to give.
# shellcheck disable=SC2034,SC2086
export OMP_WAIT_POLICY=passive
QUERN_CUDA=$(cd "$ROOT" && cd "$B" && pwd)/tests/simt-cuda.so
export QUERN_CUDA XDG_CACHE_HOME="$T/cache"

. "$ROOT/tests/train_lib.sh"
data

run="--data-path data --seq-length 16 --vocab-size 64 --micro-batch-size 4 --global-batch-size 8 --lr 0.002 --eval-iters 1
    --eval-interval 3 --split 80,10,10 -j 1 --train-iters 6"
gpt="--num-layers 2 --hidden-size 32 --num-attention-heads 2"
llama="--num-layers 2 --hidden-size 48 --num-attention-heads 4 --group-query-attention --num-query-groups 2 --ffn-hidden-size 64
    --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --qk-layernorm
    --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --recompute-granularity full
    --recompute-method uniform --recompute-num-layers 1"
latents="--num-layers 2 --hidden-size 32 --num-attention-heads 2 --position-embedding-type rope --normalization RMSNorm --swiglu
    --disable-bias-linear --qk-layernorm --attention-dropout 0 --hidden-dropout 0 --multi-latent-attention --q-lora-rank 12
    --kv-lora-rank 10 --qk-head-dim 12 --qk-pos-emb-head-dim 4 --v-head-dim 8"
experts="--num-layers 1 --hidden-size 32 --num-attention-heads 2 --num-experts 4 --moe-ffn-hidden-size 32 --moe-aux-loss-coeff 0.01
    --moe-z-loss-coeff 0.001"
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

# as_the_cpu MODEL...: each trains by the kernels as by the CPU, in fp32 and in bf16; leaves MODEL-TYPE-DEVICE and its log.
as_the_cpu() {
    local model type device o tol
    for model; do
        for type in fp32 bf16; do
            o="${!model}"
            tol=2e-6
            [ $type = fp32 ] || { o="$o --bf16" tol=2e-3; } # at a rate of 0.01 rounding grows twentyfold in six steps
            for device in cpu cuda; do
                status "$model, $type, $device" 0 quern-train $run $o --device $device --log-file $model-$type-$device.jsonl \
                    --save $model-$type-$device --save-interval 3
            done
            near "$model, $type: the CPU's losses" $model-$type-cpu.jsonl $model-$type-cuda.jsonl $tol
        done
    done
}
