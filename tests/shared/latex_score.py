#!/usr/bin/env python3
"""Holds text from LaTeX against text from the PDF: latex_score.py PDFTEXT-FOLDER < documents.

Words are runs of at least three letters, without case; formulas do not count.  Recall is the share of
the PDF's words that are in the text, precision the share of the text's words that are in the
PDF, each word as often as it is there.  Prints a line for each document with -v, then the mean recall,
the mean precision, and the control sequences outside formulas for every 1,000 words."""
import collections
import json
import os
import re
import sys
import unicodedata

GROUP = r"\{(?:[^{}\n]|\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]*\})*\})*\})*\}"  # dollars may stand in it
MATH = re.compile(
    r"\$\$[^\n]*?\$\$|\$(?:[^$\n{}\\]|\\.|" + GROUP + r")+\$"
    r"|^ *\\begin\{((?:align|alignat|eqnarray|flalign|gather|multline|mathpar)\*?)\}.*?^ *\\end\{\1\}", re.S | re.M)
WORD = re.compile(r"[^\W\d_]{3,}")


def words(text):
    text = unicodedata.normalize("NFKC", text).lower()
    return collections.Counter(WORD.findall(text))


def main():
    folder, verbose = sys.argv[1], "-v" in sys.argv
    sums, n, left, total = [0.0, 0.0], 0, 0, 0
    for line in sys.stdin:
        doc = json.loads(line)
        name = os.path.basename(doc["id"]).rsplit(".", 1)[0]
        path = os.path.join(folder, name + ".txt")
        plain = MATH.sub(" ", doc["text"])
        residue = len(re.findall(r"\\[A-Za-z@]+", plain))
        count = len(plain.split())
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            pdf = f.read()
        want = words(re.sub(r"[-\u00ad\u2010]\n\s*", "", pdf))
        got = words(plain + " " + doc["title"] + " " + doc.get("author", ""))
        common = sum((want & got).values())
        recall = common / max(1, sum(want.values()))
        precision = common / max(1, sum(got.values()))
        sums[0] += recall
        sums[1] += precision
        n, left, total = n + 1, left + residue, total + count
        if verbose:
            print(f"{name}\t{recall:.3f}\t{precision:.3f}\t{residue}\t{count}")
            if "-w" in sys.argv:
                print("  lost:", (want - got).most_common(25))
                print("  more:", (got - want).most_common(25))
    print(f"{n}\t{sums[0] / max(1, n):.4f}\t{sums[1] / max(1, n):.4f}\t{1000 * left / max(1, total):.2f}")


main()
