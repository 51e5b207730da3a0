# shellcheck shell=bash
# quern dataset trace: of 1,000 random samples each document as Megatron Core draws it; skipped, rolled back and resumed steps.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
recorded=$ROOT/tests/data/train/sample_trace.txt
small="--num-layers 1 --hidden-size 8 --num-attention-heads 1 --seq-length 16 --vocab-size 64 --micro-batch-size 1
    --lr 1e-3 --eval-interval 0 --eval-iters 0 --log-interval 1000 -q -j 1 --device cpu"

# ---- as Megatron Core draws them: tests/record/sample_trace.py ----

# dataset NAME DOCUMENTS: of the lengths that the script made; the ids are 0.
# shellcheck disable=SC2046
dataset() {
    awk -v x="$(printf '%d' "'$1")" -v n="$2" 'BEGIN { for (d = 0; d < n; d++) {
        x = (x * 69069 + 1) % 2147483648; m = d % 11 == 7 ? 0 : int(x / 65536) % 60 + 1
        if (d % 5 == 4 && m > 1) { print int(m / 2), m - int(m / 2) } else if (m) print m; else print "" } }' >"$1.lengths"
    awk '{ print at + 0; at += NF } END { print at }' "$1.lengths" >"$1.documents"
    tr ' ' '\n' <"$1.lengths" | grep . >"$1.sequences"
    {
        printf 'MMIDIDX\0\0'
        le 8 1
        le 1 8
        le 8 $(wc -l <"$1.sequences") $(wc -l <"$1.documents")
        le 4 $(cat "$1.sequences")
        le 8 $(awk '{ print at + 0; at += 2 * $1 }' "$1.sequences")
        le 8 $(cat "$1.documents")
    } >"$1.idx"
    head -c $((2 * $(awk '{ n += $1 } END { print n }' "$1.sequences"))) /dev/zero >"$1.bin"
}
dataset a 90
dataset b 60
dataset c 35
# rows: JSON lines of trace as "STEP ROW DATASET:DOCUMENT:FROM-TO ...", what goes on in a document as one piece.
rows() {
    sed -E 's/.*"step":([0-9]+),"row":([0-9]+).*"dataset":"([^"]*)","document":([0-9]+),"tokens":\[([0-9]+),([0-9]+)\].*/\1 \2 \3 \4 \5 \6/' |
        awk '{ row = $1 " " $2; of = $3 ":" $4
            if (row == was && of == doc && $5 == to) { to = $6 } else {
                if (doc != "") line = line " " doc ":" from "-" to
                if (row != was) { if (was != "") print was line; line = "" }
                was = row; doc = of; from = $5; to = $6 } }
            END { if (was != "") print was line " " doc ":" from "-" to }'
}
grep '^case' $recorded | while read -r _ name flags; do
    # shellcheck disable=SC2086
    quern train $small $flags --save "$name" --log-file "$name.log" >/dev/null 2>"$name.err" || echo "$name: $(head -3 "$name.err")" >>failed
    grep "^$name " $recorded | cut -d' ' -f2- | sort -u >"$name.want"
    cut -d' ' -f1 "$name.want" | sort -nu | while read -r step; do
        quern dataset trace --checkpoint "$name" --step "$step"
    done | rows | sort >"$name.all"
    awk 'NR == FNR { want[$1 " " $2]; next } ($1 " " $2) in want' "$name.want" "$name.all" >"$name.got"
done
equal 'all runs train' "$(cat failed 2>/dev/null)" ''
for name in epochs ramp even parts; do same "as Megatron draws them: $name" "$name.want" "$name.got"; done
equal 'a thousand of them' "$(grep -vc '^case' $recorded)" 1000
check 'one sample' quern dataset trace --checkpoint ramp --step 40 --sample 1
same 'is that of the whole step' out <(quern dataset trace --checkpoint ramp --step 40 | grep '"row":1,')
status 'a step too many' 2 quern dataset trace --checkpoint ramp --step 4000
has 'is said' err "'ramp' says nothing of a step 4000; it has 1 to"
status 'a row too many' 2 quern dataset trace --checkpoint ramp --step 1 --sample 2
status 'pages without ledgers' 2 quern dataset trace --checkpoint ramp --id 1
has 'have no names' err 'has no ledger, so its pages have no names'

# ---- steps that were skipped, rolled back, done again ----

data
# What the log says that a step took: "STEP SAMPLE" a line, of the lineage that the last line ends.
taken() {
    grep -oE '"(step|first_sample|batch|rolled_back_to)":[0-9]+' "$1" | tr -d '"' | paste -sd' ' | sed 's/step:/\n/g; s/[a-z_]*://g' |
        awk 'NF { for (s in first) if (s + 0 > (NF == 4 ? $4 : $1 - 1)) delete first[s]
            if (NF == 3) { first[$1 + 0] = $2; n[$1 + 0] = $3 } }
            END { for (s in first) for (i = 0; i < n[s]; i++) print s, first[s] + i }' | sort -n
}
# traced CHECKPOINT STEP...: the same as trace has it.
traced() {
    local from=$1 log=()
    shift
    [ -z "${with_log-}" ] || log=(--log-file "$with_log")
    for step in "$@"; do quern dataset trace --checkpoint "$from" "${log[@]}" --step "$step"; done |
        sed -E 's/.*"step":([0-9]+).*"sample":([0-9]+).*/\1 \2/' | sort -n | uniq
}
run="$small --data-path data --split 100,0,0 --global-batch-size 4 --seed 3"
# shellcheck disable=SC2086
check 'a whole run' quern train $run --train-iters 30 --save whole --log-file whole.log
same 'trace and log agree' <(taken whole.log) <(traced whole $(seq 30))
# shellcheck disable=SC2086
for end in 10 20 30; do
    quern train $run --train-iters 30 --exit-interval 10 --save parts_of --log-file parts_of.log >/dev/null 2>>err ||
        bad "resumed to $end" "$(cat err)"
