#!/usr/bin/env bash
# Fine-tuning on conversations: tokens and masks, packing and losses are TRL's (tests/record/sft_parity.py).
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# shellcheck source=tests/train_lib.sh
. "$ROOT/tests/train_lib.sh"
S=$ROOT/tests/data/train/sft
TOK=$S/tokenizer.json

# shown PREFIX: ids and masks of the first documents, as the recorded files have them.
shown() {
    quern dataset head -n 12 "$1_chat_document" >ids
    quern dataset head -n 12 "$1_chat_document_loss_mask" >masks
    paste -d '\n' ids masks | tr -d '[],' | sed 's/^ *//'
}
for name in chatml qwen2.5 llama3 gemma phi3 zephyr deepseek harmony; do
    more=
    [ "$name" = phi3 ] && more=--append-eod
    [ "$name" = harmony ] && more="--chat-date 2026-01-02"
    want=0
    [ "$name" = gemma ] && want=1
    # shellcheck disable=SC2086
    status "tokenize by $name" $want quern tokenize -q --tokenizer "$TOK" --chat-template $name $more --output-prefix "$name" "$S/chat.jsonl"
    shown "$name" >got
    same "tokens and mask by $name are transformers'" got "$S/$name.ids"
done
has "a template without a system's role says so" <(quern tokenize --tokenizer "$TOK" --chat-template gemma --output-prefix g "$S/chat.jsonl" 2>&1) \
    "--chat-template has no role 'system'"
status "harmony without a date" 3 quern tokenize --tokenizer "$TOK" --chat-template harmony --output-prefix h "$S/chat.jsonl"
has "says that it wants one" err "--chat-template harmony says the date: --chat-date names none"
thought='{"messages":[{"role":"developer","content":"D"},{"role":"user","content":"A"},{"role":"assistant","content":"B","thinking":"T"}'
equal "harmony: thoughts stand with the last answer" "$(echo "$thought]}
$thought,{\"role\":\"user\",\"content\":\"C\"},{\"role\":\"assistant\",\"content\":\"E\"}],\"chat_template_kwargs\":{\"reasoning_effort\":\"high\"}}" |
    quern tokenizer chat --tokenizer "$TOK" --chat-template harmony --chat-date 2026-01-02 | sed 's/.*Reasoning: \([a-z]*\).*developer/\1 /; s/",.*//')" \
'medium <|message|># Instructions\n\nD\n\n<|end|><|start|>user<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>T<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>
high <|message|># Instructions\n\nD\n\n<|end|><|start|>user<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|end|><|start|>user<|message|>C<|end|><|start|>assistant<|channel|>final<|message|>E<|return|>'
equal "deepseek: words of the system come first, thoughts go" \
    "$(echo '{"messages":[{"role":"user","content":"A"},{"role":"system","content":"S"},{"role":"assistant","content":"x</think>B"},{"role":"system","content":"R"}]}' |
        quern tokenizer chat --tokenizer "$TOK" --chat-template deepseek)" \
    '["<｜begin▁of▁sentence｜>S\n\nR<｜User｜>A<｜Assistant｜>B<｜end▁of▁sentence｜>",[46,91]]'
check "prompts and completions" quern tokenize -q --tokenizer "$TOK" --chat-template plain --append-eod --output-prefix pairs "$S/pairs.jsonl"
shown pairs >got
same "tokens and mask of completions are TRL's" got "$S/pairs.ids"
quern tokenize -q --tokenizer "$TOK" --chat-template chatml --loss-on all --output-prefix all "$S/chat.jsonl"
equal "all tokens can have a loss" "$(quern dataset head -n 60 all_chat_document_loss_mask | tr -d '[], 1\n')" ""

