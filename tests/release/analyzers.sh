#!/bin/bash
# What clang's analyzer and cppcheck find in the sources: nothing.
. "$ROOT/tests/lib.sh"
cd "$ROOT" || exit 1
mapfile -t sources < <(printf "%s\n" {base,comm,kernels,indexed_dataset,curate,tokenize,train,pipelines}/{,*/}*.c | sed 's,//,/,' | grep -v "mpi_backend\|\*")
read -ra have < <(sed -n 's/^HAVE_\([A-Z0-9]*\) ?= /-DHAVE_\1=/p' "$B/config.mk" | tr '\n' ' ')
flags=(-std=c11 -D_GNU_SOURCE -DPCRE2_CODE_UNIT_WIDTH=8 -DQUERN_ISA=base -DQUERN_COMMIT='""' -DQUERN_LIBRARIES='""' -I. "${have[@]}")
# analyze ARGUMENT...: clang's reports on the sources of standard input.  Dead stores are values that later lines may come to use.
analyze() {
    xargs -P "$(nproc)" -n 4 clang --analyze --analyzer-output text "${flags[@]}" -fopenmp \
        -Xclang -analyzer-disable-checker=deadcode.DeadStores "$@" 2>&1
}
{
    analyze <<<base/err.c
    printf '%s\n' "${sources[@]}" | grep -vx base/err.c | analyze -include tests/release/analyzer.h
} >"$T/clang"
equal "clang's analyzer" "$(grep -E '(warning|error):' "$T/clang" | sort -u)" ''
cppcheck -q -j "$(nproc)" --std=c11 --language=c --enable=warning,portability --inline-suppr --error-exitcode=1 \
    -D_GNU_SOURCE -DQUERN_ISA=base "${have[@]}" -I. "${sources[@]}" >"$T/cppcheck" 2>&1
equal cppcheck "$(grep -E ': (error|warning|portability):' "$T/cppcheck" | sort -u)" ''
finish
