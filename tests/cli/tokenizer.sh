#!/usr/bin/env bash
# quern tokenizer: recorded ids, round trips, training, bad input.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/tokenizer

# decoded WANT GOT NAME: the same JSON strings, however they are escaped.
decoded() {
    quern tokenizer encode --jsonl --tokenizer "$D/gpt2.json" "$1" >want.ids
    quern tokenizer encode --jsonl --tokenizer "$D/gpt2.json" "$2" >got.ids
    same "$3" want.ids got.ids
}

# Ids that Hugging Face's tokenizers and tiktoken gave, for each instruction set.
for v in gpt2 llama3 qwen2 o200k tekken neox; do
    for isa in base avx2 avx512; do
        QUERN_ISA=$isa status "$v as Hugging Face, $isa" 0 \
            quern tokenizer verify --tokenizer "$D/$v.json" --against "$D/$v.hf.jsonl" --allow-special
        has "$v as Hugging Face, $isa: all" out "78 texts have the same ids, 0 differ"
    done
done
for v in gpt2 cl100k o200k; do
    status "$v as tiktoken" 0 quern tokenizer verify --tokenizer "$D/ranks.tiktoken" --pattern "$v" --against "$D/$v.tiktoken.jsonl"
done
equal "special tokens of o200k_harmony" "$(printf '<|endofprompt|><|reserved_200018|><|reserved_200000|><|start|>' |
    quern tokenizer encode --tokenizer "$D/ranks.tiktoken" --pattern o200k_harmony --allow-special)" "200018 200018 200000 200006"
equal "special tokens of p50k_edit" "$(printf '<|fim_prefix|><|fim_suffix|>' |
    quern tokenizer encode --tokenizer "$D/ranks.tiktoken" --pattern p50k_edit --allow-special)" "50281 50283"
status "vocab.json + merges.txt" 0 quern tokenizer verify --tokenizer "$D/vocab.json" --against "$D/gpt2.tiktoken.jsonl"
status "another pattern cuts otherwise" 1 quern tokenizer verify --tokenizer "$D/ranks.tiktoken" --pattern o200k --against "$D/gpt2.tiktoken.jsonl"
cp "$D/vocab.json" x-vocab.json && cp "$D/merges.txt" x-merges.txt
status "a prefix of both" 0 quern tokenizer verify --tokenizer x --against "$D/gpt2.tiktoken.jsonl"

# SentencePiece: ids and texts that it gave.
for v in llama bpe_user bpe_suffix unigram unigram_user unigram_free chars; do
    status "SentencePiece, $v" 0 quern tokenizer verify --tokenizer "$D/spm_$v.model" --against "$D/spm_$v.jsonl"
    has "SentencePiece, $v: all" out "88 texts have the same ids, 0 differ"
    status "SentencePiece 0.2.1, $v" 0 quern tokenizer verify --sentencepiece 0.2.1 --tokenizer "$D/spm_$v.model" --against "$D/spm_$v.jsonl"
    sed 's/.*"ids":\(\[[0-9,]*\]\).*/\1/' "$D/spm_$v.jsonl" | quern tokenizer decode --jsonl --tokenizer "$D/spm_$v.model" >back
    sed 's/.*"decoded":\(.*\)}$/\1/' "$D/spm_$v.jsonl" >want
    decoded want back "SentencePiece, $v: decoding"
done
quern tokenizer info "$D/spm_unigram.model" >out
has "info says whose ids" out "ids         of SentencePiece 0.2.3"
printf '{"text":"The mill grinds."}\n' >mill.jsonl
quern tokenize --sentencepiece 0.2.1 --tokenizer "$D/spm_unigram.model" --output-prefix older mill.jsonl
quern tokenize --tokenizer "$D/spm_unigram.model" --output-prefix newer mill.jsonl
quern tokenize --tokenizer "$D/spm_llama.model" --output-prefix bpe mill.jsonl
has "the record says whose ids" older_text_document.sum.json '"sentencepiece":"0.2.1"'
has "the record says whose ids, by default" newer_text_document.sum.json '"sentencepiece":"0.2.3"'
equal "BPE has one kind of ids" "$(grep -c sentencepiece bpe_text_document.sum.json)" 0
head -c 3000 "$D/spm_llama.model" >cut.model
status "a model cut short" 3 quern tokenizer info cut.model
has "a model cut short: why" err "damaged"

