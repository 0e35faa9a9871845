"""What differs between arms besides their figures: the host, its settings, the targets, the load itself.

Targets and file systems are what people compare, so what differs there is told. A kernel or a load that
differs, and was not meant to, says that figures may differ for another reason than the one looked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone import Error
from loadstone._units import size
from loadstone.compare.arm import Arm

KERNEL, MOUNT, LOAD = "kernel", "mount options", "load"

_SHOWN = 12
"""Parts of a load that are told apart by name; of more their number is told."""


@dataclass(frozen=True)
class Difference:
    """Something that is not the same for all arms."""

    name: str
    """Such as ``kernel``, ``file system`` or ``load: workers.0.depth``."""
    values: tuple[str, ...]
    """Of each arm, in their order; empty where it is not known."""
    refused: bool = False
    """Whether arms that differ in it should not be compared, unless that was meant."""
    within: str | None = None
    """The arm whose own runs differ in it; ``values`` are theirs then."""


def differences(arms: Sequence[Arm]) -> list[Difference]:
    """What differs, in the order in which it matters; first what forbids a comparison."""
    factors = {name for arm in arms for name in arm.factors}
    meant = {name for name in factors if len({arm.factors.get(name) for arm in arms}) > 1}
    found = [
        Difference(f"factor {name}", tuple(arm.factors.get(name, "") for arm in arms))
        for name in sorted(meant)
    ]
    facts = [facts_of(arm.environment) for arm in arms]
    for name in dict.fromkeys(name for one in facts for name in one):
        values = tuple(one.get(name, "") for one in facts)
        if len(set(values)) > 1:
            found.append(Difference(name, values, _forbids(name, facts, meant)))
    found += _loads(arms, bool(meant))
    for arm in arms:
        for name, several in arm.mixed.items():
            what = f"{name}, between runs of {arm.name}"
            forbids = name.partition(":")[0] in (KERNEL, LOAD, "file system")
            found.append(Difference(what, tuple(several), forbids, arm.name))
    return sorted(found, key=lambda one: not one.refused)


def refuse(found: Sequence[Difference], arms: Sequence[Arm]) -> None:
    """Raises ``Error`` where arms differ in what forbids a comparison."""
    bad = [one for one in found if one.refused]
    if not bad:
        return
    named = [
        f"{one.name} ({' | '.join(_short(value) or 'not known' for value in one.values)})" for one in bad[:4]
    ]
    more = f" and {len(bad) - 4} more" if len(bad) > 4 else ""
    raise Error(
        f"{', '.join(arm.name for arm in arms)}: differ in {', '.join(named)}{more}, so figures may differ "
        "for that reason; compare runs that are alike in it, or allow it with `accept_differences` if that "
        "is what you compare"
    )


def _short(text: str) -> str:
    return (text if len(text) <= 60 else f"{text[:57]}...") or "not there"


def _forbids(name: str, facts: Sequence[Mapping[str, str]], meant: set[str]) -> bool:
    if name in (KERNEL, "machine"):
        return not any("kernel" in one.lower() for one in meant)
    if name.endswith(MOUNT):
        # Of other file systems or mounts they belong to what is compared; the same one was mounted otherwise.
        before = name.removesuffix(MOUNT)
        same = all(len({one.get(before + of) for one in facts}) == 1 for of in ("mount point", "file system"))
        return same and not any("mount" in one.lower() for one in meant)
    return False


def _loads(arms: Sequence[Arm], meant: bool) -> list[Difference]:
    """What differs between the loads."""
    if any(arm.load is None for arm in arms) or all(arm.load == arms[0].load for arm in arms):
        return []
    parts = [dict(_flat(arm.load)) for arm in arms]
    names = sorted({name for one in parts for name in one if len({other.get(name) for other in parts}) > 1})
    found = [
        Difference(f"{LOAD}: {name}", tuple(one.get(name, "") for one in parts), not meant)
        for name in names[:_SHOWN]
    ]
    if len(names) > _SHOWN:
        found.append(Difference(f"{LOAD}: {len(names) - _SHOWN} more parts", ("",) * len(arms), not meant))
    return found


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every part of plain data by its path."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple) and value:
        for at, inner in enumerate(value):
            yield from _flat(inner, f"{name}.{at}" if name else str(at))
    else:
        yield name, str(value)


_PLACES = (
    *("path", "prepare", "allow_destroy", "made_before", "within", "own", "log", "seed", "state", "from"),
    *("by_thread", "sparse"),
)
"""Keys of a plan that say where and how it runs, and not what."""


def load_of(plans: Sequence[Mapping[str, Any]]) -> Any:
    """What plans do, as plain data: the same for runs of one load on different targets."""
    found = []
    for plan in plans:
        places = [str(one["path"]) for one in plan.get("targets", ()) if one.get("path")]
        found.append(_without(plan, sorted(places, key=len, reverse=True)))
    return found[0] if len(found) == 1 else found


def _without(value: Any, places: Sequence[str], inside: str = "") -> Any:
    if isinstance(value, Mapping):
        # The kind of a target, such as file or device, belongs to what is compared.
        left = {key: inner for key, inner in value.items() if not _is_place(key, inside)}
        return {key: _without(inner, places, key if key != "id" else inside) for key, inner in left.items()}
    if isinstance(value, list | tuple):
        return [_without(inner, places, inside) for inner in value]
    if isinstance(value, str):
        for place in places:
            if value == place or value.startswith(f"{place}/"):
                return value[len(place) :]
    return value


def _is_place(key: str, inside: str) -> bool:
    if inside == "sets":
        return False
    return key in _PLACES or (key == "kind" and inside == "targets")


def facts_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """What is known of a host, name and text; without what changes from one moment to the next."""
    found: dict[str, str] = {}

    def tell(name: str, value: Any) -> None:
        if value not in (None, "", {}, []):
            found[name] = str(value)

    get = _Getter(environment)
    tell(KERNEL, environment.get("kernel"))
    tell("machine", environment.get("machine"))
    tell("kernel command line", environment.get("cmdline"))
    tell("host", environment.get("host"))
    tell("CPU", get("cpu", "model"))
    tell("CPUs", get("cpu", "count"))
    tell("CPUs that may be used", get("cpu", "usable"))
    tell("governor", get("cpu", "governor"))
    for name, value in _items(get("cpu", "mitigations")):
        tell(f"mitigation {name}", value)
    if isinstance(memory := get("memory", "MemTotal"), int):
        tell("memory", size(memory))
    tell("clock source", environment.get("clock_source"))
    for name, value in _items(environment.get("dirty")):
        tell(f"vm.{name}", value)
    for name, value in _items(environment.get("versions")):
        tell(f"version of {name}", value)
    targets = _items(environment.get("targets"))
    for name, target in targets:
        before = f"{name} " if len(targets) > 1 else ""
        for what, value in _of_target(_Getter(target)):
            tell(before + what, value)
    return found


def _of_target(get: _Getter) -> Iterator[tuple[str, Any]]:
    yield "target", get("path")
    yield "file system", get("mount", "type")
    yield "mount point", get("mount", "point")
    options = [get("mount", "options"), get("mount", "super_options")]
    yield MOUNT, ",".join(dict.fromkeys(itertools.chain(*(str(one).split(",") for one in options if one))))
    for name, value in _items(get("geometry")):
        yield f"geometry {name}", value
    yield "device", get("device", "name")
    yield "device model", get("device", "settings", "model")
    yield "device firmware", get("device", "settings", "firmware")
    bytes_ = get("device", "settings", "size_bytes")
    yield "device size", size(bytes_) if isinstance(bytes_, int) else None
    for name, value in _items(get("device", "settings", "queue")):
        yield f"queue {name}", value


class _Getter:
    """Looks up what may be missing, or be something else, in a stranger's file."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __call__(self, *keys: str) -> Any:
        found = self.of
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found


def _items(value: Any) -> list[tuple[str, Any]]:
    return [(str(key), inner) for key, inner in value.items()] if isinstance(value, Mapping) else []


def mixed(environments: Sequence[Mapping[str, Any]], loads: Sequence[Any]) -> dict[str, list[str]]:
    """What differs between runs of one arm."""
    facts = [facts_of(one) for one in environments]
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for one in facts for name in one):
        values = list(dict.fromkeys(one.get(name, "") for one in facts))
        # Another file of the same file system says nothing.
        if len(values) > 1 and name != "target":
            found[name] = values
    if any(load != loads[0] for load in loads[1:]):
        parts = [dict(_flat(load)) for load in loads]
        names = sorted({name for one in parts for name in one if len({of.get(name) for of in parts}) > 1})
        for name in names[:_SHOWN]:
            found[f"{LOAD}: {name}"] = list(dict.fromkeys(one.get(name, "") for one in parts))
    return found
