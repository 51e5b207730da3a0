#!/usr/bin/env bash
# How far a run is: one count for all inputs and passes, for a person and for a program.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
for f in a b c; do
    awk -v f=$f 'BEGIN { srand(1); for (i = 0; i < 3000; i++) { t = ""; for (j = 0; j < 40; j++) t = t "w" int(rand() * 5000) " "
        printf "{\"id\":\"%s%d\",\"text\":\"%s\"}\n", f, i, t } }' >$f.jsonl
done
sum=$(cat a.jsonl b.jsonl c.jsonl | wc -c)
printf 'stages: [clean, dedup exact, dedup fuzzy]\noutput: out.jsonl\nrejects: out.rejects\n' >plan.yaml
field() { # name: of the last object in err
    grep '^{' err | tail -n 1 | sed "s/.*\"$1\":\([^,}]*\).*/\1/"
}

status "a plan says how far it is" 0 quern curate -q --progress json -j 2 plan.yaml a.jsonl b.jsonl c.jsonl
equal "by JSON objects alone, when nothing else is to be said" "$(grep -cv '^{"tool":"quern-curate","phase":"pass [123] of 3' err)" 0
has "which name the input" err '"input":"c.jsonl"'
equal "the last of which says that all is done" "$(field share)" 1
equal "and what was counted in all inputs" "$(field read),$(field dropped),$(field bad)" "9000,6000,0"
if [ "$(field total)" -gt "$sum" ]; then ok "one total has all inputs and passes"; else bad "one total has all inputs and passes" "$(field total) of $sum"; fi
rm -rf out.*
status "so does one that is divided" 0 quern curate -q --progress json --processes 3 -j 3 plan.yaml a.jsonl b.jsonl c.jsonl
equal "for all its processes" "$(field read),$(field dropped)" "9000,6000"

status "a tool that reads twice" 0 quern dedup fuzzy -q --progress json a.jsonl b.jsonl c.jsonl -o /dev/null
equal "has two passes" "$(field phase)" '"pass 2 of 2"'
equal "and one total" "$(field share)" 1
if [ "$(field total)" -gt "$sum" ]; then ok "of both"; else bad "of both" "$(field total) of $sum"; fi
awk -v rate="$(field rate)" -v s="$(field seconds)" -v total="$(field total)" 'BEGIN { exit !(rate * s <= total * 1.001) }'
equal "its rate is that of the whole run" $? 0

status "a tool that writes several outputs" 0 quern tokenize -q --progress json --tokenizer "$ROOT/tests/data/tokenizer/gpt2.json" \
    --shards 3 --output-prefix tokens a.jsonl b.jsonl c.jsonl
equal "has one total for all" "$(field total),$(field "done"),$(field share)" "$sum,$sum,1"
equal "counts in the one in hand" "$(field documents)" 3000
has "and names the input" err '"input":"a.jsonl"'
rm tokens-00001-of-00003_text_document.*
status "one that is begun again" 0 quern tokenize -q --progress json --tokenizer "$ROOT/tests/data/tokenizer/gpt2.json" \
    --shards 3 --output-prefix tokens a.jsonl b.jsonl c.jsonl
equal "counts what is there already" "$(field total),$(field share)" "$sum,1"
status "the end of a pipe into it" 0 sh -c 'cat a.jsonl | quern tokenize -q --progress json --tokenizer '"$ROOT"'/tests/data/tokenizer/gpt2.json --output-prefix piped'
equal "is not known" "$(field total),$(field "done")" "null,$(wc -c <a.jsonl)"

status "a pipe's end is not known" 0 sh -c 'cat a.jsonl | quern clean -q --progress json -o /dev/null'
equal "and not made up" "$(field total),$(field left)" null,null
status "without a terminal nothing is shown" 0 quern clean -o /dev/null a.jsonl
equal "but the summary" "$(wc -l <err)" 1
script -qec "quern clean -o /dev/null a.jsonl" /dev/null </dev/null >seen 2>&1
has "on a terminal a line is" seen "a.jsonl: "
script -qec "quern clean --progress none -o /dev/null a.jsonl" /dev/null </dev/null >seen 2>&1
equal "unless none is wanted" "$(grep -c 'a.jsonl: ' seen)" 0
status "a form that there is not" 2 quern clean --progress xml a.jsonl
finish
