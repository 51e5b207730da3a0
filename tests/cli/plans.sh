#!/bin/bash
# The plans of published recipes (pipelines/plans), as they are, on pages in three languages, with models trained here.
. "$ROOT/tests/lib.sh"
cp "$ROOT"/pipelines/plans/*.yaml .
cat >en.words <<'END'
the miller:the old baker:a child:the teacher:every farmer:the smith:my sister:the captain:a stranger:the gardener
brings:has found:sells:keeps:wants to see:has forgotten:carries:mends:will buy:has lost
the grain:a heavy stone:the flour:new bread:that broken wheel:a letter:the last apples:warm clothes:some salt:a lantern
to the river:in the village:with a friend:of the town:behind the house:before winter:on the bridge:at night:for the market:near it
END
cat >de.words <<'END'
der Müller:der alte Bäcker:ein Kind:die Lehrerin:jeder Bauer:der Schmied:meine Schwester:die Kapitänin:ein Fremder:der Gärtner
bringt:hat gefunden und behält:verkauft:hütet:sucht:vergaß:trägt:flickt:kauft:verlor
das Getreide:den schweren Stein:das Mehl:frisches Brot:das kaputte Rad:einen Brief:die letzten Äpfel:warme Kleider:Salz:die Laterne
in den Ort:von der Mühle:mit dem Wagen:und im Winter:als es Nacht wurde:für den Markt:des Dorfes:mit einem Freund:von der Brücke:dort
END
cat >fr.words <<'END'
le meunier:la vieille boulangère:un enfant:la maîtresse:chaque paysan:le forgeron:ma sœur:le capitaine:une étrangère:le jardinier
apporte:a trouvé:vend:garde:veut voir:a oublié:porte:répare:achète:a perdu
le grain:une lourde pierre:la farine:du pain frais:la roue cassée:une lettre:les pommes:des habits chauds:un peu de sel:la lanterne
à la rivière:dans le village:avec un ami:et la ville:par la maison:au marché:est la nuit:en hiver:des églises:il y a longtemps
END

# text LANG SEED FORM: 18 sentences drawn from its words; as a page, or as a line with its label.
text() {
    awk -v lang="$1" -v seed="$2" -v form="$3" '
        { split($0, word, ":"); for (i = 1; i <= 10; i++) w[NR, i] = word[i] }
        END {
            srand(seed)
            for (s = 0; s < 18; s++) {
                sentence = ""
                for (j = 1; j <= 4; j++) sentence = sentence (j == 1 ? "" : " ") w[j, int(rand() * 10) + 1]
                all = all (form == "page" && s % 3 == 0 ? "</p>\n<p>" : "") sentence ". "
            }
            if (form == "page") printf "<html><title>%s</title><article><p>Write to mail@example.org.%s</p></article></html>\n", seed, all
            else printf "{\"label\":\"%s\",\"text\":\"%s\"}\n", form, all
        }' "$1.words"
}
mkdir crawl
for lang in en de fr; do
    for k in $(seq 12); do text $lang "$k" page >"crawl/$lang$k.html"; done
    sed '$d' crawl/${lang}7.html >crawl/${lang}x.html # all but the last of its paragraphs
    echo '<p>to be or not to be. to be or not to be.</p>' >"crawl/${lang}short.html"
done
for k in $(seq 101 130); do
    text en "$k" __label__en
    text de "$k" __label__de
    text fr "$k" __label__fr
done >labels.jsonl
check 'a model of languages' quern classify train -q --dim 16 --epoch 60 --lr 0.5 -o lid.176.bin labels.jsonl
sed 's/__label__en/__label__eng_Latn/; s/__label__de/__label__deu_Latn/; s/__label__fr/__label__fra_Latn/' labels.jsonl >scripts.jsonl
check 'another, with scripts' quern classify train -q --dim 16 --epoch 60 --lr 0.5 -o glotlid.bin scripts.jsonl
grep miller labels.jsonl | awk 'NR % 2 { sub("__label__en", "hq") } { sub("__label__en", "cc"); print }' >quality.jsonl
check 'one of quality' quern classify train -q --dim 4 --epoch 1 --lr 0.1 -o openhermes_reddit_eli5.bin quality.jsonl

for plan in fineweb fineweb2 dclm dolma; do
    check "$plan runs" quern curate -q $plan.yaml crawl
done
# ids FILE: of the documents, in order.
ids() { zstd -dcq "$1" | sed 's/.*"id":"crawl.\([^."]*\)\..*/\1/' | tr '\n' ' '; }
# why FILE: how many each rule dropped.
why() { zstd -dcq "$1" | sed 's/.*"rule":"\([^"]*\)".*/\1/' | sort | uniq -c | sed 's/  */ /' | tr '\n' ','; }
equal 'FineWeb has English' "$(ids fineweb.jsonl.zst)" 'en1 en10 en11 en12 en2 en3 en4 en6 en7 en8 en9 '
equal 'without these' "$(why fineweb-rejects.jsonl.zst)" ' 1 duplicated_5_n_grams, 26 lang, 1 near-duplicate, 3 top_2_gram,'
equal 'and without addresses' "$(zstd -dcq fineweb.jsonl.zst | grep -c 'Write to email@example.com')" 11
equal 'FineWeb-2 has German' "$(ids fineweb2-de.jsonl.zst)" 'de1 de10 de11 de12 de2 de3 de4 de5 de6 de7 de8 de9 '
equal 'and French' "$(ids fineweb2-fr.jsonl.zst)" 'fr1 fr10 fr11 fr12 fr2 fr3 fr4 fr6 fr7 fr8 fr9 '
equal 'by the rules of each' "$(why fineweb2-rejects.jsonl.zst)" ' 1 duplicated_5_n_grams, 2 near-duplicate, 16 no_branch,'
equal 'and says which stand for several' "$(zstd -dcq fineweb2-??.jsonl.zst | grep '"cluster_size":2' | grep -o '[df][er]7[.]html')" \
    $'de7.html\nfr7.html'
equal 'DCLM has the best' "$(ids dclm-best.jsonl.zst)" 'en1 en10 en4 en9 enx '
equal 'without these' "$(why dclm-rejects.jsonl.zst)" ' 26 lang, 3 page_length, 8 repetition_5_gram,'
equal 'and nothing that is worse' "$(ids dclm-good.jsonl.zst)$(ids dclm-rest.jsonl.zst)" ''
sed -i 's/0[.]018112/0.6/' dclm.yaml
rm -r dclm.work
check 'with another bound' quern curate -q dclm.yaml crawl
equal 'they are less than the best' "$(ids dclm-best.jsonl.zst)$(ids dclm-good.jsonl.zst)" 'en1 en10 en4 en9 enx '
equal 'Dolma has English, pages without an address too' "$(ids dolma.jsonl.zst)" \
    'en1 en10 en11 en12 en2 en3 en4 en5 en6 en7 en8 en9 '
equal 'without these' "$(why dolma-rejects.jsonl.zst)" ' 26 lang, 1 nothing-left, 3 word_count,'
equal 'with its lines once' "$(zstd -dcq dolma.jsonl.zst | grep -c 'Write to')" 1
finish
