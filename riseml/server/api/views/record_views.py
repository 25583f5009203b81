"""Records in the shapes of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, TypedDict

from riseml import wire
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.names import CanonicalId, name_for_reader, show_framework
from riseml.base.records import dataclass
from riseml.base.roles import Scope
from riseml.base.states import SENTENCES, TERMINAL, CompanionKind, Reason, State
from riseml.control.permissions import may_change, may_see
from riseml.control.rollup import find_failed_job, find_usual_failure, roll_up_set
from riseml.control.search_steps import find_search_failure
from riseml.control.settle import signal_name
from riseml.control.visible_names import name_seen
from riseml.files.storage.outputs import show_output
from riseml.model import Caller, Experiment, Job, Sample, SearchRecord, Traffic
from riseml.planning.launch import StorageRoots
from riseml.server.api.views.search_view import describe_end, show_search
from riseml.store.annotations import Annotations, Subject
from riseml.store.experiments import ExperimentDetail
from riseml.store.outcomes import ExperimentRun


@dataclass(frozen=True, slots=True)
class BadEnd:
    """The last lines and the advice that users see of an experiment that failed."""

    last_lines: tuple[str, ...] = ()  # the last lines of the job that caused it
    advice: str = ""  # what the user can do next; empty: not known


NO_BAD_END = BadEnd()
NOT_ANNOTATED: Annotations = MappingProxyType({})


class _Said(TypedDict):
    """The keys of an answer that hold what users have said."""

    name: str
    tags: list[str]
    note: str
    starred: bool
    archived: bool


_TYPES: dict[CompanionKind, Literal["tensorboard", "notebook"]] = {
    CompanionKind.TENSORBOARD: "tensorboard",
    CompanionKind.NOTEBOOK: "notebook",
}


def show_time(moment: datetime | None) -> str | None:
    """Return a moment as RFC 3339 in UTC, in whole seconds."""
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def count_run_seconds(run: Experiment | ExperimentRun, moment: datetime) -> float | None:
    """Return for how many seconds an experiment had run at a moment, without waits between two attempts; None: it had
    not started."""
    if run.started_at is None:
        return None
    end = run.ended_at or run.waits_since or moment
    return max(0.0, (end - run.started_at).total_seconds() - run.waited)


def name_subject(experiment: Experiment) -> Subject:
    """Return what an annotation of an experiment is about."""
    return Subject(experiment.number, experiment.sub or 0)


def show_annotation(annotation: Annotation) -> _Said:
    """Return what users have said, as keys of an answer."""
    return {
        "name": annotation.name,
        "tags": list(annotation.tags),
        "note": annotation.note,
        "starred": annotation.starred,
        "archived": annotation.archived,
    }


def show_job(experiment: Experiment, job: Job, caller: Caller | None = None) -> wire.JobView:
    """Return one job for a caller; None: its user asks."""
    return {
        "id": f"{name_seen(caller, experiment)}.{job.name}",
        "name": job.name,
        "state": job.state.value,
        "reason": job.reason.value,
        "message": _message(job),
        "host": job.host,
        "attempt": job.attempt,
        "exit_code": job.exit_code,
        "signal": signal_name(job.exit_code),
        "oom": job.oom,
        "cpus": job.resources.cpus,
        "mem_mib": job.resources.mem,
        "gpus": job.resources.gpus,
        "image": experiment.image_of(job.name).base,
        "shell": None if job.shell is None else job.shell.value,
        "started_at": show_time(job.started_at),
        "ended_at": show_time(job.ended_at),
        "progress": None,
        "rates": [],
    }


def _message(job: Job) -> str:
    if job.ending is not None and job.state not in TERMINAL:
        return f"Being stopped. {SENTENCES[job.ending]}"
    return job.message or SENTENCES[job.reason]


def show_experiment(
    detail: ExperimentDetail,
    output: StorageRoots,
    canonical_id: CanonicalId | None = None,
    end: BadEnd = NO_BAD_END,
    metrics: Iterable[wire.MetricView] = (),
    annotation: Annotation = NO_ANNOTATION,
    caller: Caller | None = None,
) -> wire.ExperimentView:
    """Return one experiment for a caller (None: its user); with `canonical_id`, only the jobs that it names."""
    experiment = detail.experiment
    plan = experiment.plan
    jobs = [job for job in experiment.jobs if canonical_id is None or canonical_id.names(job.name)]
    return {
        "id": name_seen(caller, experiment),
        "user": experiment.owner.user,
        "project": experiment.project,
        "team_project": experiment.team_project,
        "may_change": caller is None or may_change_record(caller, experiment.owner.user, experiment.team_project),
        **show_annotation(annotation),
        "type": "experiment" if plan.companion is None else _TYPES[plan.companion.kind],
        "shows": [] if plan.companion is None else list(plan.companion.shows),
        "state": experiment.state.value,
        "reason": experiment.reason.value,
        "message": experiment.message or SENTENCES[experiment.reason],
        "cause": find_failed_job(experiment),
        "last_lines": list(end.last_lines),
        "advice": end.advice,
        "created_at": show_time(experiment.created_at) or "",
        "started_at": show_time(experiment.started_at),
        "ended_at": show_time(experiment.ended_at),
        "waited": round(experiment.waited, 3),
        "waits_since": show_time(experiment.waits_since),
        "image": plan.image.base,
        "image_digest": dict(experiment.resolved).get(plan.image.base),
        "framework": show_framework(plan.framework),
        "run": [],
        "concurrency": experiment.concurrency,
        "tensorboard": None,
        "parameters": dict(plan.parameters),
        "output": "" if experiment.reads else _name_output(experiment, output, caller),
        "exit_code": exit_code_of(experiment),
        "closed": experiment.closed,
        "after": list(_list_predecessors(experiment, caller)),
        "jobs": [show_job(experiment, job, caller) for job in jobs],
        "experiments": [],
        "search": None,
        "metrics": list(metrics),
        "main_metric": None,
        "progress": None,
        "remarks": [],
        "diagnosis": None,
        "notes": list(detail.notes),
        "saved": None,
        "written": None,
    }


def _name_output(experiment: Experiment, output: StorageRoots, caller: Caller | None) -> str:
    """Return where a caller finds an output: in a folder of the server's machine, or from elsewhere by `riseml cp`."""
    is_remote = caller is not None and bool(caller.key)
    return f"output://{name_seen(caller, experiment)}" if is_remote else show_output(output, experiment)


