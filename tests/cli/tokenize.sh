#!/usr/bin/env bash
# quern tokenize: the bytes of .bin and .idx, order, bad lines.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
TOK=$ROOT/tests/data/tokenizer/gpt2.json

# Documents with escapes, empty ones, one that is not read, and a bad line.
perl -e '
for my $i (0 .. 2999) {
    my @c = $i % 2 ? ("\xe2\x80\x9c", "\xe2\x80\x9d", "\xc3\xa9", "\xf0\x9f\x8c\xbe")
                   : ("\\u201c", "\\u201d", "\\u00e9", "\\ud83c\\udf3e");
    my $text = $i % 50 == 7 ? "" : "Document $i: $c[0]the mill$c[1] grinds\\n\\t" . "grain " x ($i % 40) . "$c[2] $c[3] \\\"x\\\\y\\\" ";
    print "{\"id\": \"$i\", \"text\": \"$text\", \"n\": $i}\n";
}' >docs.jsonl

# Written from the format's table, with the ids that `encode` prints.
expected() { # eod width
    quern tokenizer encode --tokenizer "$TOK" --jsonl docs.jsonl >ids.jsonl
    perl -e '
my ($eod, $width) = @ARGV;
my ($id, @lengths, @ends, @offsets) = ($width == 2 ? "v" : "l<");
open my $ids, "<", "ids.jsonl" or die;
open my $bin, ">", "want.bin" or die;
while (<$ids>) {
    my @t = /(\d+)/g;
    push @t, $eod if @t && $eod >= 0;
    print $bin pack("$id*", @t);
    push @lengths, scalar @t if @t;
    push @ends, scalar @lengths;
}
my $at = 0;
for (@lengths) { push @offsets, $at; $at += $_ * $width; }
open my $idx, ">", "want.idx" or die;
print $idx "MMIDIDX\0\0", pack("Q<CQ<Q<", 1, $width == 2 ? 8 : 4, scalar @lengths, @ends + 1);
print $idx pack("l<*", @lengths), pack("q<*", @offsets), pack("q<*", 0, @ends);
' -- "$1" "$2"
}

expected -1 2
status "tokenize" 0 quern tokenize --tokenizer "$TOK" --output-prefix a docs.jsonl
same ".bin" a_text_document.bin want.bin
same ".idx" a_text_document.idx want.idx
has "how it was made" a_text_document.sum.json '"pattern":"gpt2"'
expected 0 2
for j in 1 2 7; do
    status "with ends, -j$j" 0 quern tokenize -j$j --append-eod --tokenizer "$TOK" --output-prefix e$j docs.jsonl
    same "-j$j .bin" e${j}_text_document.bin want.bin
    same "-j$j .idx" e${j}_text_document.idx want.idx
done
gzip -k docs.jsonl
zstd -q docs.jsonl
for f in gz zst; do
    check "$f" quern tokenize --append-eod --tokenizer "$TOK" --output-prefix $f docs.jsonl.$f
    same "$f: the same" ${f}_text_document.bin want.bin
done
quern tokenize -q --append-eod --tokenizer "$TOK" --output-prefix in <docs.jsonl
same "standard input" in_text_document.bin want.bin
head -1500 docs.jsonl >one.jsonl
tail -n +1501 docs.jsonl >two.jsonl
quern tokenize -q --append-eod --tokenizer "$TOK" --output-prefix two one.jsonl two.jsonl
same "two files" two_text_document.bin want.bin
same "two files, .idx" two_text_document.idx want.idx

# A vocabulary of 65,500 takes four bytes.
sed 's/"id": 0,/"id": 65499,/; s/"<|endoftext|>":0/"<|endoftext|>":65499/' "$TOK" >wide.json
status "a large vocabulary" 0 quern tokenize --tokenizer wide.json --output-prefix w docs.jsonl
expected -1 4
same "four bytes" w_text_document.bin want.bin
same "four bytes, .idx" w_text_document.idx want.idx

# Bad lines are named and skipped; with other keys they are all bad.
{ head -3 docs.jsonl; echo '{"text": "unfinished'; echo '{"nothing":1}'; printf '{"text":"\xff"}\n'; sed -n 4,6p docs.jsonl; } >mixed.jsonl
status "bad lines" 1 quern tokenize --tokenizer "$TOK" --output-prefix m mixed.jsonl
equal "each of them" "$(grep -c skipped err)" 4
head -6 docs.jsonl >six.jsonl
quern tokenize -q --tokenizer "$TOK" --output-prefix six six.jsonl
same "the others are there" m_text_document.bin six_text_document.bin
status "another key, which no line has" 3 quern tokenize --tokenizer "$TOK" --json-keys body --output-prefix k six.jsonl
printf '{"body":"x"}\n' >body.jsonl
status "another key that is there" 0 quern tokenize --tokenizer "$TOK" --json-keys body --output-prefix k body.jsonl
[ -s k_body_document.bin ] && ok "named by the key" || bad "named by the key"
: >none.jsonl
status "no documents" 0 quern tokenize --tokenizer "$TOK" --output-prefix none none.jsonl
equal "an empty dataset" "$(wc -c <none_text_document.bin)" 0

head -c 3000 docs.jsonl.gz >cut.gz
status "half a gz" 1 quern tokenize --tokenizer "$TOK" --output-prefix c cut.gz
has "named" err cut.gz
status "no input" 3 quern tokenize --tokenizer "$TOK" --output-prefix n missing.jsonl
absent "nothing is left" n_text_document.bin n_text_document.idx .n_text_document.bin.part
status "no folder to write to" 3 quern tokenize --tokenizer "$TOK" --output-prefix no/where six.jsonl
status "no prefix" 2 quern tokenize --tokenizer "$TOK" six.jsonl
quern tokenizer train -q --vocab-size 300 --special-tokens '<pad>' -o noend.json "$ROOT/tests/data/tokenizer/corpus.txt"
status "no end of document" 2 quern tokenize --append-eod --tokenizer noend.json --output-prefix n six.jsonl
finish
