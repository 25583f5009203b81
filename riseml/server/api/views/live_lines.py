"""What a table of experiments says of those that run: how far they are, and what they said last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from riseml import wire
from riseml.base.errors import LogUnreadable, NotFound
from riseml.base.records import dataclass
from riseml.base.states import JobDuty, Reason, State
from riseml.control.rollup import roll_up_set
from riseml.control.search_steps import find_search_failure
from riseml.model import Experiment, Job, SearchRecord
from riseml.server.api.views.progress_views import find_job_progress
from riseml.server.reconcile.progress_tracker import ProgressTracker
from riseml.server.services import Stores
from riseml.server.written_lines import is_about_files
from riseml.store.outcomes import ExperimentOutcome

_LINES = 20  # last lines among which one with text is sought
_LONGEST = 300  # characters of a line


@dataclass(frozen=True, slots=True)
class LiveWords:
    """What is said of one line of a table."""

    progress: wire.ProgressView | None = None
    latest: str = ""  # the last line of the log; of a set what its search does; empty: nothing


class _ShownMember(NamedTuple):
    """A member of a set for `roll_up_set`."""

    state: State
    reason: Reason
    started: str

    @property
    def started_at(self) -> str | None:
        """When it started; None: it has not."""
        return self.started or None


def describe_running(identity: int, stores: Stores, tracker: ProgressTracker) -> LiveWords:
    """Return what is said of an experiment that runs, by its key in the store."""
    try:
        experiment = stores.experiments.get_record(identity)
    except NotFound:  # it was removed meanwhile
        return LiveWords()
    parts = [find_job_progress(experiment, job, tracker) for job in experiment.jobs]
    of_jobs = [part for part in parts if part is not None]
    progress = min(of_jobs, key=lambda part: (part["fraction"], part["job"]), default=None)
    return LiveWords(progress, _read_last_line(experiment, stores))


def _read_last_line(experiment: Experiment, stores: Stores) -> str:
    """Return the last line with text of the job that runs and decides, or else helps or prepares."""
    duties = (JobDuty.DECIDES, JobDuty.HELPS, JobDuty.PREPARES)
    job = min(filter(_runs, experiment.jobs), key=lambda job: duties.index(job.part), default=None)
    if job is None:
        return ""
    try:
        lines = stores.logs.read_last_lines(experiment.key_of(job), _LINES)
    except LogUnreadable:
        return ""
    texts = [line.text.decode("utf-8", "replace") for line in lines if not is_about_files(line)]
    return next((text.strip()[-_LONGEST:] for text in reversed(texts) if text.strip()), "")


def _runs(job: Job) -> bool:
    return job.state is State.RUNNING and job.part not in (JobDuty.SERVES, JobDuty.WATCHES)


def roll_up_group(
    outcomes: Sequence[ExperimentOutcome], starts: Mapping[int, str], search: SearchRecord | None
) -> State:
    """Return the state of the members of a set that a table shows.

    Args:
        outcomes: the members.
        starts: when each of them started, by its key in the store; empty: it has not.
        search: of the set; None: it has none.
    """
    members = [_ShownMember(outcome.state, Reason(outcome.reason), starts.get(outcome.id, "")) for outcome in outcomes]
    goes_on = search is not None and search.end is None
    return roll_up_set(members, goes_on=goes_on, failure=find_search_failure(search))[0]
