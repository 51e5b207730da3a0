#!/usr/bin/env bash
# quern checkpoint at a shell: info, verify, import, export; training from an imported model.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
export OMP_WAIT_POLICY=passive
hf=$ROOT/tests/data/train/hf

status "no action" 2 quern-checkpoint
status "an unknown action" 2 quern-checkpoint look x
status "import without a place" 2 quern-checkpoint import "$hf/llama"
status "no checkpoint" 3 quern-checkpoint info nothing
status "no model" 3 quern-checkpoint import nothing --save x
has "no model: its name" err "nothing/config.json"

check "import" quern-checkpoint import "$hf/llama" --save llama --seq-length 16
check "info" quern-checkpoint info llama --tensors
has "info: groups" out "num_query_groups                     2"
has "info: scaling" out "rope_scaling_original                16"
has "info: no optimizer" out "no optimizer state"
has "info: tensors" out "decoder.layers.1.self_attention.linear_qkv.weight"
check "verify" quern-checkpoint verify llama
status "join into its own place" 2 quern-checkpoint join llama --save ./llama
has "join into its own place: both names" err "--save './llama/iter_0000000/metadata.json' is a file that is read too"
check "export" quern-checkpoint export llama --output theirs --dtype bf16 --max-shard-size 6K
status "export to a folder that has something" 2 quern-checkpoint export llama --output theirs
mkdir cut
: >cut/.model.safetensors.0123456789ab.part
check "export to a folder with what a killed export left" quern-checkpoint export llama --output cut --dtype bf16 --max-shard-size 6K
equal "export: the same files" "$(cd cut && ls)" "$(cd theirs && ls)"
(
    ulimit -f 4
    trap '' XFSZ
    quern-checkpoint export llama --output full --dtype bf16 2>err
)
equal "export to a full disk" $? 3
equal "export to a full disk: no file" "$(ls full)" ''
check "generate" quern-generate --load llama --prompt-ids 5,9 --max-tokens 6 --temperature 0 --print-ids
equal "generate: ids" "$(cat out)" "$(quern-checkpoint import theirs --save twice >/dev/null && quern-generate --load twice \
    --prompt-ids 5,9 --max-tokens 6 --temperature 0 --print-ids)"

# An imported model is where a run begins: with its weights, from step 0.
flags="--mock-data --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
    --untie-embeddings-and-output-weights --num-layers 2 --hidden-size 16 --num-attention-heads 4 --group-query-attention
    --num-query-groups 2 --kv-channels 8 --ffn-hidden-size 24 --vocab-size 61 --seq-length 16 --max-position-embeddings 32
    --micro-batch-size 2 --lr 0.01 --eval-iters 0 --log-interval 1 -j 1 --attention-dropout 0 --hidden-dropout 0"
# shellcheck disable=SC2086
check "train from it" quern-train $flags --load llama --save more --train-iters 3
has "train: from step 1" out "step 1/3"
check "verify both kinds" quern-checkpoint verify more
# shellcheck disable=SC2086
status "another model's" 2 quern-train $flags --load llama --train-iters 3 --num-query-groups 4
has "another model's: the flag" err "--num-query-groups is 2, not 4"
check "info of a run" quern-checkpoint info more
has "info of a run: settings" out "train-iters"

# A model goes back as one of the family that it came from, also when it was trained; --model-type asks for another.
check "import a Mistral" quern-checkpoint import "$hf/mistral" --save mistral --seq-length 16
# shellcheck disable=SC2086
check "train from it" quern-train $flags --load mistral --save mistral-more --train-iters 2
check "export it" quern-checkpoint export mistral-more --output mistral-hf
has "it is a Mistral" mistral-hf/config.json '"model_type":"mistral"'
check "export it as a Llama" quern-checkpoint export mistral-more --output llama-hf --model-type llama
has "it is a Llama" llama-hf/config.json '"model_type":"llama"'
status "export it as a GPT-2" 3 quern-checkpoint export mistral-more --output gpt2-hf --model-type gpt2
has "what that lacks" err "transformers' gpt2 cannot have this model"
status "export it as nothing that is known" 2 quern-checkpoint export mistral-more --output no-hf --model-type mamba
check "import what differs by its norms" quern-checkpoint import "$hf/olmo2" --save olmo2
check "export it" quern-checkpoint export olmo2 --output olmo2-hf
has "as what it is" olmo2-hf/config.json '"model_type":"olmo2"'

