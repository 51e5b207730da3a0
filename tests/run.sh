#!/bin/sh
# Runs the tests of the tiers named (unit, cli, shared, hosts, package, san) and prints a total.
#   unit    $B/tests/unit/*_test, cmocka programs
#   cli     tests/cli/*.sh, the tools at a shell
#   shared  tests/shared/*.sh, on the data in $SHARED (default ../shared)
#   hosts   tests/hosts/*.sh, on hosts made of network namespaces, and that data
#   package tests/package/*.sh, the Debian package in a chroot
#   san     tests/san/*.sh, ranks that train, for programs built with sanitizers
# A script prints "ok - NAME" or "not ok - NAME" a case (see tests/lib.sh).
# ONLY=PATTERN runs the files whose name has it.
# Of programs built with sanitizers every report counts, whatever the test makes of it.
set -u
B=${B:-build}
ROOT=$PWD
PATH=$ROOT/$B/bin:$PATH
case $B in /*) PATH=$B/bin:$PATH ;; esac
SHARED=${SHARED:-$ROOT/../shared}
# The same order and the same numbers wherever it runs.
LC_ALL=C.UTF-8
# Idle OpenMP threads sleep: on a busy machine spinning ones hold up those that work.
OMP_WAIT_POLICY=passive
reports=$(mktemp -d) || exit 1
trap 'rm -rf "$reports"' EXIT
log=$reports/log
ASAN_OPTIONS=log_path=$reports/san
# Archer, which comes with clang's OpenMP, tells the thread sanitizer of its barriers; it lies where that library does.  It wants
# an option by which clang 14 overlooks what memcpy, read and write touch in our own code, and does not understand "no".
no=ignore_noninstrumented_modules=1:ignore_noninstrumented_modules=no
TSAN_OPTIONS=log_path=$reports/san:suppressions=$ROOT/tests/tsan.supp:$no
libomp=$(realpath "$(clang -print-file-name=libomp.so.5 2>/dev/null)" 2>/dev/null)
OMP_TOOL_LIBRARIES=${libomp%/*}/libarcher.so
UBSAN_OPTIONS=print_stacktrace=1
export PATH ROOT SHARED B LC_ALL OMP_WAIT_POLICY ASAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS OMP_TOOL_LIBRARIES
passed=0 failed=0 broken=

count() { # name status: adds the cases in $log
    p=$(grep -cE '^(ok - |\[       OK \])' "$log")
    f=$(grep -cE '^(not ok - |\[  FAILED  \] [a-z_0-9]+$)' "$log")
    if [ "$2" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$2" = 0 ] && [ "$p" = 0 ]; then f=1; echo "$1: ran no test"; fi
    for r in "$reports"/san.*; do
        [ -f "$r" ] || continue
        f=$((f + 1))
        head -n 40 "$r"
        rm "$r"
    done
    passed=$((passed + p)) failed=$((failed + f))
    if [ "$f" != 0 ]; then
        broken="$broken $1"
        grep -vE '^(ok - |\[ RUN      \]|\[       OK \])' "$log"
        echo "FAILED $1 (status $2)"
    else
        echo "$1: $p passed"
    fi
}
for tier in "$@"; do
    case $tier in
    unit) set -- "$B"/tests/unit/*"${ONLY:-}"*_test ;;
    *) set -- tests/"$tier"/*"${ONLY:-}"*.sh ;;
    esac
    for t in "$@"; do
        [ -f "$t" ] || continue
        case $t in
        *.sh) bash "$t" </dev/null >"$log" 2>&1; st=$? ;;
        *) "$t" </dev/null >"$log" 2>&1; st=$? ;;
        esac
        count "$(basename "$t" .sh)" $st
    done
done
[ -z "$broken" ] || echo "failed:$broken"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