# tekken.json: the ranks again, behind ten special tokens.
awk 'BEGIN { printf "{\"config\":{\"pattern\":\"none\",\"num_vocab_tokens\":%d,\"default_vocab_size\":%d,\"default_num_special_tokens\":10,\"version\":\"v3\"},\"vocab\":[", '"$(wc -l <"$D/ranks.tiktoken"), $(($(wc -l <"$D/ranks.tiktoken") + 10))"' }
    { printf "%s{\"rank\":%d,\"token_bytes\":\"%s\",\"token_str\":null}", (NR > 1 ? "," : ""), NR - 1, $1 } END { print "]}" }' "$D/ranks.tiktoken" >tekken.json
awk '{ i = index($0, "\"ids\":["); printf "%s", substr($0, 1, i + 6); n = split(substr($0, i + 7), a, /[],}]/)
    for (k = 1; k <= n; k++) if (a[k] != "") printf "%s%d", (k > 1 ? "," : ""), a[k] + 9; print "]}" }' "$D/o200k.tiktoken.jsonl" >tekken.jsonl
status "tekken.json" 0 quern tokenizer verify --tokenizer tekken.json --pattern o200k --against tekken.jsonl
has "tekken.json: all" out "78 texts have the same ids, 0 differ"
quern tokenizer info tekken.json >out
has "tekken.json: its special tokens" out "10 of them added"
for v in usual words cut; do
    status "as mistral-common, $v" 0 quern tokenizer verify --tokenizer "$D/tekken_$v.json" --against "$D/tekken_$v.jsonl"
    has "as mistral-common, $v: all" out "78 texts have the same ids, 0 differ"
done
sed 's/"special_tokens":.*/"special_tokens":null}/' "$D/tekken_words.json" >unnamed.json
status "tekken.json without its special tokens" 3 quern tokenizer info unnamed.json
has "tekken.json without its special tokens: why" err "it has no special_tokens, though its version is v15"

# info: what is done to text before it is cut.
sed 's/"normalizer":null/"normalizer":{"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"},{"type":"Lowercase"}]}/' \
    "$D/gpt2.json" >steps.json
quern tokenizer info steps.json >out
has "info: steps that normalise" out "normalizer  NFD, StripAccents, Lowercase"
quern tokenizer info "$D/spm_bpe_user.model" >out
has "info: a SentencePiece model's" out "dummy prefix, U+2581 for spaces"

# verify: ids beside documents.
printf '{"text":"the mill"}\n{"text":"grinds"}\n' >docs.jsonl
quern tokenizer encode --jsonl --tokenizer "$D/gpt2.json" docs.jsonl >docs.ids
status "verify: arrays" 0 quern tokenizer verify --tokenizer "$D/gpt2.json" --against docs.ids docs.jsonl
tr -d '[]' <docs.ids | tr , ' ' >docs.plain
status "verify: numbers" 0 quern tokenizer verify --tokenizer "$D/gpt2.json" --against docs.plain docs.jsonl
has "verify: both documents" out "2 texts have the same ids, 0 differ"
{ head -1 docs.ids; echo '[1,2]'; } >other.ids
status "verify: other ids" 1 quern tokenizer verify --tokenizer "$D/gpt2.json" --against other.ids docs.jsonl
has "verify: which document" err "document 1"
has "verify: which byte, whose ids" err "id 0 differs (byte 0 as decoded): ours"
head -1 docs.ids >few.ids
status "verify: too few" 3 quern tokenizer verify --tokenizer "$D/gpt2.json" --against few.ids docs.jsonl
{ cat docs.ids; echo '[3]'; } >many.ids
status "verify: too many" 3 quern tokenizer verify --tokenizer "$D/gpt2.json" --against many.ids docs.jsonl

