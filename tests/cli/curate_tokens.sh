#!/bin/bash
# Plans that end in datasets of tokens and in numbers, at a shell: the bytes that quern tokenize and quern stats give of the
# documents, for any division of the work, after any number of kills.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/curate_lib.sh"

make() { # file n
    awk -v f="$1" -v n="$2" 'BEGIN {
        srand(n)
        for (i = 0; i < n; i++) {
            k = rand() < .2 ? int(rand() * 30) : n * 1000 + i
            t = ""
            for (j = 0; j < k % 41 + 3; j++) t = t "the word" (k * 7919 + j * j) % 500 " "
            printf "{\"id\":\"%s-%d\",\"url\":\"http://%s/\\u00fc%d\",\"text\":\"%s\",\"title\":\"number %d\",\"lang\":\"%s\",", f, i, f, i, t, k,
                rand() < .6 ? "de" : "en"
            printf "\"source\":{\"file\":\"%s.warc\",\"offset\":%d,\"license\":\"a \\\"b\\\"\"}}\n", f, i
        }
    }' >"$1.jsonl"
}
make one 500
make two 300
make three 1
: >four.jsonl
make five 400
cat >plan.yaml <<END
input: [one.jsonl, two.jsonl, three.jsonl, four.jsonl, five.jsonl]
stages:
  - clean
  - dedup exact
output: docs.jsonl
branches:
  all:
    stages:
      - tokenize: {tokenizer: tokenizer.json, append-eod: true, ledger: true, output-prefix: all}
  german:
    if: lang == de
    output: german/
  shards:
    from: german
    stages:
      - tokenize: {tokenizer: tokenizer.json, append-eod: true, ledger: true, output-prefix: shards, shards: 3}
  each:
    from: german
    stages:
      - tokenize: {tokenizer: tokenizer.json, json-keys: [text, title], output-prefix: each/}
  numbers:
    stages:
      - stats: {by: lang, output: numbers.json, json: true}
stats: out.stats
END
cat one.jsonl five.jsonl | quern tokenizer train -q --vocab-size 600 -o tokenizer.json
ledger=--ledger endings='bin idx ledger'
if quern tokenize -q --tokenizer tokenizer.json --ledger --output-prefix try three.jsonl 2>&1 | grep -q 'no SHA-256'; then
    skip 'ledgers' 'a build without nettle'
    sed -i 's/ ledger: true,//' plan.yaml
    ledger='' endings='bin idx'
