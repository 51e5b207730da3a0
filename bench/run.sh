#!/usr/bin/env bash
# Measures: runs bench/NAME.sh for each NAME, or for `all`, and prints one table; without a name says which there are:
#   name  value  unit  note
# PEERS=PYTHON  a Python that has the peers (docs/benchmarks.md); without it their lines
#               say that they were left out.
# SHARED=DIR    where the data is; what needs it is left out without it.
set -u
if [ $# = 0 ]; then
    echo 'BENCH=NAME make bench runs one of these, BENCH="NAME NAME" some; BENCH=all runs all of them, one after the other, which takes hours:'
    for f in bench/*.sh; do # its name, the first sentence of its comment, and the one that says how long it takes
        n=$(basename "$f" .sh)
        case $n in run | lib) continue ;; esac
        about=$(sed -n -e '1d' -e '/^#/!q' -e '/^# shellcheck/!s/^# *//p' "$f" | tr '\n' ' ')
        takes=$(grep -o 'Takes [^.]*\.' <<<"$about" | head -n 1)
        printf '  %-20s %.110s %s\n' "$n" "$(sed -E 's/([.;]) .*//; s/[. ]*$//' <<<"$about")" "$takes"
    done
    exit 0
fi
[ "$*" = all ] && set --
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
    SECONDS=0
    bash "$f" || { echo "bench: $n failed" >&2; status=1; }
    echo "bench: $n took $SECONDS s" >&2
done
exit $status
