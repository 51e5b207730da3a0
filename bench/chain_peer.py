#!/usr/bin/env python3
"""chain_peer.py pack FOLDER OUT.warc.gz: HTML files as a web archive, a gzip member a record, as crawls have them.
chain_peer.py run FOLDER OUT: datatrove from the archives of FOLDER to filtered documents, in one process."""
import gzip
import os
import sys


def pack(folder, out):
    with open(out, "wb") as f:
        for i, name in enumerate(sorted(os.listdir(folder))):
            with open(os.path.join(folder, name), "rb") as page:
                data = page.read()
            data = gzip.decompress(data) if name.endswith(".gz") else data
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)
            f.write(gzip.compress(
                b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-%012d>\r\n"
                b"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://example.org/%d\r\n"
                b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
                % (i, i, len(http), http), 6, mtime=0))


def run(folder, out):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.extractors import Trafilatura
    from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
    from datatrove.pipeline.readers import WarcReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    LocalPipelineExecutor(
        [WarcReader(folder, glob_pattern="*.warc.gz"), Trafilatura(favour_precision=True, timeout=10),
         GopherQualityFilter(), GopherRepetitionFilter(), FineWebQualityFilter(), JsonlWriter(out)],
        tasks=1, workers=1, logging_dir=os.path.join(out, "log"), skip_completed=False).run()


{"pack": pack, "run": run}[sys.argv[1]](*sys.argv[2:])
