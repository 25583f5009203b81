"""A run as shell scripts: all jobs as processes of one machine (`--sh`), or as tasks of one batch job.

Neither uses containers: `install.sh` runs the install steps in a virtual environment, with the packages of the original
run as constraints where they are known.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from typing import Literal

from riseml import wire
from riseml.base.terminal_text import plain_line
from riseml.capsules.exported_run import (
    CODE,
    EXIT_ON_SIGNALS,
    ExportedFile,
    ExportedJob,
    ExportedRun,
    describe_run,
    list_step_commands,
    write_report_module,
)
from riseml.capsules.foreign_fields import quote_pieces
from riseml.job_programs.held_packages import count_framework_steps, make_hold_command
from riseml.spec.scalars.framework_images import list_image_packages

_PEERS = re.compile(r"\b([a-z][a-z0-9-]*)\.peer\.riseml\b|(?<![\w./-])/(output|data)(?![\w-])")
_LEFT_OUT = frozenset({"HOME", "USER", "LOGNAME", "TINI_KILL_PROCESS_GROUP", "OUTPUT_DIR", "DATA_DIR"})

_SH = """\
#!/bin/sh
# Runs all jobs as processes of this machine, and ends them when those that decide have ended: the exit code is theirs.
set -eu
cd "$(dirname "$0")"
export OUTPUT_DIR="${{OUTPUT_DIR:-$PWD/output}}" DATA_DIR="${{DATA_DIR:-{data}}}"
mkdir -p "$OUTPUT_DIR" work
[ -e venv/.complete ] || ./install.sh
{hosts}
started=""
end() {{
    for pid in $started; do kill -TERM "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null || :; done
    [ -z "$links" ] || rm -rf "$links"
}}
{paths}
trap end EXIT
{signals}
{starts}
code=0
for pid in {deciders}; do
    wait "$pid" || code=$?
done
exit "$code"
"""

_SLURM = """\
#!/bin/bash
#SBATCH --job-name={title}
#SBATCH --ntasks={tasks}
#SBATCH --cpus-per-task={cpus}
#SBATCH --mem-per-cpu={mem}M
{options}# Runs each job as a task. The folder must be one that all nodes see.
# The job ends when the tasks that decide have ended: the exit code is theirs.
set -eu
cd "${{SLURM_SUBMIT_DIR:-$(dirname "$0")}}"
export OUTPUT_DIR="${{OUTPUT_DIR:-$PWD/output}}" DATA_DIR="${{DATA_DIR:-{data}}}"
mkdir -p "$OUTPUT_DIR" work
rm -f work/exit-*
[ -e venv/.complete ] || ./install.sh
hosts=$(srun --ntasks={tasks} sh -c 'echo "$SLURM_PROCID $(hostname)"' | sort -n | cut -d" " -f2)
set -- $hosts
{places}
srun --ntasks={tasks} ./task.sh &
tasks=$!
code=0
for job in {deciders}; do
    until [ -e "work/exit-$job" ] || ! kill -0 "$tasks" 2>/dev/null; do sleep 1; done
    ended=$(cat "work/exit-$job" 2>/dev/null || echo 1)
    [ "$ended" -eq 0 ] || code=$ended
done
kill -TERM "$tasks" 2>/dev/null || :
exit "$code"
"""

# `mktemp` replaces the X's of its template; the folder is fixed because pip does not read a path with a space.
_CONSTRAINTS = """\
PIP_CONSTRAINT=$(mktemp /tmp/riseml.XXXXXX) # pip reads a space in the name as the end of it
export PIP_CONSTRAINT UV_CONSTRAINT="$PIP_CONSTRAINT"
trap 'rm -f "$PIP_CONSTRAINT"' EXIT
"""

_ALL_CONSTRAINTS = f"""\
{_CONSTRAINTS}cp packages.txt "$PIP_CONSTRAINT"
"""

_TASK = """\
#!/bin/sh
# One task of job.sbatch: its number decides which job it runs.
case "$SLURM_PROCID" in
{cases}
esac
{paths}
trap '[ -z "$links" ] || rm -rf "$links"' EXIT
{signals}
code=0
"./jobs/$job.sh" || code=$?
echo "$code" > "work/exit-$job"
exit "$code"
"""

# `mktemp` replaces the X's of its template; the links are for scripts that cannot have the characters of a user's path.
_PATHS = """\
# Scripts name these folders without quotes: paths with other characters are reached through links.
links=""
export OUTPUT_PATH="$OUTPUT_DIR" DATA_PATH="$DATA_DIR"
case "$OUTPUT_DIR$DATA_DIR" in
    *[!A-Za-z0-9_./-]*)
        links=$(mktemp -d /tmp/riseml.XXXXXX) # it replaces the X's
        ln -s "$OUTPUT_DIR" "$links/output"
        ln -s "$DATA_DIR" "$links/data"
        OUTPUT_PATH=$links/output DATA_PATH=$links/data
        ;;