# A mask goes where its dataset goes: each document has the same length and mask wherever it is.
m=chatml_chat_document
head -n 5 "$S/chat.jsonl" >first.jsonl
tail -n +6 "$S/chat.jsonl" >second.jsonl
for f in first second; do quern tokenize -q --tokenizer "$TOK" --chat-template chatml --output-prefix $f $f.jsonl; done
check "two parts are merged" quern dataset merge -o merged first_chat_document second_chat_document
for e in .bin .idx _loss_mask.bin _loss_mask.idx; do same "with their masks: $e" merged$e $m$e; done
pairs_of() { # PREFIX...: each document's ids and mask in one line
    for f; do paste -d: <(quern dataset head -n 99 "$f") <(quern dataset head -n 99 "${f}_loss_mask"); done
}
check "documents are chosen" quern dataset filter -q -o chosen --min-tokens 60 $m
same "with their masks" <(pairs_of chosen) <(pairs_of $m | awk -F'[: ]' 'NF >= 120')
[ "$(pairs_of chosen | wc -l)" -lt "$(pairs_of $m | wc -l)" ] || bad "and not all of them"
check "divided" quern dataset split -o part --shares x:2,y:1 $m
same "with their masks" <(pairs_of part_x part_y | sort) <(pairs_of $m | sort)
# A mask goes with the dataset that it was of.
echo '{"chat":"no conversation"}' >plain.jsonl
cp first_chat_document.bin over_chat_document.bin
cp first_chat_document.idx over_chat_document.idx
for e in bin idx; do cp first_chat_document_loss_mask.$e over_chat_document_loss_mask.$e; done
check "a dataset without a mask" quern tokenize -q --tokenizer "$TOK" --json-keys chat --output-prefix over plain.jsonl
absent "takes the place of one with it" over_chat_document_loss_mask.bin over_chat_document_loss_mask.idx
check "a copy of one without" quern dataset filter -q -o merged over_chat_document
absent "takes that place too" merged_loss_mask.bin merged_loss_mask.idx
check "a conversation again" quern tokenize -q --again --tokenizer "$TOK" --chat-template chatml --output-prefix over first.jsonl
for e in .bin .idx _loss_mask.bin _loss_mask.idx; do same "has its mask: $e" over_chat_document$e first_chat_document$e; done
rm part_y_loss_mask.*
status "one that has none" 2 quern dataset merge -o never part_x part_y
has "is told" err "'part_x' has a loss mask and 'part_y' has none"
absent "and nothing is made" never.bin never_loss_mask.bin
{
    printf '{"text":"a"}\n{"messages":[]}\n{"messages":[{"role":"tool","content":"x"}]}\n{"prompt":"a","completion":["b"]}\n'
    head -n 1 "$S/chat.jsonl"
} >mixed.jsonl
status "what is no conversation is skipped" 1 quern tokenize --tokenizer "$TOK" --chat-template chatml --output-prefix bad mixed.jsonl
has "a document without messages" err 'neither "messages" nor "prompt" and "completion"'
has "an empty conversation" err "a conversation without messages"
has "an unknown role" err "has no role 'tool'"
status "a tokenizer that changes texts is refused" 3 quern tokenize --tokenizer "$ROOT/tests/data/tokenizer/spm_llama.model" \
    --chat-template plain --output-prefix spm "$S/pairs.jsonl"

