"""A profile: how often each stack was seen. Its hottest lines, and the same for speedscope (https://speedscope.app)."""

from __future__ import annotations

import re
from collections import Counter

from riseml.base.records import dataclass
from riseml.diagnosis.spy_dump import shorten

MOST_STACKS = 20_000  # different ones of one profile
MOST_DEPTH = 200  # calls of one stack: the outermost, which a flame graph has below
_LONGEST_NAME = 300  # characters of a call
_SUMMARY = re.compile(rb"^py-spy> .*Samples: (\d+) Errors: (\d+)", re.MULTILINE)
_PROCESS = re.compile(r"process \d+:|thread \(")  # a level that stands for no call


@dataclass(frozen=True, slots=True)
class ProfileStack:
    """A stack, and how often it was seen."""

    calls: tuple[str, ...]  # the outermost first: `train (train.py:88)`; a process and a thread may come before
    count: int


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line of code, and its part of the samples."""

    call: str  # `train (train.py:88)`
    own: int  # samples in which it was the innermost call
    total: int  # samples in which it was anywhere in the stack


@dataclass(frozen=True, slots=True)
class Profile:
    """How often each stack of a job was seen."""

    stacks: tuple[ProfileStack, ...]
    samples: int  # that were taken; one of several threads counts for each thread
    errors: int  # samples that could not be read

    @property
    def count(self) -> int:
        """The samples of all stacks."""
        return sum(stack.count for stack in self.stacks)


def parse_profile(text: bytes) -> Profile:
    """Return what `py-spy record --format raw` printed. A job may have written every name in it: each is cleaned."""
    summary = _SUMMARY.search(text)
    stacks: Counter[tuple[str, ...]] = Counter()
    for row in text.decode("utf-8", "replace").split("\n"):
        names, _, number = row.rpartition(" ")
        if row.startswith("py-spy> ") or not names or not re.fullmatch("[0-9]{1,9}", number):
            continue
        calls = tuple(shorten(name, _LONGEST_NAME) for name in names.split(";")[:MOST_DEPTH])
        if calls in stacks or len(stacks) < MOST_STACKS:
            stacks[calls] += int(number)
    counted = tuple(ProfileStack(calls, count) for calls, count in sorted(stacks.items()))
    samples = int(summary[1]) if summary else sum(stack.count for stack in counted)
    return Profile(counted, samples, int(summary[2]) if summary else 0)


def find_hot_lines(profile: Profile, most: int) -> list[HotLine]:
    """Return the lines in which the job was most often, the hottest first."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for stack in profile.stacks:
        calls = [call for call in stack.calls if not _PROCESS.match(call)]
        if calls:
            own[calls[-1]] += stack.count
            total.update(dict.fromkeys(calls, stack.count))
    lines = [HotLine(call, own[call], total[call]) for call in total]
    return sorted(lines, key=lambda line: (-line.own, -line.total, line.call))[:most]


def make_speedscope(profile: Profile, title: str, rate: int) -> dict[str, object]:
    """Return a profile in the file format of speedscope.

    Args:
        profile: to convert.
        title: its name for people.
        rate: samples in a second.
    """
    places: dict[str, int] = {}
    samples = []
    for stack in profile.stacks:
        samples.append([places.setdefault(call, len(places)) for call in stack.calls])
    weights = [stack.count / rate for stack in profile.stacks]
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "riseml",
        "name": title,
        "activeProfileIndex": 0,
        "shared": {"frames": [_make_place(call) for call in places]},
        "profiles": [
            {
                "type": "sampled",
                "name": title,
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }


def _make_place(call: str) -> dict[str, object]:
    match = re.fullmatch(r"(.*) \((.*):(\d+)\)", call)
    return {"name": call} if match is None else {"name": match[1], "file": match[2], "line": int(match[3])}
