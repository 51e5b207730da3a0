#!/usr/bin/env bash
# quern generate at a shell: by ids and by text, reproducible, and what it refuses.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive

for i in $(seq 200); do echo "{\"id\":\"$i\",\"text\":\"the cat sat on the mat and the dog sat on the log, number $i\"}"; done >docs.jsonl
check "a tokenizer" quern-tokenizer train --vocab-size 300 -o tokenizer.json docs.jsonl
check "a model" quern-train --mock-data --vocab-size 300 --num-layers 2 --hidden-size 32 --num-attention-heads 2 \
    --seq-length 32 --micro-batch-size 2 --train-iters 3 --lr 0.01 --eval-iters 0 --save model

gen() { quern-generate --load model -j 1 "$@"; }
status "by ids" 0 gen --prompt-ids 5,6,7 --max-tokens 8
equal "eight new ids" "$(wc -w <out)" 8
cp out first
status "again" 0 gen --prompt-ids "5 6 7" --max-tokens 8
same "the same seed gives the same" first out
status "another seed" 0 gen --prompt-ids 5,6,7 --max-tokens 8 --seed 2
if cmp -s first out; then bad "another seed gives another"; else ok "another seed gives another"; fi
status "the likeliest" 0 gen --prompt-ids 5,6,7 --max-tokens 8 --temperature 0
cp out greedy
status "the likeliest by top-k" 0 gen --prompt-ids 5,6,7 --max-tokens 8 --top-k 1 --seed 9
same "top-k 1 is the likeliest" greedy out
status "a text without repetition" 0 gen --prompt-ids 5,6,7 --max-tokens 25 --temperature 0 --repetition-penalty 100
equal "a text without repetition: has each id once, and none of the prompt" \
    "$(tr -s ' ' '\n' <out | grep . | grep -vxE '5|6|7' | sort -u | wc -l)" 25
status "three samples" 0 gen --prompt-ids 5,6,7 --max-tokens 8 --num-samples 3
equal "three samples are told apart" "$(grep -c '^----$' out)" 2
same "the first sample does not depend on the others" first <(head -n 1 out)
status "an end" 0 gen --prompt-ids 5,6,7 --max-tokens 8 --eod-id "$(cut -d' ' -f3 first)"
equal "it stops there" "$(wc -w <out)" 3
status "bf16" 0 gen --prompt-ids 5,6,7 --max-tokens 8 --bf16
status "by text" 0 gen --tokenizer tokenizer.json --prompt "the cat" --max-tokens 8
has "text begins with the prompt" out "the cat"
status "the start of a document" 0 gen --tokenizer tokenizer.json --max-tokens 8
status "ids of text" 0 gen --tokenizer tokenizer.json --prompt "the cat" --max-tokens 8 --print-ids
status "more than its positions" 0 gen --prompt-ids 5,6,7 --max-tokens 100
equal "as many as its positions allow" "$(wc -w <out)" 30
has "and says so" err "32 positions"

# ---- a tokenizer that has fewer ids than the model ----
check "a small tokenizer" quern-tokenizer train --vocab-size 280 -o small.json docs.jsonl
check "a dataset" quern-tokenize --tokenizer small.json --append-eod --output-prefix d docs.jsonl
ids=$(sed -nE 's/.*"vocab_size":([0-9]+).*/\1/p' d_text_document.sum.json)
flags="--data-path d_text_document --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 2
    --train-iters 1 --lr 0.01 --eval-iters 0 -j 1"
# shellcheck disable=SC2086
{
    check "a vocabulary larger than the tokenizer's" quern-train $flags --vocab-size 32000 --save wide
    has "is said at the start" err "--vocab-size 32000: the tokenizer of 'd_text_document' has $ids ids"
    status "a vocabulary smaller than the tokenizer's" 3 quern-train $flags --vocab-size $((ids - 1))
    has "is said too" err "--vocab-size $((ids - 1)): the tokenizer of 'd_text_document' has $ids ids"
    check "without --vocab-size" quern-train $flags
    has "the vocabulary is the tokenizer's" err "a vocabulary of $ids, that of the tokenizer of 'd_text_document'"
    has "and is padded as Megatron's" out "vocabulary padded to 384"
    check "the tokenizer's own size" quern-train $flags --vocab-size "$ids"
    equal "has nothing said of it" "$(grep -c tokenizer err)" 0
    status "a sidecar that is damaged" 3 sh -c 'cp d_text_document.bin e.bin; cp d_text_document.idx e.idx; echo "{" >e.sum.json
        exec quern-train --data-path e '"${flags#* * }"
    has "is named" err e.sum.json
}
status "ids without a token are not drawn" 0 quern-generate --load wide -j 1 --tokenizer small.json --prompt "the cat" \
    --max-tokens 10 --num-samples 8 --print-ids --eod-id -1
has "and how many they are is said" err "has no token for $((32000 - ids)) of the model's 32000 ids"
equal "each is one of the tokenizer's" "$(grep -v -- ---- out | tr ' ' '\n' | awk -v n="$ids" '$1 >= n' | wc -l)" 0
equal "all were drawn" "$(grep -v -- ---- out | wc -w)" 80

# ---- what is printed, and when ----
check "the ids of a text" gen --tokenizer tokenizer.json --prompt "the cat" --max-tokens 24 --seed 5 --print-ids
quern-tokenizer decode --tokenizer tokenizer.json <out >decoded 2>err
{ printf 'the cat'; cat decoded; echo; } >want
check "the text of the same ids" gen --tokenizer tokenizer.json --prompt "the cat" --max-tokens 24 --seed 5
same "is what they decode to, though printed by and by" want out

status "no tokenizer" 2 gen --prompt "the cat"
status "no checkpoint" 2 quern-generate --prompt-ids 5
status "no such folder" 3 quern-generate --load nowhere --prompt-ids 5
status "ids that are none" 2 gen --prompt-ids 5,x
status "an id outside the vocabulary" 2 gen --prompt-ids 5,300
status "a prompt too long" 2 gen --prompt-ids "$(seq -s, 1 33)"
status "a tokenizer that is not there" 3 gen --tokenizer nothing.json --prompt a
echo '{' >bad.json
status "a tokenizer that is none" 3 gen --tokenizer bad.json --prompt a
status "a prompt as text and as ids" 2 gen --prompt a --prompt-ids 5,6
has "is one too many" err "either --prompt or --prompt-ids"
finish
