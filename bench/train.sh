#!/usr/bin/env bash
# A training step of GPT-2 124M, B=4, T=256 (LENGTH=1024 for another T), random tokens: seconds by the wall and processor
# seconds of all threads divided by their number (for a busy machine), medians, FLOP/s, where the time goes; beside PyTorch on
# the same threads in the same run, eager, with COMPILE=1 also compiled, and then a model in bf16 alone too.  THREADS, STEPS;
# DTYPES="bf16" for one of them.
. bench/lib.sh
threads=${THREADS:-2}
steps=${STEPS:-7}
length=${LENGTH:-256}
tokens=$((4 * length))
model="--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length $length --max-position-embeddings 1024
    --vocab-size 50257 --micro-batch-size 4 --attention-dropout 0 --hidden-dropout 0"
export OMP_WAIT_POLICY=passive # or the processor seconds are those of waiting

flops() { awk -v s="$1" -v t="$tokens" 'BEGIN { printf "%.1f", 7.556e8 * t / s / 1e9 }'; }
# ours TYPE: sets wall and cpu.
ours() {
    local log=$T/$1.jsonl
    # shellcheck disable=SC2046,SC2086
    quern-train $model --mock-data --train-iters "$steps" --lr 1e-4 --eval-iters 0 -j "$threads" -q \
        --log-file "$log" $([ "$1" = fp32 ] || echo "--$1") >"$T/out" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
    sed -i 1d "$log" # the first step makes plans
    wall=$(field tokens_per_s "$log" | awk -v t="$tokens" '{ printf "%.3f\n", t / $1 }' | median)
    cpu=$(field cpu_s "$log" | awk -v n="$threads" '{ printf "%.3f\n", $1 / n }' | median)
    row "train_$1" "$wall" "s a step" "GPT-2 124M, B=4, T=$length, $threads threads; phases: $(for p in forward backward optimizer; do
        printf '%s %.3f ' $p "$(field ${p}_s "$log" | median)"; done)"
    row "train_$1_cpu" "$cpu" "s a step" "processor seconds / $threads"
    row "train_$1_flops" "$(flops "$wall")" GFLOP/s "by the wall; by processor seconds $(flops "$cpu")"
}

# torch KIND [compile]: PyTorch's, beside ours of before.
torch() {
    local w c
    # shellcheck disable=SC2086
    read -r w c < <("$PEERS" bench/train_torch.py "$1" "$threads" "$steps" 4 "$length" ${2:-}) || exit 1
    row "train_torch_$1${2:+_$2}" "$w" "s a step" "PyTorch CPU, ${2:-eager}, the same model; quern is $(over "$w" "$wall") times as fast"
    row "train_torch_$1${2:+_$2}_cpu" "$c" "s a step" "processor seconds / $threads; quern is $(over "$c" "$cpu") times as fast"
}

for dt in ${DTYPES:-fp32 bf16}; do
    ours "$dt"
    if [ -z "${PEERS:-}" ] || ! "$PEERS" -c 'import torch' 2>/dev/null; then
        row "train_torch_$dt" - - 'left out: no torch (set PEERS)'
        continue
    fi
    torch "$dt"
    [ -z "${COMPILE:-}" ] || torch "$dt" compile
    [ -z "${COMPILE:-}" ] || [ "$dt" = fp32 ] || torch pure compile
done
