#!/usr/bin/env python3
"""Records tests/data/tokenizer/spm_*: small SentencePiece models, and the ids and texts that SentencePiece
makes with them.

usage: tokenizer_spm.py FOLDER      (needs sentencepiece; recorded with 0.2.1)
"""
import io
import json
import os
import sys

import sentencepiece

out = sys.argv[1]
# The corpus and the hard strings of tokenizer.py, without running it.
source = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.py"), encoding="utf-8").read()
names = {}
exec(source[source.index('CORPUS = '):source.index("GPT2 = ")], names)
CORPUS, HARD = names["CORPUS"], names["HARD"]
HARD = HARD + ["<mill> x<mill>y <mill><mill>s", "</s> <s> <unk> <0x41>", "\u2581a \u2581\u2581 b\u2581c", "a  b   c    d",
               "\u3000full\u3000width \uff21\uff22\uff23 \ufb01ne", "\U0001f600\U0001f601x", "the mill " * 60, "[x][xy][xyz] x[xyz",
               "grain\u0000flour", "stone \u2581stone"]
RULES = "41\t61\nFF21\t41\nFF22\t42 43\nFB01\t66 69\n3000\t20\nA\t20\n9\t20\nD\t20\n200B\t\n74 68 65\t54 48\n"


def model(name, **options):
    f = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS.splitlines()), model_writer=f, num_threads=1, minloglevel=2,
        hard_vocab_limit=False, bos_id=1, eos_id=2, unk_id=0, **options)
    with open(os.path.join(out, f"spm_{name}.model"), "wb") as g:
        g.write(f.getvalue())
    sp = sentencepiece.SentencePieceProcessor(model_proto=f.getvalue())
    with open(os.path.join(out, f"spm_{name}.jsonl"), "w", encoding="utf-8") as g:
        for t in HARD:
            ids = sp.encode(t)
            g.write(json.dumps({"text": t, "ids": ids, "decoded": sp.decode(ids)}, separators=(",", ":")) + "\n")


rules = os.path.join(out, "rules.tsv")
with open(rules, "w", encoding="utf-8") as r:
    r.write(RULES)
identity = {"normalization_rule_name": "identity"}
llama = dict(identity, model_type="bpe", vocab_size=600, byte_fallback=True, remove_extra_whitespaces=False,
             allow_whitespace_only_pieces=True, split_digits=True)
model("llama", **llama, character_coverage=0.99)
model("bpe_user", model_type="bpe", vocab_size=330, user_defined_symbols=["<mill>", "[x]", "[xy]", "[xyz]", "in the"],
      control_symbols=["<ctl>"], normalization_rule_tsv=rules, split_by_whitespace=False, character_coverage=0.98)
model("bpe_suffix", **identity, model_type="bpe", vocab_size=300, treat_whitespace_as_suffix=True, unk_surface="?")
model("unigram", model_type="unigram", vocab_size=300, normalization_rule_tsv=rules, character_coverage=0.98)
model("unigram_user", **identity, model_type="unigram", vocab_size=600, byte_fallback=True, add_dummy_prefix=False,
      remove_extra_whitespaces=False, user_defined_symbols=["<mill>", "[x]", "[xy]", "[xyz]"])
model("unigram_free", **identity, model_type="unigram", vocab_size=300, split_by_whitespace=False)
model("chars", **identity, model_type="char", vocab_size=300, user_defined_symbols=["<mill>", "[x]"], byte_fallback=True)
os.remove(rules)
