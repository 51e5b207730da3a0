# shellcheck shell=bash
# For the tests of training in tests/cli, behind tests/lib.sh: a dataset, MPI, logs held against each other.
# shellcheck disable=SC2034
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated OMP_NUM_THREADS=1
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # Open MPI's, in libraries that it has unloaded
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so

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
# close A B N: the N numbers of two logs differ by 1e-5 at most.
# shellcheck disable=SC2317
close() {
    paste <(grep -oE '"(loss|grad_norm|valid_loss)":[^,}]*' "$1" | cut -d: -f2) \
        <(grep -oE '"(loss|grad_norm|valid_loss)":[^,}]*' "$2" | cut -d: -f2) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-5)) exit 1; n++ } END { exit n != '"$3"' }'
}

# ---- one process beside ranks that share a model ----

run="--mock-data -j 1 --micro-batch-size 2 --global-batch-size 8 --lr 0.002 --train-iters 20 --eval-iters 3 --eval-interval 5"
gpt="--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 61 $run"
# shellcheck disable=SC2034
llama="$gpt --group-query-attention --num-query-groups 2 --swiglu --normalization RMSNorm --position-embedding-type rope
    --qk-layernorm --disable-bias-linear --untie-embeddings-and-output-weights"

# as_one MODEL N ARG...: N ranks with ARG train MODEL (gpt or llama) as one process does.
as_one() {
    local name=$1 n=$2
    shift 2
    rm -f log.jsonl
    # shellcheck disable=SC2086
    check "$name, $n ranks: $*" timeout 600 mpirun --oversubscribe -n "$n" quern-train ${!name} "$@" --log-file log.jsonl
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
        check "deterministic $how: two share weights" timeout 600 mpirun --oversubscribe -n 2 quern-train $gpt $how --deterministic \
            $zero3 $beside --log-file b.jsonl --save b
        check "deterministic $how: four share gradients" timeout 600 mpirun --oversubscribe -n 4 quern-train $gpt $how \
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
