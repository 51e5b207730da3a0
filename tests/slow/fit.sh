#!/usr/bin/env bash
# quern ablate fit, quern scale fit: what they say, files that make no sense, the same for any threads, proposals that ablate takes.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/fit
command -v quern-scale >/dev/null || { skip "fits" "this build has no scale"; finish; }

# ---- mixtures ----
status "a fit of mixtures" 0 quern ablate fit -j 1 --draws 20 --stats one.json --at web=.2,books=.3,code=.5 "$D/mixtures.jsonl"
cp out one.txt
has "names how many points" out "24 points of 24 mixtures of 3 sources"
has "the best weights" out "best weight"
has "predicts what was asked" out "web=.2,books=.3,code=.5"
status "with three threads" 0 quern ablate fit -j 3 --draws 20 --stats three.json --at web=.2,books=.3,code=.5 "$D/mixtures.jsonl"
same "the same table" out one.txt
same "and statistics" three.json one.json
status "another seed" 0 quern ablate fit --seed 2 --draws 20 --stats two.json "$D/mixtures.jsonl"
check "other intervals" bash -c '! cmp -s one.json two.json'
# The weights that the statistics give for a mixture: NAME FILE SOURCE.
weight() { sed -n 's/^{"mixture":"best","weights":{\([^}]*\)}.*/\1/p' "$1" | tr ',' '\n' | sed -n "s/^\"$2\"://p" | xargs printf %.6f; }
status "a source that there is little of" 0 quern ablate fit --draws 20 --stats few.json --tokens 1e9 --have web=2e7 --have code=1e9 \
    --epochs 5 "$D/mixtures.jsonl"
equal "is not repeated more often" "$(weight few.json web)" 0.100000
status "a bound of a weight" 0 quern ablate fit --draws 20 --stats most.json --least books=.6 --target first "$D/mixtures.jsonl"
equal "one target alone wants one source" "$(weight most.json books)" 1.000000
status "some points are not fitted" 0 bash -c 'head -n 16 "$1" >fitted.jsonl; tail -n 8 "$1" >unseen.jsonl
    quern ablate fit --draws 20 --test unseen.jsonl --stats test.json fitted.jsonl' - "$D/mixtures.jsonl"
has "and are held against it" out "rank corr.  within a run's range"
cp out held.txt
check "their ranks are predicted" awk '/^ *not fitted/ { on = 1; next } on { n += $4 > .97 } END { exit n != 4 }' FS='  +' held.txt
status "of one target" 0 quern ablate fit --draws 20 --target first --test unseen.jsonl fitted.jsonl
has "the goal is told" <(sed -n '/not fitted/,$p' out) "(goal) "
equal "and is as that" "$(sed -n '/not fitted/,$s/^(goal) *//p' out)" "$(sed -n '/not fitted/,$s/^first *//p' out)"

# What ablate writes: variants with weights, a point each seed; what is no loss is passed over.
awk 'BEGIN { printf "{\"variants\":["; for (i = 0; i < 6; i++) printf "%s{\"variant\":\"v%d\",\"weights\":{\"a.jsonl\":%d,\"b.jsonl\":%d}," \
    "\"evaluations\":{\"t\":{\"metric\":\"bits_per_byte\",\"scores\":[%g,null,%g]},\"u\":{\"metric\":\"acc\",\"scores\":[0,null,0]}}}", \
    i ? "," : "", i, i, 5 - i, 1 + exp(-.3 * i), 1.001 + exp(-.3 * i); print "]}" }' >stats.json
cat >ablation.yaml <<'YAML'
input: [a.jsonl, b.jsonl]
stages: []
tokens: 100
YAML
status "statistics of an ablation" 0 quern ablate fit --draws 20 stats.json
has "each seed that was done is a point" out "12 points of 6 mixtures of 2 sources"
status "proposals" 0 quern ablate fit --draws 20 --propose 3 --of ablation.yaml -o next.yaml stats.json
equal "the file has what the other has" "$(grep -c '^"\(input\|stages\|tokens\)"' next.yaml)" 3
equal "and the mixtures, the best first" "$(sed -n '/^variants/,$s/^  \([^:]*\):.*/\1/p' next.yaml | tr '\n' ' ')" 'best mixture-1 mixture-2 '
has "with weights" next.yaml 'best: {weights: {"a.jsonl": 1.000000, "b.jsonl": 0.000000}}'
has "what is curated is shared" next.yaml 'work: "ablation.yaml.work"'

