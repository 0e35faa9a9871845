"""A picture of what :func:`describe` found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from loadstone import _pictures
from loadstone._files import aside, refuse
from loadstone.errors import Error
from loadstone.trace.options import Path

# Okabe and Ito's palette, told apart by colour-blind readers too.
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
_BY_OP = {"read": _BLUE, "write": _ORANGE, "flush": _GREEN, "discard": "#CC79A7"}

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def _bytes(value: float, _: Any = None) -> str:
    sign, value, unit = ("-" if value < 0 else ""), abs(value), 0
    while value >= 1024 and unit < len(_BYTES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{sign}{value:.3g} {_BYTES[unit]}"


def _seconds(value: float, _: Any = None) -> str:
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if value < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def _steps(axes: Any, cdf: list[list[float]], scale: float, colour: str, label: str | None) -> None:
    """A cumulative distribution; values of zero stand at the left edge of a logarithmic axis."""
    xs = [cdf[0][0] * scale, *(value * scale for value, _ in cdf)]
    ys = [0.0, *(share for _, share in cdf)]
    axes.step(xs, ys, where="post", color=colour, label=label, linewidth=1.6)


def _ticks(axes: Any, text: Callable[[float, Any], str]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(text))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _decades(axes: Any, values: list[float], base: float) -> None:
    """A logarithmic axis over positive values with few enough ticks to read."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log", base=base)
    axes.xaxis.set_major_locator(LogLocator(base=base, numticks=6))
    positive = [v for v in values if v > 0]
    if positive and min(positive) == max(positive):
        axes.set_xlim(positive[0] / 2, positive[0] * 2)


def _title(axes: Any, text: str) -> None:
    axes.set_title(text, fontsize=10)


