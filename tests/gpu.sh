#!/usr/bin/env bash
# Runs the programs of make gpu-check and gpu-bench in the time that is left, prints what they say as they say it, and keeps all
# of it as JSON in BUILD/gpu-check.json or gpu-bench.json, which the last line names.
#     gpu.sh check|bench BUILD END     END: when it has to be over, in seconds since 1970
# Status 0: all passed, or ran; 1: something failed; 2: there is no GPU.
set -u
what=$1 B=$2 end=$3
json=$B/gpu-$what.json text=$B/gpu-$what.txt

left() { echo $((end - $(date +%s) - $1)); }

# What runs here, as two lines with tabs.
machine() {
    local query=name,driver_version,pstate,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,power.draw
    printf 'when\tsystem\tcores\tcompiler\n%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$(uname -srm)" "$(nproc)" \
        "$("${NVCC:-/usr/local/cuda/bin/nvcc}" --version 2>/dev/null | sed -n 's/^Cuda compilation tools, //p')"
    command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=$query --format=csv 2>&1 | sed 's/, /\t/g'
}

# The measured ops are kept in BUILD/gpu-device.jsonl too, for quern train --plan-device.
bench() {
    local rc=0
    export QUERN_DEVICE_FILE=$B/gpu-device.jsonl
    rm -f "$QUERN_DEVICE_FILE"
    "$B/bench/gpu_train_bench" $(($(left 0) * 6 / 10)) || rc=$?
    [ $rc = 2 ] && return 2
    "$B/bench/gpu_bench" $(($(left 0) < 50 ? $(left 0) : 50)) || rc=1
    if ! python3 -c 'import torch' 2>/dev/null; then
        echo "# no python3 with torch here: no peer"
    elif [ "$(left 0)" -gt 40 ]; then
        timeout "$(left 5)" python3 bench/gpu_torch.py "$(left 45)" || echo "# the peer ended early"
    fi
    return $rc
}

check() { "$B/tests/gpu_check" 50 - "$(left 5)"; }

# A line of text an object: of a table by the names of its columns, of a comparison by its parts.
to_json() {
    LC_ALL=C awk -F '\t' '
        function text(s) {
            gsub(/\\/, "\\\\\\\\", s); gsub(/"/, "\\\"", s)
            gsub(/[\001-\037\177-\377]/, "?", s)
            return "\"" s "\""
        }
        function value(s) { return s ~ /^-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[-+]?[0-9]+)?$/ ? s : text(s) }
        { out = "" }
        $1 ~ /^(model|op|when|name)$/ { for (i = 1; i <= NF; i++) head[i] = $i; columns = NF; next }
        NF > 1 {
            for (i = 1; i <= NF; i++)
                out = out (i > 1 ? "," : "") text(i <= columns ? head[i] : "column " i) ":" value($i)
        }
        NF <= 1 && match($0, /[0-9]+ of [0-9]+ wrong, largest [^ ]+, norm [^ ]+ of the tolerance/) {
            split(substr($0, RSTART, RLENGTH), part, /[ ,]+/)
            name = substr($0, 1, RSTART - 1); rest = substr($0, RSTART + RLENGTH)
            sub(/^(not )?ok - /, "", name); sub(/: $/, "", name); sub(/^; /, "", rest)
            out = "\"ok\":" (/^ok/ ? "true" : "false") ",\"comparison\":" text(name) ",\"wrong\":" part[1] ",\"of\":" part[3] \
                ",\"largest\":" value(part[6]) ",\"norm\":" value(part[8]) ",\"how\":" text(rest)
        }
        NF <= 1 && out == "" && match($0, /^(not )?ok - /) {
            out = "\"ok\":" (/^ok/ ? "true" : "false") ",\"check\":" text(substr($0, RLENGTH + 1))
        }
        out == "" { out = "\"line\":" text($0) }
        { printf "%s{%s}", n++ ? ",\n" : "[\n", out }
        END { print n ? "\n]" : "[]" }' "$1"
}

{
    machine
    case $what in check) check ;; bench) bench ;; esac
    rc=$?
    machine | sed -n '3,$p'
    exit $rc
} 2>&1 | tee "$text"
rc=${PIPESTATUS[0]}
to_json "$text" >"$json.part" && mv "$json.part" "$json"
[ "$rc" = 0 ] || echo "# gpu-$what ended with status $rc$([ "$rc" = 2 ] && echo ': no GPU to run on')"
[ ! -s "$B/gpu-device.jsonl" ] || [ "$what" != bench ] || echo "# for quern train --plan --plan-device: $B/gpu-device.jsonl"
echo "$json"
exit "$rc"
