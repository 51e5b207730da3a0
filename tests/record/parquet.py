"""Small Parquet files by pyarrow, DuckDB and datatrove, and the rows that pyarrow reads of them, into tests/data/parquet:
NAME.parquet and NAME.jsonl.  A row is a line of JSON as docs/parquet.md says; tests/cli/parquet.sh compares the bytes.

    python parquet.py [FOLDER]
"""

import base64
import datetime as dt
import decimal
import json
import math
import os
import random
import sys
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document
from datatrove.pipeline.writers.parquet import ParquetWriter

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../data/parquet")
os.makedirs(folder, exist_ok=True)
draw = random.Random(7)


def at(name):
    return os.path.join(folder, name)


def number(x):
    """The shortest digits that read back as x, with an exponent where that is shorter, as std::to_chars writes them."""
    sign, digits, exponent = decimal.Decimal(repr(x)).normalize().as_tuple()
    digits = "".join(map(str, digits))
    power = exponent + len(digits) - 1
    if digits == "0":
        return "-0" if sign else "0"
    science = digits[0] + ("." + digits[1:] if digits[1:] else "") + "e%+03d" % power
    if exponent >= 0:
        fixed = str(int(x)).lstrip("-")
    elif power >= 0:
        fixed = digits[: power + 1] + "." + digits[power + 1 :]
    else:
        fixed = "0." + "0" * (-power - 1) + digits
    return "-" * sign + min(fixed, science, key=len)


def dump(v):
    if isinstance(v, float):
        return number(v)
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, list):
        return "[" + ",".join(map(dump, v)) + "]"
    if isinstance(v, dict):
        return "{" + ",".join(dump(k) + ":" + dump(x) for k, x in v.items()) + "}"
    return json.dumps(v, ensure_ascii=False)


def plain(v, t):
    """A value of to_pylist(), of Arrow type t, as JSON."""
    if v is None:
        return None
    if pa.types.is_struct(t):
        return {f.name: plain(v[f.name], f.type) for f in t}
    if pa.types.is_map(t):
        keys = [plain(k, t.key_type) for k, _ in v]
        return {k if isinstance(k, str) else dump(k): plain(x, t.item_type) for k, (_, x) in zip(keys, v)}
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return [plain(x, t.value_type) for x in v]
    if isinstance(t, pa.JsonType):
        return json.loads(v)
    if isinstance(v, bytes):
        try:
            return v.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(v).decode()}
    if isinstance(v, uuid.UUID):
        return str(v)
    if pa.types.is_timestamp(t):
        return v.isoformat().replace("+00:00", "Z")
    if isinstance(v, (dt.date, dt.time)):
        return v.isoformat()
    if isinstance(v, float) and not math.isfinite(v):
        return None
    return v


def record(name, rows=None):
    """The rows of NAME.parquet by pyarrow, in ROWS.jsonl."""
    table = pq.read_table(at(name + ".parquet"))
    with open(at((rows or name) + ".jsonl"), "w") as out:
        for row in table.to_pylist():
            out.write(dump({c.name: plain(row[c.name], c.type) for c in table.schema}) + "\n")


def write(name, table, rows=None, **how):
    pq.write_table(table, at(name + ".parquet"), **how)
    record(name, rows)


words = [
    w for w in 'the of and quick brown fox jumps over lazy dog naïve 東京 Straße 🙂 tab\there quote" back\\slash'.split(" ")
]


def text(n):
    return " ".join(draw.choice(words) for _ in range(n))


def maybe(p, v):
    return None if draw.random() < p else v


