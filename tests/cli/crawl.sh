# shellcheck shell=bash
# Records chosen by indexes of a made crawl (tests/record/crawl.py), and their documents by ranges.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
case $B in /*) ;; *) B=$ROOT/$B ;; esac
D=${CRAWL:-$ROOT/tests/data/crawl} name=CC-MAIN-2026-48
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
ln -s "$D" crawl
columns=crawl/cc-index/table/cc-main/warc/crawl=$name/subset=warc
zipnum=crawl/cc-index/collections/$name/indexes
# places FILE: file, offset and length of each record of a list, in order of these.
places() { sed 's/.*"file":"\([^"]*\)","offset":\([0-9]*\),"length":\([0-9]*\).*/\1 \2 \3/' "$1" | LC_ALL=C sort; }
# count FILE NAME: a count of statistics.
count() { sed "s/.*\"$2\":\([0-9]*\).*/\1/" "$1"; }

# What each kind of index selects is what was selected in Python.
without_regex=$(quern crawl select -i crawl/index.cdxj -w 'url ~ x' 2>&1 | grep 'needs PCRE2')
awk '/^# /{ n++; print substr($0, 3) >("where." n); printf "" >("want." n); next } { print >("want." n) }' crawl/selected.txt
cases=$(grep -c '^# ' crawl/selected.txt)
for ((i = 1; i <= cases; i++)); do
    where=$(cat "where.$i")
    [[ $where == *'~'* && $without_regex ]] && { skip "$where" "no PCRE2 here"; continue; }
    LC_ALL=C sort "want.$i" >want
    for index in crawl/index.cdxj $zipnum/cluster.idx "$columns" "$columns/part-*.parquet"; do
        quern crawl select -i "$index" -w "$where" -o list.jsonl 2>err || cat err
        places list.jsonl >got
        same "$where: ${index##*/}" got want
    done
done
quern crawl select -i $name --crawl-prefix crawl -w 'host = www.boats.co.uk' --stats bounded.json >list 2>err
quern crawl select -i $zipnum --stats all.json >all 2>err
quern crawl select -i crawl/index.cdxj >lines
same 'all of ZipNum is all lines' all lines
check 'of ZipNum the members are read that can hold the host' [ "$(count bounded.json index_members)" -lt "$(count all.json index_members)" ]
quern crawl select -i "$name" --crawl-prefix crawl --kind columns >got 2>err
same 'a crawl by its name: the columns, of successful fetches' got <(quern crawl select -i "$columns")
same 'several indexes' <(quern crawl select -i crawl/index.cdxj -i crawl/index.cdxj) <(cat lines lines)
same 'standard input' <(quern crawl select -i - <crawl/index.cdxj) lines
gzip -c crawl/index.cdxj >i.cdxj.gz
same 'compressed' <(quern crawl select -i i.cdxj.gz) lines
has 'a record' lines '{"url":"http'
has 'its digest as archives have it' lines '"digest":"sha1:'
has 'its date' lines '"date":"2025-11-2'
has 'its crawl' lines '"dump":"CC-MAIN-2026-48"}'

# Row groups whose statistics rule a condition out are passed over, and no record is lost by that.
awk '/^# /{ n++; print substr($0, 3) >("prune." n); printf "" >("kept." n); next } { print >("kept." n) }' "$ROOT/tests/data/crawl/prune.txt"
for ((i = 1; i <= $(grep -c '^# ' "$ROOT/tests/data/crawl/prune.txt"); i++)); do
    where=$(cat "prune.$i")
    [[ $where == *'~'* && $without_regex ]] && continue
    for file in prune prune_none; do
        quern crawl select -q -i "$ROOT/tests/data/crawl/$file.parquet" -w "$where" -o list.jsonl 2>err || cat err
        sed 's/.*"offset":\([0-9]*\).*/\1/' list.jsonl >got
        same "$where: $file" got "kept.$i"
    done
