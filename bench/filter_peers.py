"""filter_peers.py nemo|dolma DIR FILE: CPU seconds of the original's signals for the documents of FILE."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "record"))
import filter_dialects

_, judge = getattr(filter_dialects, sys.argv[1])(os.path.abspath(sys.argv[2]))
judge("Loads what it needs.")
start = time.process_time()
for line in open(sys.argv[3]):
    judge(json.loads(line)["text"])
print(time.process_time() - start)
