# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

for i in 1 2 3 4 5; do printf '{"id":"%d","text":"The mill number %d grinds its corn."}\n' $i $i; done >docs.jsonl
quern clean -q docs.jsonl >want.jsonl

# compressed input, told by its first bytes whatever its name says
xz -c docs.jsonl >docs.xz
lz4 -qc docs.jsonl >docs.lz4
cp docs.xz named.jsonl
{ head -n 2 docs.jsonl | xz -c; printf '\0\0\0\0'; tail -n 3 docs.jsonl | xz -C sha256 -c; } >two.xz
{ head -n 2 docs.jsonl | lz4 -qc; tail -n 3 docs.jsonl | lz4 -qc -B4; } >two.lz4
for f in docs.xz docs.lz4 named.jsonl two.xz two.lz4; do
    status "$f" 0 quern clean -q "$f"
    same "has the documents of the plain file, $f" out want.jsonl
done
quern clean -q - <two.xz >out
same 'xz through a pipe' out want.jsonl
head -c 100 docs.xz >cut.xz
status 'xz that is cut short' 1 quern clean cut.xz
has 'is named' err "'cut.xz': xz stream at offset 0 is cut short"
at=$(head -n 2 docs.jsonl | lz4 -qc | wc -c)
{ head -c "$at" two.lz4; printf '\x04\x22\x4d\x18\x64\x40\xa7\x09\0\0\0what is this'; cat docs.lz4; } >bad.lz4
status 'a damaged lz4 frame' 1 quern clean bad.lz4
has 'is named' err "'bad.lz4': damaged lz4 frame at offset $at"
equal 'the frames around it are read' "$(wc -l <out)" 7

# other formats are refused by name, once, before anything is written
refused() { # FILE WHAT: what says so
    for tool in 'clean -o out.jsonl' 'tokenize --tokenizer tok.json --output-prefix set' \
        'tokenizer train --vocab-size 300 -o new'; do
        # shellcheck disable=SC2086
        status "$1 for quern $tool" 3 quern $tool docs.jsonl "$1"
        has 'is refused by name' err "'$1' is $2: "
        equal 'once' "$(grep -c "$1" err)" 1
    done
    absent 'and nothing is written' out.jsonl set_text_document.bin new
}
quern tokenizer train -q --vocab-size 270 -o tok.json docs.jsonl
printf 'ARROW1\0\0\x10 and so on ARROW1' >a.arrow
printf 'PK\3\4\n\0\0\0\0\0abc' >a.zip
printf '%%PDF-1.4\nnot one line of JSON\n' >a.pdf
printf 'SQLite format 3\0\x10\0' >a.db
printf 'WARC/1.0\r\nWARC-Type: response\r\n' >a.warc
printf '\x7fELF\2\1\1\0' >a.out
printf '\xff\xfe{\0"\0' >utf16.jsonl
tar -cf a.tar docs.jsonl
refused a.arrow 'an Arrow file (Feather)'
refused a.zip 'a zip archive (or .docx, .xlsx, .epub, .jar)'
refused a.pdf 'a PDF document'
refused a.db 'an SQLite database'
refused a.warc 'a web archive (WARC)'
refused a.out 'an ELF program'
refused utf16.jsonl 'text in UTF-16'
for order in LE:'\xff\xfe\0\0{\0\0\0' BE:'\0\0\xfe\xff\0\0\0{'; do
    printf "${order#*:}" >utf32.jsonl
    refused utf32.jsonl 'text in UTF-32'
done
refused a.tar 'a tar archive'
gzip -c a.tar >b.gz
lz4 -qlc docs.jsonl >old.lz4
refused b.gz 'a tar archive'
refused old.lz4 'an lz4 file of the old format'
printf 'PAR1 is how it begins, and yet it is text.\n' >par1.txt
status 'text that begins like one of them is text' 0 quern tokenizer train -q --vocab-size 262 -o new2 par1.txt

