#!/usr/bin/env bash
# libquern.so: what it exports and needs, how it is installed, and docs/library.md's examples.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
case $B in /*) built=$B ;; *) built=$ROOT/$B ;; esac
lib=$built/lib/libquern.so.0

grep -oE '\bquern_[a-z_]+\(' "$ROOT/bindings/quern.h" | tr -d '(' | sort -u >declared
nm -D --defined-only "$lib" | awk '$2 == "T" { print $3 }' | sort >exported
equal 'every function of the header, and nothing else, is exported' "$(sed 's/@@.*//' exported)" "$(cat declared)"
equal 'each with a version' "$(grep -vE '@@QUERN_[0-9.]+$' exported)" ''
equal "the library's page has them all" "$(grep -oE '`quern_[a-z_]+`' "$ROOT/docs/library.md" | tr -d '\`' | sort -u)" "$(cat declared)"
equal 'it has a name for the linker' "$(readelf -d "$lib" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" libquern.so.0
check 'and stays loaded' grep -q NODELETE <(readelf -d "$lib")
if [ -z "${SAN:-}" ] && ! nm -D "$lib" | grep -q '__[at]san_'; then
    equal 'it can neither end a program, nor print errors, nor handle signals' "$(nm -D -u "$lib" |
        grep -E ' (_?exit|_Exit|quick_exit|abort|signal|sigaction|stderr|perror|putchar|puts|system|setlocale|srand|setenv)@')" ''
fi

# Installed, as a user has it.
makes() { make -C "$ROOT" --no-print-directory B="$B" HAVE_CUDA=0 "$@"; }
status 'make install-library' 0 makes -s install-library PREFIX="$T/usr"
pc=$T/usr/lib/pkgconfig/quern.pc
equal "pkg-config's file has the folders" "$(grep -E '^(prefix|libdir|Libs|Cflags|Version)' "$pc" | tr '\n' '|')" \
    "prefix=$T/usr|libdir=\${prefix}/lib|Version: $(quern --version | sed 's/quern //; s/ .*//')|Libs: -L\${libdir} -lquern|Cflags: -I\${includedir}|"
page=$T/usr/share/man/man3/libquern.3
has 'the page in section 3 has the functions' "$page" 'int64_t quern_encode_batch(quern_tokenizer *t'
if command -v man >/dev/null; then
    equal 'and is well-formed' "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=120 man --warnings=all -l "$page" 2>&1 >/dev/null)" ''
fi
# block KIND: the first block of that kind in the library's page.
block() { awk -v s='```'"$1" 'on && /^```/ { exit } on; $0 == s { on = 1 }' "$ROOT/docs/library.md"; }
printf '{"id":"1","text":"The mill grinds the grain."}\n{"id":"2","text":"The grain feeds the mill, the mill the village."}\n' >docs.jsonl
quern tokenizer train -q --vocab-size 300 -o tokenizer.json docs.jsonl
quern tokenize -q --tokenizer tokenizer.json --append-eod --output-prefix corpus docs.jsonl
block c >ids.c
if readelf -d "$lib" | grep -qE 'lib(clang_rt|asan|tsan)' || nm -D "$lib" | grep -q '__[at]san_'; then
    skip "the page's examples" 'the library wants a program with sanitizers'
    finish
fi
flags="-I$T/usr/include -L$T/usr/lib -lquern"
if command -v pkg-config >/dev/null; then flags=$(PKG_CONFIG_PATH=$T/usr/lib/pkgconfig pkg-config --cflags --libs quern); fi
# shellcheck disable=SC2086 # words
status "the page's C is compiled without a warning" 0 ${CC:-cc} -std=c11 -Wall -Wextra -Werror -o ids ids.c $flags
export LD_LIBRARY_PATH=$T/usr/lib
status 'and runs' 0 ./ids tokenizer.json corpus_text_document
has 'with the ids of quern tokenizer encode' out \
    "$(printf 'The mill grinds the grain.' | quern tokenizer encode --tokenizer tokenizer.json) are: The mill grinds the grain."
has 'and the lengths of documents' out "document 1: $(printf 'The grain feeds the mill, the mill the village.' |
    quern tokenizer encode --tokenizer tokenizer.json | awk '{ print NF + 1 }') tokens"
status 'what is missing is an error' 1 ./ids nothing.json corpus_text_document
has 'with its name' err nothing.json
printf '#include <quern.h>\nint main() { return quern_version()[0] == 0; }\n' >version.cc
# shellcheck disable=SC2086
status 'C++ has the header too' 0 ${CXX:-c++} -Wall -Wextra -Werror -o version version.cc $flags

# Python: Debian's, or PYTHON.
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    skip 'the Python module' "no NumPy for $python"
    finish
