#!/usr/bin/env bash
# quern eval --eval-tasks: scores of a recorded model (tests/record/tasks.py; tests/unit/tasks_test.c holds each answer), what is
# written beside them, and what stops it.
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"
cp -r "$ROOT/tests/data/tasks" . && mkdir -p tests/data && ln -s "$PWD/tasks" tests/data/tasks
check 'a model of transformers' quern-checkpoint import -q tasks/model --save m
eval=(quern-eval --load m --tokenizer tasks/model/tokenizer.json)
check 'tasks' "${eval[@]}" --eval-tasks tests/data/tasks/lore.yaml --eval-tasks tests/data/tasks/last.yaml \
    --eval-tasks tests/data/tasks/science.yaml --records r.jsonl --stats s.json
has 'a line a metric' out 'lore  acc 0.111111  error 0.076222  questions 18'
has 'the scores of the harness' out 'science  acc_norm 0.291667  error 0.094776  questions 24'
has 'what is gained over guessing' out 'centred mean -0.154390  tasks 2'
check 'a record a question' test "$(wc -l <r.jsonl)" = 66
has 'with likelihoods, what is right, and metrics' r.jsonl '"gold":['
has 'scores as JSON' s.json '"task":"lore","questions":18,"chance":0.25,"metrics":{"acc":{"value":0.1111111111111111,"error":'
grep '"task":"lore"' r.jsonl >one.lore
marks() { grep -o '"question":[0-9]*\|"acc":.*\|"text":.*' "$1"; } # what stands in records but for the last places
check 'by other micro-batches and threads' "${eval[@]}" --eval-tasks tests/data/tasks/lore.yaml --micro-batch-size 7 -j 3 \
    --records r.jsonl
check 'the same choices' cmp <(marks r.jsonl) <(marks one.lore)
check 'fewer questions and examples' "${eval[@]}" --eval-tasks tests/data/tasks/science.yaml --eval-limit 5 --num-fewshot 0
has 'are fewer' out 'questions 5'
check 'compressed data' zstd -q --rm tasks/bare.jsonl
sed -i 's/bare.jsonl/bare.jsonl.zst/' tasks/bare.yaml
check 'are read' "${eval[@]}" --eval-tasks tasks/bare.yaml --bf16
has 'with the same scores' out 'bare  acc_norm 0.375000'
check 'texts that the model writes' "${eval[@]}" --eval-tasks tests/data/tasks/write_filtered.yaml --records r.jsonl
has 'a metric for each filter' out 'write_filtered  exact_match,groups 0.187500  error 0.100778  questions 16'
has 'and what it makes of each' r.jsonl '"filtered":['
check 'a model with more ids than the tokenizer' quern-train -q --mock-data --vocab-size 20000 --num-layers 1 --hidden-size 16 \
    --num-attention-heads 2 --seq-length 256 --micro-batch-size 1 --global-batch-size 1 --lr 0.001 --eval-iters 0 --train-iters 1 \
    --save wide -j 1
check 'writes texts' quern-eval --load wide --tokenizer tasks/model/tokenizer.json --eval-tasks tests/data/tasks/write_filtered.yaml \
    --records wide.jsonl
check 'in which those are nothing' grep -q '"text":""' wide.jsonl
export OMP_NUM_THREADS=1
for n in 2 3; do
    check "$n ranks" plain $n "${eval[@]}" -j 1 --eval-tasks tests/data/tasks/lore.yaml \
        --eval-tasks tests/data/tasks/write_filtered.yaml --records ranks.jsonl
    equal "$n ranks: one speaks" "$(wc -l <out)" 5
    cat one.lore r.jsonl >one.jsonl
    check "$n ranks: the same answers" cmp <(marks ranks.jsonl) <(marks one.jsonl)
done
status 'no tokenizer' 2 quern-eval --load m --eval-tasks tasks/lore.yaml
has 'is asked for' err '--eval-tasks needs --tokenizer'
status 'a task that is not known' 3 "${eval[@]}" --eval-tasks tasks/model/config.json
has 'is refused by name' err "'tasks/model/config.json': line 2: 'architectures' is not known here"
status 'a broken line of data' 3 "${eval[@]}" --eval-tasks <(sed 's/lore.jsonl/lore.yaml/' tasks/lore.yaml) --records r.jsonl
has 'is named' err "'tests/data/tasks/lore.yaml': line 1"
finish
