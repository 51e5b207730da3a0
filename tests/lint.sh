#!/usr/bin/env bash
# Holds the house rules that a compiler does not.  `tests/lint.sh RULE...` holds these alone:
#   floors     a folder includes only what stands below it, as docs/architecture.md says
#   headers    each header compiles alone
#   tags       one tag a header
#   bare       what make gpu-check and gpu-bench are built of wants no library
#   calls      no banned call; a library neither prints nor exits; OpenMP stays where the trainer is
#   symbols    no symbol twice, none that nothing else uses
#   paths      no path outside the repository
#   text       no tabs, no trailing blanks, lines to 130 characters
#   scripts    shellcheck
#   commands   every command has help with an example, a version, a man page
# With one of $B/bin and $B/lib*.a missing, `make lint` is the way to call it.
set -u
B=${B:-build}
CC=${CC:-cc}
bad=0
say() { echo "lint: $*"; bad=1; }

folders=()
for d in base comm kernels indexed_dataset curate tokenize train pipelines bindings tests bench; do [ ! -d $d ] || folders+=("$d"); done
mapfile -t sources < <(find "${folders[@]}" -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort)
mapfile -t headers < <(printf '%s\n' "${sources[@]}" | grep '\.h$')
mapfile -t product < <(printf '%s\n' "${sources[@]}" | grep -vE '^(tests|bench)/')

