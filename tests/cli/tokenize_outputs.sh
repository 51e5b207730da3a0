#!/usr/bin/env bash
# quern tokenize: several keys, shards, tasks, other formats, and runs that are killed (KILLS=n of them).
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
TOK=$ROOT/tests/data/tokenizer/gpt2.json
tokenize() { quern tokenize -q --tokenizer "$TOK" "$@"; }

perl -e 'for my $i (0 .. 7999) {
    my $text = $i % 50 == 7 ? "" : "Document $i: the mill grinds\\n" . "grain $i " x ($i % 61);
    print "{\"id\": \"$i\", \"text\": \"$text\", \"title\": \"Title " . $i * 17 . "\"}\n";
}' >docs.jsonl
tokenize --append-eod --output-prefix all docs.jsonl
has "sum.json: the version" all_text_document.sum.json "\"quern\":\"$(quern tokenize --version | cut -d' ' -f2)\""
has "sum.json: documents" all_text_document.sum.json '"documents":8000'

# Several keys: each as if it were alone.
tokenize --append-eod --json-keys title --output-prefix one docs.jsonl
status "two keys" 0 tokenize --append-eod --json-keys text,title --output-prefix two docs.jsonl
for k in text title; do
    other=all
    [ $k = title ] && other=one
    same "$k.bin" two_${k}_document.bin ${other}_${k}_document.bin
    same "$k.idx" two_${k}_document.idx ${other}_${k}_document.idx
done
{ head -2 docs.jsonl; echo '{"text":"no title"}'; echo '{"title":"no text"}'; echo '{"text":"x","title":7}'; sed -n 3,4p docs.jsonl; } >odd.jsonl
status "documents that lack one" 1 tokenize --json-keys title,text --output-prefix odd odd.jsonl
head -4 docs.jsonl >four.jsonl
tokenize --json-keys title,text --output-prefix four four.jsonl
same "are in neither, text" odd_text_document.idx four_text_document.idx
same "are in neither, title" odd_title_document.bin four_title_document.bin
status "the same key twice" 2 tokenize --json-keys a,a --output-prefix x docs.jsonl
status "an empty key" 2 tokenize --json-keys a,,b --output-prefix x docs.jsonl

# Shards: one after another they are the whole, for any number, and of compressed inputs too.
split -n l/3 --additional-suffix=.jsonl docs.jsonl part.
gzip -k part.ab.jsonl
for n in 1 2 7 40; do
    tokenize --append-eod --shards $n --output-prefix s$n part.aa.jsonl part.ab.jsonl part.ac.jsonl
    status "$n shards merged" 0 quern dataset merge -q -o m$n s$n-*.idx
    equal "$n shards: so many" "$(ls s$n-*.idx | wc -l)" $n
    same "$n shards: .bin" m$n.bin all_text_document.bin
    same "$n shards: .idx" m$n.idx all_text_document.idx
done
tokenize --append-eod --shards 9 --output-prefix z part.aa.jsonl part.ab.jsonl.gz part.ac.jsonl
quern dataset merge -q -o zm z-*.idx
same "shards of a .gz among others" zm.bin all_text_document.bin
for task in 2 0 1; do tokenize --append-eod --shards 7 --task $task --tasks 3 --output-prefix t part.a?.jsonl; done
for k in 0 3 6; do same "by tasks: shard $k" t-0000$k-of-00007_text_document.bin s7-0000$k-of-00007_text_document.bin; done
tokenize --append-eod --output-prefix folder/ part.aa.jsonl part.ab.jsonl.gz part.ac.jsonl
quern dataset merge -q -o fm folder/part.aa_text_document folder/part.ab_text_document folder/part.ac_text_document
same "a dataset a file" fm.idx all_text_document.idx
status "two of one name" 2 tokenize --output-prefix folder/ part.ab.jsonl part.ab.jsonl.gz
has "says which" err "part.ab.jsonl.gz"
status "shards of standard input" 2 tokenize --shards 2 --output-prefix x
status "task 3 of 3" 2 tokenize --shards 9 --task 3 --tasks 3 --output-prefix x docs.jsonl