def may_change_record(caller: Caller, user: str, team_project: str | None) -> bool:
    """Return True when a caller may change what a user has, by their role, and by the scope of their key."""
    return caller.scope >= Scope.RUN and may_change(caller, user, team_project)


def _choose_reader(experiment: Experiment, caller: Caller | None) -> str:
    return experiment.owner.user if caller is None else caller.user


def _list_predecessors(experiment: Experiment, caller: Caller | None) -> Iterator[str]:
    """Yield what an experiment waits for, or has waited for, without what the caller does not see."""
    reader = experiment.owner.user if caller is None else caller.user
    for predecessor in experiment.plan.after:
        if caller is None or may_see(caller, predecessor.owner, predecessor.team_project):
            name = name_for_reader(reader, predecessor.owner, predecessor.number, predecessor.sub)
            yield f"{name}:any" if predecessor.accepts_any_end else name


def show_set(
    details: tuple[ExperimentDetail, ...],
    output: StorageRoots,
    search: SearchRecord | None = None,
    metrics: Mapping[int, list[wire.MetricView]] = MappingProxyType({}),
    end: BadEnd = NO_BAD_END,
    annotations: Annotations = NOT_ANNOTATED,
    caller: Caller | None = None,
) -> wire.ExperimentView:
    """Return a whole set with its members inside.

    Args:
        details: every member, at least one.
        output: where outputs are.
        search: the search of the set; None: it has none.
        metrics: the metrics of each member, by its key in the store.
        end: the end of the member that stands for those that failed.
        annotations: of the set and its members.
        caller: the user of the request; None: its user.
    """
    members = [
        show_experiment(
            detail,
            output,
            metrics=metrics.get(detail.experiment.id, ()),
            annotation=annotations.get(name_subject(detail.experiment), NO_ANNOTATION),
            caller=caller,
        )
        for detail in details
    ]
    experiments = [detail.experiment for detail in details]
    names = {metric["name"] for views in metrics.values() for metric in views}
    goes_on = search is not None and search.end is None
    state, reason = roll_up_set(experiments, goes_on=goes_on, failure=find_search_failure(search))
    number = experiments[0].number
    reader = _choose_reader(experiments[0], caller)
    name = name_for_reader(reader, experiments[0].owner.user, number)
    message = "" if goes_on else describe_end(experiments, search, names, reader)
    if state not in TERMINAL and any(experiment.paused for experiment in experiments):
        reason = Reason.PAUSED
        message = f"Paused by a user: `riseml search {name} --resume` lets it go on"
    end = end if state is State.FAILED else NO_BAD_END
    return {
        **members[0],
        **_show_set_times(experiments, goes_on=goes_on),
        "id": name,
        **show_annotation(annotations.get(Subject(number), NO_ANNOTATION)),
        "type": "set",
        "state": state.value,
        "reason": reason.value,
        "message": message or SENTENCES[reason],
        "cause": name_cause(state, experiments),
        "last_lines": list(end.last_lines),
        "advice": end.advice,
        "parameters": {},
        "output": members[0]["output"].rpartition("/" if members[0]["output"].startswith("/") else ".")[0],
        "concurrency": experiments[0].concurrency if search is None else search.concurrency,
        "exit_code": 0 if state is State.FINISHED else find_exit_code(state, experiments),
        "closed": all(experiment.closed for experiment in experiments) and not goes_on,
        "jobs": [],
        "experiments": members,
        "metrics": [],
        "main_metric": None,
        "progress": None,
        "remarks": [],
        "diagnosis": None,
        "search": None if search is None else show_search(search, names, reader),
    }


