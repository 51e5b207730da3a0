#!/bin/sh
# Installs the Debian packages named that are not there yet; quiet when all are.
missing=
for p in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing" >&2
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq </dev/null >&2 &&
    # shellcheck disable=SC2086 # a list of names
    $sudo apt-get install -y -qq --no-install-recommends $missing </dev/null >&2 && exit 0
echo "could not install:$missing" >&2
exit 1
