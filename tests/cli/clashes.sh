#!/bin/bash
# A run that would write what it reads, or one file twice, is refused before a byte is written.
. "$ROOT/tests/lib.sh"
printf '{"id":"%s","text":"The mill grinds the grain number %s, slowly but surely, all day long."}\n' a 1 b 2 c 3 >d.jsonl
cp d.jsonl safe.jsonl
# refused NAME TEXT COMMAND...: status 2, TEXT in the message, the input as it was.
refused() {
    status "$1" 2 "${@:3}"
    has 'and both names are told' err "$2"
    same 'and the input is as it was' d.jsonl safe.jsonl
}
refused '-o is the input' "--output 'd.jsonl' is a file that is read too: input 'd.jsonl'" quern clean -o d.jsonl d.jsonl
refused '--rejects is the input' "--rejects 'd.jsonl' is a file that is read too: input 'd.jsonl'" \
    quern filter --preset gopher-quality --rejects d.jsonl -o o.jsonl d.jsonl
refused '--stats is the input' "--stats './d.jsonl'" quern clean --stats ./d.jsonl -o o.jsonl d.jsonl
refused 'tokenizer train -o is the input' "--output 'd.jsonl'" quern tokenizer train --vocab-size 300 -o d.jsonl d.jsonl
ln d.jsonl hard.jsonl
refused 'another name of the input' "--output 'hard.jsonl'" quern clean -o hard.jsonl d.jsonl
ln -s d.jsonl soft.jsonl
refused 'a link to the input' "--output 'soft.jsonl'" quern clean -o soft.jsonl d.jsonl
refused 'what standard input comes from' "input '/dev/stdin'" sh -c 'quern clean -o d.jsonl <d.jsonl'
refused 'what standard output goes to' "standard output goes to a file that is read too" sh -c 'quern clean d.jsonl >>d.jsonl'
refused 'a file that an option reads' "--against 'd.jsonl'" quern decontaminate --against d.jsonl --report d.jsonl -o o.jsonl safe.jsonl
refused 'two outputs of one name' "--output 'o.jsonl' and --rejects 'o.jsonl' are one file" quern clean -o o.jsonl --rejects o.jsonl d.jsonl
mkdir f
refused 'two that come to one name' "are one file" quern clean -o f/o.jsonl --stats f/../f/o.jsonl d.jsonl
refused '--clusters and --pairs' "--clusters 'c' and --pairs 'c'" quern dedup fuzzy --clusters c --pairs c -o o.jsonl d.jsonl
refused 'an index that is read' "--index 'd.jsonl'" quern dedup exact --against d.jsonl --index d.jsonl -o o.jsonl safe.jsonl
refused 'a list of words' "--config 'd.jsonl'" quern filter --preset gopher-quality --config d.jsonl --stats d.jsonl safe.jsonl
absent 'nothing was written' o.jsonl c f/o.jsonl
status 'classify train' 2 quern classify train --positive d.jsonl --negative safe.jsonl -o d.jsonl
status 'a report' 2 quern report --stats d.jsonl -o d.jsonl
same 'leave it as it was' d.jsonl safe.jsonl

# names that are made
cp d.jsonl x-00001.jsonl
status 'a shard is the input' 2 quern mix --shards 2 -o 'x-%05d.jsonl' x-00001.jsonl
has 'and is named' err "--output 'x-00001.jsonl'"
status 'one of shards whose number is not known' 2 quern mix --shard-size 100 -o 'x-%05d.jsonl' x-00001.jsonl
status 'a split is the input' 2 quern mix --split x-00001=0.5,rest=0.5 -o '%s.jsonl' x-00001.jsonl
status 'a weighted source' 2 quern mix -s 1:x-00001.jsonl -o x-00001.jsonl
printf 'sources: [{name: x, weight: 1, files: x-00001.jsonl}]\n' >sources.yaml
status 'a source of a plan' 2 quern mix --plan sources.yaml -o x-00001.jsonl
same 'and stays' x-00001.jsonl safe.jsonl
cp d.jsonl vocab.json
status 'a file of --vocab-merges' 2 quern tokenizer train --vocab-size 300 --vocab-merges . vocab.json
has 'is named by its folder' err "--vocab-merges './vocab.json'"
same 'and stays as well' vocab.json safe.jsonl
check 'a tokenizer' quern tokenizer train -q --vocab-size 300 -o t.json d.jsonl
cp d.jsonl p_text_document.bin
status 'a file of a prefix' 2 quern tokenize --tokenizer t.json --output-prefix p p_text_document.bin
same 'stays' p_text_document.bin safe.jsonl
check 'a dataset' quern tokenize -q --tokenizer t.json --output-prefix my d.jsonl
cp my_text_document.bin my.safe
status 'a dataset cannot be merged into itself' 2 quern dataset merge -o my_text_document my_text_document my_text_document
has 'its files are named' err "--output 'my_text_document.bin'"
same 'and are whole' my_text_document.bin my.safe
status 'a log of training is no dataset' 2 quern train --data-path my_text_document --log-file my_text_document.idx

