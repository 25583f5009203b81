"""Why an experiment makes no progress, as lines. Pure."""

from __future__ import annotations

from datetime import datetime

from riseml import wire
from riseml.cli.output.text import clean_text, format_age
from riseml.diagnosis.report import list_report_lines


def list_diagnosis(diagnosis: wire.DiagnosisView, now: datetime) -> list[str]:
    """Return a diagnosis as lines; text of jobs is made safe."""
    age = format_age(diagnosis["time"], now)
    noticed = "at a stall" if diagnosis["by_stall"] else "when a user asked"
    lines = list_report_lines(diagnosis)
    return [clean_text(line) for line in (*lines, "", f"Looked at {age} ago, {noticed}, in {diagnosis['seconds']:g} s")]
