"""Charset detection on pieces of the Universal Declaration of Human Rights without a label.

usage: charset_peers.py UDHR.jsonl QUERN-EXTRACT CHARACTERS
Prints how many of the pieces quern decodes exactly, and how many cchardet (uchardet)
names a charset for that does; 20 pieces for each language and charset.
"""
import collections
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile

CHARSETS = {
    "cp1252": "deu_1996 fra spa por_PT ita nld swe fin nob isl dan",
    "cp1250": "pol ces slk hun hrv slv ron_2006", "iso8859-2": "pol ces slk hun",
    "cp1251": "rus ukr bul srp_cyrl bel mkd", "koi8-r": "rus", "koi8-u": "ukr", "cp866": "rus", "iso8859-5": "rus",
    "mac_cyrillic": "rus", "mac_roman": "fra", "cp1253": "ell_monotonic", "iso8859-7": "ell_monotonic",
    "cp1254": "tur", "cp1255": "heb", "iso8859-8": "heb", "cp1256": "arb pes_1", "iso8859-6": "arb",
    "cp1257": "lit lav est", "iso8859-13": "lit", "cp874": "tha", "shift_jis": "jpn", "euc-jp": "jpn",
    "iso2022_jp": "jpn", "gbk": "cmn_hans", "big5": "cmn_hant", "euc-kr": "kor",
}
PIECES = 20


def sha1(data):
    return hashlib.sha1(data).hexdigest()


def pieces(path, length):
    texts = collections.defaultdict(str)
    with open(path, encoding="utf-8") as f:
        for line in f:
            d = json.loads(line)
            texts[d["code"]] += d["text"] + "\n"
    rng = random.Random(1)
    for charset, languages in CHARSETS.items():
        for code in languages.split():
            for _ in range(PIECES):
                at = rng.randrange(len(texts[code]) - length)
                data = texts[code][at:at + length].encode(charset, "ignore")
                if max(data) > 127 or b"\x1b" in data:
                    yield data, sha1(data.decode(charset).encode())


def peer(data, want):
    import cchardet
    name = cchardet.detect(data)["encoding"] or "cp1252"
    try:
        return sha1(data.decode(name, "replace").encode()) == want
    except LookupError:
        return False


def main():
    path, quern, length = sys.argv[1], sys.argv[2], int(sys.argv[3])
    all_pieces = list(pieces(path, length))
    with tempfile.TemporaryDirectory() as folder:
        warc = os.path.join(folder, "x.warc")
        with open(warc, "wb") as f:
            for data, _ in all_pieces:
                f.write(b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
                        % (len(data), data))
        out = subprocess.run([quern, "--list", warc], stdout=subprocess.PIPE, check=True).stdout
    got = [json.loads(line)["utf8_sha1"] for line in out.splitlines()]
    right = sum(g == want for g, (_, want) in zip(got, all_pieces, strict=True))
    theirs = sum(peer(data, want) for data, want in all_pieces)
    for name, n in (("quern", right), ("cchardet", theirs)):
        print(f"charset {name} {length}\t{100 * n / len(all_pieces):.1f}\t%\tof {len(all_pieces)} pieces of {length} characters")


main()
