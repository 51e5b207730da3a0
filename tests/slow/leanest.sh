#!/bin/bash
# The leanest build: every library that can be missing is; what is left links, runs, and says what is left out.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/without.sh"
# shellcheck disable=SC2046
check 'it builds' without $(optional)
equal 'without a warning' "$(grep 'warning:' out)" ''
for n in extract clean filter langid classify perplexity dedup decontaminate curate why stats report ablate scale; do
    has "$n is left out by name" out "left out: quern-$n, for want of "
    absent "$n is not built" "lean/bin/quern-$n"
done
has 'and ranks by MPI' out 'left out: several ranks (quern-mpi.so)'
PATH=$T/lean/bin:$PATH
for p in lean/bin/*; do check "${p##*/} runs" "$p" --version; done
awk 'BEGIN { for (i = 0; i < 300; i++) printf "{\"text\":\"line %d of a text about the sea\"}\n", i }' >a.jsonl
check 'a tokenizer is made' quern-tokenizer train --vocab-size 300 -o tok.json a.jsonl
status 'but not of Unigram' 3 quern-tokenizer train --model unigram --vocab-size 300 -o unigram.json a.jsonl
has 'for want of libdivsufsort' err 'Unigram needs libdivsufsort, which this build does without'
echo '{{ messages[0].content | upper }}' >upper.jinja
upper() { printf '{"messages":[{"role":"user","content":"%s"}]}\n' "$1" | quern-tokenizer chat --tokenizer tok.json --chat-template upper.jinja --loss-on all; }
equal 'a template changes the case of ASCII' "$(upper sea)" '["SEA"]'
status 'of é it does not' 1 upper é
has 'for want of ICU' err 'the case of a text beyond ASCII needs ICU, which this build does without'
check 'a text is tokenized' quern-tokenize --tokenizer tok.json --output-prefix data a.jsonl
check 'a model is trained' quern-train --data-path data_text_document \
    --num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 \
    --vocab-size 300 --micro-batch-size 2 --global-batch-size 4 --lr 0.01 --train-iters 2 --eval-iters 0 --save model
check 'and writes' quern-generate --load model --tokenizer tok.json --prompt 'line' --max-tokens 4
bzip2 -k a.jsonl
status 'bzip2 is refused by name' 3 quern-tokenize --tokenizer tok.json --output-prefix b a.jsonl.bz2
has 'with the reason' err 'it is compressed with bzip2, and this quern was built without libbz2'
finish
