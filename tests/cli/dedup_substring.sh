#!/bin/bash
# quern dedup substring at a shell.
. "$ROOT/tests/lib.sh"
p="The quick brown fox jumps over the lazy dog and runs away into the dark wood"
{
    printf '{"id":"a","text":"A begins. %s. A ends.","n":1}\n' "$p"
    printf '{"id":"b","text":"B: %s; B ends."}\n' "$p"
    printf '{"id":"c","text":"%s"}\n' "$p"
    printf '{"id":"d","text":"no repeat here, but some text of its own all the same"}\n{"id":"e","text":""}\n'
} >in
status "runs" 0 quern-dedup substring --length 40 in --rejects rej --stats stats
cat >want <<W
{"id":"a","text":"A begins. $p. A ends.","n":1}
{"id":"b","text":"B:; B ends."}
{"id":"d","text":"no repeat here, but some text of its own all the same"}
{"id":"e","text":""}
W
same "the first copy stays" out want
equal "and what is left of c is nothing" "$(cat rej)" \
    '{"id":"c","stage":"dedup substring","rule":"nothing-left","value":0,"threshold":null,"file":"in","offset":231}'
has "counts" stats '"docs_shortened":1,"passages_struck":1,"bytes_struck":77'
status "whole words" 0 quern-dedup substring --length 40 --snap word in
has "are struck" out '{"id":"b","text":"B: wood; B ends."}'
status "none stays" 0 quern-dedup substring --length 40 --keep none in --min-words 8 --rejects rej
equal "of a copy" "$(cat out)" "$(sed -n '4,5p' in)"
has "and documents of few words go" rej '{"id":"a","stage":"dedup substring","rule":"words-left","value":6,"threshold":8,"file":"in","offset":0}'
status "too long to come again" 0 quern-dedup substring --length 90 in
same "all stays" out in

# Characters stay whole: the repeat begins and ends within one.
printf '{"id":"a","text":"\xc3\xa4-%s-\xc3\xa4"}\n{"id":"b","text":"\xc4\xa4-%s-\xc4\xa5"}\n' "$p" "$p" >utf
status "within characters" 0 quern-dedup substring --length 40 utf
has "they stay whole" out '"text":"Ĥĥ"'

# A run of one letter: what overlaps the first copy stays.
printf '{"id":"a","text":"%s"}\n' "$(printf '%0300d' 0)" >run
quern-dedup substring -q run | tr -d '\n' >out
equal "a run of zeros" "$(cat out)" "{\"id\":\"a\",\"text\":\"$(printf '%0100d' 0)\"}"
status "and all of it" 0 quern-dedup substring -q --keep none run
equal "goes" "$(cat out)" ""

printf '{"id":"a","text":"x %s y"}\n{"id":"b","text":"%s"}\n' "$p" "${p// /\\n   }" >tok
status "tokens" 0 quern-dedup substring --tokens 12 tok
equal "do not mind white space" "$(cat out)" "{\"id\":\"a\",\"text\":\"x $p y\"}"

# By the tokens of a tokenizer: what a brute force over its ids strikes.
D=$ROOT/tests/data/tokenizer
awk 'BEGIN { srand(4); for (i = 0; i < 60; i++) { t = ""
    for (j = 0; j < 25; j++) t = t (rand() < .1 ? "  " : " ") (rand() < .3 ? "the mill grinds grain, and" : "w" int(rand() * 300))
    print "{\"id\":\"" i "\",\"text\":\"" substr(t, 2) " caf\303\251 \346\227\245\346\234\254\"}" } }' >some
