"""The answer of `stacks` as lines: the sentence, then each stack once, with the threads that have it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style, paint
from riseml.cli.output.text import clean_text, count_noun

if TYPE_CHECKING:
    from riseml import wire

_MOST_NAMED = 4  # threads of one stack that are named
_LONGEST_COMMAND = 60  # characters
_BOLD = "1"


def list_stacks(stacks: wire.StacksView, style: Style) -> list[str]:
    """Return what all ranks do, each different stack, the processes without Python, and what could not be read."""
    lines = [paint(clean_text(f"{stacks['id']}: {stacks['summary']}"), _BOLD, colour=style.colour)]
    threads: dict[tuple[str, ...], list[tuple[str, bool]]] = {}
    for job in stacks["jobs"]:
        for process in job["processes"]:
            for thread in process["threads"]:
                name = thread["name"] or f"thread {thread['thread']}"
                name = f"{job['id']} pid {process['pid']} {name}"
                threads.setdefault(tuple(_list_frames(thread)), []).append((name, thread["idle"]))
    for frames, members in sorted(threads.items(), key=lambda entry: -len(entry[1])):
        lines += ["", clean_text(_describe_members(members)), *frames]
    remainder_lines = [*_list_others(stacks["jobs"])]
    return [*lines, "", *remainder_lines] if remainder_lines else lines


def _list_frames(thread: wire.ThreadStackView) -> Iterator[str]:
    for frame in thread["frames"]:
        line = f":{frame['line']}" if frame["line"] else ""
        yield clean_text(f"    {frame['function']}  {frame['file']}{line}")
        for variable in frame["variables"]:
            yield clean_text(f"        {variable['name']} = {variable['value']}")


def _describe_members(members: Sequence[tuple[str, bool]]) -> str:
    names = [name for name, _ in members]
    more = f" and {count_noun(len(names) - _MOST_NAMED, 'other thread')}" if len(names) > _MOST_NAMED else ""
    idle = sum(is_idle for _, is_idle in members)
    state = "waits" if idle else "runs"
    if len(members) > 1:
        state = "wait" if idle == len(members) else "run" if not idle else f"{idle} of {len(members)} wait"
    return f"{', '.join(names[:_MOST_NAMED])}{more} ({state})"


def _list_others(jobs: Sequence[wire.JobStacksView]) -> Iterator[str]:
    """Yield the processes without stacks, and the jobs that could not be read."""
    for job in jobs:
        if job["trouble"]:
            yield clean_text(f"{job['id']} was not read: {job['trouble']}")
        for process in job["processes"]:
            if process["threads"]:
                continue
            channel = f" in {process['wait_channel']}" if process["wait_channel"] else ""
            reason = process["trouble"] or f"no Python, state {process['state']}{channel}"
            yield clean_text(f"{job['id']} pid {process['pid']} {process['command'][:_LONGEST_COMMAND]}: {reason}")
