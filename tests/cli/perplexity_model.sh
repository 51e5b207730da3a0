#!/usr/bin/env bash
# quern perplexity model: documents by a checkpoint, as quern eval scores texts; as a stage of a plan.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
cp -r "$ROOT/tests/data/tasks" . && mkdir -p tests/data && ln -s "$PWD/tasks" tests/data/tasks
check 'a model of transformers' quern checkpoint import -q tasks/model --save m
model=(quern perplexity model -q --load m --tokenizer tasks/model/tokenizer.json)
sed 's/"page"/"text"/' tasks/pages.jsonl >docs.jsonl

check "eval's answers" quern-eval --load m --tokenizer tasks/model/tokenizer.json --eval-tasks tests/data/tasks/pages.yaml --records r.jsonl
status 'documents' 0 "${model[@]}" -o o.jsonl docs.jsonl
# Of each text the logarithm, and bits a byte.
sed 's/.*"likelihoods":\[\([^]]*\)\].*"bytes":\([0-9]*\).*/\1 \2/; s/,/ /g' r.jsonl |
    awk '{ s = 0; for (i = 1; i < NF; i++) s += $i; printf "%.9g %.9g\n", s / log(10), -s / log(2) / $NF }' >want
sed 's/.*"perplexity_log10":\([^,]*\),.*"perplexity_bits":\([^}]*\)}/\1 \2/' o.jsonl | awk '{ printf "%.9g %.9g\n", $1, $2 }' >got
same "have eval's likelihoods and bits a byte" got want
equal "perplexity is a token's" "$(sed 's/.*"perplexity":\([^,]*\),"perplexity_log10":\([^,]*\),"perplexity_tokens":\([0-9]*\).*/\1 \2 \3/' o.jsonl |
    awk '{ x = exp(-$2 * log(10) / $3) / $1 - 1; n += x < 1e-9 && x > -1e-9 } END { print n }')" "$(wc -l <docs.jsonl)"
status 'an empty text' 0 "${model[@]}" -o none.jsonl <(echo '{"text":""}')
has 'has none' none.jsonl '"perplexity":null,"perplexity_log10":null,"perplexity_tokens":0,"perplexity_bits":null'

for i in $(seq 25); do sed "s/\"text\": \"/&$i /" docs.jsonl; done >more.jsonl
head -n 60 more.jsonl >some.jsonl
status 'many documents' 0 "${model[@]}" -j1 -o one.jsonl more.jsonl docs.jsonl some.jsonl
status 'with threads' 0 "${model[@]}" -j5 -o five.jsonl more.jsonl docs.jsonl some.jsonl
same 'give the same bytes' five.jsonl one.jsonl
limit=$(sed 's/.*"perplexity":\([0-9]*\).*/\1/' one.jsonl | sort -n | sed -n 150p)
status 'a threshold' 0 "${model[@]}" --max-perplexity "$limit" --rejects r.jsonl -o few.jsonl more.jsonl docs.jsonl some.jsonl
equal 'drops what is above' "$(cat few.jsonl r.jsonl | wc -l) $(sed 's/.*"perplexity":\([^,]*\).*/\1/' few.jsonl |
    awk -v m="$limit" '$1 > m { n++ } END { print n + 0, (NR > 100) }')" '320 0 1'
has 'and says so' r.jsonl '"stage":"perplexity model","rule":"max_perplexity"'

cat >plan.yaml <<END
input: [more.jsonl, docs.jsonl, some.jsonl]
stages:
  - perplexity model: {load: m, tokenizer: tasks/model/tokenizer.json}
branches:
  low:
    if: perplexity < $limit
    output: low.jsonl
  rest:
    if: else
    output: rest.jsonl
stats: plan.stats
END
status 'a plan' 0 quern curate -q plan.yaml
sort one.jsonl >want; sort low.jsonl rest.jsonl >got
same 'gives the documents of the command' got want
equal 'sent by perplexity' "$(sed 's/.*"perplexity":\([^,]*\).*/\1/' low.jsonl | awk -v m="$limit" '$1 >= m { n++ } END { print n + 0, (NR > 100) }')" '0 1'
cp low.jsonl low1.jsonl; cp rest.jsonl rest1.jsonl
rm -rf -- *.work low.jsonl rest.jsonl plan.stats
status 'three tasks' 0 timeout 60 quern curate -q --processes 3 plan.yaml
same 'the same bytes' low.jsonl low1.jsonl
same 'in both branches' rest.jsonl rest1.jsonl
find m -type f -exec touch {} +
status 'another model makes another plan' 2 quern curate -q plan.yaml
has 'which is told' err "(it has '  files "

status 'no model' 2 quern perplexity model docs.jsonl
has 'is said' err 'which model? (--load DIR)'
status 'a folder without a checkpoint' 3 quern perplexity model --load tasks --tokenizer tasks/model/tokenizer.json docs.jsonl
has 'is named' err "no checkpoint in 'tasks'"
status 'a window above the positions' 2 "${model[@]}" --window 97 docs.jsonl
status 'a tokenizer of more tokens' 2 quern perplexity model --load m --tokenizer "$ROOT/tests/data/tokenizer/gpt2.json" docs.jsonl
has 'is refused' err 'has 800 tokens, the model of'
finish
