#!/bin/bash
# What clang's analyzer and cppcheck find in the sources: nothing.
. "$ROOT/tests/lib.sh"
cd "$ROOT" || exit 1
mapfile -t sources < <(printf "%s\n" {base,comm,kernels,indexed_dataset,curate,tokenize,train,pipelines}/{,*/}*.c | sed 's,//,/,' | grep -v "mpi_backend\|\*")
read -ra have < <(sed -n 's/^HAVE_\([A-Z0-9]*\) ?= /-DHAVE_\1=/p' "$B/config.mk" | tr '\n' ' ')
# Dead stores are values that later lines may come to use.
flags=(-std=c11 -D_GNU_SOURCE -DPCRE2_CODE_UNIT_WIDTH=8 -DQUERN_ISA=base -DQUERN_COMMIT='""' -DQUERN_LIBRARIES='""' -I.
    "${have[@]}" -fopenmp -Xclang -analyzer-disable-checker=deadcode.DeadStores)
# Most of half an hour goes into sources that are as they were: what was said of one is kept under all that it depends on.
kept=$B/analyzed
mkdir -p "$kept" && touch "$T/begun" || exit 1
# analyze SOURCE: clang's reports on it.
analyze() {
    local said new args=("${flags[@]}" "$1")
    [ "$1" = base/err.c ] || args+=(-include tests/release/analyzer.h)
    said=$({ clang --version; echo "${args[*]}"; clang -E -D__clang_analyzer__ "${args[@]}"; } 2>/dev/null | sha256sum)
    said=$kept/${said%% *}
    new=$said.$BASHPID
    if [ -f "$said" ]; then
        touch "$said"
    elif clang --analyze --analyzer-output text "${args[@]}" >"$new" 2>&1; then
        mv "$new" "$said"
    else
        echo "$1: error: clang could not analyze it"
        said=$new
    fi
    cat "$said" || echo "$1: error: nothing was said of it"
}
running=0
for s in "${sources[@]}"; do
    [ $running -lt "$(nproc)" ] || { wait -n; running=$((running - 1)); }
    analyze "$s" >"$T/clang.${s//\//.}" &
    running=$((running + 1))
done
wait
rm -f "$kept"/*.*
find "$kept" -type f ! -newer "$T/begun" -delete
equal "clang's analyzer" "$(cat "$T"/clang.* | grep -E '(warning|error):' | sort -u)" ''
cppcheck -q -j "$(nproc)" --std=c11 --language=c --enable=warning,portability --suppressions-list=tests/release/cppcheck.txt \
    --error-exitcode=1 -D_GNU_SOURCE -DQUERN_ISA=base "${have[@]}" -I. "${sources[@]}" >"$T/cppcheck" 2>&1
equal cppcheck "$(grep -E ': (error|warning|portability):' "$T/cppcheck" | sort -u)" ''
finish
