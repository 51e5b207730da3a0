"""Near-duplicates of a file of documents by a peer, or how good what was kept is; for near.sh.

    near_peers.py keep SYSTEM DOCS.jsonl FOLDER KEPT   one process, a row of ids of what stays into KEPT
    near_peers.py truth DOCS.jsonl PAIRS               the pairs of a family with a Jaccard similarity over .3
    near_peers.py judge DOCS.jsonl PAIRS KEPT...       what was dropped and kept, by the truth

Shingles of five words (\\w+, lower case) everywhere; threshold .8 where a system has one.
"""
import json, os, re, resource, subprocess, sys, time

WORD = re.compile(r"\w+")
THRESHOLD = .8


def documents(path):
    with open(path) as lines:
        for line in lines:
            yield json.loads(line)


def shingles(text):
    words = WORD.findall(text.lower())
    return {" ".join(words[i:i + 5]) for i in range(max(1, len(words) - 4))}


def keep_datatrove(docs, folder):
    from datatrove.data import Document
    from datatrove.pipeline.dedup import minhash as m
    c = m.MinhashConfig()  # 14 buckets of 8 hashes, 5 words
    step = m.MinhashDedupSignature(folder + "/sig", config=c)
    step.get_shingles("load the tokenizer")
    stream = lambda: (Document(text=d["text"], id=d["id"]) for d in documents(docs))
    step.run(stream(), 0, 1)
    for b in range(c.num_buckets):
        m.MinhashDedupBuckets(folder + "/sig", folder + "/dup", config=c).run(None, b, c.num_buckets)
    m.MinhashDedupCluster(folder + "/dup", folder + "/rm", config=c).run(None, 0, 1)
    return [d.id for d in m.MinhashDedupFilter(folder + "/rm").run(stream(), 0, 1)]


def keep_datasketch(docs, folder):
    from datasketch import MinHash, MinHashLSH
    lsh, kept = MinHashLSH(threshold=THRESHOLD, num_perm=128), []
    for d in documents(docs):
        m = MinHash(num_perm=128)
        m.update_batch([s.encode() for s in shingles(d["text"])])
        if not lsh.query(m):
            lsh.insert(d["id"], m)
            kept.append(d["id"])
    return kept


def keep_rensa(docs, folder):
    from rensa import RMinHash, RMinHashDeduplicator
    dedup, kept = RMinHashDeduplicator(threshold=THRESHOLD, num_perm=128, use_lsh=True), []
    for d in documents(docs):
        m = RMinHash(num_perm=128, seed=42)
        m.update(list(shingles(d["text"])))
        if dedup.add(d["id"], m):
            kept.append(d["id"])
    return kept


def keep_text_dedup(docs, folder):
    subprocess.run([sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", docs, "--split", "train",
                    "--cache_dir", folder + "/cache", "--output", folder + "/out", "--column", "text", "--threshold",
                    str(THRESHOLD), "--num_proc", "1", "--hash_func", "xxh3"], check=True, cwd=folder,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    import datasets
    return datasets.load_from_disk(folder + "/out")["id"]


def keep(system, docs, folder, out):
    docs, folder = os.path.abspath(docs), os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    kept = globals()["keep_" + system](docs, folder)
    own, child = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    with open(out, "w") as f:
        f.writelines(k + "\n" for k in kept)
    print(f"{own.ru_utime + own.ru_stime + child.ru_utime + child.ru_stime:.1f} "
          f"{max(own.ru_maxrss, child.ru_maxrss) * 1024 / 1e6:.0f}")


def truth(docs, out):
    families = {}
    for n, d in enumerate(documents(docs)):
        families.setdefault(d["root"], []).append((n, d["id"], d["text"]))
    with open(out, "w") as f:
        for family in families.values():
            sets = [shingles(text) for _, _, text in family] if len(family) > 1 else []
            for i, a in enumerate(sets):
                for j in range(i):
                    both = len(a & sets[j])
                    similarity = both / (len(a) + len(sets[j]) - both)
                    if similarity > .3:
                        f.write(f"{family[j][1]}\t{family[i][1]}\t{similarity:.6f}\n")


def judge(docs, pairs, *kept):
    ids = [d["id"] for d in documents(docs)]
    near = {}
    for line in open(pairs):
        a, b, similarity = line.split("\t")
        near.setdefault(a, []).append((b, float(similarity)))
        near.setdefault(b, []).append((a, float(similarity)))
    edges = (0, .5, .6, .7, .75, .8, .85, .9, .95, 1.01)
    print("system\tkept\tdropped, by the greatest similarity to what stays: " + "\t".join(f"from {e}" for e in edges[:-1])
          + "\tpairs from .8 of which both stay: .8\t.85\t.9\t.95\tpairs from .8 in all")
    for path in kept:
        stay = set(open(path).read().split())
        dropped, missed, everything = [0] * 9, [0] * 9, [0] * 9
        place = lambda s: max(i for i in range(9) if s >= edges[i])
        for d in ids:
            if d not in stay:
                dropped[place(max((s for o, s in near.get(d, ()) if o in stay), default=0))] += 1
            for o, s in near.get(d, ()):
                if d < o:
                    everything[place(s)] += 1
                    missed[place(s)] += d in stay and o in stay
        print(os.path.basename(path), len(stay), *dropped, *missed[5:], sum(everything[5:]), sep="\t")


if __name__ == "__main__":
    {"keep": keep, "truth": truth, "judge": judge}[sys.argv[1]](*sys.argv[2:])
