"""Write the tables of README.md from the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import pace
from benchmarks.common import format_value, percentile

README = Path(__file__).with_name("README.md")
_BEGIN = "<!-- written by `python -m benchmarks --table` -->"
_END = "<!-- end of what is written -->"


def write_tables(figures: Mapping[str, Any], page: Path = README) -> None:
    """Write the tables of a run between the marks of the page.

    Args:
        figures: the content of the file of `--json`.
        page: a file that has both marks.

    Raises:
        ValueError: a mark is missing.
    """
    text = page.read_text(encoding="utf-8")
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise ValueError(f"{page.name} needs the lines {_BEGIN!r} and {_END!r}, once each: add them")
    above, _, tail = text.partition(_BEGIN)
    below = tail.partition(_END)[2]
    lines = [_BEGIN, *_about(figures["machine"]), *_bars(figures["benches"]), *_measures(figures["benches"]), "", _END]
    page.write_text(above + "\n".join(lines) + below, encoding="utf-8")


def _about(machine: Mapping[str, Any]) -> Iterator[str]:
    docker = machine["docker"]
    yield (
        f"{machine['at'][:10]}, {machine['cpus']} cores of {machine['cpu']}, {machine['memory_mib'] // 1024} GiB,"
        f" Docker Engine {docker['engine']} ({docker['storage']}), Linux {machine['kernel'].partition('-')[0]},"
        f" Python {machine['python']}, riseml at {machine['commit']}; {machine['minutes']} minutes,"
        f" load before {machine['load_before']:.1f}."
        f" `python -c pass` takes {machine['python_start'] * 1000:.1f} ms here,"
        f" {pace.START_OF_THE_BARS * 1000} ms where the bars in seconds were set."
    )
    if machine["quick"]:
        yield "**A smoke test (`--quick`): its figures mean little.**"
    yield ""


def _bars(benches: Mapping[str, Any]) -> Iterator[str]:
    rows: list[Sequence[str]] = [("bench", "bar", "figure", "verdict")]
    causes: list[str] = []
    for name, bench in benches.items():
        for bar in bench["bars"]:
            passed = bar["verdict"] == "pass"
            rows.append(
                (f"`{name}`", bar["what"], bar["figure"], bar["verdict"] if passed else f"**{bar['verdict']}**")
            )
            if not passed:
                causes.append(f"- `{name}`: {bar['what']}: {bar['cause'] or 'not explained yet'}")
    yield from _markdown(rows)
    if causes:
        yield from ("", "Why riseml misses these:", "", *causes)
    yield ""


def _measures(benches: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row for every measure of a group with several contenders."""
    rows: list[Sequence[str]] = [("bench", "measure", "contender", "median", "middle half", "ratio")]
    for name, bench in benches.items():
        for group, measures in bench["groups"].items():
            for position, measure in enumerate(measures if len(measures) > 1 else ()):
                first = measures[0]["median"]
                ratio = measure["median"] / first if first and measure["median"] is not None else float("nan")
                cells = [
                    format_value(percentile(measure["values"], share), measure["shown_in"])
                    for share in (0.5, 0.25, 0.75)
                ]
                spread = f"{cells[1]} to {cells[2]}" if len(measure["values"]) > 1 else ""
                head = (f"`{name}`", group) if position == 0 else ("", "")
                rows.append((*head, measure["name"], cells[0], spread, "" if ratio != ratio else f"{ratio:.2f}"))
    yield from _markdown(rows)


def _markdown(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *body = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    yield from (head, "|" + "---|" * len(rows[0]), *body)
