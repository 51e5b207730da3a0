#!/usr/bin/env python3
"""Records what datatrove's URLFilter and C4BadWordsFilter say of the cases below.

    pip install datatrove tldextract pyahocorasick
    python tests/record/filter_lists.py tests/data/filter

Writes lists (url_domains.txt, url_urls.txt, url_words.txt, url_soft.txt, url_subwords.txt;
bad.txt is there) and filter_lists.jsonl: documents with the fields `url_reason` and
`bad_reason`, the reason why datatrove drops them or "-", and `host`: registered domain and
whole name as tldextract finds them (snapshot of the public suffix list in the package).
"""
import json
import os
import random
import sys

import tldextract
from datatrove.data import Document
from datatrove.pipeline.filters import C4BadWordsFilter, URLFilter
from datatrove.pipeline.filters import c4_filters

folder = sys.argv[1]
LISTS = {
    "domains": ["# hosts", "example.com", "bad.co.uk", "sub.fine.org", "spam.github.io", "b\u00fccher.de", "xn--bcher-kva.ch",
                "city.kawasaki.jp", "www.ck", "one.foo.ck", "Capital.com", "", "deep.down.example.net"],
    "urls": ["http://fine.org/this/page.html", "https://fine.org/Other?q=1#frag"],
    "words": ["walnut", "blue-moon", "GRAPE"],
    "soft": ["free", "cheap", "win", "best"],
    "subwords": ["xyzzy", "plugh-1"],
}
for name, lines in LISTS.items():
    with open("%s/url_%s.txt" % (folder, name), "w") as out:
        out.write("\n".join(lines) + "\n")

URLS = """http://example.com/ https://www.example.com:8080/a https://user:pw@deep.example.com/x http://EXAMPLE.com/
http://notexample.com/ http://example.com.evil.org/ http://bad.co.uk/ http://x.bad.co.uk http://co.uk/ http://uk/
http://sub.fine.org/a http://a.sub.fine.org/a http://fine.org/ http://fine.org/this/page.html
http://fine.org/this/page.html? https://fine.org/Other?q=1#frag http://spam.github.io/ http://user.github.io/
http://github.io/ http://x.spam.github.io/ http://b\u00fccher.de/ http://www.b\u00fccher.de/a http://xn--bcher-kva.ch/
http://xn--bcher-kva.de/ http://www.ck/ http://foo.ck/ http://one.foo.ck/ http://a.one.foo.ck/ http://ck/
http://city.kawasaki.jp/ http://a.city.kawasaki.jp/ http://x.kawasaki.jp/ http://y.x.kawasaki.jp/ http://Capital.com/
http://capital.com/ http://www.Capital.com/ http://1.2.3.4/example.com http://[::1]/ http://[::1]:80/example
http://localhost/ http://localhost:8080/walnut example.com //example.com/path example.com/path www.example.com?x
ftp://example.com/ a+b-c.1://example.com/ a_b://example.com/ http:/example.com/ http:///example.com/
http://example.com./ http://example.com.../ http://.example.com/ http://..example.com/ http://a..example.com/
http://example..com/ http://example\u3002com/ http://www\uff0eexample\uff61com\u3002/x http://example.com@fine.org/
http://fine.org@example.com/ http://a@b@example.com/ http://[x]example.com/ http://[example.com/
http://deep.down.example.net/ http://down.example.net/ http://x.unknowntld/ http://example.unknowntld/
http://fine.org/walnut http://fine.org/Walnut http://fine.org/walnuts http://fine.org/a_walnut http://fine.org/a-walnut-b
http://fine.org/bluemoon http://fine.org/blue-moon http://fine.org/grape http://fine.org/GRAPE
http://fine.org/free-cheap http://fine.org/free/free http://fine.org/free?best=win http://free.cheap.org/
http://fine.org/freecheap http://fine.org/xyzzy http://fine.org/x/y-z.Z/Y http://fine.org/aXYZZYb http://fine.org/plugh/1
http://fine.org/plugh2 http://fine.org/xyzz y http://fine.org/\u00e9xyzzy http://fine.org/x\u00e9yzzy""".split("\n")
URLS = [u for line in URLS for u in line.split(" ") if u] + [
    " http://example.com/", "http:// example.com /", "http://example.com\t/", "mailto:someone@example.com", "x", "/", "//", "?", "#",
    "http://", "http://@/", "http://:80/", "http://" + "a." * 100 + "example.com/", "data:text/html,//example.com/"]