# Forms of encode and decode.
TOK=$D/gpt2.json
printf 'The quern\n' >a.txt
check "encode a file" quern tokenizer encode --tokenizer "$TOK" a.txt
cp out ids
equal "one line of numbers" "$(grep -cE '^[0-9]+( [0-9]+)*$' out)/$(wc -l <out)" 1/1
check "decode" quern tokenizer decode --tokenizer "$TOK" ids
same "decode gives the text" out a.txt
printf '"The quern\\n"\n{"id":"1","text":"The quern\\n"}\n' | quern tokenizer encode --tokenizer "$TOK" --jsonl >out
equal "a string and a document" "$(sort -u out)" "[$(tr ' ' , <ids)]"
quern tokenizer decode --tokenizer "$TOK" --jsonl out >out2
equal "decode --jsonl" "$(sort -u out2)" '"The quern\n"'
: >empty
status "an empty text" 0 quern tokenizer encode --tokenizer "$TOK" empty
equal "an empty text has no ids" "$(cat out)" ""
head -c 20000 /dev/urandom >noise
quern tokenizer encode --tokenizer "$TOK" noise | quern tokenizer decode --tokenizer "$TOK" >back
same "any bytes come back" noise back

# Special tokens are text unless asked for.
printf 'a<|endoftext|>b' >s.txt
quern tokenizer encode --tokenizer "$TOK" s.txt >plain 2>err
has "and counted" err "1 special token"
quern tokenizer encode --tokenizer "$TOK" --allow-special s.txt >special
equal "special: three ids" "$(wc -w <special) $(cut -d' ' -f2 special)" "3 0"
[ "$(wc -w <plain)" -gt 3 ] && ok "plain: more" || bad "plain: more"

# One piece of 1 MB.
for what in a ' ' 7 '\n'; do
    head -c 1000000 /dev/zero | tr '\0' "$what" >big
    quern tokenizer encode --tokenizer "$TOK" big | quern tokenizer decode --tokenizer "$TOK" >back
    same "1 MB of one character, '$what'" big back
done
LC_ALL=C tr -dc a-z </dev/urandom | head -c 1000000 >big
quern tokenizer encode --tokenizer "$TOK" big | quern tokenizer decode --tokenizer "$TOK" >back
same "1 MB of random letters" big back

# Training.
status "train" 0 quern tokenizer train --vocab-size 420 -o t.json "$D/corpus.txt"
sed -n '/"merges"/,$s/^      "\(.*\)",\{0,1\}$/\1/p' t.json | sed 's/\\\(.\)/\1/g' >merges
same "the merges of Hugging Face's trainer" merges "$D/trained.txt"
check "the result opens" quern tokenizer info t.json
has "its end of document" out "eod         0 <|endoftext|>"
quern tokenizer train -j1 --vocab-size 420 -o t1.json "$D/corpus.txt" 2>/dev/null
same "one thread, the same" t.json t1.json
perl -pe 's/(["\\])/\\$1/g; s/([\x00-\x1f])/sprintf("\\u%04x", ord $1)/ge; $_ = "{\"text\": \"$_\"}\n"' \
    "$D/corpus.txt" >c.jsonl
quern tokenizer train --vocab-size 420 -o t2.json c.jsonl 2>/dev/null
same "from JSON lines, the same" t.json t2.json
status "special tokens of one's own" 0 quern tokenizer train --vocab-size 300 --special-tokens '<s>' --special-tokens '</s>' -o s.json "$D/corpus.txt"
check "they are there" quern tokenizer info s.json
has "the end of document is one" out "eod         1 </s>"
status "a corpus too small" 0 quern tokenizer train --vocab-size 9000 -o small.json "$D/corpus.txt"
has "it says so" err "no more to make tokens of"
status "another pattern" 0 quern tokenizer train --vocab-size 400 --pattern llama3 -o l.json "$D/corpus.txt"
check "which the file has" quern tokenizer info l.json
has "by its name" out "pattern     llama3"

