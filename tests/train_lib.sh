# shellcheck shell=bash
# For the tests of training in tests/cli, behind tests/lib.sh: a dataset, MPI, logs held against each other.
# shellcheck disable=SC2034
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated OMP_NUM_THREADS=1
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # Open MPI's, in libraries that it has unloaded
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so
# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"

# ranks_train N ARG...: quern train by N ranks over TCP, which start sooner than mpirun's.
# shellcheck disable=SC2317
ranks_train() {
    local n=$1
    shift
    plain "$n" quern-train --distributed-backend tcp "$@"
}

# le BYTES NUMBER...: little-endian integers.
le() { awk -v n="$1" 'BEGIN { for (i = 2; i < ARGC; i++) { v = ARGV[i]; for (b = 0; b < n; b++) {
    printf "\\x%02x", v % 256; v = int(v / 256) } } }' "$@" | { read -r s; printf '%b' "$s"; }; }
# data: 40 documents of 50 tokens below 61 as data.bin and data.idx
# shellcheck disable=SC2046
data() {
    le 2 $(awk 'BEGIN { x = 7; for (i = 0; i < 2000; i++) { x = (x * 5 + i % 3) % 61; print x } }') >data.bin
    {
        printf 'MMIDIDX\0\0'
        le 8 1
        le 1 8
        le 8 40 41
        le 4 $(for _ in $(seq 40); do echo 50; done)
        le 8 $(seq 0 100 3900)
        le 8 $(seq 0 40)
    } >data.idx
}

# What a log says of the mathematics.
losses() { sed -E 's/"(lr|tokens_per_s|flops_per_s|mfu|[a-z]*_s)":[^,}]*,?//g' "$1"; }
# close A B N [MOST]: the N numbers of two logs differ by 1e-5 at most, or MOST; of those above 1 by that share of them.
# shellcheck disable=SC2317
close() {
    paste <(grep -oE '"(loss|grad_norm|valid_loss)":[^,}]*' "$1" | cut -d: -f2) \
        <(grep -oE '"(loss|grad_norm|valid_loss)":[^,}]*' "$2" | cut -d: -f2) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= '"${4:-1e-5}"' * ($1 > 1 ? $1 : 1))) exit 1; n++ } END { exit n != '"$3"' }'
}

# numbers LOG: its losses and norms, and the losses of tokens further on.
numbers() { grep -oE '"(loss|grad_norm|mtp_losses)":(\[[^]]*|[^],}]*)' "$1"; }

# ---- kinds of a small model on `data` ----
# A test sets flags, with $tiny among them, and a variable a kind with the flags of that kind.

tiny="--data-path data --split 1,0,0 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16 --vocab-size 61
    --attention-dropout 0 --eval-iters 0 -j 1 --device cpu"
