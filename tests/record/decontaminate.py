"""Records what datatrove and NeMo Curator make of some documents: tests/data/decontaminate.

    python tests/record/decontaminate.py CURATOR tests/data/decontaminate

CURATOR is the unpacked source of nemo-curator 0.9.0; only the code of its module for this
runs.  Needs datatrove (0.10.1 was used) with spacy and xxhash.  Questions and documents
are made of random words.  Written, as JSON lines:
  questions   id, task, question, answer
  docs        id, text
  datatrove   id, and the n-gram for which the document is dropped
  curator     id, text (the pieces joined by an empty line); "rule" instead of a text when
              it is dropped

With two more arguments, QUESTIONS and DOCUMENTS (JSON lines), these are read instead.
"""
import importlib.util
import json
import random
import sys
import types
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.decont import NGramsDecontFilter, NGramsDecontIndexer

SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu st br cl ing er".split()
ODD = ["caf\u00e9", "\u0130stanbul", "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3", "na\u00efve", "\u6587\u5b57", "don't", "3,141.5",
       "U.S.A.", "co-op", "\u201cquoted\u201d", "a\u0301b", "1984", "x\u2014y", "e.g.", "$5"]


def word(rng):
    w = "".join(rng.choice(SYLLABLES) for _ in range(rng.randrange(1, 4)))
    return w.capitalize() if rng.random() < 0.1 else w


def sentence(rng, vocabulary, n):
    words = [rng.choice(vocabulary) if rng.random() < 0.95 else rng.choice(ODD) for _ in range(n)]
    words = [w + "," if rng.random() < 0.1 else w for w in words]
    return " ".join(words).capitalize() + rng.choice([".", ".", "?", "!", " ."])


def make_questions(rng, vocabulary):
    for i in range(150):
        n = rng.choice([4, 7, 8, 9, 11, 12, 13, 14, 20, 40])
        q = sentence(rng, vocabulary, n)
        if i % 20 == 0:
            q = q.replace(" ", " \n ", 2)
        yield {"id": f"q{i}", "task": f"t{i % 3}", "question": q,
               "answer": sentence(rng, vocabulary, rng.choice([1, 3, 11, 12, 25]))}


def make_docs(rng, vocabulary, questions):
    common = next(q for q in questions if len(q["question"].split()) > 15)["question"] + " "
    for i in range(90):
        parts = []
        for _ in range(rng.choice([1, 5, 20, 40])):
            parts.append(sentence(rng, vocabulary, rng.randrange(3, 30)))
            parts.append(rng.choice([" ", " ", "  ", "\n", "\n\n", " \n ", "\t"]))
        for _ in range(rng.choice([0, 0, 1, 1, 2, 12]) if i != 7 else 0):
            q = rng.choice(questions)
            planted = rng.choice([q["question"], q["question"] + " " + q["answer"], q["answer"],
                                  q["question"].upper(), q["question"].replace(" ", "  "),
                                  q["question"][: len(q["question"]) * 2 // 3]])
            parts.insert(rng.randrange(len(parts) + 1), " " + planted + rng.choice([" ", "\n", ". "]))
        if i == 7: # more pieces than a document may have
            parts = [" ".join(sentence(rng, vocabulary, 8) for _ in range(18)) + " " + q["question"] + " "
                     for q in questions if len(q["question"].split()) > 12][:14]
        if i % 7 == 0:
            parts.insert(rng.randrange(len(parts) + 1), " " + common)
        yield {"id": f"d{i}", "text": "".join(parts)}


def datatrove(questions, docs):
    NGramsDecontIndexer._requires_dependencies = []
    indexer, judge = NGramsDecontIndexer("/tmp"), NGramsDecontFilter("/tmp")
    judge._index_hashes = {h: q["task"] for q in questions for h in indexer.compute_hashes(q["answer"], q["question"])}
    for d in docs:
        doc = Document(text=d["text"], id=d["id"])
        if judge.filter(doc) is not True:
            yield {"id": d["id"], "ngram": doc.metadata["contaminated_ngram"]}


def load_curator(path):
    """The module and its text functions, without the rest of the package."""
    def stub(name, **values):
        module = types.ModuleType(name)
        module.__dict__.update(values)
        sys.modules[name] = module

    def load(name, file):
        spec = importlib.util.spec_from_file_location(name, Path(path) / file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    class Base:
        def __init__(self, **_):
            pass

    for name in ["dask", "dask.dataframe", "nemo_curator", "nemo_curator.modules", "nemo_curator.utils", "nemo_curator.tasks"]:
        stub(name, delayed=lambda f: f, DataFrame=object)
    stub("nemo_curator.datasets", DocumentDataset=object)
    stub("nemo_curator.modules.base", BaseModule=Base)
    stub("nemo_curator.utils.distributed_utils", single_partition_write_with_filename=None)
    stub("nemo_curator.utils.import_utils", gpu_only_import=lambda _: None)
    load("nemo_curator.utils.text_utils", "nemo_curator/utils/text_utils.py")
    task = load("nemo_curator.tasks.downstream_task", "nemo_curator/tasks/downstream_task.py")
    return load("nemo_curator.modules.task", "nemo_curator/modules/task.py").TaskDecontamination, task.DownstreamTask


def curator(path, questions, docs):
    decontaminate, base = load_curator(path)
    decontaminate._check_text.__globals__["print"] = lambda *_, **__: None

    class Task(base):
        def generate_ngrams(self):
            for q in questions:
                self._update_ngrams(q["question"])
            return self.ngrams

    c = decontaminate(Task())
    grams = Task().generate_ngrams()
    lengths = c._compute_ngram_freq_sorted(grams)
    counts = {}
    for d in docs:
        counts = c._merge_counts(counts, c._find_ngrams(d["text"], grams, lengths))
    kept = c._threshold_ngram_count(counts)
    for d in docs:
        pieces = c._remove_ngrams(d["text"], kept, lengths)
        if 1 <= len(pieces) <= c.max_splits:
            yield {"id": d["id"], "text": "\n\n".join(pieces)}
        else:
            yield {"id": d["id"], "rule": "splits" if pieces else "pieces", "value": len(pieces)}


def main():
    rng = random.Random(5)
    out = Path(sys.argv[2])
    vocabulary = [word(rng) for _ in range(400)]
    questions = list(make_questions(rng, vocabulary))
    docs = list(make_docs(rng, vocabulary, questions))
    if len(sys.argv) > 3:
        questions, docs = ([json.loads(line) for line in open(f, encoding="utf-8")] for f in sys.argv[3:5])
    for name, lines in [("questions", questions), ("docs", docs), ("datatrove", datatrove(questions, docs)),
                        ("curator", curator(sys.argv[1], questions, docs))]:
        with open(out / f"{name}.jsonl", "w", encoding="utf-8") as f:
            for line in lines:
                f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


main()
