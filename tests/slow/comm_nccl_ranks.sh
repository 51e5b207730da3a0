# shellcheck shell=bash
# Ranks of other numbers, groups and large messages without MPI, over TCP, and calls on a device by NCCL, for which tests/fake_nccl.c stands: tests/comm_ranks.c as plain
# processes, as torchrun or srun would start them, and under mpirun.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated OMP_NUM_THREADS=1
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so QUERN_NCCL=$B/tests/fake-nccl.so
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
prog=$B/tests/comm_ranks

# shellcheck source=tests/plain_ranks.sh
. "$ROOT/tests/plain_ranks.sh"

for n in 1 4; do
    check "over TCP, every call, $n ranks" plain $n "$prog" all 0 auto
    check "by NCCL beside TCP, every call, $n ranks" plain $n "$prog" all 0 nccl
    has 'and nothing is amiss' <(cat out err) "all: $n ranks, nccl and "
    check "by NCCL beside MPI, every call, $n ranks" timeout -k 10 600 mpirun --oversubscribe -n $n "$prog" all 0 nccl
    equal 'no complaint' "$(grep -v '^\[hwloc' err)" ''
done
check 'over TCP, more than a reduction takes at a time' plain 3 "$prog" large 0 auto
check 'over TCP, a large message' plain 2 "$prog" huge 50000003 auto
check 'by NCCL, a large message' plain 2 "$prog" huge 5000003 nccl
check 'over TCP, subgroups, calls in flight' plain 4 "$prog" groups 0 auto
check 'by NCCL, subgroups, calls in flight' plain 4 "$prog" groups 0 nccl
QUERN_NCCL=$B/tests/fake-nccl-old.so check 'by a library that cannot split groups' plain 3 "$prog" groups 0 nccl
equal 'no complaint' "$(cat err)" ''
finish
