#!/usr/bin/env python3
"""An index as columns whose row groups have awkward statistics, by pyarrow, and what conditions select of it.

    crawl_prune.py OUT

OUT/prune.parquet has statistics, OUT/prune_none.parquet the same rows without.  OUT/prune.txt has conditions, each behind a #, and
the offsets of the records that meet them, selected in Python: what has no such field meets no test.
"""
import os, sys
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 6
HOSTS = ["a.at", "www.b.at", "c.de", "shop.c.de", "www2.c.de", "d.co.uk", "e.co.uk", "\u00fc.fr", "192.0.2.7", "xn--bte-sna.zz"]


def rows():
    for i in range(60):
        group, k = i // ROWS, i % ROWS
        host = HOSTS[group]
        yield {
            "url_surtkey": ",".join(reversed(host.removeprefix("www2.").removeprefix("www.").split("."))) + f")/p{i:02}",
            "url": f"https://{host}/p{i:02}",
            # null in some rows and in a whole group: then it is the URL's
            "url_host_name": None if group == 2 or k == 1 and group == 6 else host,
            "url_host_tld": None if host[0].isdigit() else host.rsplit(".", 1)[-1],
            "fetch_time": datetime(2025, 1, 1 + group, 23, 59, 59, 500000 * (k % 2), timezone.utc) + timedelta(seconds=k // 2),
            "fetch_status": None if group == 3 or (group == 4 and k > 3) else [200, 404, 301][group % 3] + (k == 5),
            "content_mime_type": ["text/html", "text/plain", None][k % 3],
            "content_mime_detected": None if group in (1, 5) or k == 2 else "application/pdf" if group == 2 else "text/html",
            "content_languages": [None, "deu", "deu,eng", "deu+x", "eng", "fra,deu"][(group + k // 3) % 6],
            "content_digest": "x" * 70 + f"{i:02}",
            "warc_filename": "a.warc.gz",
            "warc_record_offset": i * 1000,
            "warc_record_length": 100 + group * 10 + k,
        }


def conditions(r):
    """Conditions and what they are in Python."""
    host = lambda x: x["url_host_name"] or x["url"].split("/")[2]
    mime = lambda x: x["content_mime_detected"] or x["content_mime_type"]
    lang = lambda x: x["content_languages"] and x["content_languages"].split(",")[0]
    date = lambda x: x["fetch_time"].strftime("%Y-%m-%dT%H:%M:%S") + (f".{x['fetch_time'].microsecond:06}" if x["fetch_time"].microsecond else "") + "Z"
    status, length, digest = (lambda x: x["fetch_status"]), (lambda x: x["warc_record_length"]), (lambda x: x["content_digest"])
    tld = lambda x: x["url_host_tld"]
    some = lambda v, test: v is not None and test(v)
    yield "status = 404", lambda x: status(x) == 404
    yield "status != 404", lambda x: some(status(x), lambda v: v != 404)
    yield "not status = 404", lambda x: status(x) != 404
    yield "status in (301, 302)", lambda x: status(x) in (301, 302)
    yield "not status in (200, 201, 404, 405, 301, 302)", lambda x: status(x) is None
    yield "status < 200 or status > 405", lambda x: False
    yield "status >= 405", lambda x: some(status(x), lambda v: v >= 405)
    yield "not status <= 404", lambda x: not some(status(x), lambda v: v <= 404)
    yield "length >= 190 or length < 101", lambda x: length(x) >= 190 or length(x) < 101
    yield "not (length > 105 and length <= 190)", lambda x: not 105 < length(x) <= 190
    yield "host = c.de", lambda x: host(x) == "c.de"
    yield "host in (a.at, xn--bte-sna.zz)", lambda x: host(x) in ("a.at", "xn--bte-sna.zz")
    yield "host < b", lambda x: host(x) < "b"
    yield "host = e.co.uk", lambda x: host(x) == "e.co.uk"
    yield "host = 192.0.2.7", lambda x: host(x) == "192.0.2.7"
    yield "domain = c.de", lambda x: host(x).endswith("c.de")
    yield "domain = co.uk or tld = zz", lambda x: tld(x) == "zz"
    yield "tld = uk and length < 155", lambda x: tld(x) == "uk" and length(x) < 155
    yield "not tld > a", lambda x: tld(x) is None
    yield "url ~ '^https://www2\\.c\\.de/'", lambda x: x["url"].startswith("https://www2.c.de/")
    yield "key ~ '^at,' and length != 102", lambda x: x["url_surtkey"].startswith("at,") and length(x) != 102
    yield "key < b", lambda x: x["url_surtkey"] < "b"
    yield "mime = application/pdf", lambda x: mime(x) == "application/pdf"
    yield "mime = text/plain", lambda x: mime(x) == "text/plain"
    yield "mime != text/html", lambda x: some(mime(x), lambda v: v != "text/html")
    yield "mime_type > text/html", lambda x: some(x["content_mime_type"], lambda v: v > "text/html")
    yield "lang = deu", lambda x: lang(x) == "deu"
    yield "lang > deu and lang < eng", lambda x: some(lang(x), lambda v: "deu" < v < "eng")
    yield "not lang != deu", lambda x: lang(x) in (None, "deu")
    yield "langs = 'deu,eng'", lambda x: x["content_languages"] == "deu,eng"
    yield "date < 2025-01-02", lambda x: date(x) < "2025-01-02"
    yield "date >= 2025-01-10T23:59:59.5", lambda x: date(x) >= "2025-01-10T23:59:59.5"
    yield "date <= 2025-01-01T23:59:59.500000Z", lambda x: date(x) <= "2025-01-01T23:59:59.500000Z"
    yield "date = 2025-01-05T23:59:59Z", lambda x: date(x) == "2025-01-05T23:59:59Z"
    yield "date > 2025-01-11", lambda x: date(x) > "2025-01-11"
    yield f"digest = {'x' * 70}07", lambda x: digest(x) == "x" * 70 + "07"
    yield f"digest > {'x' * 70}56", lambda x: digest(x) > "x" * 70 + "56"
    yield "digest < x", lambda x: False


def main(out):
    r = list(rows())
    types = {"fetch_time": pa.timestamp("us", tz="UTC"), "fetch_status": pa.int16(), "warc_record_offset": pa.int32(), "warc_record_length": pa.uint32()}
    table = pa.table({k: pa.array([x[k] for x in r], types.get(k, pa.string())) for k in r[0]})
    for name, statistics in ("prune", True), ("prune_none", False):
        pq.write_table(table, os.path.join(out, name + ".parquet"), row_group_size=ROWS, write_statistics=statistics, compression="zstd")
    with open(os.path.join(out, "prune.txt"), "w") as f:
        for where, meets in conditions(r):
            f.write(f"# {where}\n" + "".join(f"{x['warc_record_offset']}\n" for x in r if meets(x)))


main(*sys.argv[1:])
