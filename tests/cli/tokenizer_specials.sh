#!/usr/bin/env bash
# Special tokens that a tokenizer's file does not have, and the token that ends a document.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/tokenizer

# --special-tokens-file: tokens and ids, or a tokenizer_config.json.
n=$(($(wc -l <"$D/ranks.tiktoken") + 1)) # the next id
printf '{"[BOS]":%d,"[EOS]":%d}' "$((n + 9))" "$n" >tokens.json
printf '{"added_tokens_decoder":{"%d":{"content":"[EOS]","special":true},"%d":{"content":"[BOS]"},%s}}' \
    "$n" "$((n + 9))" '"3":{"content":"x","special":false}' >config.json
for file in tokens config; do
    equal "special tokens by $file.json" "$((n + 9)) $n" "$(printf '[BOS][EOS]' | quern tokenizer encode --allow-special \
        --tokenizer "$D/ranks.tiktoken" --pattern gpt2 --special-tokens-file $file.json)"
    quern tokenizer info --tokenizer "$D/ranks.tiktoken" --pattern gpt2 --special-tokens-file $file.json >out
    has "special tokens by $file.json: one ends documents" out "eod         $n [EOS] (a special token of the file)"
    has "special tokens by $file.json: the vocabulary" out "vocabulary  $((n + 10)) ($((n + 1)) tokens, 2 of them added)"
done
refuses() { # NAME STATUS WHY JSON
    printf '%s' "$4" >bad.json
    status "$1" "$2" quern tokenizer info --tokenizer "$D/ranks.tiktoken" --pattern gpt2 --special-tokens-file bad.json
    has "$1: why" err "$3"
}
refuses "an id that another token has" 3 "'[EOS]' would have the id 5 of another token" '{"[EOS]":5}'
refuses "an id that is none" 3 "'[EOS]' has no valid id" '{"[EOS]":"5"}'
refuses "an id out of range" 3 "'[EOS]' has no valid id" '{"[EOS]":16777216}'
refuses "a list" 3 "is no object of tokens and ids" '["[EOS]"]'
refuses "a token without a text" 3 "token 7 has no content" '{"added_tokens_decoder":{"7":{}}}'
status "special tokens for a tokenizer.json" 2 quern tokenizer info --tokenizer "$D/gpt2.json" --special-tokens-file tokens.json
has "special tokens for a tokenizer.json: why" err "has special tokens of its own"

# What ends a document: only special tokens, by the files beside the tokenizer, by usual names, or by --eod-token.
printf '{"text":"the mill"}\n' >d.jsonl
# ends NAME WANT TOKENIZER OPTION...: WANT is in what the run says, and in the sidecar.
ends() {
    local name=$1 want=$2 tokenizer=$3
    shift 3
    rm -f e_text_document.*
    status "$name" 0 quern tokenize --tokenizer "$tokenizer" --append-eod "$@" --output-prefix e d.jsonl
    has "$name: said" err "documents end with $want"
    quern dataset head e_text_document >ids
    equal "$name: written" "$(awk '{ print $NF }' ids)" "${want%%,*}"
    has "$name: in the sidecar" e_text_document.sum.json "\"eod\":{\"id\":${want%%,*},\"token\":"
}
none() { # NAME TOKENIZER OPTION...
    local name=$1 tokenizer=$2
    shift 2
    status "$name" 2 quern tokenize --tokenizer "$tokenizer" --append-eod "$@" --output-prefix e d.jsonl
    has "$name: why" err "no special token that is known to end a document: --eod-token"
}
# </s> as an ordinary token, as in the ranks of Qwen.
{ cat "$D/ranks.tiktoken"; printf '%s %d\n' "$(printf '</s>' | base64)" "$n"; } >ordinary.tiktoken
none "an ordinary </s> ends nothing" ordinary.tiktoken --pattern none
ends "unless it is asked for" "$n, '</s>': as asked for" ordinary.tiktoken --pattern none --eod-token '</s>'
has "the token in the sidecar" e_text_document.sum.json '"token":"</s>","from":"as asked for"}'
ends "by its id" "5, '%'" ordinary.tiktoken --pattern none --eod-token 5
ordinary=(quern tokenize --tokenizer ordinary.tiktoken --pattern none --append-eod --output-prefix e d.jsonl)
status "another end is another run" 0 "${ordinary[@]}" --eod-token 6
has "another end is another run: done anew" err "1 documents"
status "a token that is not there" 2 "${ordinary[@]}" --eod-token '<no>'
has "a token that is not there: which" err "the tokenizer has no token '<no>'"
# tokenizer.json with special tokens of these names and ordinary ones.
named() { # NAME...: those as special tokens, from 900 on, each also ordinary in other files
    local list="" id=900 name
    for name; do
        list+="${list:+,}{\"id\":$id,\"content\":\"$name\",\"special\":true}"
        id=$((id + 1))
    done
    sed 's#"added_tokens":\[[^]]*\]#"added_tokens":['"$list"']#' "$D/gpt2.json"
}
mkdir -p m
for name in '<|endoftext|>' '<｜end▁of▁sentence｜>' '<EOT>' '<eos>' '</s>' '<|im_end|>'; do
    named '<pad>' "$name" >m/tokenizer.json
    id=$(printf '%s' "$name" | quern tokenizer encode --tokenizer m --allow-special)
    ends "the usual name $name" "$id, '$name': a special token of the file" m
done
named '<pad>' '<other>' '<|endoftext|>' >m/tokenizer.json
id() { printf '%s' "$1" | quern tokenizer encode --tokenizer m --allow-special; }
printf '{"eos_token_id":[1,%d,%d]}' "$(id '<other>')" "$(id '<pad>')" >m/generation_config.json
ends "generation_config.json" "$(id '<other>'), '<other>': eos_token_id of generation_config.json" m
printf '{"eos_token":{"__type":"AddedToken","content":"<pad>"}}' >m/tokenizer_config.json
ends "tokenizer_config.json" "$(id '<pad>'), '<pad>': eos_token of tokenizer_config.json" m/tokenizer.json
printf '{"eos_token":"<other>"}' >m/tokenizer_config.json
(cd m && quern tokenizer info tokenizer.json >../out)
has "beside a bare name" out "<other> (eos_token of tokenizer_config.json)"
printf '{"eos_token":null}' >m/tokenizer_config.json
rm m/generation_config.json
ends "files that say nothing" "$(id '<|endoftext|>'), '<|endoftext|>': a special token of the file" m
printf '{' >m/tokenizer_config.json
status "a file beside it that is damaged" 3 quern tokenizer info m
has "a file beside it that is damaged: which" err "'m/tokenizer_config.json'"