quern tokenizer train --vocab-size 420 --vocab-merges v --ranks r.tiktoken "$D/corpus.txt" 2>/dev/null
tail -n +2 v/merges.txt >merges
same "merges.txt" merges "$D/trained.txt"
quern tokenizer encode --tokenizer t.json "$D/corpus.txt" >ids
quern tokenizer encode --tokenizer v "$D/corpus.txt" >ids2
same "vocab.json and merges.txt, the same ids" ids ids2
quern tokenizer encode --tokenizer r.tiktoken --pattern gpt2 "$D/corpus.txt" | awk '{ for (i = 1; i <= NF; i++) $i++; print }' >ids2
same "ranks, the same ids but for the special token" ids ids2
# 300,000 different words: with little memory they go to disk.
awk 'BEGIN { srand(1); for (i = 0; i < 300000; i++) { w = ""; for (k = 0; k < 9; k++) w = w substr("etaoinshrdlu", int(rand() * 12) + 1, 1); print w } }' >many
# as NAME PATTERN OPTION...: vocab.json and merges.txt as Hugging Face's library saves them.
as() {
    local name=$1 pattern=$2
    shift 2
    quern tokenizer train --pattern "$pattern" --vocab-size 600 --vocab-merges o "$@" "$D/train/texts.jsonl" 2>/dev/null
    same "as Hugging Face's trainer, $name: merges" o/merges.txt "$D/train/$name-merges.txt"
    same "as Hugging Face's trainer, $name: ids" o/vocab.json "$D/train/$name-vocab.json"
}
for v in gpt2 llama3 qwen2 o200k tekken; do as $v $v; done
as frequency llama3 --vocab-size 2000 --min-frequency 4
as specials o200k --special-tokens '<s>' --special-tokens the --special-tokens '</s>' --special-tokens '<s>' --special-tokens 12
as short gpt2 --max-token-length 6
for kind in words:3000 long:2000 same:300 chinese:2000 code:1500; do
    size=${kind#*:} kind=${kind%:*}
    awk -v "kind=$kind" -f "$D/train/hard.awk" >hard.txt
    quern tokenizer train --memory 64M --vocab-size "$size" --vocab-merges o hard.txt 2>/dev/null
    same "as Hugging Face's trainer, $kind" o/merges.txt "$D/train/$kind-merges.txt"
done
quern tokenizer train --ties tiktoken --pattern cl100k --vocab-size 601 --ranks o.tiktoken "$D/train/one.jsonl" 2>/dev/null
same "as tiktoken's educational trainer" o.tiktoken "$D/train/educational.tiktoken"
zstd -q "$D/train/texts.jsonl" -o texts.zst && gzip -c "$D/train/texts.jsonl" >texts.gz
for z in zst gz; do
    quern tokenizer train --vocab-size 600 --vocab-merges z texts.$z 2>/dev/null
    same "compressed, .$z" z/merges.txt "$D/train/gpt2-merges.txt"
done
# Other kinds: ids that Hugging Face's library and SentencePiece gave with what is trained here.
for kind in wordpiece byte-fallback; do
    files="-o $kind.json"
    [ $kind = wordpiece ] || files="$files --sentencepiece-model $kind.model"
    # shellcheck disable=SC2086
    status "train $kind" 0 quern tokenizer train --model $kind --vocab-size 900 -j1 $files "$D/train/texts.jsonl"
    status "as Hugging Face, $kind" 0 quern tokenizer verify --tokenizer $kind.json --against "$D/train/$kind.jsonl"
    quern tokenizer train --model $kind --vocab-size 900 --memory 1G -j1 -o m1.json many 2>/dev/null
    status "little memory, $kind" 0 quern tokenizer train --model $kind --vocab-size 900 --memory 64M -j2 -o m2.json many
    same "little memory, $kind: the same bytes" m1.json m2.json
done
status "as SentencePiece, byte-fallback" 0 quern tokenizer verify --tokenizer byte-fallback.model --against "$D/train/byte-fallback.jsonl"
printf 'a\001b caf\303\251 \360\237\230\200 \377 a a b' >odd
printf 'a\001b caf\303\251 \360\237\230\200 \357\277\275 a a b' >want
printf '{"text":"a\\u0000b a b"}\n' >nul.jsonl
status "train on characters: any bytes" 0 quern tokenizer train --model byte-fallback --vocab-size 270 -o odd.json nul.jsonl
quern tokenizer encode --tokenizer odd.json odd | quern tokenizer decode --tokenizer odd.json >back
same "what has no token comes back by its bytes" back want
status "more characters than tokens" 2 quern tokenizer train --model wordpiece --vocab-size 260 --character-coverage 1 -o n.json "$D/train/texts.jsonl"
has "more characters than tokens: why" err "character-coverage"
status "ranks of characters" 2 quern tokenizer train --model wordpiece --ranks n.json "$D/corpus.txt"
status "a SentencePiece model of bytes" 2 quern tokenizer train --sentencepiece-model n.model "$D/corpus.txt"
: >empty.txt
status "an empty corpus of characters" 0 quern tokenizer train --model wordpiece --vocab-size 300 -o e.json empty.txt
status "an empty corpus" 0 quern tokenizer train --vocab-size 300 -o e.json empty.txt
has "has 256 bytes and a special token" err "257 tokens, 0 merges"
printf 'abc \377\376\377\376 abc\n\377\376' >invalid
status "bytes that are not UTF-8" 0 quern tokenizer train --vocab-size 260 -o i.json invalid
quern tokenizer encode --tokenizer i.json invalid | quern tokenizer decode --tokenizer i.json >back
same "come back" back invalid
quern tokenizer train --vocab-size 32000 --memory 64M -o killed.json many 2>/dev/null &
sleep 0.3
kill -9 $!
wait $! 2>/dev/null
absent "nothing is left of a killed run" killed.json
status "nowhere to write" 2 quern tokenizer train "$D/corpus.txt"
for ties in huggingface tiktoken; do
    quern tokenizer train --ties $ties --vocab-size 700 --memory 1G -j1 -o m1.json many 2>/dev/null
    for jobs in 1 2; do
        status "little memory, $ties" 0 quern tokenizer train --ties $ties --vocab-size 700 --memory 64M -j$jobs -o m2.json many
        same "little memory, $ties, -j$jobs: the same bytes" m1.json m2.json
    done
done
status "too little memory" 2 quern tokenizer train --memory 1M -o m3.json many

# What is wrong is named, and nothing is left half-written.
status "no file" 3 quern tokenizer encode --tokenizer nowhere.json a.txt
has "named" err nowhere.json
status "a folder without one" 3 quern tokenizer info --tokenizer .
status "no action" 2 quern tokenizer
status "no tokenizer" 2 quern tokenizer encode a.txt
status "ranks without a pattern" 2 quern tokenizer encode --tokenizer "$D/ranks.tiktoken" a.txt
head -c 5000 "$D/gpt2.json" >cut.json
status "half a tokenizer.json" 3 quern tokenizer encode --tokenizer cut.json a.txt
has "named" err cut.json
printf 'a b c\n' >x-merges.txt
status "a bad merge" 3 quern tokenizer encode --tokenizer x a.txt
has "its line" err "x-merges.txt': line 1"
printf 'IQ== 0\nIQ== 1\n' >r.tiktoken
status "a rank twice" 3 quern tokenizer encode --tokenizer r.tiktoken --pattern gpt2 a.txt
has "its line" err "line 2"
printf '12 x7\n' >bad.ids
status "no ids" 3 quern tokenizer decode --tokenizer "$TOK" bad.ids
printf '99999999\n' >bad.ids
status "an unknown id" 3 quern tokenizer decode --tokenizer "$TOK" bad.ids
printf '"good"\n{"text":1}\nnonsense\n{"other":"x"}\n"good"\n' >bad.jsonl
status "bad lines" 1 quern tokenizer encode --tokenizer "$TOK" --jsonl bad.jsonl
equal "the others are done" "$(wc -l <out)" 2
has "named by file and offset" err "'bad.jsonl' at byte 7:"
equal "each of them" "$(grep -c skipped err)" 3
status "train on nothing" 3 quern tokenizer train --vocab-size 400 -o n.json missing.txt
absent "nothing written" n.json
status "a full disk" 3 quern tokenizer train --vocab-size 400 -o /dev/full "$D/corpus.txt"
finish
