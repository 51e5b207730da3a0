#!/usr/bin/env bash
# Runs the tests of the tiers named, side by side, and prints a total.
#   unit     cmocka programs
#   cli      the tools at a shell; with unit this is `make check`
#   slow     what takes longer, for `make check-all`; there kills are 30, not a few (KILLS=),
#            and ranks more than two (SWEEP=1)
#   fuzz     every fuzzer of $B-fuzz from its seeds, $FUZZ_SECONDS each
#   release  tests/release/*.sh, for `make check-release`, one after the other
#   shared   tests/shared/*.sh, on the data in $SHARED
#   hosts    tests/hosts/*.sh, on hosts made of network namespaces, and that data
#   package  tests/package/*.sh, the Debian package in a chroot
#   san      tests/san/*.sh, ranks that train, for programs built with sanitizers
# A tier TIER has the programs of tests/TIER/*_test.c, built, and the scripts tests/TIER/*.sh.
# A script prints "ok - NAME", "not ok - NAME" or "skip - NAME: WHY" a case (see tests/lib.sh).
# ONLY=PATTERN runs the files whose name has it, UNITS="trainer comm" of unit those alone; JOBS=N so many at a time.
# Of a file that fails all is shown, of the others a line; everything is in $B/tests.log, and what each file took in
# $B/tests.times.
# A file that takes more than FILE_SECONDS (2700) fails: what its processes were doing is shown, and they are killed.
# Of programs built with sanitizers every report counts, whatever the test makes of it.
set -u
B=${B:-build}
ROOT=$PWD
case $B in /*) build=$B ;; *) build=$ROOT/$B ;; esac
PATH=$build/bin:$PATH
SHARED=${SHARED:-}
limit=${FILE_SECONDS:-2700}
# The same order and the same numbers wherever it runs.
LC_ALL=C.UTF-8
# Who waits sleeps: on a busy machine spinning threads and ranks hold up those that work.
OMP_WAIT_POLICY=passive
OMPI_MCA_mpi_yield_when_idle=1
OMPI_MCA_hwloc_base_binding_policy=none
UBSAN_OPTIONS=print_stacktrace=1
# Archer, which comes with clang's OpenMP, tells the thread sanitizer of its barriers; it lies where that library does.  It wants
# an option by which clang 14 overlooks what memcpy, read and write touch in our own code, and does not understand "no".
no=ignore_noninstrumented_modules=1:ignore_noninstrumented_modules=no
libomp=$(realpath "$(clang -print-file-name=libomp.so.5 2>/dev/null)" 2>/dev/null)
OMP_TOOL_LIBRARIES=${libomp%/*}/libarcher.so
case " $* " in *" slow "*) export KILLS="${KILLS:-30}" SWEEP=1 ;; esac
export PATH ROOT SHARED B LC_ALL OMP_WAIT_POLICY OMPI_MCA_mpi_yield_when_idle OMPI_MCA_hwloc_base_binding_policy
export UBSAN_OPTIONS OMP_TOOL_LIBRARIES
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: >"$build/tests.log"

# The files of a tier: of a program the source says that there is one.
files() {
    local f
    case $1 in
    unit) if [ -n "${UNITS:-}" ]; then
              # shellcheck disable=SC2086
              printf 'tests/unit/%s_test.c\n' $UNITS
              return
          fi
          set -- tests/unit/*"${ONLY:-}"*_test.c ;;
    fuzz) set -- tests/fuzz/*"${ONLY:-}"*_fuzz.c ;;
    *) set -- tests/"$1"/*"${ONLY:-}"*_test.c tests/"$1"/*"${ONLY:-}"*.sh ;;
    esac
    for f; do [ ! -f "$f" ] || echo "$f"; done
}
# Runs a file in a session of its own, for $FILE_SECONDS at most.
execute() {
    local run session watch st
    case $1 in
    *_fuzz.c) run=(bash tests/fuzz/run.sh "$B-fuzz/$(basename "$1" .c)" "${FUZZ_SECONDS:-60}") ;;
    *.sh) run=(bash "$1") ;;
    *) run=("$B/${1%.c}") ;;
    esac
    setsid "${run[@]}" &
    session=$!
    { sleep "$limit" & trap 'kill $!' TERM; wait $! && stuck $session; } &
    watch=$!
    wait $session
    st=$?
    kill $watch 2>/dev/null
    return $st
}
# SESSION: says what the processes of a file that does not end are doing, and kills them.
stuck() {
    local p all
    all=$(sed -nE "s/^([0-9]+) \\(.*\\) . [0-9]+ [0-9]+ $1 .*/\1/p" /proc/[0-9]*/stat 2>/dev/null)
    echo "not ok - to end within $limit s"
    for p in $all; do
        echo "    $p $(cat "/proc/$p/wchan" 2>/dev/null): $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | cut -c 1-300)"
        ! command -v gdb >/dev/null || timeout 20 gdb -p "$p" -batch -ex 'thread apply all backtrace 12' 2>/dev/null | grep -E '^(Thread|#)'
    done
    # shellcheck disable=SC2086
    kill -9 $all
}
# N FILE: runs a file, the Nth; leaves what came of it in $work/N.*, and says it.
one() {
    local n=$1 name log=$work/$1.log st p f s r took
    name=$(basename "$2" | sed -E 's/\.(sh|c)$//')
    exec </dev/null
    export ASAN_OPTIONS=${ASAN_OPTIONS-}:log_path=$work/$n.san
    export TSAN_OPTIONS=log_path=$work/$n.san:suppressions=$ROOT/tests/tsan.supp:$no
    export TEST_PORTS=$((20000 + n % 120 * 100)) # a hundred for each, see tests/plain_ranks.sh
    TIMEFORMAT='%U %S %R'
    { time execute "$2" >"$log" 2>&1; } 2>"$work/$n.time"
    st=$?
    p=$(grep -cE '^(ok - |\[       OK \])' "$log")
    f=$(grep -E '^(not ok - |\[  FAILED  \] [a-z_0-9]+$)' "$log" | sort -u | wc -l) # cmocka names them once more at its end
    s=$(grep -cE '^(skip - |\[  SKIPPED \] [a-z_0-9]+$)' "$log")
    if [ $st != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ $st = 0 ] && [ $((p + s)) = 0 ]; then f=1; echo "$name: ran no test" >>"$log"; fi
    for r in "$work/$n".san.*; do
        [ -f "$r" ] || continue
        f=$((f + 1))
        head -n 40 "$r" >>"$log"
    done
    took=$(tail -n 1 "$work/$n.time" | awk '{ printf "%.1f %.1f", $1 + $2, $3 }')
    echo "$p $f $s $took $name" >"$work/$n.came"
    grep '^skip - ' "$log" | sed "s/^skip - /$name: /" >"$work/$n.skipped"
    {
        flock 9
        { echo "== $2"; cat "$log"; } >>"$build/tests.log"
        if [ "$f" != 0 ]; then
            grep -vE '^(ok - |\[ RUN      \]|\[       OK \])' "$log"
            echo "FAILED $2 (status $st)"
        else
            echo "$name: $p passed"
        fi
    } 9>"$work/lock"
}

