# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/wiki # written for this test, as are the expected outputs

# bare FILE...: documents without their origin, which is another file and place in each case
bare() { sed 's/,"source":{[^}]*}//' "$@"; }

check 'extracts an export' quern extract "$data/sample.xml" -o a.jsonl --rejects r.jsonl --stats s.json
has 'where a page is' a.jsonl '"source":{"file":"'"$data"'/sample.xml","within":788}'
equal 'and it is' "$(tail -c +789 "$data/sample.xml" | head -c 6)" '<page>'
bare a.jsonl >t && mv t a.jsonl
same 'text' a.jsonl "$data/sample.text.jsonl"
quern extract -q --format markdown "$data/sample.xml" | bare >m.jsonl
same 'Markdown' m.jsonl "$data/sample.markdown.jsonl"
equal 'what is dropped, and why' "$(sed 's/"stage":"extract",//; s/,"threshold".*//' r.jsonl | tr '\n' ' ')" \
    '{"id":"2","rule":"redirect","value":null {"id":"3","rule":"namespace","value":10 {"id":"5","rule":"empty","value":0 {"id":"6","rule":"namespace","value":6 {"id":"7","rule":"model","value":null '
has 'counts' s.json '"wiki_dumps":1'
quern extract -q --namespaces 0,6 "$data/sample.xml" >n.jsonl
equal 'other namespaces' "$(sed 's/^{"id":"\([^"]*\)".*/\1/' n.jsonl | tr '\n' ' ')" '1 4 6 '
status 'namespaces that are none' 2 quern extract --namespaces 0,x "$data/sample.xml"

# containers and threads
gzip -c "$data/sample.xml" >a.xml.gz
quern extract -q a.xml.gz | bare >b.jsonl
same 'gzip' a.jsonl b.jsonl
iconv -f UTF-8 -t UTF-16 "$data/sample.xml" | quern extract -q - | bare >b.jsonl
same 'UTF-16' a.jsonl b.jsonl
quern extract -q -j5 - <"$data/sample.xml" | bare >b.jsonl
same 'standard input, five threads' a.jsonl b.jsonl
# as multistream dumps are: the header, some pages, some pages, the end
n=$(wc -l <"$data/sample.xml")
cut=$(grep -n '<page>' "$data/sample.xml" | sed -n '1p;4p' | cut -d: -f1 | tr '\n' ' ')
read -r first fourth <<<"$cut"
sed -n "1,$((first - 1))p" "$data/sample.xml" | bzip2 >m.bz2
sed -n "$first,$((fourth - 1))p" "$data/sample.xml" | bzip2 >two
sed -n "$fourth,$((n - 1))p" "$data/sample.xml" | bzip2 >three
sed -n "${n}p" "$data/sample.xml" | bzip2 >four
cat m.bz2 two three four >all.bz2
quern extract -q all.bz2 | bare >b.jsonl
same 'bzip2 in several streams' a.jsonl b.jsonl
{ cat m.bz2; head -c 40 two; head -c 200 /dev/zero | tr '\0' x; cat three four; } >bad.bz2
status 'a damaged stream' 1 quern extract bad.bz2 --rejects r.jsonl
has 'is named' err "'bad.bz2': damaged bzip2 stream at offset $(wc -c <m.bz2)"
equal 'the next one is read' "$(sed 's/^{"id":"\([^"]*\)".*/\1/' out | tr '\n' ' ')" '4 '
head -c "$(($(wc -c <all.bz2) - 60))" all.bz2 >cut.bz2
status 'one cut short' 1 quern extract cut.bz2
has 'is named' err 'is cut short'

# faults
sed 's|<id>1</id>|<id>1|' "$data/sample.xml" >bad.xml
status 'a page that is no XML' 1 quern extract bad.xml
has 'file, offset and reason' err "'bad.xml' at byte $(grep -b -m1 -o '<page>' "$data/sample.xml" | cut -d: -f1): </page> closes what is not open"
equal 'the others are there' "$(sed 's/^{"id":"\([^"]*\)".*/\1/' out | tr '\n' ' ')" '4 '
sed 's|&quot;|\&bomb;|' "$data/sample.xml" | sed '1i<!DOCTYPE mediawiki [<!ENTITY bomb "&bomb;&bomb;">]>' >bomb.xml
status 'entities are not expanded' 1 quern extract bomb.xml
has 'but named' err 'an entity or a character that XML does not know'
head -n 60 "$data/sample.xml" >cut.xml
status 'an export cut short' 1 quern extract cut.xml
has 'is named' err "'cut.xml' at byte"
status 'a page above the bound' 1 quern extract --max-page-bytes 1K "$data/sample.xml"
has 'is named' err 'the page is longer than 1024 bytes'
finish
