#!/usr/bin/env bash
# quern dedup exact by a field, a JSON pointer, an address; what stays by a date.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

cat >docs.jsonl <<'END'
{"id":"1","text":"a","url":"http://x.org/p","n":1,"meta":{"doi":"10/x","tags":["a","b"]},"a.b":1}
{"id":"2","text":"b","url":"http://x.org/p","n":2,"meta":{"doi":"10/y","tags":[ "a", "b" ]},"a.b":2}
{"id":"3","text":"a","url":"http://x.org/q","n":1.0,"meta":{"doi":"10/x","tags":["b","a"]},"a.b":1}
{"id":"4","text":"c","n":"1","url":"","meta":{"doi":null,"tags":[]}}
{"id":"5","text":"d","url":null,"meta":{"tags":["\u0061","b"],"x/y":{"~":true}}}
{"id":"6","text":"e","url":"","meta":{"x/y":{"~":true}}}
END
# kept NAME WANT OPTION...: the ids that stay, joined.
kept() {
    local name=$1 want=$2
    shift 2
    quern-dedup exact -q --rejects rej "$@" docs.jsonl 2>err >out
    equal "$name" "$(sed 's/.*"id":"\([^"]*\)".*/\1/' out | tr -d '\n')" "$want"
}
kept "the text" 12456
kept "the text, by name" 12456 --key text
kept "a field; without it, or with nothing in it, a document is like no other" 13456 --key url
kept "a number as it is written, equal to the string" 12356 --key n
kept "a field within another" 12456 --key meta.doi
kept "the same by a pointer" 12456 --key /meta/doi
kept "a list, but for white space and escapes" 1346 --key /meta/tags
kept "a place in a list" 1346 --key /meta/tags/0
kept "beyond its end" 123456 --key /meta/tags/7
kept "a pointer with escapes" 12345 --key /meta/x~1y/~0
kept "a name with a full stop in it" 12456 --key /a.b
kept "which is two names without the slash" 123456 --key a.b
for o in "--memory 64M" "--keep last" "--keep none"; do
    want=13456
    [ "$o" != "--keep last" ] || want=23456
    [ "$o" != "--keep none" ] || want=3456
    # shellcheck disable=SC2086
    kept "a field, $o" $want --key url $o
done
kept "two threads" 13456 --key url -j 2
status "an index by a field" 0 quern-dedup exact -q --key url --index url.idx docs.jsonl
head -n 1 docs.jsonl | sed 's/"1"/"new"/; s/"a"/"new text"/' >new.jsonl
equal "which knows the address" "$(quern-dedup exact -q --key url --against url.idx new.jsonl)" ""
status "an index by another field is refused" 3 quern-dedup exact -q --against url.idx new.jsonl
has "and told" err "is an index of 'dedup exact normalize=none key=url', not of 'dedup exact normalize=none'"
status "no field" 2 quern-dedup exact --key '' docs.jsonl
status "no pointer" 2 quern-dedup exact --key '/a~2' docs.jsonl
has "and why" err "behind ~ there is 0 or 1"
printf 'input: docs.jsonl\nstages: [dedup exact: {key: /url}]\noutput: plan.out\n' >plan.yaml
status "in a plan" 0 quern-curate -q plan.yaml
equal "the same" "$(sed 's/.*"id":"\([^"]*\)".*/\1/' plan.out | tr -d '\n')" 13456
if ranks=$(command -v mpirun); then
    export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # Open MPI's, in libraries that it has unloaded
    split -n l/3 -d -a 1 docs.jsonl part.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    quern-dedup exact -q --key url part.? -o one
    status "two ranks" 0 "$ranks" --oversubscribe -n 2 quern-dedup exact -q --key url part.? -o two
    same "the same" two one
fi

for kind in "exact --key nope" "exact --keep best --by nope" "fuzzy --keep best --by nope"; do
    # shellcheck disable=SC2086
    status "$kind: a field that no document has" 0 quern-dedup $kind docs.jsonl
    opt=${kind##*--}
    has "is said" err "of 6 documents none has 'nope' (--${opt%% *})"
done
status "one that a document has" 0 quern-dedup exact --key meta.x/y docs.jsonl
equal "is not" "$(grep -c 'none has' err)" 0

# Documents of one id, told apart by their places.
printf '{"id":"same","text":"t"}\n{"id":"same","text":"u"}\n' >'a:b.jsonl'
printf '{"id":"same","text":"t"}\n' >c.jsonl
places='"file":"c.jsonl","offset":0}'
for kind in exact fuzzy "exact --memory 64M" "exact --cluster-size n"; do
    # shellcheck disable=SC2086
    status "$kind: places" 0 quern-dedup $kind -q --places --rejects rej a:b.jsonl c.jsonl
    has "the survivor's" rej "\"survivor\":\"same\",\"survivor_file\":\"a:b.jsonl\",\"survivor_offset\":0,$places"
done
status "of pairs and clusters" 0 quern-dedup fuzzy -q --places --clusters cl --pairs pairs --report-over 1 --report report --stats st a:b.jsonl c.jsonl
equal "both places" "$(cat cl)" "$(printf 'same\tsame\t1.000000\ta:b.jsonl:0\tc.jsonl:0')"
same "in both" pairs cl
has "a report has ids alone" report '{"survivor":"same","documents":2,"sample":["same"]'
has "and statistics" st '"largest_survivor":"same"'
quern-dedup exact -q --places --index places.idx a:b.jsonl -o out
quern-dedup exact -q --against places.idx --rejects rej c.jsonl -o out
has "an index keeps them" rej "\"survivor_file\":\"a:b.jsonl\",\"survivor_offset\":0,$places"
status "without places" 0 quern-dedup fuzzy -q --clusters cl --rejects rej a:b.jsonl c.jsonl
equal "ids alone" "$(cat cl) $(grep -c survivor_file rej)" "$(printf 'same\tsame\t1.000000') 0"
printf 'input: ["a:b.jsonl", c.jsonl]\nstages: [dedup exact: {places: true}]\noutput: places.out\nrejects: places.rej\n' >plan.yaml
status "in a plan" 0 quern-curate -q plan.yaml
has "the survivor's place" places.rej '"survivor_file":"a:b.jsonl","survivor_offset":0'

# How many there were of each document that stays.
sizes() { # NAME WANT KIND OPTION...: ids that stay with their sizes.
    local name=$1 want=$2
    shift 2
    quern-dedup "$@" -q --cluster-size signals.n docs.jsonl >out 2>err
    equal "$name" "$(sed 's/.*"id":"\([^"]*\)".*"signals.n":\([0-9]*\)}/\1:\2/' out | paste -sd ' ')" "$want"
}
sizes "exact: sizes" "1:2 2:1 4:1 5:1 6:1" exact
sizes "exact: of the last" "2:2 3:1 4:1 5:1 6:1" exact --key url --keep last
sizes "exact: none stays of what comes twice" "3:1 4:1 5:1 6:1" exact --key url --keep none
sizes "exact: within a bound of memory" "1:2 2:1 4:1 5:1 6:1" exact --memory 64M
sizes "exact: those of --against do not count" "2:1 4:1 5:1 6:1" exact --against new.jsonl --against <(head -n 1 docs.jsonl)
sizes "fuzzy: sizes" "1:2 2:1 4:1 5:1 6:1" fuzzy
sizes "fuzzy: not verified" "2:1 3:2 4:1 5:1 6:1" fuzzy --no-verify --keep last
for kind in exact fuzzy; do
    for f in text id url ''; do status "$kind: the size is not to stand in '$f'" 2 quern-dedup $kind --cluster-size "$f" docs.jsonl; done
    has "$kind: which is said" err "--cluster-size: a field without a name"
done
status "sets beside no index" 2 quern-dedup fuzzy --index-sets docs.jsonl
printf 'input: docs.jsonl\nstages: [dedup exact: {cluster-size: one}, dedup fuzzy: {cluster-size: two}]\noutput: sizes.out\n' >plan.yaml
status "in a plan" 0 quern-curate -q plan.yaml
equal "the same" "$(sed 's/.*"id":"\([^"]*\)".*"one":\([0-9]*\),"two":\([0-9]*\)}/\1:\2:\3/' sizes.out | paste -sd ' ')" "1:2:1 2:1:1 4:1:1 5:1:1 6:1:1"

# Addresses: a line has those that are one page.
cat >pages <<'END'
http://example.org/ https://example.org HTTP://EXAMPLE.ORG:80 https://example.org:443/ http://example.org./#top http://example.org:/? http://example.org/a/..
http://example.org/a/b http://example.org/a/./b http://example.org/c/../a/b http://example.org/%61/b?&& http://example.org/a/b?utm_source=x&UTM_Medium=y http://example.org/a/b?gclid=1&fbclid=2#part
http://example.org/a/b/ http://example.org/a/b/. http://example.org/a/b/c/..
http://example.org/a/b?x=1&y=2 http://example.org/a/b?y=2&x=1 https://Example.org/a/b?y=2&utm_campaign=q&x=1&_ga=4
http://example.org/a/b?x=1&x=2
http://example.org/a/b?x=2
http://example.org/A/b
http://www.example.org/a/b
http://example.org:8080/a/b http://EXAMPLE.org:8080/a/b
https://example.org:80/a/b
http://user:Pass@example.org/a/b https://user:Pass@EXAMPLE.org/a/b
http://example.org/%2f%E4 http://example.org/%2F%e4
http://example.org//%E4
http://[::1]/x http://[::1]:80/x
ftp://example.org/x ftp://example.org:21/x
http://example.org/100%
mailto:A@example.org
mailto:a@example.org
example.org/a
http://example.org/a?utmost=1
END
n=0
while read -r line; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    for u in $line; do printf '{"id":"%s","text":"","url":" %s"}\n' "$n" "$u"; done
done <pages >urls.jsonl
quern-dedup exact -q --key url --normalize url urls.jsonl -o out --rejects rej
equal "addresses: a page of each line stays" "$(grep -o '"id":"[0-9]*"' out | tr -dc '0-9\n' | paste -sd ' ')" "$(seq -s ' ' $n)"
equal "and the others go for it" "$(sed 's/.*"id":"\([0-9]*\)".*"survivor":"\([0-9]*\)".*/\1 \2/' rej | awk '$1 != $2')" ""

# The newest stays.
cat >dates.jsonl <<'END'
{"id":"1","text":"x","date":"2024-05-01T12:00:00+02:00"}
{"id":"2","text":"x","date":"2024-05-01T11:00:00Z"}
{"id":"3","text":"x","date":"yesterday"}
{"id":"4","text":"x","date":"2024-05-01 10:59:59.9"}
{"id":"5","text":"x"}
{"id":"6","text":"y","date":"2023"}
{"id":"7","text":"y","date":"2023-01-01T00:00:00.5-00:30"}
{"id":"8","text":"y","date":"2023-01-01T00:30"}
{"id":"9","text":"z","date":"1969-12-31"}
{"id":"10","text":"z","date":"0001-01"}
{"id":"11","text":"z","date":"2024-13-01"}
{"id":"12","text":"w","date":"2023-02-28"}
{"id":"13","text":"w","date":"20240301"}
END
equal "exact: the newest stays" "$(quern-dedup exact -q --keep best --by date dates.jsonl | sed 's/.*"id":"\([0-9]*\)".*/\1/' | paste -sd ' ')" "2 7 9 12"
equal "fuzzy: the same" "$(quern-dedup fuzzy -q --keep best --by /date dates.jsonl | sed 's/.*"id":"\([0-9]*\)".*/\1/' | paste -sd ' ')" "2 7 9 12"
finish
