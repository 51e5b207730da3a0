# shellcheck shell=bash
# Ranks over MPI: tests/comm_ranks.c under mpirun, and what is said when a rank hangs, dies or errs.
. "$ROOT/tests/lib.sh"
# mpirun wants to be told that root is meant, and looks for a remote shell that it does not need.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated OMP_NUM_THREADS=1
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so
# What Open MPI allocated and unloaded has no name any more by which a sanitizer could leave it out.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0"
ranks() { timeout -k 10 600 mpirun --oversubscribe -n "$@"; }
prog=$B/tests/comm_ranks

command -v mpirun >/dev/null || bad 'mpirun is here' 'make deps installs it'
for n in 1 2 ${SWEEP:+4 8}; do
    check "every call, type and size, $n ranks" ranks $n "$prog" all
done
has 'by MPI' out "all: $n ranks, mpi"
check 'three ranks' ranks 3 "$prog" all
check 'more than a reduction takes at a time' ranks 4 "$prog" large
[ -z "${SWEEP-}" ] || check 'more than a message of MPI takes' ranks 2 "$prog" huge 270000003
for n in 2 ${SWEEP:+1 4}; do
    check "subgroups, calls in flight, $n ranks" ranks $n "$prog" groups
done

# A rank that never calls is named by those that wait, and the run ends.
status 'a rank that hangs' 3 ranks 3 "$prog" hang
has 'who, where, what, how much' err \
    "of 3 in group 'data' (world rank "
has 'and for whom' err \
    'all-reduce of 64 bf16 elements stood still for 1.5 s, waiting for rank 2'
status 'a rank that is killed ends the others' 137 ranks 3 "$prog" die
status 'a rank that fails ends the others' 3 ranks 3 "$prog" fail
status 'counts that differ' 3 ranks 2 "$prog" mismatch
has 'are named' err 'all-reduce of 64 bf16 elements: from rank 1: the message has 66 bytes, not 128'

# Without the backend: said plainly.
QUERN_MPI=/no/such/quern-mpi.so status 'no backend' 3 ranks 2 "$prog" all
has 'is the reason' err '2 ranks were started, but cannot be used: cannot open the MPI backend: /no/such/quern-mpi.so'
QUERN_MPI=/no/such/quern-mpi.so check 'one rank needs none' "$prog" all
# Tasks of srun that do not see one another must not each do everything.
SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 status 'srun without PMIx' 3 "$prog" all
check 'doctor' quern doctor
has 'says what ranks go by' out 'Open MPI'
finish
