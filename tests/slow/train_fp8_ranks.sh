#!/usr/bin/env bash
# quern train --fp8-format: on several ranks: as one process does, to the bit where the sums allow it; resumed by others.
# shellcheck source=tests/lib.sh disable=SC2086,SC2154
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME="$T/cache"
data
. "$ROOT/tests/fp8_lib.sh"

train gpt-delayed $gpt $delayed
train moe-delayed $moe $delayed
train mixtral-tensorwise $mixtral --fp8-format e4m3 --fp8-recipe tensorwise

ranks() {
    local name=$1 n=$2
    shift 2
    rm -f "$name.jsonl"
    status "$name" 0 ranks_train "$n" $run "$@" --device cpu --log-file "$name.jsonl"
}
train alone $gpt $delayed --deterministic
ranks data 2 $gpt $delayed --deterministic
same_losses "data-parallel ranks scale as one process: the same bits" alone data
ranks sharded 2 $gpt $delayed --deterministic --use-distributed-optimizer
same_losses "and share the optimizer" alone sharded
ranks zero3 2 $gpt $delayed --deterministic --data-parallel-sharding-strategy optim_grads_params
same_losses "and the weights" alone zero3
ranks tensor 2 $gpt $delayed --tensor-model-parallel-size 2 --sequence-parallel --save tensor --save-interval 6
beside "tensor ranks" gpt-delayed tensor 0.02
ranks stages 2 $gpt $delayed --deterministic --pipeline-model-parallel-size 2
same_losses "stages: the same bits" alone stages
ranks context 2 $gpt $delayed --context-parallel-size 2
beside "context ranks" gpt-delayed context 0.02
half tensor one && half tensor rest
ranks rest-tensor 2 $gpt $delayed --tensor-model-parallel-size 2 --sequence-parallel --save rest
same "tensor ranks go on with the same bits" <(losses tensor.jsonl | sed 1,6d) <(losses rest-tensor.jsonl)
train rest-one $gpt $delayed --save one
check "one process goes on from there" test "$(grep -c '"loss"' rest-one.jsonl)" = 6
equal "with its scales" "$(grep -c "no scales" err)" 0

# Experts that ranks share: scales of each are of all rows that it gets.
ep="--expert-model-parallel-size 2"
train alone $moe $delayed --deterministic
ranks data 2 $moe $delayed --deterministic
same_losses "experts, data-parallel ranks: the same bits" alone data
ranks shared 2 $moe $delayed $ep --save shared --save-interval 6
beside "experts that ranks share" moe-delayed shared 0.01
ranks both 4 $moe $delayed $ep --tensor-model-parallel-size 2 --sequence-parallel
beside "and tensor ranks too" moe-delayed both 0.02
ranks zero3 2 $moe $delayed --deterministic --data-parallel-sharding-strategy optim_grads_params
same_losses "and divided weights: the same bits" alone zero3
ranks current 2 $mixtral --fp8-format e4m3 --fp8-recipe tensorwise $ep
beside "and scales of the tensor at hand" mixtral-tensorwise current 0.02
half shared rest && half shared wider && half shared one
ranks rest-shared 2 $moe $delayed $ep --save rest
same "they go on with the same bits" <(losses shared.jsonl | sed 1,6d) <(losses rest-shared.jsonl)
ranks rest-wider 4 $moe $delayed --expert-model-parallel-size 4 --save wider
equal "four ranks go on from there, with the scales" "$(grep -c '"loss"' rest-wider.jsonl),$(grep -c 'no scales' err)" 6,0
train rest-one $moe $delayed --save one
equal "one process too" "$(grep -c '"loss"' rest-one.jsonl),$(grep -c 'no scales' err)" 6,0
finish
