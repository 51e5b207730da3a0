#!/usr/bin/env bash
# Adapters of experts as PEFT trains and keeps them (tests/record/lora_experts.py): in, trained on, out and in again, merged.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/train_lib.sh
. "$ROOT/tests/train_lib.sh"
S=$ROOT/tests/data/train/sft/experts
# Eight documents of 17 tokens.
# shellcheck disable=SC2046
{
    le 2 $(awk 'BEGIN { x = 7; for (i = 0; i < 136; i++) { x = (x * 5 + i % 3) % 61; print x } }') >data.bin
    { printf 'MMIDIDX\0\0'; le 8 1; le 1 8; le 8 8 9; le 4 $(for _ in $(seq 8); do echo 17; done); le 8 $(seq 0 34 238); le 8 $(seq 0 8); } >data.idx
}
steps="-q -j 1 --use-checkpoint-args --seq-length 17 --moe-router-load-balancing-type none --attention-dropout 0 --hidden-dropout 0
--data-path data --sft --packing-strategy none --split 1,0,0 --micro-batch-size 8 --global-batch-size 8 --train-iters 10
--eval-iters 0 --log-interval 1 --lr 3e-3 --lr-decay-style constant --adam-beta2 0.95 --adam-eps 1e-5 --weight-decay 0.1 --clip-grad .5
--lora-rank 2 --lora-alpha 4"

# keys FILE: names, types and shapes of its tensors, in the order of their names.
keys() { tail -c +9 "$1" | head -c "$(od -An -t u8 -N 8 "$1" | tr -d ' ')" | grep -o '"base_model[^]]*]' | sort; }

for model in mixtral:linear_qkv,linear_proj,experts.linear_fc1,experts.linear_fc2 qwen3_moe:experts.linear_fc2; do
    IFS=: read -r model targets <<<"$model"
    targets=$(printf -- '--lora-target %s ' ${targets//,/ })
    rm -rf base adapter tuned again twice merged
    quern checkpoint import "$ROOT/tests/data/train/hf/$model" --save base --make-vocab-size-divisible-by 1 >/dev/null
    check "$model: import PEFT's adapter" quern checkpoint import "$S/$model" --base base --save adapter
    rm -f ten.log
    # shellcheck disable=SC2086
    check "$model: ten steps" quern train $steps $targets --load adapter --log-file ten.log --save tuned
    equal "$model: losses within 2e-6 of PEFT's" "$(paste "$S/$model/losses.txt" <(grep -o '"loss":[^,]*' ten.log | cut -d: -f2) |
        awk '{ d = $1 - $2; if (d * d > m) m = d * d } END { print NR == 10 && m < 4e-12 ? "fine" : NR " losses, " sqrt(m) }')" fine
    check "$model: export" quern checkpoint export adapter --output again
    equal "$model: PEFT's names and shapes" "$(keys again/adapter_model.safetensors | sed 's/,"data.*//')" \
        "$(keys "$S/$model/adapter_model.safetensors" | sed 's/,"data.*//')"
    quern checkpoint import again --base base --save twice >/dev/null
    same "$model: out and in again" {adapter,twice}/iter_0000000/model.safetensors
    check "$model: merged" quern checkpoint merge tuned --save merged
    for d in tuned merged; do
        quern eval --load $d --data-path data --sft --packing-strategy none --part whole --micro-batch-size 4 | sed 's/  perplexity.*//' >$d.loss
    done
    check "$model: merged weights compute the same" awk '{ v[NR] = $2 } END { d = v[1] - v[2]; exit !(d * d < 4e-12) }' tuned.loss merged.loss
done

has "targets are parameters" again/adapter_config.json '"target_modules":[],"target_parameters":["mlp.experts.down_proj"]'
rm -rf wrong
cp -r "$S/qwen3_moe" wrong
sed -i 's/experts.down_proj/experts.gate_up_proj/' wrong/adapter_config.json
status "another layer's shape" 3 quern checkpoint import wrong --base base --save other
has "is refused" err "mlp.experts.lora_A.weight' is not there, or not 8 x 16"
quern checkpoint import "$ROOT/tests/data/train/hf/gpt_oss" --save oss >/dev/null
# shellcheck disable=SC2086
check "adapters of a GPT-OSS's experts" quern train $steps --lora-target 'experts.*' --load oss --train-iters 1 --save sinks
status "which PEFT has otherwise" 3 quern checkpoint export sinks --output third
has "are refused" err "adapters of experts of a gpt_oss are not known of PEFT"
finish
