#!/usr/bin/env bash
# Fuzzes every parser for some seconds each, one at least: scripts/fuzz.sh [seconds] [target...]
# Works on stable Rust: coverage-guided, without a sanitizer (-s none). Finds are left in
# fuzz/artifacts; make each a seed in fuzz/seeds and a test.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
# Of 0 the fuzzer makes no limit.
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "scripts/fuzz.sh $seconds: name whole seconds, 1 at least" >&2
    exit 2
fi
version=0.13.2
tools=$PWD/.cache/cargo-fuzz
if ! "$tools/bin/cargo-fuzz" --version 2>/dev/null | grep -qF "$version"; then
    cargo install --quiet --locked --root "$tools" --version "$version" cargo-fuzz
fi
export PATH="$tools/bin:$PATH"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
failed=()
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    mkdir -p "fuzz/corpus/$target"
    seeds=()
    [ -d "fuzz/seeds/$target" ] && seeds=("fuzz/seeds/$target")
    cargo fuzz run -s none "$target" "fuzz/corpus/$target" "${seeds[@]}" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 ||
        failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "found something: ${failed[*]}; the inputs are in fuzz/artifacts" >&2
    exit 1
fi
echo "${#targets[@]} targets, nothing found"
