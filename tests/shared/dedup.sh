#!/bin/bash
# Precision and recall on collections whose true similarities are known, and signatures
# of real documents equal to datatrove's.
. "$ROOT/tests/lib.sh"
data=$SHARED/data/dedup
case $B in /*) ;; *) B=$ROOT/$B ;; esac

# truth TABLE CLUSTERS COLUMN THRESHOLD FLOOR: against all pairs with their Jaccard
# similarity in COLUMN (4: of words).  Every cluster line must be a true pair at or over the threshold
# with the similarity printed; of the true pairs in each bin of .05 at least the share
# FLOOR must have lost one document.
truth() {
    awk -F '\t' -v col="$3" -v t="$4" -v floor="$5" '
        FNR == 1 { file++ }
        file == 1 { by[$2] = $1; sim[$2] = $3; lines++; next }
        FNR == 1 { next }
        {
            j = $col + 0
            for (k = 0; k < 2; k++) {
                m = k ? $1 : $2; s = k ? $2 : $1
                if (by[m] == s) {
                    seen++
                    if (j < t || j - sim[m] > 2e-6 || sim[m] - j > 2e-6) wrong++
                }
            }
            if (j >= t) { bin = int(j * 20); n[bin]++; found[bin] += ($1 in by) || ($2 in by) }
        }
        END {
            if (seen != lines) { print lines - seen " members are no true pair"; bad = 1 }
            if (wrong) { print wrong " members with another similarity"; bad = 1 }
            for (b in n) if (found[b] / n[b] < floor) {
                print "recall " found[b] / n[b] " of " n[b] " pairs from " b / 20; bad = 1
            }
            exit bad
        }' "$2" "$1"
}

# curve TABLE PAIRS BANDS ROWS: in each bin of .05 from .3 the share of true pairs that were
# found is no more than .02 below what the theory of bands says.
curve() {
    awk -F '\t' -v bands="$3" -v rows="$4" '
        FNR == 1 { file++ }
        file == 1 { pair[$1, $2] = 1; next }
        FNR == 1 { next }
        $4 >= 0.3 {
            bin = int($4 * 20)
            n[bin]++
            want[bin] += 1 - (1 - $4 ^ rows) ^ bands
            found[bin] += (($1, $2) in pair) || (($2, $1) in pair)
        }
        END {
            for (b in n) if (found[b] < want[b] - 0.02 * n[b]) {
                print "found " found[b] / n[b] " of " n[b] " from " b / 20 ", theory " want[b] / n[b]
                bad = 1
            }
            exit bad || !length(n)
        }' "$2" "$1"
}
for shape in "14 8" "21 6"; do
    # shellcheck disable=SC2086
    set -- $shape
    quern-dedup fuzzy -q --preset quern --threshold 0.3 --bands "$1" --rows "$2" --report-over 0 --pairs pairs \
        "$data/planted-dev/docs.jsonl.zst" -o /dev/null
    check "planted-dev: $1 bands of $2 rows follow the curve" curve "$data/planted-dev/truth.tsv" pairs "$1" "$2"
done

for t in 0.8 0.5 0.65 0.9; do
    for set in planted-dev natural-novels; do
        quern-dedup fuzzy -q --preset quern --threshold $t --report-over 0 --clusters "$set.$t" "$data/$set/docs.jsonl.zst" -o /dev/null
        # bands and rows are chosen for 0.995 at the threshold itself
        check "$set at $t: precision 1, recall .98 a bin" truth "$data/$set/truth.tsv" "$set.$t" 4 $t 0.98
    done
done
equal "planted-dev at 0.8: as many as ever" "$(wc -l <planted-dev.0.8)" 3184
equal "natural-novels at 0.8: as many as ever" "$(wc -l <natural-novels.0.8)" 594
for j in 1 3; do
    quern-dedup fuzzy -q --preset quern -j $j --clusters c "$data/planted-dev/docs.jsonl.zst" -o /dev/null
    same "planted-dev, -j $j: the same clusters" c planted-dev.0.8
done
for isa in base avx2; do
    QUERN_ISA=$isa quern-dedup fuzzy -q --preset quern --clusters c "$data/planted-dev/docs.jsonl.zst" -o /dev/null
    same "planted-dev, $isa: the same clusters" c planted-dev.0.8
done

# The default preset, whose shingles are others: every drop by comparing all shingles as strings.
for t in 0.5 0.7 0.8 0.9; do
    quern-dedup fuzzy -q --threshold $t --clusters c "$data/planted-dev/docs.jsonl.zst" -o /dev/null
    "$B/tests/dedup_truth" score "$data/planted-dev/docs.jsonl.zst" <c >scored
    check "planted-dev at $t, default preset: no wrong drop" awk -F '\t' -v t=$t '
        $4 < t || $3 - $4 > 2e-6 || $4 - $3 > 2e-6 { print; bad = 1 } END { exit bad || NR < 1000 }' scored
done

# Killed at 50 moments each: no half file stands under its name, and what comes in the end is the same.
zstd -dcq "$data/planted-dev/docs.jsonl.zst" | split -l 5000 -d -a 1 - part.0
fuzzy() { exec quern-dedup fuzzy -q part.0? -o run.out --index run.idx --index-sets; }
(fuzzy)
for f in out idx idx.sets; do mv run.$f want.$f; done
half=0
for k in $(seq 50); do
    (fuzzy) &
    sleep "$(awk -v k="$k" 'BEGIN { srand(k); print rand() }')"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    for f in out idx idx.sets; do if [ -e run.$f ] && ! cmp -s run.$f want.$f; then half=1; fi; done
    rm -f run.out run.idx*
done 2>/dev/null
equal "50 kills leave no half file" "$half" 0
(fuzzy)
same "run again: the same documents" run.out want.out
same "and the same index" run.idx want.idx
same "with the same set file" run.idx.sets want.idx.sets
rm run.idx*
printf 'input: ["part.0?"]\nstages:\n  - dedup fuzzy: {index: run.idx}\noutput: plan.out\n' >plan.yaml
kills=0
for k in $(seq 500); do
    [ $kills = 50 ] && break
    quern curate -q --checkpoint 1M plan.yaml 2>/dev/null &
    sleep "$(awk -v k="$k" 'BEGIN { srand(k); print .05 + rand() / 4 }')"
    kill -9 $! 2>/dev/null && kills=$((kills + 1)) || rm -rf plan.out*
    wait $! 2>/dev/null
done 2>/dev/null
equal "a plan was killed 50 times" $kills 50
status "and ends" 0 quern curate -q --checkpoint 1M plan.yaml
same "with the same documents" plan.out want.out
same "and the same index" run.idx want.idx
same "with the same set file" run.idx.sets want.idx.sets
rm -rf part.0? run.* plan.* want.*

# XXH64 of what `tests/record/minhash.py --stdin` prints for the first 2,000 documents.
status "signatures of 2,000 real documents" 0 env -C "$ROOT" \
    MINHASH_DOCS="$data/planted-dev/docs.jsonl.zst" "$B/tests/unit/minhash_test"
has "are those of datatrove" out "$(printf 'datatrove 2000 %s' "$(cat "$ROOT/tests/data/dedup/planted-dev.digest")")"
finish