done
groups() { # READ CONDITION: how many of ten row groups are read
    quern crawl select -q -i "$ROOT/tests/data/crawl/prune.parquet" -w "$2" --stats stats.json -o list.jsonl
    equal "row groups read for $2" "$(count stats.json index_groups) and $(count stats.json skipped_groups)" "$1 and $((10 - $1))"
}
groups 1 'host = c.de'
groups 1 'tld = uk and length < 155'
groups 1 'not tld > a'
groups 2 'status >= 405'
groups 4 'not status <= 404'
groups 1 'mime = application/pdf'
groups 6 'lang > deu and lang < eng'
groups 1 'date <= 2025-01-01T23:59:59.500000Z'
groups 0 'digest < x'
groups 2 'offset < 11001'
bytes=$(($(count stats.json index_bytes) + $(count stats.json skipped_bytes)))
quern crawl select -q -i "$ROOT/tests/data/crawl/prune.parquet" --stats stats.json -o list.jsonl
equal 'what is not read is said to the byte' $bytes "$(count stats.json index_bytes)"
[ "$without_regex" ] || groups 1 "key ~ '^at,b'"
quern crawl select -q -i crawl/index.cdxj -w 'tld = uk' -o list.jsonl
places list.jsonl >want
check 'some are of a country' [ -s want ]
for index in $zipnum "$columns"; do
    quern crawl select -q -i "$index" -w 'tld = uk' --stats stats.json -o list.jsonl
    places list.jsonl >got
    same "the same by ${index##*/}" got want
done

awk 'BEGIN { for (i = 0; i < 262146; i++)
    printf "{\"url\":\"https://h%06d.de/\",\"offset\":%d,\"length\":9,\"file\":\"a.warc.gz\",\"lang\":\"%s\",\"text\":\"t\"}\n", i, i, i < 131072 ? "deu" : "eng" }' >rows.jsonl
quern mix -q --order input rows.jsonl -o rows.parquet
for where in 'url = https://h150000.de/:2' 'lang = deu and offset > 131000:2' 'lang < eng:2' 'length > 9:3' 'not (lang = eng and length = 9):2'; do
    quern crawl select -q -i rows.parquet -w "${where%:*}" --stats stats.json -o list.jsonl
    quern crawl select -q -i rows.parquet -w "(${where%:*}) or dump = x" --stats all.json -o want.jsonl
    same "of a file that quern wrote: ${where%:*}" list.jsonl want.jsonl
    equal 'row groups passed over' "$(count stats.json skipped_groups) of $(count all.json index_groups)" "${where##*:} of 3"
done

# The bytes, and what is bad, are the same for any number of threads.
awk 'BEGIN { for (i = 0; i < 40000; i++) { if (i % 7001 == 70) print "nonsense"
    printf "de,h%05d)/ 20250101000000 {\"url\": \"https://h%05d.de/\", \"status\": \"%d\", \"length\": \"9\", \"offset\": \"%d\", \"filename\": \"a.warc.gz\"}\n", i, i, i % 3 ? 200 : 404, i } }' >many.cdxj
printf 'the last one has no end' >>many.cdxj
mkdir many && split -l 3000 many.cdxj many/part.
for f in many/part.*; do
    printf '%s 20250101000000\tcdx-00000.gz\t%s\t%s\t1\n' "$(head -c 9 "$f")" "$(cat many/cdx-00000.gz 2>dd.log | wc -c)" "$(gzip -nc "$f" | wc -c)"
    gzip -nc "$f" >>many/cdx-00000.gz
done >many/cluster.idx
gzip -nc many.cdxj >many.cdxj.gz
for index in many.cdxj many.cdxj.gz many "$columns"; do
    status "${index##*/}, one thread" "$([ "$index" = "$columns" ] && echo 0 || echo 1)" quern crawl select -v -j 1 -i "$index" -i crawl/index.cdxj -w 'status = 200' --stats one.json
    mv out one.list; mv err one.err
    for j in 2 7; do
        quern crawl select -v -j $j -i "$index" -i crawl/index.cdxj -w 'status = 200' --stats stats.json >got 2>err
        same "${index##*/}, $j threads" got one.list
        same 'and what is bad' err one.err
        same 'and what is counted' stats.json one.json
    done
done
quern crawl select -q -i many.cdxj -j 3 2>err >/dev/full
equal 'an output that is full ends all threads' $? 3

