# shellcheck shell=bash
# nanoGPT's recipe for characters, small: 300 steps on the licence's bytes have the losses that PyTorch has from the same weights on
# the same batches (tests/record/nanogpt_parity.py).
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"

# bytes NAME FROM N: N bytes of the licence from FROM on, one document, as a dataset.
bytes() {
    tail -c +$(($2 + 1)) "$ROOT/LICENSE" | head -c "$3" >"$1.bin"
    {
        printf 'MMIDIDX\0\0'
        le 8 1
        le 1 1
        le 8 1 2
        le 4 "$3"
        le 8 0 0 1
    } >"$1.idx"
}
bytes train 0 10222
bytes valid 10222 1136
# Norms' biases stay 0: nanoGPT's bias=False.
check 'trains' quern-train -j 1 --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --vocab-size 128 \
    --attention-dropout 0 --hidden-dropout 0 \
    --mlp-activation gelu-exact --disable-bias-linear --freeze '*layernorm.bias' --micro-batch-size 8 --train-iters 300 --lr 1e-3 \
    --min-lr 1e-4 --lr-warmup-iters 30 --lr-decay-style cosine --adam-beta2 0.99 --adam-eps 1e-8 --weight-decay 0.1 --clip-grad 1 \
    --train-data-path train --valid-data-path valid --eval-iters 4 --eval-interval 300 --log-file log.jsonl
sed -nE 's/.*"step":([0-9]*0),"loss":([^,]*).*/\1\t\2/p' log.jsonl >ours
grep '"loss"' log.jsonl | sed -nE 's/.*"valid_loss":([^,}]*).*/valid\t\1/p' >>ours
# shellcheck disable=SC2016
check 'the losses are PyTorch'"'"'s' awk 'NR == FNR { want[$1] = $2; n++; next }
    $1 in want { d = $2 - want[$1]; if (!(d < 2e-4 && d > -2e-4)) exit 1; n-- } END { exit n != 0 }' \
    "$ROOT/tests/data/train/nanogpt.tsv" ours
finish
