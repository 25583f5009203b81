"""Log entries, problems and errors as lines of text. Pure: `render` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from riseml.cli.output.text import clean, plural, read_moment, show_moment, show_seconds
from riseml.errors import RisemlError

if TYPE_CHECKING:
    from riseml import wire
    from riseml.spec.yaml.problems import Problem

WIDTH = 13
"""Of the ID before the bar, as RiseML printed it."""

_QUOTE = 70  # characters of a line of the file that are shown
_LAST_LINES = 10

# What such a state has to say is said by its name.
_QUIET = frozenset({"SUBMITTED", "RUNNING", "PLACED", "WAITING_FOR_IMAGE"})
_INDENT = " " * len("[2026-08-31T07:23:46Z] ")
_JOB_COLOURS = ("36", "33", "35", "34", "32", "96", "93", "95", "94", "92")
_STATE_COLOURS = {"FAILED": "1;31", "KILLED": "1;33", "FINISHED": "1;32", "RUNNING": "1"}


def paint(text: str, code: str, *, colour: bool) -> str:
    """`text` in a colour (an SGR code), or as it is."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


def paint_state(state: str, text: str, *, colour: bool) -> str:
    """`text` in the colour of a state."""
    return paint(text, _STATE_COLOURS.get(state, ""), colour=colour)


@dataclass(slots=True)
class LogText:
    """Turns entries into lines; each job keeps its colour. `width` is that of the ID."""

    colour: bool = False
    width: int = WIDTH
    _prefixes: dict[str, str] = field(default_factory=dict)

    def lines(self, entry: wire.StateEntry | wire.LineEntry | wire.LinesEntry) -> list[str]:
        """The lines of one entry."""
        prefix = self._prefixes.get(entry["id"]) or self._new_prefix(entry["id"])
        if entry["type"] == "lines":
            return self._block(prefix, entry["text"])
        time = show_moment(entry["time"])
        if entry["type"] == "line":
            return [f"{prefix}[{time}] {clean(entry['text'], colours=self.colour)}"]
        state = entry["state"]
        first = f"{prefix}[{time}] --> {paint_state(state, state, colour=self.colour)}"
        return [first, *(f"{prefix}{_INDENT}{clean(line)}" for line in _explain(entry))]

    def _block(self, prefix: str, text: str) -> list[str]:
        """Many lines, each `<time> <text>`."""
        rows = (row.partition(" ") for row in text.removesuffix("\n").split("\n"))
        if text.replace("\n", "").isprintable():  # nearly always: there is nothing to clean
            return [f"{prefix}[{time[:19]}Z] {said}" for time, _, said in rows]
        return [f"{prefix}[{show_moment(time)}] {clean(said, colours=self.colour)}" for time, _, said in rows]

    def _new_prefix(self, identity: str) -> str:
        shown = f"{clean(identity):<{self.width}} |"
        jobs = sum(_is_job(known) for known in self._prefixes)
        code = _JOB_COLOURS[jobs % len(_JOB_COLOURS)] if _is_job(identity) else "1"
        self._prefixes[identity] = paint(shown, code, colour=self.colour) + " "
        return self._prefixes[identity]


def _is_job(identity: str) -> bool:
    return any(part[:1].isalpha() for part in identity.split(".")[1:])


def _explain(entry: wire.StateEntry) -> Iterator[str]:
    """Why, when the state alone does not say it."""
    reason, message = entry["reason"], entry["message"]
    if reason not in _QUIET:
        yield f"Reason: {reason}"
        if entry["sentence"].upper() != reason.replace("_", " "):
            message = message or entry["sentence"]
    first, *more = message.splitlines() or [""]
    if first and first != f"exit code {entry['exit_code']}":
        yield f"Message: {first}"
    yield from (f"         {line}" for line in more)
    if entry["exit_code"] is not None:
        yield f"Exit Code: {entry['exit_code']}"


def log_width(experiment: wire.ExperimentView) -> int:
    """How wide the IDs of its log are: RiseML's width, unless one is longer."""
    inside = (job for one in (experiment, *experiment["experiments"]) for job in one["jobs"])
    return max(WIDTH, *(len(job["id"]) for job in inside), 0)


