"""Log entries and the end of an experiment as lines of text, in the form of RiseML's transcript. Pure.

`riseml.cli.output.brief_log` has the form that commands use without `--long` and RISEML_LOG=classic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from riseml.base.names import BUILD
from riseml.base.records import dataclass
from riseml.cli.output.saved_view import describe_saved
from riseml.cli.output.style import paint, paint_state
from riseml.cli.output.text import clean_text, count_run_seconds, format_duration, format_moment, parse_moment

if TYPE_CHECKING:
    from riseml import wire

ID_WIDTH = 13
"""Columns of the ID before the bar, as RiseML printed it."""

_LAST_LINES = 10
_MOST_CAUSES = 3  # the most causes of failed members that are listed
_INDENT = " " * len("[2026-08-31T07:23:46Z] ")
JOB_COLOURS = ("36", "33", "35", "34", "32", "96", "93", "95", "94", "92")
"""The colours of jobs, in the order in which they print."""

_SELF_EXPLAINING = frozenset({"SUBMITTED", "RUNNING", "PLACED", "WAITING_FOR_IMAGE"})
"""Reasons that add nothing to the state that they accompany."""


@dataclass(slots=True)
class LogFormatter:
    """Turns log entries into lines; each job keeps its colour.

    Example:
        LogFormatter(colour=False, width=get_id_width(experiment)).format_entry(entry)
    """

    colour: bool = False
    width: int = ID_WIDTH  # columns of the ID
    _prefixes: dict[str, str] = field(default_factory=dict)  # by ID

    def format_entry(self, entry: wire.StateEntry | wire.LineEntry | wire.LinesEntry) -> list[str]:
        """Return the lines of one entry."""
        prefix = self._prefixes.get(entry["id"]) or self._add_prefix(entry["id"])
        if entry["type"] == "lines":
            return self._format_batch(prefix, entry["text"])
        time = clean_text(format_moment(entry["time"]))
        if entry["type"] == "line":
            return [f"{prefix}[{time}] {clean_text(entry['text'], colours=self.colour)}"]
        state = clean_text(entry["state"])
        first = f"{prefix}[{time}] --> {paint_state(state, state, colour=self.colour)}"
        return [first, *(f"{prefix}{_INDENT}{clean_text(line)}" for line in _describe_reason(entry))]

    def _format_batch(self, prefix: str, text: str) -> list[str]:
        """Return many lines, each `<time> <text>` in the entry."""
        rows = (row.partition(" ") for row in text.removesuffix("\n").split("\n"))
        if text.replace("\n", "").isprintable():  # the usual case: no line needs cleaning
            return [f"{prefix}[{time[:19]}Z] {printed}" for time, _, printed in rows]
        return [
            f"{prefix}[{clean_text(format_moment(time))}] {clean_text(printed, colours=self.colour)}"
            for time, _, printed in rows
        ]

    def _add_prefix(self, identity: str) -> str:
        plain = f"{clean_text(identity):<{self.width}} |"
        jobs = sum(is_job_id(prefix) for prefix in self._prefixes)
        code = JOB_COLOURS[jobs % len(JOB_COLOURS)] if is_job_id(identity) else "1"
        self._prefixes[identity] = paint(plain, code, colour=self.colour) + " "
        return self._prefixes[identity]


def is_job_id(identity: str) -> bool:
    """Return whether an ID names a job, and not an experiment."""
    return any(part[:1].isalpha() for part in identity.split(".")[1:])


def is_start_of_tensorboard(entry: wire.StateEntry | wire.LineEntry | wire.LinesEntry) -> bool:
    """Return whether an entry says that the TensorBoard of a training runs."""
    return entry["type"] == "state" and entry["state"] == "RUNNING" and entry["id"].endswith(".tensorboard")


def _describe_reason(entry: wire.StateEntry) -> Iterator[str]:
    """Yield the reason, the message and the exit code, unless the state already implies them."""
    reason = entry["reason"]
    message = entry["message"]
    if reason not in _SELF_EXPLAINING:
        yield f"Reason: {reason}"
        if entry["sentence"].upper() != reason.replace("_", " "):
            message = message or entry["sentence"]
    first, *more = message.splitlines() or [""]
    if first and first != f"exit code {entry['exit_code']}":
        yield f"Message: {first}"
    yield from (f"         {line}" for line in more)
    if entry["exit_code"] is not None:
        yield f"Exit Code: {entry['exit_code']}"


def get_id_width(experiment: wire.ExperimentView) -> int:
    """Return the columns of the IDs in an experiment's log: RiseML's width, or that of a longer ID."""
    inside = (job for single in (experiment, *experiment["experiments"]) for job in single["jobs"])
    return max(ID_WIDTH, *(len(job["id"]) for job in inside), 0)


def describe_end(end: wire.EndEntry, experiment: wire.ExperimentView) -> list[str]:
    """Return how an experiment ended: state, first cause, exit code, last lines, advice, the folder of its output."""
    return [
        clean_text(describe_result(end, experiment)),
        *list_causes(experiment),
        *list_last_lines(experiment),
        *list_advice(experiment),
        *(clean_text(f"{title}: {text}") for title, text in list_places(experiment)),
    ]


def describe_result(end: wire.EndEntry, experiment: wire.ExperimentView) -> str:
    """Return the state in which an experiment ended, after which time, and why; text of jobs is not made safe."""
    text = f"Experiment {end['id']} {end['state']}"
    if experiment["started_at"] and experiment["ended_at"]:
        seconds = count_run_seconds(experiment, parse_moment(experiment["ended_at"]))
        text += f" after {format_duration(seconds)}"
    if end["state"] == "FINISHED" and experiment["type"] != "set":
        return f"{text}: {end['message']}" if end["reason"] == "NOT_FINITE" and end["message"] else text
    is_set = experiment["type"] == "set"  # its cause has a line of its own
    job = f"{end['id']}.{end['cause']}" if end["cause"] and not is_set else ""
    is_own = end["cause"] == BUILD  # riseml itself chose it; the message has that of the step
    code = f"exit code {end['exit_code']}" if end["exit_code"] is not None and not (is_set or is_own) else ""
    why = end["message"].splitlines()[0] if end["message"] else ""
    parts = [job, *((why,) if code in why else (why, code))]
    return ": ".join([text, *filter(None, parts)])


def list_places(experiment: wire.ExperimentView) -> list[tuple[str, str]]:
    """Return where the output of an experiment is, and what of it is saved in a store, each with a title."""
    places = [("Output", experiment["output"])] if experiment["output"] else []
    saved = experiment.get("saved")  # a server of an earlier version saves nothing
    return places if saved is None else [*places, ("Saved", describe_saved(experiment["id"], saved, None))]


def list_causes(experiment: wire.ExperimentView, has_said: Callable[[str], bool] = lambda _: False) -> list[str]:
    """Return why members of a set failed, the most common cause first: `Failed: 144.1 and 2 others: exit code 1`.

    Args:
        experiment: the set.
        has_said: returns whether the user has read a message already; a line leaves it out then.
    """
    causes: dict[str, list[str]] = {}
    for member in experiment["experiments"]:
        if member["state"] == "FAILED":
            first, *_ = member["message"].splitlines() or [member["reason"]]
            causes.setdefault("" if has_said(member["message"]) else first, []).append(member["id"])
    ordered = sorted(causes.items(), key=lambda pair: -len(pair[1]))
    lines = [": ".join(filter(None, ("Failed", _join_first(ids), cause))) for cause, ids in ordered[:_MOST_CAUSES]]
    if len(ordered) > _MOST_CAUSES:
        lines.append(f"Failed: {sum(len(failed) for _, failed in ordered[_MOST_CAUSES:])} more, for other reasons")
    return list(map(clean_text, lines))


def _join_first(names: list[str]) -> str:
    more = len(names) - 1
    return names[0] if not more else f"{names[0]} and {more} other{'' if more == 1 else 's'}"


def list_last_lines(experiment: wire.ExperimentView) -> list[str]:
    """Return the last lines of the job that caused the failure, under a title."""
    printed = experiment["last_lines"][-_LAST_LINES:]
    if not printed:
        return []
    title = clean_text(f"Last lines of {experiment['id']}.{experiment['cause']}:")
    return [title, *(f"  {clean_text(line)}" for line in printed)]


def list_advice(experiment: wire.ExperimentView) -> list[str]:
    """Return what ended a failed experiment and what to do next; empty when it is not known."""
    advice = experiment.get("advice")  # a server that an older version started has none
    return [clean_text(f"Advice: {advice}")] if advice else []