quern-tokenizer encode --jsonl --tokenizer "$D/gpt2.json" some >ids
for keep in first none; do # ids that are struck: of a window of 9 that came before, wholly in front of it; or that comes twice
    tr -d '[]' <ids | awk -F'[, ]+' -v keep=$keep -v L=9 '
        { n[NR] = NF; for (i = 1; i <= NF; i++) id[NR, i] = $i }
        function window(d, i,    k, s) { s = ""; for (k = 0; k < L; k++) s = s id[d, i + k] " "; return s }
        END {
            for (d = 1; d <= NR; d++) for (i = 1; i + L - 1 <= n[d]; i++) { s = window(d, i)
                if (!(s in times)) { doc[s] = d; at[s] = i }
                times[s]++ }
            for (d = 1; d <= NR; d++) {
                for (i = 1; i + L - 1 <= n[d]; i++) { s = window(d, i)
                    if (keep == "none" ? times[s] > 1 : doc[s] < d || at[s] + L <= i)
                        for (k = 0; k < L; k++) gone[d, i + k] = 1 }
                for (i = 1; i <= n[d]; i++) if (!((d, i) in gone)) printf "%s ", id[d, i]
                print ""
            }
        }' | awk '{ gsub(/^ +| +$/, ""); gsub(/ +/, ","); print "[" $0 "]" }' >left.ids
    quern-tokenizer decode --jsonl --tokenizer "$D/gpt2.json" left.ids | grep -v '^""$' >left
    for how in "-j 1" "-j 3"; do
        # shellcheck disable=SC2086
        status "tokens of a tokenizer, $keep, $how" 0 quern-dedup substring -q $how --keep $keep --tokens 9 --tokenizer "$D/gpt2.json" some
        sed 's/.*"text"://; s/}$//' out >texts
        same "as by brute force" texts left
    done
    [ "$(wc -l <left)" = 60 ] && [ $((2 * $(wc -c <left))) -lt "$(wc -c <some)" ]
    equal "some of it" $? 0
done
printf 'input: some\nstages: [dedup substring: {tokens: 9, tokenizer: "%s", keep: none}]\noutput: plan.out\n' "$D/gpt2.json" >plan.yaml
mv out none
status "in a plan" 0 quern-curate -q plan.yaml
same "the same" plan.out none
status "a tokenizer without a number of tokens" 2 quern-dedup substring --tokenizer "$D/gpt2.json" some
status "no tokenizer" 3 quern-dedup substring --tokens 9 --tokenizer some some
status "a tokenizer that changes texts" 1 quern-dedup substring --tokens 9 --tokenizer "$D/spm_llama.model" tok
has "is told" err "its tokens are not its text at byte 0: a tokenizer that changes texts does not say what to strike; skipped"

printf '{"id":"a","text":"one\\n%s\\ntwo"}\n{"id":"b","text":"three %s\\n%s\\nfour"}\n' "$p" "$p" "$p" >lines
status "lines" 0 quern-dedup substring --length 40 --snap line lines
has "are struck whole" out "{\"id\":\"b\",\"text\":\"three $p\\nfour\"}"

# Any number of threads, any memory.
for i in $(seq 1500); do
    printf '{"id":"m%s","text":"%s %s %s %s"}\n' "$i" "$i" "$(seq -s ' ' $((i % 37)) $((i % 37 + 60)))" \
        "$(printf 'word%s ' $((i * 7)) $((i * 11)) $((i * 13)))" "$(seq -s , $((i % 11)) $((i % 11 + 70)))"
done >many
for keep in first none; do
    quern-dedup substring -q --keep $keep -j 1 many -o j1 --rejects r1
    for j in 2 8; do
        quern-dedup substring -q --keep $keep -j $j --memory 64M many -o jn --rejects rn
        same "$keep -j $j: same documents" jn j1
        same "$keep -j $j: same account" rn r1
    done
done
if [ "$(wc -c <j1)" -lt $(($(wc -c <many) / 3)) ]; then ok "much was struck"; else bad "much was struck" "$(wc -c <j1)"; fi

# A plan in one process gives the bytes of the pipe, stopped and going on too.
printf 'stages:\n  - dedup lines: {preset: ccnet, match: raw}\n  - dedup substring: {length: 60, memory: 64M}\n  - dedup lines: {preset: datatrove, min-words: 3}\noutput: planned\n' >plan.yaml
quern-dedup lines -q --preset ccnet --match raw many in | quern-dedup substring -q --length 60 |
    quern-dedup lines -q --preset datatrove --min-words 3 >piped
status "a plan" 0 quern-curate -q --checkpoint 1M plan.yaml many in
same "gives the bytes of the pipe" planned piped

status "one token" 2 quern-dedup substring --tokens 1 in
status "no room" 3 quern-dedup substring --tmp /no/such/folder in
finish