# chats have no text
printf '{"messages":[{"role":"user","content":"Hello"}]}\n' >chat.jsonl
cat docs.jsonl chat.jsonl >some.jsonl
printf '{"id":"1","content":"Hello","title":"A"}\n' >keys.jsonl
status 'a chat among documents' 1 quern clean some.jsonl
has 'is named' err 'no "text" in the document but "messages", a chat: join its turns into one "text" first; --json-key names another; skipped'
status 'lines of chats alone' 3 quern clean chat.jsonl -o chat.out --rejects chat.rej
has 'are no run with nothing in it' err 'none of 1 records is a document: nothing is written'
absent 'and are not published' chat.out chat.rej
status 'the same for tokenize' 3 quern tokenize --tokenizer tok.json --output-prefix chat chat.jsonl
has 'which says how to name keys' err 'a chat: join its turns into one "text" first; --json-keys names another'
has 'and why it ends' err "'chat': none of 1 records is a document: nothing is written"
absent 'and publishes nothing' chat_text_document.bin chat_text_document.idx
status 'the same for tokenizer train' 3 quern tokenizer train --vocab-size 300 -o chat.tok chat.jsonl
has 'with its own option' err 'a chat: join its turns into one "text" first; --json-key names another'
printf 'input: [chat.jsonl]\noutput: plan.jsonl\nwork: work\nstages:\n  - clean\n' >plan.yaml
status 'the same for a plan' 3 quern curate plan.yaml
absent 'which publish nothing either' chat.tok plan.jsonl
status 'lines with another key' 3 quern tokenize --tokenizer tok.json --output-prefix keys keys.jsonl
has 'are told which they have' err 'no "text" in the document but "content", "title"; --json-keys names another'
status 'and are read by it' 0 quern tokenize --tokenizer tok.json --json-keys content --output-prefix keys keys.jsonl
# documents with their texts under another key
for i in 1 2 3 4; do printf '{"id":"%s","content":"The mill  of %s grinds\\u00a0the grain, and the grain feeds the mill.","n":%s}\n' $i $((i % 3)) $i; done >content.jsonl
sed 's/"content"/"text"/' content.jsonl >text.jsonl
status 'documents of another key' 3 quern clean content.jsonl
has 'are told how to name it' err 'no "text" in the document but "content"; --json-key names another; skipped'
for tool in clean 'filter --preset gopher-quality' 'dedup exact' 'dedup fuzzy' 'mix --order input' 'langid'; do
    # shellcheck disable=SC2086
    quern $tool -q text.jsonl -o want 2>/dev/null
    # shellcheck disable=SC2086
    status "$tool reads it" 0 quern $tool -q --json-key content content.jsonl -o got
    same 'and writes text' want got
done
same 'stats of it' <(quern stats text.jsonl) <(quern stats --json-key content content.jsonl)
printf 'input: [content.jsonl]\njson-key: content\noutput: plan.jsonl\nwork: keys.work\nstages:\n  - clean\n  - dedup fuzzy\n  - clean\n' >plan.yaml
status 'a plan reads it' 0 quern curate plan.yaml
quern clean -q text.jsonl | quern dedup fuzzy -q >want
same 'and goes on with text' want plan.jsonl
printf '{"id":"1","content":"a","text":"b"}\n{"id":"2","content":5}\n{"id":"3","text":"c"}\n{"id":"4","content":"d"}\n' >both.jsonl
status 'both keys, no string, none' 1 quern clean --json-key content both.jsonl
has 'both' err 'the document has "text" beside "content"'
has 'no string' err '"content" is not a string'
has 'none' err 'no "content" in the document but "text"; --json-key names another'
equal 'the rest' '{"id":"4","text":"d"}' "$(cat out)"
: >nothing.jsonl
status 'an empty input is fine' 0 quern clean nothing.jsonl

