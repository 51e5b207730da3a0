# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

# record TYPE ID BLOCK: a WARC record; the block has \r\n as written.
record() {
    local block
    block=$(printf '%b.' "$3") # the dot keeps line ends
    block=${block%.}
    printf 'WARC/1.0\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:x:%s>\r\nWARC-Target-URI: http://h/%s\r\nWARC-Date: 2020-01-02T03:04:05Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n' \
        "$1" "$2" "$2" "$(printf %s "$block" | wc -c)" "$block"
}
words='It has several words, one after another, so that it counts as content of a page.'
ok_head='HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n'
page() { printf '%s<html lang=en><title>Page %s</title><p>This is page %s. %s</p>' "$ok_head" "$1" "$1" "$words"; }
ids() { sed -n 's/^{"id":"\([^"]*\)".*/\1/p' "$1" | tr '\n' ' '; }

{
    record warcinfo 0 'software: x\r\nispartof: CC-MAIN-2020-05'
    record request 1 'GET / HTTP/1.1\r\n\r\n'
    record response 2 "$(page 2)"
    record response 3 'HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>no'
    record response 4 'HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nx'
    record revisit 5 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n'
    record response 6 "$ok_head<title>Nothing</title>"
    record response 7 "$(page 7)"
} >a.warc

check 'extracts an archive' quern extract a.warc -o a.jsonl --rejects r.jsonl --stats s.json
equal 'the pages, in order' "$(ids a.jsonl)" '<urn:x:2> <urn:x:7> '
has 'url' a.jsonl '"url":"http://h/2"'
has 'title' a.jsonl '"title":"Page 2"'
has 'language' a.jsonl '"lang":"en"'
has 'where it came from' a.jsonl '"source":{"dump":"CC-MAIN-2020-05","file":"a.warc","offset":447,"length":390,"content_type":"text/html; charset=utf-8","charset":"utf-8","date":"2020-01-02T03:04:05Z"}'
has 'text' a.jsonl "This is page 7. $words"
has 'a page without text is dropped' r.jsonl '{"id":"<urn:x:6>","stage":"extract","rule":"empty","value":0,"threshold":1,"url":"http://h/6","file":"a.warc","offset":1573,"source":{"dump":"CC-MAIN-2020-05","file":"a.warc","offset":1573,"length":273,"content_type":"text/html; charset=utf-8","charset":"utf-8","date":"2020-01-02T03:04:05Z"}}'
has 'what was passed over is counted' s.json '"passed_over":{"info":1,"request":1,"revisit":1,"status":1,"media_type":1}'

# What HTTP says of a page's use is joined with what the page says.
record response 9 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: NOAI\r\nX-Robots-Tag: bot: nofollow\r\nTDM-Reservation: 1\r\nTDM-Policy: http://h/p.json\r\nContent-Language: de\r\nLink: <l.html>; rel="license", </9>; rel=canonical\r\n\r\n'"<meta name=robots content='noindex, noai'><meta name=tdm-reservation content=0><meta property=og:site_name content=H><p>$words" >rights.warc
check 'a page with rights' quern extract rights.warc -o rights.jsonl
has 'has them as fields' rights.jsonl '"site_name":"H"'
has 'and in source' rights.jsonl '"license":"http://h/l.html","robots":"noai, noindex","tdm_reservation":"1","tdm_policy":"http://h/p.json"}'
has 'and language and address' rights.jsonl '"lang":"de","canonical":"http://h/9"'

# Members of an archive: a record by itself, two together, one cut over two, the last.
{
    record warcinfo 0 'software: x' | gzip -n
    record response 2 "$(page 2)" | gzip -n
    { record response 3 "$(page 3)"; record response 4 "$(page 4)"; } | gzip -n
    record response 5 "$(page 5)" | head -c 300 | gzip -n
    record response 5 "$(page 5)" | tail -c +301 | gzip -n
    record response 6 "$(page 6)" | gzip -n
} >members.warc.gz
# place KEY ID: a number of its source.
place() { sed -n "/urn:x:$2>/s/.*\"$1\":\([0-9]*\).*/\1/p" members.jsonl; }
check 'extracts members' quern extract members.warc.gz -o members.jsonl
for id in 2 3 4 5 6; do
    length=$(place length $id) within=$(place within $id)
    tail -c +$(($(place offset $id) + 1)) members.warc.gz | head -c "${length:-9999}" | gzip -dc | tail -c +$((${within:-0} + 1)) >member
    record response $id "$(page $id)" >record
    if [ $id = 3 ]; then
        equal 'a record before others in its member has no length' "$length" ''
        head -c "$(wc -c <record)" member | cmp -s - record || bad "record $id is where source says"
    else
        same "record $id is where source says" member record
    fi
