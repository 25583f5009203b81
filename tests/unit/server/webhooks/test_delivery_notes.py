"""The lines of deliveries in the logs of experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.model import JobKey
from riseml.server.webhooks.delivery_notes import DeliveryNotes
from riseml.store.logs.log_store import LogStore


class DamagedLogs(LogStore):
    """Cannot read what is there."""

    def append_frames(self, key: JobKey, frames: object) -> None:
        raise ValueError("no record")


def test_a_damaged_log_does_not_delay_a_delivery(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    published: list[int] = []
    DeliveryNotes(DamagedLogs(tmp_path / "damaged"), published.append).note(4, "got the notice")
    assert published == []
    assert "has no line about a webhook: no record" in caplog.text
    DeliveryNotes(LogStore(tmp_path / "whole"), published.append).note(4, "got the notice")
    assert published == [4]
