#!/usr/bin/env bash
# quern train --mlp-activation: each kind of MLP trains, on one process or on tensor ranks, and goes on from its checkpoints.
# shellcheck disable=SC2086
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"
data
# At a rate five times as high the first steps of AdamW make 1e-4 of a difference in the last place (SwiGLU, QUERN_ISA=base).
flags="$tiny --micro-batch-size 2 --global-batch-size 4 --lr 0.002 --hidden-dropout 0 --train-iters 8"

# All that there are, by the help.
kinds=$(quern-train --help | grep -A 1 -e --mlp-activation | grep -oE '[a-z0-9-]+(\|[a-z0-9-]+)+' | tr '|' ' ')
has 'kinds are known' <(echo "$kinds") 'gelu swiglu'
for kind in $kinds; do
    declare "${kind//-/_}=--mlp-activation $kind"
    name=${kind//-/_}
    alone $name 4 8
    check "$kind learns" learns $name.log
    on 2 $name --tensor-model-parallel-size 2
    check "$kind, FP8" quern-train $flags --mlp-activation $kind --bf16 --fp8-format hybrid
    check "$kind, experts" quern-train $flags --mlp-activation $kind --num-experts 4 --moe-ffn-hidden-size 16
done
# shellcheck disable=SC2046
differ $(tr - _ <<<"$kinds")
rm -f log
check 'Megatron'"'"'s flag for a kind' quern-train $flags --swiglu --log-file log
equal 'is that kind' "$(numbers log)" "$(numbers swiglu.log)"
check 'a kind beside a preset that has another' quern-train $flags --preset llama3-8b --mlp-activation gelu --num-query-groups 2 --verbose
has 'goes before it' out 'mlp-activation                       gelu'
status 'another kind than the checkpoint has' 2 quern-train $flags --mlp-activation swiglu --ffn-hidden-size 128 --load gelu
has 'is named' err 'mlp-activation'
rm -f log
check 'and for another' quern-train $flags --squared-relu --log-file log
equal 'is that one' "$(numbers log)" "$(numbers relu2.log)"
status 'two kinds' 2 quern-train $flags --squared-relu --swiglu
has 'are named' err '--swiglu and --mlp-activation'
status 'a kind that there is not' 2 quern-train $flags --mlp-activation tanh
finish
