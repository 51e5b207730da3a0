#!/usr/bin/env bash
# Measures: runs bench/NAME.sh (all, or those named) and prints one table:
#   name  value  unit  note
# PEERS=PYTHON  a Python that has the peers (docs/benchmarks.md); without it their lines
#               say that they were left out.
# SHARED=DIR    where the data is; what needs it is left out without it.
set -u
B=${B:-build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
PATH=$B/bin:$PATH
SHARED=${SHARED:-}
PEERS=${PEERS:-}
export B PATH SHARED PEERS
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
printf 'machine\t%s\tprocessors\t%s\n' "$(nproc)" "${cpu:-unknown}"
status=0
for f in bench/*.sh; do
    n=$(basename "$f" .sh)
    case $n in run | lib) continue ;; esac
    case " ${*:-$n} " in *" $n "*) ;; *) continue ;; esac
    bash "$f" || { echo "bench: $n failed" >&2; status=1; }
done
exit $status
