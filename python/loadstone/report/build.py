"""Puts a report together: sections, order, and the one sentence on top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from loadstone._units import number
from loadstone.report import distances, facts, overtime, spread, steps, suite, written
from loadstone.report.collect import Collected, parameter_titles
from loadstone.report.figure import Figure, cell_text
from loadstone.report.page import Page, Pairs, Section, Text
from loadstone.report.view import Group, Run, group


def build(found: Collected, title: str | None = None, source: str = "") -> Page:
    """The page of what was collected."""
    groups = group(found.runs)
    conclusion, tone = conclude(groups)
    sections: list[Section] = []
    for series, called in zip(found.series, found.names, strict=True):
        findings = series.summary.get("distances")
        if series.kind != "evaluate" or findings is None:
            continue
        if len(found.series) == 1:
            conclusion, tone = distances.conclude(findings, series.summary)
        heading = "How faithful is the model?"
        heading += f" ({called})" if len(found.series) > 1 else ""
        number = f"-{len(sections) + 1}" if sections else ""
        settings = distances.settings(series.summary)
        sections.append(
            Section(
                f"faithful{number}",
                heading,
                tables=[distances.table(findings)] if findings else [],
                pairs=[settings] if settings.pairs else [],
                figures=kept(distances.picture(findings, f"distances{number}")),
            )
        )
    if len(found.series) == 1 and (told := suite.conclude(found.series[0])):
        # What the runs have done between them is no comparison.
        conclusion = told + _ending(groups)
    found_suites = (suite.section(series, i) for i, series in enumerate(found.series, 1))
    sections += [section for section in found_suites if section]
    every = spread.heat_map(groups)
    by_step = steps.table(groups)
    tables = [facts.results(found.runs), *([by_step] if by_step else []), facts.by_op(groups)]
    tables += steps.parts(groups)
    sections += [
        Section("run", "What was run", tables=tables),
        written.section(found.runs),
        Section(
            "time",
            "Over time",
            figures=kept(overtime.throughput(groups), overtime.latency(groups), overtime.flight(groups)),
        ),
        Section(
            "latency",
            "Latency",
            figures=kept(
                spread.histogram(groups),
                spread.histogram(groups, "response"),
                steps.latencies(groups),
                every,
                steps.heat_maps(groups, every.panels[0].traces[0]["zmax"]) if every else None,
                overtime.lateness(groups),
            ),
        ),
        Section(
            "system",
            "Response of the system",
            figures=kept(overtime.parameters(groups, parameter_titles(found.runs))),
        ),
        about_model(found),
        about(groups),
    ]
    return Page(
        title or default_title(found, groups),
        subtitle(found.runs),
        conclusion,
        tone,
        source,
        [section for section in sections if section],
        found.warnings,
    )


def kept(*figures: Figure | None) -> list[Figure]:
    """The figures that have data."""
    return [figure for figure in figures if figure is not None]


def default_title(found: Collected, groups: list[Group]) -> str:
    """What was run, by the name it was given or the names of the artefacts."""
    names = []
    for run in found.runs:
        for artefact in run.plan.get("artefacts") or []:
            if artefact.get("kind") == "trace":
                names.append(Path(str(artefact.get("path"))).name)
    if len(found.series) == 1 and found.series[0].kind == "evaluate":
        return f"How faithful is the model of {Path(str(found.series[0].summary.get('trace'))).name}?"
    of_series = [series.summary.get("script") for series in found.series]
    if len(of_series) == 1 and of_series[0] and all(run.series for run in found.runs):
        return Path(str(of_series[0])).name
    workloads = [Path(str(g.runs[0].summary.get("workload") or "")).name for g in groups]
    labels = [g.label for g in groups]
    if all(workloads) and len(set(workloads)) == 1:
        return workloads[0] if len(groups) == 1 else f"{workloads[0]}: {_listed(labels)}"
    if all(workloads):
        labels = [f"{label} ({workload})" for label, workload in zip(labels, workloads, strict=True)]
    what = _listed(labels)
    return f"{what[0].upper()}{what[1:]}" + (f" of {names[0]}" if len(set(names)) == 1 else "")


def _listed(labels: list[str]) -> str:
    return " and ".join(labels) if len(labels) < 4 else f"{len(labels)} loads"


def subtitle(runs: list[Run]) -> str:
    """When and where, in one line."""
    started = sorted(str(run.summary["started"]) for run in runs)
    hosts = sorted({str(run.environment.get("host")) for run in runs})
    when = started[0][:19].replace("T", " ") + " UTC"
    count = f"{len(runs)} runs" if len(runs) > 1 else "1 run"
    return f"{count} on {', '.join(hosts)}, started {when}"


_NONE_FAILED = " No request failed."


def _ending(groups: list[Group]) -> str:
    """What failed, and what was damaged."""
    runs = [run for g in groups for run in g.runs]
    failed = sum(int(run.summary.get("errors", 0)) + int(run.summary.get("short", 0)) for run in runs)
    told = f" {failed:,} request{'s' * (failed != 1)} failed." if failed else _NONE_FAILED
    return told + written.trouble(runs)


def conclude(groups: list[Group]) -> tuple[str, str]:
    """One sentence on what the runs say, and its tone."""
    tail = _ending(groups)
    tone = "" if tail == _NONE_FAILED else "bad"
    first = groups[0]
    rate, p99 = _rate(first), first.service().told(99)
    if len(groups) == 1:
        run = first.runs[0]
        text = (
            f"{first.label}: {cell_text(rate)} requests/s "
            f"({cell_text(run.summary['bytes_per_s'] / 1e6)} MB/s) "
            f"for {facts.duration(run.summary['elapsed_ns'])}, "
            f"median latency {facts.duration(first.service().told(50))}, "
            f"99th percentile {facts.duration(p99)}."
        )
        return text + tail, tone
    if len(groups) > 3:
        rates = sorted((_rate(g), g.label) for g in groups)
        text = (
            f"{len(groups)} loads: from {cell_text(rates[0][0])} requests/s ({rates[0][1]}) to "
            f"{cell_text(rates[-1][0])} ({rates[-1][1]})."
        )
        return text + tail, tone
    others = []
    for other in groups[1:]:
        theirs = other.service().told(99)
        others.append(
            f"{other.label}: {cell_text(_rate(other))} requests/s ({_change(_rate(other), rate)}) and "
            f"{facts.duration(theirs)} ({_change(theirs, p99)})"
        )
    latency = f"a 99th percentile latency of {facts.duration(p99)}"
    text = f"{first.label}: {cell_text(rate)} requests/s with {latency}; {'; '.join(others)}."
    if any(len(group.runs) == 1 for group in groups):
        text += " One run of each cannot show how much of a difference is chance."
    return text + tail, tone


def _rate(group: Group) -> float:
    return float(np.mean([run.summary["ops_per_s"] for run in group.runs]))


def _change(value: float | None, base: float | None) -> str:
    if not base or base != base or value is None or value != value:
        return "not comparable"
    change = 100 * (value / base - 1)
    if abs(change) < 0.05:
        return "the same"
    return f"{change:+.3g} %" if change < 200 else f"{number(value / base, 3)} times as much"


def about_model(found: Collected) -> Section:
    """The phases of the model that was run, and what it generates."""
    from loadstone.model import Model
    from loadstone.report import model as figures

    section = Section("model", "The model")
    if found.model is None:
        return section
    fitted = Model.load(found.model)
    section.figures = [figures.phases(fitted), figures.distributions(fitted)]
    contents = [series.summary.get("content") for series in found.series if series.kind == "evaluate"]
    section.figures += [figures.caches(content) for content in contents[:1] if content]
    return section


def about(groups: list[Group]) -> Section:
    """The plans and the machine."""
    section = Section("about", "How and where")
    for g in groups:
        run = g.runs[0]
        repeats = f" ({len(g.runs)} runs)" if len(g.runs) > 1 else ""
        section.pairs.append(Pairs(f"{g.label}{repeats}", facts.load(run)))
    hosts: dict[str, Run] = {}
    for g in groups:
        for run in g.runs:
            hosts.setdefault(_fingerprint(run.environment), run)
    for run in hosts.values():
        section.pairs += facts.environment(run)
    if len(hosts) > 1:
        section.note = "The runs were not made on one machine with one setting; compare them with care."
    section.texts = [
        Text(f"Plan of {g.runs[0].name}", json.dumps(g.runs[0].plan, indent=2))
        for g in groups
        if g.runs[0].plan
    ]
    return section


def _fingerprint(environment: dict[str, Any]) -> str:
    """What must be equal for two runs to be of one machine and setting."""
    parts = {k: environment.get(k) for k in ("host", "kernel", "cmdline", "cpu", "clock_source", "versions")}
    return json.dumps(parts, sort_keys=True, default=str)
