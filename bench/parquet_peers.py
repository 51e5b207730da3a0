"""Parquet for bench/parquet.sh:

    make FOLDER SHARED   200 MB of prose with FineWeb's columns: FOLDER/CODEC.parquet
    json FILE            pyarrow: row group by row group, to_pylist(), json.dumps() of each row
    orjson FILE          the same with orjson, the fastest of Python's writers
    decode FILE          pyarrow alone: into columns, of which no line is made
    duckdb FILE          DuckDB: copy to JSON lines, all in C++
    arrow FROM TO        pyarrow: JSON lines to Parquet
    duckdb-write FROM TO the same by DuckDB
"""
import json
import os
import subprocess
import sys

what, *args = sys.argv[1:]


def groups(path):
    import pyarrow.parquet as pq

    f = pq.ParquetFile(path)
    return (f.read_row_group(g, use_threads=False) for g in range(f.num_row_groups))


def make(folder, shared):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, size = [], 0
    for name in "books-dev", "docs-dev", "man-dev":
        prose = os.path.join(shared, "data/text/prose", name + ".jsonl.zst")
        for line in subprocess.Popen(["zstd", "-dqc", prose], stdout=subprocess.PIPE).stdout:
            d = json.loads(line)
            for i in range(0, len(d["text"]), 6000):
                text, n = d["text"][i : i + 6000], len(rows)
                if size < 200e6:
                    rows.append({"text": text, "id": "%s/%d" % (d["id"], i), "dump": "CC-MAIN-2013-20",
                                 "url": "http://example.org/%d" % n, "date": "2013-05-18T05:45:00Z",
                                 "file_path": "s3://commoncrawl/crawl-data/x/%d.warc.gz" % (n // 1000), "language": "en",
                                 "language_score": 0.5 + n % 977 / 2000, "token_count": len(text) // 4})
                size += len(text)
    for codec in "zstd", "snappy":
        pq.write_table(pa.Table.from_pylist(rows), "%s/%s.parquet" % (folder, codec), compression=codec, row_group_size=10000)


if what == "make":
    make(*args)
elif what == "json":
    with open(os.devnull, "w") as out:
        for table in groups(args[0]):
            for row in table.to_pylist():
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
elif what == "orjson":
    import orjson

    with open(os.devnull, "wb") as out:
        for table in groups(args[0]):
            for row in table.to_pylist():
                out.write(orjson.dumps(row) + b"\n")
elif what == "decode":
    for table in groups(args[0]):
        del table
elif what == "duckdb":
    import duckdb

    duckdb.sql("set threads = 1")
    duckdb.sql("copy (select * from '%s') to '/dev/null' (format json)" % args[0])
elif what == "arrow":
    import pyarrow as pa
    import pyarrow.json
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    options = pyarrow.json.ReadOptions(use_threads=False, block_size=64 << 20)
    pq.write_table(pyarrow.json.read_json(args[0], options), args[1], compression="zstd", row_group_size=20000)
elif what == "duckdb-write":
    import duckdb

    duckdb.sql("set threads = 1")
    duckdb.sql("copy (select * from read_json('%s', format = 'newline_delimited')) to '%s' (format parquet, compression zstd)" % tuple(args))