# The documents are those of whole archives, and no more is read than what was asked for, or nearly.
quern extract -q crawl/crawl-data >docs.jsonl
for ((i = 1; i <= cases; i++)); do
    [[ $(cat "where.$i") == *'~'* && $without_regex ]] && continue
    quern crawl select -i crawl/index.cdxj -w "$(cat "where.$i")" >list.jsonl
    awk 'NR == FNR { wanted[$1 "\",\"offset\":" $2 ","]; next }
        { s = substr($0, index($0, "\"file\":\"crawl/") + 14); n = index(s, ","); m = index(substr(s, n + 1), ",")
          if (substr(s, 1, n + m) in wanted) print }' "want.$i" docs.jsonl >want
    status "documents: $(cat "where.$i")" 0 quern extract -q --crawl-prefix crawl list.jsonl --stats stats.json
    same 'are those of the archives' out want
    check 'by reading what was selected' [ $((100 * $(count stats.json fetched_bytes))) -le $((105 * $(count stats.json listed_bytes))) ]
done
[ -z "${CRAWL:-}" ] || finish # the rest is of the small one
for options in '-j 1 --connections 1' '-j 3 --connections 8' '--max-rate 100M --max-requests 1000'; do
    # shellcheck disable=SC2086
    quern extract -q $options --crawl-prefix crawl lines >got
    same "all records, $options" got docs.jsonl
done
sed 's/,"dump":[^}]*//' lines >crawl-list.jsonl
quern extract -q --crawl-prefix crawl crawl-list.jsonl >got
same "an archive's own word of its dump" got docs.jsonl
mkdir own && cp -r "$D/crawl-data" own && cp lines own/list.jsonl
quern extract -q own/list.jsonl | sed 's,"file":"own/,"file":"crawl/,' >got
same "without a prefix files are where the list is" got docs.jsonl
same 'standard input' <(cd own && quern extract -q - <list.jsonl) <(sed 's,"file":"crawl/,"file":",' docs.jsonl)
sed -E 's/.*"url":("[^"]*"),"file":("[^"]*"),"offset":([0-9]+),"length":([0-9]+),"digest":"sha1:([^"]*)".*/{"urlkey":"x","url":\1,"filename":\2,"offset":"\3","length":"\4","digest":"\5"}/' lines >server.jsonl
quern extract -q --crawl-prefix crawl server.jsonl >got
same 'names and numbers as index servers give them' got docs.jsonl
quern crawl select -i crawl/index.cdxj -o packed.jsonl.zst
quern extract -q --crawl-prefix crawl packed.jsonl.zst >got
same 'a packed list' got docs.jsonl
printf 'inputs: [lines]\nstages:\n  - extract: {crawl-prefix: crawl}\noutput: plan.jsonl\nwork: work\n' | sed 's/inputs/input/' >plan.yaml
status 'a plan reads lists' 0 quern curate -q plan.yaml
same 'as the command does' plan.jsonl docs.jsonl

