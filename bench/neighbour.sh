#!/usr/bin/env bash
# Training beside one busy process: tokens a second of two threads with nobody beside them, of two and of one beside a loop
# that never ends, PAIRS of each in turn (9), each the harmonic mean of the run's steps behind the first ones.  Two models: one
# whose steps take some 20 ms, and one of some 0.1 s.  A process has a fair share of two processors of 2/3 beside another.
# COUNTS="0 1000 10000 300000": those values of GOMP_SPINCOUNT too, with nobody beside.  For an idle machine with two
# processors (taskset -c 0,1 where there are more), which it takes for some six minutes.
. bench/lib.sh
pairs=${PAIRS:-9}
# shellcheck disable=SC2034
small="--num-layers 4 --hidden-size 128 --num-attention-heads 4 --seq-length 128 --vocab-size 1024 --train-iters 150"
# shellcheck disable=SC2034
medium="--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --vocab-size 4096 --bf16 --train-iters 40"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT OMP_NUM_THREADS

# rate THREADS FLAG...: tokens a second.
rate() {
    local n=$1
    shift
    rm -f "$T/log"
    quern-train "$@" --mock-data --micro-batch-size 4 --lr 1e-3 --eval-iters 0 --attention-dropout 0 --hidden-dropout 0 -j "$n" \
        -q --log-file "$T/log" >&2 || exit 1
    field tokens_per_s "$T/log" | awk 'NR > 3 { s += 1 / $1; n++ } END { printf "%.0f\n", n / s }'
}
# beside COMMAND...: with a busy process.
beside() {
    local loop
    # Started as a session of its own, it ends by itself when this shell is gone.
    setsid sh -c 'while kill -0 "$0"; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done' $$ 2>/dev/null &
    loop=$!
    "$@"
    kill "$loop"
    wait "$loop" 2>/dev/null
}
# ratio A B: the median of A's lines over B's.
ratio() { paste "$1" "$2" | awk '{ printf "%.3f\n", $1 / $2 }' | median; }

for name in ${MODELS:-small medium}; do
    rm -f "$T"/idle* "$T/two" "$T/one"
    for ((i = 0; i < pairs; i++)); do
        # shellcheck disable=SC2086
        {
            rate 2 ${!name} >>"$T/idle"
            beside rate 2 ${!name} >>"$T/two"
            beside rate 1 ${!name} >>"$T/one"
            for n in ${COUNTS:-}; do GOMP_SPINCOUNT=$n rate 2 ${!name} >>"$T/idle.$n"; done
        }
    done
    row "neighbour_${name}_idle" "$(median <"$T/idle")" tokens/s "two threads, nobody beside them; median of $pairs"
    row "neighbour_${name}_two" "$(median <"$T/two")" tokens/s "two threads beside a busy process"
    row "neighbour_${name}_one" "$(median <"$T/one")" tokens/s "one thread beside it"
    row "neighbour_${name}_over_one" "$(ratio "$T/two" "$T/one")" times "two threads over one, median of pairs; at least 1 is wanted"
    row "neighbour_${name}_lost" "$(ratio "$T/idle" "$T/two" | awk '{ printf "%.2f", $1 / 1.5 }')" times \
        "slower than the share of the processors says; at most 1.3 is wanted"
    for n in ${COUNTS:-}; do
        row "neighbour_${name}_spin_$n" "$(ratio "$T/idle.$n" "$T/idle")" times "GOMP_SPINCOUNT=$n over the default, nobody beside"
    done
done
