#!/usr/bin/env bash
# quern train --eval-tasks: scores with each evaluation, the same for every layout and as quern eval gives of the checkpoint.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
cp -r "$ROOT/tests/data/tasks" . && mkdir -p tests/data && ln -s "$PWD/tasks" tests/data/tasks
check 'data' quern-tokenize -q --tokenizer tasks/model/tokenizer.json --json-keys page --append-eod --output-prefix pages \
    tasks/pages.jsonl
tasks='--tokenizer tasks/model/tokenizer.json --eval-tasks tasks/science.yaml --eval-tasks tasks/last.yaml
    --eval-tasks tasks/lore.yaml'
flags="--data-path pages_page_document --split 1,0,0 --vocab-size 512 --num-layers 2 --hidden-size 32 --num-attention-heads 4
    --seq-length 128 --micro-batch-size 2 --global-batch-size 8 --train-iters 4 --lr 1e-2 --eval-interval 2 --eval-iters 0
    --device cpu -j 1 $tasks"
# scores FILE: what a log has of scores, to four places.
scores() {
    grep -o '"scores":{[^}]*}' "$1" | tr '{,' '\n\n' | sed -nE 's/"([^"]+)":(-?[0-9.e+-]+).*/\1 \2/p' |
        awk '{ printf "%s %s %.4g\n", $1, $2, $3 }'
}
check 'scores with each evaluation' quern-train $flags --save m --log-file log --tensorboard-dir board
has 'are printed' out '  lore acc '
equal 'and logged' "$(scores log | wc -l)" 10
has 'and drawn' board/* 'science acc_norm'
scores log >alone
check 'a page of curves' quern-report --curves log -o page.html
has 'draws them' page.html '<h3>science acc_norm</h3>'
check 'of the checkpoint' quern-eval --load m $tasks
equal 'are the same' "$(awk '/^(science|last|lore) / { printf "%s %s %.4g\n", $1, $2, $3 }' out)" "$(tail -n 5 alone)"
# ranks N FLAG...: N ranks score as one.
ranks() {
    rm -f log
    check "ranks: ${*:2}" plain "$1" quern-train $flags "${@:2}" --log-file log
    equal "ranks: ${*:2}: the same scores" "$(scores log)" "$(cat alone)"
}
ranks 2 --micro-batch-size 1
ranks 2 --tensor-model-parallel-size 2
ranks 2 --pipeline-model-parallel-size 2
ranks 2 --context-parallel-size 2
ranks 4 --tensor-model-parallel-size 2 --data-parallel-sharding-strategy optim_grads_params
rm -f log
check 'documents told apart' quern-train $flags --reset-attention-mask --reset-position-ids --eod-id 0 --log-file log
equal 'pack what is asked' "$(scores log | wc -l)" 10
status "no tokenizer" 2 quern-train ${flags/--tokenizer tasks\/model\/tokenizer.json/}
has "is asked for" err "--eval-tasks needs --tokenizer"
status 'a task that has texts written' 2 quern-train $flags --eval-tasks tasks/write.yaml
has 'is for quern eval' err 'texts are written by quern eval alone'
finish
