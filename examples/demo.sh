#!/usr/bin/env bash
# The main job on a real trace, as one would do it by hand: look at the trace, fit a model, replay
# the trace and run the model in turn on a file made for it, and write the report.
# The trace: 27.8 s of an ext4 on a loop device under cp, tar, gzip, SQLite and fio (our own capture).
set -euo pipefail
cd "$(dirname "$0")/.."
loadstone=${LOADSTONE:-.venv/bin/loadstone}
out=${DEMO_OUT:-demo-out}
pace=${DEMO_PACE:-x4}
begun=$SECONDS

# Only what this script made before is removed: then its mark is there.
mark=$out/.made-by-the-demo
mkdir -p "$out"
if [[ ! -e $mark && -n $(ls -A "$out") ]]; then
    printf 'error: %s holds files that the demo did not make; name a new directory with DEMO_OUT\n' "$out" >&2
    exit 1
fi
touch "$mark"
rm -rf "$out"/{loop0.mdh,evaluation,target.img,report.html}

run() {
    printf '\n$ loadstone %s\n' "$*"
    "$loadstone" "$@"
}

# Past the page cache, so that the device answers; not every file system can.
direct=--direct
dd if=/dev/zero of="$out/.probe" bs=4096 count=1 oflag=direct status=none 2>/dev/null || direct=
rm -f "$out/.probe"

run trace describe examples/loop0.parquet
run model fit examples/loop0.parquet -o "$out/loop0.mdh"
run model show "$out/loop0.mdh"
run evaluate examples/loop0.parquet --model "$out/loop0.mdh" --on "$out/target.img" --size 256m \
    $direct --offsets wrap --pace "$pace" --repeat 3 --out "$out/evaluation"
run report "$out/evaluation" -o "$out/report.html"
rm -f "$out/target.img"

printf '\nDone in %d s. Open the report in a browser:\n  %s\n' $((SECONDS - begun)) "$(realpath "$out/report.html")"
