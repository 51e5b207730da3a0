"""Records what CCNet and datatrove leave of a small corpus: tests/data/dedup/lines.jsonl (the
corpus), lines_ccnet.jsonl and lines_datatrove.jsonl (the documents that stay).

    PYTHONPATH=cc_net-1.0.0 python tests/record/dedup_lines.py tests/data/dedup

Needs datatrove (0.10.1 was used) with spacy, and cc_net 1.0.0 (its sources; numpy and psutil are
enough for cc_net.dedup).  With --stdin the corpus is JSON lines on standard input and what comes
out is `id<TAB>SHA-1 of the text` of each document that datatrove keeps; tests/shared/dedup_lines.sh
has the SHA-1 of that.
"""
import hashlib
import json
import random
import sys
import tempfile

OPENINGS = ["The mill", "A quern", "Dr. Grün", "The U.S. office", "Mr. O'Brien", "Every stone", "ΟΔΥΣΣΕΥΣ", "İstanbul"]
VERBS = ["ground 12.5 tons of", "weighed", "can't find", "sold (for $3,000)", "remembers", "doesn't sell", "filtered"]
THINGS = ["wheat", "rye", "naïve flour", "the café's bread", "“old” millstones", "e.g. barley", "10 sacks", "oats — or spelt"]
ENDS = [".", ".", ".", "!", "?", "...", '."', "?!", " …", "。", ".)", " etc."]
LINES = ["Subscribe to our newsletter!", "Copyright © 2019 Mills Inc.", "copyright © 2024 mills inc.", "Read more »",
         "* * *", "", "", "   ", "Page 1 of 20", "Page 7 of 31", "１２３ numbers ٤٥", "tab\there", "Ends\u00a0", "next\u2028line",
         "„Zitat“ – hier", "Zitat hier", "\u0085", "ÀÉÎ ÖÜ", "àéî öü", "aeiou", "Σ", "ΑΣ", "ας", "ασ"]


def sentence(r):
    return f"{r.choice(OPENINGS)} {r.choice(VERBS)} {r.choice(THINGS)}" + (f", number {r.randrange(40)}" if r.random() < 0.6 else "") + r.choice(ENDS)


def corpus():
    r = random.Random(7)
    pool = [sentence(r) for _ in range(60)]
    runs = [[r.choice(pool) for _ in range(r.randrange(3, 7))] for _ in range(12)]
    for i in range(150):
        parts = []
        while len(parts) < r.choice([1, 3, 8, 12, 20]):
            kind = r.random()
            if kind < 0.35:
                parts += r.choice(runs)
            elif kind < 0.6:
                parts.append(r.choice(LINES))
            elif kind < 0.7:
                parts.append(r.choice(pool))
            else:
                parts.append(sentence(r) + f" {r.randrange(10**6):x} xyz{i}")
        text = parts[0]
        for p in parts[1:]:
            text += r.choice([" ", " ", "\n", "\n", "\n\n", "  ", "\n \n"]) + p
        text += r.choice(["", "", "\n", " ", "  ", "\n\n"])
        yield {"id": f"d{i}", "text": "" if i % 50 == 49 else text}


def ccnet(docs):
    from cc_net.dedup import DuplicatesRemover, HashesCollector

    with tempfile.TemporaryDirectory() as tmp:
        file = tmp + "/hashes.bin"
        c = HashesCollector("text", output=file)
        for d in docs:
            c.do(d)
        c.close()
        remover = DuplicatesRemover("text", [file])
        remover._prepare()
        for d in docs:
            out = remover.do(dict(d))
            if out:
                yield {"id": d["id"], "text": out["text"]}


def datatrove(docs):
    from datatrove.data import Document
    from datatrove.pipeline.dedup import sentence_dedup as s

    with tempfile.TemporaryDirectory() as tmp:
        c = s.SentDedupConfig()
        of = lambda: (Document(text=d["text"], id=d["id"]) for d in docs)
        s.SentenceDedupSignature(tmp + "/sig", config=c).run(of(), 0, 1)
        s.SentenceFindDedups(tmp + "/sig", tmp + "/dup", config=c).run(None, 0, 1)
        for d in s.SentenceDedupFilter(tmp + "/dup", config=c).run(of(), 0, 1):
            yield {"id": d.id, "text": d.text}


def write(name, docs):
    with open(name, "w", encoding="utf-8") as f:
        for d in docs:
            f.write(json.dumps(d, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    if "--stdin" in sys.argv:
        for d in datatrove([{"id": str(d.get("id")), "text": d["text"]} for d in map(json.loads, sys.stdin)]):
            print(d["id"], hashlib.sha1(d["text"].encode()).hexdigest(), sep="\t")
        return
    docs = list(corpus())
    write(sys.argv[1] + "/lines.jsonl", docs)
    write(sys.argv[1] + "/lines_ccnet.jsonl", ccnet(docs))
    write(sys.argv[1] + "/lines_datatrove.jsonl", datatrove(docs))


main()
