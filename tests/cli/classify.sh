#!/usr/bin/env bash
# quern classify at a shell.
# shellcheck source=tests/lib.sh
source "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/fasttext

# Documents of two kinds of words, some with newlines, label marks and odd bytes.
awk 'BEGIN {
    split("mill flour stone wheel river corn sack grain", good); split("buy now cheap click win free offer deal", poor)
    for (i = 0; i < 400; i++) {
        text = ""
        for (j = 0; j < 12; j++) text = text (i % 2 ? good[(i * 7 + j * 3) % 8 + 1] : poor[(i * 5 + j) % 8 + 1]) (j % 5 == 4 ? "\\n" : " ")
        if (i % 50 == 0) text = text "__label__hq </s> \\u0000 é"
        printf "{\"id\":\"d%d\",\"label\":\"%s\",\"text\":\"%s\"}\n", i, i % 2 ? "hq" : "cc", text
    }
}' >docs.jsonl
grep '"hq"' docs.jsonl | gzip >good.jsonl.gz
grep '"cc"' docs.jsonl >poor.jsonl

status "trains" 0 quern classify train -q --dim 8 --epoch 20 --lr 0.5 -o model.bin docs.jsonl
status "trains again" 0 quern classify train -q -j3 --dim 8 --epoch 20 --lr 0.5 -o again.bin docs.jsonl
same "to the same bytes" model.bin again.bin
status "another seed" 0 quern classify train -q --dim 8 --epoch 20 --lr 0.5 --seed 2 -o other.bin docs.jsonl
check "is another model" sh -c '! cmp -s model.bin other.bin'
status "trains on files of one label each" 0 quern classify train -q --dim 8 --epoch 20 --lr 0.5 --wordNgrams 2 --bucket 1000 \
    --positive good.jsonl.gz --negative poor.jsonl -o files.bin
for loss in hs ns ova; do
    status "trains with $loss" 0 quern classify train -q --dim 4 --epoch 20 --lr 0.5 --minn 2 --maxn 3 --bucket 500 \
        --loss $loss -o $loss.bin docs.jsonl
done
for m in model files hs ns ova; do
    status "scores with $m" 0 quern classify score -q --model $m.bin --threshold 0.5 --rejects r.jsonl docs.jsonl
    equal "$m keeps the good" "$(grep -c '"label":"hq"' out) $(grep -c '"label":"cc"' out)" "200 0"
done
has "says why" r.jsonl '"stage":"classify","rule":"score","value":0.'
status "many threads" 0 quern classify score -q -j8 --model files.bin --threshold 0.5 docs.jsonl
cp out many
status "one thread" 0 quern classify score -q -j1 --model files.bin --threshold 0.5 docs.jsonl
same "give the same bytes" out many
status "statistics" 0 quern classify score -q --model files.bin --field q --stats stats.json docs.jsonl
has "have a histogram" stats.json '"field":"q","label":"hq","mean":0.'
has "the field has its name" out ',"q":0.'

# Sampling.
status "samples" 0 quern classify score -q --model files.bin --pareto 3 --stats stats.json -o a.jsonl docs.jsonl
kept=$(wc -l <a.jsonl)
check "some of them" [ "$kept" -gt 150 -a "$kept" -lt 320 ]
tac docs.jsonl >back.jsonl
status "in any order" 0 quern classify score -q -j4 --model files.bin --pareto 3 -o b.jsonl back.jsonl
sort a.jsonl >a; sort b.jsonl >b
same "the same ones" a b
status "by text" 0 quern classify score -q --model files.bin --pareto 3 --draw text -o c.jsonl docs.jsonl
status "another seed draws others" 0 quern classify score -q --model files.bin --pareto 3 --seed 7 -o d.jsonl docs.jsonl
check "not the same" sh -c '! cmp -s a.jsonl d.jsonl'

# In a plan: the same bytes as alone, with a histogram or without.
status "alone" 0 quern classify score -q --model files.bin --pareto 3 --threshold 0.2 --stats alone.json -o alone.jsonl docs.jsonl
for histogram in false true; do
    printf '%s\n' 'input: [docs.jsonl]' 'stages:' \
        "  - classify score: {model: files.bin, pareto: 3, threshold: 0.2, histogram: $histogram}" \
        "output: plan-$histogram.jsonl" "stats: plan-$histogram.json" >plan.yaml
    status "in a plan, histogram $histogram" 0 quern curate -q plan.yaml
    same "the same documents" alone.jsonl plan-$histogram.jsonl
done
equal "and the same histogram" "$(grep -o '"histogram":[^]]*' plan-true.json)" "$(grep -o '"histogram":[^]]*' alone.json)"

# What cannot be done.
printf '{"id":"1","text":"x"}\n{"id":"2","text":"y","label":"a b"}\n{"id":"3","text":"z","label":7}\n' >bad.jsonl
cat bad.jsonl docs.jsonl >some-bad.jsonl
status "bad labels are passed over" 1 quern classify train --dim 8 --epoch 20 --lr 0.5 -o some.bin some-bad.jsonl
equal "three of them" "$(grep -c skipped err)" 3
same "and change nothing" some.bin model.bin
status "one label is not enough" 2 quern classify train -q -o none.bin poor.jsonl
has "says so" err "label '__label__cc'"
status "nothing to train on" 2 quern classify train -q -o none.bin bad.jsonl
equal "no model then" "$(compgen -G '*none.bin*'; compgen -G '.none.bin*')" ''
status "more threads" 0 quern classify train --dim 8 --thread 2 -o threads.bin docs.jsonl
has "race, it says" err "race"
status "a label that is not there" 2 quern classify score --model model.bin --label good docs.jsonl
has "says which are" err "its 2: hq, cc"
status "no model" 2 quern classify score docs.jsonl
head -c 300 model.bin >cut.bin
status "a cut model" 3 quern classify score --model cut.bin docs.jsonl
has "names file and reason" err "'cut.bin': at byte"
status "no model at all" 3 quern classify score --model docs.jsonl docs.jsonl
has "is called that" err "'docs.jsonl' is no fastText model"
status "neither train nor score" 2 quern classify docs.jsonl
status "a quantised model" 0 quern classify score -q --model "$data/pruned.ftz" --label north docs.jsonl
finish