# ---- encodings: numbers that are near each other and far, texts with common beginnings ----
n = 150
numbers = pa.table(
    {
        "i32": pa.array([maybe(0.2, draw.choice([i, -i, 2**31 - 1, -(2**31)])) for i in range(n)], pa.int32()),
        "i64": pa.array([draw.choice([1000000 + i, 2**63 - 1, -(2**63)]) for i in range(n)], pa.int64()),
        "f": pa.array(
            [maybe(0.3, draw.choice([0.1, 1 / 3, -0.0, 1e30, math.inf, math.nan, i])) for i in range(n)], pa.float32()
        ),
        "d": pa.array([draw.random() * 10 ** draw.randint(-9, 9) for i in range(n)], pa.float64()),
        "b": pa.array([maybe(0.2, i % 7 < 3) for i in range(n)], pa.bool_()),
        "s": pa.array([maybe(0.2, "https://example.org/page/%04d/%s" % (i // 7, text(2))) for i in range(n)], pa.string()),
        "h": pa.array([b"%08d" % (i * i) for i in range(n)], pa.binary(8)),
    }
)
per_column = {
    "plain": {},
    "delta": {
        "i32": "DELTA_BINARY_PACKED",
        "i64": "DELTA_BINARY_PACKED",
        "s": "DELTA_BYTE_ARRAY",
        "h": "DELTA_BYTE_ARRAY",
        "b": "RLE",
    },
    "lengths": {
        "s": "DELTA_LENGTH_BYTE_ARRAY",
        "d": "BYTE_STREAM_SPLIT",
        "f": "BYTE_STREAM_SPLIT",
        "i32": "BYTE_STREAM_SPLIT",
        "i64": "BYTE_STREAM_SPLIT",
        "h": "BYTE_STREAM_SPLIT",
    },
}
for name, encoding in per_column.items():
    for version in "1.0", "2.0":
        write(
            "encoding_%s_v%s" % (name, version[0]),
            numbers,
            "encoding",
            use_dictionary=False,
            column_encoding=encoding or None,
            compression="none",
            data_page_version=version,
            data_page_size=512,
            write_batch_size=20,
            write_page_checksum=version == "1.0",
        )
few = pa.table(
    {
        "k": pa.array([maybe(0.2, draw.choice(words)) for _ in range(300)]),
        "i": pa.array([draw.choice([1, 7, 2**40]) for _ in range(300)]),
        "u": pa.array(["only once %d" % i for i in range(300)]),
    }
)
for version in "1.0", "2.0":
    write(
        "dictionary_v" + version[0],
        few,
        "dictionary",
        compression="none",
        data_page_version=version,
        row_group_size=130,
        data_page_size=200,
        write_batch_size=50,
        dictionary_pagesize_limit=1500,
    )

# ---- no rows: a row group whose columns are at offset 0 ----
write("empty", few.slice(0, 0))

# ---- codecs ----
documents = pa.table({"text": [text(draw.randint(1, 60)) for _ in range(40)], "id": ["doc-%d" % i for i in range(40)]})
pq.write_table(documents, at("brotli.parquet"), compression="brotli")
for codec in "snappy", "gzip", "zstd", "lz4", "none":
    for version in "1.0", "2.0":
        write(
            "codec_%s_v%s" % (codec, version[0]),
            documents,
            "codec",
            compression=codec,
            data_page_version=version,
            row_group_size=25,
            use_dictionary=False,
        )


# ---- nesting ----
inner = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
nested = pa.table(
    {
        "l": pa.array([None, [], [None], ["x"], ["y", None, "z"]] * 4, pa.list_(pa.string())),
        "ll": pa.array([[[1, 2], []], None, [[]], [None, [3, None]], []] * 4, pa.list_(pa.list_(pa.int64()))),
        "s": pa.array(
            [{"a": 1, "b": ["p"]}, None, {"a": None, "b": None}, {"a": 4, "b": []}, {"a": 5, "b": [None, "q"]}] * 4, inner
        ),
        "ls": pa.array(
            [[{"a": 1, "b": ["p", "q"]}, None, {"a": None, "b": []}], [], None, [{"a": 2, "b": None}], [None]] * 4,
            pa.list_(inner),
        ),
        "m": pa.array([[("k", 1), ("l", None)], [], None, [("z", 3)], [('é"', 0)]] * 4, pa.map_(pa.string(), pa.int32())),
        "mi": pa.array(
            [[(7, ["a"]), (8, None)], [], None, [(9, [])], [(10, [None])]] * 4, pa.map_(pa.int32(), pa.list_(pa.string()))
        ),
        "text": ["t%d" % i for i in range(20)],
    }
)
for version in "1.0", "2.0":
    write(
        "nested_v" + version[0],
        nested,
        "nested",
        data_page_version=version,
        row_group_size=7,
        data_page_size=16,
        write_batch_size=3,
        compression="snappy",
    )
write(
    "nested_required",
    pa.table(
        {"l": pa.array([["a", "b"], [], ["c"]], pa.list_(pa.field("element", pa.string(), False)))},
        schema=pa.schema([pa.field("l", pa.list_(pa.field("element", pa.string(), False)), False)]),
    ),
)
write("nested_old_names", nested.select(["l", "ls"]), use_compliant_nested_type=False)

# ---- logical types ----
when = [
    dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    None,
    dt.datetime(1969, 12, 31, 23, 0, 0, 1000),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31),
]
types = pa.table(
    {
        "date": pa.array([w and w.date() for w in when], pa.date32()),
        "ms": pa.array([w and w.replace(microsecond=w.microsecond // 1000 * 1000) for w in when], pa.timestamp("ms")),
        "us": pa.array(when, pa.timestamp("us")),
        "utc": pa.array(when, pa.timestamp("us", "UTC")),
        "ns": pa.array([1, None, 10**9, -1, 1234567890123456789, 86400 * 10**9], pa.timestamp("ns")),
        "t32": pa.array([0, 1, None, 86399999, 3600000, 60001], pa.time32("ms")),
        "t64": pa.array([0, 1, None, 86399999999, 3600000000, 60000001], pa.time64("us")),
        "dec9": pa.array(
            [decimal.Decimal(x) if x else None for x in ("1.25", "-0.01", None, "0.00", "-99999.99", "12.30")],
            pa.decimal128(7, 2),
        ),
        "dec38": pa.array(
            [decimal.Decimal(x) if x else None for x in ("1.25", "-0.01", None, "0.00", "-" + "9" * 28 + ".99", "12.30")],
            pa.decimal128(38, 2),
        ),
        "dec76": pa.array(
            [decimal.Decimal(x) if x else None for x in ("1", "-1", None, "0", "-" + "9" * 70, "1" + "0" * 60)],
            pa.decimal256(76, 0),
        ),
        "u8": pa.array([0, 255, None, 1, 2, 3], pa.uint8()),
        "u32": pa.array([0, 2**32 - 1, None, 1, 2, 3], pa.uint32()),
        "u64": pa.array([0, 2**64 - 1, None, 1, 2, 3], pa.uint64()),
        "i8": pa.array([0, -128, None, 127, 2, 3], pa.int8()),
        "half": pa.array([0, 1.5, None, -65504, 6e-8, math.inf], pa.float16()),
        "uuid": pa.array(
            [uuid.UUID(int=i).bytes if i != 2 else None for i in (0, 1, 2, 2**127 + 5, 12345678901234567890, 7)], pa.uuid()
        ),
        "json": pa.array(['{"a":[1,2.5,"x"]}', '"s"', None, "[]", "null", "-1"], pa.json_()),
        "bytes": pa.array([b"text", b"\xff\x00", None, b"", b"\xf0\x9f\x99\x82", b"abc\x80"], pa.binary()),
        "nothing": pa.array([None] * 6, pa.null()),
        "large": pa.array(["a", "b", None, "", "naïve", "\x01\u2028"], pa.large_string()),
    }
)
for version in "1.0", "2.0":
    write(
        "types_v" + version[0],
        types,
        "types",
        data_page_version=version,
        compression="zstd",
        store_decimal_as_integer=version == "2.0",
    )
write(
    "int96",
    pa.table({"t": pa.array([1, None, 10**18, -1, 1234567890123456789], pa.timestamp("ns"))}),
    use_deprecated_int96_timestamps=True,
)

# ---- schemas of corpora ----
fineweb = pa.table(
    {
        "text": [text(draw.randint(20, 80)) for _ in range(12)],
        "id": ["<urn:uuid:%s>" % uuid.UUID(int=draw.getrandbits(128)) for _ in range(12)],
        "dump": ["CC-MAIN-2013-20"] * 12,
        "url": ["http://example.org/%d" % i for i in range(12)],
        "date": ["2013-05-18T05:45:%02dZ" % i for i in range(12)],
        "file_path": [
            "s3://commoncrawl/crawl-data/CC-MAIN-2013-20/segments/1/warc/CC-MAIN-%05d.warc.gz" % (i // 4) for i in range(12)
        ],
        "language": ["en"] * 12,
        "language_score": [round(draw.random(), 6) for _ in range(12)],
        "token_count": [draw.randint(50, 9000) for _ in range(12)],
    }
)
write("fineweb", fineweb, compression="snappy", row_group_size=5)
dclm = pa.table(
    {
        "bff_contained_ngram_count_before_dedupe": pa.array([maybe(0.3, i) for i in range(9)], pa.int64()),
        "language_id_whole_page_fasttext": pa.array(
            [{"en": draw.random()} for _ in range(9)], pa.struct([("en", pa.float64())])
        ),
        "metadata": pa.array(
            [{"Content-Length": str(i), "WARC-Date": "2014-08-20T06:48:26Z", "WARC-Refers-To": None} for i in range(9)],
            pa.struct([("Content-Length", pa.string()), ("WARC-Date", pa.string()), ("WARC-Refers-To", pa.string())]),
        ),
        "previous_word_count": pa.array(range(9), pa.int64()),
        "text": [text(40) for _ in range(9)],
        "url": ["http://example.com/%d" % i for i in range(9)],
        "warcinfo": ["robots: classic\r\nhostname: ip-10\r\n"] * 9,
        "fasttext_openhermes_reddit_eli5_vs_rw_v2_bigram_200k_train_prob": [draw.random() for _ in range(9)],
    }
)
write("dclm", dclm, compression="zstd", row_group_size=4)
with ParquetWriter(folder, "datatrove.parquet", compression="zstd", batch_size=4) as w:  # puts the rank in front of the name
    for i in range(10):
        w.write(
            Document(
                text=text(30),
                id="d/%d" % i,
                metadata={"url": "http://example.net/%d" % i, "score": i / 3, "tags": ["a"] * (i % 3 + 1)},
            )
        )
os.replace(at("000_datatrove.parquet"), at("datatrove.parquet"))
record("datatrove")

duckdb.sql(
    "create table t as select i as id, 'row ' || i as text, [i, i + 1] as l, {'a': i, 'b': 'x'} as s, "
    "date '2020-01-01' + i::int as d, i % 3 = 0 as b from range(20) r(i)"
)
for name, how in ("duckdb_v1", "compression snappy"), ("duckdb_v2", "compression zstd, parquet_version v2"):
    duckdb.sql("copy t to '%s' (format parquet, %s)" % (at(name + ".parquet"), how))
    record(name, "duckdb")