# A row of a table of floors: "`folder/`, ... | what lives there | may include".  Prints a line a folder: the number of its
# row, the folder, what it may include.
floors() {
    awk -F'|' '
        function names(cell, list,    n, i, k, word) {
            for (i in list) delete list[i]
            n = split(cell, word, "`")
            for (i = 2; i <= n; i += 2) { sub("/$", "", word[i]); list[++k] = word[i] }
            return k
        }
        /^\| folder/ { under = /in `curate/ ? "curate/" : ""; on = 1; next }
        !/^\|/ { on = 0 }
        on && /`/ {
            to = ""
            n = names($4, list)
            for (i = 1; i <= n; i++) to = to " " under list[i]
            n = names($2, list)
            for (i = 1; i <= n; i++) print NR, under list[i] to
        }' docs/architecture.md
}

rule_floors() {
    local -A row may
    local nr folder names name f inc from to

    while read -r nr folder names; do
        row[$folder]=$nr
        may[$folder]=" $names "
    done < <(floors)
    [ ${#row[@]} -gt 0 ] || say "docs/architecture.md has no table of floors"
    for folder in "${!row[@]}"; do
        for name in ${may[$folder]}; do
            [ "${row[$name]:-0}" -gt "${row[$folder]}" ] || say "docs/architecture.md: $folder/ may include $name/, which does not stand below it"
        done
    done
    while IFS=: read -r f inc; do
        case $f in */cmd_*) continue ;; esac
        from=${f%%/*} to=${inc%%/*}
        if [ "$from" = "$to" ] && [[ " ${!row[*]} " == *" $from/"* ]]; then
            from=${f%/*} to=${inc%/*}
        fi
        [ -n "${row[$from]:-}" ] || { say "$f: docs/architecture.md does not say where $from/ stands"; continue; }
        [ "$from" = "$to" ] || [[ ${may[$from]} == *" $to "* ]] || say "$f includes $inc, which does not stand below it"
    done < <(grep -oE '^#include "[^"]+/[^"]+"' "${product[@]}" /dev/null | sed 's/#include "//; s/"$//')
}

rule_headers() {
    # shellcheck disable=SC2016
    printf '%s\n' "${headers[@]}" | xargs -P "$(nproc)" -I{} sh -c 'printf "#include \"%s\"\n" "$1" |
        '"$CC"' -std=c11 -D_GNU_SOURCE -DQUERN_ISA=base -Wall -Wextra -I. -fsyntax-only -x c - ||
        echo "lint: $1 does not compile alone"' sh {} 2>&1 | grep . && bad=1
}

rule_tags() {
    grep -oE '^ *(struct|enum|union) [a-z_0-9]+ \{' "${headers[@]}" /dev/null |
        awk -F'[: ]+' '$3 in at && at[$3] != $1 { print "lint: " $2 " " $3 " stands in " at[$3] " and in " $1 } { at[$3] = $1 }' |
        grep . && bad=1
}

rule_bare() {
    local wanted='/(simdjson|zstd|zlib|libdeflate|yaml|bzlib|xxhash|pcre2|libpsl|cmocka)\.h|/(unicode|oneapi)/' f got asked
    asked=$(mktemp -d) # other knobs in $B would have all of it built again
    cp "$B/config.mk" "$asked"
    for f in $(MAKEFLAGS='' make -s --no-print-directory B="$asked" HAVE_DNNL=0 HAVE_CUDA=0 gpu-sources); do
        got=$($CC -std=c11 -D_GNU_SOURCE -DQUERN_ISA=base -DHAVE_DNNL=0 -Itests/bare -I. -fopenmp -fsyntax-only -MD -MF - \
            -Werror=implicit-function-declaration "$f" | grep -oE "$wanted" | sort -u | tr '\n' ' ')
        [[ -z ${got#/xxhash.h } ]] || say "$f wants ${got}which a machine with CUDA alone has not"
    done
    rm -r "$asked"
}

# Calls that overrun, lie, or belong to the mains.
rule_calls() {
    local banned='gets|strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|alloca|system|rand|srand' library omp
    grep -nE "(^|[^a-z_>.])($banned)\(" "${product[@]}" /dev/null && say "banned call"
    mapfile -t library < <(printf '%s\n' "${product[@]}" | grep -vE '/cmd_|^base/(log|tool|opt)\.c$')
    grep -nE '(^|[^a-z_>.])(printf|puts|putchar|perror|exit|abort|_exit)\(' "${library[@]}" /dev/null && say "a library prints or exits"
    mapfile -t omp < <(printf '%s\n' "${product[@]}" | grep -vE '^(kernels|train)/')
    grep -n '#pragma omp' "${omp[@]}" /dev/null && say "OpenMP outside of kernels/ and train/"
}

# Exported for tests alone: no file of the product has a use for them.
for_tests='act_approx idx_add_document idx_open_mem justext_paragraphs ledger_open_mem matmul_plain_cpu ngram_open_mem params_fill
tokenizer_open_sentencepiece'

words_of() { grep -ohE '[A-Za-z_][A-Za-z_0-9]*' "$@" /dev/null | sort -u; }

# A global symbol of a library is used by another file.  A test counts if the symbol's own file uses it too: then it is a part
# of the product that a test looks at by itself; what is there for tests alone is in the list above.
rule_symbols() {
    local d name file others tests
    for d in "$B"/lib*.a; do
        nm -g --defined-only "$d" | awk '$2 ~ /[TDBR]/ { print $3 }' | sort -u
    done | sort | uniq -d | grep . && say "symbols defined twice"

    d=$(mktemp -d) || return
    nm -g -u "$B"/lib*.a "$B"/*/cmd_*.o 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u >"$d/used"
    # Files that this build may have left out, libquern's, and benchmarks.
    mapfile -t others < <(printf '%s\n' "${sources[@]}" | grep -E '^(bench|bindings)/|\.cuh?$|^comm/mpi_backend\.c$')
    words_of "${others[@]}" >"$d/others"
    mapfile -t tests < <(printf '%s\n' "${sources[@]}" | grep '^tests/')
    words_of "${tests[@]}" >"$d/tests"
    nm -g --defined-only -A "$B"/lib*.a 2>/dev/null | awk -F'[: ]' '$4 ~ /^[TDBRWV]$/ && $5 !~ /^(_Z|DW|\.)/ {
        sub(".*/lib", "", $1)
        sub("\\.a$", "", $1)
        print $5, $1 "/" $2
    }' | sort -k1,1 | join -v1 - "$d/used" >"$d/alone"
    # A function of several instruction sets goes by the name that its source gives it.
    sed -E 's/_(base|avx2|avx512) / /; s/(\.(base|avx2|avx512))?\.o$//' "$d/alone" | sort -u | join -v1 - "$d/others" >"$d/unused"
    while read -r name file; do
        [[ " ${for_tests//$'\n'/ } " != *" $name "* ]] || continue
        if ! grep -qx "$name" "$d/tests"; then
            say "$name of $file is used nowhere else: make it static, or drop it"
        else
            file=$(printf '%s\n' "${product[@]}" | grep -E "^${file%%/*}/(.*/)?${file#*/}\$")
            [ "$(grep -cw "$name" "$file")" -gt 1 ] || say "$name of $file is used by tests alone: drop it, or name it in tests/lint.sh"
        fi
    done < <(sort -u "$d/unused")
    for name in $for_tests; do
        grep -q "^$name " "$d/unused" || say "$name is not for tests alone: take it off the list in tests/lint.sh"
    done
    rm -r "$d"
}

# The tests on shared data, and CI, look beside the repository; nothing else does.
rule_paths() {
    local files
    mapfile -t files < <(git ls-files 2>/dev/null | grep . ||
                         find . -type f ! -path './.git/*' ! -path './build*/*' ! -path './demo/*' ! -path "./$B/*" | sed 's|^\./||')
    mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '^tests/data/')
    grep -nIE '\.\./\.[l]ibrary|(^|[^A-Za-z0-9_.$}/-])/[w]ork(/|$)' "${files[@]}" /dev/null && say "a path of one machine"
    mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vE '^(\.ci/run|tests/shared/.*)$')
    grep -nIE '\.\./[s]hared' "${files[@]}" /dev/null | grep -vE '^(Makefile|[^:]*\.mk):[0-9]+:check-shared\b' | grep . &&
        say "a path outside the repository"
}

