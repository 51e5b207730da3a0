# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
D=$ROOT/tests/data/parquet

# every tool that reads documents reads Parquet, told by its first bytes
quern clean -q "$D/datatrove.jsonl" >want.jsonl
cp "$D/datatrove.parquet" named.jsonl
for f in "$D/datatrove.parquet" named.jsonl; do
    status "$f" 0 quern clean -q "$f"
    same 'has the documents of its JSON lines' out want.jsonl
done
quern clean -q - <"$D/datatrove.parquet" >out
same 'from standard input' out want.jsonl
# shellcheck disable=SC2002
cat "$D/datatrove.parquet" | quern clean -q >out
same 'and through a pipe' out want.jsonl
gzip -c "$D/datatrove.parquet" >within.gz
status 'one within a compressed file' 3 quern clean within.gz
has 'is refused' err "'within.gz' is a Parquet file within a compressed one: unpack it first"
quern tokenizer train -q --vocab-size 270 -o tok.json "$D/fineweb.jsonl"
quern tokenizer train -q --vocab-size 270 -o tok2.json "$D/fineweb.parquet"
same 'quern tokenizer train' tok.json tok2.json
quern tokenize -q --tokenizer tok.json --output-prefix a "$D/fineweb.jsonl"
quern tokenize -q --tokenizer tok.json --output-prefix b "$D/fineweb.parquet"
same 'quern tokenize' a_text_document.bin b_text_document.bin
for tool in 'dedup exact' 'dedup fuzzy' langid 'filter --preset gopher-quality' mix; do
    # shellcheck disable=SC2086
    quern $tool -q "$D/dclm.jsonl" -o a.jsonl
    # shellcheck disable=SC2086
    quern $tool -q "$D/dclm.parquet" -o b.jsonl
    same "quern $tool" a.jsonl b.jsonl
done
for f in jsonl parquet; do
    printf 'input: [%s]\noutput: plan_%s.jsonl\nwork: work_%s\n' "$D/dclm.$f" $f $f >plan.yaml
    printf 'stages:\n  - clean\n  - dedup exact\n' >>plan.yaml
    check "a plan, $f" quern curate -q plan.yaml
done
same 'has the same documents' plan_jsonl.jsonl plan_parquet.jsonl

# columns that are chosen
awk 'BEGIN { for (i = 0; i < 400; i++) printf "{\"id\":\"%d\",\"text\":\"Text %d.\",\"score\":%d,\"more\":[%d]}\n", i, i, i % 7, i }' >four.jsonl
quern mix -q --order input four.jsonl -o four.parquet
sed 's/,"score.*/}/' four.jsonl >two.jsonl
for j in 1 3; do
    status "--columns, $j threads" 0 quern clean -q -j $j --columns text,id four.parquet
    same 'are the fields' out two.jsonl
done
status 'of what is no Parquet' 0 quern clean -q --columns text,id four.jsonl
same 'all fields are' out four.jsonl
at=$(LC_ALL=C grep -abo '(.\/.' four.parquet | tail -n 1 | cut -d : -f 1)
cp four.parquet harmed.parquet
printf XXXX | dd of=harmed.parquet bs=1 seek=$((at + 8)) conv=notrunc 2>dd.log
status 'damage in a column' 3 quern clean -q harmed.parquet
status 'that is not read' 0 quern clean -q --columns id,text harmed.parquet
same 'is not seen' out two.jsonl
status 'a column that is not there' 3 quern clean --columns id,txt,text four.parquet
has 'is named' err "'four.parquet': it has no column 'txt'"
quern mix -q --order input --columns id,text four.parquet -o mixed.jsonl
same 'quern mix --columns' mixed.jsonl two.jsonl
quern stats --json four.parquet >all.stats
quern stats --json --columns text,id harmed.parquet >some.stats
equal 'quern stats --columns' "$(grep -c '"score"' all.stats) $(grep -c '"score"' some.stats)" '1 0'
n=0
for at in four.jsonl '--columns text harmed.parquet'; do
    # shellcheck disable=SC2086
    quern tokenize -q --again --tokenizer tok.json --output-prefix t$((n = n + 1)) $at
    # shellcheck disable=SC2086
    quern tokenizer train -q --vocab-size 265 -o v$n.json $at
done
same 'quern tokenize --columns' t1_text_document.bin t2_text_document.bin
same 'quern tokenizer train --columns' v1.json v2.json

