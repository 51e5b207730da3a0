# shellcheck shell=bash
# quern dataset forget: the dataset that tokenize makes of the documents without the pages; which checkpoints saw them.
. "$ROOT/tests/lib.sh"

doc() { printf '{"id":"%s","url":"http://h%d.example/%d","text":"%s","source":{"file":"crawl.warc.gz","offset":%d}}\n' "$1" $(($1 % 9)) "$1" "$2" "$1"; }
for i in {1..300}; do doc $i "$([ $((i % 13)) = 0 ] || echo "Page $i says one thing, and $((i * i)) is the square of its number.")"; done >docs.jsonl
quern tokenizer train -q --vocab-size 300 docs.jsonl -o tokenizer.json 2>/dev/null
tokenize() { quern tokenize -q --tokenizer tokenizer.json --append-eod "$@"; }
tokenize --ledger --output-prefix a docs.jsonl 2>err
if grep -q 'no SHA-256' err; then
    skip 'forgetting' 'a build without nettle'
    finish
fi

# Every seventh by its id, those of a host by their URLs, one by both.
seq 7 7 300 >ids
grep -o '"url":"http://h4[^"]*' docs.jsonl | cut -d'"' -f4 >urls
printf '%s\r\n\nhttp://h7.example/7\n' "$(cat urls)" >urls.crlf
awk -F'"' 'NR == FNR { gone[$0]; next } !($4 in gone) && !($8 in gone)' <(cat ids urls) docs.jsonl >left.jsonl
tokenize --ledger --output-prefix want left.jsonl
check 'forgets' quern dataset forget -o less --ids ids --urls urls.crlf a_text_document
has 'how many' err "$((300 - $(wc -l <left.jsonl))) documents forgotten, $(wc -l <left.jsonl) left: 'less'"
for e in bin idx ledger; do same "as if they had never been: .$e" want_text_document.$e less.$e; done
sums() { grep -oE '"(bin|idx|ledger|tokenizer|eod)":\{[^}]*\}|"(quern|key|append_eod|allow_special|documents|tokens)":[^,}]*' "$1"; }
same 'their checksums' <(sums want_text_document.sum.json) <(sums less.sum.json | grep -v "$(printf '"documents":%d$' $((300 - $(wc -l <left.jsonl))))")
has 'and what was forgotten of what' less.sum.json "\"forgotten\":{\"documents\":$((300 - $(wc -l <left.jsonl))),\"of\":\"$(grep -o '"sha256":"[^"]*' a_text_document.sum.json | cut -d'"' -f4)\"}"
check 'whole' quern dataset verify --ledger less

check 'all' quern dataset forget -q -o none --ids <(seq 300) a_text_document
has 'leaves none' <(quern dataset info none) 'documents  0'
check 'a page that is not there' quern dataset forget -o same --url http://h4.example/5 --id 301 --id 1 a_text_document
has 'is said, an id' err "a_text_document: no page '301'"
has 'a URL' err "no page 'http://h4.example/5'"
status 'no pages' 2 quern dataset forget -o n a_text_document
tokenize --output-prefix plain docs.jsonl
status 'no ledger' 2 quern dataset forget -o n --id 1 plain_text_document
has 'is said' err "'plain_text_document' has no ledger, so its pages have no names"
status 'into itself' 2 quern dataset forget -o a_text_document --id 1 a_text_document
for e in bin idx ledger sum.json; do cp a_text_document.$e d.$e; done
printf x | dd of=d.ledger bs=1 seek=$(($(wc -c <d.ledger) - 20)) conv=notrunc status=none
status 'a damaged ledger' 3 quern dataset forget -o n --id 1 d
absent 'leaves nothing' n.idx
absent 'nor a ledger' n.ledger

# Conversations: which tokens have a loss is forgotten likewise.
for i in {1..40}; do printf '{"id":"%d","messages":[{"role":"user","content":"What is %d?"},{"role":"assistant","content":"A number."}]}\n' $i $i; done >chats.jsonl
quern tokenize -q --tokenizer tokenizer.json --chat-template chatml --ledger --output-prefix chat chats.jsonl
grep -v '"id":"1[0-9]*"' chats.jsonl | quern tokenize -q --tokenizer tokenizer.json --chat-template chatml --ledger --output-prefix few
check 'of conversations' quern dataset forget -q -o fewer --ids <(grep -o '"id":"1[0-9]*' chats.jsonl | cut -d'"' -f4) chat_chat_document
for e in bin idx; do
    same "their tokens: .$e" few_chat_document.$e fewer.$e
    same "which of them have a loss: .$e" few_chat_document_loss_mask.$e fewer_loss_mask.$e
done

# Checkpoints.
# shellcheck disable=SC2086
train() { quern train -q --num-layers 1 --hidden-size 8 --num-attention-heads 1 --seq-length 16 --micro-batch-size 4 --eval-iters 0 --lr 1e-3 \
    --split 100,0,0 --device cpu -j 1 --save-interval 5 "$@" >/dev/null 2>>err; }
train --data-path a_text_document --train-iters 20 --save c || bad 'trains' "$(cat err)"
quern dataset trace --checkpoint c --ids ids >seen
first=$(head -1 seen | grep -o '^{"step":[0-9]*' | cut -d: -f2)
samples=$(grep -o '"sample":[0-9]*' seen | sort -u | wc -l) pages=$(grep -o '"document":[0-9]*' seen | sort -u | wc -l)
check 'with checkpoints' quern dataset forget -q -o less --ids ids --checkpoint c a_text_document
has 'which saw them' out "c/iter_0000020: saw $pages of them in $samples samples, the first in step $first"
equal 'of each' "$(grep -c '^c/iter_' out)" 4
id=$(quern dataset trace --checkpoint c --step 8 | tail -1 | grep -o '"id":"[^"]*' | cut -d'"' -f4)
check 'one page' quern dataset forget -q --json -o less --id "$id" --checkpoint c --checkpoint c/iter_0000005 a_text_document
at=$(quern dataset trace --checkpoint c --id "$id" | head -1 | grep -o '^{"step":[0-9]*' | cut -d: -f2)
has 'was seen by the later ones' out "{\"checkpoint\":\"c/iter_0000010\",\"step\":10,\"documents\":1,"
[ "$at" -le 5 ] || has 'not by those before' out '{"checkpoint":"c/iter_0000005","step":5,"documents":0,"samples":0,"first_step":0}'
equal 'a folder of them, and one' "$(grep -c . out)" 5
cp less.bin a_text_document.bin
cp less.idx a_text_document.idx
cp less.ledger a_text_document.ledger
status 'other data in the place of what was trained on' 3 quern dataset trace --checkpoint c --step 1
has 'are refused' err "'a_text_document' is not the dataset that was trained on: its ledger has the root"
rm a_text_document.ledger
status 'or without their ledger' 3 quern dataset trace --checkpoint c --step 1
finish
