#!/usr/bin/env bash
# Memory of checkpoints: saved by two tensor-parallel ranks, beside training and not, loaded under other divisions, verified,
# exported, imported, joined.  MiB of resident memory at its peak, files that are mapped and libraries with it; of ranks the
# largest, without what is planned for training (the run's line "memory:").  LAYERS=16 HIDDEN=1280: 4.0 GiB on disk.
. bench/lib.sh
if ! command -v mpirun >/dev/null; then
    row checkpoint - - "left out: no mpirun"
    exit 0
fi
export OMP_WAIT_POLICY=passive
flags="--mock-data -j 1 --num-layers ${LAYERS:-8} --hidden-size ${HIDDEN:-512} --num-attention-heads 8 --seq-length 16
    --vocab-size 32000 --micro-batch-size 1 --global-batch-size 2 --train-iters 1 --eval-iters 0 --lr 1e-4"

# peak COMMAND...: appends its VmHWM in KiB to peaks, looking every 30 ms.
cat >"$T/peak" <<'END'
#!/bin/bash
"$@" &
while kill -0 $! 2>/dev/null; do
    v=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$!/status)
    most=${v:-$most}
    sleep 0.03
done
echo "$most" >>"${0%/*}/peaks"
wait $!
END
chmod +x "$T/peak"

# under NAME N ARG...: a row of N ranks with ARG.
under() {
    local name=$1 n=$2 planned
    shift 2
    rm -f "$T/peaks"
    # shellcheck disable=SC2086
    ranks "$n" "$T/peak" quern-train $flags "$@" >"$T/out" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
    planned=$(sed -n 's/^memory: .* = \([0-9.]*\) MiB$/\1/p' "$T/out")
    row "checkpoint-$name" "$(sort -n "$T/peaks" | awk -v p="$planned" 'END { printf "%.0f", $1 / 1024 - p }')" MiB \
        "more than the planned $planned of a rank; $*"
}
# alone NAME ARG...: a row of quern checkpoint.
alone() {
    local name=$1
    shift
    rm -f "$T/peaks"
    "$T/peak" quern-checkpoint "$@" >"$T/out" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
    row "checkpoint-$name" "$(awk '{ printf "%.0f", $1 / 1024 }' "$T/peaks")" MiB "all of the process"
}

under train 2 --tensor-model-parallel-size 2
under save 2 --tensor-model-parallel-size 2 --save "$T/from"
under save-async 2 --tensor-model-parallel-size 2 --save "$T/beside" --async-save
rm -r "$T/beside"
from="--load $T/from"
for how in "2 --tensor-model-parallel-size 2" "2 --pipeline-model-parallel-size 2" "2 --use-distributed-optimizer" 1 \
    "4 --tensor-model-parallel-size 4"; do
    # shellcheck disable=SC2086
    under load $how $from
done
row checkpoint-size "$(du -sm "$T/from" | cut -f1)" MiB "on disk"
alone info info "$T/from"
alone verify verify "$T/from"
alone join join "$T/from" --save "$T/joined"
rm -r "$T/joined"
alone export export "$T/from" --output "$T/hf" --dtype bf16
alone import import "$T/hf" --save "$T/imported"