# ---- what makes no sense ----
# wrong NAME LINE... -- MESSAGE: points of these lines are refused with a message.
wrong() {
    local name=$1 lines=()
    shift
    while [ "$1" != -- ]; do lines+=("$1"); shift; done
    printf '%s\n' "${lines[@]}" >bad.jsonl
    status "$name" 3 quern "${what[@]}" bad.jsonl
    has "$name: says why" err "$2"
}
what=(ablate fit --draws 20)
fine='{"weights": {"a": 0.5, "b": 0.5}, "loss": 2}'
wrong "weights that do not sum to 1" "$fine" '{"weights": {"a": 0.5, "b": 0.6}, "loss": 2}' -- \
    "'bad.jsonl': line 2: the weights sum to 1.1, not to 1"
wrong "a negative weight" "$fine" '{"weights": {"a": -0.5, "b": 1.5}, "loss": 2}' -- "line 2: the weight of 'a' is no share from 0"
wrong "a negative loss" "$fine" '{"weights": {"a": 0.5, "b": 0.5}, "loss": -2}' -- "line 2: 'loss' is -2: a loss is above 0"
wrong "a loss of NaN" "$fine" '{"weights": {"a": 0.5, "b": 0.5}, "loss": NaN}' -- "line 2: "
wrong "an infinite loss" "$fine" '{"weights": {"a": 0.5, "b": 0.5}, "loss": 1e999}' -- "line 2: "
wrong "no loss" "$fine" '{"weights": {"a": 0.5, "b": 0.5}}' -- "line 2: either 'loss', a number, or 'losses'"
wrong "other targets" "$fine" '{"weights": {"a": 0.5, "b": 0.5}, "losses": {"x": 1}}' -- "line 2: no loss of 'loss'"
wrong "no object" "$fine" '[1]' -- "line 2: this is no object"
wrong "equal points" "$fine" "$fine" "$fine" "$fine" "$fine" -- "5 points are of 1 different mixtures; 2 sources need 3"
wrong "too few points" "$fine" '{"weights": {"a": 1}, "loss": 2}' -- "2 points are of 2 different mixtures; 2 sources need 3"
same3() { echo "{\"weights\": {\"a\": $1, \"b\": $1, \"c\": $2}, \"loss\": $3}"; }
wrong "sources that are never told apart" "$(same3 0.1 0.8 2)" "$(same3 0.2 0.6 2.1)" "$(same3 0.3 0.4 2.2)" \
    "$(same3 0.4 0.2 2.3)" "$(same3 0.5 0 2.4)" -- \
    "the mixtures do not tell source 'b' from those before it"
: >empty.jsonl
status "an empty file" 3 quern ablate fit empty.jsonl
status "a file that is not there" 3 quern ablate fit none.jsonl
status "a target that is not there" 2 quern ablate fit --target fourth "$D/mixtures.jsonl"
has "is named" err "--target: there is no 'fourth'"
status "bounds that leave no mixture" 2 quern ablate fit --most web=.2 --most books=.2 --most code=.2 "$D/mixtures.jsonl"
has "is said" err "the weights are to sum to 1, but the upper bounds sum to 0.6"
status "weights asked for that do not sum to 1" 2 quern ablate fit --at web=.2 "$D/mixtures.jsonl"
status "an output without a proposal" 2 quern ablate fit -o x "$D/mixtures.jsonl"

