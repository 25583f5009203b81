"""The client of the routes of reports, and of what an exported report has: curves, tables and media."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from riseml.client.exchange import Exchange, format_path

if TYPE_CHECKING:
    from riseml import wire
else:
    from riseml.client.answer_check import WIRE_NAMES as wire

_SLOW_ANSWER = 120.0  # seconds; a host may start a helper to read a file


class ReportClient:
    """Asks for reports, and changes them.

    Args:
        exchange: the connections to the server, which the caller closes.

    Raises:
        RisemlError: every method raises the error that the server refused with, or `Unreachable`.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def list_reports(self) -> list[wire.ReportSummary]:
        """Return the reports that the caller sees."""
        return self._exchange.request_answer("GET", "/reports", wire.ReportList)["reports"]

    def get_report(self, name: str) -> wire.ReportView:
        """Return a whole report."""
        return self._exchange.request_answer("GET", format_path("reports", name), wire.ReportView)

    def save_report(self, request: wire.ReportRequest) -> wire.ReportView:
        """Save a report, and return it."""
        return self._exchange.request_answer("POST", "/reports", wire.ReportView, json=request)

    def remove_report(self, name: str) -> wire.ReportSummary:
        """Remove a report, and return what it was."""
        return self._exchange.request_answer("POST", "/reports/remove", wire.ReportSummary, json={"name": name})

    def list_curves(self, run: str, metric: str) -> list[wire.Curve]:
        """Return the curve of an experiment, or those of the members of a set."""
        path = format_path("experiments", run, "curves")
        return self._exchange.request_answer("GET", path, wire.CurveList, params={"metric": metric})["curves"]

    def get_table(self, runs: Sequence[str], columns: Sequence[str]) -> wire.TableView:
        """Return a table of experiments, and of the members of sets."""
        query = {"of": list(runs), "column": list(columns), "archived": "true"}
        return self._exchange.request_answer("GET", "/table", wire.TableView, params=query)

    def list_media(self, run: str) -> wire.MediaView:
        """Return the media of an experiment."""
        return self._exchange.request_answer("GET", format_path("experiments", run, "media"), wire.MediaView)

    def read_media(self, run: str, path: str, most: int) -> bytes:
        """Return the content of a file of media.

        Raises:
            Refused: it has more than `most` bytes.
        """
        from urllib.parse import quote

        target = io.BytesIO()
        address = f"{format_path('experiments', run, 'media', 'content')}?path={quote(path, safe='')}"
        self._exchange.save_content(address, target, most, timeout=_SLOW_ANSWER)
        return target.getvalue()
