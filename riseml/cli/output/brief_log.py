"""The log of an experiment in brief: a state is one line, and a line of a job has a short prefix. Pure.

`riseml.cli.output.log_lines` has the long form, which is the transcript of RiseML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from riseml.base.names import BUILD, find_whole
from riseml.cli.output.log_lines import JOB_COLOURS, is_job_id
from riseml.cli.output.style import BEFORE_OUTPUT, ENDED_STATES, paint, paint_state
from riseml.cli.output.text import clean_text

if TYPE_CHECKING:
    from riseml import wire

_STATE_WIDTH = len("BUILDING")  # of the longest state
_GAP = "  "
_LONG = 60  # characters; a longer message comes once in a whole log, a shorter one once for each experiment

_KNOWN_REASONS = frozenset(
    {
        "CASCADE",
        "COMPLETED",
        "CONCURRENCY",
        "EXIT_CODE",
        "NO_LONGER_NEEDED",
        "NOT_STARTED",
        "PLACED",
        "PREPARE",
        "RUNNING",
        "SUBMITTED",
        "WAITING_FOR_IMAGE",
    }
)
"""Reasons whose sentence tells nothing beside the states of an experiment and its jobs."""


class BriefFormatter:
    """Turns log entries into lines; each job keeps its colour, and no message comes twice.

    Args:
        experiment: whose log it is, or a set.
        ends: the end is described below the log, so that the last state needs no line.
        colour: the lines are for a terminal with colours.

    Example:
        BriefFormatter(experiment, ends=True, colour=False).format_entry(entry)
    """

    def __init__(self, experiment: wire.ExperimentView, *, ends: bool, colour: bool = False) -> None:
        self._root = name_experiment(experiment["id"])
        self._is_set = experiment["type"] == "set"
        self._ends = ends
        self._colour = colour
        self._said: set[tuple[str, str]] = set()  # messages so far, each with its experiment or ""
        self._last = ("", 0)  # the job that printed last, and how many lines it printed since another one did
        self._jobs: dict[str, set[str]] = {}  # IDs of jobs by their experiment, without the build
        self._prefixes: dict[str, str] = {}  # by ID of the job
        self._colours: dict[str, str] = {}  # by ID of the job
        self._id_width = 0  # columns of the IDs of states
        self._name_width = 0  # columns of the names before the bars
        for single in (experiment, *experiment["experiments"]):
            for job in single["jobs"]:
                self._note_job(job["id"])
        if not self._jobs:  # the server has made none yet: there is room for usual names
            self._id_width = len(f"{self._root}.1" if self._is_set else f"{self._root}.worker.1")

    def format_entry(self, entry: wire.StateEntry | wire.LineEntry | wire.LinesEntry) -> list[str]:
        """Return the lines of one entry; none for a state that tells nothing new."""
        if entry["type"] == "state":
            return self._format_state(entry)
        prefix = self._prefixes.get(entry["id"]) or self._add_prefix(entry["id"])
        if entry["type"] == "line":
            self._count_lines(entry["id"], 1)
            return [f"{prefix}{clean_text(entry['text'], colours=self._colour)}"]
        rows = entry["text"].removesuffix("\n").split("\n")  # each `<time> <text>`
        self._count_lines(entry["id"], len(rows))
        if entry["text"].replace("\n", "").isprintable():  # the usual case: no line needs cleaning
            return [f"{prefix}{row[row.find(' ') + 1 :]}" for row in rows]
        return [f"{prefix}{clean_text(row[row.find(' ') + 1 :], colours=self._colour)}" for row in rows]

    def has_said(self, message: str) -> bool:
        """Return whether a state was printed with this long message."""
        return ("", message) in self._said

    def has_just_printed(self, job: str, lines: int) -> bool:
        """Return whether so many lines of a job are the last ones that jobs have printed."""
        last, count = self._last
        return job == last and count >= lines

    def _count_lines(self, job: str, lines: int) -> None:
        last, count = self._last
        self._last = (job, count + lines if job == last else lines)

    def _is_sole(self, job: str) -> bool:
        """Return whether a job is the only one of its experiment, beside the build."""
        return self._jobs.get(name_experiment(job), {job}) == {job}

    def _note_job(self, identity: str) -> None:
        """Add a job to those of its experiment, and make room for its names."""
        experiment = name_experiment(identity)
        if not identity.endswith(f".{BUILD}"):
            self._jobs.setdefault(experiment, set()).add(identity)
        self._id_width = max(self._id_width, len(experiment if self._is_set else identity))
        self._name_width = max(self._name_width, len(self._shorten(identity)))

    def _shorten(self, identity: str) -> str:
        """Return the name of a job: `worker.1`; in the log of a set, its ID."""
        return identity if self._is_set else identity.removeprefix(f"{name_experiment(identity)}.")

    def _add_prefix(self, identity: str) -> str:
        text = f"{clean_text(self._shorten(identity)):<{self._name_width}} |"
        self._prefixes[identity] = f"{paint(text, self._find_colour(identity), colour=self._colour)} "
        return self._prefixes[identity]

    def _find_colour(self, identity: str) -> str:
        if not is_job_id(identity):
            return "1"
        return self._colours.setdefault(identity, JOB_COLOURS[len(self._colours) % len(JOB_COLOURS)])

    def _format_state(self, entry: wire.StateEntry) -> list[str]:
        identity = entry["id"]
        if is_job_id(identity):
            self._note_job(identity)
        elif entry["state"] == "RUNNING":  # the next attempt may fail as the last one did
            self._said = {(whose, text) for whose, text in self._said if whose != identity}
        if not self._is_wanted(entry):
            return []
        first, *more = self._explain(entry) or [""]
        if not first and not self._is_news(entry):
            return []
        state = clean_text(entry["state"])
        name = paint(f"{clean_text(identity):<{self._id_width}}", self._find_colour(identity), colour=self._colour)
        line = f"{name}{_GAP}{paint_state(state, f'{state:<{_STATE_WIDTH}}' if first else state, colour=self._colour)}"
        indent = " " * (self._id_width + _STATE_WIDTH + 2 * len(_GAP))
        return [
            f"{line}{_GAP}{clean_text(first)}" if first else line,
            *(f"{indent}{clean_text(text)}" for text in more),
        ]

    def _is_wanted(self, entry: wire.StateEntry) -> bool:
        """Return whether a state may get a line: the jobs of members of a set are folded into their member."""
        identity = entry["id"]
        if identity == self._root:
            return not (self._ends and entry["state"] in ENDED_STATES)
        if entry["state"] == "CREATED" or entry["reason"] == "NOT_STARTED":
            return False
        if not (self._is_set and is_job_id(identity)):
            return True
        return entry["state"] == "FAILED" and (identity.endswith(f".{BUILD}") or not self._is_sole(identity))

    def _is_news(self, entry: wire.StateEntry) -> bool:
        """Return whether a state without a reason or a message gets a line."""
        identity = entry["id"]
        if identity != self._root:
            is_folded = self._is_set and is_job_id(identity)
            builds = entry["state"] == "RUNNING" and identity.endswith(f".{BUILD}")  # as the experiment's BUILDING says
            return not (entry["state"] in BEFORE_OUTPUT or is_folded or builds)
        is_sole = len(self._jobs.get(identity, ())) == 1  # the line of its job says that it runs
        return not (entry["state"] == "RUNNING" and is_sole)

    def _explain(self, entry: wire.StateEntry) -> list[str]:
        """Return the lines that say why, as far as they are new."""
        message = entry["message"]
        is_known = entry["reason"] in _KNOWN_REASONS
        was_stopped = entry["state"] in ("FINISHED", "KILLED") and message.startswith("exit code ")  # by riseml itself
        if was_stopped or (is_known and message == entry["sentence"]):
            message = ""
        if not message and entry["state"] == "FAILED" and entry["reason"] == "EXIT_CODE":
            message = f"exit code {entry['exit_code']}"
        texts = [entry["sentence"]] if entry["reason"] == "RETRY" or not (message or is_known) else []
        texts += [message] if message else []
        return [line for text in texts if self._is_new(entry, text) for line in text.splitlines()]

    def _is_new(self, entry: wire.StateEntry, text: str) -> bool:
        """Return whether a message was not said yet, and take note of it."""
        experiment = name_experiment(entry["id"])
        waits_in_set = self._is_set and entry["state"] in BEFORE_OUTPUT and entry["reason"] != "RETRY"
        key = ("" if len(text) > _LONG or waits_in_set else experiment, text)
        is_new = key not in self._said
        self._said.add(key)
        return is_new


def name_experiment(identity: str) -> str:
    """Return the ID of a job's experiment: `4` of `4.worker.1`, `144.1` of `144.1.train`; others stay."""
    number = find_whole(identity)
    sub = identity.removeprefix(number)[1:].partition(".")[0]
    return f"{number}.{sub}" if sub.isdigit() else number
