#!/usr/bin/env bash
# What `quern scale fit` predicts from small models of one nine times as large, each size with the rate that suits it.  Takes
# a quarter of an hour of two idle cores.
#   WIDTHS, MTOKENS: of the small models, and millions of tokens; LARGE: the width and tokens of the large one, in millions;
#   RATES: tried for each small one; the large one has the best of the largest small one, and half of it; PRECISION: bf16 or fp32;
#   VOCAB, BASE, HEAD: ids, the width that muP is based on, the width of a head;
#   MLP: what the MLP's width, 8/3 of the model's, is rounded to; FLAGS: more of quern-train's.
. bench/lib.sh
WIDTHS=${WIDTHS:-16 24 32 40 48} MTOKENS=${MTOKENS:-2} LARGE=${LARGE:-160 2} RATES=${RATES:-1e-2 2e-2 4e-2} PRECISION=${PRECISION:-bf16}
VOCAB=${VOCAB:-512} BASE=${BASE:-32} HEAD=${HEAD:-8} MLP=${MLP:-8} FLAGS=${FLAGS---qk-layernorm}
books=$SHARED/data/text/prose/books-dev.jsonl.zst
if [ ! -r "$books" ]; then
    row scale-fit - - "left out: no $books"
    exit 0
fi
# Chapters of books; of every tenth author, by a hash, those that models are evaluated on.
zstd -dcq "$books" | python3 -c '
import json, random, sys, zlib
chance, out = random.Random(20261128), {True: [], False: []}
for line in sys.stdin:
    d = json.loads(line)
    out[zlib.crc32(d["id"].split("/")[1].encode()) % 10 == 0].append(line)
for apart, name, most in (False, "train", 40e6), (True, "heldout", 7e5):
    chance.shuffle(out[apart])
    size = 0
    with open(f"{sys.argv[1]}/{name}.jsonl", "w") as f:
        for line in out[apart]:
            if size < most:
                f.write(line)
                size += len(line)
' "$T" || exit 1
quern-tokenizer train -q --vocab-size "$VOCAB" -o "$T/tokenizer.json" "$T/train.jsonl" || exit 1
for s in train heldout; do quern-tokenize -q --tokenizer "$T/tokenizer.json" --append-eod --output-prefix "$T/$s" "$T/$s.jsonl" || exit 1; done

# run WIDTH MTOKENS RATE: trains a model of two layers and prints a point.
run() {
    local iters
    iters=$(awk -v t="$2" 'BEGIN { printf "%d", t * 1e6 / 2048 }')
    local name=$T/$1-$2-$3 n mlp=$(((16 * $1 + 3 * MLP) / (6 * MLP) * MLP))
    [ -e "$name.json" ] || {
        # shellcheck disable=SC2046
        quern-train -q --num-layers 2 --hidden-size "$1" --num-attention-heads $(($1 / HEAD)) --ffn-hidden-size $mlp --position-embedding-type rope \
            --normalization RMSNorm --swiglu --disable-bias-linear --seq-length 256 --vocab-size "$VOCAB" --attention-dropout 0 \
            --hidden-dropout 0 --micro-batch-size 8 --global-batch-size 8 --train-iters $iters --use-mup \
            --mup-base-hidden-size "$BASE" --mup-base-head-dim "$HEAD" --optimizer muon --muon-scale-mode unit_rms_norm --muon-extra-scale-factor 1.6 \
            --lr "$3" --lr-warmup-fraction .05 --lr-decay-style cosine \
            --train-data-path "$T/train_text_document" --valid-data-path "$T/heldout_text_document" --eval-interval $iters --eval-iters 100 \
            --save "$name" -j "${4:-1}" --log-file "$name.jsonl" $([ "$PRECISION" = fp32 ] || echo --bf16) $FLAGS || return
        n=$(quern-checkpoint info "$name" | sed -n 's/^\([0-9]*\) parameters;.*/\1/p')
        sed -n 's/.*"valid_loss":\([0-9.]*\).*/{"params": '"$n"', "tokens": '$((iters * 2048))', "loss": \1}/p' "$name.jsonl" | tail -n 1 >"$name.json"
        rm -rf "$name"
    }
    cat "$name.json"
}
loss() { sed 's/.*"loss": \([0-9.]*\)}/\1/' "$1"; }
# best WIDTH MTOKENS: of its runs that with the lowest loss.
best() { for f in "$T/$1-$2-"*.json; do printf '%s %s\n' "$(loss "$f")" "$f"; done | sort -g | sed -n '1s/^[^ ]* //p'; }

SECONDS=0
# As many at once as there are processors, the longest first.
for t in $(tr ' ' '\n' <<<"$MTOKENS" | sort -rg); do
    for w in $(tr ' ' '\n' <<<"$WIDTHS" | sort -rn); do
        for rate in $RATES; do
            while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
            run "$w" "$t" "$rate" >/dev/null &
        done
    done
done
wait
for f in "$T"/*.json; do
    [[ $f == */[0-9]* ]] || continue
    row "scale-fit-$(basename "$f" .json)" "$(loss "$f")" nats 'a token; width, millions of tokens, rate'
    cat "$f" >>"$T/points.jsonl"
done
read -r width mtokens <<<"$LARGE"
largest=$(tr ' ' '\n' <<<"$WIDTHS" | sort -n | tail -n 1) most=$(tr ' ' '\n' <<<"$MTOKENS" | sort -g | tail -n 1)
lr=$(basename "$(best "$largest" "$most")" .json)
lr=${lr#"$largest-$most-"}
for rate in "$lr" "$(awk -v r="$lr" 'BEGIN { print r / 2 }')"; do
    run "$width" "$mtokens" "$rate" "$(nproc)" >/dev/null || exit 1
    row "scale-fit-$width-$mtokens-$rate" "$(loss "$T/$width-$mtokens-$rate.json")" nats 'a token'
done
large=$(best "$width" "$mtokens")
n=$(sed -n 's/.*"params": \([0-9]*\).*/\1/p' "$large") d=$(sed -n 's/.*"tokens": \([0-9]*\).*/\1/p' "$large")
quern scale fit -q --lowest --params "$n" --tokens "$d" "$T/points.jsonl" || exit 1
cat "$T/points.jsonl" "$large"
row scale-fit "$SECONDS" s "of $(nproc) processors, all of it"
[ -z "${KEEP:-}" ] || cat "$T/points.jsonl" "$large" >"$KEEP/scale.jsonl"
