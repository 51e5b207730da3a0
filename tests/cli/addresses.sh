# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
# Inputs at addresses: the same documents as of files, through every fault that the tests' server knows.
case $B in /*) ;; *) B=$ROOT/$B ;; esac
D=$ROOT/tests/data/parquet
export QUERN_HTTP_TIMEOUT=12
impatient='env QUERN_HTTP_TIMEOUT=1.2' # what is to fail by waiting in vain
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
: >log
if quern clean http://127.0.0.1:1/x 2>&1 | grep -q 'addresses need libcurl\|was built without libcurl'; then
    status 'an address without libcurl' 3 quern clean http://127.0.0.1:1/x.jsonl
    has 'is refused by name' err "cannot read 'http://127.0.0.1:1/x.jsonl': "
    finish
fi
for i in 1 2 3 4 5 6 7 8 9; do cat "$D/dclm.jsonl"; done >d.jsonl
gzip -k d.jsonl
zstd -q d.jsonl
cp "$D/dclm.parquet" .
: >empty
"$B/tests/http_server" . log >port &
server=$!
trap 'kill $server; rm -rf "$scratch"' EXIT
for ((i = 0; i < 100; i++)); do [ -s port ] && break; sleep .1; done
H=http://127.0.0.1:$(cat port)
n=$(stat -c %s d.jsonl)

quern clean -q d.jsonl >want
for m in plain/0 stalls/30000 cut/30000 reset/30000 dated/30000 norange/30000 busy/2 later/1 chunked/0 redirect/5; do
    status "$m" 0 quern clean -q "$H/$m/d.jsonl"
    same 'has the documents of the file' out want
done
for f in d.jsonl.gz d.jsonl.zst; do
    status "$f, cut" 0 quern clean -q "$H/cut/10000/$f"
    same 'has them too' out want
done
status 'many threads, a query, and a fragment' 0 quern clean -q -j 3 "$H/plain/0/d.jsonl?key=secret"
same 'the same' out want
quern clean -q dclm.parquet >want.parquet
status 'Parquet' 0 quern clean -q "$H/cut/5000/dclm.parquet"
same 'is put aside' out want.parquet
status 'nothing at all' 0 quern clean -q "$H/plain/0/empty"
equal 'is no document' "$(wc -c <out)" 0
printf 'two members: the first\n' | gzip >bad.gz
m=$(stat -c %s bad.gz)
gzip -c d.jsonl >>bad.gz
printf '\377\377\377\377' | dd of=bad.gz bs=1 seek=$((m - 8)) conv=notrunc 2>dd.log
quern clean -q bad.gz >want.bad 2>want.err
quern clean -q "$H/plain/0/bad.gz" >out 2>err
same 'after a damaged member reading goes on' out want.bad
equal 'and it is named with its offset' "$(sed "s,$H/plain/0/,," err)" "$(cat want.err)"

has 'it goes on at the byte where it was cut' log 'GET /cut/30000/d.jsonl bytes=30000-'

# what does not hold is an error that names address, offset and reason, and nothing is published
wrong() { # MODE STATUS WORDS
    # shellcheck disable=SC2086
    status "$1" "$2" $impatient quern clean -q "$H/$1/d.jsonl?key=secret" -o made.jsonl
    has 'is named' err "$3"
    absent 'nothing is published' made.jsonl
    absent 'the query is in no message' "$(grep -l secret err)"
}
wrong changes/30000 3 "cannot read '$H/changes/30000/d.jsonl' at offset 30000: it has changed while it was read"
wrong grows/30000 3 'offset 30000: it has changed while it was read'
wrong bare/30000 3 'at offset 30000: the connection was cut, and the server gives no ETag or Last-Modified by which to go on'
wrong lies/30000 3 "at offset 30000: the server answers with another range than the one asked for: 'bytes 30001-$n/$((n + 1))'"
wrong status/404 3 "at offset 0: the server answers 404 (not found)"
wrong status/403 3 'the server answers 403 (no access)'
wrong status/500 3 'the server answers 500; tried '
wrong stuck/30000 3 'at offset 30000: transfer closed with '
has 'the same bytes again are no progress' err 'tried 4 times in 0.7 seconds'
wrong never/0 3 'the server answers 429, and asks to come again after 3600 seconds'
wrong silent/0 3 'no byte came for 0.3 seconds; tried '
wrong redirect/6 3 'redirects'
wrong escape/0 3 'rotocol'
wrong garbage/0 3 'cannot read'
status 'nobody there' 3 $impatient quern clean -q http://127.0.0.1:1/d.jsonl
has 'is named' err "cannot read 'http://127.0.0.1:1/d.jsonl' at offset 0: "
status 'a password in an address' 2 quern clean -q http://me:word@127.0.0.1:1/d.jsonl
has 'is refused' err 'an address with a user or a password in it is not read'
absent 'and not repeated' "$(grep -l word@ err)"

# sums that the server states: of all bytes, whatever was cut, and no others
bytes64() { # HEX: its bytes in base64
    local hex=$1
    # shellcheck disable=SC2059
    printf "$(sed 's/../\\x&/g' <<<"$hex")" | base64
}
crc=$(gzip -c d.jsonl | tail -c 8 | head -c 4 | od -An -tx1 | awk '{ print $4 $3 $2 $1 }')
sha=$(sha256sum <d.jsonl | cut -c 1-64)
stated() { # HEADER VALUE OTHER-VALUE
    echo "$1: $2" >d.jsonl.head
    status "$1" 0 quern clean -q "$H/cut/30000/d.jsonl"
    same 'holds' out want
    echo "$1: $3" >d.jsonl.head
    wrong cut/30000 3 "what came does not have the checksum that the server states ($1)"
    rm d.jsonl.head
}
quern clean -q d.jsonl >want
if ! quern clean -q s3://x/y 2>&1 | grep -q SHA-256; then
    stated x-amz-checksum-sha256 "$(bytes64 "$sha")" "$(bytes64 "${sha%??}00")"
    stated x-amz-checksum-sha1 "$(bytes64 "$(sha1sum <d.jsonl | cut -c 1-40)")" "$(bytes64 "${sha:0:40}")"
    stated Content-MD5 "$(bytes64 "$(md5sum <d.jsonl | cut -c 1-32)")" "$(bytes64 "${sha:0:32}")"
    stated Repr-Digest "md5=:AAAA:, sha-256=:$(bytes64 "$sha"):" "sha-256=:$(bytes64 "${sha%??}00"):"
    stated Digest "SHA-256=$(bytes64 "$sha"),md5=x" "md5=x, sha-256=$(bytes64 "${sha%??}00")"
    echo "X-Linked-ETag: \"${sha%??}00\"" >d.jsonl.first
    wrong redirect/1 3 '(X-Linked-ETag)'
    echo "X-Linked-ETag: \"$sha\"" >d.jsonl.first
    status 'the sum of a file that is redirected to' 0 quern clean -q "$H/redirect/2/d.jsonl"
    rm d.jsonl.first
fi
stated x-amz-checksum-crc32 "$(bytes64 "$crc")" "$(bytes64 "${crc:6}${crc:0:6}")"
echo "x-amz-checksum-crc32: $(bytes64 "${crc:6}${crc:0:6}")-2" >d.jsonl.head
status 'a sum of parts' 0 quern clean -q "$H/chunked/0/d.jsonl"
same 'is none of the whole' out want
echo "x-amz-checksum-crc32: $(bytes64 "${crc:6}${crc:0:6}")" >d.jsonl.head
wrong chunked/0 3 "does not have the checksum"
mv d.jsonl.head dclm.parquet.head
status 'of Parquet too' 3 quern clean -q "$H/plain/0/dclm.parquet"
has 'it is wrong' err 'what came does not have the checksum'
rm dclm.parquet.head

# other commands
printf '<html><body><article><p>A page about the sea, and of boats that sail on it at night.</p></article></body></html>' >p.html
quern extract -q --extractor everything p.html | sed 's,p\.html,NAME,g' >want
status 'extract' 0 quern extract -q --extractor everything "$H/plain/0/p.html?key=secret"
equal 'makes the same document' "$(sed "s,$H/plain/0/p\.html,NAME,g" out)" "$(cat want)"
quern tokenizer train -q --vocab-size 270 -o tok.json d.jsonl
check 'a tokenizer is trained on an address' quern tokenizer train -q --vocab-size 270 -o tok2.json "$H/cut/30000/d.jsonl"
same 'the same' tok.json tok2.json
check 'tokenize' quern tokenize -q --tokenizer tok.json --output-prefix b "$H/cut/30000/d.jsonl"
quern tokenize -q --tokenizer tok.json --output-prefix a d.jsonl
same 'the same tokens' a_text_document.bin b_text_document.bin
status 'nothing is written to an address' 2 quern clean -q d.jsonl -o "$H/plain/0/new.jsonl"
has 'it says' err 'is an address, to which nothing is written'
here() { # NAME COMMAND...: of what has to be here, the end of the command is an address, without its query in messages
    local name=$1
    shift
    status "$name" 2 "$@" "$H/plain/0/x?key=secret"
    has 'has to be here' err "'$H/plain/0/x' is an address; this has to be a file or a folder here"
    status "$name in S3" 2 "$@" s3://bucket/x
    has 'has to be here too' err "is an address; this has to be a file or a folder here"
    absent 'nothing is made' s3: http:
}
tiny="--num-layers 1 --hidden-size 8 --num-attention-heads 1 --seq-length 4 --vocab-size 300 --lr 1e-3 --train-iters 1 --device cpu"
printf 'input: d.jsonl\noutput: o.jsonl\nstages:\n  - clean\n' >plan.yaml
here 'a dataset' quern dataset info
here 'a dataset to write' quern dataset merge a_text_document -o
here 'checkpoints that are asked' quern dataset trace --step 1 --checkpoint
here 'a checkpoint' quern checkpoint verify
here 'tokens' quern tokenize --tokenizer tok.json d.jsonl --output-prefix
here 'tokens for others' quern tokenize --tokenizer tok.json --format npy d.jsonl --output-prefix
# shellcheck disable=SC2086
for o in save load data-cache-path; do here "train --$o" quern train --data-path a_text_document $tiny --$o; done
here 'a work folder' quern curate plan.yaml --work
here 'kept documents' quern curate plan.yaml --keep
# shellcheck disable=SC2086
status 'a log in S3' 2 quern train --data-path a_text_document $tiny --log-file s3://bucket/log
has 'has to be a file' err "'s3://bucket/log' is an address; lines are appended to a file here"
# a password in an address is refused wherever the address stands, before any work, and no message has it
password() { # NAME COMMAND...
    status "a password: $1" 2 "${@:2}"
    absent 'is in no message' "$(grep -l password9 out err)"
}
user=user:password9@store.example.org
printf 'input: https://%s/d.jsonl\noutput: o.jsonl\nstages:\n  - clean\n' $user >secret.yaml
password 'read' quern clean -q https://$user/d.jsonl
password 'an object' quern clean -q s3://$user/d.jsonl
password 'written' quern clean -q d.jsonl -o https://$user/o.jsonl
password 'an object that is written' quern clean -q d.jsonl -o s3://$user/o.jsonl
password 'an endpoint' quern clean -q --endpoint-url https://$user s3://bucket/d.jsonl
password 'an endpoint without scheme' quern clean -q --endpoint-url $user s3://bucket/d.jsonl
password 'an endpoint in the environment' env AWS_ENDPOINT_URL_S3=$user quern clean -q s3://bucket/d.jsonl
password 'a plan that is checked' quern curate --check secret.yaml
password 'a plan' quern curate secret.yaml
password 'a dataset' quern dataset info https://$user/x
# shellcheck disable=SC2086
password 'a log' quern train --data-path a_text_document $tiny --log-file https://$user/log
password 'a report' quern report https://$user/x
quern dedup exact -q --index e.index d.jsonl >/dev/null
quern dedup fuzzy -q --index f.index d.jsonl >/dev/null
quern dedup exact -q --against d.jsonl dclm.parquet >want
status 'documents to hold against' 0 quern dedup exact -q --against "$H/cut/30000/d.jsonl?key=secret" dclm.parquet
same 'are read there' out want
status 'an index to hold against' 3 quern dedup fuzzy -q --against "$H/plain/0/f.index?key=secret" d.jsonl
has 'has to be here' err "'$H/plain/0/f.index' is an address; an index has to be a file here"
printf 'input: [%s/plain/0/d.jsonl]\noutput: o.jsonl\nwork: w\nstages:\n  - clean\n' "$H" >plan.yaml
quern curate -q plan.yaml d.jsonl -o want.plan
rm -rf w
check 'a plan' quern curate -q plan.yaml
same 'makes the same' o.jsonl want.plan
for ((i = 0; i < 100; i++)); do cat d.jsonl; done >long.jsonl
rm -rf want.plan w
quern curate -q plan.yaml long.jsonl -o want.plan
rm -rf w o.jsonl
sed -i 's,/plain/0/d,/slow/100/long,' plan.yaml
for i in 1 2 3; do # killed, it goes on where it was
    quern curate -q --checkpoint 1 plan.yaml 2>killed &
    for ((k = 0; k < 100; k++)); do grep -q object w/*.state 2>grep.log && break; sleep .02; done
    kill -9 $!
    wait $! 2>/dev/null
done
: >log
check 'a plan that was killed' quern curate -q plan.yaml
same 'makes the same then' o.jsonl want.plan
has 'and goes on where it was' log 'GET /slow/100/long.jsonl bytes='

# an object that changes after it was read: while the plan is under way, when it is done, and under documents that are kept
cp d.jsonl first.jsonl
cp d.jsonl second.jsonl
rm -rf w o.jsonl
printf 'input: [%s]\noutput: o.jsonl\nwork: w\nstages:\n  - clean\n' "$H/plain/0/first.jsonl?key=secret, $H/silent/0/second.jsonl" >plan.yaml
status 'one of two inputs is read' 3 $impatient quern curate -q plan.yaml
head -n 1 d.jsonl >>first.jsonl
sed -i s,silent,plain, plan.yaml
sed -i s,silent,plain, w/plan
status 'one that has changed since' 2 quern curate -q plan.yaml
has 'is told with both states' err "'$H/plain/0/first.jsonl' has changed since it was read (\"$n-0\", now \""
absent 'nothing is made' o.jsonl
check 'a fresh start' quern curate -q --again plan.yaml
: >log
check 'once more' quern curate -q plan.yaml
equal 'each is asked for' "$(cut -d' ' -f1-2 log | sort | paste -sd' ')" 'GET /plain/0/first.jsonl?key=secret GET /plain/0/second.jsonl'
head -n 1 d.jsonl >>second.jsonl
status 'one that has changed since all was done' 2 quern curate -q plan.yaml
has 'is told' err "'$H/plain/0/second.jsonl' has changed since it was read"
keeping="quern curate -q --keep docs.kept plan.yaml --work w2 --output o2.jsonl"
check 'documents are kept' $keeping
check 'and fit' $keeping --again
gzip -c d.jsonl >first.jsonl
status 'until an input changes' 2 $keeping --work w3
has 'which is told' err "'$H/plain/0/first.jsonl' has changed since it was read"
check 'they are made anew' $keeping --again
cmp o2.jsonl o.jsonl >/dev/null && bad 'of what is there now'

# S3: the same server under a store's endpoint; MODE/N is what it takes for a bucket
export AWS_ENDPOINT_URL=$H/signed AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=none AWS_SHARED_CREDENTIALS_FILE=none
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE
quern clean -q d.jsonl >want
status 'S3 without keys' 3 quern clean -q s3://30000/d.jsonl
has 'is refused' err "cannot read 's3://30000/d.jsonl' at offset 0: the server answers 403 (AccessDenied); no credentials were found"
if quern clean -q s3://30000/d.jsonl 2>&1 | grep -q SHA-256; then finish; fi
: >log
status 'S3 with keys' 0 env AWS_ACCESS_KEY_ID=KEY AWS_SECRET_ACCESS_KEY=word quern clean -q s3://30000/d.jsonl
same 'has the same documents' out want
equal 'every request is signed' "$(grep -vc ' by KEY$' log)" 0
status 'an endpoint by option' 0 env AWS_ENDPOINT_URL_S3="$H/nowhere" AWS_ACCESS_KEY_ID=KEY AWS_SECRET_ACCESS_KEY=word \
    quern clean -q --endpoint-url "$H/signed" s3://30000/d.jsonl
same 'goes before the environment' out want
status 'an endpoint that is no address' 2 quern clean -q --endpoint-url store.example.org s3://30000/d.jsonl
has 'is refused' err "--endpoint-url: 'store.example.org' begins with neither https:// nor http://"
has 'and goes on where it was cut' log 'GET /signed/30000/d.jsonl bytes=30000- by KEY'
: >log
status 'S3 with keys of a machine' 0 env AWS_EC2_METADATA_DISABLED=false AWS_EC2_METADATA_SERVICE_ENDPOINT="$H/" quern clean -q s3://30000/d.jsonl
same 'has the same documents too' out want
equal 'every request is signed' "$(grep -vc ' by LENT$' log)" 0

# written
export AWS_ACCESS_KEY_ID=KEY AWS_SECRET_ACCESS_KEY=word
mkdir kept
rm -f want
quern clean -q d.jsonl -o want
for m in store/000 store/001 lossy/000; do
    export AWS_ENDPOINT_URL=$H/${m%/*}
    for f in made.jsonl made.jsonl.gz made.parquet; do
        quern clean -q d.jsonl -o "kept/$f"
        rm -f "$f"
        check "$m: $f" quern clean -q d.jsonl -o "s3://${m#*/}/$f"
        same 'is what a file would be' "$f" "kept/$f"
    done