# What is done is not done again, unless something changed.
tokenize --output-prefix again docs.jsonl
touch -d '1 hour ago' docs.jsonl
tokenize --output-prefix again docs.jsonl
inode=$(stat -c %i again_text_document.bin)
check "done" quern tokenize --tokenizer "$TOK" --output-prefix again docs.jsonl
has "done: says so" err "done already"
equal "done: untouched" "$(stat -c %i again_text_document.bin)" "$inode"
check "done, but --again" tokenize --again --output-prefix again docs.jsonl
[ "$(stat -c %i again_text_document.bin)" != "$inode" ] && ok "--again" || bad "--again"
status "done with bad lines" 1 tokenize --output-prefix odd odd.jsonl
status "done with bad lines, again" 1 tokenize --output-prefix odd odd.jsonl
tokenize --append-eod --output-prefix again docs.jsonl
same "other options" again_text_document.bin all_text_document.bin

# Killed at random moments, always at once after a block: goes on, and ends with the same bytes.
for i in 1 2 3 4 5 6 7 8; do cat docs.jsonl; sed -n 1,5p odd.jsonl; done >big.jsonl
gzip -1 -k big.jsonl
killed() { # NAME OPTION...: runs it, killed again and again, to its end
    local name=$1 i went=0 done=0 start=$EPOCHREALTIME whole
    shift
    quern tokenize -q --tokenizer "$TOK" -j2 --checkpoint 0 --output-prefix "$name" "$@" 2>/dev/null
    whole=$(perl -e 'print $ARGV[1] - $ARGV[0]' "$start" "$EPOCHREALTIME")
    rm -f "$name"[_.]*
    for ((i = 0; i < ${KILLS:-4}; i++)); do
        quern tokenize -q --tokenizer "$TOK" -j2 --checkpoint 0 --output-prefix "$name" "$@" 2>/dev/null &
        sleep "$(perl -e 'printf "%.3f", rand(0.7 * $ARGV[0])' "$whole")"
        kill -9 $! 2>/dev/null
        wait $! 2>/dev/null || true
        [ -e ".$name.resume" ] && went=$((went + 1))
        for f in "$name"_*.idx; do
            [ -e "$f" ] && { quern dataset verify -q "$f" >/dev/null 2>&1 || bad "$name: '$f' is not whole"; }
        done
        if [ ! -e ".$name.resume" ] && ls "$name"*.sum.json >/dev/null 2>&1; then # too late: once more
            done=$((done + 1))
            rm -f "$name"[_.]*
        fi
    done
    status "$name: to the end" 1 tokenize -j1 --output-prefix "$name" "$@"
    echo "# $name: $went kills left work, $done found it done" >&2
}
ledger=--ledger
quern tokenize -q --tokenizer "$TOK" --ledger --output-prefix probe docs.jsonl 2>&1 | grep -q "no SHA-256" && ledger=--again # a build without nettle
tokenize --json-keys title,text $ledger --output-prefix want big.jsonl 2>/dev/null
killed kill big.jsonl --json-keys title,text $ledger
killed killz big.jsonl.gz --json-keys title,text
for k in kill killz; do
    for f in text title; do
        same "$k: $f.bin" ${k}_${f}_document.bin want_${f}_document.bin
        same "$k: $f.idx" ${k}_${f}_document.idx want_${f}_document.idx
        status "$k: $f verified" 0 quern dataset verify ${k}_${f}_document
        has "$k: $f counts" ${k}_${f}_document.sum.json '"bad_lines":24'
    done
    [ $k = killz ] || [ ! -e want_text_document.ledger ] || for f in text title; do
        same "$k: $f.ledger" ${k}_${f}_document.ledger want_${f}_document.ledger
    done
    equal "$k: nothing else stays" "$(find . -name ".$k*" | wc -l)" 0
done
tokenize --json-keys title --format llmc --shard-tokens 20000 --output-prefix lwant big.jsonl 2>/dev/null
killed lkill big.jsonl --json-keys title --format llmc --shard-tokens 20000
equal "llmc, killed: so many" "$(ls lkill_*.bin | wc -l)" "$(ls lwant_*.bin | wc -l)"
for f in lwant_*.bin; do same "llmc, killed: $f" "$f" "lkill${f#lwant}"; done
same "llmc, killed: .sum.json" <(sed 's/"run":"[^"]*"//; s/lkill/lwant/g' lkill.sum.json) <(sed 's/"run":"[^"]*"//' lwant.sum.json)

