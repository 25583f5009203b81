"""The journal of a home: which experiments were accepted, and how each ended, outside of the store.

A store can lose what it had: its write-ahead log is overwritten, or a backup takes its place. An experiment that has
ended must not run again then, and no number may be given twice, because logs and outputs have it in their names. So a
file of the home gets a line for each of both, which a later server compares with the store (`server.end_recovery`):

    A ID NUMBER CREATED USER        accepted
    E ID CREATED JSON               ended, with an `EndRecord`

A line is written at once and never changed. A torn line at the end, and any other line that cannot be read, is skipped.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from riseml.base.records import dataclass
from riseml.base.states import Reason, State
from riseml.model import Experiment, Job, Verdict
from riseml.store.codec import parse_json, to_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """How an experiment ended."""

    state: State
    reason: Reason
    message: str
    verdict: Verdict | None
    placed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    jobs: tuple[Job, ...]  # in the order of the plan
    waited: float = 0.0  # seconds between its attempts; a line of an earlier version has none


@dataclass(frozen=True, slots=True)
class AcceptedRecord:
    """One accepted experiment."""

    id: int  # key in the store
    user: str
    number: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LastNumbers:
    """The largest numbers that were given."""

    id: int  # ID of an experiment in the store; 0: none
    users: Mapping[str, int]  # name of a user -> number of the newest experiment


class ExperimentJournal:
    """The journal in one file. Several threads use it at the same time.

    Args:
        path: is created with the first line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def note_accepted(self, accepted: Iterable[AcceptedRecord]) -> None:
        """Add experiments that the store has just got."""
        lines = (f"A {record.id} {record.number} {record.created_at.isoformat()} {record.user}" for record in accepted)
        self._append("".join(f"{line}\n" for line in lines))

    def note_end(self, experiment: Experiment) -> None:
        """Add the end of an experiment that the store has just got."""
        end = EndRecord(
            state=experiment.state,
            reason=experiment.reason,
            message=experiment.message,
            verdict=experiment.verdict,
            placed_at=experiment.placed_at,
            started_at=experiment.started_at,
            ended_at=experiment.ended_at,
            jobs=experiment.jobs,
            waited=experiment.waited,
        )
        self._append(f"E {experiment.id} {experiment.created_at.isoformat()} {to_text(end)}\n")

    def find_ends(self, experiments: Collection[Experiment]) -> dict[int, EndRecord]:
        """Return how experiments ended, by their ids; those whose end is not in the journal are left out."""
        ids = {
            f"E {experiment.id} {experiment.created_at.isoformat()}".encode(): experiment.id
            for experiment in experiments
        }
        ends: dict[int, EndRecord] = {}
        for line in self._read_lines() if ids else ():
            words = line.split(b" ", 3)
            identity = ids.get(b" ".join(words[:3])) if len(words) == 4 else None
            if identity is not None:
                try:
                    ends[identity] = parse_json(words[3].decode(), EndRecord)
                except ValueError:
                    log.warning("%s: the end of the experiment with the id %d cannot be read", self._path, identity)
        return ends

    def find_last(self) -> LastNumbers:
        """Return the largest numbers in the journal."""
        last = 0
        users = dict[str, int]()
        for line in self._read_lines():
            words = line.split(b" ", 4)
            if words[0] == b"A" and len(words) == 5 and words[1].isdigit() and words[2].isdigit():
                last = max(last, int(words[1]))
                user = words[4].decode("utf-8", "replace")
                users[user] = max(users.get(user, 0), int(words[2]))
        return LastNumbers(last, users)

    def _read_lines(self) -> Iterator[bytes]:
        """Yield the whole lines."""
        try:
            with self._path.open("rb") as file:
                yield from (line[:-1] for line in file if line.endswith(b"\n"))
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s cannot be read: %s", self._path, error.strerror)

    def _append(self, text: str) -> None:
        """Append lines with one write, so that lines of several threads never mix.

        The store has what they say already: a disk that is full is not a reason to refuse.
        """
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error.strerror)