# ---- sizes ----
status "a fit of sizes" 0 quern scale fit -j 1 --draws 20 --stats one.json --flops 1e21 --params 7e9 --tokens 1.4e11 "$D/scale.jsonl"
cp out one.txt
has "exponents as recorded" out "0.34268"
has "the best size of a budget" out "2.786e+09"
has "the largest models from the others" out "fitted without the largest models"
status "sizes with three threads" 0 quern scale fit -j 3 --draws 20 --stats three.json --flops 1e21 --params 7e9 --tokens 1.4e11 "$D/scale.jsonl"
same "the same table of sizes" out one.txt
same "and statistics of sizes" three.json one.json
plan=$(sed -n 's/^  \(quern train --plan .*\)/\1/p' one.txt)
check "proposes a plan" test -n "$plan"
# shellcheck disable=SC2086 # words
status "which train takes" 0 $plan
status "a model smaller than its vocabulary" 0 quern scale fit --draws 20 --params 1e5 --tokens 1e7 "$D/scale.jsonl"
has "is said to be none" out "(with this vocabulary none is nearer)"
what=(scale fit --draws 20)
size() { echo "{\"params\": $1, \"tokens\": $2, \"loss\": $3}"; }
wrong "too few sizes" "$(size 1e6 1e7 3)" "$(size 2e6 1e7 3)" -- "2 points; a fit of 5 numbers needs 6"
wrong "sizes that are all equal" "$(size 1 1 3)" "$(size 1 1 3)" "$(size 1 1 3)" "$(size 1 1 3)" "$(size 1 1 3)" "$(size 1 1 3)" -- \
    "the points have 1 different 'params' and 1 different 'tokens'"
wrong "no tokens" "$(size 1e6 1e7 3)" '{"params": 1e6, "loss": 3}' -- "'bad.jsonl': line 2: no 'tokens'"
wrong "parameters below 0" "$(size -1 1e7 3)" -- "line 1: 'params' is no number above 0"
for n in 1e4 2e4 4e4 7e4 1e5; do
    awk -v n=$n 'BEGIN { printf "{\"params\": %s, \"tokens\": 2e6, \"loss\": %.9f}\n", n, 2.5 + 20 / n ^ .3 }'
done >same.jsonl
status "sizes that all have the same tokens" 0 quern scale fit --draws 20 --stats law.json --params 8e5 --tokens 2e6 same.jsonl
has "their law" out "L = E + A / N^alpha, for 2e+06 tokens, of 5 points"
has "what it says of a larger one" out "2.8389"
check "and no numbers of tokens" test "$(grep -c beta law.json)" = 0
status "other tokens" 2 quern scale fit --draws 20 --params 8e5 --tokens 4e6 same.jsonl
has "are refused" err "--tokens 4e+06: all points have 2e+06, and the law is of these"
status "so is a budget" 2 quern scale fit --draws 20 --flops 1e18 same.jsonl
# Each size once more, with rates that were worse.
awk '{ print; for (k = 1; k <= 2; k++) { x = $0; sub(/}/, "", x); match(x, /[0-9.]+$/)
    printf "%s%.9f}\n", substr(x, 1, RSTART - 1), substr(x, RSTART) + .1 * k * (NR % 3) } }' same.jsonl | sort -R --random-source=/dev/zero >rates.jsonl
status "the lowest of each size" 0 quern scale fit --draws 20 --lowest --params 8e5 --tokens 2e6 rates.jsonl
has "is their law" out "of 5 points"
has "and says the same" out "2.8389"
status "all of them" 0 quern scale fit --draws 20 --params 8e5 --tokens 2e6 rates.jsonl
equal "say something else" "$(grep -c 2.8389 out)" 0
status "half of a size" 2 quern scale fit --params 7e9 "$D/scale.jsonl"
status "no action" 2 quern scale "$D/scale.jsonl"

# ---- the grid of docs/scaling.md, as small as it can be ----
# shellcheck source=tests/train_lib.sh
. "$ROOT/tests/train_lib.sh"
data
for e in bin idx; do cp data.$e corpus_text_document.$e; cp data.$e unseen_text_document.$e; done
awk '/^    mkdir -p runs/ { on = 1 } on && /^$/ { exit } on { print substr($0, 5) }' "$ROOT/docs/scaling.md" |
    sed 's/"1 64" "2 128" "3 192"/"1 32" "1 64" "2 64"/; s/in 500 1000 2000;/in 2 3 4;/; s/ 8e-3; do/; do/; s/length 256/length 16/
        s/--eval-interval/--eval-iters 1 --eval-interval/; s/batch-size 16/batch-size 2/g; s/vocab-size 4096/vocab-size 64/' >grid.sh
status "a grid of runs" 0 bash -e grid.sh
equal "gives points" "$(cat runs/*.json | grep -c '^{"params": [0-9]*, "tokens": [0-9]*, "loss": [0-9.]*}$')" 18
has "and a fit, of the lower of two rates" out "of 9 points"
cat runs/*.jsonl >before
status "a second time" 0 bash -e grid.sh
check "nothing is trained again" bash -c 'cat runs/*.jsonl | cmp - before'
finish