# plans
mkdir in
cp d.jsonl in/0.jsonl
printf 'input: in/*.jsonl\nstages: [clean]\noutput: %s\nrejects: %s\n' out.jsonl in/0.jsonl >plan.yaml
status 'a plan whose rejects are its input' 2 quern curate --check plan.yaml
has 'is refused when it is checked' err "rejects 'in/0.jsonl' is a file that is read too: input 'in/0.jsonl'"
status 'and when it is run' 2 quern curate plan.yaml
same 'and the input stays' in/0.jsonl safe.jsonl
printf 'input: in/*.jsonl\nstages: [clean]\noutput: same.jsonl\nrejects: same.jsonl\n' >plan.yaml
status 'output and rejects of one name' 2 quern curate plan.yaml
printf 'input: in/*.jsonl\nstages: [{dedup fuzzy: {clusters: in/0.jsonl}}]\noutput: out.jsonl\n' >plan.yaml
status 'a file of a stage' 2 quern curate plan.yaml
has 'is named by the stage' err "dedup fuzzy: clusters 'in/0.jsonl'"
printf 'input: in/*.jsonl\nstages: [clean]\noutput: out.jsonl\nwork: in\n' >plan.yaml
status 'a work folder with the input in it' 2 quern curate plan.yaml
has 'is refused too' err "has to be a folder of its own"
same 'and nothing was lost' in/0.jsonl safe.jsonl

mkdir mine
echo precious >mine/letter.txt
printf 'input: in/*.jsonl\nstages: [dedup exact]\noutput: out.jsonl\nwork: mine\n' >plan.yaml
check 'a work folder that has files of the user' quern curate -q plan.yaml
check 'and begun afresh' quern curate -q --again plan.yaml
equal 'keeps them' "$(cat mine/letter.txt)" precious
equal 'and nothing of its own but the plan and what says that it is done' "$(ls -A mine | tr '\n' ' ')" 'finished letter.txt plan '

# what may be there twice
check 'devices and pipes' quern clean -q -o /dev/null --rejects /dev/null --stats /dev/null d.jsonl
check 'the same file read twice' quern clean -q -o o.jsonl d.jsonl d.jsonl
check 'standard output for two' quern dedup exact -q --rejects - d.jsonl
mkdir pages
echo '<p>Some text that is long enough to be one.' >pages/a.html
check 'an output beside what is read' quern extract -q -o pages.jsonl pages
check 'a new one in the folder' quern extract -q -o pages/out.jsonl pages
status 'which the next run would read' 2 quern extract -q -o pages/out.jsonl pages
has 'and says so' err "stands in a folder that is read: input 'pages'"

# standard input, of which a second reader would get nothing
twice() { sh -c 'cat d.jsonl | '"$2"; }
refused 'standard input for two' '--against and input are both standard input' twice x 'quern decontaminate --against - -o two.jsonl'
refused 'by its other name' '--against and input are both standard input' twice x 'quern dedup exact --against /dev/stdin -o two.jsonl'
refused 'named twice' 'input and input are both standard input' twice x 'quern clean -o two.jsonl - -'
refused 'a file that it comes from' 'are both standard input' sh -c 'quern dedup exact --against - -o two.jsonl <d.jsonl'
absent 'and no half is written' two.jsonl
check 'once by an option' twice x 'quern dedup exact -q --against /dev/stdin -o two.jsonl safe.jsonl'
equal 'is as ever' "$(wc -l <two.jsonl)" 0
finish