# binaries that were served as pages.  page ID TYPE IDENTIFIED FILE: a record of a WARC.
page() {
    { printf 'HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n' "$2"; cat "$4"; } >block
    printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <%s>\r\nWARC-Target-URI: http://h/%s\r\n' "$1" "$1"
    [ -z "$3" ] || printf 'WARC-Identified-Payload-Type: %s\r\n' "$3"
    printf 'Content-Type: application/http\r\nContent-Length: %s\r\n\r\n' "$(wc -c <block)"
    cat block
    printf '\r\n\r\n'
}
# bytes N: the same bytes each time, of which every value occurs.
bytes() {
    awk -v n="$1" 'BEGIN {
        for (x = 12345; n > 0; n--) { x = (x * 1103515245 + 12345) % 2147483648; printf "\\%03o", int(x / 65536) % 256 }
    }' | xargs -0 printf '%b'
}
words='Of the mill, which has several words in a row, so that it counts as content of a page.'
bytes 5000 >random
printf '%%PDF-1.4\n1 0 obj <</Type/Catalog>> endobj and so on, in letters' >pdf
printf '<p>%s' "$words" >html
printf '%s' "$words" >text
printf '\357\273\277  <!DOCTYPE html><title>A\001b</title><p>%s' "$words" >mark
printf '%s \033[1m' "$words" >escapes
printf '<html><p>%s' "$words" | iconv -f UTF-8 -t UTF-16LE >utf16
printf '%s' "$words" | iconv -f UTF-8 -t UTF-16 >utf16text
{
    page html text/html '' html; page random text/html '' random; page elf text/html '' "$(command -v quern)"
    page pdf text/html '' pdf; page pdftext text/plain '' pdf; page mark text/html '' mark
    page image text/html image/jpeg text; page wrong text/html image/jpeg html; page svg text/html image/svg+xml text
    page escapes text/plain '' escapes; page utf16 'text/html; charset=utf-16le' '' utf16
    page utf16text text/plain '' utf16text; page nul text/plain text/plain random
} >binary.warc
status 'binaries served as pages' 0 quern extract binary.warc -o pages.jsonl --rejects pages.rej --stats pages.json
equal 'are no documents, and no page is lost' "$(sed 's/^{"id":"<\([^>]*\).*/\1/' pages.jsonl | tr '\n' ' ')" \
    'html mark wrong svg escapes utf16 utf16text '
equal 'but rejected as binary' "$(grep -c '"rule":"binary"' pages.rej)" 6
has 'and counted' pages.json '"binary":6'
cp random random.html
status 'a binary file with the name of a page' 0 quern extract random.html --rejects pages.rej
has 'is rejected too' pages.rej '"rule":"binary"'

# nothing out of an article's folder is read
mkdir -p article/sec folder
printf 'SECRET' >secret.tex
printf '\\documentclass{a}\\begin{document}One \\input{link}\\input{inner}\\input{sec/out}\\input{../secret}%s end\\end{document}' \
    "\\input{$PWD/secret}" >article/main.tex
printf 'two' >article/sec/two.tex
ln -s ../secret.tex article/link.tex
ln -s sec/two.tex article/inner.tex
ln -s ../../secret.tex article/sec/out
quern extract -q article/main.tex >out
has 'a link within the article is read, none that leaves it' out '"text":"One two end\n"'
status 'a folder with such links' 1 quern extract article
has 'which are named' err "cannot open 'article/link.tex': it leads out of the folder 'article/'; skipped"
equal 'reads nothing out of it' "$(grep -c SECRET out)" 0
equal 'a link that is named is followed' "$(quern extract -q article/link.tex | grep -c SECRET)" 1

