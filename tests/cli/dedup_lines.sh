#!/bin/bash
# quern dedup lines at a shell, and what CCNet and datatrove leave of the same corpus
# (tests/record/dedup_lines.py).
. "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/dedup

for p in ccnet datatrove; do
    status "preset $p runs" 0 quern-dedup lines --preset $p "$data/lines.jsonl" --rejects rej.$p --stats stats
    same "preset $p leaves what the original leaves" out "$data/lines_$p.jsonl"
done
has "datatrove's bounds are accounted for" rej.datatrove '"stage":"dedup lines","rule":"words-left","value":'
has "with their thresholds" rej.datatrove '"threshold":50,"file":'
has "and what is empty" rej.ccnet '"rule":"nothing-left","value":0,"threshold":null,"file":'

# By hand: lines of 30 characters or more, compared without case, numbers and punctuation.
long="This line is about 30 characters long"
{
    printf '{"id":"a","text":"%s.\\nshort\\n\\nA: only here, and long enough to count","n":1}\n' "$long"
    printf '{"id":"b","text":"%s!\\nshort\\n\\nB: only there, and long enough to count"}\n' "${long/30/99}"
    printf '{"id":"c","text":"  %s\\n"}\n' "${long^^}"
    printf '{"id":"d","text":"D: a line within itself, repeated\\n\\nD: a line within itself, repeated\\n"}\n'
    printf '{"id":"e","text":""}\n{"id":"f","text":"short\\nshort"}\n'
} >in
status "lines" 0 quern-dedup lines in --rejects rej --stats stats
cat >want <<W
{"id":"a","text":"$long.\nshort\n\nA: only here, and long enough to count","n":1}
{"id":"b","text":"short\n\nB: only there, and long enough to count"}
{"id":"d","text":"D: a line within itself, repeated\n\n"}
{"id":"e","text":""}
{"id":"f","text":"short\nshort"}
W
same "the first stays, short lines too" out want
equal "what is left of c is nothing" "$(cat rej)" \
    '{"id":"c","stage":"dedup lines","rule":"nothing-left","value":0,"threshold":null,"file":"in","offset":223}'
has "counts" stats '"units":16,"docs_shortened":2,"units_struck":2,"bytes_struck":73'
status "none stays" 0 quern-dedup lines --keep none in
cat >want <<W
{"id":"a","text":"short\n\nA: only here, and long enough to count","n":1}
{"id":"b","text":"short\n\nB: only there, and long enough to count"}
{"id":"d","text":"D: a line within itself, repeated\n\n"}
{"id":"e","text":""}
{"id":"f","text":"short\nshort"}
W
same "of what two documents have none stays; within one, the first" out want
status "what must be left" 0 quern-dedup lines --min-words 4 --min-length 1 in --rejects rej
has "words" rej '{"id":"f","stage":"dedup lines","rule":"nothing-left"'
status "words" 0 quern-dedup lines --min-words 20 in --rejects rej
has "too few words" rej '{"id":"b","stage":"dedup lines","rule":"words-left","value":11,"threshold":20,"file":"in","offset":114}'

# Lines that come more than three times, those within a document among them.
printf '{"id":"%s","text":"%s"}\n' a 'x\nx\nthree\nown a' b 'x\nthree\nfour' c 'x\nthree\nfour\nfour' d 'four\nown d' >over
over() { quern-dedup lines -q --min-length 1 --over "$@" over; }
equal "over 3: the first of them stays" "$(over 3 | sed 's/.*"text":"\(.*\)"}/\1/')" 'x\nthree\nown a
three\nfour
three
own d'
equal "over 3: none of them stays" "$(over 3 --keep none | sed 's/.*"text":"\(.*\)"}/\1/')" 'three\nown a
three
three
own d'
equal "over 4: nothing is struck" "$(over 4)" "$(cat over)"
equal "over 1: as ever" "$(over 1)" "$(quern-dedup lines -q --min-length 1 over)"
equal "any number of threads, little memory" "$(over 3 --keep none -j 3 --memory 16M)" "$(over 3 --keep none -j 1)"
status "over none" 2 quern-dedup lines --over 0 over

printf '{"id":"a","text":"\\n\\nOne paragraph\\nof two lines.\\n \\n\\nTwo.\\n\\nThree.\\n"}\n{"id":"b","text":"Zero.\\n\\nOne paragraph\\nof two lines.\\n\\nThree.\\n"}\n{"id":"c","text":"Two.\\n\\nFour."}\n' >par
status "paragraphs" 0 quern-dedup lines --unit paragraph --min-length 1 par
cat >want <<'W'
{"id":"a","text":"\n\nOne paragraph\nof two lines.\n \n\nTwo.\n\nThree.\n"}
{"id":"b","text":"Zero.\n"}
{"id":"c","text":"Four."}
W
same "paragraphs go with the blank lines before them" out want
printf '{"id":"a","text":"It rains. It pours. The old man snores."}\n{"id":"b","text":"He said: it rains. It pours!  Or not?"}\n' >sent
status "sentences" 0 quern-dedup lines --unit sentence --min-length 1 sent
printf '%s\n' '{"id":"a","text":"It rains. It pours. The old man snores."}' '{"id":"b","text":"He said: it rains.  Or not?"}' >want
same "sentences" out want
status "raw" 0 quern-dedup lines --unit sentence --match raw --min-length 1 sent
cp sent want
same "raw tells case apart" out want

# Any number of threads, any memory.
for i in $(seq 400); do
    printf '{"id":"m%s","text":"common line number %s of a few\\nunique line %s of all\\nanother common %s"}\n' \
        "$i" $((i % 7)) "$i" $((i % 50))
done >many
for p in quern ccnet dolma datatrove; do
    quern-dedup lines -q --preset $p --match raw --min-length 0 -j 1 many -o j1 --rejects r1
    for j in 2 8; do
        quern-dedup lines -q --preset $p --match raw --min-length 0 -j $j --memory 16M many -o jn --rejects rn
        same "$p -j $j: same documents" jn j1
        same "$p -j $j: same account" rn r1
    done
done
quern-dedup lines -q --preset dolma many -o dolma
equal "dolma: each line once" "$(grep -o 'common line number' dolma | wc -l)" 7

status "an unknown kind" 2 quern-dedup nothing in
has "tells those that there are" err "'lines'"
status "no room" 3 quern-dedup lines --tmp /no/such/folder in
finish
