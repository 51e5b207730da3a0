#!/usr/bin/env bash
# The report: its numbers, whatever ids and texts hold, the same bytes for any number of threads.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
awk 'BEGIN { for (i = 1; i <= 300; i++) {
    printf "{\"id\":\"d%d\",\"url\":\"http://h%d.example/\",\"lang\":\"%s\",\"text\":\"w%d", i, i % 3, i % 4 ? "en" : "de", i % 100
    for (k = 0; k < i % 97; k++) printf " word"
    print "\"}" } }' >in.jsonl
printf 'gopher-quality:\n  gopher_enough_stop_words: off\n' >conf.yaml
quern dedup exact --rejects r1.jsonl --stats s1.json -q in.jsonl |
    quern filter --preset gopher-quality -c conf.yaml --rejects r2.jsonl --stats s2.json -q -o out.jsonl
report() { quern report --stats s1.json --stats s2.json --rejects 'r[12].jsonl' --input in.jsonl --docs out.jsonl "$@"; }
check "a page" report -o report.html
cp report.html out
kept=$(wc -l <out.jsonl) short=$(grep -c gopher_short_doc r2.jsonl)
has "documents in and out" out "Of <b>300</b> documents"
has "kept" out "<b>$kept</b> were kept"
has "a stage" out "<tr><td>dedup exact</td><td class=\"n\">300</td><td class=\"n\">300</td><td class=\"n\">100.0</td>"
has "a rule" out "<b>$short</b> dropped, <b>"
has "its meaning" out "Value: words that are more than symbols; drops below the threshold."
has "its threshold" out ">threshold 50</text>"
has "an example's text" out "<pre dir=\"auto\">w"
has "languages before and after" out "<tr><td><bdi>de</bdi></td><td class=\"n\">75</td><td class=\"n\">25.0</td>"
equal "bars add up" "$(grep -o '<rect class="v" x="[0-9.]*" y="[0-9.]*"' out | wc -l | awk '{ print ($1 > 20) }')" 1
for j in 1 2 8; do
    report -j $j -o other.html
    same "the same with $j threads" other.html report.html
done
report >other.html
same "on standard output" other.html report.html
check "no script, nothing from elsewhere" bash -c "! grep -qiE '<script|href=|src=|url\(|@import|javascript:' report.html"
check "statistics alone" quern report --stats s1.json -o one.html
check "accounts alone" quern report --rejects r2.jsonl --examples 1 --title 'a<b' -o one.html
has "a title" one.html "<h1>a&lt;b</h1>"
equal "one example" "$(grep -c '^<tr><td class="id">' one.html)" 1
printf '{"stages":[{"stage":"x","docs_in":5,"docs_out":5,"bytes_in":10,"bytes_out":10,"dropped_by":{}}]}' >first.json
check "a stage that reads more than the one before wrote" quern report --stats first.json --stats s1.json -o one.html
has "adds to what came in" one.html "Of <b>300</b> documents"

# Another run beside it, and signals: all documents, what stays of them, thresholds of the accounts or the presets.
quern filter --preset gopher-quality,fineweb --annotate -q -o signals.jsonl in.jsonl
quern filter --preset gopher-quality -c conf.yaml -q --rejects r3.jsonl --stats s3.json -o kept.jsonl signals.jsonl
check "beside another run" quern report --stats s3.json --rejects r3.jsonl --other-stats s1.json --other-stats s2.json \
    --input signals.jsonl --docs kept.jsonl -o two.html
cp two.html out
has "its documents" out "Of <b>300</b> documents the other run kept <b>$kept</b>"
kept3=$(wc -l <kept.jsonl)
other=$(wc -l <out.jsonl)
has "a stage of both" out "<tr><td>filter</td><td class=\"n\">$other</td>"
has "a stage of the other" out "<tr><td>dedup exact</td><td class=\"n\">300</td><td class=\"n\">100.0</td><td class=\"n\">–</td><td></td>"
has "the change" out "<td class=\"n\">$((kept3 < other ? other - kept3 : kept3 - other))</td></tr>"
has "a signal" out '<div><p><code>gopher_short_doc</code> words that are more than symbols</p><svg'
has "the preset's threshold" out '>threshold 0.67</text>'
equal "signals of all documents" "$(grep -c "<title>documents, by value<" out)" 5
check "another run alone" quern report --stats s3.json --other-stats s2.json -o one.html
status "no statistics of another run" 3 quern report --stats s3.json --other-stats in.jsonl

