#!/usr/bin/env bash
# What `quern ablate fit` predicts of mixtures that it has not seen, of two, three and five sources.  Takes half an hour.
#   TOKENS: that each model is trained on; MB: of each source; WIDTH; FIT, TEST: mixtures fitted, and held against them;
#   MIXES: how many sources; PRECISION: bf16 or fp32.
. bench/lib.sh
TOKENS=${TOKENS:-400000} MB=${MB:-6} WIDTH=${WIDTH:-64} FIT=${FIT:-20} TEST=${TEST:-10} MIXES=${MIXES:-2 3 5} PRECISION=${PRECISION:-bf16}
prose=$SHARED/data/text/prose
pages=$SHARED/data/text/html/pages-dev.tar.zst
if [ ! -r "$prose/books-dev.jsonl.zst" ] || [ ! -r "$pages" ]; then
    row ablate-fit - - "left out: no $prose/books-dev.jsonl.zst or $pages"
    exit 0
fi
for name in books docs man; do zstd -dcq "$prose/$name-dev.jsonl.zst" >"$T/$name.all" || exit 1; done
quern-langid -q --keep de:0.9 -o "$T/german.all" "$T/man.all" || exit 1
quern-langid -q --keep en:0.65 -o "$T/english.all" "$T/man.all" && mv "$T/english.all" "$T/man.all" || exit 1
quern-extract -q -o "$T/web.all" "$pages" || exit 1
# Texts of each source, and passages of every tenth author, manual or page, by a hash, that models are evaluated on.
# The mixtures: Dirichlet(1), of a seed for those that are fitted and one for the others.
python3 -c '
import json, random, sys, zlib
out, megabytes, fit, test = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
SOURCES = ["books", "docs", "man", "german", "web"]
chance = random.Random(20261128)
def whose(d):
    parts = d["id"].split("#")[0].split("/")
    return parts[1] if parts[0] == "book" else "/".join(parts)
for s in SOURCES:
    texts = [json.loads(line) for line in open(f"{out}/{s}.all")]
    apart = lambda d: zlib.crc32(whose(d).encode()) % 10 == 0
    held = [d["text"] for d in texts if apart(d) and len(d["text"]) > 3000]
    texts = [d["text"] for d in texts if not apart(d) and len(d["text"]) > 500]
    chance.shuffle(texts)
    chance.shuffle(held)
    size = 0
    with open(f"{out}/{s}.jsonl", "w") as f:
        for i, t in enumerate(texts):
            f.write(json.dumps({"id": f"{s}/{i}", "text": t[:20000]}) + "\n")
            size += len(t[:20000].encode())
            if size > megabytes * 1e6:
                break
    with open(f"{out}/{s}.heldout", "w") as f:
        for i, t in enumerate(held[:100]):
            f.write(json.dumps({"id": f"{s}/{i}", "text": t[len(t) // 2:][:1500]}) + "\n")
for k in 2, 3, 5:
    for which, n, seed in ("fit", fit, 1), ("test", test, 2):
        draw = random.Random(seed)
        with open(f"{out}/{which}{k}", "w") as f:
            for i in range(n):
                w = [draw.expovariate(1) for _ in range(k)]
                w = [round(x / sum(w), 4) for x in w]
                weights = ", ".join(f"{s}.jsonl: {x}" for s, x in zip(SOURCES, w) if x > 0)
                f.write(f"  {which}{i}: {{weights: {{{weights}}}}}\n")
' "$T" "$MB" "$FIT" "$TEST" || exit 1
quern-tokenizer train -q --vocab-size 1024 -o "$T/tokenizer.json" "$T"/{books,docs,man,german,web}.jsonl || exit 1

for k in $MIXES; do
    sources=$(echo books docs man german web | cut -d ' ' -f "-$k")
    SECONDS=0
    for which in fit test; do
        {
            printf '%s\n' "input: [$(for s in $sources; do printf '%s.jsonl, ' "$s"; done)]" "stages: [clean]" "work: $k.work" \
                "tokenizer: tokenizer.json" "tokens: $TOKENS" "seeds: 1" "model: {num-layers: 1, hidden-size: $WIDTH, num-attention-heads: 4," \
                "  position-embedding-type: rope, normalization: RMSNorm, swiglu: true, disable-bias-linear: true," \
                "  seq-length: 256, micro-batch-size: 2, optimizer: muon, muon-extra-scale-factor: 0.2, lr: 1e-2," \
                "  lr-warmup-fraction: .05, lr-decay-style: cosine, attention-dropout: 0, hidden-dropout: 0," \
                "  bf16: $([ "$PRECISION" = bf16 ] && echo true || echo false)}" \
                "eval: {texts: {$(for s in $sources; do printf '%s: %s.heldout, ' "$s" "$s"; done)}}" \
                "decontaminate: false" "stats: $which$k.json" "variants:"
            cat "$T/$which$k"
        } >"$T/$which$k.yaml"
        (cd "$T" && quern ablate -q "$which$k.yaml" >"$which$k.txt") || { cat "$T/$which$k.txt"; exit 1; }
    done
    quern ablate fit -q --test "$T/test$k.json" --stats "$T/law$k.json" "$T/fit$k.json" || exit 1
    row "ablate-fit-$k" "$SECONDS" s "$((FIT + TEST)) mixtures of $k sources, $TOKENS tokens each; of $(nproc) processors, all of it"
    [ -z "${KEEP:-}" ] || cp "$T"/{fit,test,law}$k.json "$KEEP"
done
