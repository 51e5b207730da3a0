#!/usr/bin/env bash
# Parquet to JSON lines and back beside pyarrow and DuckDB, by one thread: processor seconds, the median of three.
# $PEERS is the python of an environment with pyarrow, duckdb and orjson; the prose is that of $SHARED.
. bench/lib.sh
PEERS=${PEERS:-python3}
if [ ! -r "$SHARED/data/text/prose/books-dev.jsonl.zst" ] || ! "$PEERS" -c 'import pyarrow, duckdb, orjson' 2>/dev/null; then
    row parquet - - 'left out: SHARED has no prose, or PEERS no pyarrow, duckdb and orjson'
    exit 0
fi
program bzip2_bench
"$PEERS" bench/parquet_peers.py make "$T" "$SHARED" || exit 1
for codec in zstd snappy; do
    f=$T/$codec.parquet
    own=$(cpu "$B/bench/bzip2_bench" "$f" 1)
    row "parquet $codec: quern" "$own" s 'to JSON lines'
    for peer in json orjson decode duckdb; do
        theirs=$(cpu "$PEERS" bench/parquet_peers.py $peer "$f")
        row "parquet $codec: $peer" "$theirs" s "quern takes $(over "$own" "$theirs") of it"
    done
done
"$B/bin/quern-mix" -q --order input "$T/zstd.parquet" -o "$T/x.jsonl"
plain=$(cpu "$B/bin/quern-mix" -q --order input "$T/x.jsonl" -o "$T/y.jsonl")
own=$(cpu "$B/bin/quern-mix" -q --order input "$T/x.jsonl" -o "$T/y.parquet")
row 'parquet written: quern mix' "$own" s "$plain of it without: lines to lines"
for peer in arrow duckdb-write; do
    row "parquet written: $peer" "$(cpu "$PEERS" bench/parquet_peers.py $peer "$T/x.jsonl" "$T/y.parquet")" s ''
done
