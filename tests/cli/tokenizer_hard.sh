#!/usr/bin/env bash
# Texts and files that are hard on a tokenizer: what a pattern cannot cut, what grows, what is no tokenizer, ids that are no text.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/tokenizer

# Long words, by an expression that PCRE2 runs with a stack frame for each letter.
frames='[^\r\n\p{L}]?(?:[\p{L}&&[^\p{Thai}]])*[\p{Ll}&&[^\p{Thai}]]+|[^\p{L}]+|\p{L}'
awk 'BEGIN { print "{\"text\":\"a b\"}"; for (n = 5000; n <= 2000000; n *= 20) { printf "{\"text\":\""; for (i = 0; i < n; i++)
    printf "x"; print "\"}" } print "{\"text\":\"c\"}" }' >long.jsonl
status "long words" 0 quern tokenizer encode --jsonl --tokenizer "$D/ranks.tiktoken" --pattern "$frames" long.jsonl
equal "long words: a line for each" "$(wc -l <out)" "$(wc -l <long.jsonl)"
quern tokenizer decode --jsonl --tokenizer "$D/ranks.tiktoken" --pattern none out | sed 's/.*/{"text":&}/' >back
same "long words: they come back" long.jsonl back

R=$D/ranks.tiktoken
# A line that an expression cannot cut is one bad line.
printf '{"text":"a b"}\n{"text":"%s"}\n{"text":"c"}\n' "$(head -c 40 /dev/zero | tr '\0' x)" >worse.jsonl
worse='(?:x+x+)+y|\p{L}'
status "a bad line" 1 quern tokenizer encode --jsonl --tokenizer "$R" --pattern "$worse" worse.jsonl
has "a bad line: which, why" err "'worse.jsonl' at byte 15: the pattern '(?:x+x+)+y|\\p{L}' cannot cut it at byte 0: match limit"
equal "a bad line: nothing in its place, the others are there" "$(wc -l <out)" 2
status "tokenize: a bad line" 1 quern tokenize --tokenizer "$R" --pattern "$worse" --output-prefix w worse.jsonl
equal "tokenize: a bad line is counted" "$(grep -o '"documents":[0-9]*\|"bad_lines":[0-9]*' w_text_document.sum.json | tr '\n' ' ')" \
    '"documents":2 "bad_lines":1 '

# A Replace that multiplies a text is refused before memory is taken.
replaces() { # CONTENT: gpt2.json that writes it for each a
    sed 's/"normalizer":null/"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"'"$1"'"}/' "$D/gpt2.json"
}
replaces "$(head -c 100000 /dev/zero | tr '\0' b)" >grows.json
printf '{"text":"a"}\n{"text":"%s"}\n{"text":"b"}\n' "$(head -c 100000 /dev/zero | tr '\0' a)" >grows.jsonl
(
    instrumented || ulimit -v 400000
    status "a text that would grow to 10 GB" 1 quern tokenizer encode --jsonl --tokenizer grows.json grows.jsonl
    has "a text that would grow: why" err "a Replace makes a text of 10000000000 bytes of 100000"
    equal "a text that would grow: the others are there" "$(wc -l <out)" 2
)
replaces bbbbbbbb >some.json
status "a text that grows some" 0 quern tokenizer encode --jsonl --tokenizer some.json grows.jsonl

# What is no tokenizer is not called a rank file without a pattern.
for text in null '[[[[' '"text"' '' 'two words'; do
    printf '%s' "$text" >none
    status "no tokenizer: '$text'" 3 quern tokenizer info none
    has "no tokenizer: '$text', why" err "'none' is no tokenizer: neither a JSON object, nor a SentencePiece model, nor ranks"
done
cp "$D/ranks.tiktoken" unnamed
status "ranks without a pattern" 2 quern tokenizer info unnamed
has "ranks without a pattern: why" err "a rank file does not say its pattern"

# Ids of half a character: UTF-8 all the same, as a JSON string must be.
printf 'the \360\237\230\200' | quern tokenizer encode --tokenizer "$D/gpt2.json" |
    awk '{ print "[" $NF "]"; print "[" $1 "]" }' >half.ids
status "decode --jsonl: half a character" 0 quern tokenizer decode --jsonl --tokenizer "$D/gpt2.json" half.ids
equal "decode --jsonl: U+FFFD in its place" "$(head -1 out)" $'"\xef\xbf\xbd"'
