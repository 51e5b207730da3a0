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

# Where documents came from: --sources.
cat >sources.jsonl <<'END'
{"id":"1","url":"https://user@www.a.example.co.uk:8/x","lang":"en","text":"One two","source":{"dump":"CC-MAIN-2024-22","file":"w.warc.gz","offset":5,"date":"2024-05-21T10:20:30Z","license":"https://creativecommons.org/licenses/by-sa/4.0/","robots":"noindex, max-snippet: 20","tdm_reservation":"1"}}
{"id":"2","url":"http://b.example.co.uk/","lang":"de","text":"Drei","date":"1999-01-01","source":{"file":"b \"offset\": html"}}
{"id":"3","url":"http://10.0.0.1/","text":"Vier und","crawled":"2023-12-01T00:00:00Z","tdm_reservation":"0"}
{"id":"4","text":"Five","source":{"date":"last year"}}
END
# An ARC's day, capitals in a host and in directives, a number; a month that there is none of.
cat >others.jsonl <<'END'
{"id":"1","url":"http://WWW.Example.ORG/","text":"One","source":{"date":"20080430204825","robots":"NOINDEX","tdm_reservation": 1 }}
{"id":"2","url":"http://example.org/","text":"Two","source":{"date":"2021-13-45T00:00:00Z","robots":"noindex"},"tdm_reservation":0}
END
check 'of other forms' quern stats --sources --json others.jsonl
has 'a domain is one' out '"domains":{"different":1,'
has 'a day of an ARC' out '"crawled":{"first":"2008-04-30","last":"2008-04-30","months":[{"month":"","documents":1,"bytes":3,"characters":3,"words":1},{"month":"2008-04","documents":1,'
has 'a directive is one' out '"robots":{"different":1,"missed":0,"top":[{"directive":"noindex","documents":2,'
has 'numbers' out '"tdm_reservation":{"reserved":{"documents":1,"bytes":3,"characters":3,"words":1},"not_reserved":{"documents":1,'
printf 'rights:\n  noindex: off\n' >rights.yaml
check 'the filter sees the number too' quern filter -q --preset rights --config rights.yaml others.jsonl
equal 'it keeps the other' "$(grep -o '"id":"[0-9]"' out)" '"id":"2"'
check 'sources' quern stats --sources --json sources.jsonl
has 'sizes by language' out '"languages":{"different":3,"missed":0,"top":[{"lang":"","documents":2,"bytes":12,"characters":12,"words":3},{"lang":"en",'
has 'registered domains, of which the largest tenth' out '"domains":{"different":2,"missed":0,"top_tenth":{"domains":1,"documents":2,"bytes":11,"characters":11,"words":3,"share":0.4782608695652174,"list":[{"domain":"example.co.uk","documents":2,"bytes":11,"characters":11,"words":3,"share":0.4782608695652174}]}}'
has 'days of crawls, not of pages' out '"crawled":{"first":"2023-12-01","last":"2024-05-21","months":[{"month":"","documents":2,"bytes":8,"characters":8,"words":2},{"month":"2023-12","documents":1,'
has 'kinds' out '"kinds":{"archive":{"documents":1,"bytes":7,"characters":7,"words":2},"file":{"documents":2,"bytes":8,'
has 'crawls' out '"dumps":{"different":2,"missed":0,"top":[{"dump":"","documents":3,'
has 'files' out '{"file":"w.warc.gz","documents":1,"bytes":7,"characters":7,"words":2}'
has 'licences in one form' out '{"license":"cc-by-sa-4.0","documents":1,'
has 'directives one by one' out '{"directive":"max-snippet","documents":1,"bytes":7,"characters":7,"words":2},{"directive":"noindex","documents":1,'
has 'reservations' out '"tdm_reservation":{"reserved":{"documents":1,"bytes":7,"characters":7,"words":2},"not_reserved":{"documents":1,"bytes":8,'
check 'as tables' quern stats --sources sources.jsonl
has 'with shares' out '  example.co.uk          2     11  47.83          11'
has 'and days' out 'crawled: 2023-12-01 to 2024-05-21'
awk 'BEGIN { x = 7; for (i = 0; i < 5000; i++) { x = (x * 69069 + 1) % 2147483648; d = int(sqrt(int(x / 65536) % 10000)); t = "w"
    for (k = x % 17; k > 0; k--) t = t " word"
    printf "{\"id\":\"%d\",\"url\":\"http://h%d.d%d.example.com/%d\",\"text\":\"%s\",\"source\":{\"file\":\"f%d\",\"offset\":1,\"date\":\"20%02d-%02d-%02dT\"}}\n",
        i, i % 3, d, i, t, i % 7, 10 + d % 10, 1 + d % 12, 1 + i % 28 } }' | sed 's/\.example\.com/.com/' >sites.jsonl
quern stats --sources --json -j 1 sites.jsonl >one
quern stats --sources --json -j 8 sites.jsonl >other
same 'the same with 8 threads' one other
awk -F'"' '{ split($8, u, "/"); sub(/^h[0-9]*\./, "", u[3]); n[u[3]] += length($12) } END { for (d in n) print n[d], d }' sites.jsonl |
    sort -k1,1nr -k2 >want
equal 'all domains' "$(grep -o '"domains":{"different":[0-9]*' one)" "\"domains\":{\"different\":$(wc -l <want)"
tenth=$((($(wc -l <want) + 9) / 10))
same 'the largest tenth of them, with their bytes' <(head -n $tenth want) <(grep -o '"list":\[.*\]}},"crawled"' one |
    grep -oE '"domain":"[^"]*","documents":[0-9]*,"bytes":[0-9]*' | sed -E 's/"domain":"([^"]*)".*"bytes":(.*)/\2 \1/')
cp one out
has 'from the first day to the last' out "\"first\":\"$(grep -o '"date":"[^T]*' sites.jsonl | cut -d'"' -f4 | sort | head -1)\",\"last\":\"$(grep -o '"date":"[^T]*' sites.jsonl | cut -d'"' -f4 | sort | tail -1)\""
check 'few domains kept' quern stats --sources --json --max-hosts 20 sites.jsonl
has 'which is said' out '"domains":{"kept":'
printf 'input: sites.jsonl\nstages:\n  - stats: {sources: true, json: true, output: planned.json}\nwork: planned.work\n' >plan.yaml
check 'at the end of a plan' quern curate -q plan.yaml
same 'the same' one planned.json
finish