# Tables are as scripts wrote them.
rule_text() {
    local texts
    mapfile -t texts < <(printf '%s\n' "${sources[@]}" | grep -v '_table\.[ch]$')
    LC_ALL=C.UTF-8 grep -nP '\t| +$|^.{131,}' "${texts[@]}" /dev/null | cut -c1-90 | grep . && say "tab, trailing blank or long line"
    awk 'length > 78 { print FILENAME ":" FNR }' CHANGELOG.md | grep . && say "a line too long for Debian's changelog"
}

rule_scripts() {
    local scripts
    command -v shellcheck >/dev/null || { echo "lint: no shellcheck here (make deps installs it)"; return; }
    mapfile -t scripts < <(find tests bench pipelines -name '*.sh'; ls .ci/run)
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 -P "$(nproc)" shellcheck -x -S warning || say "shellcheck"
}

one_command() {
    local p=$1 page
    page=$(mktemp) || return
    "$p" --help | grep -q '^Example' || say "$p --help has no example"
    "$p" --version | grep -qE '^quern(-[a-z]+)? [0-9]+\.[0-9]+' || say "$p --version"
    "$p" --man >"$page" || say "$p --man"
    if command -v man >/dev/null; then
        LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings=all -l "$page" 2>&1 >/dev/null | grep . && say "$p: man page"
    fi
    "$p" --no-such-option >/dev/null 2>&1
    [ $? = 2 ] || say "$p: exit status of a bad option"
    rm -f "$page"
    return $bad
}

rule_commands() {
    export -f one_command say
    printf '%s\n' "$B"/bin/quern-* "$B"/bin/quern | xargs -P "$(nproc)" -I{} bash -c 'bad=0; one_command "$1"' bash {} || bad=1
}

rules=$(sed -n 's/^rule_\([a-z]*\)() {$/\1/p' "$0")
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $rules
for rule; do
    [[ " ${rules//$'\n'/ } " == *" $rule "* ]] || { say "no rule '$rule'"; continue; }
    "rule_$rule"
done
[ $bad = 0 ] && echo "lint: fine"
exit $bad
