"""Reports as a caller sees them: runs under the names that the caller knows, and a number of those that are absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

from riseml import wire
from riseml.analysis.report_text import Block, read_blocks
from riseml.base.errors import NotFound
from riseml.base.names import name_for_reader, parse_id
from riseml.control.permissions import may_change
from riseml.model import Caller
from riseml.server.api.views.named_experiments import find_details
from riseml.server.services import Stores
from riseml.store.reports import SavedReport


def split_report_name(text: str, caller: Caller) -> tuple[str, str]:
    """Return the user and the name of a report, of which a caller writes `lr-sweep` or `paul.lr-sweep`."""
    user, _, name = text.rpartition(".")
    return user or caller.user, name


def summarize_report(report: SavedReport, caller: Caller) -> wire.ReportSummary:
    """Return a report as a list has it."""
    return {
        "id": report.name if report.user == caller.user else f"{report.user}.{report.name}",
        "user": report.user,
        "project": report.project,
        "title": report.title,
        "version": report.version,
        "changed_at": f"{report.changed_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def show_report(report: SavedReport, caller: Caller, stores: Stores) -> wire.ReportView:
    """Return a whole report."""
    return {
        **summarize_report(report, caller),
        "text": report.text,
        "can_change": may_change(caller, report.user, report.team_project),
        "blocks": show_blocks(report.text, report.user, caller, stores),
    }


def show_blocks(text: str, author: str, caller: Caller, stores: Stores) -> list[wire.ReportBlock]:
    """Return the blocks of a text. A run without a user is one of the author."""
    names: dict[str, str | None] = {}
    return [_show_block(block, author, caller, stores, names) for block in read_blocks(text)]


def _show_block(
    block: Block, author: str, caller: Caller, stores: Stores, names: dict[str, str | None]
) -> wire.ReportBlock:
    for run in block.runs:
        if run not in names:
            names[run] = _find_name(run, author, caller, stores)
    visible_runs: Sequence[str] = [name for run in dict.fromkeys(block.runs) if (name := names[run]) is not None]
    return {
        "kind": block.kind,
        "line": block.line,
        "pieces": [
            {"kind": piece.kind, "tag": piece.tag, "text": piece.text, "href": piece.href} for piece in block.pieces
        ],
        "runs": list(visible_runs),
        "absent": len(set(block.runs)) - len(visible_runs),
        "metric": block.metric,
        "columns": list(block.columns),
        "name": block.name,
        "step": block.step,
        "title": block.title,
        "problem": block.problem,
    }


def _find_name(run: str, author: str, caller: Caller, stores: Stores) -> str | None:
    """Return the name of a run for a caller; None: it is not there, or the caller does not see it."""
    canonical_id = parse_id(run)
    if canonical_id.user is None:
        canonical_id = replace(canonical_id, user=author)
    try:
        first = find_details(canonical_id, caller, stores)[0].experiment
    except NotFound:
        return None
    return name_for_reader(caller.user, first.owner.user, first.number, canonical_id.sub)
