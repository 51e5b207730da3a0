#!/usr/bin/env python3
"""Text of LaTeX files by a peer: latex_peers.py pandoc|latex2text FOLDER OUT.jsonl.  Prints the seconds of
CPU; a file that the peer cannot read, or not within a minute, is left out."""
import glob
import json
import os
import resource
import subprocess
import sys


def cpu():
    own, sub = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + sub.ru_utime + sub.ru_stime


def read(path):
    data = open(path, "rb").read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def pandoc(path, text):
    p = subprocess.run(["pandoc", "-f", "latex", "-t", "plain", "--wrap=none"], input=text.encode(), timeout=60,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=os.path.dirname(path), check=True)
    return p.stdout.decode()


def latex2text(path, text):
    from pylatexenc.latex2text import LatexNodes2Text
    return LatexNodes2Text(math_mode="verbatim").latex_to_text(text)


def main():
    how = {"pandoc": pandoc, "latex2text": latex2text}[sys.argv[1]]
    if how is latex2text:
        import pylatexenc.latex2text  # not to be measured
        assert pylatexenc
    start = cpu()
    with open(sys.argv[3], "w", encoding="utf-8") as out:
        for path in sorted(glob.glob(os.path.join(sys.argv[2], "*.tex"))):
            try:
                text = how(path, read(path))
            except Exception:
                continue
            out.write(json.dumps({"id": path, "title": "", "text": text}) + "\n")
    print(f"{cpu() - start:.3f}")


main()
