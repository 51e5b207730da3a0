# shellcheck shell=bash
# More tokens come to the experts of one rank of four than its memory holds: it is named, all end, what was committed is whole,
# and with a capacity the run goes on.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
if nm "$(command -v quern-train)" | grep -q ' __[at]san_init$'; then
    skip 'room on one rank' 'a sanitizer takes more than it'
    finish
fi
# A row takes 400 kB in one wide expert; the rate is so high that soon all tokens choose the same one.
flags="--mock-data -j 1 --device cpu --num-layers 1 --hidden-size 16 --num-attention-heads 1 --seq-length 32 --vocab-size 2
    --position-embedding-type none --untie-embeddings-and-output-weights --num-experts 2 --moe-router-topk 1
    --moe-router-pre-softmax --moe-ffn-hidden-size 32768 --micro-batch-size 4 --global-batch-size 16 --train-iters 8 --lr 1
    --seed 3 --eval-iters 0 --distributed-backend tcp --expert-model-parallel-size 2 --save store --save-interval 1 --async-save"

# one_small ARG...: four ranks; the third one has room for the rows that are planned, and some more.
# shellcheck disable=SC2016,SC2317
one_small() { plain 4 bash -c '[ $RANK = 2 ] && ulimit -d 155000; exec "$@"' x quern-train $flags "$@"; }
status 'no room on one rank' 3 one_small --log-file log.jsonl
steps=$(wc -l <log.jsonl)
has 'which one, when and where' err "quern-train, rank 2: step $((steps + 1)): layer 0: "
has 'what came' err 'of them to expert 0 (--moe-expert-capacity-factor bounds them)'
last=$(cat store/latest_checkpointed_iteration.txt)
if [ "$last" -ge 1 ] && [ "$last" -le "$steps" ]; then ok 'steps were saved'; else bad 'steps were saved' "$last of $steps"; fi
check 'whole ones' quern-checkpoint verify store
check 'it goes on with a capacity' one_small --moe-expert-capacity-factor 1 --log-file log.jsonl
has 'from the last one' out "going on after step $last"
equal 'to the end' "$(cat store/latest_checkpointed_iteration.txt)" 8
equal 'nothing is left over' "$(find store -name '.iter*')" ''
finish