# row groups by option: 400 rows in groups of 150 are three, which are what a damaged one takes with it
quern clean -q --row-group-size 150 four.jsonl -o groups.parquet
quern clean -q groups.parquet >out
same 'rows in small row groups' out four.jsonl
quern mix -q --order input --row-group-size 150 four.jsonl -o groups2.parquet
same 'quern mix makes the same' groups.parquet groups2.parquet
printf 'input: [four.jsonl]\nrow-group-size: 150\noutput: groups3.parquet\nwork: groups.work\nstages:\n  - clean\n' >plan.yaml
quern curate -q plan.yaml
same 'and so does a plan' groups.parquet groups3.parquet
equal 'they are three' "$(LC_ALL=C grep -abo '(.\/.' groups.parquet | wc -l) $(LC_ALL=C grep -abo '(.\/.' four.parquet | wc -l)" \
    "$((3 * $(LC_ALL=C grep -abo '(.\/.' four.parquet | wc -l))) $(LC_ALL=C grep -abo '(.\/.' four.parquet | wc -l)"
printf 'input: [four.parquet]\ncolumns: id,text\noutput: columns.jsonl\nwork: columns.work\nstages:\n  - clean\n' >plan.yaml
check 'columns of a plan' quern curate -q plan.yaml
same 'are the fields too' columns.jsonl two.jsonl
sed -i 's/columns: id,text/columns: id,text,score/' plan.yaml
status 'other columns are another plan' 2 quern curate plan.yaml
has 'and said' err 'columns'

# damage is named; what can be read around it is
head -c 3000 "$D/dclm.parquet" >cut.parquet
status 'a file that is cut short' 1 quern clean cut.parquet "$D/dclm.parquet" -o out.jsonl
has 'is named' err "'cut.parquet': it is cut short: it does not end with PAR1"
equal 'and the next one is read' "$(wc -l <out.jsonl)" 9
cp "$D/codec_zstd_v1.parquet" bad.parquet
head -c 200 /dev/zero | tr '\0' '\377' | dd of=bad.parquet bs=1 seek=800 conv=notrunc 2>dd.log
status 'a damaged page' 1 quern clean bad.parquet
has 'is named with row group and column' err \
    "'bad.parquet': row group 0: row 0: column 'text': page at offset 4: damaged zstd data"
equal 'and the other row group is read' "$(wc -l <out)" 15
status 'a codec that is not read' 3 quern clean "$D/brotli.parquet"
has 'is named' err 'it is compressed with brotli, which quern does not read'
# written by the name: the same documents, and the same bytes for any number of threads
quern clean -q "$D/dclm.jsonl" -o a.jsonl
for j in 1 3; do check "quern clean -o, $j threads" quern clean -q -j $j "$D/dclm.jsonl" -o "a$j.parquet"; done
same 'the same bytes' a1.parquet a3.parquet
quern mix -q --order input a.jsonl -o order.jsonl
quern mix -q --order input a1.parquet -o again.jsonl
same 'and what is read of it is what was written' again.jsonl order.jsonl
check 'a pattern of shards' quern mix -q --shard-size 20000 a.jsonl "$D/fineweb.jsonl" -o 'shard-%05d.parquet'
quern clean -q shard-*.parquet -o shards.jsonl
equal 'has all documents' "$(wc -l <shards.jsonl)" 21
printf 'input: [%s, %s]\noutput: plan.jsonl\nrejects: plan.rej\nwork: w1\n' "$D/dclm.jsonl" "$D/datatrove.parquet" >plan.yaml
sed 's/plan.jsonl/plan.parquet/; s/plan.rej/rej.parquet/; s/w1/w2/' plan.yaml >plan2.yaml
for p in plan plan2; do
    printf 'stages:\n  - clean\n  - filter: {preset: gopher-quality}\n' >>$p.yaml
    check "a plan, $p" quern curate -q $p.yaml
done
quern mix -q --order input plan.jsonl -o order.jsonl
quern clean -q plan.parquet -o again.jsonl
equal 'has the documents' "$(wc -l <again.jsonl)" "$(wc -l <plan.jsonl)"
quern why -q --rejects rej.parquet >why 2>&1
check 'an account in Parquet is read' grep -q . why
mkfifo pipe.parquet
status 'no Parquet to a pipe' 2 quern clean -q "$D/dclm.jsonl" -o pipe.parquet
has 'which is said' err "'pipe.parquet' is no regular file: Parquet cannot be written to it"
finish
