#!/usr/bin/env bash
# Installs the wheel without any extra into an environment of its own and uses it there: what needs an extra
# must name it, and all else must work. Run by `make test-minimal`; the wheel is in dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/tmp}/loadstone-minimal-XXXXXX")
trap 'rm -rf "$folder"' EXIT
# The versions that all tests are run with, without hashes: pip takes none for a wheel that was just built.
sed -nE 's/^([a-z0-9-]+==[^ ]+)( ;.*)? \\$/\1\2/p' requirements/runtime.lock >"$folder/versions"
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$folder/versions" dist/loadstone-*.whl
trace=$PWD/examples/loop0.parquet
# Elsewhere, so that nothing of the source tree is imported.
cd "$folder"
loadstone=$folder/venv/bin/loadstone

needs() { # extra, command...: must fail and name the extra
    local extra=$1 said
    shift
    if said=$("$loadstone" "$@" 2>&1); then
        echo "without loadstone[$extra] this should have failed: $*" >&2
        return 1
    fi
    grep -qF "loadstone[$extra]" <<<"$said" || { printf '%s\n' "$said" "$* does not name $extra" >&2; return 1; }
}

for module in jinja2 matplotlib plotly scipy; do
    if "$folder/venv/bin/python" -c "import $module" 2>/dev/null; then
        echo "$module is installed without its extra" >&2
        exit 1
    fi
done
for verb in "" trace model run replay evaluate verify content dataset report; do
    # shellcheck disable=SC2086
    "$loadstone" $verb --help >/dev/null
done
"$loadstone" trace describe "$trace" >/dev/null
"$loadstone" model fit "$trace" -o m.mdh
"$loadstone" -q run m.mdh --on null: --pace max --out b >/dev/null
"$loadstone" -q run varmail --on tree -D nfiles=50 --duration 1s >/dev/null
"$folder/venv/bin/python" -c "
import loadstone
bundle = loadstone.run(loadstone.job('randread', 'null:', loadstone.RunOptions(requests=9, size='1m')))
assert bundle.summary['requests'] == 9 and '<table>' in bundle._repr_html_()
"
needs plot trace describe "$trace" --plot p.png
needs report report b -o r.html
needs formulas evaluate "$trace" --on null: --pace max
echo "a minimal installation works, and names the extras it lacks"
