#!/usr/bin/env bash
# quern filter by what pages say of their use: robots, text and data mining, licences.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

doc() { printf '{"id":"%s"%s,"text":"x"}\n' "$1" "${2:+,$2}"; }
{
    doc plain
    doc noai '"source":{"file":"a.warc","robots":"noai, nofollow"}'
    doc capitals '"robots":"NoIndex"'
    doc none '"robots":"none"'
    doc other '"robots":"nofollow, max-snippet:20, noarchive, noimageai"'
    doc reserved '"source": {"digest":"sha1:\\\"}", "x": [{"robots":"noai"}, 1.5], "tdm_reservation" : "1" }'
    doc nested '"source":{"x":{"robots":"noai"},"robotsx":"noai","robots":{"robots":"noai"}}'
    doc other_source '"source":"robots"'
    doc empty_source '"source":{ }'
    doc free '"tdm_reservation":"0"'
} >robots.jsonl
ids() { sed -n 's/^{"id":"\([^"]*\)".*/\1/p' "$@" | tr '\n' ' '; }
fates() { sed -n 's/^{"id":"\([^"]*\)".*"rule":"\([^"]*\)".*/\1:\2/p' r.jsonl | tr '\n' ' '; }

status 'rights' 0 quern filter -q --preset rights --rejects r.jsonl -o kept.jsonl robots.jsonl
equal 'drop what may not be used' "$(fates)" 'noai:noai capitals:noindex none:noindex reserved:tdm_reservation '
equal 'and nothing else' "$(ids kept.jsonl)" 'plain other nested other_source empty_source free '
check 'why' quern why noai reserved --rejects r.jsonl
has 'has words for a directive' out '1 is above 0: 1 if robots are told noai'
has 'and for a reservation' out '1 is above 0: 1 if text and data mining is reserved'
printf 'rights:\n  noindex: off\n  tdm_reservation: off\n  noarchive: on\n' >c.yaml
quern filter -q --preset rights --config c.yaml --rejects r.jsonl -o kept.jsonl robots.jsonl
equal 'each rule can be turned on and off' "$(fates)" 'noai:noai other:noarchive '

{
    doc by '"license":"https://creativecommons.org/licenses/by/4.0/"'
    doc by3 '"license":"http://creativecommons.org/licenses/BY/3.0/de/deed.en"'
    doc sa '"source":{"license":"CC BY\u002dSA 4.0"}'
    doc nd '"license":"https://creativecommons.org/licenses/by-nd/4.0"'
    doc zero '"license":"https://creativecommons.org/publicdomain/zero/1.0/"'
    doc own '"license":"https://e.org/Terms/"'
    doc rights '"license":"All rights reserved"'
    doc long "\"license\":\"$(printf '%600s' '')\""
    doc nothing
} >licensed.jsonl
printf '# open\ncc-by\nCC0\ncc-by-sa-4.0\nhttp://e.org/terms\n' >open.txt
status 'a list of licences' 0 quern filter -q --preset rights --licenses open.txt --rejects r.jsonl -o kept.jsonl licensed.jsonl
equal 'keeps what is on it' "$(ids kept.jsonl)" 'by by3 sa zero own '
equal 'says what is not' "$(fates)" \
    'nd:license_unlisted rights:license_unlisted long:license_unlisted nothing:license_missing '
printf 'https://creativecommons.org/licenses/by/4.0/\n' >one.txt
printf 'rights:\n  license_missing: off\n' >c.yaml
quern filter -q --preset rights --licenses one.txt --config c.yaml -o kept.jsonl licensed.jsonl
equal 'a URL with its version; without a licence' "$(ids kept.jsonl)" 'by nothing '
check 'why, of licences' quern why nd nothing --rejects r.jsonl
has 'has words' out '1 if a licence is stated that is not on the list'
has 'and for none' out '1 if no licence is stated'
status 'a list that nobody reads' 2 quern filter --preset fineweb --licenses open.txt licensed.jsonl
has 'is refused' err 'no preset that is given looks at --licenses'
finish
