#!/usr/bin/env bash
# Holds the kernels, as nvcc made them for sm_90, to the table kernels/sass.inc, so that a slower one is seen without a GPU, and
# those for other architectures to its stack and blocks.
#     sass.sh check BUILD     a line "FILE KERNEL: MEASURE WANT, GOT" for each that is worse; status 1 if there is one
#     sass.sh record BUILD    writes the table anew
# Status 2: it cannot be tried here; the only line says why.  What is counted: tests/sass.awk.  QUERN_SASS names another table,
# CUOBJDUMP another cuobjdump.
set -u
what=$1 B=$2
table=${QUERN_SASS:-kernels/sass.inc}
# By so much a kernel may be worse than its row.
allowed=5
elsewhere='sm_80 sm_100 sm_120'

cannot() { echo "$1"; exit 2; }

# Sets cuobjdump, and PATH, for it calls nvdisasm: beside nvcc, in PATH, or where tests/cuda_tools.sh puts them.
find_tools() {
    local nvcc found
    nvcc=$(command -v "${NVCC:-nvcc}" || echo /usr/local/cuda/bin/nvcc)
    release=$("$nvcc" --version 2>/dev/null | sed -nE 's/.*release ([0-9.]+),.*/\1/p')
    PATH=$(dirname "$nvcc"):$PATH:$(echo "$(realpath "$B")"/cuda-tools/nvidia/*/bin)
    found=$(command -v "${CUOBJDUMP:-cuobjdump}") || cannot "no cuobjdump here"
    cuobjdump=$found
}

# dump ARCH: what cuobjdump says of each kernel's object, for tests/sass.awk, instructions of sm_90 alone: a build folder may hold
# objects whose sources are gone.
dump() {
    local source o
    for source in kernels/*.cu; do
        o=$B/$source.o
        [ -f "$o" ] || continue
        echo "FILE $(basename "$source")"
        "$cuobjdump" -arch "$1" -res-usage "$o" 2>&1
        "$cuobjdump" -arch "$1" -elf "$o" 2>/dev/null | grep -A 4 -E '^\.nv\.info\.|EIATTR_MAX_THREADS'
        [ "$1" != sm_90 ] || "$cuobjdump" -arch sm_90 -sass "$o" 2>/dev/null
    done
}

# listed PREFIX HEADER: the names of the list PREFIXS there, in lower case.
listed() {
    sed -n -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' -e "/^#define $1S(X/s/[^X]*(X, ...)//p" "$2" | grep -o "$1_[A-Z0-9_]*" | sed "s/^$1_//" | tr '[:upper:]' '[:lower:]' | paste -sd ' '
}

# Names as they stand in the source, without return type, parameters and what nvcc puts before static functions; none of CUB's,
# which the toolkit has.
names() {
    c++filt | awk -F '\t' -v OFS='\t' -v acts="$(listed ACT kernels/dtype.h)" -v updates="$(listed UPDATE kernels/update.h)" '
        BEGIN { n_acts = split(acts, act, " "); n_updates = split(updates, update, " ") }
        function bare(s,    i, depth) {
            sub(/^void /, "", s)
            gsub(/_INTERNAL_[0-9a-f]+_[0-9]+_[A-Za-z0-9_]*::|\(anonymous namespace\)::/, "", s)
            if (s ~ /\)$/)
                for (i = length(s); i; i--) {
                    depth += (substr(s, i, 1) == ")") - (substr(s, i, 1) == "(")
                    if (depth == 0) break
                }
            s = i ? substr(s, 1, i - 1) : s
            gsub(/\(dtype\)0/, "f32", s); gsub(/\(dtype\)1/, "bf16", s)
            for (i = 1; i <= n_acts; i++) gsub("\\(act\\)" i, act[i], s)
            for (i = 1; i <= n_updates; i++) gsub("\\(update_kind\\)" (i - 1), update[i], s)
            gsub(/\(fp8\)1/, "e4m3", s); gsub(/\(fp8\)2/, "e5m2", s)
            return s
        }
        { $2 = bare($2) }
        $2 !~ /^cub::/'
}

# rows ARCH: of its kernels.
rows() { dump "$1" | awk -v arch="$1" -f tests/sass.awk | names | LC_ALL=C sort; }

# all_rows FILE: of sm_90, with the largest stack that any architecture has, and at the end the blocks elsewhere, 99 where nothing
# was built.
all_rows() {
    local arch
    rows sm_90 >"$1"
    for arch in $elsewhere; do
        rows "$arch" >"$1.there"
        [ -s "$1.there" ] || [ "$what" = check ] || cannot "no kernel was built for $arch here: NVARCHS=\"80 90 100 120\""
        awk -F '\t' -v OFS='\t' -v n="$(wc -l <"$1.there")" 'FILENAME == ARGV[1] { stack[$1, $2] = $6; blocks[$1, $2] = $7; next }
            stack[$1, $2] > $6 { $6 = stack[$1, $2] }
            { print $0, n ? blocks[$1, $2] + 0 : 99 }' "$1.there" "$1" >"$1.all"
        mv "$1.all" "$1"
    done
}

record() {
    {
        echo "/* kernels/sass.inc -- what nvcc $release makes of each kernel for sm_90, counted by tests/sass.awk: written by make"
        echo " * sass-record, held by tests/slow/sass.sh.  stack: the most on any architecture; at the end blocks on others."
        echo " * SASS(file, kernel, threads, registers, shared, stack, blocks, instructions, loop, hmma, mufu, bar, wide, half, narrow, local,"
        echo " *      sm_80, sm_100, sm_120) */"
        awk -F '\t' '{
            printf "SASS(\"%s\", \"%s\"", $1, $2
            for (i = 3; i <= NF; i++) printf ", %d", $i
            print ")"
        }' "$1"
    } >"$table.part" && mv "$table.part" "$table"
}

