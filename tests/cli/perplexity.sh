#!/usr/bin/env bash
# quern perplexity at a shell, and as a stage of a plan.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
data=$ROOT/tests/data/perplexity
spm=$ROOT/tests/data/tokenizer/spm_unigram.model

# The fields of perplexity, line by line.
fields() { grep -o '"perplexity[a-z0-9_]*":[^,}]*' "$1" | grep -v bucket; }
# Documents of words that mostly follow one another in the model, and some that it does not have.
awk '/^\\3-grams/ { exit } /^\\2-grams/ { on = 1; next } on && $2 ~ /^[a-zéñøö]+$/ && $3 ~ /^[a-zéñøö]+$/ { if (!m[$2]) w[n++] = $2; next_of[$2, m[$2]++] = $3 }
     END { srand(5); for (i = 0; i < 600; i++) {
        t = ""; k = w[int(rand() * n)]
        for (j = 0; j < i % 17; j++) {
            t = t k (j % 6 == 5 ? "\\n" : " "); k = m[k] && rand() < i % 5 / 4 ? next_of[k, int(rand() * m[k])] : w[int(rand() * n)]
        }
        printf "{\"id\":\"d%d\",\"text\":\"%s\",\"lang\":\"%s\"}\n", i, t (i % 7 ? "" : "never"), i % 3 ? "de" : "en"
     } }' "$data/five.arpa" >docs.jsonl
equal "there are documents" "$(wc -l <docs.jsonl)" 600

# What CCNet gives: its normalisation, SentencePiece, kenlm.
grep -v '"text": ""' "$data/ccnet.jsonl" | sed 's/, "normal".*/}/' >texts.jsonl
status "as CCNet" 0 quern perplexity -q --lm "$data/pieces.both" --tokenizer "$spm" --normalize ccnet --sentences document texts.jsonl
fields out | awk -F: '{ v[$1] = $2 } NR % 3 == 0 { printf "%.9g %d %.12g\n", v["\"perplexity_log10\""], v["\"perplexity_tokens\""], v["\"perplexity\""] }' >got
grep -v '"text": ""' "$data/ccnet.jsonl" | sed 's/.*"perplexity_log10": \([^,]*\), "perplexity_tokens": \([0-9]*\), "perplexity": \([^}]*\)}/\1 \2 \3/' |
    awk '{ printf "%.9g %d %.12g\n", $1, $2, $3 }' >want
# The logarithms are given with 9 digits, which are a float's; perplexities are of the floats themselves.
cut -d' ' -f1,2 got >got.logs; cut -d' ' -f1,2 want >want.logs
same "the logarithms and the numbers of pieces" got.logs want.logs
check "and the perplexities" awk 'NR == FNR { want[FNR] = $3; n++; next } { if (($3 / want[FNR] - 1) ^ 2 > 1e-14) exit 1 } END { exit FNR != n || n < 20 }' want got

# Every kind of file gives the same, but for what is quantised.
quern perplexity -q --lm "$data/five.arpa" docs.jsonl >want
for kind in probing full trie array; do
    status "a model as $kind" 0 quern perplexity -q --lm "$data/five.$kind" docs.jsonl
    same "is the one of the ARPA file" out want
done
gzip -c "$data/five.arpa" >five.arpa.gz; zstd -q "$data/five.arpa" -o five.arpa.zst
for e in gz zst; do
    status "an ARPA file as .$e" 0 quern perplexity -q --lm five.arpa.$e docs.jsonl
    same "is the same" out want
done
status "threads" 0 quern perplexity -q -j5 --lm "$data/five.trie" docs.jsonl
same "change nothing" out want
equal "a text without words is an end of a sentence for each line; none has no perplexity" \
    "$(printf '{"text":"\\n\\n"}\n{"text":""}\n' | quern perplexity -q --lm "$data/five.trie" | grep -o '"perplexity_tokens.*\|"perplexity":null')" \
    '"perplexity_tokens":3}
"perplexity":null
"perplexity_tokens":0}'

