#!/usr/bin/env python3
"""usage: extract_peers.py trafilatura|resiliparse FOLDER OUT.jsonl
Extracts each FOLDER/ID.html; prints the CPU seconds that extraction took."""
import json
import os
import sys
import time

peer, folder, out = sys.argv[1:]
if peer == "trafilatura":
    import logging

    import trafilatura
    logging.disable(logging.CRITICAL)

    def extract(page):
        return trafilatura.extract(page, include_comments=False) or ""
else:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    def extract(page):
        return extract_plain_text(bytes_to_str(page, detect_encoding(page)), main_content=True, alt_texts=False)

seconds = 0.0
with open(out, "w", encoding="utf-8") as f:
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as page:
            data = page.read()
        start = time.process_time()
        try:
            text = extract(data)
        except Exception:
            text = ""
        seconds += time.process_time() - start
        f.write(json.dumps({"id": name[:-5], "text": text}) + "\n")
print(f"{seconds:.3f}")
