#!/usr/bin/env bash
# The package in a clean, minimal Debian 12 (debootstrap, as root): apt installs it with what it depends on, README's
# pipe runs, and removing it leaves nothing.  CHROOT=FOLDER keeps the chroot for the next time.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"
deb=$(find "$ROOT/$B" -maxdepth 1 -name 'quern_*.deb' | sort | tail -n 1)
C=${CHROOT:-$T/chroot}
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    bad "debootstrap, and root, are here"
    finish
fi
[ -d "$C/etc" ] || check "a minimal Debian 12" debootstrap --variant=minbase bookworm "$C" "${MIRROR:-http://deb.debian.org/debian}"
check "make deb made a package" test -f "$deb"
cp /etc/resolv.conf "$C/etc/resolv.conf"
cp "$deb" "$C/tmp/quern.deb"
run() { chroot "$C" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
files() { (cd "$C" && find usr/bin usr/include usr/lib usr/share/man usr/share/bash-completion usr/share/zsh -name '*quern*' 2>/dev/null | sort); }
check "apt knows its packages" run apt-get update -qq
check "apt installs it" run apt-get install -y -qq --no-install-recommends /tmp/quern.deb
check "doctor says what is there" run quern doctor
install -d "$C/tmp/try"
page='<html lang=en><title>A page</title><p>The mill of the village stands by the river and grinds the grain of all who live there.</p>'
http=$(printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n%s' "$page")
printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://example.org/\r\n%s\r\n%s\r\n\r\n%s\r\n\r\n' \
    'Content-Type: application/http; msgtype=response' "Content-Length: $(printf %s "$http" | wc -c)" "$http" |
    gzip >"$C/tmp/try/crawl.warc.gz"
{
    echo 'set -e; cd /tmp/try'
    awk 'index($0, "    set -o pipefail") == 1 { on = 1 } on && $0 == "" { exit } on { print substr($0, 5) }' "$ROOT/README.md"
} >"$C/tmp/try/pipe.sh"
check "README's pipe runs" run bash /tmp/try/pipe.sh
check "it wrote its file" test -f "$C/tmp/try/docs.jsonl.zst"
has "with its man page" <(files) man1/quern-filter.1
cp "${deb%/*}"/libquern0_*.deb "${deb%/*}"/libquern-dev_*.deb "${deb%/*}"/python3-quern_*.deb "$C/tmp"
check "apt installs libquern" run sh -c 'apt-get install -y -qq --no-install-recommends /tmp/libquern*.deb /tmp/python3-quern*.deb'
check "Python has it" run python3 -c 'import quern; quern.version()'
check "its header is there, and the name for the linker" test -f "$C/usr/include/quern.h" -a -h "$C/usr/lib/$(uname -m)-linux-gnu/libquern.so"
check "apt removes it" run apt-get purge -y -qq quern libquern0 libquern-dev python3-quern
equal "nothing is left of it" "$(files)" ""
finish
