"""What `init` shows of a project: a row for each finding, with the line of the project that says so. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from riseml.cli.output.style import Style, paint
from riseml.cli.output.text import clean_text
from riseml.cli.output.widths import measure_width, pad_to_width, shorten_to_width
from riseml.project_reading.findings import ProjectFinding

_GAP = 2  # columns between two cells
_DIM = "2"  # SGR code
_BOLD = "1"
_WIDEST_VALUE = 60  # columns


def list_findings(findings: Sequence[ProjectFinding], style: Style) -> list[str]:
    """Return the lines of the findings: the reason beside the value, or below it where the terminal is narrow."""
    labels = max((len(finding.label) for finding in findings), default=0) + _GAP
    width = style.width or 200
    values = min(max((measure_width(finding.value) for finding in findings), default=0), _WIDEST_VALUE) + _GAP
    reasons = [clean_text(f"{finding.place} {finding.why}" if finding.place else finding.why) for finding in findings]
    widest = max(map(measure_width, reasons), default=0)
    is_wide = _GAP + labels + values + widest <= width
    lines = []
    for finding, reason in zip(findings, reasons, strict=True):
        label = paint(finding.label.ljust(labels), _BOLD, colour=style.colour)
        room = values - _GAP if is_wide else width - labels - _GAP
        value = shorten_to_width(clean_text(finding.value), room)
        if is_wide:
            written = paint(reason, _DIM, colour=style.colour)
            lines.append(f"{' ' * _GAP}{label}{pad_to_width(value, values)}{written}")
            continue
        written = paint(shorten_to_width(reason, room), _DIM, colour=style.colour)
        lines += [f"{' ' * _GAP}{label}{value}", f"{' ' * (_GAP + labels)}{written}"]
    return lines
