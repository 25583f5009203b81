"""What two jobs print in tests: frames, long lines and a report; and the texts of the lines in their log."""

from __future__ import annotations

from riseml.base.names import JobName
from riseml.model import Frame, JobKey
from riseml.store.logs.line_state import LONGEST_LINE
from riseml.store.logs.log_store import LogStore, read_all_lines

KEY = JobKey(4, JobName("worker.1"), 1)
OTHER = JobKey(4, JobName("master"), 2)
MARK = b" [riseml: line cut at 1 MiB]"
HALF = LONGEST_LINE // 2
REPORT = b'riseml.report {"step": 3, "loss": 0.5}'


def frame(index: int, text: bytes, stream: int = 1) -> Frame:
    return Frame(f"2026-08-31T07:23:{index // 10:02d}.{index % 10}Z", stream, text)


def texts(logs: LogStore) -> list[tuple[str, bytes]]:
    return [(line.job, line.text) for line in read_all_lines(logs, 4)]
