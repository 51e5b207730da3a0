# shellcheck shell=bash
# A thousand bits at random of a dataset and its ledger, flipped one by one, in files of some size: `quern dataset verify --ledger`
# finds each, and names the file.  (tests/unit/ledger_test.c flips all of a dataset of five documents.)
. "$ROOT/tests/lib.sh"

for i in {1..2000}; do printf '{"id":"%d","url":"http://h%d.example/%d","text":"Page %d says that %d is a number, and %d its square.","source":{"file":"a.warc.gz","offset":%d}}\n' \
    $i $((i % 40)) $i $i $i $((i * i)) $((i * 977)); done >docs.jsonl
quern tokenizer train -q --vocab-size 300 docs.jsonl -o tokenizer.json 2>/dev/null
quern tokenize -q --tokenizer tokenizer.json --append-eod --ledger --output-prefix a docs.jsonl 2>err
if grep -q 'no SHA-256' err; then
    skip 'flipped bits' 'a build without nettle'
    finish
fi
rm a_text_document.sum.json # whose checksums would find many of them; SHA-256 alone is to find all
check 'whole' quern dataset verify --ledger a_text_document

# flip FILE BIT
flip() {
    local byte
    byte=$(od -An -tu1 -j $(($2 / 8)) -N1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %02x $((byte ^ (1 << ($2 % 8)))))" | dd of="$1" bs=1 seek=$(($2 / 8)) conv=notrunc status=none
}
RANDOM=7 missed='' odd='' n=0
for ending in bin idx ledger; do
    file=a_text_document.$ending
    bits=$((8 * $(wc -c <$file)))
    for ((k = 0; k < (${#ending} == 6 ? 334 : 333); k++)); do
        bit=$((((RANDOM << 30) + (RANDOM << 15) + RANDOM) % bits))
        flip $file $bit
        quern dataset verify --ledger a_text_document >out 2>err
        [ $? = 1 ] || missed="$missed $ending:$bit"
        grep -q 'a_text_document' err || odd="$odd $ending:$bit"
        flip $file $bit
        n=$((n + 1))
    done
done
equal 'a thousand bits' $n 1000
equal 'none of them was missed' "$missed" ''
equal 'each error has the name' "$odd" ''
check 'whole again' quern dataset verify --ledger a_text_document
finish
