# shellcheck shell=bash
# Ranks without MPI, over TCP, and calls on a device by NCCL, for which tests/fake_nccl.c stands: tests/comm_ranks.c as plain
# processes, as torchrun or srun would start them, and under mpirun.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated OMP_NUM_THREADS=1
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so QUERN_NCCL=$B/tests/fake-nccl.so
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
prog=$B/tests/comm_ranks

# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"

n=2
check "over TCP, every call, $n ranks" plain $n "$prog" all 0 auto
check "by NCCL beside TCP, every call, $n ranks" plain $n "$prog" all 0 nccl
has 'and nothing is amiss' <(cat out err) "all: $n ranks, nccl and "
check "by NCCL beside MPI, every call, $n ranks" timeout -k 10 600 mpirun --oversubscribe -n $n "$prog" all 0 nccl
equal 'no complaint' "$(grep -v '^\[hwloc' err)" ''

# ---- what goes wrong in a run ----

for mode in hang join; do
    status "a rank that hangs, $mode" 3 plain 3 "$prog" $mode 0 nccl
    has 'who, where, what, how much, for whom' err \
        "of 3 in group 'data' (world rank 1): all-reduce of 64 bf16 elements stood still for 1.5 s, waiting for rank 2"
done
status 'a rank that hangs, over TCP' 3 plain 3 "$prog" hang 0 auto
has 'and for whom' err 'all-reduce of 64 bf16 elements stood still for 1.5 s, waiting for rank 2'
status 'a rank that is killed, over TCP' 3 plain 3 "$prog" die 0 auto
has 'is missed at once' err "from rank 2: world rank 2 has closed the connection"
status 'counts that differ, over TCP' 3 plain 2 "$prog" mismatch 0 auto
has 'are named' err 'all-reduce of 64 bf16 elements: from rank 1: the message has 66 bytes, not 128'
status 'counts that differ, by NCCL' 3 plain 2 "$prog" mismatch 0 nccl
has 'are NCCL'"'"'s to find' err "in group 'data' (world rank 0): all-reduce: NCCL: invalid usage"
FAKE_NCCL_FAIL=1 status 'an error while the call runs' 3 plain 2 "$prog" stuck 0 nccl
has 'is asked for' err "(world rank 0): all-reduce: NCCL: remote process exited or there was a network error"

# ---- what goes wrong before ----

QUERN_NCCL=/no/such/libnccl.so status 'no NCCL' 3 plain 2 "$prog" all 0 nccl
has 'is said' err 'cannot open NCCL: /no/such/libnccl.so'
WORLD_SIZE=2 RANK=0 status 'no address' 3 "$prog" all 0 tcp
has 'is said' err 'MASTER_PORT is not set'
WORLD_SIZE=2 RANK=0 MASTER_PORT=29500 status 'no address' 3 "$prog" all 0 tcp
has 'is said' err 'MASTER_ADDR, the address of rank 0, is not set'
WORLD_SIZE=2 RANK=2 status 'a rank too many' 3 "$prog" all 0 tcp
has 'is said' err 'rank 2 of 2 ranks cannot be'
WORLD_SIZE=2 RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=70000 status 'no port' 3 "$prog" all 0 tcp
has 'is said' err "MASTER_PORT: '70000' is no port"
WORLD_SIZE=3 RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(port) status 'ranks that do not come' 3 "$prog" hang 0 tcp
has 'are named' err 'rank 0 of 3 has waited in vain for 2 ranks: 1, 2'
WORLD_SIZE=2 RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(port) status 'no rank 0' 3 "$prog" hang 0 tcp
has 'is named' err 'cannot reach 127.0.0.1, port '

# Strangers: whoever talks something else, says nothing, or is of another run, while ranks are still to come.
p=$(port)
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$p
WORLD_SIZE=2 RANK=0 timeout 60 "$prog" all 0 auto >out0 2>err0 &
zero=$!
for _ in $(seq 100); do (: >"/dev/tcp/127.0.0.1/$p") 2>/dev/null && break; sleep 0.05; done
exec 7<>"/dev/tcp/127.0.0.1/$p" # says nothing
knock() { ("$@" >"/dev/tcp/127.0.0.1/$p") 2>/dev/null; } # in a process of its own: turned away, it dies of SIGPIPE
for _ in 1 2 3; do knock printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'; done
knock head -c 100000 /dev/urandom
knock printf 'quernTCP'
knock printf 'quernTCP\x02\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
WORLD_SIZE=5 RANK=1 status 'a rank of another run' 3 "$prog" all 0 tcp
has 'is turned away' err "rank 0 at 127.0.0.1, port $p, has closed the connection"
WORLD_SIZE=2 RANK=1 check 'the right one is let in' "$prog" all 0 auto
wait $zero && ok 'and rank 0 has not been held up' || bad 'and rank 0 has not been held up' "$(cat err0)"
exec 7>&-
has 'who knocked is told' err0 'a connection was turned away: no rank of ours'
has 'and who was of another run' err0 'a connection was turned away: a rank of another run, of 5 ranks'
finish