# Work that another run left is not taken for one's own.
quern tokenize -q --tokenizer "$TOK" --checkpoint 0 --output-prefix left big.jsonl 2>/dev/null &
for ((i = 0; i < 200; i++)); do [ -e .left.resume ] && break; sleep 0.01; done
kill -9 $!
wait $! 2>/dev/null
if [ -e .left.resume ]; then
    for copy in torn cut spoilt; do
        for f in .left*; do cp "$f" ".$copy${f#.left}"; done
    done
    tokenize --output-prefix whole big.jsonl 2>/dev/null
    mv .torn_text_document.bin.part torn_text_document.bin # as if killed between the two names
    status "killed between two names" 1 tokenize --output-prefix torn big.jsonl
    same "killed between two names: .bin" torn_text_document.bin whole_text_document.bin
    same "killed between two names: .idx" torn_text_document.idx whole_text_document.idx
    : >.cut_text_document.bin.part
    status "half-written, then cut" 3 tokenize --output-prefix cut big.jsonl
    has "half-written, then cut: says so" err "of the"
    size=$(grep -o '"tokens":[0-9]*,"ended' .spoilt.resume | head -1 | tr -dc 0-9)
    [ "$size" ] || size=$(grep -o '"tokens":[0-9]*' .spoilt.resume | head -1 | tr -dc 0-9)
    printf '\xff\xff' | dd of=.spoilt_text_document.bin.part bs=1 seek=$((2 * size - 2)) conv=notrunc status=none
    status "half-written, then spoilt" 3 tokenize --output-prefix spoilt big.jsonl
    has "half-written, then spoilt: says so" err "its last bytes"
    [ -e .spoilt_text_document.bin.part ] && ok "and is still there" || bad "and is still there"
    status "another's work" 2 tokenize --append-eod --output-prefix left big.jsonl
    has "another's work: says so" err "--again"
    echo '{"text":"changed"}' >>big.jsonl
    status "other inputs" 2 tokenize --output-prefix left big.jsonl
    status "--again" 1 tokenize --again --append-eod --output-prefix left big.jsonl
    absent "no state" .left.resume
else
    bad "another's work" "there was no checkpoint"
fi

# Streams of tokens for llm.c and NumPy.
quern tokenizer encode --tokenizer "$TOK" --jsonl four.jsonl >ids
perl -ne 'print pack("v*", 0, /(\d+)/g)' ids >want.u16
tokens=$(($(wc -c <want.u16) / 2))
tokenize --format llmc --shard-tokens 30 --output-prefix l four.jsonl
equal "llmc: files" "$(ls l_*.bin | wc -l)" $(((tokens + 29) / 30))
for f in l_*.bin; do tail -c +1025 "$f"; done >got.u16
same "llmc: tokens" got.u16 want.u16
equal "llmc: header" "$(od -An -tu4 -N12 l_000000.bin | tr -s ' ')" " 20240520 1 30"
equal "llmc: header of the last" "$(od -An -tu4 -j8 -N4 "$(ls l_*.bin | tail -1)" | tr -d ' ')" $((tokens - (tokens - 1) / 30 * 30))
equal "llmc: zeros behind it" "$(head -c 1024 l_000000.bin | tail -c +13 | tr -d '\0' | wc -c)" 0
tokenize --format npy --output-prefix n four.jsonl
equal "npy: header" "$(head -c 127 n_000000.npy | tail -c +11 | sed 's/ *$//')" "{'descr': '<u2', 'fortran_order': False, 'shape': ($tokens,), }"
same "npy: tokens" <(tail -c +129 n_000000.npy) want.u16
sed 's/"id": 0,/"id": 65536,/; s/"<|endoftext|>":0/"<|endoftext|>":65536/' "$TOK" >wide.json
quern tokenize -q --tokenizer wide.json --format llmc --output-prefix w four.jsonl
equal "llmc: wide header" "$(od -An -tu4 -N12 w_000000.bin | tr -s ' ')" " 20240801 7 $tokens"
equal "llmc: wide tokens" "$(tail -c +1025 w_000000.bin | od -An -v -w4 -tu4 | md5sum)" "$(perl -ne 'printf "%11d\n", $_ for 65536, /(\d+)/g' ids | md5sum)"
tokenize --format llmc --start-token '' --output-prefix ns four.jsonl
equal "no start token" "$(($(wc -c <ns_000000.bin) - 1024))" $((tokens * 2 - 8))
tokenize --again --format llmc --output-prefix l four.jsonl
equal "files of a longer run are gone" "$(ls l_*.bin)" l_000000.bin
status "an unknown start token" 2 tokenize --format llmc --start-token '<nothing>' --output-prefix x four.jsonl
status "two keys as one stream" 2 tokenize --format llmc --json-keys a,b --output-prefix x four.jsonl
finish
