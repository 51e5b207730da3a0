# shellcheck shell=bash
# Bad steps of several ranks: a token whose embedding is not a number, in one sample, and losses that jump.  All ranks
# skip the same batch, or go back to the same checkpoint, and the training is that of one process.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
bad=62 # is nowhere in the data but in the middle
{ head -c 2000 data.bin; le 2 $bad; tail -c +2003 data.bin; } >odd.bin
cp data.idx odd.idx
model="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 64
    --max-position-embeddings 16 --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear
    --untie-embeddings-and-output-weights -j 1 --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --eval-interval 0
    --eval-iters 0 --train-iters 20 --split 100,0,0"

# A checkpoint of such a model: made, exported, patched, imported.
# shellcheck disable=SC2086
check 'a model' quern-train $model --data-path data --exit-interval 1 --save made
check 'exported' quern-checkpoint export made --output hf
header=$(od -An -tu8 -N8 hf/model.safetensors | tr -d ' ')
at=$(head -c $((header + 8)) hf/model.safetensors | tail -c +9 |
    sed -E 's/.*"model\.embed_tokens\.weight":\{[^}]*"data_offsets":\[([0-9]+),.*/\1/')
le 4 $((0x7fc00000)) | dd of=hf/model.safetensors bs=1 seek=$((8 + header + at + bad * 32 * 4)) conv=notrunc 2>dd.err
check 'imported with a number that is none' quern-checkpoint import hf --save start

from='--load start --data-path odd'
# bad_steps NAME N ARG...: a run that begins $from, saves every third step, and leaves NAME.jsonl and NAME.err.
# shellcheck disable=SC2317
bad_steps() {
    local name=$1 n=$2
    shift 2
    # shellcheck disable=SC2086
    ranks_train "$n" $model $from --save "$name" \
        --save-interval 3 --async-save --log-file "$name.jsonl" "$@" 2>"$name.err"
}
# What was wrong, and what was done.
said() { grep -ohE 'step [0-9]+: .*samples.*|rolled back from .*' "$1" | sed 's/-nan/nan/'; }
steps() { grep -o '"step":[0-9]*' "$1"; }
tensor='--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2'
for action in skip rollback; do
    check "not a number, $action: one process" bad_steps "$action" 1 --nan-action $action
    equal "the batches are named, $action" "$(said "$action.err" | grep -c 'the loss of training samples .* is not finite')" 2
    for n in ${SWEEP:+2} 4; do
        layout=$([ $n = 4 ] && echo "$tensor")
        # shellcheck disable=SC2086
        check "not a number, $action: $n ranks" bad_steps $action$n $n --nan-action $action $layout
        same "the same was said, $n ranks" <(said "$action.err") <(said "$action$n.err")
        same "the same steps, $n ranks" <(steps "$action.jsonl") <(steps "$action$n.jsonl")
        check "the same training, $n ranks" close "$action.jsonl" "$action$n.jsonl" $((2 * $(wc -l <"$action.jsonl")))
        check "every checkpoint is whole, $n ranks" quern-checkpoint verify $action$n
    done
done
has 'it went back' rollback.err 'rolled back from step'

# What is written down is written once, by whichever rank.
# shellcheck disable=SC2086
check 'with curves' bad_steps drawn 4 --nan-action skip $tensor --tensorboard-dir board
equal 'one file of events, all steps' "$(find board -type f | wc -l) $(grep -ao 'grad-norm' board/events.* | wc -l)" '1 20'
same 'one log' <(steps skip.jsonl) <(steps drawn.jsonl)
check 'a page of curves' quern-report --curves skip.jsonl --curves drawn.jsonl -o curves.html
has 'of this run too' curves.html drawn.jsonl

# shellcheck disable=SC2086
status 'not a number, stop: 4 ranks' 3 bad_steps stop 4 $tensor
has 'with the batch' <(said stop.err) 'training samples 64..71 is not finite: nan; stopped before the update'

# An imported model in --save is gone back to as it was begun with: the run is one that begins behind the bad batch.
cp -r start own
few=${model%--eval-interval*}
# shellcheck disable=SC2086
check 'back to an imported model' quern-train $few --data-path odd --split 80,20,0 --train-iters 12 --eval-interval 1 --eval-iters 1 \
    --save own --log-file own.jsonl --nan-action rollback
has 'it went back' own.jsonl '"rolled_back_to":0'
has 'and the optimizer began anew' own/iter_0000012/metadata.json '"updates":12,'

# Losses that jump: back and on behind the batch, until all steps are done.
jump="--lr 0.02 --lr-warmup-iters 3 --save-interval 2 --spike-factor 1.5 --spike-window 4 --spike-action rollback --max-bad-steps 50
    --deterministic"
from='--data-path data'
# shellcheck disable=SC2086
check 'jumps: one process' bad_steps jump 1 $jump
has 'it went back' jump.err 'a spike; rolling back'
# shellcheck disable=SC2086
check 'jumps: 2 ranks' bad_steps jump2 2 $jump
same 'the same was said' <(said jump.err) <(said jump2.err)
same 'the same bits' <(losses jump.jsonl) <(losses jump2.jsonl)
finish
