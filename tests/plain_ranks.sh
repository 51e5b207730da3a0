# shellcheck shell=bash
# Ranks without a launcher, behind tests/lib.sh.

# port: a number at which nobody listens, of the hundred that are this test's.
port() {
    local p
    while p=$((${TEST_PORTS:-20000} + RANDOM % 100)); (: >"/dev/tcp/127.0.0.1/$p") 2>/dev/null; do :; done
    echo $p
}

# plain N COMMAND...: N ranks as torchrun would start them, for $PATIENCE seconds at most.  The first status that is not 0, of a
# signal last.
# shellcheck disable=SC2317
plain() {
    local n=$1 i pids='' rc=0 one p
    shift
    p=$(port)
    for ((i = 0; i < n; i++)); do
        RANK=$i LOCAL_RANK=$i WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$p timeout "${PATIENCE:-300}" "$@" &
        pids+=" $!"
    done
    for i in $pids; do
        wait "$i"
        one=$?
        if [ $rc = 0 ] || { [ $rc -ge 124 ] && [ $one != 0 ]; }; then rc=$one; fi
    done
    return $rc
}

# as_plain MODEL N FIELDS ARG..., behind tests/train_lib.sh: N plain processes with ARG train as MODEL.jsonl says, and the
# stand-in for NCCL complains of nothing.
# shellcheck disable=SC2086,SC2154
as_plain() {
    local name=$1 n=$2 fields=$3
    shift 3
    rm -f log.jsonl
    check "$name, $n ranks: $*" plain $n quern-train ${!name} "$@" --log-file log.jsonl
    equal "$name, $n ranks: $*: no complaint" "$(grep 'fake NCCL' err)" ''
    check "$name, $n ranks: $*: the same training" close "$name.jsonl" log.jsonl $fields
}
