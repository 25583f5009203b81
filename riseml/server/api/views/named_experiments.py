"""Find the experiments that a canonical ID names, and show them, with why one failed and what it wrote."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from riseml import wire
from riseml.base.annotations import NO_ANNOTATION
from riseml.base.errors import LogUnreadable, NotFound, Refused, RisemlError, UsageError
from riseml.base.names import CanonicalId, experiment_name
from riseml.base.states import JobDuty, Reason, State
from riseml.control.advice.advise import advise
from riseml.control.advice.known_failure import FailedJob
from riseml.control.advice.last_lines import PRINTED_LINES, choose_last_lines, drop_frames
from riseml.control.permissions import may_change
from riseml.control.rollup import find_failed_job, find_usual_failure
from riseml.model import Caller, Experiment, Job, SearchRecord
from riseml.server.api.views.first_report import explain_early_rule
from riseml.server.api.views.metric_views import show_summary
from riseml.server.api.views.progress_views import add_progress, add_trial_progress
from riseml.server.api.views.record_views import NO_BAD_END, BadEnd, name_subject, show_experiment, show_set
from riseml.server.api.views.remark_views import list_remarks
from riseml.server.api.views.run_views import find_tensorboard, show_run
from riseml.server.api.views.saved_views import show_saved_summary
from riseml.server.clock import now
from riseml.server.services import Services, Stores
from riseml.server.written_lines import describe_written, is_about_files
from riseml.store.experiments import ExperimentDetail
from riseml.store.logs.log_store import LogStore
from riseml.store.written_files import WrittenRecord

_MOST_FURTHER_JOBS = 8  # jobs whose logs are searched for the cause of a lost connection
_SAID_BY_ENGINE = frozenset({Reason.START_FAILED, Reason.BUILD_FAILED, Reason.DATA_FAILED, Reason.ENGINE_STOPPED})
_STOPPED_CODES = frozenset({None, 0, 128 + 9, 128 + 15})  # exit codes of jobs that the server stopped

_Metrics = Mapping[int, list[wire.MetricView]]
"""By the id of the experiment."""

log = logging.getLogger(__name__)


def find_details(canonical_id: CanonicalId, caller: Caller, stores: Stores) -> tuple[ExperimentDetail, ...]:
    """Return the experiment, or the members of the set, that an ID names.

    Raises:
        NotFound: there is none, the caller does not see it, or it has no such job.
    """
    user = canonical_id.user or caller.user
    try:
        details = stores.experiments.find_by_number(user, canonical_id.number, canonical_id.sub, caller)
    except NotFound:
        raise report_absence(canonical_id) from None
    if canonical_id.job is not None:
        jobs = [job.name for detail in details for job in detail.experiment.jobs]
        if not any(canonical_id.names(job) for job in jobs):
            names = ", ".join(dict.fromkeys(jobs))
            named = canonical_id.experiment
            raise NotFound(f"experiment {named} has no job {canonical_id.job}", f"its jobs are {names}")
    return details


def report_absence(canonical_id: CanonicalId) -> NotFound:
    """Return the error for an ID that names nothing which the caller sees: the same for what is hidden and what is not
    there."""
    named = canonical_id.experiment
    return NotFound(f"there is no experiment {named}", "`riseml status -a` lists all of yours")


def check_changeable(caller: Caller, details: Sequence[ExperimentDetail]) -> None:
    """Check that a caller, who sees these experiments, may also change them.

    Raises:
        Refused: they belong to another user, or the caller only looks at things.
    """
    for experiment in (detail.experiment for detail in details):
        if not may_change(caller, experiment.owner.user, experiment.team_project):
            name = experiment_name(experiment.number, experiment.sub)
            raise Refused(
                f"{experiment.owner.user}.{name} is not yours to change",
                f"{experiment.owner.user}, a maintainer of its project or an admin may do this",
            )


def find_single_experiment(canonical_id: CanonicalId, caller: Caller, stores: Stores) -> Experiment:
    """Return the one experiment that an ID names.

    Raises:
        NotFound: there is none.
        UsageError: the ID names a set.
    """
    details = find_details(canonical_id, caller, stores)
    if details[0].experiment.set_id is not None and canonical_id.sub is None:
        raise UsageError(f"{canonical_id} is a set", f"name one of its experiments: {canonical_id.experiment}.1")
    return details[0].experiment


def find_search(canonical_id: CanonicalId, caller: Caller, stores: Stores, reason: str) -> SearchRecord:
    """Return the search of the set that an ID names.

    Args:
        reason: why the request needs a search: `only a search makes further trials`.

    Raises:
        NotFound: there is no such experiment.
        UsageError: it is not a set, or its set has no search.
    """
    set_id = find_details(canonical_id, caller, stores)[0].experiment.set_id
    record = None
    if set_id is not None and canonical_id.sub is None:
        record = stores.searches.load_searches((set_id,)).get(set_id)
    if record is None:
        raise UsageError(
            f"{canonical_id} is not a set with a search, and {reason}",
            "write train.search into riseml.yml, and run `riseml train`",
        )
    return record


def show_details(
    details: tuple[ExperimentDetail, ...], canonical_id: CanonicalId | None, services: Services, caller: Caller
) -> wire.ExperimentView:
    """Return an experiment, or a whole set, for a caller; with `canonical_id`, only the jobs that it names.

    Raises:
        StoreError: the metrics cannot be read.
    """
    return _show_with_metrics(details, canonical_id, services, caller, _read_metrics(details, services.stores))


def show_changed_details(
    details: tuple[ExperimentDetail, ...], canonical_id: CanonicalId, services: Services, caller: Caller
) -> wire.ExperimentView:
    """Return experiments that were just changed, as `show_details` does; without metrics when they cannot be read."""
    metrics: _Metrics = {}
    try:
        metrics = _read_metrics(details, services.stores)
    except (OSError, RisemlError) as error:
        log.warning("the answer about %s has no metrics: %s", canonical_id, error)
    return _show_with_metrics(details, canonical_id, services, caller, metrics)


def explain_bad_end(experiment: Experiment, logs: LogStore) -> BadEnd:
    """Return the last lines and the advice of an experiment that failed because of a job; empty for any other."""
    cause = find_failed_job(experiment)
    first = next((job for job in experiment.jobs if job.name == cause), None)
    if first is None:
        return NO_BAD_END
    printed = _read_last_lines(experiment, first, logs)
    further_jobs = [job for job in experiment.gang if job is not first and _failed_by_itself(job)][:_MOST_FURTHER_JOBS]
    advice = advise(
        _make_failed_job(experiment, first, printed),
        lambda: [_make_failed_job(experiment, job, _read_last_lines(experiment, job, logs)) for job in further_jobs],
    )
    return BadEnd(choose_last_lines(printed), advice)


def show_written(records: Sequence[WrittenRecord]) -> wire.WrittenView | None:
    """Return what an experiment's jobs wrote outside of OUTPUT_DIR: the sum of their records; None: there is nothing to
    say.
    """
    if not records:
        return None
    return {
        "kept_files": sum(record.kept_files for record in records),
        "kept_bytes": sum(record.kept_bytes for record in records),
        "kept_names": list(dict.fromkeys(name for record in records for name in record.kept_names)),
        "lost_files": sum(record.lost_files for record in records),
        "lost_bytes": sum(record.lost_bytes for record in records),
        "lost_names": list(dict.fromkeys(name for record in records for name in record.lost_names)),
        "more": any(record.more for record in records),
        "sentences": describe_written(records),
    }


def _read_metrics(details: tuple[ExperimentDetail, ...], stores: Stores) -> _Metrics:
    summaries = stores.metrics.read_summaries([detail.experiment.id for detail in details])
    return {
        identity: [show_summary(summary) for summary in metrics.values()] for identity, metrics in summaries.items()
    }


def _show_with_metrics(
    details: tuple[ExperimentDetail, ...],
    canonical_id: CanonicalId | None,
    services: Services,
    caller: Caller,
    metrics: _Metrics,
) -> wire.ExperimentView:
    roots = services.hosts.roots
    first = details[0].experiment
    annotations = services.stores.annotations.load(first.owner.user, [first.number])
    if first.set_id is not None and (canonical_id is None or canonical_id.sub is None):
        search = services.stores.searches.load_searches((first.set_id,)).get(first.set_id)
        failed = find_usual_failure([detail.experiment for detail in details])
        end = NO_BAD_END if failed is None else explain_bad_end(failed, services.stores.logs)
        last_records = services.stores.written.load_last([detail.experiment.id for detail in details])
        written = show_written([record for records in last_records.values() for record in records])
        view = show_set(details, roots, search, metrics, end, annotations, caller)
        remark = explain_early_rule(search, services.stores.metrics) if metrics else ""  # none: the store may be away
        if view["search"] is not None and remark:
            view["search"]["message"] += f"; {remark}"
        view = add_progress({**view, "written": written}, details, services.watchers.progress)
        return add_trial_progress(view, search)
    end = explain_bad_end(first, services.stores.logs)
    annotation = annotations.get(name_subject(first), NO_ANNOTATION)
    view = show_experiment(details[0], roots, canonical_id, end, metrics.get(first.id, ()), annotation, caller)
    written = show_written(services.stores.written.load_last([first.id]).get(first.id, []))
    view = add_progress(view, details[:1], services.watchers.progress)
    diagnosis = services.watchers.diagnoser.find_last(first)
    return {
        **view,
        "diagnosis": None if diagnosis is None else {**diagnosis, "id": view["id"]},
        "remarks": list_remarks(first, services.watchers, services.stores, now()),
        "run": show_run(first, canonical_id),
        "tensorboard": find_tensorboard(first, services.hosts.is_this_machine),
        "saved": show_saved_summary(first, services.data.saver),
        "written": written,
    }


def _failed_by_itself(job: Job) -> bool:
    """Return True when the job failed, and not because the server stopped it."""
    return job.state is State.FAILED or job.oom or job.exit_code not in _STOPPED_CODES


def _read_last_lines(experiment: Experiment, job: Job, logs: LogStore) -> list[str]:
    try:
        printed = logs.read_last_lines(experiment.key_of(job), PRINTED_LINES)
    except LogUnreadable as error:
        return [f"[riseml: {error.message}]"]
    return [line.text.decode("utf-8", "replace") for line in printed if not is_about_files(line)]


def _make_failed_job(experiment: Experiment, job: Job, printed: Sequence[str]) -> FailedJob:
    planned = next((planned_job for planned_job in experiment.plan.jobs if planned_job.name == job.name), None)
    return FailedJob(
        name=f"{experiment_name(experiment.number, experiment.sub)}.{job.name}",
        reason=Reason.OUT_OF_MEMORY if job.oom else job.reason,
        exit_code=None
        if job.part is JobDuty.PREPARES
        else job.exit_code,  # riseml itself chose the exit code of a build
        lines=(*drop_frames(printed), *_list_engine_words(job)),
        limit=None if planned is None else planned.limits.mem,
        mem=job.resources.mem,
    )


def _list_engine_words(job: Job) -> list[str]:
    """Return the messages of the engine about a job that could not run."""
    return job.message.splitlines() if job.reason in _SAID_BY_ENGINE else []
