"""`system test`: real jobs that measure each host, its GPUs, and the network between each pair of hosts."""

from __future__ import annotations

import hashlib
import itertools
import json as codec
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from riseml.base.errors import RisemlError, UsageError
from riseml.base.names import HOST_LABEL
from riseml.base.records import dataclass
from riseml.cli.commands.experiments import TEST_PROJECT
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext, Exit
from riseml.cli.output.tables import Column, build_table
from riseml.cli.output.text import count_noun, format_seconds
from riseml.submission.submitting import add_executor

if TYPE_CHECKING:
    from riseml import wire
    from riseml.analysis.host_tests import HostMeasure
    from riseml.client.server_client import Client

_IMAGE = "python:3.11"
_LEAST_MEM = 64  # MiB of a job: Python and the buffers that it compares
_PYTHON_MEM = 48  # MiB of a job that the stress leaves to Python
_MOST_FILE = 1024  # MiB that a job writes to its disk and to OUTPUT_DIR
_MOST_PAIRS = 45  # ten hosts; beyond, each host is tested with the next one alone
_FINDINGS = (Column("HOST"), Column("OUTCOME"), Column("ID"), Column("FOUND", folds=True))


@dataclass(frozen=True, slots=True)
class _TestPlan:
    """What the options ask for."""

    image: str
    cpus: float  # cores of each job
    mem: int  # MiB of each job
    seconds: float  # length of each measure
    gpus: int | None  # GPUs of each job; None: all that are free on its host
    builds: bool  # each job has a new environment
    rounds: int  # rounds of stress; 0: none
    stress: float  # seconds of each round

    @property
    def stress_seconds(self) -> float:
        """How long the stress of one host takes."""
        return self.rounds * self.stress


@dataclass(frozen=True, slots=True)
class _TestRun:
    """One experiment of the test, and what came of it."""

    hosts: tuple[str, ...]
    id: str | None = None  # None: it could not start
    report: Mapping[str, Any] | None = None  # None: it failed
    problems: tuple[str, ...] = ()
    measures: tuple[HostMeasure, ...] = field(default=())


def run_system_test(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="[HOST...]", help="Only these hosts.")] = None,
    *,
    host: Annotated[
        list[str] | None, typer.Option("--host", "--nodename", metavar="NAME", help="Only this host.")
    ] = None,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="An image with Python; with torch, GPUs are tested together, too.")
    ] = _IMAGE,
    jobs: Annotated[int, typer.Option("--num-jobs", min=1, max=100, metavar="N", help="Jobs for each host.")] = 1,
    cpus: Annotated[
        float,
        typer.Option(
            "--cpus", "--num-cpus", "--request-cpus", min=0.01, metavar="N", help="Cores that each job gets and loads."
        ),
    ] = 1,
    mem: Annotated[
        str, typer.Option("--mem", "--request-mem", metavar="SIZE", help="Memory that each job gets, writes and reads.")
    ] = "512MiB",
    gpus: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", show_default=False, help="GPUs of each job. Default: all that are free."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, metavar="S", help="For each measure.")] = 5,
    rounds: Annotated[
        int, typer.Option(min=0, max=1000, metavar="N", help="Rounds of stress on cores and memory; 0: none.")
    ] = 15,
    stress: Annotated[float, typer.Option(min=0.1, max=3600, metavar="S", help="For each round of stress.")] = 20,
    network: Annotated[bool, typer.Option("--network/--no-network", help="Test the network between hosts.")] = True,
    builds: Annotated[bool, typer.Option("--force-build-steps", help="Build a new environment for it.")] = False,
    json: JsonOption = False,
) -> None:
    """Test each host with real jobs: cores, memory, disks, OUTPUT_DIR, GPUs, and the network between hosts.

    Then each job stresses the cores and the memory that it asked for: 15 rounds of 20 s, which `--rounds 1` shortens.
    The jobs are experiments with IDs and take the same way as every other; once they have ended, `riseml status -a`
    does not list them. The exit code is 1 when something is wrong, or worse than half of what its peers reach.
    """
    command: CommandContext = context.obj
    command = replace(command, asks=command.asks and not json)
    plan = _TestPlan(image, cpus, _read_mem(mem), seconds, gpus, builds, rounds, stress)
    if rounds:
        length = format_seconds(plan.stress_seconds)
        command.printer.say(f"The stress of each host takes {length}; `--rounds 1` takes {format_seconds(stress)}.")
    with command.connect_to_run() as client:
        pool = {view["name"]: view for view in client.get_system()["hosts"]}
        chosen = [*(hosts or []), *(host or [])] or sorted(pool)
        started = [
            _start_run(client, (name,), pool, _make_host_test(command, name, plan, pool))
            for name in chosen
            for _ in range(jobs)
        ]
        runs = [_finish_host_run(client, run) for run in started]
        pairs = _list_pairs([run.hosts[0] for run in runs if run.report is not None], pool) if network else []
        links = [_finish_link_run(client, _start_link(command, client, pair, plan, pool)) for pair in pairs]
    findings = _judge_hosts(runs)
    connections = _judge_links(links)
    if json:
        command.printer.print_json({"findings": findings, "links": connections})
    else:
        rows = [[finding["host"], finding["outcome"], finding["id"] or "-", finding["message"]] for finding in findings]
        rows += [
            [" - ".join(connection["hosts"]), connection["outcome"], connection["id"] or "-", connection["message"]]
            for connection in connections
        ]
        command.printer.print_lines(build_table(_FINDINGS, rows, command.printer.style))
    _end(command, [*findings, *connections])