fi
number() { quern dataset info "$1" | sed -n "s/^ *$2 *//p"; } # PREFIX documents|tokens
status "a plan that ends in datasets runs" 0 quern curate plan.yaml
# shellcheck disable=SC2086
quern tokenize -q --tokenizer tokenizer.json --append-eod $ledger --output-prefix want.all docs.jsonl
for e in $endings; do same "the .$e that quern tokenize makes" all_text_document.$e want.all_text_document.$e; done
norun() { sed 's/"run":"[0-9a-f]*"//' "$1"; }
norun all_text_document.sum.json >got
norun want.all_text_document.sum.json >want
same "and its account, but for what run it was" got want
# shellcheck disable=SC2086
status "which is right" 0 quern dataset verify $ledger all_text_document
cat german/*.jsonl >german.jsonl
# shellcheck disable=SC2086
quern tokenize -q --tokenizer tokenizer.json --append-eod $ledger --output-prefix want.german german.jsonl
status "shards are one dataset in parts" 0 quern dataset merge -o merged shards-0000{0,1,2}-of-00003_text_document
for e in $endings; do same "the same .$e" merged.$e want.german_text_document.$e; done
equal "of whole inputs" "$(number shards-00000-of-00003_text_document documents)" "$(wc -l <german/000000.jsonl)"
quern tokenize -q --tokenizer tokenizer.json --json-keys text,title --output-prefix want.each/ german/*.jsonl
for k in text title; do
    for e in bin idx; do
        cat each/00000?_${k}_document.$e >got
        cat want.each/00000?_${k}_document.$e >want
        same "a dataset for each input, of $k: .$e" got want
    done
done
equal "five of them" "$(ls each/*_text_document.idx | wc -l)" 5
quern stats --json --by lang -o want.numbers docs.jsonl
same "the numbers of quern stats" numbers.json want.numbers
has "tokens are counted" out.stats "\"stage\":\"tokenize\",\"branch\":\"all\",\"docs_in\":$(wc -l <docs.jsonl),\"docs_out\":$(wc -l <docs.jsonl),"
has "of each key" out.stats "\"tokens\":{\"text\":$(number all_text_document tokens)},\"special_tokens_as_text\":0"
equal "nothing is left of it" "$(cd docs.jsonl.work && echo *)" "finished plan"

# Every file, as one to compare.
all() { for f in docs.jsonl german/*.jsonl {all,shards,each/}*.{bin,idx,json} all*.ledger shards*.ledger numbers.json; do echo "$f $(md5sum <"$f")"; done; }
all >want.all
counts out.stats >want.stats
again() { rm -rf docs.jsonl* german {all,shards}[-_]* each numbers.json out.stats; }
compare() { # name
    all >got
    same "same files $1" got want.all
    counts out.stats >got
    same "same counts $1" got want.stats
}
whole() {
    local f
    for f in {all,shards-00001-of-00003,each/000000}_text_document; do
        if [ -e $f.idx ] && ! quern dataset verify $f >verified 2>&1; then cat verified; fi
    done
}
work=docs.jsonl.work came=0
divided "-j 1" "--processes 4 -j 4 --checkpoint 5K"
killed 5K

# A plan of one chain that ends in a dataset.
printf 'input: one.jsonl\nstages:\n  - clean\n  - tokenize: {tokenizer: tokenizer.json, output-prefix: chain}\n' >chain.yaml
status "a chain may end in a dataset" 0 quern curate chain.yaml
check "the work folder is called after it" test -e chain.work/finished
status "which is done" 0 quern curate chain.yaml
cp tokenizer.json other.json
sed 's/tokenizer.json/other.json/' chain.yaml >other.yaml
status "another tokenizer makes another plan" 2 quern curate other.yaml
touch -d '2001-01-01' tokenizer.json
status "so does a changed one" 2 quern curate chain.yaml
has "which is told" err "file tokenizer.json"
quern tokenizer train -q --vocab-size 300 one.jsonl --vocab-merges pair
sed 's/tokenizer.json/pair/; s/chain}/pairs}/' chain.yaml >pair.yaml
quern curate pair.yaml 2>/dev/null
check "a folder's tokenizer" test -e pairs.work/finished
sed '$d' pair/merges.txt >merges
cat merges >pair/merges.txt
status "a changed one in a folder too" 2 quern curate pair.yaml
has "which is told" err "file pair/merges.txt"
printf 'input: titles.jsonl\nstages:\n  - tokenize: {tokenizer: other.json, ledger: true, output-prefix: lines}\n' >lines.yaml
printf '{"text":"x"}\n{"id":7,"url":8,"text":"y","source":"dolma"}\n{"id":"","url":null,"text":"","source":{}}\n' >titles.jsonl
[ -z "$ledger" ] || {
    status "documents without a source" 0 quern curate lines.yaml
    quern tokenize -q --tokenizer other.json --ledger --output-prefix want.lines titles.jsonl
    same "are known by their lines" lines_text_document.ledger want.lines_text_document.ledger
}
printf '{"id":"a","text":"x","title":"y"}\n{"id":"b","text":"x"}\n{"id":"c","text":"x","title":""}\n' >titles.jsonl
printf 'stages:\n  - tokenize: {tokenizer: other.json, json-keys: "text,title", output-prefix: titles}\n' >titles.yaml
status "a document without a text under a key is bad" 1 quern curate titles.yaml titles.jsonl
has "and named" err "the document has no text under 'title'"
equal "the others are there" "$(number titles_title_document documents)" 2

tok="tokenize: {tokenizer: tokenizer.json, output-prefix: never"
wrong "a stage behind an end" "stages: [{$tok}}, clean]"$'\n' "line 1: tokenize ends its branch: nothing can follow it there"
wrong "an output behind an end" "stages: [{$tok}}]"$'\noutput: x\n' "line 1: tokenize ends its branch, so no documents are left for output 'x'"
wrong "a branch behind an end" "stages: [{$tok}}]"$'\nbranches:\n  a: {output: x}\n' "line 1: tokenize ends its branch, so no documents are left for 'a'"
wrong "no prefix" $'stages:\n  - tokenize: {tokenizer: tokenizer.json}\n' "line 2: tokenize needs an output-prefix"
wrong "no tokenizer" $'stages:\n  - tokenize: {output-prefix: never}\n' "line 2: tokenize needs a tokenizer" 2
wrong "a tokenizer that is none" $'stages:\n  - tokenize: {tokenizer: one.jsonl, output-prefix: never}\n' "line 2: 'one.jsonl'"
wrong "no prefix beside a work folder" $'work: x\nstages:\n  - tokenize: {tokenizer: tokenizer.json}\n' "line 3: tokenize needs an output-prefix"
wrong "a prefix in no folder" $'stages:\n  - tokenize: {tokenizer: tokenizer.json, output-prefix: no/x}\n' "line 2: cannot write 'no/x'"
wrong "more shards than inputs" "stages: [{$tok, shards: 2}}]"$'\n' "line 1: a shard has whole inputs: there are 1 for 2 shards" 2
wrong "an unknown setting" "stages: [{$tok, shard: 2}}]"$'\n' "tokenize has no setting 'shard'; did you mean 'shards'?"
wrong "numbers without a file" $'stages:\n  - stats: {by: lang}\n' "line 2: stats needs an output"
wrong "two datasets of one name" $'stages: []\nbranches:\n  a: {stages: ['"$tok}]}"$'\n  b: {stages: ['"$tok}]}"$'\n' "never" 2
absent "none of it left anything" never.work never_text_document.bin
finish
