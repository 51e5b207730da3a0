#!/usr/bin/env bash
# Near-duplicates in seven languages (tests/dedup_truth.c): what is found of pairs whose similarity is known.
. bench/lib.sh
make --no-print-directory B="$B" "$B/tests/dedup_truth" >&2 || exit 1
"$B/tests/dedup_truth" make 2 "${PAIRS:-400}" >"$T/docs.jsonl"
sed -n 's/.*"id":"\([^"]*\)-a".*/\1-a\t\1-b/p' "$T/docs.jsonl" | "$B/tests/dedup_truth" score "$T/docs.jsonl" >"$T/truth"
quern-dedup fuzzy -q --threshold .3 --bands 21 --rows 6 --pairs "$T/pairs" "$T/docs.jsonl" -o /dev/null
awk -F'\t' '
    NR == FNR { found[$1, $2] = found[$2, $1] = 1; next }
    $3 >= .5 {
        split($1, id, "-")
        g = id[1] "-" int($3 * 10 - 1e-9) / 10
        n[g]++; want[g] += 1 - (1 - $3 ^ 6) ^ 21; got[g] += ($1, $2) in found
    }
    END {
        for (g in n)
            printf "dedup-scripts-%s\t%.3f\tfound\tof %d pairs whose shingles are as similar; 21 bands of 6 rows promise %.3f\n",
                g, got[g] / n[g], n[g], want[g] / n[g]
    }' "$T/pairs" "$T/truth" | sort
for preset in quern quern2; do
    quern-dedup fuzzy -q --preset $preset --clusters "$T/clusters" "$T/docs.jsonl" -o /dev/null
    awk -F'\t' -v preset=$preset '
        NR == FNR { found[$1, $2] = found[$2, $1] = 1; next }
        $4 > .9 { split($1, id, "-"); g = id[1] "-" id[2]; n[g]++; got[g] += ($1, $2) in found }
        END {
            for (g in n)
                printf "dedup-scripts-%s-%s\t%.3f\tfound at .8\tof %d pairs with a similarity of over .9 by five characters\n",
                    preset, g, got[g] / n[g], n[g]
        }' "$T/clusters" "$T/truth" | sort
done
