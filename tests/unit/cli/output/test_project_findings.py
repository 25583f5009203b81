"""What `init` shows of a project."""

from __future__ import annotations

from riseml.cli.output.project_findings import list_findings
from riseml.cli.output.style import Style
from riseml.project_reading.findings import CodePlace, ProjectFinding

FINDINGS = (
    ProjectFinding("run", "python train.py --lr {{lr}} --batch-size {{batch-size}}", CodePlace("train.py", 4), "x"),
    ProjectFinding("metrics", "loss", None, "printed"),
)


def test_a_narrow_terminal_has_whole_values_and_the_reason_below_them() -> None:
    assert list_findings(FINDINGS, Style(width=40)) == [
        "  run      python train.py --lr {{lr}}",
        "           --batch-size {{batch-size}}",
        "           train.py:4 x",
        "  metrics  loss",
        "           printed",
    ]


def test_a_wide_terminal_and_a_file_have_a_line_for_each_finding() -> None:
    for style in (Style(width=120), Style()):
        assert list_findings(FINDINGS, style) == [
            "  run      python train.py --lr {{lr}} --batch-size {{batch-size}}  train.py:4 x",
            "  metrics  loss                                                     printed",
        ]


def test_a_hostile_project_writes_no_controls_and_no_finding_is_no_line() -> None:
    hostile = ProjectFinding("run", "python \x1b[2J\u202e.py", CodePlace("a\nb.py"), "\x07")
    text = "\n".join(list_findings([hostile], Style(colour=False, width=80)))
    assert not any(char in text for char in "\x1b\u202e\x07")
    assert len(text.splitlines()) == 1
    assert list_findings([], Style()) == []