done
same 'a resumed run is a whole one' <(quern dataset trace --checkpoint whole --step 25) <(quern dataset trace --checkpoint parts_of --step 25)
history() { grep -o '"history":.*,"files"' "$1"/iter_*0"$2"/metadata.json | sed 's/.*"history"/"history"/'; }
equal 'its history is one entry' "$(history parts_of 30)" "$(history whole 30)"
has 'of steps, samples and data' <(history whole 30) '"samples":120,"seed":3}],"steps":[[1,30,0,4,0,0]]}'

# Killed behind step 20, for which there is a checkpoint of step 10: the steps are done again.
cp -r parts_of killed
rm -r killed/iter_*20 killed/iter_*30
cp parts_of.log killed.log
sed -i '21,$d' killed.log
printf '{"step":21,"loss":4' >>killed.log
sed -i '$d' killed.log
# shellcheck disable=SC2086
check 'gone on with after a kill' quern train $run --train-iters 30 --save killed --log-file killed.log
same 'trace and log agree after a kill' <(taken killed.log) <(traced killed $(seq 30))

# Another batch from step 11 on, and other data from step 21 on.
# shellcheck disable=SC2086
{
    quern train $run --train-iters 30 --exit-interval 10 --save other --log-file other.log
    quern train ${run/size 4/size 6} --train-iters 30 --exit-interval 10 --save other --log-file other.log
    quern train ${run/path data/path 0.5 a 0.5 data} --train-iters 30 --save other --log-file other.log
} >/dev/null 2>&1
equal 'each step as it was done' "$(history other 30 | grep -o '"steps".*')" '"steps":[[1,10,0,4,0,0],[11,10,40,6,1,0],[21,10,100,4,2,0]]},"files"'
same 'trace and log agree after changes' <(taken other.log) <(traced other $(seq 30))
has 'of the data that a step had' <(quern dataset trace --checkpoint other --step 30) '"dataset":"a"'

# Losses that jump: skipped, and rolled back.
jump="--lr 0.05 --lr-warmup-iters 3 --save-interval 2 --spike-factor 1.3 --spike-window 4 --max-bad-steps 50 --train-iters 40"
for action in skip rollback; do
    # shellcheck disable=SC2086
    check "jumps: $action" quern train $run $jump --spike-action $action --save $action --log-file $action.log
    same "trace and log agree: $action" <(taken $action.log) <(traced $action $(seq 40))
done
has 'some were skipped' skip.log '"skipped":true'
step=$(grep '"skipped":true' skip.log | head -1 | grep -o '^{"step":[0-9]*' | cut -d: -f2)
has 'which is said' <(quern dataset trace --checkpoint skip --step "$step") '"skipped":true'
has 'some were undone' rollback.log '"rolled_back_to":'
lacks 'what was undone is in no step' <(traced rollback $(seq 40) | cut -d' ' -f2 | tr '\n' ' ') \
    " $(grep rolled_back rollback.log | head -1 | grep -o '"first_sample":[0-9]*' | cut -d: -f2) "

# Whole documents: an epoch sees each once.
# shellcheck disable=SC2086
check 'whole documents' quern train ${small/--log-interval 1000/} --data-path data --split 100,0,0 --sft --packing-strategy none \
    --global-batch-size 4 --train-iters 10 --save sft
equal 'each once in an epoch' "$(for s in $(seq 10); do quern dataset trace --checkpoint sft --step "$s"; done |
    grep -o '"document":.*' | sort -t: -k2 -n | tr '\n' ' ')" "$(for d in $(seq 0 39); do printf '"document":%d,"tokens":[0,16]} ' "$d"; done)"
# shellcheck disable=SC2086
check 'wrapped' quern train $small --data-path data a --split 100,0,0 --sft --packing-strategy wrapped --global-batch-size 4 \
    --train-iters 20 --save wrapped
quern dataset trace --checkpoint wrapped --step 7 >wrapped.out
has 'of the second dataset too' <(for s in $(seq 20); do quern dataset trace --checkpoint wrapped --step "$s"; done) '"dataset":"a"'
lacks 'no sample is longer' wrapped.out '"at":[16'

# Steps after the newest checkpoint, by the log.
cp -r rollback early
rm -r early/iter_*40
with_log=rollback.log
same 'the log speaks of later steps' <(taken rollback.log) <(traced early $(seq 40))
unset with_log
status 'which the checkpoint does not know' 2 quern dataset trace --checkpoint early --step 40
status 'the log of another run' 3 quern dataset trace --checkpoint other --log-file whole.log --step 30
has 'is refused' err 'is not the log of the checkpoint'
finish