TEXTS = ["A walnut.", "walnut", "Walnuts", "walnut's", "_walnut", "walnut_", "wal\u00adnut", "WALNUT!", "\u00e9walnut", "walnut\u00e9",
         "walnut\u0301", "1walnut", "a walnut\u0660", "blue moon", "blue  moon", "blue\nmoon", "Blue Moon", "c++", "c+++", "C++x",
         "xc++", "gr\u00f6\u00dfe", "GR\u00d6SSE", "GR\u00d6\u1e9eE", "a.b", "axb", "a.bc", "za.b", "in thewalnut", "in the", "grape\n", "\ngrape",
         "\u0130walnut", "grap\u0045", "\u5973\u306e\u5b50", "", " ", "w a l n u t", "walnu walnut walnuts", "bluebird moon", "x" * 3000 + " walnut",
         "in thee", "inn the", "in the\u0345", "\u212aelvin gra\u017fe", "moon\u2028walnut\u2029"]
rng = random.Random(3)
PIECES = ["walnut", "blue", "moon", "c++", "a.b", "in", "the", " ", " ", " ", "\n", "_", "-", "\u00e9", ".", "s"]
TEXTS += ["".join(rng.choice(PIECES) for _ in range(rng.randint(3, 12))) for _ in range(60)]
for tail in ["example.com", "bad.co.uk", "sub.fine.org", "foo.ck", "kawasaki.jp", "github.io", "fine.org"]:
    for _ in range(12):
        URLS.append(rng.choice(["http://", "https://", "", "//"]) + rng.choice(["", "a.", "www.b.", "x@", "1.2.3.4."]) + tail +
                    rng.choice(["", ":80", ".", "/"]) + rng.choice(["", "walnut", "free-win-x", "/xy.zz.y", "?grape", "#blue"]))


def entries(name):
    return [x for x in open("%s/url_%s.txt" % (folder, name)).read().split("\n") if x]


urls = URLFilter(extra_domains=entries("domains"), extra_urls=entries("urls"), banned_words=entries("words"),
                 banned_subwords=entries("subwords"), soft_banned_words=entries("soft"), use_integrated_lists=False)
urls.tldextractor = tldextract.TLDExtract(suffix_list_urls=())
# the list of bad words from our file, without its comment
local = os.path.join(folder, "bad.tmp")
with open(local, "w") as out:
    out.write("".join(x for x in open(folder + "/bad.txt") if not x.startswith("#")))
c4_filters.cached_asset_path_or_download = lambda *a, **k: local
bad = C4BadWordsFilter()


def reason(answer):
    return "-" if answer is True else answer[1]


with open(folder + "/filter_lists.jsonl", "w") as out:
    n = max(len(URLS), len(TEXTS))
    for i in range(n):
        url, text, lang = URLS[i % len(URLS)], TEXTS[i % len(TEXTS)], ["en", "ja", "de", "th"][i // len(TEXTS) % 4]
        host = urls.tldextractor(url)
        out.write(json.dumps({
            "id": str(i), "url": url, "text": text, "lang": lang,
            "url_reason": reason(urls.filter(Document(text="", id="", metadata={"url": url}))),
            "bad_reason": reason(bad.filter(Document(text=text, id="", metadata={"language": lang}))),
            "host": [host.registered_domain, host.fqdn]}, ensure_ascii=False) + "\n")
    for lang in "en", "ja":
        for i, text in enumerate(TEXTS):
            out.write(json.dumps({"id": "%s%d" % (lang, i), "url": "http://fine.org/", "text": text, "lang": lang, "url_reason": "-",
                                  "bad_reason": reason(bad.filter(Document(text=text, id="", metadata={"language": lang}))),
                                  "host": ["fine.org", "fine.org"]}, ensure_ascii=False) + "\n")
os.remove(local)