# A tokenizer's own template: beside it, in its configuration, in a list of several; or of any file.
mkdir own
cp "$TOK" own/tokenizer.json
status "there is none" 2 quern tokenizer chat --tokenizer own "$S/chat.jsonl"
has "it is said where one would be" err "neither chat_template.jinja nor a tokenizer_config.json"
marked='{% for m in messages %}{{ bos_token if loop.first }}<{{ m.role }}>{% if m.role == "assistant" %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}'
plain=${marked//'{% generation %}'/}
plain="${plain//'{% endgeneration %}'/}{% if add_generation_prompt %}<assistant>{% endif %}"
one='{"messages":[{"role":"user","content":"A"},{"role":"assistant","content":"\u00e9"},{"role":"user","content":"C"},{"role":"assistant","content":"D"}]}'
pair='{"prompt":[{"role":"user","content":"A"},{"role":"assistant","content":"B"},{"role":"user","content":"C"}],"completion":[{"role":"assistant","content":"D"}]}'
want='["<s><user>A<assistant>é</s><user>C<assistant>D</s>",[21,27],[45,50]]'
printf '%s' "$marked" >marked.jinja
printf '%s\n' "$plain" >own/chat_template.jinja
echo '{"bos_token":{"content":"<s>"},"eos_token":"</s>","chat_template":"{{ messages[0].content }}"}' >own/tokenizer_config.json
equal "a file with generation" "$(echo "$one" | quern tokenizer chat --tokenizer own --chat-template marked.jinja)" "$want"
equal "the tokenizer's own, and answers by what comes before them" "$(echo "$one" | quern tokenizer chat --tokenizer own/tokenizer.json)" "$want"
for t in marked.jinja auto; do
    equal "a completion alone is an answer, $t" "$(echo "$pair" | quern tokenizer chat --tokenizer own --chat-template $t | grep -o ',.*')" ',[44,49]]'
done
rm own/chat_template.jinja
equal "of the configuration" "$(echo "$one" | quern tokenizer chat --tokenizer own --loss-on all)" '["A"]'
echo '{"chat_template":[{"name":"tool_use","template":"x"},{"name":"default","template":"{{ strftime_now(\"%d %B %Y\") }}{{ tools[0].a }}{{ more }}"}]}' >own/tokenizer_config.json
line='{"messages":[{"role":"user","content":"A"}],"tools":[{"a":1}],"chat_template_kwargs":{"more":[true]}}'
equal "the default of several, a day, tools and more" \
    "$(echo "$line" | quern tokenizer chat --tokenizer own --chat-date 2024-07-06)" '["06 July 20241[True]"]'
echo "$line" >line.jsonl
status "no day is given" 1 quern tokenizer chat --tokenizer own line.jsonl
has "it is asked for" err "--chat-date says which day"
echo '{% for m in messages %}{{ m.content }}{{ "last" if loop.last }}{% endfor %}' >changes.jinja
echo "$one" >one.jsonl
status "a beginning that is no beginning" 1 quern tokenizer chat --tokenizer own --chat-template changes.jinja one.jsonl
has "it is not known what answers are" err "not known which of it is answers: --loss-on all"
equal "all may be trained on" "$(echo "$one" | quern tokenizer chat --tokenizer own --chat-template changes.jinja --loss-on all)" '["AéCDlast"]'
echo '{% nonsense %}' >bad.jinja
status "a template that is none" 3 quern tokenize --tokenizer own --chat-template bad.jinja --output-prefix bad2 "$S/chat.jsonl"
has "its line is named" err "--chat-template bad.jinja: line 1 of the template: 'nonsense' is not known"
status "no template of this name" 2 quern tokenize --tokenizer own --chat-template lama3 --output-prefix bad2 "$S/chat.jsonl"
check "tokens by a file" quern tokenize -q --tokenizer own --chat-template marked.jinja --output-prefix file "$S/chat.jsonl"
has "the dataset says which template" file_chat_document.sum.json '"chat_template":"marked.jinja","chat_template_xxh3":"'
cp marked.jinja moved.jinja
echo '!' >>marked.jinja
check "the same name with another text" quern tokenize --tokenizer own --chat-template marked.jinja --output-prefix file "$S/chat.jsonl"
check "is done again" bash -c "! cmp -s file_chat_document.bin <(quern tokenize -q --tokenizer own --chat-template moved.jinja --output-prefix file2 $S/chat.jsonl; cat file2_chat_document.bin)"

# TRL's losses of ten steps.
check "import the model" quern checkpoint import "$S/model" --save base --make-vocab-size-divisible-by 1
model="--num-layers 2 --hidden-size 32 --num-attention-heads 4 --group-query-attention --num-query-groups 2 --ffn-hidden-size 48 --swiglu
--normalization RMSNorm --norm-epsilon 1e-6 --position-embedding-type rope --disable-bias-linear --add-qkv-bias --seq-length 128
--vocab-size 352 --make-vocab-size-divisible-by 1 --attention-dropout 0 --hidden-dropout 0"
steps="-j 1 --load base --finetune --split 1,0,0 --micro-batch-size 2 --train-iters 10 --eval-iters 0 --log-interval 1 --lr 1e-3
--lr-decay-style constant --adam-beta2 0.95 --weight-decay 0.1 --calculate-per-token-loss"
# recorded NAME: its losses, a line each.
recorded() { tr -d ' \n' <"$S/losses.json" | grep -o "\"$1\":\[[^]]*" | sed 's/.*\[//' | tr ',' '\n'; }
# as_recorded NAME LOG RECORD: the ten losses of a log are within 1e-6 of the recorded ones.
as_recorded() {
    local most
    most=$(paste <(recorded "$3") <(grep -o '"loss":[^,]*' "$2" | cut -d: -f2) |
        awk '{ d = $1 > $2 ? $1 - $2 : $2 - $1; if (d > m) m = d; n++ } END { print n != 10 || !(m <= 1e-6) ? m " of " n : "fine" }')
    equal "$1" "$most" fine
}
for p in bfd wrapped; do
    # shellcheck disable=SC2086
    check "ten steps, $p" quern train $model $steps --data-path chatml_chat_document --sft --packing-strategy $p --log-file $p.log
    as_recorded "$p: losses within 1e-6 of TRL's" $p.log $p
done
# shellcheck disable=SC2086
check "a document a sample" quern train $model $steps --data-path chatml_chat_document --sft --packing-strategy none --log-file none.log
# shellcheck disable=SC2086
check "in bf16, recomputed" quern train $model $steps --data-path chatml_chat_document --sft --bf16 --recompute-granularity full
# Without --sft the mask counts too.
# shellcheck disable=SC2086
quern train -q $model $steps --data-path chatml_chat_document --log-file masked.log
for f in bin idx; do cp chatml_chat_document.$f bare.$f; done
# shellcheck disable=SC2086
quern train -q $model $steps --data-path bare --log-file bare.log
check "a mask counts without --sft" bash -c '! cmp -s <(grep -o "\"loss\":[^,]*" masked.log) <(grep -o "\"loss\":[^,]*" bare.log)'
quern tokenize -q --tokenizer "$TOK" --chat-template plain --output-prefix other "$S/pairs.jsonl"
for f in bin idx; do cp other_chat_document_loss_mask.$f bare_loss_mask.$f; done
# shellcheck disable=SC2086
status "a mask of another dataset" 3 quern train $model $steps --data-path bare --sft
has "it is named" err "'bare_loss_mask' is no mask of 'bare': 12 documents"
# shellcheck disable=SC2086
check "longer documents lose their end" quern train ${model/length 128/length 64} $steps --data-path chatml_chat_document --sft
has "that is said" err "are longer than --seq-length 64 and lose their end"
# shellcheck disable=SC2086
status "a packing without documents" 2 quern train $model $steps --data-path chatml_chat_document --packing-strategy wrapped
# shellcheck disable=SC2086
status "no blend by weight" 2 quern train $model $steps --data-path 0.5 --data-path chatml_chat_document --sft
finish
