# shellcheck shell=bash
# For tests that build quern without some libraries, after tests/lib.sh.

# optional: the libraries that may be missing, MPI and the CUDA compiler with them.
optional() {
    MAKEFLAGS='' make -s -C "$ROOT" --no-print-directory B="$T/ask" optional
}
# without LIBRARY...: builds all that can be without them in ./lean, quickly.
without() {
    local l off=()
    for l; do off+=("HAVE_$l=0"); done
    rm -rf lean
    MAKEFLAGS='' make -C "$ROOT" --no-print-directory -j"$(nproc)" B="$T/lean" OPT=-O0 "${off[@]}" all
}
