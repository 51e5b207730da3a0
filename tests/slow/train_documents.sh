# shellcheck shell=bash
# Documents packed in a sequence do not see each other, and the ends of documents have no loss: ranks train as one process
# does, over 20 steps (dropout included) and validation; each option does something; what does not go is refused.
. "$ROOT/tests/lib.sh"
. "$ROOT/tests/train_lib.sh"

# Random tokens below 9: documents of about nine tokens.  The batch has micro-batches with different numbers of losses.
options='--eod-id 7 --reset-position-ids --reset-attention-mask --eod-mask-loss'
gpt="${gpt/--vocab-size 61/--vocab-size 9} $options"
llama="${llama/--vocab-size 61/--vocab-size 9} $options"
# shellcheck disable=SC2034
token="$gpt --calculate-per-token-loss" moe="$llama --num-experts 4 --moe-aux-loss-coeff 0.1"

for m in gpt llama token moe; do
    # shellcheck disable=SC2086
    check "$m, one process" quern-train ${!m} --log-file $m.jsonl
    as_one $m 2 --tensor-model-parallel-size 2 --sequence-parallel
    as_one $m 2 --context-parallel-size 2
    as_one $m 2 --pipeline-model-parallel-size 2
    as_one $m 2 # data-parallel
done
as_one moe 2 --expert-model-parallel-size 2
as_one gpt 4 --context-parallel-size 4
as_one gpt 4 --pipeline-model-parallel-size 4 # stages that neither embed nor head
as_one gpt 4 --context-parallel-size 2 --pipeline-model-parallel-size 2
as_one llama 4 --context-parallel-size 2 --tensor-model-parallel-size 2 --sequence-parallel --recompute-granularity full
as_one gpt 1 --recompute-granularity selective
as_one token 4 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1
as_one token 2 --data-parallel-sharding-strategy optim_grads_params

# shellcheck disable=SC2086
check 'FP8' quern-train $gpt --bf16 --fp8-format hybrid --train-iters 3

# Each option changes the losses; without them all they are what they are without the id.
plain="${gpt/$options/}"
# shellcheck disable=SC2086
check 'without documents' quern-train $plain --log-file none.jsonl
# shellcheck disable=SC2086
check 'an id alone' quern-train $plain --eod-id 7 --calculate-per-token-loss --log-file id.jsonl
losses none.jsonl >none
losses id.jsonl >id
same 'an id alone changes nothing' none id
for o in reset-position-ids reset-attention-mask eod-mask-loss; do
    # shellcheck disable=SC2086
    check "--$o alone" quern-train $plain --eod-id 7 --$o --log-file $o.jsonl
    losses $o.jsonl >$o
    check "--$o does something" eval "! cmp -s none $o"
done
losses gpt.jsonl >one
losses token.jsonl >two
check '--calculate-per-token-loss does something' eval '! cmp -s one two'

# With --deterministic the bits do not depend on how many data-parallel ranks there are.
for n in 1 2 4; do
    # shellcheck disable=SC2086
    check "deterministic, $n ranks" ranks_train $n $gpt \
        --deterministic --log-file bits$n.jsonl
    losses bits$n.jsonl >bits$n
done
same 'deterministic: the same bits on 2' bits1 bits2
same 'deterministic: the same bits on 4' bits1 bits4

# shellcheck disable=SC2086
status 'no id' 2 quern-train $plain --reset-attention-mask
has 'is said' err '--reset-attention-mask needs --eod-id'
# shellcheck disable=SC2086
status 'an id that is none' 2 quern-train $plain --eod-id 9 --eod-mask-loss
has 'is said too' err '--eod-id: 9 is not in a vocabulary of 9'
finish
