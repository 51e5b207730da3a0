#!/bin/bash
# quern tokenize --ledger and what becomes of a ledger: any threads, merge, filter, split, damage, training.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

{
    printf '%s\n' '{"id":"<urn:1>","url":"http://h/1","text":"One two.","source":{"file":"a.warc.gz","offset":7,"length":9}}' \
        '{"id":2,"text":"","title":"A\u00e9"}' '{"text":"Three, four and five."}' 'no document' \
        '{"id":"q\"","url":"http://h/4?\u0026","source":"dolma","text":"Six."}'
    for i in {5..400}; do printf '{"id":"%s","text":"Number %s of many.","source":{"file":"b.warc"}}\n' $i $i; done
} >docs.jsonl
quern tokenizer train -q --vocab-size 300 docs.jsonl -o tokenizer.json 2>/dev/null
tokenize() { quern tokenize -q --tokenizer tokenizer.json --append-eod "$@"; }
tokenize --ledger --output-prefix a docs.jsonl 2>err
if grep -q 'no SHA-256' err; then
    skip 'ledgers' 'a build without nettle'
    finish
fi
# text FILE: what of a ledger can be read
text() { tail -c +17 "$1" | tr '\0' '.' | tr -d '\001-\037'; }

tokenize --ledger -j4 --output-prefix b docs.jsonl 2>/dev/null
same 'the same for any number of threads' a_text_document.ledger b_text_document.ledger
tokenize --output-prefix plain docs.jsonl 2>/dev/null
same 'tokens are the same' a_text_document.bin plain_text_document.bin
has 'id, URL and source' <(text a_text_document.ledger) '<urn:1>http://h/1{"file":"a.warc.gz","offset":7,"length":9}'
at=$(head -n 2 docs.jsonl | wc -c)
has 'a document that does not say' <(text a_text_document.ledger) "docs.jsonl:$at{\"file\":\"docs.jsonl\",\"within\":$at}"
has 'as text' <(text a_text_document.ledger) 'q"http://h/4?&{"file":"docs.jsonl","within":'
check 'verify' quern dataset verify --ledger a_text_document
# What tests/record/ledger.py prints of this dataset.
root=f04dc497e3d0d00ef326e30bee33b317af45913d7cc9206a4e5bd131988b936e
has 'the root' out "root $root"
has 'stands beside the dataset' a_text_document.sum.json "\"ledger\":{\"documents\":400,\"sha256\":\"$root\"}"

# Other shapes of the same documents.
tokenize --ledger --output-prefix s --shards 3 docs.jsonl 2>/dev/null
quern dataset merge -o m s-0000?-of-00003_text_document.idx
same 'shards, merged' m.ledger a_text_document.ledger
quern dataset filter -q -o f --min-tokens 1 a_text_document
check 'filter keeps it' quern dataset verify --ledger f
quern dataset split -o p --shares x:3,y:1 a_text_document
check 'split keeps it' quern dataset verify --ledger p_x p_y
tokenize --ledger --json-keys text,title --output-prefix k <(sed -n 2p docs.jsonl)
check 'of each key' quern dataset verify --ledger k_text_document k_title_document
status 'with one that has none' 2 quern dataset merge -o n a_text_document plain_text_document
has 'is refused' err "'a_text_document' has a ledger and 'plain_text_document' has none"
status 'none to verify' 1 quern dataset verify --ledger plain_text_document
has 'is said' err "'plain_text_document.ledger' is missing"
tokenize --output-prefix b docs.jsonl 2>/dev/null
absent 'an old ledger goes with its dataset' b_text_document.ledger
status 'shards for others' 2 quern tokenize --tokenizer tokenizer.json --ledger --format npy --output-prefix c docs.jsonl

# Damage.
for f in bin idx ledger; do
    for e in bin idx ledger; do cp a_text_document.$e d.$e; done
    printf x | dd of=d.$f bs=1 seek=$(($(wc -c <d.$f) / 2)) conv=notrunc status=none
    status "a byte of .$f" 1 quern dataset verify --ledger d
done
cp a_text_document.ledger f.ledger
status 'the ledger of another' 1 quern dataset verify --ledger f
cp p_x.ledger p_y.ledger
status 'of as many documents or not' 1 quern dataset verify --ledger p_y
sed -i 's/"sha256":"./"sha256":"z/' m.sum.json
status 'another root' 1 quern dataset verify --ledger m
has 'is said with both' err "has the root $root, 'm.sum.json' z${root:1}"

# Checkpoints know what they were trained on.
quern train -q --data-path 0.5 a_text_document 0.5 plain_text_document --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 \
    --micro-batch-size 1 --train-iters 1 --eval-iters 0 --lr 1e-3 --save c >/dev/null 2>err || bad 'trains' "$(head -3 err)"
has 'a checkpoint has the roots' <(cat c/*/metadata.json) "\"data-ledger\":\"$root -\""
finish
