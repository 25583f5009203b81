"""`system test`: a real small job on every host, through everything that a real one goes through."""

from __future__ import annotations

import json as codec
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.files import JsonOption
from riseml.cli.output.text import Column, plural
from riseml.cli.tools import Exit, Tools
from riseml.errors import RisemlError
from riseml.names import HOST_LABEL

if TYPE_CHECKING:
    from riseml import wire
    from riseml.client import Client

TESTS = "riseml-system-test"
"""The project of the tests' experiments; `status -a` leaves those that have ended out."""

_IMAGE = "busybox:1.36"
_RUN = ("echo hello from $RISEML_JOB", 'echo hello > "$OUTPUT_DIR/hello"', 'test "$(cat "$OUTPUT_DIR/hello")" = hello')
_COLUMNS = (Column("HOST"), Column("OUTCOME"), Column("ID"), Column("FOUND", folds=True))


def system_test(
    context: typer.Context,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="[HOST...]", help="Only these hosts.")] = None,
    *,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="A small image with a shell; hosts fetch it if they lack it.")
    ] = _IMAGE,
    json: JsonOption = False,
) -> None:
    """Run a small job on each host.

    It starts, prints a line, and writes to its OUTPUT_DIR, through everything that a real one goes through. It is an
    experiment with an ID; once it has ended, `riseml status -a` does not list it.
    """
    tools: Tools = context.obj
    with tools.connect_to_run() as client:
        known = {host["name"]: host for host in client.system()["hosts"]}
        begun = {name: _begin(client, name, known.get(name), image) for name in hosts or sorted(known)}
        findings = [_finish(client, name, found) for name, found in begun.items()]
    if json:
        tools.render.json({"findings": findings})
    else:
        rows = [[one["host"], one["outcome"], one["id"] or "-", one["message"]] for one in findings]
        tools.render.table(_COLUMNS, rows)
    bad = sum(one["outcome"] != "ok" for one in findings)
    if bad:
        ids = [one["id"] for one in findings if one["outcome"] != "ok" and one["id"]]
        look = f" `riseml logs {ids[0]}` shows what the job said." if ids else ""
        tools.render.say(f"{plural(bad, 'host')} failed.{look}")
        raise Exit(1)


def _begin(client: Client, name: str, host: wire.HostView | None, image: str) -> str | RisemlError:
    """The ID of the job that was started there, or why none was."""
    if host is None:
        return RisemlError("there is no such host; `riseml pool` shows them")
    if host["state"] == "silent":
        return RisemlError(host["message"] or "it does not answer")
    if host["state"] != "up":
        return RisemlError(f"it is {host['state']} and gets nothing new; `riseml pool resume {name}` changes that")
    resources = {"cpus": 0.1, "mem": "64MiB", "labels": {HOST_LABEL: name}}
    train = {"image": image, "resources": resources, "max_duration": "10m", "run": list(_RUN)}
    config = codec.dumps({"project": TESTS, "train": train})
    try:
        submission: wire.Submission = {"project": TESTS, "file": "riseml.yml", "config": config}
        return client.submit({**submission, "key": uuid.uuid4().hex})["id"]
    except RisemlError as error:
        return RisemlError(error.message.splitlines()[-1])  # of a SpecError, the problem itself


def _finish(client: Client, name: str, begun: str | RisemlError) -> wire.HostFinding:
    if isinstance(begun, RisemlError):
        return {"host": name, "outcome": "failed", "id": None, "message": begun.message}
    said = [entry["text"] for entry in client.logs(begun) if entry["type"] == "line" and entry["id"].endswith(".train")]
    found = client.experiment(begun)
    if found["state"] != "FINISHED":
        message = found["message"] or found["reason"]
        return {"host": name, "outcome": "failed", "id": begun, "message": f"{found['state']}: {message}"}
    if said != ["hello from train"]:
        return {"host": name, "outcome": "failed", "id": begun, "message": f"its log is not what it printed: {said}"}
    return {"host": name, "outcome": "ok", "id": begun, "message": "ran, logged and wrote to its OUTPUT_DIR"}
