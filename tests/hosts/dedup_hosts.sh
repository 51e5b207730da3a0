#!/bin/bash
# Deduplication over several hosts: network namespaces joined by a bridge, in which Open MPI starts ranks without
# ssh; messages by TCP only.  Needs root and ip (iproute2).  HOSTS=N for more.
. "$ROOT/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
HOSTS=${HOSTS:-3}
data=$SHARED/data/dedup/planted-dev/docs.jsonl.zst
net=quern$$
clean() {
    for i in $(seq "$HOSTS"); do ip netns del "$net-$i" 2>/dev/null; done
    ip link del "$net" 2>/dev/null
    rm -rf "$scratch"
}
trap clean EXIT

# Host i is 10.77.0.i.
hosts_up() {
    ip link add "$net" type bridge && ip link set "$net" up || return 1
    for i in $(seq "$HOSTS"); do
        ip netns add "$net-$i" && ip link add "$net.$i" type veth peer name eth0 netns "$net-$i" &&
            ip link set "$net.$i" master "$net" up && ip -n "$net-$i" addr add "10.77.0.$i/24" dev eth0 &&
            ip -n "$net-$i" link set eth0 up && ip -n "$net-$i" link set lo up || return 1
    done
}
# What mpirun calls for another host, in place of ssh: agent HOST COMMAND...
cat >agent <<END
#!/bin/sh
host=\$1
shift
exec ip netns exec "$net-\${host##*.}" unshare --uts sh -c "hostname host\${host##*.}; \$*"
END
chmod +x agent
on_hosts() { # RANKS-A-HOST COMMAND...
    local list='' each=$1
    shift
    for i in $(seq "$HOSTS"); do list=$list${list:+,}10.77.0.$i:$each; done
    ./agent 10.77.0.1 timeout -k 10 300 mpirun --host "$list" --mca plm_rsh_agent "$PWD/agent" --mca btl tcp,self \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 -x PATH -x LD_LIBRARY_PATH "$@"
}
sent() { # bytes that left all hosts
    for i in $(seq "$HOSTS"); do ip netns exec "$net-$i" cat /sys/class/net/eth0/statistics/tx_bytes; done | awk '{ n += $1 } END { print n }'
}

check 'hosts' hosts_up
mkdir in
zstd -dcq "$data" | split -l 1500 -d -a 3 --additional-suffix=.jsonl - in/
check 'ranks on every host' on_hosts 1 sh -c 'hostname'
equal 'by their names' "$(sort out | tr '\n' ' ')" "$(for i in $(seq "$HOSTS"); do printf 'host%s ' "$i"; done)"
for kind in fuzzy exact; do
    more=()
    [ $kind = fuzzy ] && more=(--clusters want.clusters)
    check "$kind, one process" quern-dedup "$kind" -q -o want --rejects want.rejects "${more[@]}" in/*
    [ $kind = fuzzy ] && more=(--clusters got.clusters)
    for each in 1 2; do
        before=$(sent)
        check "$kind, $each ranks on each of $HOSTS hosts" on_hosts $each quern-dedup "$kind" -v -o got --rejects got.rejects \
            "${more[@]}" in/*
        grep 'went to other ranks' err
        echo "over the wire, $((($(sent) - before) / 20000)) bytes a document with headers and what rank 0 writes"
        same "$kind: documents" got want
        same "$kind: rejects" got.rejects want.rejects
        [ $kind = exact ] || same "$kind: clusters" got.clusters want.clusters
    done
done
finish