# Hostile: markup, quotes, controls, directions, very long names, numbers beyond all bounds.
evil='\"><script>alert(1)</script><img src=x onerror=y>&amp;\u0000\u001b[2J\u202e'
long=$(head -c 300000 /dev/zero | tr '\0' '<')
{
    printf '{"id":"%s","stage":"%s","rule":"%s","value":1e308,"threshold":-1e308,"survivor":"%s"}\n' "$evil" "$evil" "$evil" "$evil"
    printf '{"id":"2","stage":"%s","rule":"%s","value":-1e308,"threshold":1e-300}\n' "$evil" "$evil"
    printf '{"id":"3","stage":"%s","rule":"r","value":1e999,"threshold":0}\n' "$long"
    printf '{"id":"%s","stage":"s","rule":"%s","value":null,"threshold":0}\n' "$long" "$long"
    awk 'BEGIN { for (i = 0; i < 1500; i++) printf "{\"id\":\"%d\",\"stage\":\"many\",\"rule\":\"r%d\",\"value\":%d,\"threshold\":0}\n", i, i, i }'
} >evil.rejects
printf '{"id":"%s","lang":"%s","url":"http://%s/","text":"%s\\n\\tline</pre><b>","signals":{"%s":1}}\n' "$evil" "$evil" "$evil" "$evil" "$evil" >evil.jsonl
printf '{"bad":-5,"stages":[{"stage":"%s","docs_in":-1,"docs_out":9223372036854775807,"dropped_by":{"%s":-3,"x":"y"}},{"stage":7},8]}' \
    "$evil" "$evil" >evil.json
check "hostile files" quern report --stats evil.json --rejects evil.rejects --input evil.jsonl --docs evil.jsonl \
    --other-stats evil.json --title '</title><script>' -o evil.html
check "no markup of theirs" bash -c "! grep -qE '<script|<img|<b>alert|line</pre>' evil.html"
check "no control characters" bash -c "! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' evil.html"
has "but named" evil.html '&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=y&gt;&amp;amp;\u0000\u001b[2J\u202e'
has "too many rules" evil.html "<code>(others)</code>"
check "not too long a page" test "$(wc -c <evil.html)" -lt 3000000
status "no statistics" 3 quern report --stats in.jsonl
printf '{"a":1}' >none.json
status "other JSON" 3 quern report --stats none.json
has "is refused" err "'none.json' has no statistics of stages"
status "lines that are no account" 1 quern report --rejects in.jsonl -o bad.html
status "nothing" 2 quern report
status "an operand" 2 quern report s1.json

# A page declares a language with its region, langid writes none.
for l in en-US en-GB en EN_us de; do printf '{"id":"%s","lang":"%s","text":"x"}\n' $l $l; done >declared.jsonl
for i in 1 2 3; do printf '{"id":"%s","lang":"en","text":"x"}\n' $i; done >found.jsonl
printf '{"stages":[{"stage":"langid","docs_in":5,"docs_out":3,"bytes_in":5,"bytes_out":3,"dropped_by":{"lang":2}}]}' >langid.json
check "languages by what is declared and by what is found" quern report --stats langid.json --input declared.jsonl --docs found.jsonl -o langs.html
has "are compared by the language alone" langs.html '<tr><td><bdi>en</bdi></td><td class="n">4</td><td class="n">80.0</td><td class="n">3</td><td class="n">75.0</td>'
equal "and no other is there" "$(grep -c '<tr><td><bdi>' langs.html)" 2
for page in langs.html curves.html evil.html; do
    [ -e $page ] || continue
    equal "every table of $page can be scrolled" "$(grep -o '<table' $page | wc -l)" \
        "$(tr -d '\n' <$page | grep -oE '<div class="(scroll|o)">(<table|[^<]*<table)' | wc -l)"
done

# Curves of training.
for k in 1 2; do
    for i in $(seq $((k * 1000))); do
        printf '{"step":%d,"loss":%d.5,"grad_norm":0.25,"lr":null,"batch":8,"valid_loss":%s,"data_s":0.1,"forward_s":0.3,"future":{"a":[1]}}\n' \
            "$i" $((i + k)) "$((i % 100)).75"
    done >log$k.jsonl
done
check "curves" quern report --curves log1.jsonl --curves log2.jsonl -o curves.html
equal "a line a run and plot" "$(grep -o 'class="l l0"' curves.html | wc -l) $(grep -o 'class="l l1"' curves.html | wc -l)" '5 5'
equal "no plot of what no log has" "$(grep -c 'Learning rate' curves.html)" 0
has "the last step" curves.html $'<td class="n">2\xe2\x80\xaf000</td>'
has "the share of a phase" curves.html '<td class="n">75.0</td>'
{
    printf '{"step":%d,"loss":2.5,"data_s":0.25,"forward_s":0.5}\n' 1 2 3
    echo '{"step":3,"valid_loss":2.25,"test_loss":2.125}'
} >end.jsonl
check "a log that ends with an evaluation" quern report --curves end.jsonl -o end.html
has "has its validation loss, and seconds of steps alone" end.html \
    '<code>end.jsonl</code></td><td class="n">3</td><td class="n">2.5</td><td class="n">2.25</td><td class="n">0.75</td>'
check "from a pipe" bash -c 'quern report --curves - <log1.jsonl >piped.html'
check "long runs are drawn by means" test "$(grep -o '<path class="l l1".*"/>' curves.html | head -1 | wc -c)" -lt 60000
status "no training" 3 quern report --curves none.json
has "is refused" err "'none.json' has no steps of training"
status "two kinds of page" 2 quern report --curves log1.jsonl --stats s1.json
finish