done
equal 'one that does not begin its member says where it does' "$(place within 3):$(place within 4)" ":$(record response 3 "$(page 3)" | wc -c)"
printf '{"id":"a","text":"x y","source":{"file":"a.warc"}}\n' >origin.jsonl
quern filter -q --preset gopher-quality --rejects r.jsonl -o kept.jsonl origin.jsonl
has 'what a stage drops keeps its source' r.jsonl '"source":{"file":"a.warc"}}'
quern filter -q --preset gopher-quality --rejects r.jsonl --rejects-full -o kept.jsonl origin.jsonl
equal 'once, with all of it' "$(grep -o '"source"' r.jsonl | wc -l)" 1

# A text that was converted has no HTTP head, whatever it begins with.
record conversion 8 "HTTP/1.1 200 OK\\r\\n\\r\\nis how an answer begins. $words" |
    sed '/^Content-Type:/s|:.*|: text/plain\r|' >conversion.warc
check 'extracts a conversion record' quern extract conversion.warc -o conversion.jsonl
has 'no head is taken off it' conversion.jsonl '"text":"HTTP/1.1 200 OK'

# containers, standard input, threads
place='s/"file":"[^"]*","offset":[0-9]*,\("length":[0-9]*,\)\?\("within":[0-9]*,\)\?//'
gzip -c a.warc >a.warc.gz
quern extract -q a.warc | sed "$place" >a.jsonl
quern extract -q a.warc.gz | sed "$place" >b.jsonl
same 'gzip' a.jsonl b.jsonl
quern extract -q - <a.warc.gz | sed "$place" >b.jsonl
same 'standard input as -' a.jsonl b.jsonl
quern extract -q <a.warc | sed "$place" >b.jsonl
same 'standard input' a.jsonl b.jsonl
for _ in {1..300}; do cat a.warc.gz; done >many.warc.gz
quern extract -q -j1 many.warc.gz a.warc many.warc.gz >b.jsonl
quern extract -q -j5 many.warc.gz a.warc many.warc.gz >c.jsonl
equal 'many members' "$(wc -l <b.jsonl)" 1202
same 'the same bytes with one and five threads' b.jsonl c.jsonl

# files and folders
mkdir -p site/b/c site/.hidden
for f in site/z.html site/a.htm site/b/c/page site/.hidden/x.html; do
    printf '<!doctype html><title>%s</title><p>Page of %s. %s' "$f" "$f" "$words" >"$f"
done
printf 'body { color: red }' >site/a.css
cp a.warc site/b/archive
check 'a folder' quern extract site -o d.jsonl --stats s.json
equal 'in byte order, archives and pages told by content' "$(ids d.jsonl)" \
    'site/a.htm <urn:x:2> <urn:x:7> site/b/c/page site/z.html '
has 'other files are counted' s.json '"other_files":1'
status 'a named file that is no page' 1 quern extract site/a.css
has 'is named' err "'site/a.css' is neither a WARC or ARC file nor HTML"
printf '<title>One</title><p>%s' "$words" | quern extract -q - >e.jsonl
has 'a page on standard input' e.jsonl '{"id":"-","url":"","title":"One"'
: >empty.html
status 'an empty page' 0 quern extract empty.html --rejects r.jsonl
has 'is dropped' r.jsonl '"rule":"empty"'

# faults
{ record response 1 "$(page 1)"; record response 2 "$(page 2)" | sed 's/^Content-Length: .*/Content-Length: -1\r/'
  record response 3 "$(page 3)"; } >bad.warc
