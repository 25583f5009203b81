"""The answer of `job_programs.stack_reader` as records. A job may have changed it on its way: each field is checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from riseml.diagnosis.spy_dump import UnreadableDump, parse_dump, shorten
from riseml.diagnosis.stacks import ProcessStacks, ThreadStack
from riseml.job_programs.process_facts import LONGEST_COMMAND, MOST_PROCESSES

_LONGEST_NAME = 64  # characters of a state or a function of the kernel
_LONGEST_TROUBLE = 500  # characters


def parse_answer(job: str, text: bytes, folder: str) -> tuple[ProcessStacks, ...]:
    """Return the processes of a job from the printed answer; see `read_rows`.

    Raises:
        UnreadableDump: the text is not such an answer.
    """
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableDump("the program that reads stacks printed something else") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnreadableDump("the program that reads stacks printed something else")
    return read_rows(job, rows, folder)


def read_rows(job: str, rows: Iterable[Mapping[str, object]], folder: str) -> tuple[ProcessStacks, ...]:
    """Return the processes of a job.

    Args:
        job: its name: `worker.2`.
        rows: as `job_programs.stack_reader` makes them.
        folder: the working folder of the job, see `parse_dump`.
    """
    return tuple(_read_row(job, row, folder) for row in list(rows)[:MOST_PROCESSES])


def _read_row(job: str, row: Mapping[str, object], folder: str) -> ProcessStacks:
    dump = _read_text(row, "dump")
    trouble = shorten(_read_text(row, "trouble"), _LONGEST_TROUBLE)
    rank = row.get("rank")
    threads: tuple[ThreadStack, ...] = ()
    try:
        threads = parse_dump(dump.encode("utf-8", "surrogateescape"), folder) if dump else ()
    except (UnreadableDump, UnicodeEncodeError) as error:
        trouble = str(error)
    return ProcessStacks(
        job=job,
        pid=_read_number(row, "pid"),
        parent=_read_number(row, "parent"),
        command=shorten(_read_text(row, "command"), LONGEST_COMMAND),
        state=shorten(_read_text(row, "state"), _LONGEST_NAME),
        wait_channel=shorten(_read_text(row, "wait_channel"), _LONGEST_NAME),
        rank=rank if isinstance(rank, int) and 0 <= rank < 1 << 31 else None,
        threads=threads,
        trouble=trouble,
        open_files=_read_number(row, "open_files"),
        most_files=_read_number(row, "most_files"),
    )


def _read_text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _read_number(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0
