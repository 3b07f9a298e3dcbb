"""A record in a notebook: its answer, tiles, plot.

Plain HTML and SVG without scripts, readable in light and dark: colours are those of the notebook, except for the verdicts,
which also have a word. Names come from job files and are escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._record import Record

_SIGNS = {
    "confirmed": ("●", "#1a7f37"),
    "unverified": ("○", "#57606a"),
    "unsteady": ("◐", "#9a6700"),
    "disturbed": ("◐", "#9a6700"),
    "not the disk": ("◇", "#cf222e"),
    "withheld": ("✕", "#cf222e"),
    "failed": ("✕", "#cf222e"),
    None: ("–", "gray"),
}
_WIDTH, _HEIGHT = 640, 120


def record_html(record: Record) -> str:
    """Renders the record."""
    document = record.document
    sign, color = _SIGNS[record.verdict]
    targets = ", ".join(target["path"] for target in document["targets"])
    parts = [
        '<div style="font-family:system-ui,sans-serif;line-height:1.4">',
        f'<div><strong style="color:{color}">{sign} {escape(record.verdict or "nothing was measured")}</strong> '
        f"trueio {escape(document['kind'])}, {escape(document['started_at'])}, record {escape(record.id[:8])}, "
        f"{escape(record.outcome)}</div>",
        f"<div>{escape(targets)}</div>",
        *(f"<div><strong>{escape(sentence)}</strong></div>" for sentence in record.answer.headline),
        f"<div>{escape(record.answer.evidence)}</div>",
        '<div style="display:flex;flex-wrap:wrap;gap:8px;margin:8px 0">',
        *(_tile(row) for row in record._rows()),
        "</div>",
        _plot(record._series()),
    ]
    if record.answer.findings:
        findings = (f"<li>{escape(one.sentence)} → {escape(one.next_step)}</li>" for one in record.answer.findings)
        parts.append("<ul>" + "".join(findings) + "</ul>")
    parts.append("</div>")
    return "".join(parts)


def _tile(row: dict[str, Any]) -> str:
    sign, color = _SIGNS[row["verdict"]]
    name = f"{escape(row['job'])} {escape(row['op'])}"
    if not row["is_shown"]:
        # A figure that is withheld is not shown without its reason, and a tile has no room for that.
        figures = f"{escape(row['verdict'])}: see below"
    else:
        latencies = ", ".join(
            f"{label} {_time(row[f'latency_ns_{key}'])}" for label, key in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p99_9"))
        )
        figures = f"{_rate(row['bytes_per_s'])}<br>{_count(row['ios_per_s'])} IOPS<br><small>{latencies}</small>"
    return (
        f'<div style="border:1px solid {color};border-radius:6px;padding:6px 10px">'
        f'<div><span style="color:{color}">{sign}</span> <strong>{name}</strong></div>{figures}</div>'
    )


def _plot(series: list[dict[str, Any]]) -> str:
    """Bandwidth over time, one line a job, in the order of the run."""
    jobs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in series:
        if row["is_shown"]:
            jobs.setdefault((row["phase"], row["job"]), []).append(row)
    # The last interval may last microseconds: one I/O in it would be a rate far above all others.
    shortest = max((row["span_ns"] for rows in jobs.values() for row in rows), default=0) / 2
    rates = {
        job: [(row["end_ns"], (row["read_bytes"] + row["write_bytes"]) / (row["span_ns"] / 1e9)) for row in rows if row["span_ns"] > shortest]
        for job, rows in jobs.items()
    }
    top = max((rate for points in rates.values() for _, rate in points), default=0.0)
    if top <= 0:
        return ""
    end = max(time for points in rates.values() for time, _ in points)
    lines = []
    for index, ((_, job), points) in enumerate(rates.items()):
        path = " ".join(f"{time / end * _WIDTH:.1f},{_HEIGHT - rate / top * (_HEIGHT - 8):.1f}" for time, rate in points)
        hue = index * 137 % 360
        lines.append(
            f'<polyline points="{path}" fill="none" stroke="hsl({hue} 60% 50%)" stroke-width="1.5">'
            f"<title>{escape(job)}</title></polyline>"
        )
    return (
        f"<small>bandwidth over time, up to {_rate(top)}; {_time(end)}</small><br>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" style="max-width:100%">'
        f'<title>Bandwidth over time</title><line x1="0" y1="{_HEIGHT}" x2="{_WIDTH}" y2="{_HEIGHT}" stroke="gray"/>'
        f"{''.join(lines)}</svg>"
    )


def _rate(bytes_per_s: float | None) -> str:
    if bytes_per_s is None:
        return "–"
    for unit in ("B/s", "KiB/s", "MiB/s"):
        # With three digits: 1,000 would be printed as 1e+03.
        if bytes_per_s < 999.5:
            return f"{bytes_per_s:.3g} {unit}"
        bytes_per_s /= 1024
    return f"{bytes_per_s:.3g} GiB/s"


def _count(number: float | None) -> str:
    return "–" if number is None else f"{number:,.0f}"


def _time(ns: float | None) -> str:
    if ns is None:
        return "–"
    for unit in ("ns", "µs", "ms"):
        if ns < 999.5:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"
