#!/usr/bin/env bash
# Low-rank adapters: losses of PEFT and TRL (tests/record/sft_parity.py), PEFT's files in and out, merged, among ranks.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/train_lib.sh
. "$ROOT/tests/train_lib.sh"
S=$ROOT/tests/data/train/sft
quern tokenize -q --tokenizer "$S/tokenizer.json" --chat-template chatml --output-prefix c "$S/chat.jsonl"
quern checkpoint import "$S/model" --save base --make-vocab-size-divisible-by 1 >/dev/null
model="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --group-query-attention --num-query-groups 2 --ffn-hidden-size 48 --swiglu
--normalization RMSNorm --norm-epsilon 1e-6 --position-embedding-type rope --disable-bias-linear --add-qkv-bias --seq-length 128
--vocab-size 352 --make-vocab-size-divisible-by 1 --attention-dropout 0 --hidden-dropout 0"
steps="-q -j 1 --data-path c_chat_document --sft --split 1,0,0 --micro-batch-size 2 --train-iters 10 --eval-iters 0 --log-interval 1 --lr 1e-3
--lr-decay-style constant --adam-beta2 0.95 --weight-decay 0.1 --calculate-per-token-loss"
lora="--lora-rank 4 --lora-alpha 12 --lora-rslora"
recorded() { tr -d ' \n' <"$S/losses.json" | grep -o "\"$1\":\[[^]]*" | sed 's/.*\[//' | tr ',' '\n'; }
# as_recorded NAME LOG RECORD N: the first N losses of a log are within 1e-6 of the recorded ones.
as_recorded() {
    local most
    most=$(paste <(recorded "$3") <(grep -o '"loss":[^,]*' "$2" | cut -d: -f2) | head -n "$4" |
        awk -v n="$4" '{ d = $1 > $2 ? $1 - $2 : $2 - $1; if (d > m) m = d } END { print NR != n || !(m <= 1e-6) ? m " of " NR : "fine" }')
    equal "$1" "$most" fine
}

check "import PEFT's adapter" quern checkpoint import "$S/adapter" --base base --save adapter
# shellcheck disable=SC2086
check "ten steps" quern train $model $steps $lora --load adapter --save tuned --log-file tuned.log
as_recorded "losses within 1e-6 of TRL's and PEFT's" tuned.log lora 10
check "export it as it came" quern checkpoint export adapter --output again
quern checkpoint import again --base base --save twice >/dev/null
same "and in again" {adapter,twice}/iter_0000000/model.safetensors
has "its configuration" again/adapter_config.json '"r":4,"use_rslora":true'
check "modules with an A each" quern checkpoint import "$S/apart" --base base --save apart
# shellcheck disable=SC2086
check "a step from them" quern train $model $steps --lora-rank 6 --lora-alpha 24 --lora-target '*_qkv' --load apart --log-file apart.log
as_recorded "the first loss is PEFT's" apart.log apart 1

# What is trained is adapters; merged, they compute the same.
# tensors FOLDER PATTERN: how many of a checkpoint's match.
tensors() { quern checkpoint info "$1" --tensors | grep -c -- "$2"; }
equal "moments are adapters' alone" "$(tensors tuned '^  exp_avg\.')" 16
quern checkpoint merge tuned --save merged >/dev/null
equal "merged there are none" "$(tensors merged lora_A)" 0
for d in tuned merged; do
    quern eval --load $d --data-path c_chat_document --sft --part whole --micro-batch-size 4 | sed 's/  perplexity.*//' >$d.loss
done
check "merged weights compute the same" awk '{ v[NR] = $2 } END { d = v[1] - v[2]; exit !(d * d < 4e-12) }' tuned.loss merged.loss
check "a text by adapters" quern generate --load tuned --tokenizer "$S/tokenizer.json" --prompt "The mill" --max-tokens 8 --temperature 0
cp out text1
quern generate --load merged --tokenizer "$S/tokenizer.json" --prompt "The mill" --max-tokens 8 --temperature 0 >text2 2>/dev/null
same "and merged" text1 text2
check "without adapters a model is exported" quern checkpoint export merged --output hf
check "for transformers" test -f hf/config.json

# New ones: B is 0, so the first loss is the base's; a run that was stopped goes on with the same bits.
# shellcheck disable=SC2086
{
    quern train $model $steps --load base --lora-rank 4 --train-iters 4 --save whole --log-file whole.log
    quern train $model $steps --load base --lora-rank 4 --train-iters 4 --exit-interval 2 --save two
    quern train $model $steps --load base --lora-rank 4 --train-iters 4 --save two
}
as_recorded "new adapters change nothing at first" whole.log bfd 1
same "the same bits after a stop" {whole,two}/iter_0000004/model.safetensors
same "and moments" {whole,two}/iter_0000004/optimizer.safetensors

# refused STATUS TEXT ARG...: a run with ARG says TEXT.
refused() {
    local want=$1 text=$2
    shift 2
    # shellcheck disable=SC2086
    status "refused: $*" "$want" quern train $model $steps "$@"
    has "it says why" err "$text"
}
refused 2 "its adapters are of --lora-rank 4" --lora-rank 8 --load tuned
refused 2 "its adapters are scaled by 6, not 8" --lora-rank 4 --load tuned
refused 2 "has adapters: --lora-rank 4 trains them" --load tuned
refused 2 "--lora-alpha needs --lora-rank" --lora-alpha 3
refused 2 "'linear_out' is none of linear_qkv" --lora-rank 2 --lora-target linear_out
refused 2 "none of linear_qkv, linear_proj, experts.linear_fc1" --lora-rank 2 --num-experts 4 --lora-target "linear_fc*"
status "an adapter without its model" 2 quern checkpoint import "$S/adapter" --save no
has "it says what is needed" err "--base is needed"
cp -r "$S/adapter" dora
sed -i 's/"use_dora": false/"use_dora": true/' dora/adapter_config.json
status "DoRA" 3 quern checkpoint import dora --base base --save no
has "it is named" err "quern has no use_dora"
status "an adapter over adapters" 2 quern checkpoint import "$S/adapter" --base tuned --save no

# Ranks.
two="${model/divisible-by 1/divisible-by 2} ${steps/batch-size 2/batch-size 1} --global-batch-size 4 --train-iters 5 --lora-rank 4 --lr 1e-2
    --untie-embeddings-and-output-weights"
# shellcheck disable=SC2086
quern train $two --log-file one.log --save one
for how in "--tensor-model-parallel-size 2 --sequence-parallel" "--pipeline-model-parallel-size 2" "--context-parallel-size 2" \
    "$zero2" "$zero3 $beside" "--use-distributed-optimizer --recompute-granularity full"; do
    rm -rf log.jsonl several
    # shellcheck disable=SC2086
    check "2 ranks: $how" ranks_train 2 $two $how --log-file log.jsonl --save several
    check "2 ranks: $how: the same training" close one.log log.jsonl 10
done
check "their checkpoint joined" quern checkpoint join several --save joined
check "and merged" quern checkpoint merge several --save several-merged
# shellcheck disable=SC2086
check "in bf16" ranks_train 2 $two $zero3 --bf16 --save low
finish