status 'a bad record' 1 quern extract bad.warc
equal 'the others are there' "$(ids out)" '<urn:x:1> <urn:x:3> '
at=$(record response 1 "$(page 1)" | wc -c)
has 'file, offset and reason' err "'bad.warc' at byte $at: Content-Length is missing or no length; skipped"
head -c 400 a.warc.gz >cut.warc.gz
status 'a truncated member' 1 quern extract cut.warc.gz
has 'is named' err "'cut.warc.gz': gzip member at offset 0 is cut short"
# of an archive whose first member is damaged the others are read, whatever its name and its kind
arc_page() {
    printf 'http://h/%s 1.2.3.4 20080430204826 text/html %d\n%s\n' "$1" ${#2} "$2" | gzip -n
}
version=$'1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n'
{ printf 'filedesc://x.arc 0.0.0.0 20080430204825 text/plain %d\n%s\n' ${#version} "$version" | gzip -n
  arc_page 1 "<p>$words"; arc_page 2 "<p>$words"; } >first.arc.gz
cp members.warc.gz first.warc.gz
for kind in warc arc; do
    cp first.$kind.gz first
    want=$(quern extract -q first | tail -n 2 | grep -o '"url":"[^"]*"')
    printf '\377' | dd of=first bs=1 seek=12 conv=notrunc 2>dd.log
    status "a damaged first member, $kind" 1 quern extract first
    has 'is named' err "'first': damaged gzip member at offset 0"
    equal 'and the others are read' "$(tail -n 2 out | grep -o '"url":"[^"]*"')" "$want"
    # shellcheck disable=SC2002
    cat first | quern extract -q 2>err >out
    equal 'from a pipe too' "$(tail -n 2 out | grep -o '"url":"[^"]*"')" "$want"
done
printf 'nothing of the kind' >x.warc
status 'a .warc that is none' 1 quern extract x.warc
has 'is named' err "'x.warc' at byte 0: 19 bytes that belong to no record"
: >empty.warc
status 'an empty archive' 0 quern extract empty.warc
status 'a missing file' 3 quern extract a.warc missing.warc -o none.jsonl
has 'is named' err "cannot open 'missing.warc': No such file or directory"
equal 'nothing is written' "$(compgen -G 'none.jsonl'; compgen -G '.none.jsonl*')" ''
status 'an unknown option' 2 quern extract --no-such-option
{ record response 1 "$(page 1)$(head -c 3000 /dev/zero | tr '\0' ' ')"; record response 2 "$(page 2)"; } >long.warc
status 'a page above --max-page-bytes' 1 quern extract --max-page-bytes 2K long.warc
has 'is named' err "'long.warc' at byte 0: the page is larger than 2048 bytes"
equal 'the others are there' "$(ids out)" '<urn:x:2> '
if [ -w /dev/full ]; then
    quern extract -q a.warc >/dev/full 2>err
    equal 'a full disk' "$?" 3
fi

# listing and digests
status 'a listing' 0 quern extract --list a.warc.gz
equal 'has a line for each record' "$(wc -l <out)" 8
has 'says what it is' out '"type":"response","id":"<urn:x:3>"'
has 'and why it is passed over' out '"is":"status"'
status 'a listing with a bad record' 1 quern extract --list bad.warc
has 'has the error' out '"error":"'
sum=$(printf 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nabc' | sha1sum | cut -d' ' -f1)
record response 1 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nabc' |
    sed "s/^WARC-Date/WARC-Block-Digest: sha1:$sum\r\nWARC-Date/" >sum.warc
status 'a good digest' 0 quern extract --verify-digests sum.warc
sed 's/^abc/abd/' sum.warc >badsum.warc
status 'a wrong digest' 1 quern extract --verify-digests badsum.warc
has 'is named' err "'badsum.warc' at byte 0: WARC-Block-Digest is not that of the block"
status 'is not looked at unasked' 0 quern extract badsum.warc

words='It was not the first time that they had to wait for the boat, and it was not to be the last one either.'
printf '<html lang=en><div>Menu</div><p>%s %s</p><p>%s %s</p><p><a href=x>More</a></p>' "$words" "$words" "$words" "$words" >j.html
quern extract -q --extractor justext j.html >j.jsonl
equal "jusText's rules" "$(sed 's/.*"text":"//' j.jsonl)" "$words $words\\n\\n$words $words\\n\"}"
quern extract -q --extractor justext --stopwords-high .9 --stopwords-low .9 j.html --rejects r.jsonl >j.jsonl
has 'with other bounds' r.jsonl '"rule":"empty"'
echo bread >words.txt
quern extract -q --extractor justext --stop-words words.txt j.html --rejects r.jsonl >j.jsonl
has 'with other stop words' r.jsonl '"rule":"empty"'
status 'a language without stop words' 2 quern extract --extractor justext --justext-lang ja j.html
has 'is said' err "there is no stop list for 'ja'"
status 'stop words that are not there' 3 quern extract --extractor justext --stop-words none.txt j.html

finish
