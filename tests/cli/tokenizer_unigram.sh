#!/usr/bin/env bash
# Training of Unigram: the pieces and scores of SentencePiece's trainer; ids that SentencePiece and Hugging Face's library give
# with what is written.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/tokenizer/train
train() { quern tokenizer train --model unigram "$@"; }
printf 'the mill grinds the grain\n' >text
if ! train -q --vocab-size 257 -o out.json text 2>err && grep -q libdivsufsort err; then
    skip "training of Unigram" "this build has no libdivsufsort"
    finish
fi

# The lines of a vocabulary.
pieces() { sed -n '/"vocab"/,/^    ]/p' "$1" | sed '1d;$d;s/,$//'; }
status "a vocabulary" 0 train --vocab-size 280 -o u.json --sentencepiece-model u.model "$D/unigram.texts.jsonl"
pieces u.json >u.vocab
same "SentencePiece's pieces and scores" u.vocab "$D/unigram.vocab"
status "with byte fallback" 0 train --byte-fallback --character-coverage 0.98 --vocab-size 450 -o b.json "$D/unigram.texts.jsonl"
pieces b.json >b.vocab
same "SentencePiece's too" b.vocab "$D/unigram-bytes.vocab"
status "as Hugging Face" 0 quern tokenizer verify --tokenizer u.json --against "$D/unigram.jsonl"
sed 's/"ids":[^]]*\],"sentencepiece"/"ids"/' "$D/unigram.jsonl" >sums.jsonl # where single precision makes a difference
status "as SentencePiece" 0 quern tokenizer verify --sentencepiece 0.2.1 --tokenizer u.model --against sums.jsonl

# What memory and threads make no difference to.
for i in $(seq 200); do cat "$D/texts.jsonl"; done >many
train -q --vocab-size 500 --memory 1G -j1 -o m1.json --sentencepiece-model m1.model many
status "little memory, threads" 0 train --vocab-size 500 --memory 64M -j3 -o m2.json --sentencepiece-model m2.model many
same "the same bytes" m1.json m2.json
same "the same model" m1.model m2.model
seq -s ' ' 1000000 1900000 >numbers
status "too many words for the memory" 3 train --memory 64M -j1 -o n.json numbers
has "which says so" err 'MiB of memory and more (--memory)'
absent "nothing is left" n.json

# Texts that are hard to train on.
head -c 20000 /dev/zero | tr '\0' a >long
status "a long word" 0 train --vocab-size 300 -o l.json long
has "is cut" l.json '"aaaaaaaaaaaaaaaa"'
equal "into pieces of 16 characters" "$(grep -c aaaaaaaaaaaaaaaaa l.json)" 0
: >empty
status "no text" 0 train --byte-fallback --vocab-size 300 -o e.json empty
has "has its special tokens" err '259 tokens'
printf '{"text":"a\\u0000b  a \\u2585\\u2581x\\t"}\n{"text":" "}\n{"text":""}\n{"text":"\\n\\n"}\n{"text":"\xc3\xa9\xf0\x9f\x98\x80"}\n' >odd.jsonl
printf 'a\001b  \342\226\205 caf\303\251\t \360\237\230\200\n\na a b' >odd
status "odd characters" 0 train --byte-fallback --vocab-size 300 -o odd.json --sentencepiece-model odd.model odd.jsonl
for t in odd.json odd.model; do
    quern tokenizer encode --tokenizer $t odd | quern tokenizer decode --tokenizer $t >back
    same "come back, $t" back odd
done
printf 'x \377\376y\n' >invalid
status "bytes that are not UTF-8" 0 train --vocab-size 300 -o i.json invalid
status "special tokens that are pieces" 0 train --special-tokens '<unk>' --special-tokens the --special-tokens a --vocab-size 280 -o s.json "$D/unigram.texts.jsonl"
quern tokenizer encode --tokenizer s.json text >/dev/null || bad "special tokens that are pieces" "cannot be read"

status "more characters than tokens" 2 train --vocab-size 257 --byte-fallback -o n.json "$D/texts.jsonl"
has "why" err character-coverage
status "ranks" 2 train --ranks n.json text
status "a frequency of pairs" 2 train --min-frequency 2 -o n.json text
status "byte fallback of bytes" 2 quern tokenizer train --byte-fallback -o n.json text
finish
