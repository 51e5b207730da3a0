#!/bin/bash
# quern dataset, on files written byte by byte from the format table.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

le() { # VALUE BYTES: little-endian
    local v=$1 i
    for ((i = 0; i < $2; i++)); do
        printf '%b' "\\x$(printf %02x $((v & 255)))"
        v=$((v >> 8))
    done
}
write_one() { # PREFIX: documents [7 8 9], [], [300]; uint16
    for id in 7 8 9 300; do le $id 2; done >"$1.bin"
    {
        printf 'MMIDIDX\0\0'
        le 1 8 && le 8 1 && le 2 8 && le 4 8
        le 3 4 && le 1 4
        le 0 8 && le 6 8
        le 0 8 && le 1 8 && le 1 8 && le 2 8
    } >"$1.idx"
}
write_one a

status "info" 0 quern dataset info a
has "info: documents" out "documents  3"
has "info: tokens" out "tokens     4"
has "info: dtype" out "uint16"
status "info --json" 0 quern dataset info --json a.idx
equal "info --json: what it says" "$(cat out)" '{"prefix":"a","documents":3,"sequences":2,"tokens":4,"dtype":"uint16","shortest":0,"longest":3,"histogram":[{"from":0,"documents":1},{"from":1,"documents":1},{"from":2,"documents":1}]}'
status "head" 0 quern dataset head a
equal "head: ids" "$(cat out)" $'7 8 9\n\n300'
status "head of some" 0 quern dataset head --json --skip 1 -n 1 a
equal "head of some: ids" "$(cat out)" '[]'
status "verify" 0 quern dataset verify a
has "verify: without checksums" out "no checksums"
status "verify with ids" 0 quern dataset verify --vocab-size 301 a
has "verify: largest id" out "largest id 300"
status "verify: id too large" 1 quern dataset verify --vocab-size 300 a
has "verify: id and place" err "'a.bin' at byte 6: id 300 is not within 0..299"

status "merge" 0 quern dataset merge -o ab a a.bin
status "verify the merged" 0 quern dataset verify --vocab-size 301 ab
has "verify: checksums" out "6 documents, 8 tokens, checksums agree"
status "head of the merged" 0 quern dataset head -n 9 ab
equal "merged ids" "$(cat out)" $'7 8 9\n\n300\n7 8 9\n\n300'
cp ab.bin keep.bin
printf '\x01' | dd of=ab.bin bs=1 seek=9 conv=notrunc status=none
status "verify: a changed byte" 1 quern dataset verify ab
has "verify: file and place" err "'ab.bin' at byte 0: the chunk"
status "verify: one bad, one fine" 1 quern dataset verify ab a
has "verify: the fine one too" out "a: fine"
cp keep.bin ab.bin

{ cat a.idx; le 0 1 && le 1 1; } >modes.idx
cp a.bin modes.bin
status "a mode for each sequence" 0 quern dataset verify modes
status "merge: modes" 3 quern dataset merge -o lost a modes
has "merge: modes: why" err "'modes.idx' has a mode for each sequence"
status "filter: modes" 3 quern dataset filter -o lost modes
# Sequences that no document ends, as a builder leaves them that was never told.
{ head -c 26 a.idx; le 1 8; tail -c +35 a.idx | head -c 32; } >endless.idx
cp a.bin endless.bin
for action in merge filter 'split --shares a:1,b:1'; do
    # shellcheck disable=SC2086 # words
    status "${action%% *}: sequences of no document" 3 quern dataset $action -o lost endless
    has "${action%% *}: sequences of no document: why" err "'endless.idx': its sequences belong to no document"
done
# The third document's length is -1.
{ head -c 38 a.idx; printf '\377\377\377\377'; tail -c +43 a.idx; } >negative.idx
cp a.bin negative.bin
status "filter: a damaged document that is not wanted" 3 quern dataset filter -o lost --min-tokens 2 negative
has "filter: a damaged document: place" err "sequence 1 has a length of -1"

head -c 60 a.idx >cut.idx
cp a.bin cut.bin
status "an .idx cut short" 1 quern dataset verify cut
has "an .idx cut short: place" err "'cut.idx' at byte 18"
cp a.idx lie.idx
head -c 7 a.bin >lie.bin
status "a .bin cut short" 1 quern dataset info lie
has "a .bin cut short: place" err "'lie.bin' at byte 6"
head -c 6 a.bin >lie.bin
status "a .bin cut between tokens" 1 quern dataset info lie
has "a .bin cut between tokens: what is missing" err "lies outside 'lie.bin' of 6 bytes"
cp a.bin lie.bin
printf '\xff\xff\xff\x7f' | dd of=lie.idx bs=1 seek=34 conv=notrunc status=none
status "an .idx that lies" 1 quern dataset head lie
has "an .idx that lies: place" err "'lie.idx' at byte"
# Damage within bounds: a negative length, an offset within a token, a type of another size, one of another sign.
{ head -c 34 a.idx; printf '\373\377\377\377'; tail -c +39 a.idx; } >length.idx
{ head -c 42 a.idx; printf '\001'; tail -c +44 a.idx; } >offset.idx
{ head -c 17 a.idx; printf '\001'; tail -c +19 a.idx; } >type.idx
for k in length:'has a length of -5' offset:'begins at byte 1 of the .bin' type:'3 tokens of 1 bytes'; do
    cp a.bin "${k%%:*}.bin"
    status "head: a wrong ${k%%:*}" 1 quern dataset head "${k%%:*}"
    has "head: a wrong ${k%%:*}, where" err "${k#*:}"
