# shellcheck shell=bash
# For the tests of FP8, after tests/train_lib.sh: models, training of them, and what is held against what.
# shellcheck disable=SC2086,SC2034
run="--data-path data --seq-length 16 --vocab-size 64 --micro-batch-size 2 --global-batch-size 8 --lr 0.003 --eval-iters 1 --bf16
    --eval-interval 4 --split 80,10,10 -j 1 --train-iters 12 --num-layers 4"
# shellcheck disable=SC2034
gpt="--hidden-size 32 --num-attention-heads 2"
# shellcheck disable=SC2034
llama="--hidden-size 32 --num-attention-heads 4 --ffn-hidden-size 64 --position-embedding-type rope --normalization RMSNorm
    --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0"
# shellcheck disable=SC2034
moe="$gpt --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 64 --moe-aux-loss-coeff 0.01"
# shellcheck disable=SC2034
mixtral="$llama --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 32 --moe-layer-freq 2"
delayed="--fp8-format hybrid --fp8-amax-history-len 3 --fp8-amax-compute-algo max"

# train NAME ARG...: to NAME.jsonl
train() {
    local name=$1
    shift
    rm -f "$name.jsonl"
    status "$name" 0 quern-train $run "$@" --device cpu --log-file "$name.jsonl"
}
# beside NAME A B TOL: losses of training of two logs, step by step; they are not all the same.
beside() {
    if paste <(grep -o '"loss":[^,]*' "$2.jsonl" | cut -d: -f2) <(grep -o '"loss":[^,]*' "$3.jsonl" | cut -d: -f2) |
        awk -v tol="$4" '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= tol * $1)) exit 1; if (d > 0) n++ } END { exit NR < 12 || n < 6 }'
    then ok "$1"; else bad "$1"; fi
}
# within NAME A B N: the first N losses are within 2 %
within() {
    equal "$1" "$(paste <(grep -o '"loss":[^,]*' "$2.jsonl" | cut -d: -f2) <(grep -o '"loss":[^,]*' "$3.jsonl" | cut -d: -f2) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF == 2 && d <= 0.02 * $1) n++ } END { print n + 0 }')" "$4"
}
same_losses() { same "$1" <(losses "$2.jsonl") <(losses "$3.jsonl"); }
# half FROM TO: the first of its two checkpoints alone.
half() {
    rm -rf "$2" && cp -r "$1" "$2" && rm -rf "$2/iter_0000012" && echo 6 >"$2/latest_checkpointed_iteration.txt"
}
