"""What `init` shows of a project: a row for each finding, with the line of the project that says so. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from riseml.cli.output.style import Style, paint
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width, pad_to_width, shorten_to_width
from riseml.project_reading.findings import ProjectFinding

_GAP = 2  # columns between two cells
_DIM = "2"  # SGR code
_BOLD = "1"
_WIDTH = 200  # columns where the output is no terminal
_LEAST = 20  # columns of a value on a narrow terminal


def list_findings(findings: Sequence[ProjectFinding], style: Style) -> list[str]:
    """Return the lines of the findings: the reason beside the value, or below it where the terminal is narrow."""
    labels = max((len(finding.label) for finding in findings), default=0) + _GAP
    width = style.width or _WIDTH
    texts = [clean_text(finding.value) for finding in findings]
    values = max(map(measure_width, texts), default=0) + _GAP
    reasons = [clean_text(f"{finding.place} {finding.why}" if finding.place else finding.why) for finding in findings]
    is_wide = _GAP + labels + values + max(map(measure_width, reasons), default=0) <= width
    lines = []
    for finding, value, reason in zip(findings, texts, reasons, strict=True):
        label = paint(finding.label.ljust(labels), _BOLD, colour=style.colour)
        if is_wide:
            written = paint(reason, _DIM, colour=style.colour)
            lines.append(f"{' ' * _GAP}{label}{pad_to_width(value, values)}{written}")
            continue
        room = max(width - labels - _GAP, _LEAST)
        first, *more = textwrap.wrap(value, room) or [""]
        written = paint(shorten_to_width(reason, room), _DIM, colour=style.colour)
        margin = " " * (_GAP + labels)
        lines += [f"{' ' * _GAP}{label}{first}", *(f"{margin}{part}" for part in more), f"{margin}{written}"]
    return lines
