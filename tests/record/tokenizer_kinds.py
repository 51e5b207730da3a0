#!/usr/bin/env python3
"""Records tests/data/tokenizer/train/KIND.jsonl: the ids that Hugging Face's tokenizers gives hard strings with small tokenizers that
quern trains, and checks that SentencePiece gives the same with the models of its format.  And KIND.vocab of Unigram: the pieces and
scores that SentencePiece's trainer finds, as lines of a tokenizer.json.

usage: tokenizer_kinds.py FOLDER QUERN      (needs tokenizers and sentencepiece; recorded with 0.23.3 and 0.2.1)
"""
import io
import json
import os
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer

out, quern = sys.argv[1:]
source = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.py"), encoding="utf-8").read()
names = {}
exec(source[source.index("CORPUS = "):source.index("GPT2 = ")], names)
HARD = [t[:300] for t in names["HARD"] if t] + ["(\u00e9t\u00e9) 12345 don't  stop\u2026 \u4e2d\u6587\u5b57", "  two  spaces ", "\u2581mark \u2581\u2581x"]
# What SentencePiece's trainer passes over, or takes for something else, is left out.
sizes = {"unigram": 280, "unigram-bytes": 450}
own = "\t\r\n\0\u2585"
texts = [json.loads(line).rstrip("\n") for line in open(os.path.join(out, "texts.jsonl"), encoding="utf-8")]
texts = [t for t in texts if t and not any(c in t for c in own) and not any(s in t for s in ("<s>", "</s>", "<unk>", "<0x"))]
with open(os.path.join(out, "unigram.texts.jsonl"), "w", encoding="utf-8") as f:
    f.writelines(json.dumps(t, ensure_ascii=False) + "\n" for t in texts)
for kind, options in {"unigram": {}, "unigram-bytes": {"byte_fallback": True, "character_coverage": 0.98}}.items():
    f = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=f, model_type="unigram", vocab_size=sizes[kind], minloglevel=2, hard_vocab_limit=False,
        normalization_rule_name="identity", remove_extra_whitespaces=False, max_sentence_length=1 << 20, **options)
    sp = sentencepiece.SentencePieceProcessor(model_proto=f.getvalue())
    with open(os.path.join(out, kind + ".vocab"), "w", encoding="utf-8") as f:
        f.writelines(f'      [{json.dumps(sp.id_to_piece(i), ensure_ascii=False)}, {sp.get_score(i):.9g}]\n'
                     for i in range(sp.get_piece_size()))

kinds = {"wordpiece": [], "byte-fallback": ["--sentencepiece-model"], "unigram": ["--sentencepiece-model"]}
for kind, options in kinds.items():
    with tempfile.TemporaryDirectory() as d:
        files = os.path.join(d, "t.json"), os.path.join(d, "t.model")
        subprocess.run([quern, "tokenizer", "train", "--model", kind, "--vocab-size", str(sizes.get(kind, 900)), "-o", files[0], *options,
                        *files[1:1 + len(options)], os.path.join(out, "unigram.texts.jsonl" if kind in sizes else "texts.jsonl")], check=True, stderr=subprocess.DEVNULL)
        t = Tokenizer.from_file(files[0])
        other = sentencepiece.SentencePieceProcessor(model_file=files[1]) if options else None
        with open(os.path.join(out, kind + ".jsonl"), "w", encoding="utf-8") as f:
            for s in HARD:
                ids = t.encode(s, add_special_tokens=False).ids
                ids_of_other = other.encode(s) if other else ids
                line = {"text": s, "ids": ids}
                if ids_of_other != ids and kind == "unigram":  # of equally good ways they take different ones
                    line["sentencepiece"] = ids_of_other
                elif ids_of_other != ids:
                    sys.exit(f"SentencePiece gives other ids of {s!r}")
                f.write(json.dumps(line, separators=(",", ":")) + "\n")
