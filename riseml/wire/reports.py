"""Reports: pages of Markdown with live charts, tables and media of runs, which the server keeps."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict


class ReportPiece(TypedDict):
    """A part of a text: the begin or the end of an element, or characters."""

    kind: Literal["open", "close", "text", "code", "fence", "break", "rule"]
    tag: str  # of `open` and `close`: `p`, `h1`, `a`
    text: str  # the characters
    href: str  # of a link: a web address, or one of this server; empty: none


class ReportBlock(TypedDict):
    """A part of a report."""

    kind: Literal["text", "chart", "table", "media", "problem"]
    line: int  # of the text, from 1
    pieces: list[ReportPiece]  # of `text`
    runs: list[str]  # of a chart, a table or media: IDs of those that the caller sees
    absent: int  # further runs, which are not there or which the caller does not see
    metric: str
    columns: list[str]
    name: str  # of media
    step: int | None  # of media; null: the last one
    title: str  # empty: none
    problem: str  # what is wrong with the block


class ReportSummary(TypedDict):
    """A report in a list."""

    id: str  # `lr-sweep`; of another user `paul.lr-sweep`
    user: str  # who has made it
    project: str  # empty: none
    title: str
    version: int  # 1, and one more with each change
    changed_at: str  # RFC 3339


class ReportView(ReportSummary):
    """A whole report."""

    text: str  # Markdown, as it was written
    can_change: bool  # the caller may change and delete it
    blocks: list[ReportBlock]


class ReportList(TypedDict):
    """The reports that the caller sees."""

    reports: list[ReportSummary]  # the caller's own first, by name


class ReportRequest(TypedDict):
    """A report that a user saves."""

    name: str  # `lr-sweep`; of another user `paul.lr-sweep`
    text: str
    project: NotRequired[str]  # whose members see it where it is a team project; absent: it stays, or none
    version: NotRequired[int]  # that the user has changed; absent: the report is new


class ExportedReport(TypedDict):
    """A report that `riseml report export` has written."""

    id: str
    file: str
    size: int  # bytes


class ReportName(TypedDict):
    """Which report is meant."""

    name: str


class ReportText(TypedDict):
    """A text that is not saved yet."""

    text: str
    name: NotRequired[str]  # of the report that it will be


class ReportBlocks(TypedDict):
    """What a text is as a report."""

    blocks: list[ReportBlock]
