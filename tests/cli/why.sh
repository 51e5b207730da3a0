#!/usr/bin/env bash
# Why: the rule in words, survivors followed, places of kept documents, hostile ids.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
cat >filter.jsonl <<'END'
{"id":"short","stage":"filter","rule":"gopher_short_doc","value":7,"threshold":50}
{"id":"long","stage":"filter","rule":"gopher_long_doc","value":100001,"threshold":100000}
END
cat >dedup.jsonl <<'END'
{"id":"copy 2","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"copy 1"}
{"id":"copy 1","stage":"dedup fuzzy","rule":"near-duplicate","value":0.875,"threshold":0.8,"survivor":"short"}
{"id":"ring a","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"ring b"}
{"id":"ring b","stage":"dedup exact","rule":"duplicate","value":1,"threshold":null,"survivor":"ring a"}
END
printf '{"id":"kept","text":"one"}\n{"text":"two","id":"also \\"kept\\""}\n' >docs.jsonl

check "a rule of the filter" quern why short --rejects filter.jsonl
cat >want <<'END'
short: dropped by filter, rule gopher_short_doc (gopher-quality, fineweb2-icu)
    7 is below 50: words that are more than symbols
    filter.jsonl at byte 0
END
same "is said in words" out want
check "above a threshold" quern why long --rejects filter.jsonl
has "is said too" out "    100001 is above 100000: words"
echo darn >bad.txt
echo '{"id":"rude","text":"Well, darn that."}' >rude.jsonl
quern filter -q --preset c4-badwords --bad-words bad.txt --rejects rude.rejects rude.jsonl >kept
check "a rule of a list" quern why rude --rejects rude.rejects
has "has words as well" out "1 is above 0: 1 if a word on the list is there"
check "survivors" quern why "copy 2" --rejects dedup.jsonl --rejects filter.jsonl
cat >want <<'END'
copy 2: dropped by dedup exact, rule duplicate
    Another document has the same text, as texts were to be compared.
    dedup.jsonl at byte 0
    its survivor copy 1 was dropped by dedup fuzzy, rule near-duplicate: 0.875 is above 0.8
    its survivor short was dropped by filter, rule gopher_short_doc (gopher-quality, fineweb2-icu): 7 is below 50
END
same "are followed" out want
quern why "copy 2" --rejects filter.jsonl --rejects dedup.jsonl >out
same "whatever the order of the accounts" out want
check "a circle ends" quern why "ring a" --rejects dedup.jsonl
has "and is called one" out "and so on in a circle"
check "kept documents" quern why kept 'also "kept"' --docs docs.jsonl
printf 'kept: kept, docs.jsonl at byte 0\nalso "kept": kept, docs.jsonl at byte 27\n' >want
same "have a place" out want
status "an unknown id" 1 quern why short nobody --rejects filter.jsonl
has "is told" out "nobody: not found"
status "a survivor that is kept" 0 quern why "copy 1" --rejects dedup.jsonl --docs <(echo '{"id":"short","text":"x"}')
has "has its place" out "its survivor short was kept, /dev/fd/"

gzip -k filter.jsonl
zstd -q dedup.jsonl
check "compressed accounts" quern why short "copy 2" --rejects '*.jsonl.gz' --rejects '*.jsonl.zst'
has "hold the same" out "its survivor short was dropped by filter, rule gopher_short_doc"
printf 'short\nlong\r\n' | quern why - --rejects filter.jsonl --json >out
cat >want <<'END'
{"id":"short","lines":1,"found":[{"fate":"dropped","stage":"filter","rule":"gopher_short_doc","value":7,"threshold":50,"meaning":"words that are more than symbols","file":"filter.jsonl","offset":0}]}
{"id":"long","lines":1,"found":[{"fate":"dropped","stage":"filter","rule":"gopher_long_doc","value":100001,"threshold":1e+05,"meaning":"words that are more than symbols","file":"filter.jsonl","offset":83}]}
END
same "ids from a pipe, answers as JSON" out want
quern why short --json --no-follow --rejects <(cat filter.jsonl) | cut -d, -f1-4 >out
has "an account from a pipe" out '"lines":1'

# Hostile ids: a terminal's escapes, a line's end, a direction, and a very long one.
long=$(head -c 100000 /dev/zero | tr '\0' x)
printf '{"id":"\\u001b[2J\\n\\u202e","stage":"filter","rule":"empty","value":1,"threshold":0}\n{"id":"%s","stage":"s","rule":"r"}\n' \
    "$long" >hostile.jsonl
check "ids that control a terminal" quern why $'\e[2J\n\u202e' --rejects hostile.jsonl
has "are made visible" out '\u001b[2J\u000a\u202e: dropped by filter, rule empty'
quern why - --rejects hostile.jsonl <<<"$long" >out
has "a long id is cut" out "x... (100000 bytes): dropped by s, rule r"
equal "in the answer" "$(wc -c <out)" 370
printf '{"id":"short"}\nnothing\n{"id":"short","stage":"filter","rule":"empty","value":1,"threshold":0}\n' >bad.jsonl
status "lines that are no account" 1 quern why short --rejects bad.jsonl
has "are named" err "'bad.jsonl' at byte 0: no account of a dropped document"
has "with their place" err "'bad.jsonl' at byte 15"
has "and passed over" out "1 is above 0: 1 if there is no text"
for _ in $(seq 20); do head -1 filter.jsonl; done >many.jsonl
quern why short --rejects many.jsonl >out
has "many lines of one id are counted" out "and 4 more lines of this id"
status "no id" 2 quern why --rejects filter.jsonl
status "nowhere to look" 2 quern why short
status "no such account" 3 quern why short --rejects none.jsonl
status "a pattern without files" 2 quern why short --rejects 'none*.jsonl'
finish
