"""The ends of experiments that the store has lost: no experiment that has ended runs again.

A store loses what it had when its write-ahead log is overwritten, or when a backup takes its place. A server that
starts compares its open experiments with what else says that they have ended: the journal of the home, the server's own
copy of a capsule, and the capsule in the output, which is there even after a backup of the whole home.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from riseml import wire
from riseml.base.states import SENTENCES, TERMINAL, Reason, State
from riseml.model import Experiment, Job, Verdict
from riseml.planning.launch import output_folder
from riseml.server.clock import now
from riseml.store.experiments import ExperimentStore
from riseml.store.journal import EndRecord, ExperimentJournal
from riseml.wire.capsules import CAPSULE_FILE, CAPSULE_FOLDER

_MOST_CAPSULE = 64 << 20  # bytes of a capsule in an output; jobs can write there
_SAME = timedelta(seconds=1)  # a capsule has whole seconds
_REASONS = {State.FINISHED: Reason.COMPLETED, State.FAILED: Reason.EXIT_CODE, State.KILLED: Reason.CASCADE}

log = logging.getLogger(__name__)


def recover_ends(
    experiments: ExperimentStore,
    journal: ExperimentJournal,
    load_capsule: Callable[[int], wire.Capsule | None],
    output: Path | None,
) -> None:
    """Give the store again what it has lost: the ends of experiments, and the numbers that it has given.

    Args:
        experiments: the store.
        journal: of the home.
        load_capsule: returns the server's own copy of a capsule.
        output: the root of outputs, when it is a folder of this machine.

    Raises:
        StoreError: the store cannot be read or written.
    """
    last = journal.find_last()
    newest = experiments.skip_numbers(last) if last.users else None
    if newest is not None and newest.id < last.id:
        log.warning(
            "the store has lost the experiments with the ids %d to %d, which it had accepted; their logs and outputs"
            " stay, and no other experiment gets their numbers",
            newest.id + 1,
            last.id,
        )
    still_open = [experiment for experiment in experiments.load_world().experiments if experiment.state not in TERMINAL]
    ends = journal.find_ends(still_open)
    for experiment in still_open:
        end = ends.get(experiment.id) or _find_capsule_end(experiment, load_capsule, output)
        if end is not None and _fits(experiment, end):
            _restore_end(experiments, experiment, end)


def _restore_end(experiments: ExperimentStore, experiment: Experiment, end: EndRecord) -> None:
    """Store an end again. The loop then removes what is left of the experiment, and closes it."""
    moment = now()
    verdict = end.verdict or Verdict(end.state, end.reason, moment, message=end.message)
    after = replace(
        experiment,
        state=end.state,
        reason=end.reason,
        message=end.message,
        verdict=replace(verdict, again=False),
        placed_at=end.placed_at or experiment.placed_at,
        started_at=end.started_at or experiment.started_at,
        ended_at=end.ended_at or moment,
        waited=end.waited,
        waits_since=None,
        jobs=end.jobs,
    )
    if experiments.save_decision(experiment, after, moment):
        log.warning(
            "experiment %d of %s had ended as %s, which the store had lost: it does not run again",
            experiment.number,
            experiment.owner.user,
            end.state.value,
        )


def _fits(experiment: Experiment, end: EndRecord) -> bool:
    return [job.name for job in experiment.jobs] == [job.name for job in end.jobs]


def _find_capsule_end(
    experiment: Experiment, load_capsule: Callable[[int], wire.Capsule | None], output: Path | None
) -> EndRecord | None:
    """Return the end that a capsule of the experiment says; None when there is none."""
    paths = [] if output is None else [output / output_folder(experiment) / CAPSULE_FOLDER / CAPSULE_FILE]
    for capsule in (load_capsule(experiment.id), *map(_read_capsule, paths)):
        try:
            end = None if capsule is None else _read_end(experiment, capsule)
        except (KeyError, TypeError, ValueError, AttributeError):  # a job has written into it
            continue
        if end is not None:
            return end
    return None


def _read_capsule(path: Path) -> wire.Capsule | None:
    """Return what a capsule in an output holds; None: it is not a file that can be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as opened:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_CAPSULE:
                return None
            capsule: wire.Capsule = json.loads(opened.read())
            return capsule
    except (OSError, ValueError, RecursionError):
        return None


def _read_end(experiment: Experiment, capsule: wire.Capsule) -> EndRecord | None:
    """Return the end in a capsule; None: it is that of another experiment, or the experiment had not ended."""
    times = capsule["times"]
    state = State(capsule["state"])
    created = _read_time(times["created_at"])
    ended = _read_time(times["ended_at"])
    if state not in TERMINAL or ended is None or created is None or abs(created - experiment.created_at) > _SAME:
        return None
    rows = {row["name"]: row for row in capsule["jobs"]}
    return EndRecord(
        state=state,
        reason=Reason(capsule["reason"]),
        message="" if capsule["message"] == SENTENCES[Reason(capsule["reason"])] else capsule["message"],
        verdict=None,
        placed_at=_read_time(times["placed_at"]),
        started_at=_read_time(times["started_at"]),
        ended_at=ended,
        jobs=tuple(_end_job(job, rows.get(job.name), ended) for job in experiment.jobs),
    )


def _end_job(job: Job, row: wire.CapsuleJob | None, ended: datetime) -> Job:
    """Return the record of a job as its row in the capsule says; a build has none."""
    if job.state in TERMINAL:
        return job
    if row is None:
        return replace(job, state=State.FINISHED, reason=Reason.CACHED, message="", ended_at=ended)
    state = State(row["state"])
    state = state if state in TERMINAL else State.KILLED
    return replace(
        job,
        state=state,
        reason=_REASONS[state],
        message="",
        attempt=max(job.attempt, row["attempt"]),
        exit_code=row["exit_code"],
        started_at=_read_time(row["started_at"]),
        ended_at=_read_time(row["ended_at"]) or ended,
    )


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
