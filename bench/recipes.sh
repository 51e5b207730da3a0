#!/usr/bin/env bash
# Recipes beside one another: the demo's model, trained on as many tokens of the demo's data by each, from several seeds.
#   DEMO=DIR      ./demo as `make demo` left it; without it nothing is measured, since a run takes some 18 minutes of a core
#   SEEDS, TOKENS the seeds [1 2 3 4 5] and the tokens of a run [8097792]
#   RECIPES       of those below [muon adamw gpt2]
# Logs, with the loss on held-out pages at twenty points, are left in DIR/recipes.
# shellcheck source=bench/lib.sh
. bench/lib.sh
[ -n "${DEMO:-}" ] || { row recipes - '' 'left out: DEMO=DIR, a demo that has run'; exit 0; }
cd "$DEMO" || exit 1
mkdir -p recipes
tokens=${TOKENS:-8097792}
part="--data-path docs_text_document --split 98,2,0"
model="--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --bf16 --attention-dropout 0 --hidden-dropout 0
    --weight-decay 0.1 --adam-beta2 0.95 --log-interval 20 $part"
modern="--position-embedding-type rope --normalization RMSNorm --qk-layernorm --mlp-activation relu2 --disable-bias-linear
    --micro-batch-size 8"
adam="--lr 2e-3 --min-lr 2e-4 --lr-decay-style cosine"
# What pipelines/demo.sh has; the same model by AdamW; GPT-2's model by AdamW.
declare -A recipe=(
    [muon]="$modern --optimizer muon --muon-scale-mode spectral --muon-extra-scale-factor 0.2 --muon-momentum 0.95 --lr 5e-3
        --lr-decay-style linear --min-lr 0"
    [adamw]="$modern $adam"
    [gpt2]="--micro-batch-size 16 $adam"
)

# repeats CHECKPOINT SEED: whether 8 tokens in a row stand twice in 200 that it writes with the demo's settings.
repeats() {
    quern generate -q -j 1 --load "$1" --tokenizer tokenizer.json --prompt 'The server' --max-tokens 200 --print-ids --seed "$2" \
        --temperature 0.7 --top-k 40 --repetition-penalty 1.1 | tr -s ' \n' '\n\n' | grep -E '^[0-9]+$' |
        awk '{ id[NR] = $1 } END { for (i = 1; i + 7 <= NR; i++) { k = ""; for (j = 0; j < 8; j++) k = k " " id[i + j]
            twice += seen[k]++ > 0 } print (twice > 0) }'
}
for name in ${RECIPES:-muon adamw gpt2}; do
    batch=$(sed -E 's/.*--micro-batch-size ([0-9]+).*/\1/' <<<"${recipe[$name]//$'\n'/ }")
    steps=$((tokens / (256 * batch)))
    again=0 samples=0
    : >recipes/losses
    for seed in ${SEEDS:-1 2 3 4 5}; do
        run=recipes/$name.$seed
        rm -rf "$run" "$run.jsonl"
        # shellcheck disable=SC2086
        quern train -q -j 1 $model ${recipe[$name]} --seed "$seed" --train-iters $steps --lr-warmup-iters $((steps / 20 + 1)) \
            --eval-interval $((steps / 20 + 1)) --eval-iters $((64 / batch)) --log-file "$run.jsonl" --save "$run" >/dev/null || exit 1
        # shellcheck disable=SC2086
        quern eval -q -j 1 --load "$run" $part >recipes/eval || exit 1
        sed -nE 's/^loss ([0-9.]+).*/\1/p' recipes/eval >>recipes/losses
        for s in $(seq 10); do again=$((again + $(repeats "$run" "$s"))) samples=$((samples + 1)); done
    done
    row "recipe $name" "$(awk '{ sum += $1; n++ } END { printf "%.4f", sum / n }' recipes/losses)" 'nats a token' \
        "loss on held-out pages after $tokens tokens, mean of $(wc -l <recipes/losses) seeds ($(sort -g recipes/losses | sed -n '1p;$p' |
            paste -sd -)); $again of $samples texts repeat themselves"
done
