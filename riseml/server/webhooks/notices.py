"""Notices for webhooks: the end of an experiment or of a set, a metric that has reached a value, and a remark. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from riseml.base.names import experiment_name
from riseml.base.records import dataclass
from riseml.base.states import SENTENCES, State
from riseml.base.terminal_text import plain_line
from riseml.control.rollup import describe_set_end, roll_up_set
from riseml.control.search_steps import find_search_failure
from riseml.model import Experiment, SearchRecord
from riseml.store.ends import ExperimentEnd
from riseml.store.milestones import Milestone
from riseml.store.noted_remarks import NotedRemark

_LONGEST_MESSAGE = 1000  # characters


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for a webhook."""

    place: str  # unique among the deliveries, and the same whenever the notice is sent
    experiment: int  # key of the experiment whose log shows the delivery
    name: str  # the ID of the experiment or the set: `4`, `144`
    at: datetime
    short: str  # for the log: `FAILED`
    sentence: str  # for people
    document: Mapping[str, object]  # for programs
    state: State | None = None  # in which the experiment or the set has ended; None: it goes on


def make_end_notice(end: ExperimentEnd) -> Notice:
    """Return the notice of the end of one experiment."""
    name = experiment_name(end.number, end.sub)
    message = _clean_message(end.message)
    why = f": {message}" if message else ""
    return Notice(
        place=str(end.id),
        experiment=end.experiment,
        name=name,
        at=end.noticed_at,
        short=end.state.value,
        sentence=f"experiment {name} of {end.project} {end.state.value}{_describe_time(end)}{why}",
        document={"event": "experiment.ended", "experiment": _make_document(end, name, message)},
        state=end.state,
    )


def make_set_notice(end: ExperimentEnd, members: Sequence[Experiment], search: SearchRecord | None = None) -> Notice:
    """Return the notice of the end of a set, which is the end of its last experiment, with its search if it has one."""
    failure = find_search_failure(search)
    state, reason = roll_up_set(members, failure=failure)
    name = str(end.number)
    message = describe_set_end(members) + (f". {SENTENCES[failure]}" if failure else "")
    started = min((member.started_at for member in members if member.started_at is not None), default=None)
    document = _make_document(end, name, message) | {
        "state": state.value,
        "reason": reason.value,
        "started_at": _format_moment(started),
        "experiments": len(members),
    }
    return Notice(
        place=f"s{end.id}",
        experiment=end.experiment,
        name=name,
        at=end.noticed_at,
        short=state.value,
        sentence=f"set {name} of {end.project} {state.value}: {message}",
        document={"event": "set.ended", "experiment": document},
        state=state,
    )


def make_milestone_notice(milestone: Milestone) -> Notice:
    """Return the notice of a metric that has reached a value."""
    name = experiment_name(milestone.number, milestone.sub)
    step = "" if milestone.step is None else f" at step {milestone.step}"
    value = f"{milestone.value:g}{step}"
    return Notice(
        place=f"m{milestone.id}",
        experiment=milestone.experiment,
        name=name,
        at=milestone.at,
        short=milestone.condition,
        sentence=f"experiment {name} of {milestone.project} has reached {milestone.condition}: {value}",
        document={
            "event": "metric.reached",
            "experiment": {"id": name, "user": milestone.user, "project": milestone.project},
            "metric": {
                "condition": milestone.condition,
                "value": milestone.value,
                "step": milestone.step,
                "at": _format_moment(milestone.at),
            },
        },
    )


def make_remark_notice(remark: NotedRemark) -> Notice:
    """Return the notice of what is probably wrong with an experiment."""
    name = experiment_name(remark.number, remark.sub)
    text = _clean_message(remark.text)
    job = None if remark.job is None else f"{name}.{remark.job}"
    return Notice(
        place=f"r{remark.id}",
        experiment=remark.experiment,
        name=name,
        at=remark.at,
        short=f"remark {remark.kind}",
        sentence=f"{'experiment ' + name if job is None else 'job ' + job} of {remark.project}: {text}",
        document={
            "event": "experiment.remark",
            "experiment": {"id": name, "user": remark.user, "project": remark.project},
            "remark": {"kind": remark.kind, "job": remark.job, "text": text, "at": _format_moment(remark.at)},
        },
    )


def _make_document(end: ExperimentEnd, name: str, message: str) -> dict[str, object]:
    return {
        "id": name,
        "user": end.user,
        "project": end.project,
        "state": end.state.value,
        "reason": end.reason,
        "message": message,
        "started_at": _format_moment(end.started_at),
        "ended_at": _format_moment(end.ended_at),
    }


def _describe_time(end: ExperimentEnd) -> str:
    if end.started_at is None:
        return ""
    return f" after {max(0, int((end.ended_at - end.started_at).total_seconds() - end.waited))} s"


def _format_moment(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _clean_message(text: str) -> str:
    """Return a message, which may quote a job, as one short line without codes of a terminal."""
    line = " ".join(plain_line(text).split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"