# The table's rows with tabs.
of_table() {
    awk -F '"' '/^SASS\(/ { sub(/^, /, "", $5); sub(/\)$/, "", $5); gsub(/, /, "\t", $5); print $2 "\t" $4 "\t" $5 }' "$table"
}

# compare WANT GOT: rows with tabs.
compare() {
    awk -F '\t' -v allowed="$allowed" -v elsewhere="$elsewhere" '
        BEGIN { n_elsewhere = split(elsewhere, arch, " ") }
        function say(measure, want, got) { printf "%s %s: %s %s, got %s\n", $1, $2, measure, want, got; bad = 1 }
        # In how many pieces of work the hot path is measured: products of the tensor cores, or 16 bytes of memory.
        function work(hmma, wide, half) { return hmma ? hmma : wide + half / 2 ? wide + half / 2 : 1 }
        function unit(hmma, wide, half) { return hmma ? "an HMMA" : wide + half ? "16 bytes" : "a round" }
        function more(got, want, slack) { return got > want * (1 + allowed / 100) && got > want + slack }
        function rate(name, column,    want, got) {
            want = w[column] / work(w[10], w[13], w[14])
            got = $column / work($10, $13, $14)
            if (more(got, want, 1e-9)) say(name " for " unit(w[10], w[13], w[14]), sprintf("%.2f", want), sprintf("%.2f", got))
        }
        function mean(wide, half, narrow) { return wide + half + narrow ? (16 * wide + 8 * half + 4 * narrow) / (wide + half + narrow) : 0 }
        FILENAME == ARGV[1] { row[$1, $2] = $0; next }
        !(($1, $2) in row) { printf "%s %s: no row in the table\n", $1, $2; bad = 1; next }
        {
            split(row[$1, $2], w, "\t")
            delete row[$1, $2]
            if (!$3) say("threads of __launch_bounds__", w[3], "none")
            else if (!$7) say("blocks of a multiprocessor", w[7], "none: " $3 " threads, " $4 " registers, " $5 " bytes shared")
            else if ($7 < w[7]) say("blocks of a multiprocessor", w[7], $7 " (" $3 " threads, " $4 " registers, " $5 " bytes shared)")
            for (i = 1; i <= n_elsewhere; i++)
                if ($(16 + i) < w[16 + i]) say("blocks of a multiprocessor of " arch[i], w[16 + i], $(16 + i))
            if ($6 > w[6]) say("bytes of stack", w[6], $6)
            if ($16 > w[16]) say("accesses of local memory", w[16], $16)
            if (more($8, w[8], 8)) say("instructions", w[8], $8)
            rate("instructions", 9)
            rate("MUFU", 11)
            rate("barriers", 12)
            if (mean($13, $14, $15) < mean(w[13], w[14], w[15]) * (1 - allowed / 100))
                say("bytes an access of memory", sprintf("%.1f", mean(w[13], w[14], w[15])), sprintf("%.1f", mean($13, $14, $15)))
        }
        END {
            for (k in row) {
                split(row[k], w, "\t")
                printf "%s %s: in the table, and no such kernel\n", w[1], w[2]
                bad = 1
            }
            exit bad
        }' "$1" "$2"
}

find_tools
ls "$B"/kernels/*.cu.o >/dev/null 2>&1 || cannot "no kernel was built here"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ "$what" = record ] || grep -q "what nvcc $release makes" "$table" || cannot "the table is of another nvcc than $release"
all_rows "$work/got"
case $what in
record) record "$work/got" && echo "$table: $(wc -l <"$work/got") kernels" ;;
check)
    of_table >"$work/want"
    compare "$work/want" "$work/got" || exit 1
    echo "$(wc -l <"$work/got") kernels as in $table"
    ;;
esac
