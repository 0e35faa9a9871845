#!/usr/bin/env bash
# Writes the lock files of requirements/ from pyproject.toml: exact versions with hashes, for every
# platform and Python from 3.11 on. Run by `make lock`.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-uv}
# Local package folders and mirrors of this machine must not end up in the files.
unset PIP_FIND_LINKS PIP_INDEX_URL UV_FIND_LINKS UV_INDEX_URL UV_DEFAULT_INDEX
compile() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --custom-compile-command 'make lock' "$@"
}
extras=(--extra formulas --extra plot --extra report)
compile pyproject.toml "${extras[@]}" -o requirements/runtime.lock
compile requirements/build.in -c requirements/runtime.lock -o requirements/build.lock
compile pyproject.toml "${extras[@]}" --extra dev -c requirements/runtime.lock -c requirements/build.lock \
    -o requirements/dev.lock
