#!/usr/bin/env python3
"""A made crawl in Common Crawl's layout, with indexes of it by other systems, and what they select.

    crawl.py FOLDER OUT FILES [PAGES [MOST]]

FOLDER holds pages: data/extraction's benchmarks, whose addresses are known, and data/warc/real, whose records are copied; with - pages
are made up.  They
become FILES archives below OUT/crawl-data, a gzip member a record (warcio); at most PAGES pages, of at most MOST bytes.  The
index is cdxj-indexer's, in CDXJ (OUT/index.cdxj) with the fields that Common Crawl adds, the same cut into ZipNum with a
cluster.idx, and as columns by pyarrow.  OUT/selected.txt has conditions, each behind a #, and the records that meet them
(file, offset, length), selected in Python.
"""
import base64, glob, gzip, hashlib, io, json, os, re, subprocess, sys, tarfile, warnings
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import tldextract
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

CRAWL = "CC-MAIN-2026-48"
LINES, PARTS, ROWS = 7, 2, 24       # lines of a ZipNum member; cdx files; rows of a row group
LANGS = {"de": "deu", "en": "eng", "fr": "fra", "es": "spa", "it": "ita", "nl": "nld", "pt": "por", "pl": "pol", "ru": "rus"}
suffixes = tldextract.TLDExtract(suffix_list_urls=(), include_psl_private_domains=False)


SENTENCES = {
    "de": "Das Boot lag am Ufer, und niemand hatte es seit dem Winter benutzt. Wer am Morgen kam, sah {n} Möwen auf dem Steg.",
    "en": "The boat lay on the shore, and nobody had used it since the winter. Whoever came in the morning saw {n} gulls on the pier.",
    "fr": "La barque était sur la rive, et personne ne s'en était servi depuis l'hiver. Le matin on voyait {n} mouettes sur le quai.",
    "es": "La barca estaba en la orilla, y nadie la había usado desde el invierno. Por la mañana se veían {n} gaviotas en el muelle.",
}
HOSTS = ["boote.example.de", "www.example.de", "www.boats.co.uk", "boats.co.uk", "a-boats.co.uk", "quai.fr", "www2.quai.fr", "muelle.es",
         "www.barcas.com", "de.barcas.com", "xn--bte-sna.de", "192.0.2.7", "shop.example.org:8080", "EXAMPLE.org", "www.de"]


def made_pages():
    """Pages of nobody, with odd hosts and paths."""
    paths = ["/", "/blog/{n}/index.html", "/Blog/{n}", "/2025/0{d}/boot-{n}", "/s?q={n}&a=%C3%A4", "/~x/{n};jsessionid=0A1B2C3D4E5F", "/a/../b/{n}",
             "/files/{n}.pdf"]
    for n in range(72):
        lang = list(SENTENCES)[n * 7 % 4]
        url = f"http{'s' if n % 3 else ''}://{HOSTS[n * 4 % 15]}{paths[n % 8].format(n=n, d=n % 9 + 1)}"
        text = " ".join(SENTENCES[lang].format(n=n + i) for i in range(3 + n % 5))
        head = f'<meta charset="{"utf-8" if n % 5 else "windows-1252"}">'
        yield url, b"%PDF-1.4 " + bytes(range(200)) if n % 8 == 7 else \
            f'<html{f" lang={lang}" if n % 6 else ""}><head>{head}<title>Page {n}</title></head><body><article><h1>Page {n}</h1><p>{text}</p></article></body></html>' \
            .encode("utf-8" if n % 5 else "windows-1252")


