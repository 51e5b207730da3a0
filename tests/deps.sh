#!/bin/sh
# Installs the Debian packages named that are not there yet; quiet when all are.
missing=
for p in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
sudo=
if [ "$(id -u)" != 0 ]; then
    sudo=$(command -v sudo) || { echo "missing, to be installed by root: apt-get install$missing" >&2; exit 1; }
fi
export DEBIAN_FRONTEND=noninteractive
B=${B:-build}
# shellcheck disable=SC2086 # a list of names
sh tests/step.sh "installing:$missing" "$B/apt.log" $sudo sh -c '
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' apt $missing || exit 1
rm -f "$B"/config.mk "$B"-fuzz/config.mk # look again for the libraries
