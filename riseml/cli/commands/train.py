"""`train`: validate here, send the files, submit, follow."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.files import FileOption, JsonOption, Source, check_source, read_source
from riseml.cli.output.text import plural
from riseml.cli.tools import Exit, Tools, read_pairs
from riseml.errors import Interrupted, UsageError
from riseml.settings import read_size

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.output.printer import Render
    from riseml.client import Client
    from riseml.project.listing import Listing
    from riseml.spec.config.types import Spec


Pairs = list[tuple[str, str]]


class ExecutorChoice(Enum):
    """What runs jobs."""

    DOCKER = "docker"
    PROCESS = "process"


ParameterOption = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Set a parameter; repeatable.")
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change riseml.yml for this run: train.resources.gpus=2."),
]


def train(  # noqa: PLR0913  # the command has so many options
    context: typer.Context,
    *,
    file: FileOption = None,
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Start it and return at once.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run; start nothing.")] = False,
    json: JsonOption = False,
    parameters: ParameterOption = None,
    settings: SettingOption = None,
    long: Annotated[bool, typer.Option("-l", "--long", help="Show every job at the end.")] = False,
    executor: Annotated[
        ExecutorChoice | None, typer.Option(help="Run jobs in Docker containers, or as processes of this machine.")
    ] = None,
) -> None:
    """Run the project: sync, build, start, and stream its log.

    Ends with the experiment's own exit code. Ctrl-C leaves the log; the experiment goes on.
    """
    from riseml.cli.follow import View, exit_code, stream

    tools: Tools = context.obj
    if executor is not None:
        tools = replace(tools, environ={**tools.environ, "RISEML_EXECUTOR": executor.value})
    source = read_source(tools, file)
    submission = _prepare(tools, source, read_pairs(parameters or [], "-p"), read_pairs(settings or [], "--set"))
    if dry_run:
        _plan(tools, source, submission, json=json)
        return
    with closing(_begin(tools, source, submission, json=json)) as client:
        experiment = _submit(tools, client, submission)
        if json:
            tools.render.json(experiment)
        if not detach:
            raise Exit(exit_code(stream(tools, client, experiment, View(json=json, long=long))))
        if not json:
            name = experiment["id"]
            tools.render.print(f"Experiment {name} runs in the background. Type `riseml logs {name}` for its log.")


def _prepare(tools: Tools, source: Source, parameters: Pairs, settings: Pairs) -> wire.Submission:
    """What will be submitted, once the files are there; every problem of riseml.yml is shown before.

    Raises:
        UsageError: it asks for a framework that cannot run, or passes on a variable that is not set.
    """
    from riseml.frameworks.registry import choose_framework

    spec = _read_spec(tools, source, parameters, settings)
    tools.render.notes(spec.notes)
    choose_framework(spec.train)
    return {
        "project": spec.project,
        "file": source.name,
        "config": source.text,
        "parameters": parameters,
        "settings": settings,
        "environment": _pass_through(spec, tools.environ),
    }


def _read_spec(tools: Tools, source: Source, parameters: Pairs, settings: Pairs) -> Spec:
    from riseml.cli.output.lines import count_problems
    from riseml.spec.config.loader import Overrides

    spec, problems = check_source(source, Overrides(tuple(parameters), tuple(settings)))
    tools.render.problems(problems, source.name, source.text)
    if spec is None:
        tools.render.say(f"{source.name} has {count_problems(problems)}. Nothing was started.")
        raise Exit(UsageError.exit_code)
    return spec


def _pass_through(spec: Spec, environ: Mapping[str, str]) -> dict[str, str]:
    names = [variable.name for variable in spec.train.env if variable.value is None]
    missing = [name for name in names if name not in environ]
    if missing:
        raise UsageError(
            f"train.env passes {', '.join(missing)} on to the jobs, but here it is not set",
            f"set it first: `export {missing[0]}=...`",
        )
    return {name: environ[name] for name in names}


def _begin(tools: Tools, source: Source, submission: wire.Submission, *, json: bool) -> Client:
    """Send the project's files, if the server does not have them, and name them in the submission.

    What will be refused anyway is refused before a file is read.
    """
    listing = _list_files(tools, source)  # what cannot be sent is told before a server is asked for anything
    client = tools.connect_to_run()
    try:
        tools.render.notes(filter(None, [client.server()["note"]]))
        client.check(submission)
        submission["snapshot"] = _sync(tools.render, client, listing, quiet=json)
    except BaseException:
        client.close()
        raise
    return client


def _sync(render: Render, client: Client, listing: Listing, *, quiet: bool) -> str:
    """Send the files unless they are there; the digest that names them."""
    from riseml.project.archive import pack_snapshot, take_snapshot
    from riseml.project.messages import format_size

    if not quiet:
        size, count = format_size(listing.size), plural(listing.count, "file")
        render.begin(f"Syncing project ({size}, {count})...")
    try:
        snapshot = take_snapshot(listing)
        there = client.has_snapshot(snapshot.digest)
        if not there:
            client.put_snapshot(snapshot.digest, pack_snapshot(snapshot))
    except BaseException:
        if not quiet:
            render.print("")  # ends the line
        raise
    if not quiet:
        render.print("done (no changes)" if there else "done")
    return snapshot.digest


def _list_files(tools: Tools, source: Source) -> Listing:
    from riseml.project.listing import DEFAULT_LIMIT, LIMIT_VARIABLE, list_project_files

    limit = read_size(tools.environ, LIMIT_VARIABLE, DEFAULT_LIMIT)
    return list_project_files(source.project.folder, limit)


def _submit(tools: Tools, client: Client, submission: wire.Submission) -> wire.ExperimentView:
    try:
        return client.submit({**submission, "key": uuid.uuid4().hex})
    except KeyboardInterrupt:
        tools.render.say("", "Interrupted; it may have been accepted all the same: look with `riseml status`.")
        raise Exit(Interrupted.exit_code) from None


def _plan(tools: Tools, source: Source, submission: wire.Submission, *, json: bool) -> None:
    """Nothing is sent: only a server that has the files already can say whether their environment is cached."""
    from riseml.cli.output.plans import print_plan
    from riseml.project.archive import take_snapshot

    snapshot = take_snapshot(_list_files(tools, source))
    with tools.connect() as client:  # as it is: a question replaces no server
        wanted, used = tools.settings().executor, client.server()["executor"]
        if client.has_snapshot(snapshot.digest):
            submission["snapshot"] = snapshot.digest
        plan = client.plan(submission)
    if wanted not in (None, used):
        tools.render.warn(f"the riseml server uses the {used} executor now, and this is its plan")
    if json:
        tools.render.json(plan)
    else:
        print_plan(tools.render, plan)
