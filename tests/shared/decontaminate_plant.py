"""Plants evaluation questions in documents, one in each, and says where.

    python3 decontaminate_plant.py QUESTIONS DOCUMENTS N > DOCS 3> TRUTH

N documents of each kind of planting; as many again get none.  TRUTH has a line a planted
document: id, question id, kind, words of what was planted that are as in the question
(the longest run of them in a row, all of them, and those of the whole question).
"""
import json
import random
import re
import sys

KINDS = ["verbatim", "with-answer", "case", "whitespace", "first-half", "every-10th", "reversed", "inserted"]
WORD = re.compile(r"[^\W_]+")


def words(text):
    return [w.lower() for w in WORD.findall(text)]


def planted(kind, question, answer, rng):
    if kind == "with-answer":
        return question + "\n" + answer
    if kind == "case":
        return re.sub(r"[,.;:?!]", "", question.upper())
    if kind == "whitespace":
        return "\n".join("  \t".join(line.split()) for line in question.split("\n"))
    if kind == "first-half":
        parts = question.split(" ")
        return " ".join(parts[: (len(parts) + 1) // 2])
    if kind == "every-10th":
        parts = question.split(" ")
        for i in range(9, len(parts), 10):
            parts[i] = "zq" + str(rng.randrange(1000))
        return " ".join(parts)
    if kind == "reversed":
        return " ".join(reversed(re.split(r"(?<=[.!?])\s+", question.strip())))
    if kind == "inserted":
        parts = question.split(" ")
        return " ".join(p + " zq" if i % 15 == 14 else p for i, p in enumerate(parts))
    return question


def longest_run(a, b):
    """The most words in a row that both have."""
    best, before = 0, {}
    where = {}
    for j, w in enumerate(b):
        where.setdefault(w, []).append(j)
    for w in a:
        now = {j: before.get(j - 1, 0) + 1 for j in where.get(w, ())}
        best = max(best, max(now.values(), default=0))
        before = now
    return best


def main():
    rng = random.Random(20261121)
    questions = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    docs = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
    n = int(sys.argv[3])
    docs = [d for d in docs if len(d["text"]) > 2000]
    rng.shuffle(docs)
    truth = open(3, "w", encoding="utf-8")
    for i, d in enumerate(docs[: 2 * n * len(KINDS)]):
        text = d["text"]
        if i % 2 == 0:
            kind = KINDS[i // 2 % len(KINDS)]
            q = rng.choice(questions)
            own = words(q["question"])
            if kind in ("every-10th", "inserted", "reversed"): # takes more than a sentence
                while len(own) < 20:
                    q = rng.choice(questions)
                    own = words(q["question"])
            answer = q["answer"] if isinstance(q["answer"], str) else str(q["answer"])
            passage = planted(kind, q["question"], answer, rng)
            at = text.find("\n\n", rng.randrange(len(text)))
            at = len(text) if at < 0 else at
            text = text[:at] + "\n\n" + passage + text[at:]
            whole = own if kind != "with-answer" else words(q["question"] + "\n" + answer)
            print(d["id"], q["id"], kind, longest_run(words(passage), whole), len(whole), len(own), sep="\t", file=truth)
        print(json.dumps({"id": d["id"], "text": text}, ensure_ascii=False))


main()
