#!/bin/bash
# The ops of kernels/ one by one, at the shapes of GPT-2 124M: bench/kernels_bench.c says how.
# THREADS=n sets the threads, SECONDS_EACH the time spent on an op, CLOCK=cpu counts processor
# time (for a busy machine), OP=name measures the ops alone that have it in their names.
set -eu
B=${B:-build}
make --no-print-directory B="$B" "$B/bench/kernels_bench" >&2
[ "${CLOCK:-}" != cpu ] || export OMP_WAIT_POLICY=passive
exec "$B/bench/kernels_bench" "${THREADS:-0}" "${SECONDS_EACH:-0.3}" "${CLOCK:-wall}" ${OP:+"$OP"}
