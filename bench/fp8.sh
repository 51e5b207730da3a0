#!/usr/bin/env bash
# Training in FP8, and with bf16 weights alone, beside bf16: the same small models on the same text, seeds and order, and adapters of those; losses at
# the end (mean of the last 20 steps) and the largest difference of means over 20 steps.  SHARED=data folder, STEPS=200, THREADS=2.
set -u
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
text=${SHARED:-}/data/text/prose
[ -r "$text/docs-dev.jsonl.zst" ] || { printf 'fp8\t-\t-\tleft out: no %s\n' "$text"; exit 0; }
steps=${STEPS:-200}
threads=${THREADS:-2}
export OMP_WAIT_POLICY=passive

zstd -dcq "$text/docs-dev.jsonl.zst" | head -c 2000000 | sed '$d' >"$T/docs.jsonl"
quern-tokenizer train --vocab-size 1024 -o "$T/tokenizer.json" "$T/docs.jsonl" >"$T/out" 2>&1 || { cat "$T/out" >&2; exit 1; }
quern-tokenize -q --tokenizer "$T/tokenizer.json" --append-eod --output-prefix "$T/docs" "$T/docs.jsonl" || exit 1

run="--data-path $T/docs_text_document --vocab-size 1024 --seq-length 128 --micro-batch-size 4 --global-batch-size 8 --lr 1e-3
    --min-lr 1e-4 --lr-decay-style cosine --lr-warmup-iters 20 --train-iters $steps --eval-iters 0 --bf16 -j $threads -q
    --num-layers 4 --hidden-size 128 --num-attention-heads 4 --adam-beta2 0.95 --weight-decay 0.1"
gpt="--attention-dropout 0 --hidden-dropout 0"
# shellcheck disable=SC2034
llama="$gpt --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --ffn-hidden-size 352
    --untie-embeddings-and-output-weights"
# shellcheck disable=SC2034
moe="$gpt --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --moe-aux-loss-coeff 0.01"
# one NAME BESIDE FLAG...: trains $model with the flags as NAME, and says how far its losses are from those of BESIDE.
one() {
    local name=$model-$1 beside=$model-$2
    shift 2
    # shellcheck disable=SC2086
    quern-train $run ${!model} "$@" --log-file "$T/$name.jsonl" >"$T/out" 2>"$T/err" || { cat "$T/err" >&2; exit 1; }
    grep -o '"loss":[^,]*' "$T/$name.jsonl" | cut -d: -f2 >"$T/$name"
    paste "$T/$beside" "$T/$name" | awk -v n="$name" -v of="${beside#*-}" '{ a += $1; b += $2 }
        NR % 20 == 0 { d = b / a - 1; if (d < 0) d = -d; if (d > most) most = d; x = a / 20; y = b / 20; a = b = 0 }
        END { printf "%s\t%.4f\tloss\t%s %.4f: %+.2f %%; largest difference of 20 steps %.2f %%\n", n, y, of, x, 100 * (y / x - 1), 100 * most }'
}
delayed="--fp8-format hybrid --fp8-amax-history-len 16 --fp8-amax-compute-algo max"
for model in ${MODELS:-gpt llama moe}; do
    lora="--load $T/$model --lora-rank 8 --lora-target *linear_*"
    # shellcheck disable=SC2086
    while read -r name beside flags; do
        [[ $model != llama || $name != *blockwise* ]] || continue # its MLP is no multiple of 128 wide
        one "$name" "$beside" $flags
    done <<END
bf16 bf16 --save $T/$model
bf16-seed bf16 --seed 77
no-fp32-weights bf16 --main-params-dtype bf16
hybrid-delayed bf16 $delayed
hybrid-tensorwise bf16 --fp8-format hybrid --fp8-recipe tensorwise
e4m3-tensorwise bf16 --fp8-format e4m3 --fp8-recipe tensorwise
e4m3-blockwise bf16 --fp8-format e4m3 --fp8-recipe blockwise
e4m3-blockwise-fp32 bf16 --fp8-format e4m3 --fp8-recipe blockwise --fp8-block-scaling-fp32-scales
hybrid-delayed-ends bf16 $delayed --first-last-layers-bf16
lora lora $lora
lora-seed lora $lora --seed 77
lora-hybrid-delayed lora $lora $delayed
lora-hybrid-tensorwise lora $lora --fp8-format hybrid --fp8-recipe tensorwise
lora-e4m3-tensorwise lora $lora --fp8-format e4m3 --fp8-recipe tensorwise
END
done