class _SetTimes(TypedDict):
    """The times of a set, which does not wait between attempts: its members do."""

    started_at: str | None
    ended_at: str | None
    waited: float
    waits_since: None


def _show_set_times(experiments: Sequence[Experiment], *, goes_on: bool) -> _SetTimes:
    """Return when the first member of a set began, and the last one ended."""
    started = [experiment.started_at for experiment in experiments if experiment.started_at is not None]
    ended = [experiment.ended_at for experiment in experiments if experiment.ended_at is not None]
    has_ended = len(ended) == len(experiments) and not goes_on
    return {
        "started_at": show_time(min(started, default=None)),
        "ended_at": show_time(max(ended)) if has_ended else None,
        "waited": 0.0,
        "waits_since": None,
    }


def show_all(
    details: Iterable[ExperimentDetail],
    output: StorageRoots,
    searches: Mapping[int, SearchRecord],
    last_values: Mapping[int, Mapping[str, float | None]] = MappingProxyType({}),
    annotations: Annotations = NOT_ANNOTATED,
    caller: Caller | None = None,
) -> list[wire.ExperimentView]:
    """Return experiments in order; the members of a set are inside their set.

    Args:
        details: the experiments.
        output: where their outputs are.
        searches: those of the sets among them, by the key of the set.
        last_values: of the metrics of each of them, by its key, in the order of the first reports.
        annotations: of all of them.
        caller: the user of the request; None: their user.
    """
    groups: dict[tuple[str, int], list[ExperimentDetail]] = {}
    for detail in details:
        groups.setdefault((detail.experiment.owner.user, detail.experiment.number), []).append(detail)
    views: list[wire.ExperimentView] = []
    for group in groups.values():
        set_id = group[0].experiment.set_id
        search = None if set_id is None else searches.get(set_id)
        if set_id is None:
            view = show_experiment(
                group[0],
                output,
                annotation=annotations.get(name_subject(group[0].experiment), NO_ANNOTATION),
                caller=caller,
            )
        else:
            view = show_set(tuple(group), output, search, annotations=annotations, caller=caller)
        for detail, single in zip(group, view["experiments"] or [view], strict=True):
            single["main_metric"] = _choose_main_metric(last_values.get(detail.experiment.id), search)
        views.append(view)
    return views


