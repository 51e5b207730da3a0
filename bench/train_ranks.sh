#!/usr/bin/env bash
# Training by 1 and 2 data-parallel ranks of one thread each: tokens a second, and what of them two ranks reach.  The
# distributed optimizer with and without both overlaps: of the time in which gradients or weights were under way among
# the replicas, the share in which the rank did not stand waiting (docs/parallelism.md); from the ranks' timelines.
# Processor seconds are beside the clock's, for a busy machine.
. bench/lib.sh
if ! command -v mpirun >/dev/null; then
    row train-ranks - - "left out: no mpirun"
    exit 0
fi
export OMP_WAIT_POLICY=passive
steps=${STEPS:-12}
model="--mock-data -j 1 --num-layers 8 --hidden-size 384 --num-attention-heads 6 --seq-length 128 --vocab-size 8192 --bf16
    --micro-batch-size 4 --train-iters $steps --lr 1e-4 --eval-interval 0 --log-interval 1000 -q"

# train N BATCH ARG...: leaves $T/log and timelines.
train() {
    local n=$1
    shift
    rm -f "$T/log" "$T"/trace*
    # shellcheck disable=SC2086
    ranks "$n" quern-train $model --global-batch-size "$@" --log-file "$T/log" >"$T/out" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
    sed -i 1d "$T/log"
}
seconds() { field tokens_per_s "$T/log" | awk -v n="$1" '{ printf "%.4f\n", n * 128 / $1 }' | median; }

# As many samples a rank, so that two ranks have twice the batch.
train 1 8
one=$(seconds 8) one_cpu=$(field cpu_s "$T/log" | median)
row train-ranks-1 "$one" "s a step" "8 samples of 128 tokens, 25 M parameters, bf16; $one_cpu processor seconds"
train 2 16
two=$(seconds 16) two_cpu=$(field cpu_s "$T/log" | median)
row train-ranks-2 "$two" "s a step" "16 samples; $two_cpu processor seconds of the first rank"
row train-ranks-scaling "$(over "$one" "$two")" share "of twice the tokens a second; by processor seconds $(over "$one_cpu" "$two_cpu")"

# hidden: from the timelines of all ranks, seconds under way, waited for, and the share hidden.  An event is a line.
hidden() {
    for f in "$T"/trace.*; do
        sed -nE 's/.*"ts":([0-9.]+),"dur":([0-9.]+),"args":\{"group":"replicas",.*"waited_us":([0-9.]+).*/\1 \2 \3/p' "$f" | sort -g |
            awk '{ waited += $3; end = $1 + $2; if (NR == 1 || $1 > last) { sum += $2; last = end }
                else if (end > last) { sum += end - last; last = end } } END { print sum / 1e6, waited / 1e6 }'
    done | awk '{ sum += $1; waited += $2 } END { printf "%.3f %.3f %.3f\n", 1 - waited / sum, sum / NR, waited / NR }'
}
for how in "" "--overlap-grad-reduce --overlap-param-gather"; do
    name=overlap-$([ -n "$how" ] && echo with || echo without)
    for _ in 1 2 3; do
        # shellcheck disable=SC2086
        train 2 16 --use-distributed-optimizer --ddp-bucket-size 1500000 $how --trace "$T/trace"
        echo "$(hidden) $(seconds 16)"
    done | sort -g | sed -n 2p | {
        read -r share sum waited step
        row "$name" "$share" "hidden" "a rank: $sum s under way in $steps steps, $waited s of it waited for; $step s a step; ${how:-no overlap}"
    }
done
