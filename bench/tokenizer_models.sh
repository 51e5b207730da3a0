#!/usr/bin/env bash
# SentencePiece models and BPE training, and their peers in the same run on the same bytes; ratios of CPU time.
# MB=8 and TRAIN_MB=24: how much of text/prose is encoded and trained on.
TMPDIR=/dev/shm . bench/lib.sh
data=$SHARED/data
MB=${MB:-8} TRAIN_MB=${TRAIN_MB:-24}
if [ ! -r "$data/text/prose/books-dev.jsonl.zst" ]; then
    row tokenizer-models - - "left out: no $data/text/prose/books-dev.jsonl.zst"
    exit 0
fi
cut_text() { # INPUT OUTPUT MEGABYTES: the texts, a line each as they have them
    zstd -dcq "$1" | python3 -c '
import json, sys
left, out = int(sys.argv[2]) * 1000000, open(sys.argv[1], "w", encoding="utf-8")
for line in sys.stdin:
    text = json.loads(line)["text"].replace("\r", "").strip() + "\n"
    out.write(text)
    left -= len(text.encode())
    if left < 0:
        break' "$2" "$3"
}
cut_text "$data/text/prose/books-dev.jsonl.zst" "$T/english" "$MB" || exit 1
cut_text "$data/text/prose/man-dev.jsonl.zst" "$T/multilingual" "$MB" || exit 1
cut_text "$data/text/prose/books-dev.jsonl.zst" "$T/train" "$TRAIN_MB" || exit 1
program tokenize_bench
models="sp8k_bpe_bytefallback sp8k_unigram_nmt_nfkc"
for m in $models; do
    for of in english multilingual; do
        "$B/bench/tokenize_bench" "$data/tokenizers/sentencepiece/$m.model" "$m-$of" "$T/$of"
    done
done | tee "$T/ours"

runs=1
s=$(cpu quern-tokenizer train -q -j1 --vocab-size 32000 --vocab-merges "$T/quern" "$T/train")
bytes=$(stat -c %s "$T/train")
row "tokenizer-train-32000-${TRAIN_MB}MB" "$s" s "of CPU, $bytes bytes of plain text"
# Unigram: lines, which are what SentencePiece's trainer takes, without what it passes over.
python3 -c '
import json, sys
with open(sys.argv[2], "w") as text, open(sys.argv[3], "w") as documents:
    for line in open(sys.argv[1], newline="\n"):
        line = line[:-1]
        if line and len(line) < 1000 and not any(c in line for c in "\t\0\u2581\u2585<"):
            text.write(line + "\n")
            documents.write(json.dumps({"text": line}) + "\n")' "$T/train" "$T/lines" "$T/lines.jsonl" || exit 1
u=$(cpu quern-tokenizer train -q -j1 --model unigram --vocab-size 16000 -o "$T/unigram.json" --sentencepiece-model "$T/unigram.model" \
    "$T/lines.jsonl")
row "tokenizer-train-unigram-16000-${TRAIN_MB}MB" "$u" s "of CPU, $(stat -c %s "$T/lines") bytes of lines"
if [ -z "$PEERS" ]; then
    row tokenizer-models-peers - - 'left out: PEERS is not set'
    exit 0
fi
TOKENIZERS_PARALLELISM=false RAYON_NUM_THREADS=1 "$PEERS" - "$data/tokenizers/sentencepiece" "$T" "$s" "$models" "$u" <<'PY'
import os, sys, time
folder, tmp, ours, models, unigram = sys.argv[1:]
warm = {l.split("\t")[0]: float(l.split("\t")[1]) for l in open(f"{tmp}/ours")}
def cpu(fn):
    t0 = time.process_time()
    fn()
    return time.process_time() - t0
try:
    import sentencepiece
    for m in models.split():
        sp = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/{m}.model")
        for of in ("english", "multilingual"):
            text = open(f"{tmp}/{of}", encoding="utf-8").read()
            parts = [text[i:i + 16384] for i in range(0, len(text), 16384)]
            sp.encode(parts[0])
            rate = len(text.encode()) / 1e6 / cpu(lambda: [sp.encode(p) for p in parts])
            print(f"sentencepiece-{m}-{of}\t{rate:.1f}\tMB/s\tin memory, CPU time; version {sentencepiece.__version__}")
            print(f"sentencepiece-{m}-{of}-ratio\t{warm[f'tokenize-{m}-{of}-warm'] / rate:.1f}\ttimes\tquern warm over it", flush=True)
except ImportError:
    print("sentencepiece\t-\t-\tleft out: not installed")
try:
    import tokenizers
    from tokenizers import Tokenizer, models as m, pre_tokenizers, trainers
    level = pre_tokenizers.ByteLevel
    t = Tokenizer(m.BPE())
    t.pre_tokenizer = level(add_prefix_space=False)
    s = cpu(lambda: t.train([f"{tmp}/train"], trainers.BpeTrainer(
        vocab_size=32000, show_progress=False, special_tokens=["<|endoftext|>"], initial_alphabet=level.alphabet())))
    t.model.save(tmp)
    rules = lambda p: [l for l in open(p, encoding="utf-8") if not l.startswith("#version")]
    same = rules(f"{tmp}/merges.txt") == rules(f"{tmp}/quern/merges.txt")
    print(f"tokenizers-train-32000\t{s:.1f}\ts\tof CPU, the same file; version {tokenizers.__version__}; the same merges: {'yes' if same else 'no'}")
    print(f"tokenizers-train-32000-ratio\t{s / float(ours):.1f}\ttimes\tits CPU time over quern's", flush=True)
except ImportError:
    print("tokenizers\t-\t-\tleft out: not installed")
try:
    import sentencepiece
    s = cpu(lambda: sentencepiece.SentencePieceTrainer.train(
        input=f"{tmp}/train", model_prefix=f"{tmp}/sp", vocab_size=32000, model_type="bpe", byte_fallback=True, num_threads=1,
        max_sentence_length=1 << 20, minloglevel=2))
    print(f"sentencepiece-train-32000\t{s:.1f}\ts\tof CPU, BPE of characters, the same file")
    print(f"sentencepiece-train-32000-ratio\t{s / float(ours):.1f}\ttimes\tits CPU time over quern's", flush=True)
    s = cpu(lambda: sentencepiece.SentencePieceTrainer.train(
        input=f"{tmp}/lines", model_prefix=f"{tmp}/spu", vocab_size=16000, model_type="unigram", max_sentence_length=1 << 20,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2))
    read = lambda p: sentencepiece.SentencePieceProcessor(model_file=p)
    pieces = lambda m: [(m.id_to_piece(i), m.get_score(i)) for i in range(m.get_piece_size())]
    a, b = pieces(read(f"{tmp}/unigram.model")), pieces(read(f"{tmp}/spu.model"))
    print(f"sentencepiece-train-unigram-16000\t{s:.1f}\ts\tof CPU, the same lines; version {sentencepiece.__version__}; the same pieces: "
          f"{len({p for p, _ in a} & {p for p, _ in b})}; and scores and ids: {sum(x == y for x, y in zip(a, b))}")
    print(f"sentencepiece-train-unigram-16000-ratio\t{s / float(unigram):.1f}\ttimes\tits CPU time over quern's", flush=True)
except ImportError:
    pass
PY
