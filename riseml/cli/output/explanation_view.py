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


def list_explanation(explanation: wire.ExplanationView, style: Style) -> list[str]:
    """Return the summary, the place in the queue, what each host lacks, and the place of each job."""
    lines = [clean_text(f"{explanation['id']} {explanation['state']}: {explanation['summary']}")]
    queue = explanation["queue"]
    if queue is not None:
        behind = f", behind {_join_ids(queue['ahead'])}" if queue["ahead"] else ""
        lines.append(clean_text(f"Place in the queue: {queue['position']} of {queue['length']}{behind}"))
    if [blocker["text"] for blocker in explanation["blockers"]] not in ([], [explanation["summary"]]):
        lines += ["Why:", *(clean_text(f"  {blocker['text']}") for blocker in explanation["blockers"])]
    lines += [clean_text(": ".join(describe_activity(activity))) for activity in explanation["activities"]]
    if explanation["hosts"]:
        lines += ["", *build_table(_SHORTAGES, list(_make_shortage_rows(explanation["hosts"])), style)]
    if explanation["jobs"]:
        if explanation["network"] is not None:
            creator = f", created by {explanation['network_host']}" if explanation["network_host"] else ""
            lines.append(clean_text(f"Network: {explanation['network']}{creator}"))
        lines += ["", *_list_places(explanation["jobs"], style)]
    return lines


def list_set_explanation(explanation: wire.SetExplanation, style: Style) -> list[str]:
    """Return what each member of a set does, what each host lacks for the first one that waits, and what follows."""
    counts = explanation["counts"]
    of_each = ", ".join(f"{count} {state}" for state, count in counts.items())
    lines = [f"{explanation['id']} {explanation['state']}: {count_noun(sum(counts.values()), 'experiment')}: {of_each}"]
    lines += [f"  {member['id']} {member['state']}: {member['summary']}" for member in explanation["members"]]
    active = sum(count for state, count in counts.items() if state not in ENDED_STATES)
    if active > len(explanation["members"]):
        lines.append(f"  ... and {active - len(explanation['members'])} more")
    if explanation["search"]:
        lines.append(f"The search {explanation['search']}.")
    waiting = next((member for member in explanation["members"] if member["hosts"]), None)
    cleaned = list(map(clean_text, lines))
    if waiting is None:
        return cleaned
    table = build_table(_SHORTAGES, list(_make_shortage_rows(waiting["hosts"])), style)
    return [*cleaned, "", clean_text(f"Why {waiting['id']} waits:"), *table]


def _make_shortage_rows(hosts: list[wire.HostFitView]) -> Iterator[list[str]]:
    """Yield one row for a host as a whole, or one for each job that lacks something there."""
    for host in hosts:
        if host["obstacle"] is not None:
            yield [host["host"], "all", host["text"]]
            continue
        lacking = [fit for fit in host["jobs"] if fit["shortages"]]
        for fit in lacking:
            yield [host["host"], fit["job"], "; ".join(shortage["text"] for shortage in fit["shortages"])]
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
    alternatives = f" (also possible: {', '.join(job['alternatives'])})" if job["alternatives"] else ""
    host = job.get("node") or job["host"]  # a server of an earlier version sends no node
    return [job["job"], host, " ".join(job["gpus"]) or "-", address, f"{job['why']}{alternatives}"]


def _join_ids(ids: list[str]) -> str:
    first = ", ".join(ids[:_MOST_AHEAD])
    return f"{first} and {len(ids) - _MOST_AHEAD} more" if len(ids) > _MOST_AHEAD else first