# alone KIND STEP LINES: KIND trains on one process; KIND.log is its log, KIND.out what it said, KIND its checkpoints.  From that of STEP
# it goes on to the same last LINES numbers.
# shellcheck disable=SC2086,SC2154
alone() {
    rm -f log
    check "$1" quern-train $flags ${!1} --save $1 --save-interval $2 --log-file log
    cp log $1.log
    cp out $1.out
    rm -f log
    check "$1, resumed" quern-train $flags ${!1} --load $1 --ckpt-step $2 --log-file log
    equal "$1, resumed: the same bits" "$(numbers log)" "$(numbers $1.log | tail -n $3)"
}
# on RANKS KIND FLAG...: RANKS over TCP train KIND with FLAG as one process did.
# shellcheck disable=SC2086
on() {
    rm -f log
    check "$2, ${*:3}" ranks_train $1 $flags ${!2} --log-file log "${@:3}"
    check "$2, ${*:3}: as one process" close $2.log log "$(grep -cE '"loss":' $2.log | awk '{ print 2 * $1 }')"
}
# divided KIND FLAG...: of the same gradients, with --deterministic and FLAG, each division of them over data-parallel ranks gives KIND the
# bits of one process.
# shellcheck disable=SC2086
divided() {
    local how="deterministic${2+, ${*:2}}" ranks
    rm -f one.log
    check "$1, $how" quern-train $flags ${!1} --deterministic "${@:2}" --log-file one.log
    for ranks in '2 no_shard' '2 optim' '4 optim_grads_params'; do
        rm -f log
        check "$1, $how, $ranks" ranks_train ${ranks% *} $flags ${!1} --deterministic "${@:2}" \
            --log-file log --data-parallel-sharding-strategy ${ranks#* }
        equal "$1, $how, $ranks: the same bits" "$(numbers log)" "$(numbers one.log)"
    done
}
# cached KIND: a greedy text that KIND goes on with from its half, so read anew, is the one that it wrote from its cache.
# shellcheck disable=SC2046,SC2086
cached() {
    check "$1, a greedy text" quern-generate --load $1 --prompt-ids 5,9,2 --temperature 0 --max-tokens 6 --print-ids
    cp out $1.ids
    check "$1, its first half" quern-generate --load $1 --prompt-ids 5,9,2 --temperature 0 --max-tokens 3 --print-ids
    check "$1, from there" quern-generate --load $1 --prompt-ids 5,9,2,$(tr -s ' \n' , <out | sed 's/,$//') --temperature 0 \
        --max-tokens 3 --print-ids
    equal "$1, from there the same" "$(tr -s ' \n' '\n\n' <out)" "$(tr -s ' \n' '\n\n' <$1.ids | tail -n 3)"
}
# same_joined KIND: with --deterministic one process and two that share the state save the same model; it is in whole and joined.
# shellcheck disable=SC2086
same_joined() {
    local f
    check "$1, one process" quern-train $flags ${!1} --deterministic --save one
    check "$1, two processes" ranks_train 2 $flags ${!1} --deterministic --use-distributed-optimizer \
        --save two
    check "$1, one, joined" quern-checkpoint join one --save whole
    check "$1, two, joined" quern-checkpoint join two --save joined
    for f in whole/*/model.safetensors; do
        same "$1: the same bytes" "$f" "joined${f#whole}"
    done
}
# learns LOG: its last loss is below its first.
learns() { numbers "$1" | awk -F: '/"loss"/ { if (!n++) first = $2; last = $2 } END { exit !(n > 1 && last < first) }'; }
# differ KIND...: no two have the same numbers at their ends.
differ() {
    equal 'no two have the same losses' "$(for k; do numbers "$k.log" | tail -n 1; done | sort -u | wc -l)" $#
}

# ---- one process beside ranks that share a model ----

run="--mock-data -j 1 --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --train-iters 20 --eval-iters 3 --eval-interval 5"
gpt="--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 $run"
# shellcheck disable=SC2034
llama="$gpt --group-query-attention --num-query-groups 2 --swiglu --normalization RMSNorm --position-embedding-type rope
    --qk-layernorm --disable-bias-linear --untie-embeddings-and-output-weights"

# as_one MODEL N ARG...: N ranks over TCP with ARG train MODEL (gpt or llama) as one process does.
as_one() {
    local name=$1 n=$2
    shift 2
    rm -f log.jsonl
    # shellcheck disable=SC2086
    check "$name, $n ranks: $*" ranks_train "$n" ${!name} "$@" --log-file log.jsonl
    check "$name, $n ranks: $*: the same training" close "$name.jsonl" log.jsonl 45
}

# ---- ranks that share gradients (zero2) and weights (zero3) ----

zero2="--data-parallel-sharding-strategy optim_grads"
zero3="--data-parallel-sharding-strategy optim_grads_params"
beside="--overlap-grad-reduce --overlap-param-gather"
joined() { rm -rf "j$1" && quern-checkpoint join "$1" --save "j$1"; }
# same_bits ARG: with --deterministic and ARG one, two and four ranks have the same bits, whatever they share.
same_bits() {
    local how=$1 x f
    # shellcheck disable=SC2086
    {
        check "deterministic $how: one process" quern-train $gpt $how --deterministic --log-file a.jsonl --save a
        check "deterministic $how: two share weights" ranks_train 2 $gpt $how --deterministic \
            $zero3 $beside --log-file b.jsonl --save b
        check "deterministic $how: four share gradients" ranks_train 4 $gpt $how \
            --deterministic $zero2 --log-file c.jsonl --save c
    }
    for x in b c; do
        same "deterministic $how, $x: the same bits of losses and norms" <(losses a.jsonl) <(losses $x.jsonl)
        check "deterministic $how, $x: joined" joined $x
        for f in model optimizer; do
            same "deterministic $how, $x: the same $f" {a,j$x}/iter_0000020/$f.safetensors
        done
    done
    rm -rf a b c ja jb jc a.jsonl b.jsonl c.jsonl
}
