#!/usr/bin/env bash
# quern train and eval at a shell: flags, data that is not as it should be, resume, signals, a
# full disk, damaged checkpoints.
# shellcheck source=tests/lib.sh disable=SC2046
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive

. "$ROOT/tests/train_lib.sh"
data

tiny="--num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 64 --micro-batch-size 4
    --lr 0.01 --eval-iters 2 --eval-interval 2 --split 80,10,10 -j 1"
# shellcheck disable=SC2086
train() { quern-train $tiny "$@"; }
losses() { sed -E 's/,"tokens_per_s.*//' "$1"; }

# ---- runs, and what it prints ----
status "a run" 0 train --data-path data --train-iters 6 --log-interval 2 --log-file log.jsonl --save a --save-interval 3
equal "settings are not printed" "$(grep -c lr-decay-style out)" 0
has "memory by kind is printed" out "memory: weights"
has "parameters are printed" out "parameters, vocabulary padded to 128"
has "a step is printed" out "step 6/6  loss"
has "the losses at the end are printed" out "test loss"
equal "a line a step, and one for the evaluation at the end" "$(wc -l <log.jsonl) $(grep -c '^{"step":' log.jsonl)" "7 7"
for k in loss grad_norm lr tokens_per_s flops_per_s mfu; do
    equal "the log has $k" "$(grep -c "\"$k\":" log.jsonl)" 6
done
equal "the validation loss is in the log" "$(grep -c '"valid_loss":' log.jsonl)" 4
equal "that at the end with the test's, as printed" \
    "$(tail -n 1 log.jsonl | sed -nE 's/^\{"step":6,"valid_loss":([0-9.]+),"test_loss":([0-9.]+)\}$/\1 \2/p' | awk '{ printf "%.4f %.4f", $1, $2 }')" \
    "$(sed -nE 's/^(valid|test) loss ([0-9.]+),.*/\2/p' out | paste -sd' ')"
equal "the last checkpoint is named" "$(cat a/latest_checkpointed_iteration.txt)" 6
status "nothing is left to do" 0 train --data-path data --train-iters 6 --save a
status "verbose" 0 train --mock-data --train-iters 1 --verbose
has "settings are printed with --verbose" out "lr-decay-style"
has "mock data" <(train --mock-data --train-iters 1) "step 1/1"

# ---- flags ----
status "an operand" 2 train --mock-data --train-iters 6 data
status "a blend, as Megatron takes it" 0 train --train-iters 2 --log-file blend.jsonl --data-path 0.3 data 0.7 data
status "a blend, a word at a time" 0 train --train-iters 2 --log-file blend1.jsonl --data-path 0.3 --data-path data \
    --data-path 0.7 --data-path data
equal "the same blend" "$(losses blend.jsonl)" "$(losses blend1.jsonl)"
status "half of a blend is prefixes" 3 train --train-iters 2 --data-path 0.3 data 0.7
status "no data" 2 train --train-iters 6
has "no data: the flag" err "--data-path"
status "no steps" 2 train --data-path data
status "an unknown flag" 2 train --frobnicate
status "heads that do not divide" 2 train --mock-data --train-iters 1 --num-attention-heads 5
status "more shares than ranks" 2 train --mock-data --train-iters 1 --tensor-model-parallel-size 2
has "more shares than ranks: which" err "1 ranks are no multiple of 2 (tensor)"
has "more shares than ranks: what starts them" err "mpirun -n 2"
status "cuda is refused" 3 train --mock-data --train-iters 1 --device cuda
status "more memory than there is" 3 train --mock-data --train-iters 1 --hidden-size 262144 --num-attention-heads 2048 --num-layers 1000
has "more memory: how much" err "GiB of memory"

# ---- settings from a file ----
printf '%s\n' 'train-iters: 2' 'lr: 0.5' 'data-path: [0.3, data, 0.7, data]' 'num-layers: 1' 'bf16: false' >run.yaml
status "settings from a file" 0 train --yaml-cfg run.yaml --log-file yaml.jsonl
equal "the same run" "$(losses yaml.jsonl)" "$(losses blend.jsonl)"
status "a flag goes before the file" 0 train --yaml-cfg run.yaml --data-path data --train-iters 1 --log-file flag.jsonl
equal "a flag goes before the file: steps" "$(grep -c '"loss":' flag.jsonl)" 1
echo 'hidden: 3' >>run.yaml
status "an unknown setting" 3 train --yaml-cfg run.yaml
has "an unknown setting: where" err "'run.yaml' line 6: train has no setting 'hidden'"
echo 'hidden-size: -3' >run.yaml
status "a setting out of range, but a flag gives another" 0 train --yaml-cfg run.yaml --mock-data --train-iters 1
echo 'train-iters: [1, 2]' >run.yaml
status "a list for one value" 3 train --yaml-cfg run.yaml --mock-data
has "a list for one value: where" err "'run.yaml' line 1: train-iters takes one value"
status "no such file" 3 train --yaml-cfg nothing.yaml --mock-data