# A tokenizer's files go along.
mkdir tokenizer
echo '{}' | tee tokenizer/tokenizer.json tokenizer/generation_config.json tokenizer/training_args.bin >tokenizer/chat_template.jinja
check "export with a tokenizer" quern-checkpoint export mistral --output with --tokenizer tokenizer
equal "its files are there" "$(cd with && echo *)" \
    'chat_template.jinja config.json generation_config.json model.safetensors tokenizer.json'
check "export with one file" quern-checkpoint export mistral --output with-one --tokenizer tokenizer/tokenizer.json
equal "it is there" "$(cd with-one && echo *)" 'config.json model.safetensors tokenizer.json'
status "a folder without a tokenizer" 3 quern-checkpoint export mistral --output without --tokenizer cut
has "is named" err "'cut' has no file of a tokenizer"

# A shortage of memory is no damage: nobody goes back to an older checkpoint for it.
# shellcheck disable=SC2086
check "a later checkpoint" quern-train $flags --load more --save more --train-iters 4
cp -r more large
truncate -s 1T large/iter_0000004/model.safetensors
if nm "$(command -v quern-checkpoint)" | grep -q ' __[at]san_init$'; then
    skip "no memory for a checkpoint" "a sanitizer takes all addresses"
else
    status "no memory for a checkpoint" 3 bash -c 'ulimit -v 8000000; exec quern-generate --load large --prompt-ids 5,9 --max-tokens 2'
    has "no memory for a checkpoint: what was wanted" err "cannot map the 1099511627776 bytes of 'large/iter_0000004/model.safetensors': Cannot allocate memory"
    equal "no memory for a checkpoint: no other is tried" "$(grep -c 'the checkpoint before it' err)" 0
fi
status "a checkpoint that is too large is damaged" 0 quern-generate --load large --prompt-ids 5,9 --max-tokens 2
has "a checkpoint that is too large is damaged: the one before is taken" err "trying the checkpoint before it"
rm -r large
printf 'x' | dd of=more/iter_0000003/optimizer.safetensors bs=1 seek=3000 conv=notrunc 2>dd.err
status "damage" 1 quern-checkpoint verify more
has "damage: where" out "optimizer.safetensors"

# What a user tries first: the folder of one checkpoint; a text file that names another.
one=$(cd llama && echo iter_*)
status "one checkpoint in place of its run" 2 quern-checkpoint info "llama/$one"
has "says what to name" err "'llama/$one' is one checkpoint of several: name the folder that it is in, and --ckpt-step"
cp -r llama latest
echo 99 >latest/latest_checkpointed_iteration.txt
check "a step that is not there" quern-checkpoint info latest
has "is told" err "latest_checkpointed_iteration.txt names step 99, which is not there; trying step 0"

# Two trainings in one folder.
flags="--mock-data --vocab-size 256 --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --micro-batch-size 1
    --lr 1e-3 --eval-iters 0 -j 1 --save both"
mkdir both
exec 7<both
flock 7
# shellcheck disable=SC2086
quern-train $flags --train-iters 1 2>err 7<&- &
for ((i = 0; i < 600; i++)); do grep -q waiting err && break; sleep 0.1; done
has "where another run saves a run waits" err "another run saves in 'both'; waiting for its end"
absent "and has not begun" both/iter_0000001
exec 7<&-
wait $!
equal "until the folder is free" $? 0
finish
