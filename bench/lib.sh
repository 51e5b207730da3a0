# shellcheck shell=bash
# For the scripts of bench/: source it first.  $T is a scratch folder that is removed at the end.
# shellcheck disable=SC2034
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

# row NAME VALUE UNIT NOTE: a line of the table.
row() { printf '%s\t%s\t%s\t%s\n' "$@"; }
# The middle of the numbers that are read.
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# cpu COMMAND...: user and system seconds, the median of $runs; what it writes goes to $cpu_out.
runs=3 cpu_out=/dev/null
cpu() {
    for ((i = 0; i < runs; i++)); do
        { TIMEFORMAT='%U %S'; time "$@" >"$cpu_out" 2>/dev/null; } 2>&1 | awk '{ print $1 + $2 }'
    done | median
}
# over A B: A / B.
over() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
# field NAME FILE: its numbers in lines of JSON.
field() { sed -nE "s/.*\"$1\":([-+0-9.e]+).*/\1/p" "$2"; }
# Ranks of one machine, as many as there may be.
ranks() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated QUERN_MPI=$B/lib/quern-mpi.so
    timeout "${limit:-600}" mpirun --oversubscribe -n "$@" </dev/null
}
# program NAME: builds bench/NAME.c into $B/bench.
program() { make --no-print-directory B="$B" "$B/bench/$1" >&2 || exit 1; }
# f1 SET FILE: of documents of the article, segment or WCXB pages with known answers; WCXB's are unpacked in $T/dev.
f1() {
    local x=$SHARED/data/extraction
    case $1 in
    article) python3 "$x/scorers/score_articles.py" --boot 0 "$x/article-benchmark/dev/ground-truth.json" "$2" |
        awk -F'\t' 'NR == 2 { print $4 }' ;;
    segment) python3 "$x/scorers/score_segments.py" "$x/segment-benchmark/dev/segments.jsonl" "$2" |
        sed 's/.* F1=\([0-9.]*\).*/\1/' ;;
    wcxb) python3 "$x/scorers/score_wcxb.py" "$T/dev/ground-truth" "$2" | awk -F'\t' '$1 == "all" { print $3 }' ;;
    esac
}
