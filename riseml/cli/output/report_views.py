"""Reports for people. `--json` prints all fields."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, format_age

if TYPE_CHECKING:
    from riseml import wire

_COLUMNS = (
    Column("NAME"),
    Column("TITLE", shrinks=True),
    Column("PROJECT", shrinks=True),
    Column("VERSION", right=True),
    Column("CHANGED", right=True),
)


def list_report_table(reports: Sequence[wire.ReportSummary], now: datetime, style: Style) -> list[str]:
    """Return a line for each report."""
    if not reports:
        return ["No report is kept so far: `riseml report create NAME FILE` makes one"]
    rows = [
        [each["id"], each["title"], each["project"], str(each["version"]), format_age(each["changed_at"], now)]
        for each in reports
    ]
    return build_table(_COLUMNS, rows, style)


def describe_report(report: wire.ReportSummary) -> str:
    """Return `lr-sweep, version 2: "A title"`."""
    return clean_text(f"{report['id']}, version {report['version']}: {report['title']}")
