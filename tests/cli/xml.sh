# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/xml # written for this test

# Posts.xml: a question with its answers, by score
status 'posts' 1 quern extract "$data/Posts.xml" --stats s.json
has 'a row without a number is named' err "Posts.xml' at byte 873: a row without a number; skipped"
equal 'answers follow by score' "$(sed -n 1p out | sed 's/.*"text":"\([^"]*\)".*/\1/')" \
    'Letters & <b> tags\n\nHow do I write a letter?\n\nif (x < y)\n  f();\n\nWith a pen.\n\nDo not.\n'
has 'fields' out '"id":"1","url":"","title":"Letters & <b> tags","date":"2018-02-06T20:19:50.957","lang":"","author":"Ann","keywords":"style, mail","source":{"file":"'"$data"'/Posts.xml","within":49,"license":"CC BY-SA 3.0"}'
has 'numbers' out '"score":10,"answers":2}'
has 'an answer without a question stands alone' out '"id":"5"'
has 'counts' s.json '"posts_files":1'
sed 's/"file":"[^"]*",//' out >a.jsonl
gzip -c "$data/Posts.xml" | quern extract -q -j 3 - 2>err | sed 's/"file":"[^"]*",//' >b.jsonl
same 'packed, by a pipe, three threads' a.jsonl b.jsonl
head -c 1400 "$data/Posts.xml" >cut.xml
status 'posts cut short' 1 quern extract cut.xml
has 'are named' err "'cut.xml' at byte"
{
    echo '<posts><row Id="1 PostTypeId="1" Body="a"/>'
    printf '<row Id="2" PostTypeId="1" Title="'
    awk 'BEGIN { for (i = 0; i < 500000; i++) printf "&lt;" }'
    echo '" Body="b"/></posts>'
} >quote.xml
status 'a missing quote, and a title of half a million marks' 1 quern extract quote.xml
has 'costs its row' err "'quote.xml' at byte 7: a record without an end"
has 'not the next one; a post without a score has 0' out '"score":0,"answers":0'

# articles, one a file and several in one; damage; encodings
cat >a.xml <<'END'
<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS" "http://no.where/jats.dtd" [<!ENTITY w "word">]>
<article><front><article-meta><title-group><article-title>One</article-title></title-group></article-meta></front>
<body><p>A &w; &nbsp;of caf&#233; <unknown>here</unknown> & there.</p></body></article>
END
cat a.xml >two.xml
sed 's/One/Two/; s/<p>/<p>\xe9t\xe9 /' a.xml >>two.xml
status 'two articles in a file' 0 quern extract two.xml
equal 'are two documents' "$(sed 's/.*"title":"\([^"]*\)".*"text":"\([^"]*\)".*/\1: \2/' out)" \
    'One: One\n\nA word of café here & there.\n
Two: Two\n\nété A word of café here & there.\n'
iconv -f ISO-8859-1 -t UTF-16 a.xml >u.xml
quern extract -q u.xml >out
has 'UTF-16' out 'A word of café here & there.'
head -c 300 a.xml >t.xml
status 'an article cut short' 1 quern extract t.xml
has 'is named' err "'t.xml' at byte 0: at its byte 300 the document ends in <"
printf '<weird>text</weird>' >w.xml
status 'XML of no known kind' 1 quern extract w.xml
has 'is refused' err 'or XML of a known kind'
tar -cf t.tar a.xml two.xml
quern extract -q t.tar >out
equal 'articles in a tar archive' "$(wc -l <out)" 3

# zip archives: books, word processors
quern extract -q "$data/book.epub" >out
equal 'a book: chapters in the order of the spine, each once' "$(cat out)" \
    '{"id":"'"$data"'/book.epub","url":"","title":"A book","date":"","lang":"en","author":"Ann Roe","text":"First\n\nLeft open\n\ntwice\n\nSecond\n\nWords here\nand there.\n"}'
quern extract -q "$data/word.docx" >out
equal 'Word' "$(cat out)" \
    '{"id":"'"$data"'/word.docx","url":"","title":"A letter","date":"2020-01-02T03:04:05Z","lang":"","author":"Ann","text":"Dear Bob\n\nI have news[1] : $\\frac{a}{b}$\n\n- first\n\n1 | 2\n\n[1] Good news.\n"}'
quern extract -q --format markdown "$data/styles.docx" >out
has 'headings in any language, and the numbers of lists' out \
    '"text":"## Wege\n\n1\\. eins\na) kurz\nb) lang\n2\\. zwei\n\nEnde\n"'
quern extract -q "$data/text.odt" >out
equal 'OpenDocument' "$(cat out)" \
    '{"id":"'"$data"'/text.odt","url":"","title":"Notes","date":"2021-02-03","lang":"","text":"Part\n\nOne two [ 1 aside ] .\n\n- a\n"}'
head -c 600 "$data/word.docx" >cut.docx
status 'an archive cut short' 1 quern extract cut.docx
has 'is named' err "'cut.docx' at byte 0: a zip archive without its directory"
head -c 40 "$data/book.epub" >bad.epub
head -c 40 /dev/zero | tr '\0' x >>bad.epub
tail -c +81 "$data/book.epub" >>bad.epub
status 'a damaged member' 1 quern extract bad.epub
has 'is named, and where it should be' err "'bad.epub' at byte 0: 'META-INF/container.xml' is not at byte 58 of the zip archive"
tar -cf z.tar -C "$data" book.epub text.odt
quern extract -q -j 2 z.tar >out
equal 'in a tar archive' "$(wc -l <out)" 2
finish
