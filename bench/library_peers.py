"""library_peers.py TOKENIZER DOCUMENTS: some 20 MB of documents, encoded by quern.py and by tokenizers; prints rows."""
import json
import os
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
import quern  # noqa: E402
import tokenizers  # noqa: E402


def cpu(encode, texts):
    """Seconds of processor time, the least of three, and the ids."""
    best, ids = float("inf"), None
    for _ in range(3):
        start = time.process_time()
        ids = [encoding.ids for encoding in encode(texts)]
        best = min(best, time.process_time() - start)
    return best, ids


path, documents = sys.argv[1:]
texts, size = [], 0
for line in open(documents, encoding="utf-8"):
    texts.append(json.loads(line)["text"])
    size += len(texts[-1].encode())
    if size > 20e6:
        break
ours = quern.Tokenizer.from_file(path)
theirs = tokenizers.Tokenizer.from_file(path)
name = os.path.basename(os.path.dirname(path))
seconds, ids = cpu(lambda x: ours.encode_batch(x, threads=1), texts)
peer, want = cpu(lambda x: theirs.encode_batch_fast(x, add_special_tokens=False), texts)
same = "the same ids" if ids == want else "OTHER IDS"
print(f"library-{name}", f"{size / 1e6 / seconds:.1f}", "MB/s", f"{size} bytes, {len(texts)} texts", sep="\t")
print(f"library-{name}-tokenizers", f"{size / 1e6 / peer:.1f}", "MB/s",
      f"tokenizers {tokenizers.__version__}: {peer / seconds:.1f} times the processor time, {same}", sep="\t")