def _nothing(axes: Any, text: str) -> None:
    axes.set_ylabel("")
    axes.text(0.5, 0.5, text, ha="center", va="center", color=_GREY, transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def _rate(axes: Any, found: dict[str, Any]) -> None:
    rate = found["rate"]
    width = rate["interval_ns"] / 1e9
    times = [i * width for i in range(len(rate["requests"]))]
    # Neighbouring intervals are drawn as one where there are more than the width can show.
    group = max(1, len(times) // 400)

    def per_second(key: str) -> list[float]:
        return [sum(rate[key][i : i + group]) / (group * width) for i in range(0, len(times), group)]

    for key, colour, label in (("read_bytes", _BLUE, "read"), ("write_bytes", _ORANGE, "written")):
        values = [value / 2**20 for value in per_second(key)]
        axes.plot(times[::group], values, color=colour, label=f"MiB/s {label}", linewidth=0.9)
    axes.set_ylabel("MiB/s", fontsize=8)
    axes.set_xlabel("time (s)", fontsize=8)
    other = axes.twinx()
    counts = per_second("requests")
    other.fill_between(times[::group], counts, color=_GREY, alpha=0.35, linewidth=0, label="requests/s")
    other.set_ylabel("requests/s", fontsize=8)
    other.tick_params(labelsize=8)
    other.set_ylim(bottom=0)
    axes.set_ylim(bottom=0)
    axes.set_zorder(other.get_zorder() + 1)
    axes.patch.set_visible(False)
    handles = [h for a in (axes, other) for h in a.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.17), fontsize=7, ncols=3)
    _title(axes, f"activity (each point {_seconds(group * width)})")


def _by_op(axes: Any, found: dict[str, Any], key: str, scale: float, base: float) -> bool:
    values: list[float] = []
    for op in found["ops"]:
        if op[key] is not None:
            colour = _BY_OP.get(op["op"], _GREY)
            _steps(axes, op[key]["cdf"], scale, colour, op["op"])
            values += [value * scale for value, _ in op[key]["cdf"]]
    if not values:
        return False
    _decades(axes, values, base)
    axes.set_ylim(0, 1.02)
    axes.legend(loc="lower right", fontsize=7)
    return True


def _jump(axes: Any, jump: dict[str, Any]) -> None:
    """Both directions of the jumps on one symmetric logarithmic axis."""
    total = jump["count"]
    if not total:
        return _nothing(axes, "no offsets")
    points: list[tuple[float, float]] = []
    back = jump["backward"]
    below = back["count"] / total if back else 0.0
    if back:
        # P(jump <= -x) is the share of jumps back that are at least x long.
        before = 0.0
        for value, share in back["cdf"]:
            points.append((-value, below * (1 - before)))
            before = share
        points.reverse()
    points.append((0, below + jump["sequential_share"]))
    ahead = jump["forward"]
    if ahead:
        start = below + jump["sequential_share"]
        points += [(v, start + share * ahead["count"] / total) for v, share in ahead["cdf"]]
    axes.step([x for x, _ in points], [y for _, y in points], where="post", color=_BLUE, linewidth=1.6)
    axes.set_xscale("symlog", base=2, linthresh=4096)
    largest = max(abs(x) for x, _ in points)
    top = 12
    while 2**top < largest:
        top += 1
    step = max(1, (top - 12 + 2) // 3)
    exponents = range(top, 12, -step) if top > 12 else [12]
    axes.set_xticks([-(2.0**e) for e in exponents] + [0] + [2.0**e for e in reversed(exponents)])
    axes.minorticks_off()
    _ticks(axes, _bytes)
    axes.tick_params(axis="x", labelrotation=35)
    axes.set_ylim(0, 1.02)
    _title(axes, f"jump from the request before ({jump['sequential_share']:.0%} sequential)")


def figure(found: dict[str, Any], title: str) -> Any:
    """A matplotlib figure of a description."""
    _pictures.ready()
    from matplotlib.figure import Figure

    picture = Figure(figsize=(12, 7), layout="constrained")
    axes = picture.subplots(2, 3)
    for each in axes.flat:
        each.grid(alpha=0.25)
        each.tick_params(labelsize=8)
        each.set_ylabel("share of requests", fontsize=8)
    _rate(axes[0, 0], found)
    _title(axes[0, 1], "request size")
    if _by_op(axes[0, 1], found, "size", 1, 2):
        _ticks(axes[0, 1], _bytes)
    else:
        _nothing(axes[0, 1], "no sizes")
    gaps = found["interarrival_ns"]
    _title(axes[0, 2], "time between requests")
    if gaps:
        _steps(axes[0, 2], [[max(v, 1), s] for v, s in gaps["cdf"]], 1e-9, _BLUE, None)
        _decades(axes[0, 2], [max(v, 1) * 1e-9 for v, _ in gaps["cdf"]], 10)
        _ticks(axes[0, 2], _seconds)
        axes[0, 2].set_ylim(0, 1.02)
    else:
        _nothing(axes[0, 2], "one request")
    _jump(axes[1, 0], found["jump"])
    _title(axes[1, 1], "latency")
    if _by_op(axes[1, 1], found, "latency_ns", 1e-9, 10):
        _ticks(axes[1, 1], _seconds)
    else:
        _nothing(axes[1, 1], "the trace has no latencies")
    popularity = found["popularity"]
    _title(axes[1, 2], "popularity of regions")
    if popularity:
        xs, ys = [[0.0, *(p[i] for p in popularity["curve"])] for i in (0, 1)]
        axes[1, 2].plot(xs, ys, color=_BLUE, linewidth=1.6)
        axes[1, 2].plot([0, 1], [0, 1], color=_GREY, linestyle=":", linewidth=1)
        axes[1, 2].set_xlabel(
            f"share of the {popularity['regions']:,} touched regions of {_bytes(popularity['region_bytes'])}",
            fontsize=8,
        )
        axes[1, 2].set_xlim(0, 1)
        axes[1, 2].set_ylim(0, 1.02)
    else:
        _nothing(axes[1, 2], "no offsets")
    span = _seconds(found["span_ns"] / 1e9)
    picture.suptitle(f"{_pictures.plain(title)}: {found['requests']:,} requests in {span}")
    return picture


def plot(found: dict[str, Any], out: Path, *, title: str = "trace", force: bool = False) -> None:
    """Draws a description into a PNG, SVG or PDF file, as its ending says.

    ``found`` is what :func:`describe` returns. Raises ``Error`` where the ending is another, the file exists
    and ``force`` is not set, or matplotlib is not installed.
    """
    target = FilePath(out)
    ending = target.suffix.lower().lstrip(".")
    if ending not in ("png", "svg", "pdf"):
        raise Error(f"{target}: a picture is a .png, .svg or .pdf file; choose one of these endings")
    refuse(target, force)
    _pictures.ready()
    import matplotlib

    # No dates and no random ids, so that the same trace gives the same file.
    dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[ending]
    with (
        aside(target, force) as hidden,
        matplotlib.rc_context({"svg.hashsalt": "loadstone", "svg.fonttype": "none"}),
    ):
        figure(found, title).savefig(hidden, format=ending, dpi=120, metadata=dates)