# Of ARC files a list names records too, with documents and ids as whole files give them.
mkdir arc
arc() { printf '%s 192.0.2.1 20100107000000 text/html %d\n%s\n' "$1" ${#2} "$2"; }
page() { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body><p>Page %s of an archive of long ago, which is read.</p></body></html>' "$1"; }
: >arc/a.arc; : >arc/a.arc.gz; : >arcs.jsonl
for k in 0 1 2 3; do
    if [ $k = 0 ]; then arc filedesc://a.arc "$(printf '1 0 x\nURL IP-address Archive-date Content-type Archive-length\n')"; else arc "http://example.org/$k" "$(page $k)"; fi >record
    for f in a.arc a.arc.gz; do
        at=$(wc -c <arc/$f)
        if [ $f = a.arc ]; then cat record; else gzip -nc record; fi >>arc/$f
        [ $k = 0 ] || [ $k = 2 ] || printf '{"url":"http://example.org/%d","filename":"%s","offset":%d,"length":%d}\n' $k $f "$at" $(($(wc -c <arc/$f) - at)) >>arcs.jsonl
    done
done
quern extract -q arc/a.arc arc/a.arc.gz >docs
grep -v 'org/2' docs >want
status 'records of ARC files' 0 quern extract -q --crawl-prefix arc arcs.jsonl
same 'are those of the files' out want
equal 'which are four' "$(grep -c '"id":"arc/a.arc' out)" 4
gzip -nc arc/a.arc >whole.arc.gz
equal 'of one member for all an id says how far behind its beginning' "$(quern extract -q whole.arc.gz | sed 's/{"id":"\([^"]*\).*/\1/' | sed -n 2p)" \
    "whole.arc.gz:0+$(sed -n 's/.*"id":"arc\/a.arc:\([0-9]*\)".*/\1/p' docs | sed -n 2p)"
sed '1s/"offset":\([0-9]*\)/"offset":1\1/; 3s,org/3,org/9,' arcs.jsonl >lie.jsonl
status 'lies about them' 1 quern extract --crawl-prefix arc lie.jsonl
has 'are told' err "the list names another"

# Bad entries are named, and the others are read.
head -n 3 lines >want
{ head -n 1 crawl/index.cdxj; echo 'com,example)/ 20250101000000 {"url": "x"'; echo nonsense
  sed -n 2p crawl/index.cdxj | sed 's/"offset": "[0-9]*"/"offset": "-5"/'
  sed -n 2p crawl/index.cdxj | sed 's/"filename": /"name": /'; sed -n 2,3p crawl/index.cdxj; } >bad.cdxj
status 'bad lines' 1 quern crawl select -i bad.cdxj
same 'the others are selected' out want
n=$(head -n 1 bad.cdxj | wc -c)
has 'a bad line by its place' err "'bad.cdxj': line at byte $n: "
has 'no line at all' err 'it is no line of CDXJ: KEY TIMESTAMP {...}; skipped'
has 'no number' err 'its offset is no number of bytes; skipped'
has 'no file' err 'it has no file; skipped'
cp -r "$D/cc-index/collections/$name/indexes" z
at=$(sed -n 3p z/cluster.idx | cut -f 3)
printf 'XXXX' | dd of=z/cdx-00000.gz bs=1 seek=$((at + 20)) conv=notrunc 2>dd.log
status 'a damaged member' 1 quern crawl select -i z
has 'is named' err "z/cdx-00000.gz', member at byte $at: "
sed '2s/\t[0-9]*\t/\tx\t/; 4s/cdx-00000.gz/..\/x.gz/; 5s/\t[0-9]*\t\([0-9]*\)$/\t9999999999\t\1/' "$D/cc-index/collections/$name/indexes/cluster.idx" >z/cluster.idx
status 'bad lines of cluster.idx' 1 quern crawl select -i z
has 'no number' err "'z/cluster.idx' at byte $(sed -n 1p z/cluster.idx | wc -c): it is no line of cluster.idx"
has 'a file elsewhere' err "'../x.gz' is no file of its folder"
has 'a member that is too long' err 'a member of 9999999999 bytes is longer than'
head -c 3000 "$columns"/part-00000.gz.parquet >cut.parquet
status 'a table that is cut short' 1 quern crawl select -i cut.parquet -i crawl/index.cdxj
has 'is named' err "'cut.parquet': it is cut short"
same 'the next index is read' out lines
cp "$columns"/part-00000.gz.parquet damaged.parquet
printf 'XXXXXXXXXXXX' | dd of=damaged.parquet bs=1 seek=600 conv=notrunc 2>dd.log
status 'a damaged row group' 1 quern crawl select -i damaged.parquet
has 'is named' err "'damaged.parquet': row group 0: row "
equal 'the others are read' "$(grep -c '^{"url"' out)" 12
status 'a table of something else' 2 quern crawl select -i "$ROOT/tests/data/parquet/dclm.parquet"

# Conditions that make no sense.
wrong() { # CONDITION MESSAGE
    status "$1" 2 quern crawl select -i crawl/index.cdxj -w "$1"
    has 'is told with the column' err "--where: column $2"
}
wrong 'langs = deu and laguage = deu' "17: 'laguage' is no field"
wrong 'hots = x' "1: 'hots' is no field; did you mean 'host'?"
wrong 'lang deu' '6: an operator is missing: =, !=, <, <=, >, >=, ~ or in'
wrong 'lang =' '7: a value is missing'
wrong 'lang = "deu' '8: a quote without an end'
wrong 'lang = deu mime = x' "12: 'and' or 'or' is expected"
wrong '(lang = deu' "12: a ')' is missing"
wrong 'lang = deu)' "11: a ')' without a '('"
wrong 'status < many' '10: the field is a number, the value is none'
[ "$without_regex" ] || wrong 'url ~ "(x"' '7: '
wrong "$(printf '(%.0s' {1..200})" '101: parentheses are nested too deeply'
wrong 'lang in (deu' "13: a ')' is missing behind the values"
status 'no index' 2 quern crawl select
status 'no such index' 3 quern crawl select -i none.cdxj
status 'a folder without' 2 quern crawl select -i own
status 'nothing to do' 2 quern crawl
status 'another word' 2 quern crawl delete -i crawl/index.cdxj

# Lists that lie.
file=$(sed -n 's/.*"file":"\([^"]*\)".*/\1/p;1q' lines)
row() { printf '{"url":"https://x/","file":"%s","offset":%s,"length":%s}\n' "$@"; }
lies() { # MESSAGE ROW...: one bad record beside a good one
    { tail -n 1 lines; row "${@:2}"; } >lie.jsonl
    status "$1" 1 quern extract --crawl-prefix crawl lie.jsonl
    has 'is told' err "$1"
    equal 'the other is read' "$(wc -l <out)" 1
}
tail -n 1 lines >lie.jsonl
quern extract -q --crawl-prefix crawl lie.jsonl >want
lies "its file '../$file' is no path below the folder" "../$file" 0 10
lies 'is no path below the folder of the crawl (--trust-list allows any)' "$PWD/$file" 0 10
lies 'is no path below the folder' "https://example.org/x.warc.gz" 0 10
lies 'is no path below the folder' 'crawl-data/../../x' 0 10
lies 'its offset is no number of bytes' "$file" -1 10
lies 'its offset is no number of bytes' "$file" 1e3 10
lies 'its length is no number of bytes' "$file" 0 -10
lies 'its length is no number of bytes' "$file" 0 0
lies 'its length is no number of bytes' "$file" 9223372036854775807 10
lies "'crawl/$file' at byte 99999999: the file ends before the 10 bytes" "$file" 99999999 10
lies "'crawl/$file' at byte 0: a record of 999999999999 bytes is longer than" "$file" 0 999999999999
lies "'crawl/$file' at byte 0: the file ends before the 1000000 bytes" "$file" 0 1000000
lies "'crawl/$file' at byte 3: " "$file" 3 100
lies "'crawl/$file' at byte 0: " "$file" 0 100
has 'a cut record' err 'crawl-data'
read -r _ at len < <(places lines | grep "^$file" | sort -k2n | head -n 1)
lies "'crawl/$file' at byte $at: its URL is 'http" "$file" "$at" "$len"
grep -m 1 "\"offset\":$at," lines | sed 's/"digest":"sha1:./"digest":"sha1:Q/' >digest.jsonl
status 'another digest' 1 quern extract --crawl-prefix crawl digest.jsonl
has 'is told' err 'the list names another'
places lines | grep "^$file" | sort -k2n | awk 'NR == 2 { at = $2; n = $3 } NR == 3 { printf "%d %d\n", at, $2 + $3 - at }' >two
read -r at len <two
printf '{"file":"%s","offset":%s,"length":%s}\n' "$file" "$at" "$len" >two.jsonl
status 'two records' 1 quern extract --crawl-prefix crawl two.jsonl
has 'are told' err "more than one record lies in these $len bytes"
cat lines lines >twice.jsonl
equal 'records that are named twice come twice' "$(quern extract -q --crawl-prefix crawl twice.jsonl | sort -u | wc -l)" "$(sort -u docs.jsonl | wc -l)"
row none.warc.gz 0 10 >none.jsonl
status 'a file that is not there' 3 quern extract --crawl-prefix crawl none.jsonl
has 'is named' err "cannot open 'crawl/none.warc.gz': No such file"
sed "s,\"file\":\",&$D/," lines >absolute.jsonl
status 'any file, if the command line says so' 0 quern extract -q --trust-list absolute.jsonl
equal 'is read' "$(wc -l <out)" "$(wc -l <docs.jsonl)"
mkdir inside && cp lines inside/list.jsonl
status 'a list in a folder came with the data' 0 quern extract -q --crawl-prefix crawl inside
equal 'and is not followed' "$(wc -c <out)" 0
ln -s /etc link
row link/hostname 0 10 >link.jsonl
status 'a link out of the folder' 3 quern extract --crawl-prefix . link.jsonl
has 'is not followed' err 'it leads out of the folder'

# A kill leaves nothing under the name, and the next run is as if there had been none.
quern extract -q --crawl-prefix crawl --max-requests 2 --connections 1 lines -o killed.jsonl &
victim=$!
sleep .5
kill -9 $victim
wait $victim 2>wait.log
absent 'killed: nothing stands under the name' killed.jsonl
quern extract -q --crawl-prefix crawl lines -o killed.jsonl
same 'the next run is whole' killed.jsonl docs.jsonl
equal 'and nothing is left beside it' "$(find . -name '.killed*')" ''

# Addresses: an index and archives on a server with faults.
if quern clean http://127.0.0.1:1/x 2>&1 | grep -q 'addresses need libcurl\|was built without libcurl'; then
    skip 'addresses' 'no libcurl here'
    finish
fi
export QUERN_HTTP_TIMEOUT=3
: >log
"$B/tests/http_server" "$D" log >port &
server=$!
trap 'kill $server; rm -rf "$scratch"' EXIT
for ((i = 0; i < 100; i++)); do [ -s port ] && break; sleep .1; done
H=http://127.0.0.1:$(cat port)
quern crawl select -i crawl/index.cdxj -w 'lang = deu' >want.list
quern crawl select -i crawl/index.cdxj -w 'domain = quai.fr' >want.domain
for m in plain/0 cut/5000 busy/2; do
    status "$m: a crawl by its name, ZipNum" 0 quern crawl select -i $name --crawl-prefix "$H/$m" -w 'domain = quai.fr'
    same 'is selected as of files' out want.domain
    status "$m: by columns" 0 quern crawl select -i $name --crawl-prefix "$H/$m/" -w 'lang = deu'
    same 'is selected as of files' <(sort out) <(sort want.list)
    quern extract -q --crawl-prefix crawl want.list | sed "s,\"file\":\"crawl/,\"file\":\"$H/$m/," >want
    status "$m: documents" 0 quern extract -q --crawl-prefix "$H/$m/" want.list --stats stats.json
    same 'are those of files' out want
done
has 'members of ZipNum are asked for by range' log "GET /plain/0/cc-index/collections/$name/indexes/cdx-00000.gz bytes="
equal 'no archive is asked for as a whole' "$(grep 'warc.gz' log | grep -vc 'bytes=[0-9]*-[0-9]')" 0
status 'an index at an address' 0 quern crawl select -i "$H/plain/0/index.cdxj"
same 'is read' out lines
status 'a table at an address' 0 quern crawl select -i "$H/plain/0/${columns#crawl/}/part-00000.gz.parquet"
same 'is read' out <(quern crawl select -i "$columns/part-00000.gz.parquet")
status 'a server that lies about ranges' 3 quern extract --crawl-prefix "$H/lies/100/" want.list
status 'an archive that is gone' 3 quern extract --crawl-prefix "$H/status/404/" want.list
has 'is named with its address' err "cannot read '$H/status/404/crawl-data/"
{ tail -n 1 lines; row "$file" 99999999 10; } >lie.jsonl
status 'an offset behind the end' 1 quern extract --crawl-prefix "$H/plain/0/" lie.jsonl
has 'is told' err "'$H/plain/0/$file' at byte 99999999: the file ends before the 10 bytes"
n=$(wc -l <log)
row "$H/plain/0/$file" 0 10 >address.jsonl
status 'an address in a list' 1 quern extract address.jsonl
equal 'opens no connection' "$(wc -l <log)" "$n"
finish