done
quern clean -q long.jsonl -o kept/long
while [ "$(stat -c %s kept/long)" -lt 36000000 ]; do cat kept/long kept/long >more.jsonl && quern clean -q more.jsonl -o kept/long; done
for m in store/000 store/002 lossy/000; do
    export AWS_ENDPOINT_URL=$H/${m%/*}
    rm -f parts.jsonl
    check "$m: in parts" quern clean -q kept/long -o "s3://${m#*/}/parts.jsonl"
    same 'is what a file would be' parts.jsonl kept/long
    absent 'no part is left' "$(ls parts.jsonl.part* 2>ls.log)"
done
rm -f parts.jsonl more.jsonl
export AWS_ENDPOINT_URL=$H/store
status 'a store that stays busy' 3 $impatient quern clean -q d.jsonl -o s3://999/made.jsonl
has 'is named' err "cannot write 's3://999/made.jsonl': the store answers 503 (SlowDown)"
status 'a dataset' 2 quern tokenize --tokenizer tok.json --output-prefix s3://000/x d.jsonl
has 'is a file here' err 'is an address; this has to be a file or a folder here'
printf 'input: [d.jsonl]\noutput: s3://000/plan.jsonl\nrejects: s3://000/rejects.jsonl\nstages:\n  - clean\n' >plan.yaml
status 'a plan to an address' 2 quern curate -q plan.yaml
has 'needs a folder of its own' err "the plan's output is an address: work has to name a folder"
echo 'work: w' >>plan.yaml
rm -rf w
check 'which it has' quern curate -q plan.yaml
same 'and makes the same' plan.jsonl want

status 'no key' 2 quern clean -q s3://bucket/
has 'is no object' err 'is no address of an object: s3://BUCKET/KEY'
: >log
printf '{"text":"http://127.0.0.1/ and more","url":"%s/plain/0/d.jsonl","id":"%s/plain/0/d.jsonl"}\n' "$H" "$H" >names.jsonl
check 'an address within data' quern clean -q names.jsonl
equal 'opens no connection' "$(cat log)" ''
finish
