#!/usr/bin/env bash
# A training step of GPT-2 124M, B=4, T=256, random tokens: seconds (median), FLOP/s, where the
# time goes; beside PyTorch on the same threads in the same run.  CLOCK=cpu: processor seconds of
# all threads divided by their number, for a busy machine.
set -u
clock=${CLOCK:-wall}
[ "$clock" = wall ] || export OMP_WAIT_POLICY=passive
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
root=$PWD
threads=${THREADS:-2}
steps=${STEPS:-7}
model="--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 256 --max-position-embeddings 1024
    --vocab-size 50257 --micro-batch-size 4 --attention-dropout 0 --hidden-dropout 0"

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
field() { sed -nE "s/.*\"$1\":([-+0-9.e]+).*/\1/p" "$2"; }

ours() { # name flags...
    local name=$1 log=$T/$1.jsonl
    shift
    # shellcheck disable=SC2086
    quern-train $model --mock-data --train-iters "$steps" --lr 1e-4 --eval-iters 0 -j "$threads" -q \
        --log-file "$log" "$@" >"$T/out" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
    sed -i 1d "$log" # the first step makes plans
    if [ "$clock" = wall ]; then
        s=$(field tokens_per_s "$log" | awk '{ print 1024 / $1 }' | median)
    else
        s=$(field cpu_s "$log" | awk -v n="$threads" '{ print $1 / n }' | median)
    fi
    printf '%s\t%.3f\ts a step\tGPT-2 124M, B=4, T=256, %s threads, %s clock; phases by the wall: %s\n' "$name" "$s" \
        "$threads" "$clock" "$(for p in forward backward optimizer; do
            printf '%s %.3f ' $p "$(field ${p}_s "$log" | median)"; done)"
    printf '%s_flops\t%.1f\tGFLOP/s\t\n' "$name" "$(awk -v s="$s" 'BEGIN { print 7.556e8 * 1024 / s / 1e9 }')"
}

ours train_fp32
fp32=$s
ours train_bf16 --bf16
bf16=$s
if [ -z "${PEERS:-}" ] || ! "$PEERS" -c 'import torch' 2>/dev/null; then
    printf 'train_torch\t-\t-\tleft out: no torch (set PEERS)\n'
    exit 0
fi
for dt in fp32 bf16; do
    p=$("$PEERS" "$root/bench/train_torch.py" $dt "$threads" "$steps" "$clock") || exit 1
    mine=$fp32
    [ $dt = fp32 ] || mine=$bf16
    printf 'train_torch_%s\t%.3f\ts a step\tPyTorch CPU, eager, the same model; quern is %.2f times as fast\n' $dt "$p" \
        "$(awk -v a="$p" -v b="$mine" 'BEGIN { print a / b }')"
done
