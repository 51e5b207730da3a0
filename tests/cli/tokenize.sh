#!/usr/bin/env bash
# quern tokenize: the bytes of .bin and .idx, order, bad lines.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
TOK=$ROOT/tests/data/tokenizer/gpt2.json

# Documents with escapes, empty ones, one that is not read, and a bad line.
python3 - >docs.jsonl <<'PY'
import json
for i in range(3000):
    text = "" if i % 50 == 7 else f"Document {i}: \u201cthe mill\u201d grinds\n\t{'grain ' * (i % 40)}\u00e9 \U0001f33e \"x\\y\" " 
    print(json.dumps({"id": str(i), "text": text, "n": i}, ensure_ascii=i % 2 == 0))
PY

# Written from the format's table, with the ids that `encode` prints.
expected() { # eod width
    quern tokenizer encode --tokenizer "$TOK" --jsonl docs.jsonl >ids.jsonl
    python3 - "$1" "$2" <<'PY'
import json, struct, sys
eod, width = int(sys.argv[1]), int(sys.argv[2])
lengths, ends, n = [], [0], 0
with open("want.bin", "wb") as f:
    for line in open("ids.jsonl"):
        ids = json.loads(line)
        if ids and eod >= 0:
            ids.append(eod)
        f.write(struct.pack("<%d%s" % (len(ids), "H" if width == 2 else "i"), *ids))
        if ids:
            lengths.append(len(ids))
        ends.append(len(lengths))
offsets = [0]
for x in lengths:
    offsets.append(offsets[-1] + x * width)
with open("want.idx", "wb") as f:
    f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8 if width == 2 else 4, len(lengths), len(ends)))
    f.write(struct.pack("<%di" % len(lengths), *lengths))
    f.write(struct.pack("<%dq" % len(lengths), *offsets[:-1]))
    f.write(struct.pack("<%dq" % len(ends), *ends))
PY
}

expected -1 2
status "tokenize" 0 quern tokenize --tokenizer "$TOK" --output-prefix a docs.jsonl
same ".bin" a_text_document.bin want.bin
same ".idx" a_text_document.idx want.idx
has "how it was made" a_text_document.sum.json '"pattern":"gpt2"'
expected 0 2
for j in 1 2 7; do
    status "with ends, -j$j" 0 quern tokenize -j$j --append-eod --tokenizer "$TOK" --output-prefix e$j docs.jsonl
    same "-j$j .bin" e${j}_text_document.bin want.bin
    same "-j$j .idx" e${j}_text_document.idx want.idx
done
gzip -k docs.jsonl
zstd -q docs.jsonl
for f in gz zst; do
    check "$f" quern tokenize --append-eod --tokenizer "$TOK" --output-prefix $f docs.jsonl.$f
    same "$f: the same" ${f}_text_document.bin want.bin
done
quern tokenize -q --append-eod --tokenizer "$TOK" --output-prefix in <docs.jsonl
same "standard input" in_text_document.bin want.bin
head -1500 docs.jsonl >one.jsonl
tail -n +1501 docs.jsonl >two.jsonl
quern tokenize -q --append-eod --tokenizer "$TOK" --output-prefix two one.jsonl two.jsonl
same "two files" two_text_document.bin want.bin
same "two files, .idx" two_text_document.idx want.idx

# A vocabulary of 65,500 takes four bytes.
sed 's/"id": 0,/"id": 65499,/; s/"<|endoftext|>":0/"<|endoftext|>":65499/' "$TOK" >wide.json
status "a large vocabulary" 0 quern tokenize --tokenizer wide.json --output-prefix w docs.jsonl
expected -1 4
same "four bytes" w_text_document.bin want.bin
same "four bytes, .idx" w_text_document.idx want.idx

# Bad lines are named and skipped; with other keys they are all bad.
{ head -3 docs.jsonl; echo '{"text": "unfinished'; echo '{"nothing":1}'; printf '{"text":"\xff"}\n'; sed -n 4,6p docs.jsonl; } >mixed.jsonl
status "bad lines" 1 quern tokenize --tokenizer "$TOK" --output-prefix m mixed.jsonl
equal "each of them" "$(grep -c skipped err)" 4
head -6 docs.jsonl >six.jsonl
quern tokenize -q --tokenizer "$TOK" --output-prefix six six.jsonl
same "the others are there" m_text_document.bin six_text_document.bin
status "another key" 1 quern tokenize --tokenizer "$TOK" --json-keys body --output-prefix k six.jsonl
printf '{"body":"x"}\n' >body.jsonl
status "another key that is there" 0 quern tokenize --tokenizer "$TOK" --json-keys body --output-prefix k body.jsonl
[ -s k_body_document.bin ] && ok "named by the key" || bad "named by the key"
: >none.jsonl
status "no documents" 0 quern tokenize --tokenizer "$TOK" --output-prefix none none.jsonl
equal "an empty dataset" "$(wc -c <none_text_document.bin)" 0

head -c 3000 docs.jsonl.gz >cut.gz
status "half a gz" 1 quern tokenize --tokenizer "$TOK" --output-prefix c cut.gz
has "named" err cut.gz
status "no input" 3 quern tokenize --tokenizer "$TOK" --output-prefix n missing.jsonl
absent "nothing is left" n_text_document.bin n_text_document.idx .n_text_document.bin.part
status "no folder to write to" 3 quern tokenize --tokenizer "$TOK" --output-prefix no/where six.jsonl
status "no prefix" 2 quern tokenize --tokenizer "$TOK" six.jsonl
quern tokenizer train -q --vocab-size 300 --special-tokens '<pad>' -o noend.json "$ROOT/tests/data/tokenizer/corpus.txt"
status "no end of document" 2 quern tokenize --append-eod --tokenizer noend.json --output-prefix n six.jsonl
finish