# ---- data ----
status "data that is not there" 3 train --data-path nothing --train-iters 1
has "data that is not there: its name" err "nothing"
cp data.bin lie.bin
head -c 500 data.idx >lie.idx
status "an .idx cut short" 3 train --data-path lie --train-iters 1
has "an .idx cut short: its name" err "lie.idx"
{ head -c 18 data.idx; le 8 400; tail -c +27 data.idx; } >lie.idx
status "an .idx with another count" 3 train --data-path lie --train-iters 1
cp data.idx lie.idx
head -c 1000 data.bin >lie.bin
status "a .bin cut short" 3 train --data-path lie --train-iters 20
has "a .bin cut short: its name" err "lie"
status "a vocabulary too small" 3 train --data-path data --train-iters 1 --vocab-size 30
has "a vocabulary too small: the sample" err "train sample"

# ---- resume ----
rm -rf b
status "half a run" 0 train --data-path data --train-iters 6 --exit-interval 3 --log-file b.jsonl --save b
equal "it stopped in the middle" "$(cat b/latest_checkpointed_iteration.txt)" 3
status "the other half" 0 train --data-path data --train-iters 6 --log-file b.jsonl --save b
has "it says where it goes on" out "going on after step 3"
same "the same losses as in one run" <(losses log.jsonl) <(losses b.jsonl)
same "the same weights" a/iter_0000006/model.safetensors b/iter_0000006/model.safetensors
same "the same moments" a/iter_0000006/optimizer.safetensors b/iter_0000006/optimizer.safetensors
status "other settings are named" 0 train --data-path data --train-iters 6 --save b --clip-grad 2
has "other settings: which" err "--clip-grad is 2 now"
status "another model is refused" 2 train --data-path data --train-iters 6 --save b --num-layers 3
has "another model: the flag" err "--num-layers"

# ---- signals ----
for sig in TERM INT; do
    rm -rf s
    # shellcheck disable=SC2086
    quern-train $tiny --data-path data --train-iters 1000000 --eval-interval 0 --log-file s.jsonl --save s \
        >out 2>err </dev/null &
    pid=$!
    for _ in $(seq 200); do [ -s s.jsonl ] && break; sleep 0.05; done
    kill -$sig $pid
    wait $pid
    equal "SIG$sig: exit status" $? 0
    n=$(cat s/latest_checkpointed_iteration.txt)
    equal "SIG$sig: the checkpoint is of the last step" "$(wc -l <s.jsonl)" "$n"
    has "SIG$sig: it says so" err "stopped by a signal after step $n"
    rm -f s.jsonl
done
status "it goes on after a signal" 0 train --data-path data --train-iters 1000000 --eval-interval 0 --save s \
    --exit-interval 1

# Who reads the messages has stopped to, and there is room for 4 KB of them.
rm -rf s
mkfifo messages
exec 3<>messages
head -c 61440 /dev/zero >messages
# shellcheck disable=SC2086
quern-train $tiny --data-path data --train-iters 1000000 --eval-interval 0 --log-interval 1 --log-file s.jsonl --save s \
    >messages 2>err </dev/null 3>&- &
pid=$!
steps=-1
for _ in $(seq 40); do
    before=$steps
    sleep .5
    steps=$(wc -l <s.jsonl)
    [ "$steps" = 0 ] || [ "$steps" != "$before" ] || break
done
kill -TERM $pid
wait $pid
equal "without a reader: exit status" $? 0
exec 3>&-
equal "without a reader: the checkpoint is of the last step" "$(wc -l <s.jsonl)" "$(cat s/latest_checkpointed_iteration.txt)"
rm -f s.jsonl

