# shellcheck shell=bash
# Selection from and extraction of a crawl of 120 archives, made of the pages and archives in $SHARED/data by tests/record/crawl.py: what
# tests/cli/crawl.sh holds of a small one.  Needs the environment that `ONLY=crawl make record` makes.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
python=${RECORD:-${XDG_CACHE_HOME:-$HOME/.cache}/quern-record}/crawl/bin/python
if [ ! -x "$python" ]; then
    skip 'a crawl of 120 archives' "no $python (ONLY=crawl make record makes it)"
    finish
fi
check 'a crawl of 120 archives' "$python" "$ROOT/tests/record/crawl.py" "$SHARED" made 120
equal 'has them' "$(find made -name '*.warc.gz' | wc -l)" 120
CRAWL=$T/made bash "$ROOT/tests/cli/crawl.sh" || not_ok=1
finish
