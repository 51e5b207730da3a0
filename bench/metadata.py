#!/usr/bin/env python3
"""usage: metadata.py warc FOLDER OUT.warc        WCXB's pages (FOLDER/html, FOLDER/ground-truth) as an archive, with their URLs
       metadata.py trafilatura FOLDER OUT.jsonl   title, author and date of each by trafilatura, with its URL
       metadata.py score FOLDER PRED.jsonl [miss FIELD]

score: how often title, author and date are exactly those of the truth: white space folded, small letters, plain quotes
and hyphens; authors as a set of names, set apart by commas, semicolons, "and" or "&"; dates by their first ten characters.
Domains fall into two halves by a hash of the host without "www.": rules were made by looking at misses of the first one
alone, so the figure to believe is that of the second.  miss prints what was not right in the first half."""
import glob
import hashlib
import json
import os
import re
import sys
import unicodedata
from urllib.parse import urlsplit

FIELDS = ("title", "author", "date")


def truths(folder):
    for path in sorted(glob.glob(os.path.join(folder, "ground-truth", "*.json"))):
        with open(path, encoding="utf-8") as f:
            d = json.load(f)
        g = d["ground_truth"]
        kind = ((d.get("_internal") or {}).get("page_type") or {}).get("primary") or "unknown"
        said = {"title": g.get("title"), "author": g.get("author"), "date": g.get("publish_date")}
        yield os.path.basename(path)[:-5], d.get("url") or "", kind, said


def page(folder, name):
    with open(os.path.join(folder, "html", name + ".html"), "rb") as f:
        return f.read()


def write_warc(folder, out):
    with open(out, "wb") as f:
        for name, url, _, _ in truths(folder):
            body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page(folder, name)
            head = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:page:{name}>\r\nWARC-Target-URI: {url}\r\n"
                    f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(body)}\r\n\r\n")
            f.write(head.encode() + body + b"\r\n\r\n")


def run_trafilatura(folder, out):
    import logging

    from trafilatura.utils import load_html
    from trafilatura.metadata import extract_metadata
    logging.disable(logging.CRITICAL)
    with open(out, "w", encoding="utf-8") as f:
        for name, url, _, _ in truths(folder):
            got = {}
            try:
                tree = load_html(page(folder, name))
                if tree is not None:
                    got = extract_metadata(tree, default_url=url or None).as_dict()
            except Exception as e:  # a page it cannot read has no metadata
                print(f"{name}: {e}", file=sys.stderr)
            f.write(json.dumps({"id": name, **{k: got.get(k) for k in FIELDS}}) + "\n")


QUOTES = str.maketrans("‘’“”‐‑–—", "''\"\"----")


def plain(field, value):
    text = " ".join(unicodedata.normalize("NFC", str(value or "")).translate(QUOTES).split()).lower()
    if field == "date":
        return text[:10]
    if field == "author":
        return frozenset(x.strip() for x in re.split(r"[;,]| and | & ", text) if x.strip())
    return text


def score(folder, pred, miss=None):
    got = {}
    with open(pred, encoding="utf-8") as f:
        for line in f:
            d = json.loads(line)
            got[re.sub(r"^<?urn:page:|>$", "", str(d["id"]))] = d
    count = {}
    for name, url, kind, truth in truths(folder):
        host = re.sub(r"^www\.", "", urlsplit(url).hostname or "")
        half = "held back" if hashlib.sha256(host.encode()).digest()[0] & 1 else "looked at"
        for field in FIELDS:
            want, have = plain(field, truth[field]), plain(field, got.get(name, {}).get(field))
            for part in (half, "all", kind):
                c = count.setdefault((field, part), [0, 0, 0, 0])
                c[0] += bool(want)
                c[1] += bool(want) and want == have
                c[2] += bool(want) and bool(have) and want != have
                c[3] += not want and bool(have)
            if miss == field and half == "looked at" and want and want != have:
                print(f"{name}\t{kind}\t{truth[field]!r}\t{got.get(name, {}).get(field)!r}\t{url}")
    if not miss:
        print("field\tpages\tstated\tright\twrong\tgiven where none is stated")
        for (field, part), c in sorted(count.items()):
            print(f"{field}\t{part}\t" + "\t".join(map(str, c)))


if __name__ == "__main__":
    what, folder, path = sys.argv[1:4]
    if what == "score":
        score(folder, path, sys.argv[5] if len(sys.argv) > 5 else None)
    else:
        {"warc": write_warc, "trafilatura": run_trafilatura}[what](folder, path)
