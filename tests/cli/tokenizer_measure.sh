#!/usr/bin/env bash
# How short a tokenizer makes texts, by language: every number, any number of threads, after training.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/tokenizer
cat >docs.jsonl <<'END'
{"id":"1","lang":"en","text":"The mill grinds  the grain.\n"}
{"id":"2","lang":"zh","text":"磨坊\u3000磨谷物。\u001cx"}
{"id":"3","text":"no language"}
{"id":"4","lang":"en","text":"the grain feeds the mill"}
{"id":"5","lang":"","text":""}
{"id":"6","lang":7,"text":"😀"}
{"id":"7","lang":"a language with a name that is far too long","text":"x y"}
"only a string"
END
check "a tokenizer" quern tokenizer train --vocab-size 300 -o t.json "$D/corpus.txt"
status "by language" 0 quern tokenizer measure --tokenizer t.json --stats stats.json -j1 docs.jsonl
# of LANGUAGE: its counts.
of() { tr '{' '\n' <stats.json | sed -n "s/^\"language\":\"$1\",\\(.*\\),\"bytes_per_token.*/\\1/p"; }
equal "documents, bytes, characters, words" "$(of en | sed 's/,"tokens.*//')" '"documents":2,"bytes":52,"characters":52,"words":10'
equal "of several bytes, white space of all kinds" "$(of zh | sed 's/,"tokens.*//')" '"documents":1,"bytes":23,"characters":9,"words":3'
equal "without a language" "$(of none | sed 's/,"tokens.*//')" '"documents":4,"bytes":28,"characters":25,"words":6'
equal "of too long a name" "$(of other | sed 's/,"tokens.*//')" '"documents":1,"bytes":3,"characters":3,"words":2'
tokens() { quern tokenizer encode --tokenizer "$1" --jsonl | tr -cd ',\n' | awk '{ n += length($0) + 1 } END { print n }'; }
equal "tokens" "$(of en | sed 's/.*"tokens":\([0-9]*\).*/\1/')" "$(grep '"en"' docs.jsonl | tokens t.json)"
equal "bytes that are no characters" "$(quern tokenizer encode --tokenizer t.json --jsonl <<<'"磨é"' | tr -cd , | wc -c)" \
    "$(($(printf '"磨é"\n' | quern tokenizer measure --tokenizer t.json --stats b.json >/dev/null && sed 's/.*"partial":\([0-9]*\).*/\1/' b.json | head -1) - 1))"
equal "a row for each and for all" "$(awk '{ print $1 }' out | tr '\n' ' ')" 'language en none zh other all '
equal "the sums of all" "$(awk '$1 == "all" { print $2, $3 }' out)" '8 106'
for i in $(seq 3000); do cat docs.jsonl; done >many.jsonl
quern tokenizer measure --tokenizer t.json --stats m1.json -j1 many.jsonl >m1
quern tokenizer measure --tokenizer t.json --stats m3.json -j3 many.jsonl >m3
same "threads: the same table" m1 m3
same "threads: the same numbers" m1.json m3.json
seq 1100 | sed 's/.*/{"lang":"&","text":"a"}/' >langs.jsonl
status "many languages" 0 quern tokenizer measure --tokenizer t.json --stats stats.json -j2 langs.jsonl
equal "beyond 1000 are others" "$(of other | sed 's/,"bytes.*//')" '"documents":100'
equal "by another field" "$(quern tokenizer measure --tokenizer t.json --by id docs.jsonl | sed -n 's/^1 *\(1 *28 \).*/\1/p')" '1            28 '
status "the text's own field" 2 quern tokenizer measure --tokenizer t.json --by text docs.jsonl
printf '{"text":"a"}\nnothing\n' >bad.jsonl
status "a bad line" 1 quern tokenizer measure --tokenizer t.json bad.jsonl
has "is named" err "'bad.jsonl' at byte 13"
printf 'plain text\nof two lines\n' >plain
equal "plain text" "$(quern tokenizer measure --tokenizer t.json plain | awk '$1 == "none" { print $2, $3 }')" '2 24'
printf '{"lang":"\\u001b[31m","text":"x"}\n' | quern tokenizer measure --tokenizer t.json >out
equal "no character moves a terminal" "$(tr -d '\n -~' <out | wc -c)" 0

# Unknown characters, and those that are their bytes.
status "after training" 0 quern tokenizer train --model wordpiece --character-coverage 0.9 --vocab-size 300 -o w.json \
    --measure docs.jsonl --stats w.stats "$D/corpus.txt"
quern tokenizer measure --tokenizer w.json --stats m.stats docs.jsonl >table
same "as measured by itself" w.stats m.stats
grep -v '^quern' err >shown
same "and shown" shown table
cp w.stats stats.json
equal "all of a script that has no tokens is unknown" "$(of zh | sed 's/.*"unknown"/"unknown"/')" '"unknown":6,"partial":0'
quern tokenizer train -q --model byte-fallback --vocab-size 400 -o f.json --sentencepiece-model f.model "$D/corpus.txt"
for t in f.json f.model; do
    printf '{"lang":"ja","text":"x\\u946b"}\n' | quern tokenizer measure --tokenizer $t --stats stats.json >out
    equal "bytes of a character, $t" "$(of ja | sed 's/.*"tokens"/"tokens"/')" '"tokens":5,"unknown":0,"partial":3' # a space, x, three bytes
done
for made in "--vocab-merges made" "--ranks made.tiktoken"; do
    # shellcheck disable=SC2086
    status "measured as made, $made" 0 quern tokenizer train --vocab-size 300 $made --measure docs.jsonl "$D/corpus.txt"
    has "all texts, $made" err "all                   8           106"
done
finish
