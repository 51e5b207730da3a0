#!/usr/bin/env bash
# How long the stages of a pipeline are idle, as a share of the time they work: four ranks that sleep
# instead of computing, beside the formula (p - 1) / (m v).
. bench/lib.sh
limit=100
# idle NAME CHUNKS NOTE: 8 micro-batches of 200 ms forward and 400 ms back; the least of three, for others hold stages up.
idle() {
    for _ in 1 2 3; do
        ranks 4 "$B/tests/pipeline_ranks" "$2" 8 200
    done | sort -g | head -n 1 | { read -r measured formula && row "$1" "$measured" share "formula $formula; $3"; }
}
if ! command -v mpirun >/dev/null; then
    row pipeline-bubble - share "left out: no mpirun"
    exit 0
fi
idle pipeline-1f1b 1 "Open MPI, shared memory"
idle pipeline-interleaved 2 "two parts each"
export OMPI_MCA_btl_vader_single_copy_mechanism=none
idle pipeline-1f1b-copies 1 "processes may not read each other's memory"
idle pipeline-interleaved-copies 2 "the same, two parts each"
