#!/usr/bin/env bash
# Near-duplicates in seven languages, by the default preset: no wrong drop, and as many found as bands promise.
# tests/dedup_truth.c makes the pairs and compares their shingles as strings.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
case $B in /*) ;; *) B=$ROOT/$B ;; esac
"$B/tests/dedup_truth" make 1 40 >docs.jsonl
sed -n 's/.*"id":"\([^"]*\)-a".*/\1-a\t\1-b/p' docs.jsonl | "$B/tests/dedup_truth" score docs.jsonl >truth
equal "seven languages, three ways of editing" "$(cut -d- -f1,2 truth | sort -u | wc -l)" 21

# right T: every dropped document has the similarity, and the one that is printed; fields of clusters: survivor, member, printed, true.
right() {
    awk -F'\t' -v t="$1" '
        { d = $3 - $4; if ($4 < t || d > 2e-6 || d < -2e-6) { print; bad = 1 } }
        END { exit bad || NR < 100 }' scored
}
# follow BANDS ROWS FROM: of the pairs in each tenth of similarity from FROM on, in each language and in all, as many are found as
# the bands promise but for .02; below .9, where chance has a say, but for a pair and three standard deviations more.
# By ./pairs and ./truth.
follow() {
    awk -F'\t' -v b="$1" -v r="$2" -v from="$3" '
        NR == FNR { found[$1, $2] = found[$2, $1] = 1; next }
        $3 >= from {
            split($1, id, "-")
            p = 1 - (1 - $3 ^ r) ^ b
            bin = int($3 * 10 - 1e-9)
            for (k = 0; k < 2; k++) {
                g = (k ? "all" : id[1]) " " bin
                n[g]++; want[g] += p; var[g] += p * (1 - p); got[g] += ($1, $2) in found
            }
        }
        END {
            for (g in n) if (got[g] < want[g] - .02 * n[g] - (g ~ /9$/ ? 0 : 1 + 3 * sqrt(var[g]))) {
                print g ": found " got[g] " of " n[g] ", promised " want[g]
                bad = 1
            }
            exit bad || length(n) < 8
        }' pairs truth
}
for t in .5 .7 .8 .9; do
    check "at $t" quern-dedup fuzzy -q --threshold $t --clusters pairs --stats st docs.jsonl -o /dev/null
    "$B/tests/dedup_truth" score docs.jsonl <pairs >scored
    check "at $t: no wrong drop" right $t
    check "at $t: what has the similarity is found" follow "$(sed 's/.*"bands":\([0-9]*\).*/\1/' st)" \
        "$(sed 's/.*"rows":\([0-9]*\).*/\1/' st)" $t
done
quern-dedup fuzzy -q --threshold .3 --bands 21 --rows 6 --pairs pairs docs.jsonl -o /dev/null
check "the curve of 21 bands of 6 rows" follow 21 6 .4
finish
