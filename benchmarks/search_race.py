"""A search of short trials beside plain Optuna: the same space, sampler, number of trials and processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.common import BenchContext, Measure, Report, bar_at_most, bar_of_time, interleave, median
from benchmarks.home import Home, write_project
from benchmarks.machine import make_environ

_TRIALS = 300
_AT_ONCE = 2  # trials of riseml, processes of Optuna
_ROUNDS = 3
_MOST_RATIO = 1.4
_JOBS = 100  # that do nothing
_MOST_PER_JOB = 0.1  # seconds
_WALL = "from the command to its end"
_PER_JOB = "one of them"
RISEML = "riseml train"
OPTUNA = "plain Optuna, two processes"

_PARAMETERS = {
    "lr": {"log": {"min": 1e-5, "max": 0.1}},
    "units": {"int": {"min": 16, "max": 256, "step": 16}},
    "dropout": {"uniform": {"min": 0, "max": 0.5, "step": 0.1}},
    "layers": [2, 3, 4],
}
_RUN = 'sleep 0.1; echo "riseml.report {\\"score\\": {{dropout}}}"'
_WORKER = """
import sys, time
import optuna
storage, trials = sys.argv[1], int(sys.argv[2])
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(
    study_name="search", storage=storage, sampler=optuna.samplers.TPESampler(constant_liar=True)
)
def train(trial):
    trial.suggest_float("lr", 1e-5, 0.1, log=True)
    trial.suggest_int("units", 16, 256, step=16)
    dropout = trial.suggest_float("dropout", 0, 0.5, step=0.1)
    trial.suggest_categorical("layers", ["2", "3", "4"])
    time.sleep(0.1)
    return dropout
study.optimize(train, n_trials=trials)
"""
_CREATE = """
import sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
optuna.create_study(study_name="search", storage=sys.argv[1], direction="maximize")
"""


def add_race(report: Report, context: BenchContext) -> None:
    """Run both in turns, and add a bar for their ratio, and one for jobs that do nothing."""
    trials = context.rounds(_TRIALS, 20)
    train = {
        "image": "python:3.11",
        "run": _RUN,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": _PARAMETERS,
        "search": {"method": "tpe", "trials": trials, "metric": "score", "goal": "maximize", "seed": 7},
        "concurrency": _AT_ONCE,
    }
    project = write_project(context.folder / "race", train)
    with Home(context, "race-home", RISEML_EXECUTOR="process") as home:
        contenders = {
            RISEML: lambda _: {_WALL: home.run("train", cwd=project).seconds},
            OPTUNA: lambda turn: {_WALL: run_optuna(context.folder / f"race-{turn}.db", trials)},
        }
        results = interleave(context.rounds(_ROUNDS), contenders, skip=1)
        _add_idle_jobs(report, context, home)
    walls = {name: Measure(name, tuple(kinds[_WALL])) for name, kinds in results.items()}
    report.add(f"{trials} trials of 0.1 s with TPE, {_AT_ONCE} at once, processes: {_WALL}", *walls.values())
    ratio = walls[RISEML].median / walls[OPTUNA].median
    requirement = f"{trials} trials of 0.1 s: riseml beside plain Optuna"
    report.bars.append(bar_at_most(requirement, ratio, _MOST_RATIO, "", "each trial is an experiment of its own"))


def _add_idle_jobs(report: Report, context: BenchContext, home: Home) -> None:
    count = context.rounds(_JOBS, 10)
    train = {
        "image": "python:3.11",
        "run": "true  # {{number}}",
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"number": list(range(count))},
        "concurrency": _AT_ONCE,
    }
    project = write_project(context.folder / "idle", train)
    seconds = [home.run("train", cwd=project).seconds / count for _ in range(context.rounds(_ROUNDS))]
    report.add(f"{count} jobs `true`, {_AT_ONCE} at once, processes: {_PER_JOB}", Measure(RISEML, tuple(seconds), "ms"))
    report.bars.append(bar_of_time("a job `true`, one of a set", median(seconds), _MOST_PER_JOB, "ms"))


def run_optuna(file: Path, trials: int) -> float:
    """Return the seconds that two processes of plain Optuna take for these trials, with a new store in SQLite."""
    storage = f"sqlite:///{file}"
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", _CREATE, storage], env=make_environ(), check=True)
    command = [sys.executable, "-c", _WORKER, storage, str(trials // _AT_ONCE)]
    workers = [subprocess.Popen(command, env=make_environ()) for _ in range(_AT_ONCE)]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        raise RuntimeError(f"the processes of Optuna ended with {codes}")
    return time.perf_counter() - begun
