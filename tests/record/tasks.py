#!/usr/bin/env python3
"""What lm-evaluation-harness makes of small tasks, for tests/cli/eval_tasks.sh: tests/data/tasks.

    pip install lm-eval torch transformers tokenizers datasets
    python tests/record/tasks.py                       # records
    python tests/record/tasks.py ask MODEL TASK.yaml.. # what it makes of these, with a folder that transformers loads, as JSON
    python tests/record/tasks.py compare OURS THEIRS   # records of quern eval --records and that: differing choices, distances

A tokenizer (512 tokens, byte-level BPE) and a Llama of random weights large enough to have opinions; a task of each kind, of the
public formats: choices by a list, by fields, by letters, with texts of their own (WinoGrande), several right ones, examples drawn,
first ones, from the questions' own split and from the file, an included file, a description of the document; continuations
(LAMBADA); texts by windows.  Some prompts are longer than what the model sees, some are empty, some end in spaces, some are not
ASCII.  expected.jsonl has a line a question: the likelihood and greediness of each request, and the metrics; scores.json the means.
"""
import json
import math
import os
import random
import sys

OUT = "tests/data/tasks"
WORDS = ("the a miller grinds wheat into flour while water turns old stone wheels slowly and birds sing over fields of rye "
         "Größe été наука 数学 naïve café where river bends near bridge she said that he was not sure why it rained on market day "
         "because clouds came from western hills yes no maybe answer question one two three four").split()


def sentence(rng, n):
    return " ".join(rng.choice(WORDS) for _ in range(n))


def write_data():
    rng = random.Random(7)
    files = {}

    def put(name, rows):
        files[name] = f"{OUT}/{name}.jsonl"
        with open(files[name], "w") as f:
            for r in rows:
                f.write(json.dumps(r, ensure_ascii=False) + "\n")

    put("stories", [{"query": sentence(rng, rng.choice([3, 9, 60])) + rng.choice(["", "", "  ", "\n"]), "label": str(rng.randrange(4)),
                     "endings": [sentence(rng, rng.randrange(1, 9)) for _ in range(4)]} for _ in range(24)])
    put("science", [{"question": sentence(rng, 8) + "?", "choices": {"text": [sentence(rng, rng.randrange(1, 5)) for _ in range(k)],
                                                                  "label": list("ABCDE")[:k]}, "answerKey": "ABCDE"[rng.randrange(k)]}
                    for k in (3, 4, 5, 4) * 6])
    half = [{"sentence": sentence(rng, 4) + " _ " + sentence(rng, 3) + ".", "option1": "Anna", "option2": "Bo",
             "answer": str(rng.randrange(1, 3))} for _ in range(20)]
    put("blanks", half)
    put("truths", [{"passage": sentence(rng, 12), "question": sentence(rng, 5), "label": rng.randrange(2)} for _ in range(20)])
    subject = [{"subject": "mill_lore", "question": sentence(rng, 6), "choices": [sentence(rng, 2) for _ in range(4)],
                "answer": rng.randrange(4)} for _ in range(22)]
    put("lore", subject[:18])
    put("lore_dev", subject[18:])
    put("many", [{"q": sentence(rng, 5), "options": [sentence(rng, 1) for _ in range(5)],
                  "right": sorted(rng.sample(range(5), 2)), "odd": rng.choice([None, 1, "x"])} for _ in range(12)])
    put("last", [{"text": sentence(rng, rng.choice([2, 12, 70]))} for _ in range(20)])
    put("pages", [{"page": "\n".join(sentence(rng, rng.randrange(1, 40)) for _ in range(rng.randrange(1, 6)))} for _ in range(10)])
    put("bare", [{"a": sentence(rng, 3), "b": sentence(rng, 2), "gold": rng.choice(["a", "b"])} for _ in range(8)])


WRITE = "dataset_path: json\ndataset_kwargs: {data_files: {test: tests/data/tasks/%s.jsonl}}\ntest_split: test\n" \
    "output_type: generate_until\ndoc_to_text: q\ndoc_to_target: a\n"
