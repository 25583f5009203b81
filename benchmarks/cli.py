"""The command line: wall time of commands and of a completion, the start of a server, and the imported modules."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import (
    Bar,
    BenchContext,
    Measure,
    Report,
    RunOnce,
    bar_at_most,
    bar_of_time,
    interleave,
    select_measures,
)
from benchmarks.engine import BASE
from benchmarks.gang import make_project
from benchmarks.home import COMMAND, Home
from benchmarks.pace import start_python

_WALL = "wall time"
_BARS = {"--help": 0.060, "validate": 0.090, "status": 0.100, "logs": 0.100}
_COMPLETION = 0.100
_MOST_OF_COMPLETION = 3.0  # times the sum of `python -c pass` and one request with curl
_COLD = 0.7
_COMMAND_CAUSE = "the start of Python, and the imports of typer: the slowest are in the notes"
_COLD_CAUSE = "the server imports fastapi, sqlalchemy and the docker SDK, and checks its tables, before it answers"
_SINGLE = {"image": BASE, "resources": {"cpus": 0.05, "mem": "64MiB"}, "run": "seq 1000"}
# Modules that these commands must not import: they are slow, and the commands do not need them.
_HEAVY = {
    "--help": ("httpx", "yaml", "jsonschema", "docker", "requests", "sqlalchemy", "fastapi", "pydantic", "rich"),
    "validate": ("jsonschema", "httpx", "docker", "requests", "sqlalchemy", "fastapi", "pydantic", "uvicorn", "rich"),
    "status": ("httpx", "docker", "requests", "sqlalchemy", "fastapi", "pydantic", "uvicorn", "jsonschema", "rich"),
    "logs": ("httpx", "docker", "requests", "sqlalchemy", "fastapi", "pydantic", "uvicorn", "jsonschema", "rich"),
}


def run(context: BenchContext) -> Report:
    report = Report()
    project = make_project(context, _SINGLE)
    with Home(context) as home:
        experiment = home.train(project)
        home.wait_closed(experiment)
        words = {"--help": ["--help"], "validate": ["validate"], "status": ["status"], "logs": ["logs", experiment]}
        contenders: dict[str, RunOnce] = {"python -c pass": lambda turn: {_WALL: start_python()}}
        for name in _BARS:
            contenders[f"riseml {name}"] = _command(home, words[name], project)
        contenders |= {"completion of an ID": lambda turn: _complete(home), "curl": lambda turn: _request(home)}
        results = interleave(context.rounds(20, 3), contenders, skip=1)
        report.add(_WALL, *select_measures(results, _WALL, "ms"))
        for name, limit in _BARS.items():
            value = Measure(name, tuple(results[f"riseml {name}"][_WALL])).median
            report.bars.append(bar_of_time(f"riseml {name}", value, limit, "ms", _COMMAND_CAUSE))
        report.bars += _judge_completion(
            {name: Measure(name, tuple(kinds[_WALL])).median for name, kinds in results.items()}
        )
        imports = {name: _imports(home, words[name], project) for name in _BARS}
        cold = [_cold(home, project) for _ in range(context.rounds(5, 1))]
    report.add("cold start of the server", Measure("riseml status", tuple(cold)))
    report.bars.append(bar_of_time("cold server start", Measure("", tuple(cold)).median, _COLD, "s", _COLD_CAUSE))
    for name, modules in imports.items():
        heavy = sorted({module.split(".")[0] for module in modules} & set(_HEAVY[name]))
        slow = ", ".join(f"{module} {micros / 1000:.0f} ms" for module, micros in _slowest(modules))
        report.notes.append(f"riseml {name} imports {len(modules)} modules; the slowest alone: {slow}")
        report.bars.append(Bar(f"riseml {name} imports nothing that it does not need", _named(heavy), not heavy))
    return report


def _named(heavy: list[str]) -> str:
    return f"it imports {', '.join(heavy)}" if heavy else "proved by -X importtime"


def _command(home: Home, words: list[str], project: Path) -> RunOnce:
    return lambda turn: {_WALL: home.run(*words, cwd=project).seconds}


def _complete(home: Home) -> Mapping[str, float]:
    """Measure the process that a shell runs when the user presses Tab to complete an ID."""
    begun = time.perf_counter()
    subprocess.run([COMMAND, ""], env={**home.environ, "_RISEML_NAMES": "all"}, check=True, capture_output=True)
    return {_WALL: time.perf_counter() - begun}


def _request(home: Home) -> Mapping[str, float]:
    begun = time.perf_counter()
    curl = ["curl", "--silent", "--fail", "--unix-socket", str(home.socket)]
    subprocess.run([*curl, "http://riseml/v1/names"], env=home.environ, check=True, capture_output=True)
    return {_WALL: time.perf_counter() - begun}


def _judge_completion(medians: Mapping[str, float]) -> list[Bar]:
    completion = medians["completion of an ID"]
    least = medians["python -c pass"] + medians["curl"]
    name = "completion of an ID"
    return [
        bar_of_time(
            name, completion, _COMPLETION, "ms", "Python's start is part of it: the next bar is a ratio to that"
        ),
        bar_at_most(f"{name}: times python -c pass and curl", completion / least, _MOST_OF_COMPLETION, ""),
    ]


def _cold(home: Home, project: Path) -> float:
    """Measure the first command: it starts a server and waits for the answer."""
    home.stop()
    return home.run("status", cwd=project).seconds


def _imports(home: Home, words: list[str], project: Path) -> dict[str, int]:
    """Return every imported module with its own time in microseconds."""
    command = [sys.executable, "-X", "importtime", COMMAND, *words]
    listing = subprocess.run(command, cwd=project, env=home.environ, capture_output=True, text=True, check=True).stderr
    rows = re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", listing, re.MULTILINE)
    times = {module: int(micros) for micros, module in rows}
    if "riseml.cli.main" not in times:  # without it, an absent module would prove nothing
        raise RuntimeError(f"-X importtime of riseml {' '.join(words)} does not name riseml's own modules")
    return times


def _slowest(modules: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(modules.items(), key=lambda pair: -pair[1])[:3]