def describe_end(end: wire.EndEntry, experiment: wire.ExperimentView) -> list[str]:
    """How it ended: the state, the first cause, the exit code, its last lines, where the output is."""
    text = f"Experiment {end['id']} {end['state']}"
    if experiment["started_at"] and experiment["ended_at"]:
        length = read_moment(experiment["ended_at"]) - read_moment(experiment["started_at"])
        text += f" after {show_seconds(length.total_seconds())}"
    if end["state"] != "FINISHED":
        job = f"{end['id']}.{end['cause']}" if end["cause"] else ""
        code = f"exit code {end['exit_code']}" if end["exit_code"] is not None else ""
        why = end["message"].splitlines()[0] if end["message"] else ""
        parts = [job, *((why,) if code in why else (why, code))]
        text += ": " + ": ".join(part for part in parts if part)
    output = [clean(f"Output: {experiment['output']}")] if experiment["output"] else []
    return [clean(text), *last_lines(experiment), *output]


def last_lines(experiment: wire.ExperimentView) -> list[str]:
    """What the job that brought about a bad end said last."""
    said = experiment["last_lines"][-_LAST_LINES:]
    if not said:
        return []
    return [f"Last lines of {experiment['id']}.{experiment['cause']}:", *(f"  {clean(line)}" for line in said)]


def describe_error(error: RisemlError, *, colour: bool = False) -> list[str]:
    """`error: ...`, and `hint: ...` when there is one. Continued lines are indented."""
    lines = _label("error", error.message, "1;31", colour=colour)
    return lines + (_label("hint", error.hint, "1;36", colour=colour) if error.hint else [])


def describe_warning(message: str, *, colour: bool = False) -> list[str]:
    """`warning: ...`. Continued lines are indented."""
    return _label("warning", message, "1;33", colour=colour)


def _label(label: str, text: str, code: str, *, colour: bool) -> list[str]:
    first, *more = [clean(line) for line in text.splitlines()] or [""]
    return [f"{paint(label + ':', code, colour=colour)} {first}", *(f"  {line}" for line in more)]


def describe_problems(problems: Sequence[Problem], name: str, text: str, *, colour: bool = False) -> Iterator[str]:
    """Each problem with its place; those of the file `name` with its line and a caret under it."""
    source = text.splitlines()
    for problem in problems:
        severity = problem.severity.value
        code = "1;31" if severity == "error" else "1;33"
        in_file = problem.file == name
        place = f"{problem.file}:{problem.line}:{problem.column}:" if in_file else f"{problem.file}:"
        path = f" {problem.path}:" if problem.path else ""
        yield f"{clean(place)} {paint(severity + ':', code, colour=colour)}{clean(path)} {clean(problem.problem)}"
        if in_file:
            yield from _quote(problem, source, code, colour=colour)
        if problem.hint:
            yield f"  {paint('hint:', '1;36', colour=colour)} {clean(problem.hint)}"


def _quote(problem: Problem, source: Sequence[str], code: str, *, colour: bool) -> Iterable[str]:
    if not 1 <= problem.line <= len(source):
        return ()
    number = f"{problem.line:>5} | "
    whole = source[problem.line - 1].replace("\t", " ")
    shown = clean(whole)
    if shown != whole or problem.column > len(whole) + 1:
        return (number + shown[:_QUOTE],)  # a caret could point at the wrong place
    # A long line is cut around the place that is meant.
    start = max(0, problem.column - _QUOTE // 2) if len(shown) > _QUOTE else 0
    caret = " " * (len(number) - 2) + "| " + " " * (problem.column - 1 - start)
    return (number + shown[start : start + _QUOTE], caret + paint("^", code, colour=colour))


def count_problems(problems: Sequence[Problem]) -> str:
    """`2 problems, 1 warning`."""
    errors = sum(problem.severity.value == "error" for problem in problems)
    warnings = len(problems) - errors
    parts = [plural(errors, "problem") if errors else "", plural(warnings, "warning") if warnings else ""]
    return ", ".join(part for part in parts if part)
