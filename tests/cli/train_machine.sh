#!/usr/bin/env bash
# quern train and the machine it runs on: how many threads each rank takes, how they wait, and what memory there is.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
unset OMP_NUM_THREADS
tiny="--mock-data --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 --vocab-size 61 --micro-batch-size 2
    --lr 0.01 --eval-iters 0 --train-iters 1 --device cpu"

# threads_of FILE: what the device's line says.
threads_of() { sed -nE 's/^device: .*, ([0-9]+) threads?, peak.*/\1/p' "$1"; }
# Two processors, whatever the machine has, and so many ranks on them.
two=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status | tr , '\n' |
    awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }' | head -n 2 | paste -sd,)
case $two in
*,*)
    status 'one rank' 0 taskset -c $two quern-train $tiny
    equal 'one rank takes both processors' "$(threads_of out)" 2
    status 'two ranks over TCP' 0 plain 2 taskset -c $two quern-train $tiny --distributed-backend tcp
    equal 'two ranks of a machine share its processors' "$(threads_of out)" 1
    status 'two ranks by mpirun' 0 mpirun --oversubscribe --bind-to none -n 2 taskset -c $two quern-train $tiny
    equal 'two ranks by mpirun share them too' "$(threads_of out)" 1
    # shellcheck disable=SC2016
    status 'ranks with processors of their own' 0 plain 2 bash -c 'IFS=, read -r a b <<<"'$two'"; [ $RANK = 0 ] || a=$b
        exec taskset -c $a "$@"' x quern-train $tiny --distributed-backend tcp
    equal 'take these' "$(threads_of out)" 1
    ;;
*) ok 'processors are shared (left out: one processor)' ;;
esac
status 'OMP_NUM_THREADS' 0 env OMP_NUM_THREADS=3 quern-train $tiny
equal 'OMP_NUM_THREADS counts' "$(threads_of out)" 3
status '-j before OMP_NUM_THREADS' 0 env OMP_NUM_THREADS=3 quern-train $tiny -j 2
equal '-j goes before OMP_NUM_THREADS' "$(threads_of out)" 2

# ---- how threads wait ----
# waits [VARIABLE=VALUE]: what OpenMP says of its turns, the last time that it starts.
waits() { env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=VERBOSE "$@" 2>&1 | sed -nE "s/.*GOMP_SPINCOUNT = '([0-9]+)'.*/\1/p" | tail -n 1; }
if [ -n "$(waits quern-train --version)" ]; then
    equal 'threads do not spin for long' "$(waits quern-train --version)" 10000
    equal 'generate'"'"'s neither' "$(waits quern-generate --version)" 10000
    equal 'nor eval'"'"'s' "$(waits quern-eval --version)" 10000
    equal 'what the user sets stays' "$(waits GOMP_SPINCOUNT=77 quern-train --version)" 77
    equal 'a policy that the user sets stays' "$(waits OMP_WAIT_POLICY=passive quern-train --version)" 0
else
    ok "how threads wait (left out: an OpenMP that is not GNU's)"
fi

# ---- memory ----
# A vocabulary whose state takes six tenths of the machine's memory.
kib=$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)
large="--mock-data --num-layers 1 --hidden-size 64 --num-attention-heads 2 --seq-length 2 --micro-batch-size 1 --lr 0.01
    --eval-iters 0 --train-iters 1 --device cpu -j 1 --vocab-size $((kib * 6 / 10 * 1024 / (16 * 64)))"
status 'two ranks that fit one by one' 3 plain 2 quern-train $large --distributed-backend tcp
has 'the need of both is compared with the memory' err 'the 2 ranks of this machine need '
if nm "$(command -v quern-train)" | grep -q ' __[at]san_init$'; then
    skip 'a limit of the process' 'a sanitizer takes all addresses'
else
    # shellcheck disable=SC2016
    status 'a limit of the process' 3 bash -c 'ulimit -v 2000000; exec "$@"' x quern-train $large
    has 'the limit is compared' err 'this run needs '
fi
finish
