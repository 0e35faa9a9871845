#!/usr/bin/env bash
# Installs the programs the tests call: from Debian's packages when root and apt-get are there,
# otherwise it names what is missing. Tests that miss one skip and say so; with CI=true they fail.
set -u
# program=package
tools=(
    fio=fio                      # an independent load, and the peer of the benchmarks
    blkparse=blktrace            # a second opinion on binary block traces
    losetup=mount                # loop devices
    mkfs.ext4=e2fsprogs
    mkfs.xfs=xfsprogs
    mkfs.btrfs=btrfs-progs
    git=git                      # commits as snapshots of a dataset
    strace=strace                # records what a program does to files
    xz=xz-utils
    zstd=zstd
    bzip2=bzip2
    sysbench=sysbench            # these four: output that studies read
    bonnie++=bonnie++
    pgbench=postgresql
    time=time
    chromium=chromium            # opens the report as a reader would
)
PATH=$PATH:/usr/sbin:/sbin
packages=()
for entry in "${tools[@]}"; do
    command -v "${entry%%=*}" >/dev/null || packages+=("${entry#*=}")
done
[ ${#packages[@]} -eq 0 ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the tests: ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${packages[@]}"; } \
        >/dev/null </dev/null && exit 0
    echo "apt-get could not install them" >&2
fi
echo "not installed, so the tests that need them are skipped: ${packages[*]}" >&2
echo "    Debian, Ubuntu: sudo apt-get install ${packages[*]}" >&2
exit 0