fi
export PYTHONPATH=$T/usr/share/quern PYTHONDONTWRITEBYTECODE=1
block python >example.py
status "the page's Python runs" 0 "$python" example.py
has 'it has the ids of quern tokenizer encode' out \
    "[$(printf 'The mill grinds the grain.' | quern tokenizer encode --tokenizer tokenizer.json | sed 's/ /, /g')] The mill grinds the grain."
has 'and samples' out '(17,)'
cp "$ROOT"/tests/data/tokenizer/{gpt2,spm_llama}* "$ROOT/tests/data/train/sft/tokenizer.json" .
status 'ids, texts and samples in Python' 0 "$python" - <<'PY'
import json, pickle, sys
import numpy as np, quern

def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: {got!r}, not {want!r}")

for name, recorded in (("gpt2.json", "gpt2.hf.jsonl"), ("spm_llama.model", "spm_llama.jsonl")):
    tokenizer = quern.Tokenizer.from_file(name)
    lines = [json.loads(line) for line in open(recorded, encoding="utf-8")]
    lines = [x for x in lines if "text" in x and "ids" in x]
    assert len(lines) > 20, recorded
    texts = [x["text"] for x in lines]
    for threads in 1, 3:
        batch = tokenizer.encode_batch(texts, allow_special=False, threads=threads)
        same(f"{name}: ids", [x.ids for x in batch], [x["ids"] for x in lines])
    same("one by one", [tokenizer.encode(t, allow_special=False).ids for t in texts], [x["ids"] for x in lines])
    same("texts", tokenizer.decode_batch([x.array for x in batch]), [tokenizer.decode(x.ids) for x in batch])
    if name == "gpt2.json":
        same("there and back", tokenizer.decode_batch([x.array for x in batch], skip_special_tokens=False), texts)

tokenizer = pickle.loads(pickle.dumps(quern.Tokenizer("tokenizer.json", eod="<|endoftext|>")))
same("vocabulary", tokenizer.get_vocab_size(), 352)
same("token", (tokenizer.token_to_id("<|endoftext|>"), tokenizer.id_to_token(0), tokenizer.is_special(0)), (0, b"<|endoftext|>", True))
same("no token", (tokenizer.token_to_id("nothing here"), tokenizer.id_to_token(352), tokenizer.id_to_token(-1)), (None, None, None))
same("eod", tokenizer.eod, 0)
ids = tokenizer.encode("a<|endoftext|>b").ids
same("special", len(ids), 3)
same("skipped", (tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=False)), ("ab", "a<|endoftext|>b"))
same("plain", 0 in tokenizer.encode("a<|endoftext|>b", allow_special=False).ids, False)
same("bytes", tokenizer.decode_bytes(tokenizer.encode(b"\xff\x00a").ids), b"\xff\x00a")
same("nothing", (tokenizer.encode("").ids, tokenizer.encode_batch([]), tokenizer.decode([]), tokenizer.decode_batch([])), ([], [], "", []))
for call in (lambda: quern.Tokenizer("missing.json"), lambda: tokenizer.decode([352]), lambda: quern.Dataset("missing")):
    try:
        call()
        sys.exit("no error")
    except quern.Error as e:
        same("code", e.code in (-2, -3), True)

data = pickle.loads(pickle.dumps(quern.Dataset("corpus_text_document")))
idx = open("corpus_text_document.idx", "rb").read()
same("sequences", (len(data), data.dtype), (2, np.dtype(np.uint16)))
lengths = np.frombuffer(idx, "<i4", 2, 34)
same("lengths", data.sequence_lengths.tolist(), lengths.tolist())
same("documents", data.document_indices.tolist(), np.frombuffer(idx, "<i8", 3, 34 + 12 * 2).tolist())
tokens = np.fromfile("corpus_text_document.bin", "<u2")
same("all", np.concatenate(data[:]).tolist(), tokens.tolist())
same("last", (data[-1].tolist(), data[-1].dtype), (tokens[lengths[0]:].tolist(), data.dtype))
same("some", data.get(1, 2, 3).tolist(), tokens[lengths[0] + 2:lengths[0] + 5].tolist())
for call in (lambda: data[2], lambda: data.get(0, 0, 1000), lambda: data.get(0, -1)):
    try:
        call()
        sys.exit("no error")
    except IndexError:
        pass
samples = pickle.loads(pickle.dumps(quern.GPTDataset(["0.5", "corpus_text_document", 0.5, "corpus_text_document"], 5, 20)))
same("samples", (len(samples) >= 20, samples[0].shape, samples[-1].dtype), (True, (6,), np.dtype(np.int32)))
double = tokens.tolist() * 2
for sample in samples:
    same("known tokens", set(sample.tolist()) <= set(double), True)
PY
equal 'all of it' "$(cat err)" ''
finish
