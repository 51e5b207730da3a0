#!/usr/bin/env bash
# What `quern ablate` finds of a corpus of books and six that are spoiled, and of halves of one corpus.  Takes an hour.
#   TOKENS: that each model is trained on; MB: of each corpus; WIDTH, SEEDS; PAIRS, HALF_TOKENS: of halves.
. bench/lib.sh
MB=${MB:-10} TOKENS=${TOKENS:-3000000} WIDTH=${WIDTH:-128} SEEDS=${SEEDS:-3} PAIRS=${PAIRS:-20} HALF_TOKENS=${HALF_TOKENS:-150000}
prose=$SHARED/data/text/prose
if [ ! -r "$prose/books-dev.jsonl.zst" ]; then
    row ablate - - "left out: no $prose/books-dev.jsonl.zst"
    exit 0
fi
zstd -dcq "$prose/man-dev.jsonl.zst" | quern-langid -q --keep de:0.9 -o "$T/german.jsonl" || exit 1
# Chapters of books; of every tenth author, by a hash, those that models are evaluated on.
zstd -dcq "$prose/books-dev.jsonl.zst" | python3 -c '
import json, random, sys, zlib
out, megabytes, pairs = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
chance = random.Random(20261127)
books = [json.loads(line) for line in sys.stdin]
apart = lambda d: zlib.crc32(d["id"].split("/")[1].encode()) % 10 == 0
german = [json.loads(line)["text"] for line in open(f"{out}/german.jsonl")]
held_out = [d["text"] for d in books if apart(d) and len(d["text"]) > 3000]
books = [d["text"] for d in books if not apart(d) and len(d["text"]) > 3000]
chance.shuffle(books)
chance.shuffle(held_out)
n = size = 0
while size < megabytes * 1e6:
    size += len(books[n].encode())
    n += 1
books = books[:n]
def write(name, texts):
    with open(f"{out}/{name}.jsonl", "w") as f:
        for i, text in enumerate(texts):
            f.write(json.dumps({"id": f"{name}/{i}", "text": text}) + "\n")
def letters(length):
    words = []
    while length > 0:
        words.append("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))))
        length -= len(words[-1]) + 1
    return " ".join(words)
def part(share, other):
    """The books, of which a share is replaced by what `other` makes of their lengths."""
    which = set(chance.sample(range(n), round(share * n)))
    return [other(len(t)) if i in which else t for i, t in enumerate(books)]
def foreign(length):
    text = ""
    while len(text) < length:
        text += chance.choice(german) + "\n"
    return text[:length]
FURNITURE = """Home | News | Sport | Weather | About us | Contact | Help
You are here: Home > Library > Books > Chapter
Share this page: Twitter - Facebook - E-mail - Print
Most read: 1 Ten ways to save on your heating bill 2 What we know about the storm 3 Our guide to autumn walks
Sign up for our free weekly newsletter today! We will never share your address with anybody else.
Copyright 2026 The Daily Page. All rights reserved. Terms of use | Privacy policy | Cookies"""
def furnished(text):
    return "\n".join(l + "\n" + FURNITURE if l and chance.random() < .6 else l for l in text.split("\n"))
write("heldout", [t[len(t) // 2:][:1500] for t in held_out[:200]])
write("books", books)
write("noise5", part(.05, letters))
write("noise20", part(.2, letters))
write("noise50", part(.5, letters))
few = chance.sample(books, 3)
write("duplicates", part(.8, lambda length: chance.choice(few)))
write("boilerplate", map(furnished, books))
write("german", part(.3, foreign))
for k in range(pairs):
    order = list(range(n))
    chance.shuffle(order)
    write(f"half{k}a", [books[i] for i in order[:n // 2]])
    write(f"half{k}b", [books[i] for i in order[n // 2:]])
' "$T" "$MB" "$PAIRS" || exit 1
quern-tokenizer train -q --vocab-size 1024 -o "$T/tokenizer.json" "$T/books.jsonl" || exit 1

# ablation NAME TOKENS VARIANT...: each variant is the corpus of its name.
ablation() {
    local name=$1 tokens=$2 v
    shift 2
    {
        printf '%s\n' "input: $1.jsonl" "stages: [clean]" "tokenizer: tokenizer.json" "tokens: $tokens" "seeds: $SEEDS" \
            "model: {num-layers: 2, hidden-size: $WIDTH, num-attention-heads: 4, seq-length: 256, micro-batch-size: 8, lr: 2e-3, lr-warmup-fraction: .05, lr-decay-style: cosine," \
            "  attention-dropout: 0, hidden-dropout: 0}" "eval: {texts: {heldout: heldout.jsonl}}" "decontaminate: false" "variants:"
        for v; do echo "  $v: {input: [$v.jsonl]}"; done
        echo "stats: $name.json"
    } >"$T/$name.yaml"
    (cd "$T" && quern ablate -q "$name.yaml" >"$name.txt") || { cat "$T/$name.txt"; exit 1; }
}

SECONDS=0
ablation corpora "$TOKENS" books noise5 noise20 noise50 duplicates boilerplate german
cat "$T/corpora.txt"
row ablate-corpora "$SECONDS" s "of $(nproc) processors, all of it"
decided=0
for ((k = 0; k < PAIRS; k++)); do
    ablation "pair$k" "$HALF_TOKENS" "half${k}a" "half${k}b"
    ! grep -q '"decided":true' "$T/pair$k.json" || decided=$((decided + 1))
done
[ "$PAIRS" = 0 ] || row ablate-halves-decided "$decided" pairs "of $PAIRS pairs of halves of one corpus, $SEEDS seeds each, of $HALF_TOKENS tokens"