TASKS = {
    "write": "task: write\n" + WRITE % "write" + '''generation_kwargs: {until: [" into", "ne", "v", "\\n"], do_sample: false, max_gen_toks: 12}
''',
    "write_filtered": "task: write_filtered\n" + WRITE % "write_filtered" + '''num_fewshot: 1
fewshot_config: {samples: [{q: who grinds, a: the miller}, {q: what, a: rye}]}
generation_kwargs: {until: "\\n\\n", max_gen_toks: 9}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
    ignore_punctuation: true
    ignore_numbers: true
    regexes_to_ignore: ["^ *", "[xyz]"]
filter_list:
  - name: words
    filter: [{function: regex, regex_pattern: "[a-z]+"}, {function: take_first}]
  - name: groups
    filter: [{function: regex, group_select: -1, regex_pattern: "(q+)|(\\\\w+)", fallback: none}, {function: uppercase}, {function: take_first}]
  - name: bare
    filter: [{function: remove_whitespace}, {function: lowercase}, {function: take_first}]
''',
    "write_several": "task: write_several\n" + WRITE % "write_several" + '''generation_kwargs: {max_gen_toks: 5, temperature: 0.0}
''',
    "stories": '''task: stories
dataset_path: json
dataset_kwargs: {data_files: {validation: tests/data/tasks/stories.jsonl}}
output_type: multiple_choice
validation_split: validation
doc_to_text: "{{query}}"
doc_to_target: "{{label}}"
doc_to_choice: endings
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
  - {metric: acc_bytes, aggregation: mean, higher_is_better: true}
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
  - {metric: acc_mutual_info, aggregation: mean, higher_is_better: true}
''',
    "stories_shots": '''include: stories.yaml
task: stories_shots
num_fewshot: 3
fewshot_delimiter: "\\n---\\n"
''',
    "science": '''task: science
dataset_path: json
dataset_kwargs: {data_files: {test: tests/data/tasks/science.jsonl}}
output_type: multiple_choice
test_split: test
fewshot_split: test
num_fewshot: 2
doc_to_text: "Question: {{question.strip()}}\\nAnswer:"
doc_to_target: "{{choices.label.index(answerKey)}}"
doc_to_choice: "{{choices.text}}"
should_decontaminate: true
doc_to_decontamination_query: question
''',
    "blanks": '''task: blanks
dataset_path: json
dataset_kwargs: {data_files: {validation: tests/data/tasks/blanks.jsonl}}
output_type: multiple_choice
validation_split: validation
num_fewshot: 1
doc_to_text: "{{answer | int - 1}}"
doc_to_target: "{{sentence.split('_')[1].strip()}}"
doc_to_choice: "{{[sentence.split('_')[0] ~ option1, sentence.split('_')[0] ~ option2]}}"
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
''',
    "truths": '''task: truths
dataset_path: json
dataset_kwargs: {data_files: {train: tests/data/tasks/truths.jsonl, validation: [tests/data/tasks/truths.jsonl]}}
output_type: multiple_choice
training_split: train
validation_split: validation
num_fewshot: 5
doc_to_text: "{{passage}}\\nQuestion: {{question}}?\\nAnswer:"
doc_to_target: label
doc_to_choice: ["no", "yes"]
metric_list: [{metric: acc}]
''',
    "lore": '''task: lore
dataset_path: json
dataset_kwargs: {data_files: {test: tests/data/tasks/lore.jsonl, dev: tests/data/tasks/lore_dev.jsonl}}
output_type: multiple_choice
test_split: test
fewshot_split: dev
fewshot_config: {sampler: first_n}
num_fewshot: 4
description: "Questions about {{subject.replace('_', ' ')}}.\\n\\n"
doc_to_text: "{{question.strip()}}\\nA. {{choices[0]}}\\nB. {{choices[1]}}\\nC. {{choices[2]}}\\nD. {{choices[3]}}\\nAnswer:"
doc_to_choice: ["A", "B", "C", "D"]
doc_to_target: answer
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
''',
    "many": '''task: many
dataset_path: json
dataset_kwargs: {data_files: {test: tests/data/tasks/many.jsonl}}
output_type: multiple_choice
test_split: test
fewshot_config:
  samples:
    - {q: how many, options: [one, two], right: [two]}
    - {q: "which, then", options: ["a 'quoted' one", two], right: [two, one]}
num_fewshot: 1
target_delimiter: ": "
doc_to_text: q
doc_to_target: right
doc_to_choice: "{{options}}"
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
''',
    "last": '''task: last
dataset_path: json
dataset_kwargs: {data_files: {test: tests/data/tasks/last.jsonl}}
output_type: loglikelihood
test_split: test
doc_to_text: "{{text.split(' ')[:-1]|join(' ')}}"
doc_to_target: "{{' '+text.split(' ')[-1]}}"
metric_list:
  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}
  - {metric: acc, aggregation: mean, higher_is_better: true}
''',
    "pages": '''task: pages
dataset_path: json
dataset_kwargs: {data_files: {test: tests/data/tasks/pages.jsonl}}
output_type: loglikelihood_rolling
test_split: test
doc_to_text: ""
doc_to_target: "{{page}}"
metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}, {metric: bits_per_byte}]
''',
    "bare": '''task: bare
dataset_path: json
dataset_kwargs: {data_files: {test: tests/data/tasks/bare.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: ""
target_delimiter: ""
doc_to_target: "{{a if gold == 'a' else b}}"
doc_to_choice: "{{[a, b]}}"
''',
}