def _end(command: CommandContext, findings: Sequence[wire.HostFinding | wire.LinkFinding]) -> None:
    """End with exit code 1 when a finding is not ok."""
    bad = [finding for finding in findings if finding["outcome"] != "ok"]
    if not bad:
        return
    ids = [finding["id"] for finding in bad if finding["id"]]
    next_step = f" `riseml logs {ids[0]}` shows what the job printed." if ids else ""
    failed = sum(finding["outcome"] == "failed" for finding in bad)
    parts = [f"{count_noun(failed, 'test')} failed"] if failed else []
    parts += [f"{count_noun(len(bad) - failed, 'test')} found something slow"] if len(bad) > failed else []
    command.printer.say(f"{', '.join(parts)}.{next_step}")
    raise Exit(1)


def _read_mem(text: str) -> int:
    """Return an amount of memory in MiB.

    Raises:
        UsageError: it is not an amount, or too small for a test.
    """
    from riseml.spec.scalars.quantities import parse_memory
    from riseml.spec.scalars.texts import BadText

    try:
        mib = parse_memory(text)
    except BadText:
        mib = 0
    if mib < _LEAST_MEM:
        raise UsageError(f"--mem {text} is not an amount of memory from {_LEAST_MEM}MiB up", "write `--mem 512MiB`")
    return mib