# Thresholds and buckets.
status "thresholds" 0 quern perplexity -q --lm "$data/five.trie" --min-perplexity 40 --max-perplexity 120 --rejects r.jsonl --stats s.json -o o docs.jsonl
equal "hold" "$(awk -F'"perplexity":' '{ split($2, v, ","); n += v[1] != "null" && (v[1] + 0 < 40 || v[1] + 0 > 120) } END { print n + 0, (NR > 50) }' o)" "0 1"
equal "all are accounted for" "$(($(wc -l <o) + $(wc -l <r.jsonl)))" 600
has "by the rule below" r.jsonl '"stage":"perplexity","rule":"min_perplexity","value":'
has "and the one above" r.jsonl '"rule":"max_perplexity"'
has "statistics name the model" s.json '"model":"trie of order 5"'
status "why" 0 quern why --rejects r.jsonl "$(sed -n '/max_perp/s/.*"id":"\([^"]*\)".*/\1/p' r.jsonl | head -n 1)"
has "has words for it" out "perplexity"
status "cutoffs" 0 quern perplexity -q --lm "$data/five.trie" --cutoffs 60,110 docs.jsonl
cp out cut
equal "make buckets" "$(awk -F'"perplexity":' '{ split($2, v, ","); match($0, /bucket":"[a-z]*/); b = substr($0, RSTART + 9, RLENGTH - 9); seen[b]++
    bad += b != (v[1] == "null" ? "all" : v[1] + 0 < 60 ? "head" : v[1] + 0 < 110 ? "middle" : "tail") }
    END { print bad + 0, (seen["head"] > 20), (seen["middle"] > 20), (seen["tail"] > 20), (seen["all"] > 20) }' cut)" "0 1 1 1 1"
status "keep" 0 quern perplexity -q --lm "$data/five.trie" --cutoffs 60,110 --keep head,tail --rejects r.jsonl docs.jsonl
grep -v '"middle"' cut | grep -v '"all"' >kept
same "keeps those buckets" out kept
has "and says why others go" r.jsonl '"rule":"bucket"'
status "percentiles" 0 quern perplexity -q --lm "$data/five.trie" --percentiles 30,60 --stats s.json docs.jsonl
n=$(grep -vc '"perplexity":null' out)
equal "divide the documents" "$(grep -c '"head"' out) $(grep -c '"middle"' out)" "$(awk -v n="$n" 'BEGIN {
    a = .3 * (n - 1); b = .6 * (n - 1); h = int(a) + (a > int(a)); print h, int(b) + (b > int(b)) - h }')"
cp out cut
cutoffs=$(sed 's/.*"cutoffs":\[\([^]]*\)\].*/\1/' s.json)
status "and are said" 0 quern perplexity -q --lm "$data/five.trie" --cutoffs "$cutoffs" docs.jsonl
same "as cutoffs that give the same" out cut
status "percentiles with threads" 0 quern perplexity -q -j4 --lm "$data/five.trie" --percentiles 30,60 docs.jsonl
same "are the same" out cut

# As a stage of a plan.
cat >plan.yaml <<END
input: [docs.jsonl, more.jsonl]
stages:
  - perplexity: {lm: $data/pieces.both, tokenizer: $spm, normalize: ccnet, sentences: document, percentiles: [30, 60], keep: [head, middle]}
branches:
  low:
    if: perplexity < 40
    output: low.jsonl
  rest:
    if: else
    output: rest.jsonl
stats: plan.stats
END
sed 's/"d/"e/' docs.jsonl | head -n 250 >more.jsonl
status "a plan with it" 0 quern curate -q plan.yaml
quern perplexity -q --lm "$data/pieces.both" --tokenizer "$spm" --normalize ccnet --sentences document --percentiles 30,60 \
    --keep head,middle docs.jsonl more.jsonl >want
sort want >want.sorted; sort low.jsonl rest.jsonl >got.sorted
same "gives the documents of the command" got.sorted want.sorted
equal "sent to branches by perplexity" "$(awk -F'"perplexity":' '{ split($2, v, ","); n += v[1] >= 40 } END { print n + 0, (NR > 5) }' low.jsonl)" "0 1"
mv low.jsonl low1.jsonl
rm -rf -- *.work rest.jsonl
status "two tasks" 0 quern curate -q --processes 2 plan.yaml
same "give the same" low.jsonl low1.jsonl

# What cannot be.
status "no model" 2 quern perplexity docs.jsonl
has "is said" err "which model? (--lm FILE)"
status "a model that is none" 3 quern perplexity --lm docs.jsonl docs.jsonl
has "by name and place" err "'docs.jsonl': at byte 0: not \\data\\"
gzip -c "$data/five.trie" >five.trie.gz
status "a binary model that is compressed" 3 quern perplexity --lm five.trie.gz docs.jsonl
has "is said to be so" err "cannot be compressed"
head -c 9000 "$data/five.trie" >cut.trie
status "a model cut short" 3 quern perplexity --lm cut.trie docs.jsonl
has "is named with the place" err "'cut.trie': at byte"
status "a tokenizer of another kind" 3 quern perplexity --lm "$data/five.trie" --tokenizer "$ROOT/tests/data/tokenizer/gpt2.json" docs.jsonl
has "is refused" err "is no SentencePiece model"
status "cutoffs that fall" 2 quern perplexity --lm "$data/five.trie" --cutoffs 60,30 docs.jsonl
status "a bucket that is none" 2 quern perplexity --lm "$data/five.trie" --cutoffs 30,60 --keep heads docs.jsonl
has "is named" err "keep: 'heads' is no bucket"
finish
