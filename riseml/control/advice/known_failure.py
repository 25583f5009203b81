"""A row of the table of known failures, and which row explains a job that ended badly. Pure."""

from __future__ import annotations

import enum
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from riseml.base.states import Reason
from riseml.control.advice.last_lines import is_exception

READ_LINES = 40
"""Last lines of a job that are searched."""

_LONGEST_LINE = 400  # characters of a line that are searched
_LONGEST_NAME = 120  # characters of a name that a sentence repeats
_NEAR = 6  # a line among this many last lines counts as the cause; an earlier line only as the probable cause

_BEFORE_ANY_LINE = -1
_BEHIND_ALL_LINES = READ_LINES


class FailureRole(enum.Enum):
    """What a failure means when several jobs of an experiment failed."""

    CAUSE = "it explains the job by itself"
    CONSEQUENCE = "the job lost its connection to another one, which may have failed first"


@dataclass(frozen=True)
class KnownFailure:
    """One row: how a failure is recognised, and the sentence that says what the user can do.

    The sentence may use the named groups of the patterns, and `{known}`, `{code}`, `{limit}`, `{mem}`. The row explains
    nothing unless all of them are known.

    Example:
        KnownFailure("no-space", "a disk is full: ...", patterns=("No space left on device",))
    """

    name: str
    sentence: str  # the sentence about the job; it begins with a small letter unless a name comes first
    patterns: tuple[str, ...] = ()  # regular expressions, each for one line; empty: reasons or codes alone decide
    reasons: frozenset[Reason] = frozenset()  # what the engine reported; empty: any
    codes: frozenset[int] = frozenset()  # exit codes that the row is limited to; empty: any
    # the group `name` -> `{known}`; other names do not match
    replacements: Mapping[str, str] = field(default_factory=dict)
    role: FailureRole = FailureRole.CAUSE
    explains: str = ""  # the name of another row: where both match, this one counts, which says why

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        """The compiled patterns."""
        return tuple(map(re.compile, self.patterns))

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the fields that the sentence uses."""
        return frozenset(name for _, name, _, _ in string.Formatter().parse(self.sentence) if name)


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that ended badly, as far as the server knows it."""

    name: str  # as users name it: `4.worker.1`
    reason: Reason
    exit_code: int | None  # None: it never exited
    lines: Sequence[str]  # the last lines that it printed, and the messages of the engine
    limit: int | None = None  # MiB that it may use at most; None: it has no limit of its own
    mem: int = 0  # MiB that are guaranteed to it


@dataclass(frozen=True, slots=True)
class Recognised:
    """The row that explains a job."""

    failure: KnownFailure
    sentence: str
    certain: bool  # False: other lines came after the one that matched


def recognise(job: FailedJob, table: Sequence[KnownFailure]) -> Recognised | None:
    """Return the row that best explains why a job ended; None when no row does.

    What the engine reported counts more than any line, a line more than an exit code alone, and of two lines the last.
    A lost connection counts only when nothing else is found, because a failed job often breaks connections while it
    ends; of several such rows the first one says most.
    """
    matches = list(_find_matches(job, table))
    best = min(matches, key=_rank_match, default=None)
    if best is None:
        return None
    _, distance, number, words = best
    name = table[number].name
    for _, _, other, other_words in matches:
        if table[other].explains == name:
            number = other
            words = other_words
    failure = table[number]
    return Recognised(failure, failure.sentence.format_map(words), _is_certain(job.lines, distance))


# whether it is a consequence; lines after the match; number of the row; fields of its sentence
_Match = tuple[bool, int, int, Mapping[str, str]]


def _rank_match(match: _Match) -> tuple[bool, int, int]:
    consequence, distance, number, _ = match
    return (True, number, distance) if consequence else (False, distance, number)


def _find_matches(job: FailedJob, table: Sequence[KnownFailure]) -> Iterator[_Match]:
    lines = [line[:_LONGEST_LINE] for line in reversed(job.lines[-READ_LINES:])]
    about = _describe_job(job)
    for number, failure in enumerate(table):
        if failure.codes and job.exit_code not in failure.codes:
            continue
        if failure.reasons and job.reason not in failure.reasons:
            continue
        consequence = failure.role is FailureRole.CONSEQUENCE
        if not failure.patterns:
            if failure.fields <= about.keys():
                yield consequence, _BEFORE_ANY_LINE if failure.reasons else _BEHIND_ALL_LINES, number, about
            continue
        for distance, line in enumerate(lines):
            words = _match_line(failure, line, about)
            if words is not None:
                yield consequence, distance, number, words
                break


def _describe_job(job: FailedJob) -> dict[str, str]:
    words = {"code": str(job.exit_code)} if job.exit_code is not None else {}
    if job.limit is not None:
        words["limit"] = f"{job.limit} MiB"
    if job.mem:
        words["mem"] = f"{job.mem} MiB"
    return words


def _match_line(failure: KnownFailure, line: str, about: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the fields of the sentence; None when the line does not match, or a field is not known."""
    match = next(filter(None, (expression.search(line) for expression in failure.expressions)), None)
    if match is None:
        return None
    words = {name: text.strip()[:_LONGEST_NAME] for name, text in match.groupdict().items() if text}
    if failure.replacements:
        if words.get("name") not in failure.replacements:
            return None
        words["known"] = failure.replacements[words["name"]]
    words = {**about, **words}
    return words if failure.fields <= words.keys() else None


def _is_certain(lines: Sequence[str], distance: int) -> bool:
    if distance in (_BEFORE_ANY_LINE, _BEHIND_ALL_LINES):
        return True  # the sentences of such rows contain "probably" themselves
    later = lines[len(lines) - distance :]
    # An exception in a later line: the code may have handled this one.
    return distance < _NEAR and not any(map(is_exception, later))
