"""How far the model's load is from the replay: the table of ``evaluate`` and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.report.figure import Figure, Panel, axis, cell_text, fade, layout, plotted
from loadstone.report.page import Pairs, Row, Table

# RMS and maximum that a parameter should stay within, percent.
RMS_TARGET = 10.0
MAX_TARGET = 15.0
# The whole run is the same within this, percent.
MARGIN = 5.0

_TONES = {"faithful": ("good", "✓ "), "not faithful": ("bad", "✗ "), "undecided": ("warn", "? ")}

Findings = Sequence[Mapping[str, Any]]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{float(f'{100 * value:.3g}'):,g} %"


def _title(finding: Mapping[str, Any]) -> str:
    title = str(finding["title"])
    return title[:1].upper() + title[1:]


def table(findings: Findings) -> Table:
    """One row per response parameter: distance, noise floor, verdict or why it is not used."""
    rows = []
    for f in findings:
        tone, mark = _TONES.get(str(f["verdict"]), ("warn", "– "))
        why = f.get("reason") or f.get("note")
        figures = [_percent(f.get(k)) for k in ("rms", "floor_rms", "max", "floor_max", "chance")]
        whole = [_ratio(f.get("ratio")), _interval(f)]
        rows.append(Row([_title(f), f"{mark}{f['verdict']}", *whole, *figures, str(why or "")], tone))
    note = (
        "Model / replay: means over whole runs, with the 90 % interval of their ratio; they are the same "
        f"where it lies within {MARGIN:g} %. Over time: root-mean-square and largest difference over the "
        "intervals, relative to the replays' mean. The floor is the same between runs of one kind. Target: "
        f"RMS {RMS_TARGET:g} %, largest {MAX_TARGET:g} %, or 1.25 times the floor. "
        "Chance: how many of the ways to call runs replays and models are as far apart, given their floor."
    )
    columns = ["response parameter", "verdict", "model / replay", "90 % interval"]
    columns += ["RMS", "floor", "largest", "floor", "chance", ""]
    return Table(columns, rows, note=note, text=(0, 1, 9), toned=1)


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{float(value):.3f}"


def _interval(finding: Mapping[str, Any]) -> str:
    low, high = finding.get("ratio_low"), finding.get("ratio_high")
    return "–" if low is None or high is None else f"{float(low):.3f} to {float(high):.3f}"


def picture(findings: Findings, id_: str = "distances") -> Figure | None:
    """RMS of every usable parameter on a bar that reaches to its floor, with the target as a line."""
    usable = [f for f in findings if f.get("rms") is not None]
    if not usable:
        return None
    names = [plotted(_title(f)) for f in usable]
    rms = [round(100 * float(f["rms"]), 3) for f in usable]
    floor = [round(100 * float(f["floor_rms"]), 3) for f in usable]
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "x": floor,
            "y": names,
            "name": "noise floor",
            "marker": {"color": fade("var(--soft)", 0.3)},
            "width": 0.7,
            "hovertemplate": "floor %{x:.3~g} %<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": rms,
            "y": names,
            "name": "model against replay",
            "marker": {"color": "var(--c1)", "size": 12, "symbol": "diamond"},
            "hovertemplate": "RMS %{x:.3~g} %<extra></extra>",
        },
    ]
    most = max([*rms, *floor, RMS_TARGET])
    flat = layout(
        axis("RMS distance (% of the replays' mean)", rangemode="tozero", range=[0, most * 1.08]),
        axis("", autorange="reversed", ticks=""),
        hovermode="closest",
        shapes=[
            {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": RMS_TARGET,
                "x1": RMS_TARGET,
                "y0": 0,
                "y1": 1,
                "line": {"color": "var(--ink)", "width": 1.5, "dash": "dot"},
            }
        ],
        annotations=[
            {
                "x": RMS_TARGET,
                "y": 1,
                "xref": "x",
                "yref": "paper",
                "text": f"target {RMS_TARGET:g} %",
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "bottom",
                "font": {"size": 11, "color": "var(--soft)"},
            }
        ],
    )
    flat["margin"]["t"] = 22
    flat["legend"]["y"] = 1.06
    rows = [
        [
            f["parameter"],
            f["verdict"],
            *(f.get(k) for k in ("rms", "floor_rms", "max", "floor_max", "intervals")),
        ]
        for f in findings
    ]
    columns = ["parameter", "verdict", "rms", "floor_rms", "max", "floor_max", "intervals"]
    note = (
        "Left of the dotted line, or inside the grey bar, the model's load cannot be blamed for a difference."
    )
    height = 90 + 34 * len(usable)
    return Figure(id_, "Distance and noise", note, [Panel("", traces, flat, height)], columns, rows)


def settings(summary: Mapping[str, Any]) -> Pairs:
    """How the comparison was made."""
    model, schedule = summary.get("model") or {}, summary.get("schedule") or {}
    pairs = [
        ("trace", summary.get("trace")),
        ("model", model.get("path") or ("fitted for this" if model.get("fitted_here") else None)),
        ("target", summary.get("target")),
        ("pace", schedule.get("pace")),
        ("order", _order(summary)),
        ("runs of each kind", schedule.get("repeat")),
        ("seconds per run", schedule.get("run_seconds")),
        ("intervals", summary.get("intervals")),
        ("aligned by", summary.get("alignment")),
        ("target between runs", summary.get("reset")),
    ]
    return Pairs("", [(k, cell_text(v)) for k, v in pairs if v is not None])


def _order(summary: Mapping[str, Any]) -> str | None:
    """The rule by which requests went out, where there was one: that of both, or of each."""
    orders = summary.get("order") or {}
    named = {role: str(order) for role, order in orders.items() if order != "none"}
    if not named:
        return None
    alike = len(set(orders.values())) == 1
    text = next(iter(named.values())) if alike else ", ".join(f"{k}: {v}" for k, v in named.items())
    think = summary.get("think")
    if think is None or think == 1:
        return text
    return f"{text}, no think time" if think == 0 else f"{text}, think times divided by {think:g}"


def conclude(findings: Findings, summary: Mapping[str, Any]) -> tuple[str, str]:
    """One sentence on the model's faithfulness, and its tone."""
    text = str(summary.get("verdict", ""))
    content = (summary.get("content") or {}).get("verdict")
    if not content:
        faithful = summary.get("faithful")
        return _sentence(text), "warn" if faithful is None else "good" if faithful else "bad"
    told = f"{_sentence('content: ' + str(content['text']))} {_sentence('device: ' + text)}"
    if not content["faithful"] or summary.get("faithful") is False:
        return told, "bad"
    # What a device leaves open says nothing against the load that was drawn, unless that is most of it.
    mostly = summary.get("faithful") is None and 2 * summary.get("passed", 0) < summary.get("usable", 0)
    return told, "warn" if mostly else "good"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
