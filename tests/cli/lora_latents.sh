#!/usr/bin/env bash
# Adapters of a DeepSeek-V3, of latents, a dense layer and shared experts, as PEFT trains them (tests/record/lora_latents.py).
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/train_lib.sh
. "$ROOT/tests/train_lib.sh"
S=$ROOT/tests/data/train/sft/latents
# Eight documents of 17 tokens.
# shellcheck disable=SC2046
{
    le 2 $(awk 'BEGIN { x = 7; for (i = 0; i < 136; i++) { x = (x * 5 + i % 3) % 61; print x } }') >data.bin
    { printf 'MMIDIDX\0\0'; le 8 1; le 1 8; le 8 8 9; le 4 $(for _ in $(seq 8); do echo 17; done); le 8 $(seq 0 34 238); le 8 $(seq 0 8); } >data.idx
}
model="--use-checkpoint-args --seq-length 17 --moe-router-load-balancing-type none --moe-router-bias-update-rate 0 --attention-dropout 0
--hidden-dropout 0"
steps="-q -j 1 --data-path data --sft --packing-strategy none --split 1,0,0 --micro-batch-size 8 --global-batch-size 8 --train-iters 10
--eval-iters 0 --log-interval 1 --lr 3e-3 --lr-decay-style constant --adam-beta2 0.95 --adam-eps 1e-5 --weight-decay 0.1 --clip-grad .5"
lora="--lora-rank 3 --lora-alpha 6"

quern checkpoint import "$ROOT/tests/data/train/hf/deepseek_v3" --save base --make-vocab-size-divisible-by 2 >/dev/null
check "import PEFT's adapter" quern checkpoint import "$S" --base base --save adapter
# shellcheck disable=SC2086
check "ten steps" quern train $model $steps $lora --lora-target 'linear_*' --load adapter --log-file ten.log --save tuned
equal "losses within 1e-6 of PEFT's" "$(paste "$S/losses.txt" <(grep -o '"loss":[^,]*' ten.log | cut -d: -f2) |
    awk '{ d = $1 - $2; if (d * d > m) m = d * d } END { print NR == 10 && m < 1e-12 ? "fine" : NR " losses, " sqrt(m) }')" fine
quern checkpoint export adapter --output again >/dev/null
quern checkpoint import again --base base --save twice >/dev/null
same "out and in again" {adapter,twice}/iter_0000000/model.safetensors
has "with the modules of all layers" again/adapter_config.json '"mlp.gate_proj","mlp.up_proj","shared_experts.gate_proj"'
check "merged" quern checkpoint merge tuned --save merged
for d in tuned merged; do
    quern eval --load $d --data-path data --sft --packing-strategy none --part whole --micro-batch-size 4 | sed 's/  perplexity.*//' >$d.loss
done
check "merged weights compute the same" awk '{ v[NR] = $2 } END { d = v[1] - v[2]; exit !(d * d < 4e-12) }' tuned.loss merged.loss
quern generate --load tuned --prompt-ids 3,9,4 --max-tokens 12 --temperature 0 >text1 2>/dev/null
quern generate --load merged --prompt-ids 3,9,4 --max-tokens 12 --temperature 0 >text2 2>/dev/null
check "tokens were made" test -s text1
same "by both, from latents in a cache" text1 text2

# shellcheck disable=SC2086
{
    check "of attention alone, as is the default with experts" quern train $model $steps $lora --load base --train-iters 1 --save attention
    equal "has five in each layer" "$(quern checkpoint info attention --tensors | grep -c '^  decoder.*lora_A')" 15
    status "another model than the checkpoint's" 2 quern train $model $steps $lora --load base --hidden-size 32
    has "is refused" err "its --hidden-size is 16, not 32"
    status "no checkpoint" 2 quern train $model $steps $lora --load none
    has "has no model" err "there is no checkpoint in --load or --save"
    status "a preset beside it" 2 quern train $model $steps --load base --preset gpt2-124m
    has "is refused" err "--preset and --use-checkpoint-args: give one of them"
    check "a run of its own goes on" quern train $model $steps --save attention --train-iters 2 --log-file two.log
    has "with the adapters that it had" two.log '{"step":2,'
    status "a name that the model has not" 2 quern train $model $steps $lora --lora-target linear_qkv --load base
    has "is answered by those that it has" err "'linear_qkv' is none of linear_proj, linear_fc1, linear_fc2, linear_q_down_proj, linear_q_up_proj"
}

head -n 4 ten.log >four.log
two="${steps/--micro-batch-size 8/--micro-batch-size 4} --train-iters 4"
for how in "--tensor-model-parallel-size 2 --sequence-parallel" "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 1" \
    "--expert-model-parallel-size 2" "--use-distributed-optimizer --recompute-granularity full"; do
    rm -rf log.jsonl
    # shellcheck disable=SC2086
    check "2 ranks: $how" ranks_train 2 $model $two $lora --lora-target 'linear_*' --load adapter \
        --log-file log.jsonl $how
    check "2 ranks: $how: the same training" close four.log log.jsonl 8
done
finish
