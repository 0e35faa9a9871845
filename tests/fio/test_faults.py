"""All that is wrong in a job file is told at once, and nothing that only follows from it."""

from __future__ import annotations

import pytest
from tests.fio.test_lower import lowered

from loadstone.fio import FioError

FAULTS = """\
[global]
size=1q
nonsense=3
[first]
ioengine=libaoi
latency_target=10m
rw=randread
[second]
rw=reed
fsync=1
iodepth=0
[third
sync=7
[fourth]
bssplit=4k/60:8k/60
bs
zonemode=zoned
zonesize=4k
"""
"""Ten lines that are wrong, each in its own way; those beside them are right."""


@pytest.mark.parametrize("without", [[], ["nonsense=3", "[third", "bs"]])
def test_all_that_is_wrong_in_a_file_is_told_at_once(without):
    text = "".join(f"{line}\n" for line in FAULTS.splitlines() if line not in without)
    with pytest.raises(FioError) as caught:
        lowered(text)
    expected = {
        "size=1q": "'1q' is no size; write it like 4096, 4k or 1g",
        "nonsense=3": "nonsense is no key of a job; remove it",
        "ioengine=libaoi": "must be one of: sync, psync",
        "rw=reed": "must be one of: read, write",
        "fsync=1": "fio knows it, Loadstone does not",
        "iodepth=0": "0 must be from 1 to 4096",
        "[third": "a section is a name in brackets alone on its line",
        "bssplit=4k/60:8k/60": "the percentages add up to 120, and not to 100",
        "bs": "needs a value; write bs=...",
        "zonemode=zoned": "zoned devices are not known here; write strided",
    }
    if "[third" in without:
        # Then it belongs to the section before, whose name can be read.
        expected["sync=7"] = "must be one of: none, 0, sync, 1, dsync"
    lines = text.splitlines()
    wanted = sorted(
        (lines.index(line) + 1, line, what) for line, what in expected.items() if line not in without
    )
    said = str(caught.value).splitlines()
    assert len(said) == len(wanted), caught.value
    for told, (number, line, what) in zip(said, wanted, strict=True):
        assert told.startswith(f"x.fio:{number}: {line}: ") and what in told, told


def test_what_follows_from_a_wrong_line_is_not_told():
    """The rest of a job is judged as if the line had been right."""
    for text, line in [
        ("[a]\nsize=1m\nioengine=libaoi\niodepth=8\ncmdprio_percentage=10\n", 3),
        ("[a]\nsize=1m\nrw=wirte\nfill_device=1\nzonemode=strided\nzonesize=4k\n", 3),
        ("[a]\nioengine=cpuio\ncpuload=200\nruntime=1\n", 3),
        ("[a]\nsize=1m\nrw=${NOPE}\nfill_device=1\n", 3),
        ("[a]\nsize=1m\nzonemode=zoned\nzonesize=4k\n", 3),
        ("[a]\nsize=1m\nzonemode=zbd\nzonesize=4k\nrw=randread\n", 3),
    ]:
        with pytest.raises(FioError) as caught:
            lowered(text)
        assert [told.split(": ")[0] for told in str(caught.value).splitlines()] == [f"x.fio:{line}"], text
