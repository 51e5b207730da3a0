#!/usr/bin/env python3
"""Records jusText's stop lists, and what it makes of pages.

    pip install justext==3.0.2
    python tests/record/justext_pages.py lists >curate/html/justext_lists.inc
    python tests/record/justext_pages.py pages tests/data/justext/*.html     # writes a .tsv beside each

Lists: the WORDS most frequent words of each language that curate/text/lang_data.inc has, in lower case.
A line of a .tsv is a paragraph: class without context, class, 1 for a heading, length, text.  The
pages are classified with the English list of curate/html/justext_lists.inc.
"""
import os
import re
import sys

import justext

WORDS = 1000
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
NAMES = dict(en="English", de="German", fr="French", es="Spanish", it="Italian", pt="Portuguese", nl="Dutch", pl="Polish",
             ru="Russian", uk="Ukrainian", cs="Czech", sv="Swedish", da="Danish", nb="Norwegian_Bokmal", fi="Finnish",
             hu="Hungarian", ro="Romanian", bg="Bulgarian", el="Greek", tr="Turkish", ar="Arabic", fa="Persian", he="Hebrew",
             hi="Hindi", bn="Bengali", id="Indonesian", vi="Vietnamese", ko="Korean")


def words(name):
    path = os.path.join(os.path.dirname(justext.__file__), "stoplists", name + ".txt")
    with open(path, encoding="utf-8") as f:
        return list(dict.fromkeys(w.lower() for w in f.read().split()))


def lists():
    print("/* The words of jusText 3.0.2's stop lists, the most frequent of each language's Wikipedia first:\n"
          " * at most %d of a language, in lower case.  Recorded by tests/record/justext_pages.py.\n"
          " * Source: justext/stoplists/, Copyright (c) 2011 Jan Pomikalek, 2013 Michal Belica, BSD-2-Clause. */" % WORDS)
    for code, name in NAMES.items():
        out, lines = "", []
        for w in words(name)[:WORDS]:
            if len(out) + len(w) > 105:
                lines.append(out)
                out = ""
            out += w.replace("\\", "\\\\").replace('"', '\\"') + " "
        lines.append(out.rstrip())
        print('{"%s",\n%s},' % (code, "\n".join('     "%s"' % line for line in lines)))


def pages(paths):
    english = re.search(r'\{"en",\n(.*?)\},', open(ROOT + "/curate/html/justext_lists.inc").read(), re.S).group(1)
    stop = frozenset("".join(re.findall(r'"([^"]*)"', english)).split())
    for path in paths:
        with open(path, encoding="utf-8") as f, open(path[:-5] + ".tsv", "w", encoding="utf-8") as out:
            for p in justext.justext(f.read(), stop):
                print(p.cf_class, p.class_type, int(p.heading), len(p), " ".join(p.text.split()), sep="\t", file=out)


if __name__ == "__main__":
    lists() if sys.argv[1] == "lists" else pages(sys.argv[2:])