def _choose_main_metric(
    values: Mapping[str, float | None] | None, search: SearchRecord | None
) -> wire.MainMetric | None:
    """Return what the search is for, else what the experiment reported first; None: it has not reported that."""
    name = next(iter(values or ()), None) if search is None else search.plan.search.metric
    return None if not values or name is None or name not in values else {"name": name, "last": values[name]}


def name_cause(state: State, members: Sequence[Experiment]) -> str | None:
    """Return which job made a set of this state fail, for the usual cause: `3.train`; without a job, the member."""
    failed = find_usual_failure(members) if state is State.FAILED else None
    return None if failed is None else ".".join(filter(None, [str(failed.sub), find_failed_job(failed)]))


def find_exit_code(state: State, members: Sequence[Experiment]) -> int | None:
    """Return the exit code of the job that `name_cause` names; None when it names none."""
    failed = find_usual_failure(members) if state is State.FAILED else None
    return None if failed is None else exit_code_of(failed)


def exit_code_of(experiment: Experiment) -> int | None:
    """Return the exit code of the job that decided; None while there is none."""
    verdict = experiment.verdict
    for job in experiment.jobs:
        if verdict is not None and job.name == verdict.job:
            return job.exit_code
    return None


def show_sample(
    experiment: Experiment,
    job: Job,
    last: Sample | None,
    lines: int | None,
    node: str | None = None,
    caller: Caller | None = None,
) -> wire.SampleView:
    """Return the last sample of a job together with its requested resources.

    Args:
        experiment: the record of its experiment.
        job: its record.
        last: its last sample.
        lines: the number of its lines since the server follows its log.
        node: the machine that its host has chosen for it.
        caller: the user of the request; None: its user.
    """
    traffic = Traffic() if last is None or last.traffic is None else last.traffic
    return {
        "id": f"{name_seen(caller, experiment)}.{job.name}",
        "project": experiment.project,
        "state": job.state.value,
        "host": job.host,
        "node": node,
        "time": None if last is None else show_time(last.at),
        "cpu": None if last is None else round(last.cpu, 3),
        "mem": None if last is None else _percent(last.mem_used, last.mem_total),
        "mem_used": None if last is None else last.mem_used,
        "mem_total": None if last is None else last.mem_total,
        "gpu": None if last is None else last.gpu,
        "gpu_mem": None if last is None else _percent(last.gpu_mem_used, last.gpu_mem_total),
        "gpu_mem_used": None if last is None else last.gpu_mem_used,
        "gpu_mem_total": None if last is None else last.gpu_mem_total,
        "net_in": _round_rate(traffic.net_in),
        "net_out": _round_rate(traffic.net_out),
        "disk_read": _round_rate(traffic.disk_read),
        "disk_write": _round_rate(traffic.disk_write),
        "lines": lines,
        "cpus": job.resources.cpus,
        "mem_mib": job.resources.mem,
        "gpus": job.resources.gpus,
        "image": experiment.image_of(job.name).base,
    }


def _round_rate(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)


def _percent(used: int | None, total: int | None) -> float | None:
    return None if used is None or not total else round(100 * used / total, 2)