done
printf '\377\377' | dd of=sign.bin 2>/dev/null && tail -c +3 a.bin >>sign.bin
{ head -c 17 a.idx; printf '\003'; tail -c +19 a.idx; } >sign.idx
status "head: a type with a sign" 1 quern dataset head sign
has "head: a type with a sign, which id" err "has the id -1: int16 is not its type"
printf 'no dataset' >junk.idx
: >junk.bin
status "no dataset" 1 quern dataset info junk
has "no dataset: reason" err "no MMIDIDX"

status "missing" 3 quern dataset info nowhere
has "missing: name" err "nowhere.idx"
for end in bin idx; do cp a.$end mine_text_document.$end; done
status "the prefix that tokenize was given" 3 quern dataset info mine
has "has a longer one" err "there is no dataset 'mine', but 'mine_text_document'"
mkdir folder.idx
status "a folder" 3 quern dataset verify folder
status "missing beside a bad one" 3 quern dataset verify junk nowhere
status "merge of what is missing" 3 quern dataset merge -o m a nowhere
absent "merge of what is missing: nothing written" m.bin m.idx m.sum.json .m.bin.part
status "merge of a faulty one" 3 quern dataset merge -o m lie
absent "merge of a faulty one: nothing written" m.bin m.idx .m.bin.part
status "merge onto a part" 2 quern dataset merge -o a a ab
status "merge without a name" 2 quern dataset merge a
status "no such thing" 2 quern dataset frob a

# Filter and split: [7 8 9] [] [300], three times.
check "three times" quern dataset merge -o abc a a a
filtered() { # NAME WANT OPTION...
    local name=$1 want=$2
    shift 2
    status "filter $name" 0 quern dataset filter -o f "$@" abc
    quern dataset head -n 99 f >got
    equal "filter $name: ids" "$(tr '\n' ';' <got)" "$want"
    status "filter $name: verified" 0 quern dataset verify f
}
filtered "all" "7 8 9;;300;7 8 9;;300;7 8 9;;300;"
filtered "by least" "7 8 9;300;7 8 9;300;7 8 9;300;" --min-tokens 1
filtered "by both" "300;300;300;" --min-tokens 1 --max-tokens 2
printf '8\n0\n\n1\r\n8\n5' >list
filtered "by list" "7 8 9;;300;300;" --keep list
filtered "by list and length" "7 8 9;300;300;" --keep list --min-tokens 1
filtered "without a list" "300;7 8 9;;7 8 9;;" --drop list
filtered "nothing" "" --min-tokens 99
for bad in 9 x -1 '1 2' 99999999999999999999999999; do
    printf '3\n%s\n' "$bad" >list
    status "a list with $bad" 3 quern dataset filter -o g --keep list abc
    has "a list with $bad: line" err "'list', line 2"
done
absent "nothing is left" g.bin .g.bin.part .g.lengths.part .g.documents.part
status "onto itself" 2 quern dataset filter -o abc abc
cp abc.idx one.idx
cp abc.bin one.bin
for _ in 1 2 3 4 5 6; do quern dataset merge -q -o more one one one && mv more.bin one.bin && mv more.idx one.idx; done
status "split" 0 quern dataset split -o part --shares train:0.9,valid:.05,test:0.05 one
equal "split: documents" "$(for p in train valid test; do quern dataset info --json part_$p | grep -o '"documents":[0-9]*,' | head -1; done)" \
    $'"documents":5905,\n"documents":328,\n"documents":328,'
status "split: verified" 0 quern dataset verify --vocab-size 301 part_train part_valid part_test
equal "split: every document once" "$(for p in train valid test; do quern dataset head -n 99999 part_$p; done | sort | md5sum)" \
    "$(quern dataset head -n 99999 one | sort | md5sum)"
quern dataset split -q -o again --shares train:90,valid:5,test:5 one
same "split: the same again" again_valid.bin part_valid.bin
quern dataset split -q -o again --seed 2 --shares train:90,valid:5,test:5 one
cmp -s again_valid.bin part_valid.bin && bad "split: another seed" || ok "split: another seed"
for bad in x x:1,x:2 x: :1 'x:1,' x:-1 x:0 x:nan; do status "shares $bad" 2 quern dataset split -o s --shares "$bad" one; done
status "nothing" 2 quern dataset
status "no dataset named" 2 quern dataset info
status "a full disk" 3 bash -c 'quern dataset info a >/dev/full'
has "a full disk: reason" err "No space left"
write_one big
for _ in 1 2 3 4 5 6; do cat big.bin big.bin >x && mv x big.bin; done
status "an empty .bin against its .idx" 1 quern dataset verify big
has "an oversized .bin: sizes" err "'big.bin' has 512 bytes, the sequences 8"
finish
