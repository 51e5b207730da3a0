#!/usr/bin/env bash
# Variants of a plan train small models and are ranked: what is curated once, what a kill leaves, what the budget and halving
# leave out, and what is refused with which line.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# words FILE N SEED: N documents of words that follow each other; "the mill grinds" is what is learnt.
words() {
    awk -v n="$2" -v seed="$3" 'BEGIN {
        srand(seed)
        split("the mill grinds grain by river and stone of old town where people live all day long", w, " ")
        for (i = 0; i < n; i++) {
            t = ""; k = int(rand() * 16)
            for (j = 0; j < 60; j++) { t = t w[k + 1] " "; k = rand() < .5 ? (k * 5 + 3) % 16 : int(rand() * 16) }
            printf "{\"id\":\"%d-%d\",\"text\":\"%s%d\"}\n", seed, i, t, i * seed
        }
    }' >"$1"
}
noise() { # FILE N: documents of letters
    awk -v n="$2" 'BEGIN { srand(5); for (i = 0; i < n; i++) { t = ""; for (j = 0; j < 300; j++) t = t sprintf("%c", 97 + int(rand() * 26))
        printf "{\"id\":\"n%d\",\"text\":\"%s\"}\n", i, t } }' >"$1"
}
words good.jsonl 120 1
noise noise.jsonl 40
words held.jsonl 6 9
head -n 2 held.jsonl >>good.jsonl # they leak
cat good.jsonl noise.jsonl >mixed.jsonl
quern tokenizer train -q --vocab-size 300 -o tokenizer.json good.jsonl
quern tokenizer train -q --vocab-size 400 -o other.json good.jsonl
cat >sky.jsonl <<'END'
{"q":"the mill grinds","choices":["grain","stone"],"gold":0}
{"q":"the old","choices":["day","town"],"gold":1}
END
cat >sky.yaml <<'END'
task: sky
dataset_path: json
dataset_kwargs: {data_files: {test: sky.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: q
doc_to_choice: choices
doc_to_target: gold
END
cat >a.yaml <<'END'
input: mixed.jsonl
stages:
  - clean
  - filter: {preset: gopher-quality}
  - dedup exact
tokenizer: tokenizer.json
tokens: 1200
seeds: 2
model: {num-layers: 1, hidden-size: 16, num-attention-heads: 2, seq-length: 16, micro-batch-size: 4, lr: 0.02, attention-dropout: 0, hidden-dropout: 0}
eval:
  texts: {held: held.jsonl}
  tasks: [sky.yaml]
variants:
  plain: {without: filter}
  noise: {input: [noise.jsonl, mixed.jsonl], without: [filter, dedup exact]}
  filtered: {}
  share: {input: ["good.jsonl", "noise.jsonl"], without: filter, weights: {"good*": 3, "*": 1}}
  larger: {tokenizer: other.json, without: filter}
stats: a.json
report: a.html
END
ablate() { quern ablate -q -j 2 "$@"; }
status "what will run is shown" 0 ablate --dry-run a.yaml
has "with the plans" out '      - {"filter": {"preset": "gopher-quality"}}'
has "and how much it is" out "5 variants, 2 seeds: 10 runs at most, each of 19 steps of 64 tokens"
equal "what variants begin with is there once" "$(grep -c '"clean"' out)" 3
absent "nothing is done yet" a.yaml.work a.json
status "an ablation runs" 0 ablate a.yaml
cp out want
cp a.json want.json
has "the table says by what" out "held (bits_per_byte), 1216 tokens a run"
equal "each variant has a row" "$(grep -cE '^(plain|noise|filtered|share|larger) +2 +[0-9]' out)" 5
has "the task stands beside it" out "sky"
equal "what the filter dropped is better left out" "$(grep -oE '^(plain|filtered) ' out | head -n 1)" "filtered "
equal "noise is the last" "$(grep -E ' 2 +[0-9.]+ ' out | tail -n 1 | cut -d' ' -f1)" noise
has "the statistics say what a rule dropped" a.json '"stage": "decontaminate"'
has "the held documents are not trained on" a.json '"dropped_by": {"words": '
has "pairs are told" a.json '"better":'
has "the page has the ranking" a.html "<h2>Ranking</h2>"
check "a page without a script" bash -c '! grep -qi "<script" a.html'
equal "no checkpoint is left" "$(find a.yaml.work/runs -name '*.safetensors')" ""
status "once more it does nothing" 0 ablate a.yaml
same "and says the same" out want
same "in the same bytes" a.json want.json
runs() { (cd "$1" && cat runs/*/*.json | sed 's/"[a-z]*_seconds":[^,}]*//g' | sort); }
runs a.yaml.work >want.runs
status "one process after the other gives the same" 0 ablate -j 1 --work one a.yaml
runs one >got
same "scores" got want.runs
for _ in 1 2 3; do quern ablate -q -j 1 --work three a.yaml >>together 2>&1 & done
wait
runs three >got
same "three that share a folder too" got want.runs
equal "each says the whole" "$(grep -c 'pairs are decided' together)" 3

# Kills: of it and so of what it has started.
kills=0
while [ $kills -lt "${KILLS:-8}" ]; do
    quern ablate -q -j 2 --work killed a.yaml >/dev/null 2>&1 &
    sleep "$(awk -v k=$kills 'BEGIN { srand(k + 3); print .2 + rand() * 1.2 }')"
    kill -9 $! 2>/dev/null || break
    wait $! 2>/dev/null
    kills=$((kills + 1))
done 2>/dev/null
status "after kills it goes on" 0 ablate --work killed a.yaml
runs killed >got
same "to the same scores" got want.runs
if [ $kills -gt 0 ]; then ok "it was killed"; else bad "it was killed" "$kills times"; fi
equal "nothing is left under a temporary name" "$(find killed -name '*.part')" ""
rm -r killed/runs/noise-*
status "what is removed is run again" 0 ablate --work killed a.yaml
runs killed >got
same "with the same scores" got want.runs

# More seeds, another variant: what is there stays.
before=$(ls -l --time-style=full-iso a.yaml.work/runs/plain-*/1.json)
sed 's/^  plain:.*/&\n  twice: {input: [good.jsonl, good.jsonl], without: [filter, dedup exact]}/' a.yaml >b.yaml
status "a further variant and seed" 0 ablate --seeds 3 --work a.yaml.work b.yaml
equal "leave the runs that are there" "$(ls -l --time-style=full-iso a.yaml.work/runs/plain-*/1.json)" "$before"
equal "and add theirs" "$(ls a.yaml.work/runs/twice-*/*.json a.yaml.work/runs/plain-*/*.json | wc -l)" 6

# What decides on a run is in its name: another rate or other data of a task are run anew.
status "some runs" 0 ablate --seeds 1 --work named a.yaml
cp -p sky.jsonl sky.was
sed -i 's/"gold":1/"gold":0/' sky.jsonl
status "with other questions" 0 ablate --seeds 1 --work named a.yaml
equal "they are run anew" "$(ls -d named/runs/plain-* | wc -l)" 2
cp -p sky.was sky.jsonl
sed 's/lr: 0.02/lr: 0.03/' a.yaml >c.yaml
status "with another rate" 0 ablate --seeds 1 --work named c.yaml
equal "so are these" "$(ls -d named/runs/plain-* | wc -l)" 3

status "models are kept" 0 ablate --keep-models --seeds 1 --work kept a.yaml
quern checkpoint info kept/runs/share-*/1/model >out
has "shares are the weights of a blend" out \
    "3,$(echo kept/data/*/share)/000000_text_document,1,$(echo kept/data/*/share)/000001_text_document"
has "the seed is a run's" out "  seed                                 1234"

# Halving and the budget.
status "halving" 0 ablate --halving --seeds 4 --work a.yaml.work a.yaml
equal "stops the worse half after two seeds" "$(grep -c '^stopped after 2 seeds: ' out)" 2
has "of which noise is one" out "stopped after 2 seeds: noise"
equal "which counts by these seeds" "$(grep -oE '^noise +2 ' out | tr -s ' ')" "noise 2 "
status "a budget of nothing" 0 ablate --budget 0.01s --work poor a.yaml
has "is told" out "the budget is spent: some runs were not done"
equal "and spent on one run at most" "$(ls poor/runs/*/*.json 2>/dev/null | wc -l)" 0
cost=$(grep -ohE '"[a-z]*_seconds":[0-9.]+' a.yaml.work/data/*/done.json | cut -d: -f2 | awk '{ s += $1 } END { print s }')
one=$(grep -ohE '"(train|eval)_seconds":[0-9.]+' a.yaml.work/runs/plain-*/1.json | cut -d: -f2 | awk '{ s += $1 } END { print s }')
quern ablate -j 1 --seeds 40 --budget "$(awk -v c="$cost" -v r="$one" 'BEGIN { print c + 14 * r }')s" --work rich a.yaml >out 2>err
equal "a budget of some seeds ends fine" $? 0
has "says how many fit" err "of 40 seeds fit into"
has "in the result too" out "of 40 seeds"

# What cannot be done is said before any work, with the line.
refused() { # NAME SED MESSAGE [STATUS]
    sed "$2" a.yaml >wrong.yaml
    status "$1" "${4:-3}" ablate wrong.yaml
    has "$1: told" err "$3"
}
refused "an unknown key" 's/^tokens:/tokns:/' "'wrong.yaml' line 7: an ablation has no setting 'tokns'; did you mean 'tokens'?"
refused "no tokens" '/^tokens:/d' "line 1: tokens is missing"
refused "an unknown setting of a variant" 's/without: filter}/wthout: filter}/' "line 14: a variant has no setting 'wthout'"
refused "a stage that is not there" 's/plain: {without: filter}/plain: {without: filtr}/' "line 14: the plan has no stage 'filtr'; did you mean 'filter'?"
refused "an unknown setting of a stage" 's/  filtered: {}/  filtered: {set: {filter: {preste: c4}}}/' "line 16: filter has no setting 'preste'; did you mean 'preset'?"
refused "an impossible setting" 's/  filtered: {}/  filtered: {set: {filter: {preset: c5}}}/' "line 16"  2
refused "an unknown stage" 's/  filtered: {}/  filtered: {add: claen}/' "line 16: no stage 'claen'"
refused "an input that is not there" 's/noise.jsonl, mixed/none.jsonl, mixed/' "line 15: cannot open 'none.jsonl'"
refused "an input without a share" 's/"\*": 1}/"x*": 1}/' "line 17: weights has no share for input 'noise.jsonl'"
refused "a text that is not there" 's/held: held.jsonl/held: no.jsonl/' "line 11: cannot open 'no.jsonl'"
refused "an unknown option of train" 's/num-layers: 1/num-layer: 1/' "line 9: model has no setting 'num-layer'; did you mean 'num-layers'?"
refused "an option of ours" 's/num-layers: 1/seed: 1/' "line 9: seed is what quern ablate sets itself"
refused "an impossible model" 's/num-attention-heads: 2/num-attention-heads: 3/' "line 9: "
refused "a tokenizer that is none" 's/^tokenizer: .*/tokenizer: sky.yaml/' "sky.yaml"
refused "one variant alone" '/^  [nfsl]/d' "variants is a map of two variants or more"
refused "a ranking by what is not there" 's/^seeds:/rank-by: sun\nseeds:/' "there is no evaluation 'sun'"
refused "a time that is none" 's/^seeds: 2/budget: 2 weeks/' "line 8: '2 weeks' is no time"
absent "none of it left anything" wrong.yaml.work
sed 's/  filtered: {}/  filtered: {set: {filter: {preset: c4}}, input: sky.jsonl}/; /^  [ns]/d' a.yaml >empty.yaml
status "inputs that are no documents" 3 ablate empty.yaml
has "are told with the log" err "empty.yaml.work/data/"
sed "s/^  filtered: {}/  filtered: {without: filter, add: {filter: {preset: [gopher-quality, gopher-repetition]}}, input: noise.jsonl}/; /^  [ns]/d" a.yaml >none.yaml
status "a variant of which nothing is left" 3 ablate none.yaml
has "is named" err "variant 'filtered' has no tokens: no document was left"
sed "s/lr: 0.02/lr: 900000/" a.yaml >burst.yaml
status "a training that fails" 3 ablate --work burst burst.yaml
has "is told with its log" err "/log' has its messages"
finish