def pages(folder):
    """(url, html) of the benchmarks, in a fixed order."""
    if folder == "-":
        yield from made_pages()
        return
    base = os.path.join(folder, "data/extraction")
    truth = json.load(open(os.path.join(base, "article-benchmark/dev/ground-truth.json")))
    for key in sorted(truth):
        path = os.path.join(base, "article-benchmark/dev/html", key + ".html.gz")
        if os.path.exists(path) and truth[key].get("url"):
            yield truth[key]["url"], gzip.open(path).read()
    with open(os.path.join(base, "segment-benchmark/dev/segments.jsonl")) as f:
        for line in f:
            row = json.loads(line)
            yield row["url"], gzip.open(os.path.join(base, "segment-benchmark/dev/html", row["id"] + ".html.gz")).read()
    tar = os.path.join(base, "wcxb/wcxb-dev.tar.zst")
    if os.path.exists(tar):
        plain = subprocess.run(["zstd", "-dcq", tar], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(plain)) as t:
            found = {}
            for m in sorted(t.getmembers(), key=lambda m: m.name):
                if m.isfile():
                    name = os.path.basename(m.name)
                    data = t.extractfile(m).read()
                    found.setdefault(name.split(".")[0], {})["json" if name.endswith(".json") else "html"] = \
                        gzip.decompress(data) if name.endswith(".gz") else data
        for key in sorted(found):
            entry = found[key]
            if "json" in entry and "html" in entry:
                url = json.loads(entry["json"]).get("url")
                if url:
                    yield url, entry["html"]


def copies(folder):
    """Records of the real archives that warcio reads."""
    for path in sorted(glob.glob(os.path.join(folder, "data/warc/real/*.warc.gz"))):
        with open(path, "rb") as f:
            try:
                for r in ArchiveIterator(f):
                    if r.rec_type in ("response", "resource", "revisit", "request", "metadata"):
                        yield r.rec_type, r.rec_headers, r.http_headers, r.raw_stream.read(), r
            except Exception:
                pass


