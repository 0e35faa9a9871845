#!/usr/bin/env bash
# Says whether this machine has what the build needs, and what to install where it has not.
# Prints nothing and exits 0 when all is there. PYTHON names the interpreter to use.
set -u
python=${PYTHON:-python3}
min_python=3.11
min_rust=1.89
missing=0

need() { # what is wrong, how to mend it
    printf 'missing: %s\n    %s\n' "$1" "$2" >&2
    missing=1
}

at_least() { # version, minimum: both dotted numbers
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

command -v git >/dev/null || need "git" "Debian, Ubuntu: apt-get install git"
command -v "${CC:-cc}" >/dev/null || need "a C compiler (${CC:-cc})" "Debian, Ubuntu: apt-get install gcc libc6-dev"

if ! command -v "$python" >/dev/null; then
    need "Python $min_python or newer ($python)" "Debian, Ubuntu: apt-get install python3 python3-venv"
else
    version=$("$python" -c 'import platform; print(platform.python_version())')
    if ! at_least "$version" "$min_python"; then
        need "Python $min_python or newer; $python is $version" "name a newer one: make PYTHON=python3.12 ..."
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        need "Python's venv module for $python" "Debian, Ubuntu: apt-get install python3-venv"
    fi
fi

if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    need "Rust $min_rust or newer (rustc and cargo)" \
        "install rustup (https://rustup.rs) and open a new shell, or add ~/.cargo/bin to PATH"
else
    version=$(rustc --version | cut -d' ' -f2)
    at_least "${version%%-*}" "$min_rust" ||
        need "Rust $min_rust or newer; rustc is $version" "rustup update stable"
fi
[ "$(uname -s)" = Linux ] || need "Linux; this is $(uname -s)" "the engine and the observers use Linux interfaces"
exit $missing