# Tiers side by side; the release's, which use all processors themselves, one after the other.
n=0 running=0
jobs=${JOBS:-$(($(nproc) + 2))} # some wait: for a disk, a rank, a signal
for tier; do
    if [ "$tier" = release ]; then wait; running=0 jobs=1; fi
    for t in $(files "$tier"); do # a process substitution would be one more for which wait -n waits
        [ $running -lt "$jobs" ] || { wait -n; running=$((running - 1)); }
        n=$((n + 1)) running=$((running + 1))
        one $n "$t" &
    done
done
wait

sort -k4,4nr "$work"/*.came 2>/dev/null | awk '{ printf "%8.1f s of processor, %8.1f s, %4d passed, %d failed, %d skipped: %s\n", $4, $5, $1, $2, $3, $6 }' \
    >"$build/tests.times"
cat "$work"/*.skipped 2>/dev/null | sed 's/^/skipped: /'
# What make check leaves out, and where it stands.
if [ "$*" = 'unit cli' ] && [ -z "${ONLY:-}" ]; then
    files slow | while read -r t; do
        about=$(sed -nE 's,^(#|/\*) ,,p' "$t" | grep -v shellcheck | sed -n '1s/[.;:] .*//; 1s/[.;:]$//; 1p')
        echo "left to make check-all: $(basename "$t" | sed -E 's/\.(sh|c)$//'): $about"
    done
    echo "left to make check-all, too: 30 kills, 4 and 8 ranks, what nvcc compiles, and $(files fuzz | wc -l) fuzzers, some seconds each"
    echo "left to make check-release: $(files release | sed 's,.*/,,; s,\.sh$,,' | paste -sd ' ')"
fi
broken=$(cat "$work"/*.came 2>/dev/null | awk '$2 { printf " %s", $6 }')
[ -z "$broken" ] || echo "failed:$broken (details in $B/tests.log)"
read -r passed failed skipped < <(cat "$work"/*.came 2>/dev/null | awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
[ "$skipped" = 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
