#!/usr/bin/env python3
"""usage: justext_diff.py FOLDER [FLOOR] -- jusText against `quern extract --extractor justext`.

    pip install justext==3.0.2

Extracts FOLDER's *.html.gz twice: with one stop list from a file (the words of twelve of jusText's
lists), and with each side's own list for the page's language.  Prints the share of paragraphs (20
letters or more) that both keep or both drop, the F1 of words kept, and the pages whose text is the
same but for white space and marks.  Exit status 1 if the first share is below FLOOR.
"""
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

import justext
from justext_pages import NAMES

MIXED = "en de fr it es pt nl cs pl tr el ru".split()


def letters(text):
    return re.sub(r"[\W_]+", "", text)


def quern(folder, *options):
    out = subprocess.run(["quern-extract", "--quiet", *options, folder], stdout=subprocess.PIPE, check=True).stdout
    docs = (json.loads(line) for line in out.decode().split("\n")[:-1])
    return {os.path.basename(d["id"]): d for d in docs}


def compare(name, pages, docs, list_of):
    same = n = same_pages = theirs = ours = common = 0
    for page, html in pages.items():
        text = docs[page]["text"] if page in docs else ""
        mine = letters(text)
        paragraphs = [(p.class_type == "good", p.text) for p in justext.justext(html, list_of(page))]
        good = letters(" ".join(t for kept, t in paragraphs if kept))
        same_pages += good == mine
        for kept, t in paragraphs:
            t = letters(t)
            if len(t) >= 20 and (kept or t not in good):
                n += 1
                same += (t in mine) == kept
        a = collections.Counter(w for kept, t in paragraphs if kept for w in re.findall(r"\w+", t))
        b = collections.Counter(re.findall(r"\w+", text))
        theirs, ours, common = theirs + sum(a.values()), ours + sum(b.values()), common + sum((a & b).values())
    print("%s: %d of %d paragraphs equal (%.2f %%); words %.4f; %d of %d pages the same" %
          (name, same, n, 100 * same / n, 2 * common / (theirs + ours), same_pages, len(pages)))
    return same / n


def main():
    folder, floor = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0
    pages = {}
    for path in sorted(glob.glob(folder + "/*.html.gz")):
        with gzip.open(path) as f:
            pages[os.path.basename(path)] = f.read().decode("utf-8", "replace")
    mixed = frozenset(w for code in MIXED for w in justext.get_stoplist(NAMES[code]))
    x = ["--extractor", "justext"]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as f:
        f.write("\n".join(sorted(mixed)))
        f.flush()
        share = compare("one list", pages, quern(folder, *x, "--stop-words", f.name), lambda page: mixed)
    whole = quern(folder, "--extractor", "everything")

    def own(page):
        code = whole[page]["lang"].split("-")[0].lower()
        return justext.get_stoplist(NAMES.get({"no": "nb"}.get(code, code), "English"))

    compare("own lists", pages, quern(folder, *x), own)
    sys.exit(share < floor)


if __name__ == "__main__":
    main()