def _make_host_test(
    command: CommandContext, name: str, plan: _TestPlan, pool: Mapping[str, wire.HostView]
) -> wire.Submission:
    """Return the experiment that measures one host."""
    view = pool.get(name)
    free = 0 if view is None else view["gpus"] - view["gpus_used"]
    gpus = free if plan.gpus is None else plan.gpus
    buffer = max(8, (plan.mem - 32) // 2)  # Python and both blocks take the rest
    stressed = max(8, plan.mem - _PYTHON_MEM)
    arguments = f"host {plan.seconds:g} {max(1, math.ceil(plan.cpus))} {min(buffer, _MOST_FILE)} {gpus}"
    arguments += f" {plan.rounds} {plan.stress:g} {plan.cpus:g} {stressed}"
    train: dict[str, object] = {
        "image": plan.image,
        "resources": _make_resources(name, plan) | ({"gpus": gpus} if gpus else {}),
        "max_duration": f"{600 + int(plan.seconds * 10 + plan.stress_seconds * 2)}s",
        "run": _write_run(arguments),
    }
    if gpus:
        train["env"] = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    if plan.builds:
        import uuid

        train["install"] = [f"echo {uuid.uuid4().hex}"]
    return _make_submission(command, train)


def _start_link(
    command: CommandContext,
    client: Client,
    pair: tuple[str, str],
    plan: _TestPlan,
    pool: Mapping[str, wire.HostView],
) -> _TestRun:
    """Start the gang that measures the network between two hosts."""
    roles = {
        "caller": {
            "run": _write_run(f"link {plan.seconds:g}"),
            "resources": _make_resources(pair[0], plan),
            "after": ["listener"],
        },
        "listener": {"run": _write_run("listen"), "resources": _make_resources(pair[1], plan), "ends": "serves"},
    }
    train: dict[str, object] = {"image": plan.image, "max_duration": f"{600 + int(plan.seconds * 10)}s", "roles": roles}
    return _start_run(client, pair, pool, _make_submission(command, train))


def _make_resources(host: str, plan: _TestPlan) -> dict[str, object]:
    return {"cpus": plan.cpus, "mem": f"{plan.mem}MiB", "labels": {HOST_LABEL: host}}


def _write_run(arguments: str) -> str:
    """Return the lines of `run`: they write the program to a temporary file and run it."""
    from importlib.resources import files

    program = files("riseml.job_programs").joinpath("host_test.py").read_text(encoding="utf-8")
    lines = ('program="$(mktemp)"', f"cat >\"$program\" <<'RISEML_PROGRAM'\n{program}RISEML_PROGRAM")
    return "\n".join([*lines, f'exec python3 "$program" {arguments}'])


def _make_submission(command: CommandContext, train: Mapping[str, object]) -> wire.Submission:
    config = codec.dumps({"project": TEST_PROJECT, "train": train})
    return add_executor(command, {"project": TEST_PROJECT, "file": "riseml.yml", "config": config})


def _list_pairs(hosts: Iterable[str], pool: Mapping[str, wire.HostView]) -> list[tuple[str, str]]:
    """Return the pairs of hosts whose network is tested: all, or each host with the next one in a large pool."""
    names = sorted({name for name in hosts if not pool[name]["engine"].startswith("processes")})
    pairs = list(itertools.combinations(names, 2))
    return pairs if len(pairs) <= _MOST_PAIRS else list(zip(names, [*names[1:], names[0]], strict=True))


def _start_run(
    client: Client, hosts: tuple[str, ...], pool: Mapping[str, wire.HostView], submission: wire.Submission
) -> _TestRun:
    """Return the experiment that was started on the hosts, or the reason why none was started."""
    import uuid

    for name in hosts:
        view = pool.get(name)
        if view is None:
            return _TestRun(hosts, problems=("there is no such host; `riseml pool` shows the hosts",))
        if view["state"] == "silent":
            return _TestRun(hosts, problems=(view["message"] or "it does not answer",))
        if view["state"] != "up":
            problem = f"it is {view['state']} and gets no new jobs; `riseml pool resume {name}` changes that"
            return _TestRun(hosts, problems=(problem,))
    try:
        return _TestRun(hosts, client.submit({**submission, "key": uuid.uuid4().hex})["id"])
    except RisemlError as error:
        return _TestRun(hosts, problems=(error.message.splitlines()[-1],))  # the problem of a SpecError


def _await_report(client: Client, run: _TestRun, job: str) -> _TestRun:
    """Return the run with the report that one of its jobs printed."""
    from riseml.analysis.host_tests import read_report

    if run.id is None:
        return run
    lines = [
        entry["text"]
        for entry in client.stream_log(run.id)
        if entry["type"] == "line" and entry["id"] == f"{run.id}.{job}"
    ]
    view = client.get_experiment(run.id)
    if view["state"] != "FINISHED":
        return replace(run, problems=(f"{view['state']}: {view['message'] or view['reason']}",))
    report = read_report(lines)
    if report is None:
        return replace(run, problems=("its log has no report, although its job has ended well",))
    return replace(run, report=report)


def _finish_host_run(client: Client, run: _TestRun) -> _TestRun:
    """Wait for the job of one host; compare the file that it left with what the server reads."""
    from riseml.analysis.host_tests import list_faults, list_host_measures

    run = _await_report(client, run, "train")
    if run.id is None or run.report is None:
        return run
    problems = [*list_faults(run.report), *_check_file(client, run.id, run.report["file"])]
    return replace(run, problems=tuple(problems), measures=tuple(list_host_measures(run.hosts[0], run.report)))


def _check_file(client: Client, identity: str, digest: str) -> list[str]:
    """Return what is wrong with the file that a job left in OUTPUT_DIR, as the server reads it."""
    from riseml.client.file_client import StoragePlace

    try:
        pieces = client.open_files(StoragePlace("output", identity)).read_file("system-test")
        size = int(next(pieces).split()[0])  # a header comes first, a proof last
        content = b"".join(pieces)[:size]
    except RisemlError as error:
        return [f"the server cannot read what the job wrote to OUTPUT_DIR: {error.message}"]
    if hashlib.sha256(content).hexdigest() != digest:
        return ["the server reads something else in OUTPUT_DIR than the job wrote: is the folder the same on the host?"]
    return []


def _finish_link_run(client: Client, run: _TestRun) -> _TestRun:
    from riseml.analysis.host_tests import list_link_measures

    run = _await_report(client, run, "caller")
    if run.report is None:
        return run
    return replace(run, measures=tuple(list_link_measures((run.hosts[0], run.hosts[1]), run.report)))


def _judge_hosts(runs: Sequence[_TestRun]) -> list[wire.HostFinding]:
    """Return what was found on each host, compared with the others."""
    from riseml.analysis.host_tests import describe_gpu, find_slow, list_notes

    slow = find_slow([measure for run in runs for measure in run.measures])
    findings: list[wire.HostFinding] = []
    for run in runs:
        outcome, message = _judge(run, slow)
        report = run.report or {}
        gpus = report.get("gpus", [])
        parts = [message, *map(describe_gpu, gpus), *(list_notes(report) if report else ())]
        findings.append(
            {
                "host": run.hosts[0],
                "outcome": outcome,
                "id": run.id,
                "message": "; ".join(parts),
                "measures": _show_measures(run),
                "gpus": [_show_gpu(gpu) for gpu in gpus],
            }
        )
    return findings


def _judge_links(runs: Sequence[_TestRun]) -> list[wire.LinkFinding]:
    """Return what was found on each connection, compared with the others."""
    from riseml.analysis.host_tests import find_slow

    slow = find_slow([measure for run in runs for measure in run.measures])
    findings: list[wire.LinkFinding] = []
    for run in runs:
        outcome, message = _judge(run, slow)
        findings.append(
            {
                "hosts": list(run.hosts),
                "outcome": outcome,
                "id": run.id,
                "message": message,
                "measures": _show_measures(run),
            }
        )
    return findings


def _judge(run: _TestRun, slow: Mapping[str, list[str]]) -> tuple[Literal["ok", "slow", "failed"], str]:
    """Return the outcome of a run, and what people read of it."""
    values = ", ".join(measure.describe() for measure in run.measures if not measure.gpu)
    reasons = slow.get(" - ".join(run.hosts), [])
    parts = [*run.problems, *(f"slow: {reason}" for reason in reasons), *([values] if values else [])]
    return "failed" if run.problems else "slow" if reasons else "ok", "; ".join(parts)


def _show_measures(run: _TestRun) -> list[wire.MeasureView]:
    return [
        {"name": measure.name, "value": round(measure.value, 3), "unit": measure.unit, "gpu": measure.gpu}
        for measure in run.measures
    ]


def _show_gpu(gpu: Mapping[str, Any]) -> wire.TestedGpuView:
    return {
        "index": gpu["index"],
        "uuid": gpu["uuid"],
        "model": gpu["model"],
        "driver": gpu.get("driver", ""),
        "mem_mib": gpu.get("memory_mib", 0),
        "watts": gpu.get("watts"),
        "celsius": gpu.get("celsius"),
        "errors": gpu["errors"],
    }
