#!/usr/bin/env python3
"""usage: wiki_peers.py wikiextractor|mwparserfromhell|gensim DUMP OUT.jsonl
Makes text of the pages of namespace 0 that are no redirects; prints the CPU seconds that making
text took, without reading the XML.
usage: wiki_peers.py compare A.jsonl B.jsonl
Prints the share of A's words that are in B's text of the same page, and of B's in A's."""
import collections
import json
import re
import sys
import time
import xml.etree.ElementTree as xml


def pages(dump):
    for _, node in xml.iterparse(open(dump, "rb")):
        if not node.tag.endswith("}page"):
            continue
        get = {c.tag.split("}")[1]: c for c in node.iter()}
        ids = [c.text for c in node if c.tag.endswith("}id")]
        if get["ns"].text == "0" and "redirect" not in get:
            yield ids[0], get["title"].text, get["text"].text or ""
        node.clear()


def maker(peer):
    if peer == "mwparserfromhell":
        import mwparserfromhell
        return lambda title, text: mwparserfromhell.parse(text).strip_code()
    if peer == "gensim":
        from gensim.corpora.wikicorpus import filter_wiki
        return lambda title, text: filter_wiki(text)
    import logging
    logging.disable(logging.CRITICAL)
    from wikiextractor.extract import Extractor

    def extract(title, text):
        e = Extractor("1", "1", "u", title, [text])
        return "\n".join(e.clean_text(text, expand_templates=False, html_safe=False))
    return extract


def words(path):
    return {d["id"]: collections.Counter(re.findall(r"\w+", d["text"].lower())) for d in map(json.loads, open(path))}


def compare(a, b):
    a, b = words(a), words(b)
    both = set(a) & set(b)
    common = sum(sum((a[i] & b[i]).values()) for i in both)
    print("%.3f %.3f" % tuple(common / sum(sum(x[i].values()) for i in both) for x in (a, b)))


if sys.argv[1] == "compare":
    compare(*sys.argv[2:])
else:
    make, spent = maker(sys.argv[1]), 0
    make("T", "warm")
    with open(sys.argv[3], "w") as out:
        for i, title, text in pages(sys.argv[2]):
            start = time.process_time()
            made = make(title, text)
            spent += time.process_time() - start
            out.write(json.dumps({"id": i, "title": title, "text": made}) + "\n")
    print("%.3f" % spent)