def write_model(folder):
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    rng = random.Random(3)
    t.train_from_iterator([sentence(rng, 30) for _ in range(200)], trainers.BpeTrainer(
        vocab_size=512, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    transformers.PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|endoftext|>").save_pretrained(folder)
    torch.manual_seed(5)
    m = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=t.get_vocab_size(), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=96, bos_token_id=None, eos_token_id=0, tie_word_embeddings=True,
        initializer_range=0.3))
    m.to(torch.float16).save_pretrained(folder)
    os.remove(f"{folder}/generation_config.json")


def add_greedy(model, path, n):
    """Texts to path whose last word is what the model goes on with."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    m = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    rng = random.Random(11)
    with open(path, "a") as f:
        while n:
            text = sentence(rng, 6)
            word = tokenizer.decode(m(torch.tensor([tokenizer.encode(text)])).logits[0, -1].argmax().item())
            if word.startswith(" ") and word[1:].isalpha():
                f.write(json.dumps({"text": text + word}, ensure_ascii=False) + "\n")
                n -= 1


def add_right(model):
    """Questions whose right answer is, of some of them, what the model writes."""
    rng = random.Random(13)
    rows = [{"q": sentence(rng, rng.choice([3, 20, 60])), "a": "the mill"} for _ in range(16)]

    def put(name, rows):
        with open(f"{OUT}/{name}.jsonl", "w") as f:
            for r in rows:
                f.write(json.dumps(r, ensure_ascii=False) + "\n")

    put("write", rows)
    put("write_several", [{"q": r["q"], "a": ["x", r["a"]]} for r in rows])
    put("write_filtered", rows)
    said = ask(model, [f"{OUT}/{n}.yaml" for n in ("write", "write_several", "write_filtered")])[0]
    for x in said:
        if x["task"] == "write" and x["question"] % 2:
            rows[x["question"]]["a"] = x["text"]
    put("write", rows)
    like = [lambda x: "  " + x["filtered"][0].upper() + "!7", lambda x: x["filtered"][1].lower() + "yz", lambda x: x["text"]]
    put("write_filtered", [{"q": r["q"], "a": like[i % 3](said[32 + i])} for i, r in enumerate(rows)])
    put("write_several", [{"q": r["q"], "a": ["x", said[16 + i]["text"] if i % 3 else "y"]} for i, r in enumerate(rows)])


def ask(model, paths):
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    folders = sorted({os.path.dirname(os.path.abspath(p)) for p in paths})
    names = [os.path.basename(p)[:-len(".yaml")] for p in paths]
    out = lm_eval.simple_evaluate(model=HFLM(pretrained=model, dtype="float32", batch_size=8, device="cpu"), tasks=names,
                                  task_manager=TaskManager(include_path=folders, include_defaults=False), log_samples=True,
                                  bootstrap_iters=0)
    lines, scores = {}, {}
    for name in names:
        writes = isinstance(out["samples"][name][0]["resps"][0][0], str)
        scores[name] = {k.removesuffix(",none"): v for k, v in out["results"][name].items()
                        if isinstance(v, (int, float)) and "stderr" not in k and k not in ("alias", "sample_len")}
        for s in out["samples"][name]:
            x = lines.setdefault((name, s["doc_id"]), {"task": name, "question": s["doc_id"]})
            filtered = "" if s["filter"] == "none" else "," + s["filter"]
            x.setdefault("metrics", {}).update({k + filtered: float(s[k]) for k in s["metrics"] if isinstance(s.get(k), (int, float))})
            if writes:
                x["text"] = s["resps"][0][0]
                x.setdefault("filtered", []).append(s["filtered_resps"][0])
                continue
            r = [y[0] for y in s["resps"]]
            r = [(float(y[0]), str(y[1]) == "True") if isinstance(y, (list, tuple)) else (float(y), None) for y in r]
            x.update({"likelihoods": [y[0] for y in r], "greedy": [y[1] for y in r]})
    return list(lines.values()), scores


def record():
    os.makedirs(OUT, exist_ok=True)
    write_data()
    for name, text in TASKS.items():
        with open(f"{OUT}/{name}.yaml", "w") as f:
            f.write(text)
    write_model(f"{OUT}/model")
    add_greedy(f"{OUT}/model", f"{OUT}/last.jsonl", 4)
    add_right(f"{OUT}/model")
    lines, scores = ask(f"{OUT}/model", [f"{OUT}/{n}.yaml" for n in TASKS])
    lines.sort(key=lambda x: (list(TASKS).index(x["task"]), x["question"]))
    with open(f"{OUT}/expected.jsonl", "w") as f:
        for x in lines:
            f.write(json.dumps(x) + "\n")
    with open(f"{OUT}/scores.json", "w") as f:
        json.dump(scores, f, indent=1)
        f.write("\n")


def compare(ours, theirs):
    a = {(x["task"], x["question"]): x for x in map(json.loads, open(ours))}
    b = {(x["task"], x["question"]): x for x in map(json.loads, open(theirs))}
    worst, differ, n, where = 0, 0, 0, None
    assert a.keys() == b.keys(), (len(a), len(b))
    for k in b:
        if "text" in b[k]:
            n += 1
            differ += a[k]["text"] != b[k]["text"] or a[k]["filtered"] != b[k]["filtered"]
            if a[k]["text"] != b[k]["text"] or a[k]["filtered"] != b[k]["filtered"]:
                print(k, a[k], b[k])
        x, y = a[k].get("likelihoods", [0]), b[k].get("likelihoods", [0])
        if "greedy" in b[k] and b[k]["greedy"][0] is None:
            x = [sum(x)]
        assert len(x) == len(y), (k, x, y)
        for p, q in zip(x, y):
            d = abs(p - q) / max(1, abs(q))
            if d > worst:
                worst, where = d, k
        for m, v in b[k]["metrics"].items():
            if m in a[k]:
                n += 1
                differ += a[k][m] != v
                if a[k][m] != v and differ < 10:
                    print(k, m, a[k][m], v, x, y)
    print(f"{len(b)} questions, {n} choices, {differ} differ; likelihoods at most {worst:.2e} apart (relative), {where}")
    return differ


if __name__ == "__main__":
    if sys.argv[1:2] == ["ask"]:
        for x in ask(sys.argv[2], sys.argv[3:])[0]:
            print(json.dumps(x))
    elif sys.argv[1:2] == ["compare"]:
        sys.exit(compare(*sys.argv[2:4]) > 0)
    else:
        record()