# The second signal comes within the save that the first one asks for.
in_save() { # starts a run, and stops it there as $pid
    for _ in 1 2 3 4 5; do
        rm -rf s
        # shellcheck disable=SC2086
        quern-train $tiny --vocab-size 40000 --hidden-size 64 --data-path data --train-iters 1000000 --eval-interval 0 --save s \
            --log-file s.jsonl >out 2>err </dev/null &
        pid=$!
        for _ in $(seq 200); do [ -s s.jsonl ] && break; sleep 0.05; done
        kill -TERM $pid
        until compgen -G 's/.iter_*.tmp/.*.part' >/dev/null || ! kill -0 $pid 2>/dev/null; do :; done
        kill -STOP $pid
        rm s.jsonl
        compgen -G 's/.iter_*.tmp/.*.part' >/dev/null && return 0
        kill -CONT $pid
        wait $pid
    done
    bad "a save can be stopped in the midst"
}
in_save
kill -TERM $pid
kill -CONT $pid
wait $pid
equal "a second signal ends it" $? 143
equal "and takes the unfinished file" "$(compgen -G 's/.iter_*.tmp/.*.part')" ''
absent "no checkpoint is there" s/latest_checkpointed_iteration.txt
mkdir -p a/.iter_0000009.0123456789abcdef.tmp
echo x >a/.iter_0000009.0123456789abcdef.tmp/model.safetensors
status "a run that has nothing to do" 0 train --data-path data --train-iters 6 --save a
absent "takes what a killed save left" a/.iter_0000009.0123456789abcdef.tmp

# ---- damaged checkpoints ----
truncate -s -1 b/iter_0000006/optimizer.safetensors
status "the one before a damaged one is used" 0 train --data-path data --train-iters 6 --save b --log-file c.jsonl
has "the damage is named" err "iter_0000006/optimizer.safetensors"
has "the one before is loaded" err "loaded b/iter_0000003"
same "and gives the same losses again" <(losses log.jsonl | tail -n 4) <(losses c.jsonl)
same "and mends the damaged one" a/iter_0000006/optimizer.safetensors b/iter_0000006/optimizer.safetensors
printf x | dd of=b/iter_0000006/model.safetensors bs=1 seek=9000 conv=notrunc 2>/dev/null
status "a damaged one asked for by step" 3 quern-eval --load b --ckpt-step 6
has "a damaged one asked for: the file" err "model.safetensors: damaged"
truncate -s 10 b/iter_0000003/metadata.json
status "none is whole" 3 quern-eval --load b
has "none is whole: it says so" err "none of its 2 checkpoints is whole"
status "no such folder" 3 quern-eval --load nowhere

# ---- a full disk: every file is limited to 40 KiB, a checkpoint needs more ----
rm -rf f
train --data-path data --train-iters 4 --exit-interval 2 --save f >out 2>err
(ulimit -f 40 && train --data-path data --train-iters 4 --save f --save-interval 1 --log-file f.jsonl) >out 2>err
equal "full disk: exit status" $? 3
equal "full disk: training went on" "$(wc -l <f.jsonl)" 2
has "full disk: the failure on the way is told" err "no checkpoint of step 3: cannot write"
has "full disk: so is the last" err "iter_0000004"
equal "full disk: nothing half-written" "$(ls -A f | sort | tr '\n' ' ')" "iter_0000002 latest_checkpointed_iteration.txt "
status "full disk: the one before stands" 0 quern-eval --load f

# ---- eval ----
status "eval" 0 quern-eval --load a
has "eval prints loss and perplexity" out "perplexity"
status "eval on everything" 0 quern-eval --load a --part whole --data-path data
# 2000 tokens: 124 samples of 16, one epoch
has "eval on everything counts its tokens" out "tokens 1984"
status "eval on some" 0 quern-eval --load a --part train --eval-iters 3 --micro-batch-size 2 --bf16
has "eval on some counts its tokens" out "tokens 96"
status "eval without a checkpoint" 2 quern-eval

# Of any data it gives the losses of the run's end: the test's is of its first samples, as many as the run took.
test_loss() { # NAME, settings of the data...
    local name=$1
    shift
    rm -rf own
    status "$name: a run" 0 train --train-iters 4 --log-file own.jsonl --save own "$@"
    status "$name: eval" 0 quern-eval --load own --part test --eval-iters 2
    equal "$name: its loss" "$(sed -nE 's/^loss ([0-9.]+) .*/\1/p' out)" \
        "$(tail -n 1 own.jsonl | sed -nE 's/.*"test_loss":([0-9.]+).*/\1/p' | awk '{ printf "%.6f", $1 }')"
    rm -f own.jsonl
}
test_loss "documents" --data-path data --eod-id 54 --reset-position-ids --reset-attention-mask --eod-mask-loss
[ "$(sed -nE 's/.* tokens ([0-9]+) .*/\1/p' out)" -lt 128 ] # 2 * 4 samples of 16
equal "and counts the tokens that have one" $? 0
status "documents as the command line says" 0 quern-eval --load own --part test --eval-iters 2 --no-eod-mask-loss
has "of which each has a loss then" out "tokens 128 "
test_loss "a blend" --data-path 0.3 data 0.7 data
status "which has no end" 2 quern-eval --load own
has "as is said" err "--eval-iters 0: a blend by weight has no epoch"
cp data.idx da,ta.idx && cp data.bin da,ta.bin
test_loss "data for each part" --split 969,30,1 --train-data-path data --valid-data-path data --valid-data-path da,ta \
    --test-data-path da,ta --multiple-validation-sets
