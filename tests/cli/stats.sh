#!/usr/bin/env bash
# Stats: every number of a small corpus, any number of threads, hosts that do not fit.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
cat >docs.jsonl <<'END'
{"id":"1","url":"https://user@A.example:80/x","lang":"en","lang_score":0.5,"text":"One two\nthree"}
{"id":"2","url":"http://a.example.","lang":"en","lang_score":0.75,"text":"caf\u00e9\u00a0au lait\n\n","signals":{"a":3,"b":true,"c":null}}
{"id":3,"url":"http://[::1]:8/","lang":"fr","lang_score":1,"text":"","signals":{"a":-1,"b":false}}
END
check "a small corpus" quern stats docs.jsonl --json --by lang
pick() { sed -n "s/.*$1.*/\\1/p" out; }
has "sums" out '"bad":0,"documents":3,"bytes":29,"characters":27,"words":6,"lines":4,'
equal "characters of a document" "$(pick '"per_document".*"characters":{\([^[]*\),"powers_of_two".*"words":{"count":3')" \
    '"count":3,"mean":9,"min":0,"p01":0,"p05":0,"p25":0,"p50":13,"p75":14,"p95":14,"p99":14,"max":14,"quantile_error":0'
equal "a number in an object" "$(pick '"signals.a":{\("count":2,"mean":1,"min":-1,"p01":-1\),.*"languages"')" \
    '"count":2,"mean":1,"min":-1,"p01":-1'
has "truth counts as 1" out '"signals.b":{"count":2,"mean":0.5,'
has "languages" out '"languages":{"different":2,"missed":0,"top":[{"lang":"en","documents":2,"bytes":29,"characters":27,"words":6},{"lang":"fr","documents":1,"bytes":0,"characters":0,"words":0}]}'
has "hosts" out '"hosts":{"different":2,"missed":0,"top":[{"host":"a.example","documents":2,"bytes":29,"characters":27,"words":6},{"host":"[::1]","documents":1,"bytes":0,"characters":0,"words":0}]}'
has "fields" out '"fields":{"id":3,"lang":3,"lang_score":3,"signals":2,"signals.a":2,"signals.b":2,"text":3,"url":3},"fields_left_out":0'
has "groups" out '"by":{"field":"lang","different":2,"groups":[{"value":"en","documents":2,"bytes":29,"characters":27,"words":6,"lines":4,'
has "and their numbers" out '"value":"fr","documents":1,"bytes":0,"characters":0,"words":0,"lines":0,'
check "tables" quern stats docs.jsonl --by host
has "aligned" out "  characters      3        9    0    0     0    13    14    14   14"

# More than are kept exactly: quantiles within their error; any number of threads.
awk 'BEGIN { for (i = 1; i <= 20000; i++) {
    printf "{\"id\":\"%d\",\"url\":\"http://h%d.example/\",\"x\":%d.5,\"n\":%d,\"text\":\"w", i, i % 7 ? i : 0, i, i % 200
    for (k = 0; k < i % 9; k++) printf " word"
    print "\"}" } }' >many.jsonl
quern stats many.jsonl --json --by n --top 0 -j 1 >one
for j in 2 8; do
    quern stats many.jsonl --json --by n --top 0 -j $j >other
    same "the same with $j threads" other one
done
cp one out
has "a bound of the error" out '"n":{"count":20000,"mean":99.5,"min":0,"p01":1,"p05":9,"p25":49,"p50":99,"p75":149,"p95":189,"p99":197,"max":199,"quantile_error":0.00390625}'
has "all hosts" out '"hosts":{"different":17144,"missed":0,"top":[{"host":"h0.example","documents":2857,'
p50=$(pick '"x":{"count":20000,"mean":10001,"min":1.5,.*"p50":\([0-9.]*\),"p75":[0-9.]*,"p95":[0-9.]*,"p99":[0-9.]*,"max":20000.5,.*"languages"')
check "a median within its error" awk -v x="$p50" 'BEGIN { exit !(x > 10000.5 * (1 - 1 / 256) && x < 10000.5 * (1 + 1 / 256)) }'
quern stats many.jsonl --json --max-hosts 100 --top 2 -j 1 >one
quern stats many.jsonl --json --max-hosts 100 --top 2 -j 8 >other
same "few hosts kept: the same with 8 threads" other one
cp one out
missed=$(pick '"hosts":{"kept":[0-9]*,"missed":\([0-9]*\),"top":\[{"host":"h0.example","documents":[0-9]*')
got=$(pick '"host":"h0.example","documents":\([0-9]*\)')
check "the frequent one is there, its count within what is said" \
    test "$got" -le 2857 -a "$((got + missed))" -ge 2857 -a "$missed" -gt 0

# Hostile: names without end, a name twice, one with a NUL and an escape.
awk 'BEGIN { printf "{\"text\":\"x\",\"signals\":{"; for (i = 0; i < 3000; i++) printf "%s\"s%d\":1", i ? "," : "", i; print "}}" }' >names.jsonl
echo '{"text":"x","o":{"a":1,"a":2},"k\u0000\u001b":1,"url":"http://'"$(head -c 400 /dev/zero | tr '\0' h)"'/"}' >>names.jsonl
check "too many names" quern stats names.jsonl --json
has "are counted" out '"fields_left_out":2005}'
tail -1 names.jsonl | quern stats >out
has "a name that controls a terminal" out 'k\u0000\u001b'
has "too long a host is none" out '(none)'
printf 'no json\n{"id":"1"}\n{"text":"ok"}\n' >bad.jsonl
status "bad documents" 1 quern stats bad.jsonl --json
has "are counted as such" out '"bad":2,"documents":1,'
has "and named" err "'bad.jsonl' at byte 8"
status "nothing at all" 0 quern stats /dev/null --json
has "has no mean" out '"mean":null,"min":null'
status "tables of nothing" 0 quern stats /dev/null --by lang
status "to a file" 0 quern stats docs.jsonl --json -o stats.json
has "which is written" stats.json '"documents":3'
check "a pipe with a name" quern stats <(cat docs.jsonl) --json
has "is read" out '"documents":3'
status "no such file" 3 quern stats none.jsonl
finish