esac"""

_INSTALL = """\
#!/bin/sh
# Makes the environment: runs the install steps in a virtual environment. The image of the run was {image}.
set -eu
cd "$(dirname "$0")"
complete=$PWD/venv/.complete # exists only when every step has succeeded; without it the next run installs again
"${{PYTHON:-python3}}" -m venv venv
. venv/bin/activate
{constraints}{framework}cd {folder}
{steps}
touch "$complete"
"""


def write_sh(run: ExportedRun) -> Iterator[tuple[str, ExportedFile]]:
    """Yield run.sh, install.sh and a script for each job."""
    names = {job.hostname: _name_variable(job.hostname) for job in run.jobs}
    hosts = "\n".join(f"export {variable}=127.0.0.1" for variable in names.values())
    pids = {job.hostname: _name_pid(job) for job in run.jobs}
    starts = "\n".join(f'setsid ./jobs/{name}.sh & {pid}=$!; started="$started ${pid}"' for name, pid in pids.items())
    deciders = " ".join(f'"${_name_pid(job)}"' for job in run.deciders)
    text = _SH.format(
        data=_quote_data(run), hosts=hosts, paths=_PATHS, signals=EXIT_ON_SIGNALS, starts=starts, deciders=deciders
    )
    yield "run.sh", ExportedFile(text, executable=True)
    yield from _write_parts(run)


def write_slurm(run: ExportedRun, partition: str = "", time: str = "") -> Iterator[tuple[str, ExportedFile]]:
    """Yield job.sbatch, task.sh, install.sh and a script for each job.

    Args:
        run: what is exported.
        partition: of the cluster; empty: that of the site.
        time: the limit of the job, as sbatch reads it; empty: `max_duration` of the run, if it has one.
    """
    cpus = max(1, math.ceil(max(job.record["cpus"] for job in run.jobs)))
    mem = max(math.ceil(job.record["mem_mib"] / cpus) for job in run.jobs)
    gpus = max(job.record["gpus"] for job in run.jobs)
    names = [_name_variable(job.hostname) for job in run.jobs]
    text = _SLURM.format(
        title=run.title,
        tasks=len(run.jobs),
        cpus=cpus,
        mem=mem,
        options="".join(_list_options(run, gpus, partition, time)),
        data=_quote_data(run),
        places="\n".join(f"export {name}=${{{at}}}" for at, name in enumerate(names, start=1)),
        deciders=" ".join(job.hostname for job in run.deciders),
    )
    yield "job.sbatch", ExportedFile(text, executable=True)
    cases = "\n".join(f"    {at}) job={job.hostname} ;;" for at, job in enumerate(run.jobs))
    yield "task.sh", ExportedFile(_TASK.format(cases=cases, paths=_PATHS, signals=EXIT_ON_SIGNALS), executable=True)
    yield from _write_parts(run)


def _list_options(run: ExportedRun, gpus: int, partition: str, time: str) -> Iterator[str]:
    """Yield the lines of sbatch that depend on the site and on the run; a line with `##` has no effect."""
    if gpus:
        yield f"#SBATCH --gpus-per-task={gpus}\n"
    limit = time or _format_limit(run.max_duration)
    yield f"#SBATCH --time={limit}\n" if limit else "##SBATCH --time=1:00:00 # most sites want a limit: remove one #\n"
    site = "##SBATCH --partition=NAME # without it, that of the site: `sinfo` lists them\n"
    yield f"#SBATCH --partition={partition}\n" if partition else site


def _format_limit(seconds: float | None) -> str:
    """Return a time as sbatch reads it, `26:00:00`; empty: there is no limit."""
    if seconds is None:
        return ""
    minutes, remainder = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{remainder:02}"


def list_image_gaps(run: ExportedRun) -> list[str]:
    """Return the images whose own packages are not known, so that install.sh lacks them."""
    environment = run.capsule["environments"][0]
    return [] if _list_framework(run) or environment["packages"] else [environment["image"]]


def _list_framework(run: ExportedRun) -> tuple[str, ...]:
    """Return the packages that the image of the run brought, as far as its name says."""
    gpus = any(job.record["gpus"] for job in run.jobs)
    # Without a processor that has variants: the files may run on another machine.
    packages = list_image_packages(run.capsule["environments"][0]["image"], gpus=gpus, machine="")
    return tuple(package.replace("tensorflow==", "tensorflow[and-cuda]==") if gpus else package for package in packages)


def list_other_environments(run: ExportedRun) -> list[ExportedJob]:
    """Return the jobs whose environment differs from that of install.sh, which all jobs share."""
    return [job for job in run.jobs if job.record["environment"] != 0]


def _write_parts(run: ExportedRun) -> Iterator[tuple[str, ExportedFile]]:
    environment = run.capsule["environments"][0]
    packages = environment["packages"]
    framework = _list_framework(run)
    text = _INSTALL.format(
        image=plain_line(environment["image"]),
        constraints=_ALL_CONSTRAINTS if packages else "",
        framework=f"python -m pip install {shlex.join(framework)}\n" if framework else "",
        folder=CODE,
        steps=_write_steps(environment) or ":",
    )
    yield "install.sh", ExportedFile(text, executable=True)
    yield write_report_module()
    if packages:
        # A build of its own, such as 2.13.0+cpu, is on no index.
        pinned = [line.partition("+")[0] for line in packages if "==" in line]
        yield "packages.txt", ExportedFile("\n".join(pinned) + "\n")
    for job in run.jobs:
        yield f"jobs/{job.hostname}.sh", ExportedFile(_write_job(run, job), executable=True)


def _write_steps(environment: wire.CapsuleEnvironment) -> str:
    """Return the lines that run the install steps, which keep what the framework brought."""
    commands = list(map(shlex.join, list_step_commands(environment)))
    own = count_framework_steps(environment["install"])
    if commands[own:] and not environment["packages"]:
        commands.insert(own, f'{_CONSTRAINTS}{shlex.join(make_hold_command("")[:-1])} "$PIP_CONSTRAINT"')
    return "\n".join(commands)


def _write_job(run: ExportedRun, job: ExportedJob) -> str:
    """Return the script of one job: its variables, a private copy of the code, its command."""
    exports = [
        f"export {name}={_quote(value, 'DIR')}" for name, value in job.variables.items() if name not in _LEFT_OUT
    ]
    needs = [f': "${{{name}:?{name} is not set}}"' for name in job.missing]
    lines = [
        "#!/bin/sh",
        f"# {job.name} of {describe_run(run)}",
        "set -eu",
        'cd "$(dirname "$0")/.."',
        ". venv/bin/activate",
        *needs,
        *exports,
        f"rm -rf work/{job.hostname}",
        f"mkdir -p work/{job.hostname}",
        f"cp -R {CODE}/. work/{job.hostname}/",
        f"cd work/{job.hostname}",
        f"exec {' '.join(_quote(word, 'PATH') for word in job.command)}",
    ]
    return "\n".join(lines) + "\n"


def _quote(text: str, folder: Literal["DIR", "PATH"]) -> str:
    """Return a text as one word of a shell, in which hosts and folders are read from variables.

    Args:
        text: of a variable, or of a script.
        folder: how the variables of folders end: `PATH` for scripts, which name them without quotes.
    """
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in _PEERS.finditer(text):
        variable = f"{match[2].upper()}_{folder}" if match[2] else _name_variable(match[1])
        pieces += [(text[end : match.start()], False), (f"${variable}", True)]
        end = match.end()
    return quote_pieces([*pieces, (text[end:], False)])


def _quote_data(run: ExportedRun) -> str:
    return run.data.replace('"', "").replace("$", "").replace("`", "").replace("\\", "").replace("}", "")


def _name_variable(hostname: str) -> str:
    return f"HOST_{hostname.upper().replace('-', '_')}"


def _name_pid(job: ExportedJob) -> str:
    return f"pid_{job.hostname.replace('-', '_')}"
