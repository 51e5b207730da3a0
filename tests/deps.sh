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
# shellcheck disable=SC2086 # a list of names
if $sudo apt-get update -qq </dev/null >&2 &&
    $sudo apt-get install -y -qq --no-install-recommends $missing </dev/null >&2; then
    rm -f "${B:-build}"/config.mk "${B:-build}"-fuzz/config.mk # look again for the libraries
    exit 0
fi
echo "could not install:$missing" >&2
exit 1
