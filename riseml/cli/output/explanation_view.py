"""The answer of `explain` as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from riseml.cli.output.style import ENDED_STATES, Style
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import clean_text, count_noun
from riseml.cli.output.waiting_view import describe_activity

if TYPE_CHECKING:
    from riseml import wire

_SHORTAGES = (Column("HOST"), Column("JOB"), Column("WHY NOT", folds=True))
_PLACES = (Column("JOB"), Column("HOST"), Column("GPUS"), Column("ADDRESS"), Column("WHY", folds=True))
_MOST_AHEAD = 10  # experiments ahead in the queue that are listed


def list_explanation(found: wire.ExplanationView, style: Style) -> list[str]:
    """Return the summary, the place in the queue, what each host lacks, and the place of each job."""
    lines = [clean_text(f"{found['id']} {found['state']}: {found['summary']}")]
    queue = found["queue"]
    if queue is not None:
        behind = f", behind {_join_ids(queue['ahead'])}" if queue["ahead"] else ""
        lines.append(clean_text(f"Place in the queue: {queue['position']} of {queue['length']}{behind}"))
    if [one["text"] for one in found["blockers"]] not in ([], [found["summary"]]):
        lines += ["Why:", *(clean_text(f"  {one['text']}") for one in found["blockers"])]
    lines += [clean_text(": ".join(describe_activity(one))) for one in found["activities"]]
    if found["hosts"]:
        lines += ["", *build_table(_SHORTAGES, list(_make_shortage_rows(found["hosts"])), style)]
    if found["jobs"]:
        if found["network"] is not None:
            creator = f", created by {found['network_host']}" if found["network_host"] else ""
            lines.append(clean_text(f"Network: {found['network']}{creator}"))
        lines += ["", *_list_places(found["jobs"], style)]
    return lines


def list_set_explanation(found: wire.SetExplanation, style: Style) -> list[str]:
    """Return what each member of a set does, what each host lacks for the first one that waits, and what follows."""
    counts = found["counts"]
    of_each = ", ".join(f"{count} {state}" for state, count in counts.items())
    lines = [f"{found['id']} {found['state']}: {count_noun(sum(counts.values()), 'experiment')}: {of_each}"]
    lines += [f"  {one['id']} {one['state']}: {one['summary']}" for one in found["members"]]
    active = sum(count for state, count in counts.items() if state not in ENDED_STATES)
    if active > len(found["members"]):
        lines.append(f"  ... and {active - len(found['members'])} more")
    if found["search"]:
        lines.append(f"The search {found['search']}.")
    waiting = next((one for one in found["members"] if one["hosts"]), None)
    shown = list(map(clean_text, lines))
    if waiting is None:
        return shown
    table = build_table(_SHORTAGES, list(_make_shortage_rows(waiting["hosts"])), style)
    return [*shown, "", clean_text(f"Why {waiting['id']} waits:"), *table]


def _make_shortage_rows(hosts: list[wire.HostFitView]) -> Iterator[list[str]]:
    """Yield one row for a host as a whole, or one for each job that lacks something there."""
    for host in hosts:
        if host["obstacle"] is not None:
            yield [host["host"], "all", host["text"]]
            continue
        lacking = [fit for fit in host["jobs"] if fit["shortages"]]
        for fit in lacking:
            yield [host["host"], fit["job"], "; ".join(one["text"] for one in fit["shortages"])]
        if not lacking:
            yield [host["host"], "each", host["text"] or "has room"]  # a server of an earlier version gives no reason


def _list_places(jobs: list[wire.JobPlaceView], style: Style) -> list[str]:
    """Return the table of the places; it has the images only where the jobs have different ones."""
    rows = [_make_place_row(job) for job in jobs]
    if len({job["image"] for job in jobs}) == 1:
        return build_table(_PLACES, rows, style)
    columns = (*_PLACES[:-1], Column("IMAGE"), _PLACES[-1])
    with_images = [[*row[:-1], job["image"], row[-1]] for row, job in zip(rows, jobs, strict=True)]
    return build_table(columns, with_images, style)


def _make_place_row(job: wire.JobPlaceView) -> list[str]:
    address = f"{job['address']}:{job['port']}" if job["address"] and job["port"] else job["address"] or "-"
    others = f" (also possible: {', '.join(job['alternatives'])})" if job["alternatives"] else ""
    host = job.get("node") or job["host"]  # a server of an earlier version sends no node
    return [job["job"], host, " ".join(job["gpus"]) or "-", address, f"{job['why']}{others}"]


def _join_ids(ids: list[str]) -> str:
    shown = ", ".join(ids[:_MOST_AHEAD])
    return f"{shown} and {len(ids) - _MOST_AHEAD} more" if len(ids) > _MOST_AHEAD else shown
