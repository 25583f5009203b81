"""A gang on three nodes of a private Slurm cluster: `riseml train`, and a bare sbatch with one srun a role.

A job of riseml gets the environment of a login on its node, never the server's (`--export=NONE`): Slurm runs a login
shell for it. A second bare sbatch has the same option, and shows how much time this takes.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common import BenchContext, Measure, Report, bar_at_most, interleave, median, select_measures
from benchmarks.engine import poll_until
from benchmarks.gang import change_code, make_project, make_train_section
from benchmarks.home import Home
from tests.support.slurm_cluster import SlurmCluster, running_cluster

_JOB = 2.0  # seconds
_LIMIT = 2.0  # times the bare sbatch
_DEADLINE = 120.0  # seconds
_NOTE = 'date +%s.%N >"$PLACE/$NAME"; '
_LINES = {"master": "echo begun; sleep 2; echo done", "worker-1": "exec sleep 600", "ps-1": "exec sleep 600"}
_RUNNING = "from the command to the last role's start"
_WALL = "a 2 s job, from the command to its end"
RISEML = "riseml train"
BARE = "a bare sbatch"
SAME = "a bare sbatch --export=NONE"
_CAUSE = (
    "the environment of a login on the node (`--export=NONE`), the command's own start, the copies of the project, a"
    " supervisor and a wrapper for each role, which are Python processes, and the shared folder, at which the server"
    " looks twice a second"
)
_BARE = """#!/bin/sh
#SBATCH --ntasks=3 --cpus-per-task=3 --mem-per-cpu=70M --output={folder}/batch.log
export PLACE={folder}
step() {{ NAME=$1 srun --export=ALL --nodes=1 --ntasks=1 --cpus-per-task=3 --exact --mem=200M --output={folder}/$1.log \
/bin/sh -ec "$2" & others="$others $!"; }}
{steps}
wait "$master"
kill -9 $others
wait
date +%s.%N >{folder}/end
"""


def run(context: BenchContext) -> Report:
    report = Report()
    train = make_train_section(
        {name: f"PLACE=$OUTPUT_DIR NAME={name}; {_NOTE}{line}" for name, line in _LINES.items()},
        resources={"cpus": 3, "mem": "200MiB"},
    )
    project = make_project(context, train)
    with running_cluster() as cluster:
        cluster.write_pool(context.folder / "home")
        with Home(context, **cluster.environment) as home:
            contenders = {
                BARE: lambda turn: _run_bare(context.folder / f"bare{turn}", cluster),
                SAME: lambda turn: _run_bare(context.folder / f"same{turn}", cluster, "--export=NONE"),
                RISEML: lambda turn: _run_riseml(home, project, turn, cluster),
            }
            results = interleave(context.rounds(6), contenders, skip=1)
    for name in (_RUNNING, _WALL):
        report.add(name, *select_measures(results, name))
    for name in (BARE, SAME):
        overhead = [value - median(results[name][_WALL]) for value in results[RISEML][_WALL]]
        report.add(f"the 2 s job: over {name}", Measure("overhead", tuple(overhead)))
    bare, riseml_time = (median(results[name][_WALL]) for name in (BARE, RISEML))
    requirement = f"a 2 s gang on three nodes: at most {_LIMIT:g} x {BARE}"
    report.bars = [bar_at_most(requirement, riseml_time, _LIMIT * bare, "s", _CAUSE)]
    report.notes = ["the bare sbatch copies no code, merges no logs, and ends the other roles with SIGKILL"]
    return report


def _run_riseml(home: Home, project: Path, turn: int, cluster: SlurmCluster) -> Mapping[str, float]:
    change_code(project, turn)
    begun = time.time()
    command = home.run("train", cwd=project)
    if not re.search(r"\.master .*\] done$", command.out, re.MULTILINE):
        raise RuntimeError(f"the log is incomplete:\n{command.out}")
    experiment = home.wait_closed(str(turn + 2))
    if experiment["state"] != "FINISHED":
        raise RuntimeError(f"the gang ended {experiment['state']}: {experiment['message']}")
    running = _find_last_start(Path(experiment["output"])) - begun
    cluster.wait_idle()
    return {_RUNNING: running, _WALL: command.seconds}


def _run_bare(folder: Path, cluster: SlurmCluster, *options: str) -> Mapping[str, float]:
    folder.mkdir()
    steps = "\n".join(
        f"step {name} '{_NOTE}{line}'{'; master=$!' if name == 'master' else ''}" for name, line in _LINES.items()
    )
    script = _BARE.format(folder=folder, steps=steps)
    begun = time.time()
    environ = {**os.environ, **cluster.environment}
    subprocess.run(["sbatch", *options], input=script, env=environ, text=True, check=True, stdout=subprocess.DEVNULL)
    poll_until("the bare job ends", (folder / "end").exists, _DEADLINE, 0.01)
    wall = time.time() - begun
    if (folder / "master.log").read_text() != "begun\ndone\n":
        raise RuntimeError(f"the bare job is incomplete: {(folder / 'batch.log').read_text()}")
    cluster.wait_idle()
    return {_RUNNING: _find_last_start(folder) - begun, _WALL: wall}


def _find_last_start(folder: Path) -> float:
    """Return when the last role started, in seconds since 1970. Each role writes its own time into a file.

    Raises:
        FileNotFoundError: a role has not written it.
    """
    return max(float((folder / name).read_text()) for name in _LINES)
