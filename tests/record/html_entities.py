#!/usr/bin/env python3
"""Writes curate/text/html_entities.inc: the named character references of the HTML standard,
as Python's html.entities has them.  Run from the repository root."""
from html.entities import html5

names = sorted({n.rstrip(";") for n in html5}, key=lambda s: s.encode())
lines, line = [], ""
for n in names:
    value = "".join("\\%03o" % b for b in html5[n + ";"].encode())
    item = '{"%s", "%s", %d},' % (n, value, n in html5)
    if len(line) + len(item) > 99:
        lines.append(line)
        line = ""
    line += (" " if line else "") + item
lines.append(line)
with open("curate/text/html_entities.inc", "w") as f:
    f.write("/* curate/text/html_entities.inc -- named character references, in byte order: name, UTF-8,\n"
            " * whether it may stand without a semicolon.  Written by tests/record/html_entities.py. */\n")
    f.write("\n".join(lines) + "\n")
