#!/usr/bin/env bash
# quern dedup exact by a Bloom filter: every copy goes, and of the others as many as is said.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

# 20,000 texts, and half of them again.
seq 20000 | sed 's/.*/{"id":"&","text":"text number &"}/' >once.jsonl
{ cat once.jsonl; sed -n '1~2s/"id":"/&again-/p' once.jsonl; } >docs.jsonl
status "a filter" 0 quern-dedup exact -q --bloom-count 20000 --bloom-rate 0.01 docs.jsonl --rejects rej --stats stats
cp out first
equal "no copy stays" "$(grep -c again out)" 0
has "an account of what goes" rej '"stage":"dedup exact","rule":"bloom-duplicate","value":1,"threshold":null,"file":"docs.jsonl"'
has "what it takes" stats '"bloom_bytes":23962,'
# By theory .01 of the last, and of all the sum of (1 - e^(-7 i / 191701))^7.
lost=$((20000 - $(wc -l <out)))
equal "mistakes as theory has them" "$(awk -v n=$lost 'BEGIN {
    for (i = 0; i < 20000; i++) want += (1 - exp(-7 * i / 191701)) ^ 7
    d = n - want; print (d < 4 * sqrt(want) && d > -4 * sqrt(want)) }')" 1
equal "and as the statistics say" "$(sed 's/.*"bloom_mistaken":\([0-9.]*\).*/\1/' stats | awk -v n=$lost '{ d = n - $1; print (d < 4 * sqrt($1) && d > -4 * sqrt($1)) }')" 1
status "any number of threads" 0 quern-dedup exact -q -j 3 --bloom-count 20000 --bloom-rate 0.01 docs.jsonl
same "the same documents" out first
status "a millionth" 0 quern-dedup exact -q --bloom-count 20000 docs.jsonl
same "no mistake" out once.jsonl
status "more documents than it was made for" 0 quern-dedup exact --bloom-count 10000 docs.jsonl
has "are told of" err "more documents stay than the 10000 of --bloom-count"
status "against others" 0 quern-dedup exact -q --bloom-count 40000 --against once.jsonl docs.jsonl
equal "all go" "$(cat out)" ""
for o in "--keep last" "--memory 64M" "--index x.idx" "--device cuda"; do
    # shellcheck disable=SC2086
    status "a filter with $o" 2 quern-dedup exact --bloom-count 10 $o docs.jsonl
done
printf 'input: docs.jsonl\nstages: [dedup exact: {bloom-count: 20000, bloom-rate: 0.01}]\noutput: plan.out\n' >plan.yaml
status "in a plan" 0 quern-curate -q plan.yaml
same "the same documents" plan.out first
finish
