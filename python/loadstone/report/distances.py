"""How far the model's load is from the replay: the table of ``evaluate`` and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.report.figure import Figure, Panel, axis, cell_text, fade, layout, plotted
from loadstone.report.page import Pairs, Row, Table

# RMS and maximum that a parameter should stay within, percent.
RMS_TARGET = 10.0
MAX_TARGET = 15.0
# A noise floor above this, percent, tests nothing.
LOUD = 50.0

_TONES = {"within target": ("good", "✓ "), "within noise": ("good", "✓ "), "differs": ("bad", "✗ ")}

Findings = Sequence[Mapping[str, Any]]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{float(f'{100 * value:.3g}'):,g} %"


def _title(finding: Mapping[str, Any]) -> str:
    title = str(finding["title"])
    return title[:1].upper() + title[1:]


def _loud(finding: Mapping[str, Any]) -> bool:
    """Whether runs of one kind differ so much that being within that says little."""
    floor = finding.get("floor_rms")
    return floor is not None and float(floor) > LOUD / 100


def table(findings: Findings) -> Table:
    """One row per response parameter: distance, noise floor, verdict or why it is not used."""
    rows = []
    for f in findings:
        tone, mark = _TONES.get(str(f["verdict"]), ("warn", "– "))
        if f["verdict"] == "within noise" and _loud(f):
            tone, mark = "warn", "≈ "
        why = f.get("reason") or f.get("note")
        figures = [_percent(f.get(k)) for k in ("rms", "floor_rms", "max", "floor_max", "chance")]
        rows.append(Row([_title(f), f"{mark}{f['verdict']}", *figures, str(why or "")], tone))
    note = (
        "Root-mean-square and largest difference over the intervals, relative to the replays' mean. The "
        "floor is the same between runs of one kind: what cannot be told from noise. Target: "
        f"RMS {RMS_TARGET:g} %, largest {MAX_TARGET:g} %, or 1.25 times the floor. "
        "Chance: how many of the ways to call runs replays and models are as far apart, given their floor."
    )
    columns = ["response parameter", "verdict", "RMS", "floor", "largest", "floor", "chance", ""]
    return Table(columns, rows, note=note, text=(0, 1, 7), toned=1)


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
    usable = [f for f in findings if f.get("rms") is not None]
    text = str(summary.get("verdict", ""))
    text = text[:1].upper() + text[1:] + "."
    if usable:
        worst = max(usable, key=lambda f: float(f["rms"]))
        text += (
            f" Largest RMS distance: {worst['title']}, {_percent(worst['rms'])} "
            f"(noise floor {_percent(worst['floor_rms'])})."
        )
    faithful = summary.get("faithful")
    if faithful and 2 * sum(map(_loud, usable)) > len(usable):
        faithful = None
    return text, "warn" if faithful is None else "good" if faithful else "bad"