# a tar of anything: each member is read by its own reader, or refused by name
mkdir -p t/sub
{ page one text/html '' html; page two text/html '' mark; } >t/a.warc
{ page three text/html '' html; } | gzip -c >t/b.warc.gz
{ page four text/html '' html; } | xz -c >t/sub/c.warc.xz
printf '<!doctype html><p>%s' "$words" >t/page
cp docs.jsonl t/d.jsonl
gzip -c docs.jsonl >t/e.jsonl.gz
cp pdf t/f.pdf
printf '\211PNG\r\n\032\n' >t/g
cp a.zip random t/
printf 'Only words.\n' >t/README
: >t/nothing
tar -cf t.tar t
status 'a tar of anything' 1 quern extract t.tar --stats t.json
equal 'has the documents of what is read' "$(sed 's/^{"id":"\([^"]*\).*/\1/' out | sort | tr '\n' ' ')" '<four> <one> <three> <two> t.tar/t/page '
equal 'and no other' "$(grep -c 'WARC\|mill number\|Only words' out)" 0
has 'JSON lines are named' err "'t.tar/t/d.jsonl' is JSON: documents already, which other commands read; skipped"
has 'compressed ones too' err "'t.tar/t/e.jsonl.gz' is JSON: documents already"
has 'a PDF' err "'t.tar/t/f.pdf' is a PDF document, which is not read here; skipped"
has 'an image without an ending' err "'t.tar/t/g' is a PNG image, which is not read here; skipped"
has 'a zip archive' err "'t.tar/t/a.zip' is a zip archive"
has 'what is binary' err "'t.tar/t/random' is neither a WARC or ARC file nor HTML, LaTeX, a wiki's export or XML of a known kind but binary data; skipped"
has 'and text that is nothing' err "'t.tar/t/README' is neither a WARC or ARC file nor HTML, LaTeX, a wiki's export or XML of a known kind; skipped"
equal 'each is counted' "$(tail -n 1 err | sed 's/.*dropped, \([0-9]*\) bad.*/\1/')" 7
has 'as are those that are read' t.json '"archives":3,"tar_files":1,"wiki_dumps":0,"html_files":1,"latex_files":0'
quern extract -q -j 4 t.tar t.tar >four 2>/dev/null
cat out out >twice
same 'the same bytes for any number of threads' four twice
quern extract -q - <t.tar >piped 2>/dev/null
equal 'and through a pipe' "$(wc -l <piped)" 5

# of an e-print what is not read are its figures
mkdir -p paper/fig
printf '\\documentclass{a}\\begin{document}One \\input{README}end\\end{document}' >paper/main.tex
cp pdf paper/fig/a.pdf
cp t/g paper/fig/b
cp t/README paper/README
tar -cf paper.tar paper
status 'an e-print with figures' 0 quern extract paper.tar --stats t.json
has 'is a document' out '{"id":"paper.tar/paper/main.tex"'
has 'with what it inputs' out '"text":"One Only words. end\n"'
has 'its figures are counted' t.json '"latex_files":1,"posts_files":0,"xml_files":0,"zip_files":0,"record_lists":0,"other_files":2'

# archives in archives, and faults in them
tar -czf inner.tgz t/a.warc t/page paper/main.tex paper/README
tar -cf outer.tar inner.tgz t/b.warc.gz
status 'an archive within one' 0 quern extract outer.tar
equal 'has all its documents' "$(sed 's/^{"id":"\([^"]*\).*/\1/' out | tr '\n' ' ')" \
    '<one> <two> outer.tar/inner.tgz/t/page outer.tar/inner.tgz <three> '
cp outer.tar 0.tar
for n in 1 2 3 4 5; do tar -cf $n.tar $((n - 1)).tar; done
status 'archives as deep as that' 1 quern extract 5.tar
has 'are refused' err 'is a tar archive, which is not read here; skipped'
sed 's/^Content-Length: .*/Content-Length: -1\r/' t/a.warc >t/bad.warc
gzip -c t/a.warc | head -c 100 >t/cut.warc.gz
tar -cf bad.tar t/bad.warc t/cut.warc.gz t/page
status 'damaged archives in one' 1 quern extract bad.tar
has 'are named with the place in them' err "'bad.tar/t/bad.warc' at byte 0: Content-Length is missing or no length; skipped"
has 'by their own names' err "'bad.tar/t/cut.warc.gz': gzip member at offset 0 is cut short; skipped"
has 'what follows is read' out '{"id":"bad.tar/t/page"'

# names that lead out of the archive
mkdir -p deep/er
cp secret.tex "$PWD/deep/secret.tex"
printf '\\documentclass{a}\\begin{document}In \\input{../secret}\\input{%s/secret}end\\end{document}' "$PWD" >deep/er/main.tex
(cd deep/er && tar -cPf ../../up.tar ../secret.tex main.tex)
status 'a name with ..' 1 quern extract up.tar
has 'is refused' err "'up.tar' at byte 0: the name '../secret.tex' leads out of the archive; skipped"
has 'and the others are read, with nothing from outside' out '"text":"In end\n"'
tar -cPf absolute.tar "$PWD/t/page"
status 'an absolute name' 0 quern extract absolute.tar
has 'counts from the archive on' out "{\"id\":\"absolute.tar$PWD/t/page\""
finish
