"""`explain`: why an experiment waits, or why it runs where it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from riseml.cli.commands.files import JsonOption
from riseml.cli.commands.show import IdArgument
from riseml.cli.output.text import Column, clean
from riseml.cli.tools import Tools, choose

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Render

_FITS = (Column("HOST"), Column("JOB"), Column("WHY NOT", folds=True))
_PLACES = (Column("JOB"), Column("HOST"), Column("GPUS"), Column("ADDRESS"), Column("WHY", folds=True))


def explain(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    json: JsonOption = False,
) -> None:
    """Say why an experiment waits, or where its jobs are and why.

    One that waits is explained host by host.
    """
    tools: Tools = context.obj
    with tools.connect() as client:
        found = client.explain(choose(tools, client, identity))
    if json:
        tools.render.json(found)
    else:
        _print(tools.render, found)


def _print(render: Render, found: wire.ExplanationView) -> None:
    render.print(clean(f"{found['id']} {found['state']}: {found['summary']}"))
    queue = found["queue"]
    if queue is not None:
        behind = f", behind {_list(queue['ahead'])}" if queue["ahead"] else ""
        render.print(f"Place in the queue: {queue['position']} of {queue['length']}{behind}")
    if [one["text"] for one in found["blockers"]] not in ([], [found["summary"]]):
        render.print("Why:", *(clean(f"  {one['text']}") for one in found["blockers"]))
    if found["hosts"]:
        render.print("")
        render.table(_FITS, list(_fits(found["hosts"])))
    if found["jobs"]:
        if found["network"] is not None:
            made = f", made by {found['network_host']}" if found["network_host"] else ""
            render.print(f"Network: {found['network']}{made}")
        render.print("")
        render.table(_PLACES, [_place(job) for job in found["jobs"]])


def _fits(hosts: list[wire.HostFitView]) -> Iterator[list[str]]:
    """A row a host, or a row for each of its jobs that lack something there."""
    for host in hosts:
        if host["obstacle"] is not None:
            yield [host["host"], "all", host["text"]]
            continue
        lacking = [fit for fit in host["jobs"] if fit["shortages"]]
        for fit in lacking:
            yield [host["host"], fit["job"], "; ".join(one["text"] for one in fit["shortages"])]
        if not lacking:
            yield [host["host"], "each", "has room for any one of the jobs, not for all together"]


def _place(job: wire.JobPlaceView) -> list[str]:
    address = f"{job['address']}:{job['port']}" if job["address"] and job["port"] else job["address"] or "-"
    others = f" (also possible: {', '.join(job['alternatives'])})" if job["alternatives"] else ""
    return [job["job"], job["host"], " ".join(job["gpus"]) or "-", address, f"{job['why']}{others}"]


def _list(ids: list[str]) -> str:
    shown = ", ".join(ids[:10])
    return f"{shown} and {len(ids) - 10} more" if len(ids) > 10 else shown
