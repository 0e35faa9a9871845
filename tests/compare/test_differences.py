"""What differs between arms, and what of it forbids to compare them."""

from __future__ import annotations

import pytest
from made import arm, host

from loadstone import Error
from loadstone.compare import compare
from loadstone.compare.differences import differences, facts_of, load_of, mixed

TEN = [100 + one / 10 for one in range(10)]
OTHER = {"targets__t0__path": "/mnt/b/tree", "targets__t0__mount__point": "/mnt/b"}


def pair(first, second, **more):
    return [
        arm("a", TEN, environment=first, **more.get("a", {})),
        arm("b", TEN, environment=second, **more.get("b", {})),
    ]


def names(found, refused=None):
    return [one.name for one in found if refused is None or one.refused is refused]


@pytest.mark.parametrize(
    ("changes", "told", "refused"),
    [
        ({}, [], []),
        ({"kernel": "Linux 6.2"}, [], ["kernel"]),
        ({**OTHER, "targets__t0__mount__type": "xfs"}, ["target", "file system", "mount point"], []),
        # The same mount with other options was mounted otherwise in between.
        ({"targets__t0__mount__options": "rw,sync"}, [], ["mount options"]),
        ({**OTHER, "targets__t0__mount__options": "rw,sync"}, ["target", "mount point", "mount options"], []),
        ({"targets__t0__device__settings__queue": {"scheduler": "bfq"}}, ["queue scheduler"], []),
        ({"versions": {"loadstone": "2", "python": "3"}}, ["version of loadstone"], []),
        ({"targets__t0__geometry": {"block size": 4096}}, ["geometry block size"], []),
        ({"cpu": None, "targets": [], "versions": 5}, None, []),
    ],
)
def test_what_differs_is_told_or_refused(changes, told, refused):
    arms = pair(host(), host(**changes))
    found = differences(arms)
    assert names(found, True) == refused
    if told is not None:
        assert names(found, False) == told
    if refused:
        with pytest.raises(Error, match="accept_differences"):
            compare(arms)
        assert compare(arms, accept_differences=True).differences == found
    else:
        compare(arms)


def test_what_is_a_factor_may_differ():
    kernels = {name: {"factors": {"kernel": name}} for name in "ab"}
    found = compare(pair(host(), host(kernel="Linux 6.2"), **kernels))
    assert found.differences[0].name == "factor kernel" and not any(one.refused for one in found.differences)
    loads = {name: {"factors": {"threads": name}, "load": {"depth": name}} for name in "ab"}
    assert not any(one.refused for one in compare(pair(host(), host(), **loads)).differences)
    unnamed = {name: {"load": {"depth": name}} for name in "ab"}
    with pytest.raises(Error, match=r"load: depth \(a \| b\)"):
        compare(pair(host(), host(), **unnamed))


def test_a_load_is_the_same_wherever_it_runs():
    def plan(path, **more):
        return {
            "seed": len(path),
            "own": [path],
            "targets": [{"id": "t0", "kind": "file", "path": path, "size": 9, "prepare": "fill"}],
            "artefacts": [{"id": "m", "kind": "model", "path": path, "digest": "d"}],
            "sets": [{"id": "s", "target": "t0", "path": "spool"}],
            "steps": [{"step": "run", "at": f"{path}/x", **more}],
        }

    assert load_of([plan("/mnt/a")]) == load_of([plan("/mnt/ext4/tree")])
    assert load_of([plan("/mnt/a")]) != load_of([plan("/mnt/a", duration_ns=5)])
    other = plan("/mnt/a")
    other["sets"][0]["path"] = "mail"
    assert load_of([other]) != load_of([plan("/mnt/a")])
    assert len(load_of([plan("/a"), plan("/a")])) == 2


def test_runs_of_one_arm_must_be_alike():
    found = mixed([host(), host(kernel="Linux 6.2"), host(targets__t0__path="/mnt/a/t2")], [1, 1, 1])
    assert found == {"kernel": ["Linux 6.1", "Linux 6.2"]}
    arms = pair(host(), host(), a={"mixed": found})
    with pytest.raises(Error, match="between runs of a"):
        compare(arms)
    assert "between runs of a" in compare(arms, accept_differences=True).text()
    assert mixed([host(), host()], [{"x": 1}, {"x": 2}]) == {"load: x": ["1", "2"]}


def test_what_a_host_does_not_tell_is_left_out():
    assert facts_of({}) == {}
    assert facts_of(host(targets__t0__mount=None, cpu=None))["kernel"] == "Linux 6.1"
