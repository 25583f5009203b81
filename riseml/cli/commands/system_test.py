"""`system test`: real small jobs on each host."""

from __future__ import annotations

import json as codec
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import count_noun
from riseml.errors import RisemlError
from riseml.names import HOST_LABEL

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client.server_client import Client

TEST_PROJECT = "riseml-system-test"
"""The project of the tests' experiments. `status -a` does not list those that have ended."""

_IMAGE = "busybox:1.36"
_RUN = ("echo hello from $RISEML_JOB", 'echo hello > "$OUTPUT_DIR/hello"', 'test "$(cat "$OUTPUT_DIR/hello")" = hello')
_FINDINGS = (Column("HOST"), Column("OUTCOME"), Column("ID"), Column("FOUND", folds=True))


def run_system_test(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="[HOST...]", help="Only these hosts.")] = None,
    *,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="A small image with a shell; hosts fetch it if they lack it.")
    ] = _IMAGE,
    jobs: Annotated[int, typer.Option("--num-jobs", min=1, max=100, metavar="N", help="Jobs for each host.")] = 1,
    cpus: Annotated[float, typer.Option("--num-cpus", min=0, metavar="N", help="Cores for each job.")] = 0.1,
    mem: Annotated[str, typer.Option(metavar="SIZE", help="Memory for each job.")] = "64MiB",
    builds: Annotated[bool, typer.Option("--force-build-steps", help="Build a new environment for it.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a small job on each host.

    The job prints a line and writes to its OUTPUT_DIR. It is an experiment with an ID and takes the same way as every
    other; once it has ended, `riseml status -a` does not list it.
    """
    command: CommandContext = context.obj
    command = replace(command, asks=command.asks and not json)
    with command.connect_to_run() as client:
        known = {host["name"]: host for host in client.get_system()["hosts"]}
        train = _make_train(image, {"cpus": cpus, "mem": mem}, builds=builds)
        names = [name for name in hosts or sorted(known) for _ in range(jobs)]
        submissions = [(name, _make_submission(command, name, train)) for name in names]
        started = [(name, _start_test(client, name, known.get(name), one)) for name, one in submissions]
        findings = [_finish_test(client, name, one) for name, one in started]
    if json:
        command.printer.print_json({"findings": findings})
    else:
        rows = [[one["host"], one["outcome"], one["id"] or "-", one["message"]] for one in findings]
        command.printer.print_lines(build_table(_FINDINGS, rows, command.printer.style))
    failed = [one for one in findings if one["outcome"] != "ok"]
    if failed:
        ids = [one["id"] for one in failed if one["id"]]
        next_step = f" `riseml logs {ids[0]}` shows what the job printed." if ids else ""
        what = count_noun(len(failed), "host" if jobs == 1 else "job")
        command.printer.say(f"{what} failed.{next_step}")
        raise Exit(1)


def _make_train(image: str, resources: Mapping[str, object], *, builds: bool) -> dict[str, object]:
    """Return the section `train` of a test. With `builds`, its environment is new."""
    train: dict[str, object] = {"image": image, "resources": resources, "max_duration": "10m", "run": list(_RUN)}
    if builds:
        import uuid

        train["install"] = [f"echo {uuid.uuid4().hex}"]
    return train


def _make_submission(command: CommandContext, name: str, train: Mapping[str, object]) -> wire.Submission:
    resources = cast("Mapping[str, object]", train["resources"])
    placed = {**train, "resources": {**resources, "labels": {HOST_LABEL: name}}}
    config = codec.dumps({"project": TEST_PROJECT, "train": placed})
    submission: wire.Submission = {"project": TEST_PROJECT, "file": "riseml.yml", "config": config}
    return command.add_executor(submission)


def _start_test(
    client: Client, name: str, host: wire.HostView | None, submission: wire.Submission
) -> str | RisemlError:
    """Return the ID of the job that was started on the host, or the reason why none was started."""
    import uuid

    if host is None:
        return RisemlError("there is no such host; `riseml pool` shows the hosts")
    if host["state"] == "silent":
        return RisemlError(host["message"] or "it does not answer")
    if host["state"] != "up":
        return RisemlError(f"it is {host['state']} and gets no new jobs; `riseml pool resume {name}` changes that")
    try:
        return client.submit({**submission, "key": uuid.uuid4().hex})["id"]
    except RisemlError as error:
        return RisemlError(error.message.splitlines()[-1])  # the last line of a SpecError is the problem itself


def _finish_test(client: Client, name: str, started: str | RisemlError) -> wire.HostFinding:
    if isinstance(started, RisemlError):
        return {"host": name, "outcome": "failed", "id": None, "message": started.message}
    log = client.stream_log(started)
    printed = [entry["text"] for entry in log if entry["type"] == "line" and entry["id"].endswith(".train")]
    found = client.get_experiment(started)
    if found["state"] != "FINISHED":
        message = found["message"] or found["reason"]
        return {"host": name, "outcome": "failed", "id": started, "message": f"{found['state']}: {message}"}
    if printed != ["hello from train"]:
        message = f"its log is not what it printed: {printed}"
        return {"host": name, "outcome": "failed", "id": started, "message": message}
    return {"host": name, "outcome": "ok", "id": started, "message": "ran, logged and wrote to its OUTPUT_DIR"}
