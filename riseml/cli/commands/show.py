"""`status`, `logs`, `monitor`, `kill`: what is asked about experiments that exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.files import JsonOption
from riseml.cli.commands.system_test import TESTS
from riseml.cli.tools import Exit, Tools, choose, last_experiment, read_since
from riseml.errors import RisemlError
from riseml.settings import MOST_TAIL

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client import Client

_REFRESH = 2.0  # seconds
_ENDED = frozenset({"KILLED", "FAILED", "FINISHED"})
_SILENT = frozenset({"CREATED", "PENDING", "STARTING"})

IdArgument = Annotated[
    str | None, typer.Argument(metavar="ID", show_default=False, help="Default: the project's last experiment.")
]


@dataclass(frozen=True, slots=True)
class Look:
    """One look at something: the answer as it came, its lines, and whether nothing of it will change any more."""

    answer: object
    lines: list[str]
    over: bool


@dataclass(frozen=True, slots=True)
class Way:
    """How it is shown; `again`: also each further look, in the place of the last, until it is over."""

    json: bool
    again: bool


def status(  # noqa: PLR0913  # the command has so many options
    context: typer.Context,
    identity: Annotated[
        str | None, typer.Argument(metavar="ID", show_default=False, help="Show this experiment, set or job.")
    ] = None,
    *,
    ended: Annotated[
        bool, typer.Option("-a", "--all", help="List ended experiments too, but not those of `system test`.")
    ] = False,
    long: Annotated[bool, typer.Option("-l", "--long", help="Show more of each.")] = False,
    json: JsonOption = False,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Refresh every 2 s.")] = False,
) -> None:
    """List running experiments, or show one with its jobs."""
    tools: Tools = context.obj
    with tools.connect() as client:
        if identity is None:
            _show(tools, client, lambda: _look_at_all(tools, client, ended=ended, long=long), Way(json, watch))
        else:
            chosen = choose(tools, client, identity)
            _show(tools, client, lambda: _look_at_one(tools, client, chosen, long=long), Way(json, watch))


def logs(  # noqa: PLR0913  # the command has so many options
    context: typer.Context,
    identity: IdArgument = None,
    *,
    follow: Annotated[
        bool,
        typer.Option(
            "-f/--no-follow", "--follow", show_default=False, help="Wait for more, until the end (the default)."
        ),
    ] = True,
    tail: Annotated[
        int | None,
        typer.Option(
            "--tail",
            min=0,
            max=MOST_TAIL,
            metavar="N",
            show_default=False,
            help="Begin with the last N lines that jobs printed, without the changes of state among them.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Begin at TIME: 10m, 2h or 2026-08-31T07:23:46Z.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the log of an experiment or of some jobs; follow it.

    The lines of all jobs come merged, each with the ID of its job: `riseml logs 4`, `riseml logs 4.worker`.
    To have read the log of a failed experiment is no failure.
    """
    from riseml.cli.follow import View, stream
    from riseml.client import LogQuery

    tools: Tools = context.obj
    query = LogQuery(follow, tail, None if since is None else read_since(since, tools.now()))
    with tools.connect() as client:
        chosen = choose(tools, client, identity)
        found = client.experiment(chosen)
        if tail is not None and found["state"] in _SILENT:  # and its states are not shown
            tools.render.notes([f"{found['id']} is {found['state']}, and jobs print nothing before they run"])
        stream(tools, client, found | {"id": chosen}, View(json=json), query)


def monitor(
    context: typer.Context,
    identity: IdArgument = None,
    *,
    gpus: Annotated[bool, typer.Option("--gpu", help="Show the GPUs alone.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print once instead of every 2 s.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what the jobs use, every 2 s until the experiment ends."""
    tools: Tools = context.obj
    with tools.connect() as client:
        chosen = choose(tools, client, identity)
        _show(tools, client, lambda: _look_at_use(tools, client, chosen, gpus=gpus), Way(json, not once))


def kill(
    context: typer.Context,
    identities: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", show_default=False, help="Default: the project's last experiment."),
    ] = None,
    *,
    force: Annotated[bool, typer.Option("-f", "--force", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """End experiments and everything that belongs to them."""
    tools: Tools = context.obj
    failed: RisemlError | None = None
    kills: list[wire.Kill] = []
    with tools.connect() as client:
        if not identities:
            last = last_experiment(tools, client)
            if last["state"] not in _ENDED and tools.asks and not force:
                _ask(last)
            identities = [last["id"]]
        for identity in identities:
            try:
                kills.append(_kill(client, choose(tools, client, identity)))
            except RisemlError as error:
                tools.render.error(error)
                failed = failed or error
            else:
                if not json:
                    tools.render.print(_describe_kill(kills[-1]))
    if json:
        tools.render.json({"kills": kills})
    if failed is not None:
        raise Exit(failed.exit_code)


def _show(tools: Tools, client: Client, look: Callable[[], Look], way: Way) -> None:
    """Print one look or many. Watching survives a lost server, as following a log does."""
    from riseml.cli.follow import reviver

    while True:
        seen = client.persist(look, reviver(tools, client)) if way.again else look()
        if way.json:
            tools.render.json(seen.answer)
        elif way.again:
            tools.render.redraw(seen.lines)
        else:
            tools.render.print(*seen.lines)
        if not way.again or seen.over:
            return
        tools.wait(_REFRESH)


def _look_at_all(tools: Tools, client: Client, *, ended: bool, long: bool) -> Look:
    from riseml.cli.output.views import list_lines

    found = [one for one in client.experiments(ended=ended) if one["project"] != TESTS or one["state"] not in _ENDED]
    if found:
        shown = list_lines(tools.render, found, tools.now(), long=long)
    else:
        shown = ["There is no experiment yet." if ended else "No experiment is running; `riseml status -a` lists all."]
    return Look({"experiments": found}, shown, over=False)


def _look_at_one(tools: Tools, client: Client, identity: str, *, long: bool) -> Look:
    from riseml.cli.output.views import experiment_lines

    one = client.experiment(identity)
    return Look(one, experiment_lines(tools.render, one, tools.now(), long=long), over=one["closed"])


def _look_at_use(tools: Tools, client: Client, identity: str, *, gpus: bool) -> Look:
    from riseml.cli.output.views import sample_lines

    answer = client.samples(identity)
    over = client.experiment(identity)["state"] in _ENDED
    return Look(answer, sample_lines(tools.render, answer["samples"], gpus=gpus), over)


def _ask(last: wire.ExperimentView) -> None:
    question = f"Kill experiment {last['id']} of {last['project']} ({last['state']})?"
    if not typer.confirm(question, err=True):
        raise Exit(0)


def _kill(client: Client, identity: str) -> wire.Kill:
    before = client.experiment(identity)
    if before["state"] in _ENDED:
        return {"id": before["id"], "killed": False, "state": before["state"]}
    after = client.kill(identity)
    return {"id": after["id"], "killed": True, "state": after["state"]}


def _describe_kill(one: wire.Kill) -> str:
    if one["killed"]:
        return f"killed experiment {one['id']}"
    return f"experiment {one['id']} has already ended: {one['state']}"
