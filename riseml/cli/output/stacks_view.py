"""The answers of `stacks` and `profile` as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from riseml.cli.output.style import Style, paint
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun

if TYPE_CHECKING:
    from riseml import wire

_MOST_NAMED = 4  # threads of one stack that are named
_PLACES = (Column("N", right=True), Column("RANKS", folds=True), Column("STATE"), Column("WHERE", folds=True))
_MOST_LINES = 15  # hot lines that are printed
_HOT_LINES = (Column("OWN", right=True), Column("TOTAL", right=True), Column("LINE", folds=True))
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


def list_places(stacks: wire.StacksView, style: Style) -> list[str]:
    """Return the places of all ranks as a table, the largest group first, and what could not be read."""
    rows = [
        (str(len(group["ranks"])), _name_ranks(group["ranks"]), _name_state(group), clean_text(_name_place(group)))
        for group in stacks["groups"]
    ]
    head = clean_text(f"{stacks['id']} at {stacks['time'][11:19]} UTC")
    missing = [clean_text(f"{job['id']} was not read: {job['trouble']}") for job in stacks["jobs"] if job["trouble"]]
    return [head, "", *build_table(_PLACES, rows, style), *missing]


def _name_ranks(ranks: Sequence[str]) -> str:
    more = f" and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else ""
    return clean_text(", ".join(ranks[:_MOST_NAMED]) + more)


def _name_state(group: wire.StackGroupView) -> str:
    return "-" if group["place"] is None else "waits" if group["idle"] else "runs"


def _name_place(group: wire.StackGroupView) -> str:
    return ", ".join(text for text in (group["place"], group["remark"]) if text)


def list_profile(profile: wire.ProfileView, files: Sequence[str], style: Style) -> list[str]:
    """Return the hottest lines, what the sampling cost, and where the files are."""
    rows = [
        (f"{line['own']:.1f}%", f"{line['total']:.1f}%", clean_text(line["call"]))
        for line in profile["top"][:_MOST_LINES]
    ]
    lines = build_table(_HOT_LINES, rows, style) if rows else ["Nothing ran: `--idle` counts threads that wait, too."]
    errors = f", {profile['errors']} of them not readable" if profile["errors"] else ""
    cost = (
        f"{count_noun(profile['samples'], 'sample')} in {profile['seconds']} s{errors};"
        f" sampling took {profile['overhead']:.1f} % of one core"
    )
    return [*lines, "", cost, *(clean_text(f"Saved {address}") for address in files)]


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
