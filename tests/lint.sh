#!/usr/bin/env bash
# Holds the house rules that a compiler does not: floors, headers that stand alone,
# banned calls, tidy text, scripts, and what every command must answer.
set -u
B=${B:-build}
CC=${CC:-cc}
bad=0
say() { echo "lint: $*"; bad=1; }

mapfile -t sources < <(find base comm kernels indexed_dataset curate tokenize train tests bench \
    -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort)

# A folder includes only what stands below it; mains may cross between siblings.
allowed() {
    case $1 in
    base) echo base ;;
    comm | kernels) echo "base $1" ;;
    indexed_dataset) echo base comm kernels indexed_dataset ;;
    curate | tokenize | train) echo "base comm kernels indexed_dataset $1" ;;
    *) echo base comm kernels indexed_dataset curate tokenize train tests bench ;;
    esac
}
for f in "${sources[@]}"; do
    case $(basename "$f") in cmd_*) continue ;; esac
    ok=" $(allowed "${f%%/*}") "
    while read -r inc; do
        [[ $ok == *" ${inc%%/*} "* ]] || say "$f includes $inc, which does not stand below it"
    done < <(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$f" | grep /)
done

# Each header compiles alone.
for f in "${sources[@]}"; do
    case $f in
    *.h) echo "#include \"$f\"" | $CC -std=c11 -D_GNU_SOURCE -DQUERN_ISA=base -Wall -Wextra -I. \
        -fsyntax-only -x c - || say "$f does not compile alone" ;;
    esac
done

# What make gpu-check and gpu-bench are built of wants no library (tests/bare).
wanted='/(simdjson|zstd|zlib|libdeflate|yaml|bzlib|xxhash|pcre2|libpsl|cmocka)\.h|/(unicode|oneapi)/'
for f in $(MAKEFLAGS='' make -s --no-print-directory HAVE_DNNL=0 HAVE_CUDA=0 gpu-sources); do
    got=$($CC -std=c11 -D_GNU_SOURCE -DQUERN_ISA=base -DHAVE_DNNL=0 -Itests/bare -I. -fopenmp -fsyntax-only -MD -MF - \
        -Werror=implicit-function-declaration "$f" | grep -oE "$wanted" | sort -u | tr '\n' ' ')
    [[ -z ${got#/xxhash.h } ]] || say "$f wants ${got}which a machine with CUDA alone has not"
done

# Calls that overrun, lie, or belong to the mains.
for f in "${sources[@]}"; do
    case $f in tests/* | bench/*) continue ;; esac
    grep -nE '(^|[^a-z_>.])(gets|strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|alloca|system|rand|srand)\(' "$f" |
        sed "s|^|$f:|" | grep . && say "banned call"
    case $f in
    */cmd_*) ;;
    base/log.c | base/tool.c | base/opt.c) ;;
    *) grep -nE '(^|[^a-z_>.])(printf|puts|putchar|perror|exit|abort|_exit)\(' "$f" | sed "s|^|$f:|" | grep . &&
        say "a library prints or exits" ;;
    esac
done

# No two folders define the same symbol: any of them may meet in one program.
for a in "$B"/lib*.a; do
    nm -g --defined-only "$a" | awk '$2 ~ /[TDBR]/ { print $3 }' | sort -u
done | sort | uniq -d | grep . && say "symbols defined twice"

# OpenMP stays where the trainer is.
for f in "${sources[@]}"; do
    case $f in kernels/* | train/* | tests/* | bench/*) continue ;; esac
    grep -q '#pragma omp' "$f" && say "$f uses OpenMP"
done

# Text: no tabs, no trailing blanks, lines to 130 characters; tables are as scripts wrote them.
for f in "${sources[@]}"; do
    case $f in *_table.[ch]) continue ;; esac
    LC_ALL=C.UTF-8 grep -nP '\t| +$|^.{131,}' "$f" | head -3 | cut -c1-60 | sed "s|^|$f:|" | grep . &&
        say "tab, trailing blank or long line"
done

# Scripts.
if command -v shellcheck >/dev/null; then
    mapfile -t scripts < <(find tests bench pipelines -name '*.sh'; ls .ci/run)
    shellcheck -x -S warning "${scripts[@]}" || say "shellcheck"
else
    echo "lint: no shellcheck here (make deps installs it)"
fi

# Every command: help with an example, version, man page without complaint.
for p in "$B"/bin/quern-* "$B"/bin/quern; do
    "$p" --help | grep -q '^Example' || say "$p --help has no example"
    "$p" --version | grep -qE '^quern(-[a-z]+)? [0-9]+\.[0-9]+' || say "$p --version"
    "$p" --man >"$B/lint.1" || say "$p --man"
    if command -v man >/dev/null; then
        LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings=all -l "$B/lint.1" 2>&1 >/dev/null | grep . && say "$p: man page"
    fi
    "$p" --no-such-option >/dev/null 2>&1
    [ $? = 2 ] || say "$p: exit status of a bad option"
done
rm -f "$B/lint.1"
[ $bad = 0 ] && echo "lint: fine"
exit $bad