def write_archives(folder, out, n_files, n_pages, most):
    names, writers, files = [], [], []
    for i in range(n_files):
        name = f"crawl-data/{CRAWL}/segments/{1700000000 + i % 3}/warc/{CRAWL}-{i:05}.warc.gz"
        path = os.path.join(out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        f = open(path, "wb")
        w = WARCWriter(f, gzip=True)
        info = w.create_warcinfo_record(os.path.basename(name), {"software": "a script", "isPartOf": CRAWL, "format": "WARC File Format 1.0"})
        settle(info, f"info {i}", i)
        w.write_record(info)
        names.append(name), writers.append(w), files.append(f)
    k = 0
    for url, html in pages(folder):
        if k >= n_pages:
            break
        if len(html) > most or not re.match(r"https?://[!-~]+$", url):
            continue
        w = writers[k % n_files]
        head = StatusAndHeaders("200 OK" if k % 9 else "404 Not Found",
                                [("Content-Type", "text/html" + ("; charset=utf-8" if k % 2 else ""))], protocol="HTTP/1.1")
        r = w.create_warc_record(url, "response", payload=io.BytesIO(html), http_headers=head)
        if k % 4 == 0:
            q = w.create_warc_record(url, "request", payload=io.BytesIO(b""),
                                     http_headers=StatusAndHeaders("GET / HTTP/1.1", [("Host", "x")], is_http_request=True))
            settle(q, f"request {k}", k)
            w.write_record(q)
        settle(r, f"page {k}", k)
        w.write_record(r)
        k += 1
    for i, (kind, heads, http, body, r) in enumerate(copies(folder)):
        if len(body) > most:
            continue
        w = writers[(k + i) % n_files]
        try:
            c = w.create_warc_record(heads.get_header("WARC-Target-URI"), kind, payload=io.BytesIO(body), http_headers=http,
                                     warc_content_type=heads.get_header("Content-Type"))
            settle(c, f"copy {i}", k + i)
            w.write_record(c)
        except Exception:
            pass
    for f in files:
        f.close()
    return names


def settle(r, name, k):
    """Ids and dates that are the same in every run."""
    h = hashlib.md5(name.encode()).hexdigest()
    r.rec_headers.replace_header("WARC-Record-ID", f"<urn:uuid:{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}>")
    when = datetime.fromtimestamp(1764000000 + 977 * k, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    r.rec_headers.replace_header("WARC-Date", when)


def read_page(out, row):
    """What a page says of itself: its language and charset, by its first bytes."""
    with open(os.path.join(out, row["filename"]), "rb") as f:
        f.seek(int(row["offset"]))
        r = next(iter(ArchiveIterator(io.BytesIO(f.read(int(row["length"]))))))
        body = r.content_stream().read(20000) if r.rec_type == "response" else b""
    lang = re.search(rb"<html[^>]*\slang\s*=\s*[\"']?([A-Za-z]{2})", body, re.I)
    charset = re.search(rb"charset\s*=\s*[\"']?([A-Za-z0-9-]+)", body, re.I)
    return (LANGS.get(lang.group(1).decode().lower()) if lang else None,
            charset.group(1).decode().upper() if charset else None,
            "application/pdf" if body.startswith(b"%PDF") else "text/html" if b"<" in body[:500] else None)


def index(out, names):
    """cdxj-indexer's lines with Common Crawl's fields, sorted: (key, timestamp, fields)."""
    text = subprocess.run([os.path.join(os.path.dirname(sys.executable), "cdxj-indexer"), "-s", "--dir-root", out] +
                          [os.path.join(out, n) for n in names], capture_output=True, check=True, text=True).stdout
    rows = []
    for line in text.splitlines():
        key, stamp, fields = line.split(" ", 2)
        row = json.loads(fields)
        if "url" not in row or row.get("mime") == "warc/revisit" and "digest" not in row:
            continue
        lang, charset, detected = read_page(out, row)
        row["mime-detected"] = detected or row.get("mime", "unk")
        if lang:
            row["languages"] = lang + (",eng" if len(rows) % 5 == 0 and lang != "eng" else "")
        if charset:
            row["charset"] = charset
        row["digest"] = row["digest"].removeprefix("sha1:")
        rows.append((key, stamp, row))
    return rows


def write_cdx(out, rows):
    folder = os.path.join(out, f"cc-index/collections/{CRAWL}/indexes")
    os.makedirs(folder, exist_ok=True)
    lines = [f"{k} {t} {json.dumps(r)}\n" for k, t, r in rows]
    with open(os.path.join(out, "index.cdxj"), "w") as f:
        f.writelines(lines)
    members = [lines[i:i + LINES] for i in range(0, len(lines), LINES)]
    each = -(-len(members) // PARTS)
    with open(os.path.join(folder, "cluster.idx"), "w") as idx:
        for p in range(PARTS):
            name = f"cdx-{p:05}.gz"
            with open(os.path.join(folder, name), "wb") as f:
                for n, m in enumerate(members[p * each:(p + 1) * each]):
                    packed = gzip.compress("".join(m).encode(), mtime=0)
                    head = " ".join(m[0].split(" ", 2)[:2])
                    idx.write(f"{head}\t{name}\t{f.tell()}\t{len(packed)}\t{p * each + n + 1}\n")
                    f.write(packed)


def write_columns(out, rows):
    folder = f"cc-index/table/cc-main/warc/crawl={CRAWL}/subset=warc"
    os.makedirs(os.path.join(out, folder), exist_ok=True)
    number = lambda r, k: int(r[k]) if r.get(k, "-").isdigit() else None
    text, columns = pa.string(), {}
    host = [re.sub(r":\d+$", "", re.match(r"[a-z]*://([^/?#]*)", r["url"] + "/").group(1)).lower() if "://" in r["url"] else None
            for _, _, r in rows]
    columns["url_surtkey"] = pa.array([k for k, _, _ in rows], text)
    columns["url"] = pa.array([r["url"] for _, _, r in rows], text)
    columns["url_host_name"] = pa.array(host, text)
    columns["url_host_registered_domain"] = pa.array([suffixes(h).registered_domain or None if h else None for h in host], text)
    columns["fetch_time"] = pa.array([datetime.strptime(t, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc) for _, t, _ in rows],
                                     pa.timestamp("ms", tz="UTC"))
    columns["fetch_status"] = pa.array([number(r, "status") for _, _, r in rows], pa.int16())
    columns["content_digest"] = pa.array([r["digest"] for _, _, r in rows], text)
    columns["content_mime_type"] = pa.array([r.get("mime") for _, _, r in rows], text)
    columns["content_mime_detected"] = pa.array([r["mime-detected"] for _, _, r in rows], text)
    columns["content_charset"] = pa.array([r.get("charset") for _, _, r in rows], text)
    columns["content_languages"] = pa.array([r.get("languages") for _, _, r in rows], text)
    columns["content_truncated"] = pa.array([None for _ in rows], text)
    columns["warc_filename"] = pa.array([r["filename"] for _, _, r in rows], text)
    columns["warc_record_offset"] = pa.array([int(r["offset"]) for _, _, r in rows], pa.int32())
    columns["warc_record_length"] = pa.array([int(r["length"]) for _, _, r in rows], pa.int32())
    columns["warc_segment"] = pa.array(["1700000000.0" for _ in rows], text)
    table, half, paths = pa.table(columns), len(rows) // 2, []
    for p, part in enumerate((table.slice(0, half), table.slice(half))):
        name = f"{folder}/part-{p:05}.gz.parquet"
        pq.write_table(part, os.path.join(out, name), row_group_size=max(ROWS, len(rows) // 10), compression="gzip")
        paths += [name, name.replace("subset=warc", "subset=robotstxt")]
    with open(os.path.join(out, f"crawl-data/{CRAWL}/cc-index-table.paths.gz"), "wb") as f:
        f.write(gzip.compress(("\n".join(paths) + "\n").encode(), mtime=0))
    return columns


def conditions(rows, columns):
    """Conditions of --where, each with the same in Python."""
    hosts, domains = columns["url_host_name"].to_pylist(), columns["url_host_registered_domain"].to_pylist()
    some_host = next(h for h in hosts[len(hosts) // 3:] if h and h.startswith("www."))
    some_domain = next(d for d in domains[len(domains) // 2:] if d)
    last_domain = [d for d in domains if d][-1]
    lang = lambda r: r.get("languages", "").split(",")[0]
    start = f"https://{some_host}/"
    yield "lang = deu", lambda i, t, r: lang(r) == "deu"
    yield "lang=deu and mime=text/html and status = 200", \
        lambda i, t, r: lang(r) == "deu" and r["mime-detected"] == "text/html" and r.get("status") == "200"
    yield f"url ~ \"^{re.escape(start)}\"".replace("\\-", "-"), lambda i, t, r: r["url"].startswith(start)
    yield f"host = {some_host}", lambda i, t, r: hosts[i] == some_host
    yield f"domain = {some_domain}", lambda i, t, r: domains[i] == some_domain
    yield f"domain in ({some_domain}, {last_domain}, example.invalid) and not status = 404", \
        lambda i, t, r: domains[i] in (some_domain, last_domain) and r.get("status") != "404"
    yield "key ~ '^de,' or key ~ \"^fr,\"", lambda i, t, r: rows[i][0].startswith(("de,", "fr,"))
    yield "length < 30000 and url ~ \"/[0-9]{4}/\"", lambda i, t, r: int(r["length"]) < 30000 and re.search("/[0-9]{4}/", r["url"])
    yield "date >= 2025-11-24T20 and date < '2025-11-25'", lambda i, t, r: "20251124200000" <= t < "20251125000000"
    yield "status != 200", lambda i, t, r: r.get("status", "-").isdigit() and r["status"] != "200"
    yield "not (lang = eng or lang in (deu, fra)) and charset = UTF-8", \
        lambda i, t, r: lang(r) not in ("eng", "deu", "fra") and r.get("charset") == "UTF-8"
    yield "langs ~ ',eng$'", lambda i, t, r: r.get("languages", "").endswith(",eng")
    yield "mime_type = application/pdf or mime ~ \"^(application/pdf$|image/)\"", \
        lambda i, t, r: r.get("mime") == "application/pdf" or r["mime-detected"].startswith(("application/pdf", "image/"))


def main(folder, out, n_files, n_pages=10 ** 9, most=10 ** 9):
    warnings.simplefilter("ignore")
    os.makedirs(out, exist_ok=True)
    names = write_archives(folder, out, int(n_files), int(n_pages), int(most))
    rows = index(out, names)
    write_cdx(out, rows)
    columns = write_columns(out, rows)
    with open(os.path.join(out, "selected.txt"), "w") as f:
        for where, meets in conditions(rows, columns):
            f.write(f"# {where}\n")
            f.writelines(sorted(f"{r['filename']} {r['offset']} {r['length']}\n" for i, (_, t, r) in enumerate(rows) if meets(i, t, r)))


main(*sys.argv[1:])
