#!/usr/bin/env bash
# Files and JSON lines, on one of the shared texts.  Peers: Python's gzip (zlib) and json.
. bench/lib.sh
f=$SHARED/data/text/prose/docs-dev.jsonl.zst
if [ ! -r "$f" ]; then
    printf 'io\t-\t-\tleft out: no %s\n' "$f"
    exit 0
fi
program io_bench
"$B/bench/io_bench" "$f" "$T" || exit 1
if [ -z "$PEERS" ]; then
    printf 'io peers\t-\t-\tleft out: no PEERS\n'
    exit 0
fi
zstd -dqc "$f" >"$T/x.jsonl" 2>/dev/null || exit 0
"$PEERS" - "$T/x.jsonl" <<'PY'
import gzip, json, sys, time, zlib
data = open(sys.argv[1], "rb").read()
packed = gzip.compress(data)
def show(name, f, size):
    times = []
    for _ in range(3):
        t = time.process_time()
        f()
        times.append(time.process_time() - t)
    print("%s\t%.0f\tMB/s\tPython" % (name, size / sorted(times)[1] / 1e6), flush=True)
show("peer gzip read (zlib)", lambda: zlib.decompress(packed, 31), len(data))
lines = data.splitlines()
show("peer json read", lambda: [json.loads(x) for x in lines], len(data))
PY