status "two validation sets" 0 quern-eval --load own
equal "have a line each" "$(sed -nE 's/.* data ([a-z,]+)$/\1/p' out | paste -sd ' ')" "data da,ta"
status "the whole of parts" 2 quern-eval --load own --part whole
status "other data than the run's" 0 quern-eval --load own --part whole data --data-path 1000 --eval-iters 2
test_loss "made-up data" --mock-data
status "which has no end either" 2 quern-eval --load own
has "as is said" err "--mock-data has no end"
test_loss "whole documents" --data-path data --sft --packing-strategy none
status "an operand that follows no data" 2 quern-eval --load own data
status "a log that cannot be written" 3 train --mock-data --train-iters 1 --log-file nowhere/log.jsonl

# Plans.
plan="quern-train --plan --bf16 --preset gpt3-175b --tensor-model-parallel-size 8 --sequence-parallel --global-batch-size 64"
# shellcheck disable=SC2086
check "a plan of 175 billion on 64 devices" $plan --plan-ranks 64 --pipeline-model-parallel-size 8 \
    --num-layers-per-virtual-pipeline-stage 4 --plan-device a100
has "its bubble is (p - 1) / (m v)" out "bubble: 3.6 %"
equal "it fits" "$(grep -c "DOES NOT" out)" 0
has "its rates are said to be calculated" out "rates: measured of 0 ops, else calculated"
equal "its ops take what the step says" "$(awk '/^step:/ { all = $6 + $NF } on { sum += substr($0, 34, 13) } /^op / { on = 1 }
    END { print (sum > all - 0.002 && sum < all + 0.002) }' out)" 1
# shellcheck disable=SC2086
check "on one node it does not fit" $plan --plan-ranks 8
has "is said" out "DOES NOT FIT"
check "layouts are proposed" quern-train --plan --bf16 --preset llama2-70b --global-batch-size 64 --plan-ranks 64 --plan-layouts 5
cp out first
equal "five of them, the fastest first" "$(awk 'NR > 1 && NF == 14 { n++; if ($13 < last * .998) bad++; last = $13 } END { print n, bad + 0 }' out)" '5 0'
# shellcheck disable=SC2046 # flags
check "each stands for flags" quern-train --plan --bf16 --preset llama2-70b --global-batch-size 64 --plan-ranks 64 $(sed -n 's/^flags of the first://p' out)
equal "which take as long" "$(sed -n 's/^step: \([0-9.]*\) s.*/\1/p' out)" "$(awk 'NR == 2 { print $13 }' first)"
# 126 layers: with the embedding and the output layer counted they are 128
check "uneven stages, a long sequence" quern-train --plan --bf16 --preset llama3.1-405b --global-batch-size 2048 --plan-ranks 16384 --plan-layouts 1
has "are found" out "  both  "
check "none fits" quern-train --plan --preset gpt3-175b --plan-ranks 1 --plan-layouts 3
has "is said too" out "no layout of 1 ranks fits into 80 GB each"
status "an unknown device" 2 quern-train --plan --preset gpt2-124m --plan-device abacus

# ---- what is wrong is said before anything is trained ----
none="--num-layers 1 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --train-iters 2 --lr 0.01 --micro-batch-size 1 -j 1"
# shellcheck disable=SC2086
fresh() { quern-train $none --eval-iters 0 "$@"; }
status "a dataset that is not there, whose vocabulary was to be its own" 3 fresh --data-path .5 data .5 dato
has "is named" err "there is no dataset 'dato': no 'dato.idx'"
echo '{"tokenizer":{"vocab_size":61}}' >data.sum.json
status "a dataset by its .bin" 0 fresh --data-path data.bin
has "has its tokenizer's vocabulary" err "a vocabulary of 61, that of the tokenizer of 'data.bin'"
rm data.sum.json
status "a dataset whose tokenizer is not known" 2 fresh --data-path data
has "needs the size" err "--vocab-size is needed"
status "a file to save in" 3 fresh --vocab-size 64 --data-path data --save data.idx
has "is said" err "cannot save in 'data.idx': it is no folder"
equal "before a step" "$(grep -c ^step out)" 0
status "a folder that cannot be made" 3 fresh --vocab-size 64 --data-path data --save /proc/none/x
has "is said as well" err "'/proc/none"
equal "as early" "$(grep -c ^step out)" 0
finish
