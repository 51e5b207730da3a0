# shellcheck shell=bash
# More elements in one call than an int counts: 5 GB of memory.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
case $B in /*) ;; *) B=$ROOT/$B ;; esac
export QUERN_MPI=$B/lib/quern-mpi.so
check 'more than 2^31 elements' timeout -k 10 600 mpirun --oversubscribe -n 2 "$B/tests/comm_ranks" huge 2200000000
finish
