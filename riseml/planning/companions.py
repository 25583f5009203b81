"""The plans of companions: a TensorBoard over the outputs of experiments, and a JupyterLab in a project's environment.

A companion is an experiment of one job. It is placed, logged and killed as every other experiment is. Its environment
is that of the experiment or the project, with one more install step where the program may be missing.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from riseml.base.errors import Refused
from riseml.base.names import HOST_LABEL, HostName, JobName, experiment_name
from riseml.base.records import dataclass
from riseml.base.states import NO_LOGS, NO_PROGRAM, TERMINAL, CompanionKind, JobDuty
from riseml.frameworks.tensorboard import (
    LOGDIR_OPTION,
    STORE_PACKAGE,
    check_import,
    is_in_store,
    is_outside,
    make_package_step,
    start_on_store,
)
from riseml.model import Companion, Experiment, Image, Plan, PlannedJob
from riseml.planning.launch import output_folder
from riseml.spec.config.types import NO_RETRY, Limits, Resources, RunPolicy
from riseml.spec.scalars.placeholders import variable_name

TOKEN_VARIABLE = "JUPYTER_TOKEN"
"""The variable from which JupyterLab reads the token that its users must send."""

JUPYTER_VARIABLES = "JUPYTER_"
"""Prefixes of the variables that JupyterLab reads: neither parameters nor `env` may set them for a notebook."""

_TENSORBOARD_RESOURCES = Resources(cpus=0.1, mem=512)
_LONGEST_NAME = 120  # bytes of a run's name, which is the name of a folder
_ODD = re.compile(r"[^\w.,=+@ -]")

_OWN_PLACE = """\
host=0.0.0.0
[ -z "$RISEML_PORT" ] || host=127.0.0.1
"""
"""A companion that shares the network of its machine listens on the loopback alone: the forward reaches it there."""

# Where the job may not write into its working directory, `mktemp` makes the folder of links among temporary files; it
# replaces the X's of its template.
_TENSORBOARD_SCRIPT = """\
{has_program} || {{
  echo 'error: the environment of experiment {first} has no {packages}: add it to train.install' >&2
  exit {no_program}
}}
logs=$(mktemp -d "$PWD/logs.XXXXXX" 2>/dev/null || mktemp -d)
found=
show() {{
  ln -s "$RISEML_OUTPUTS/$2" "$logs/$1"
  [ -n "$found" ] || [ -z "$(find -H "$logs/$1" -name '*tfevents*' 2>/dev/null | head -n 1)" ] || found=yes
}}
{shows}
{place}{end} --host "$host" --port "${{RISEML_PORT:-6006}}"
"""

_OUTPUTS_ALONE = """\
if [ -z "$found" ]; then
  echo '{level}: there are no files of TensorBoard (*tfevents*) in the output of {names}' >&2
  {otherwise}
fi
exec python3 -m tensorboard.main --logdir "$logs"\
"""

_WITH_STORE = """\
cd "$logs"
exec {program} "$found" --logdir_spec {places}\
"""

_NOTEBOOK_SCRIPT = """\
{has_program} || {{
  echo 'error: the environment of this project has no JupyterLab: add it to train.install' >&2
  exit {no_program}
}}
[ -e "$OUTPUT_DIR/code" ] || cp -R . "$OUTPUT_DIR/code"
cd "$OUTPUT_DIR/code"
start='import sys; sys.path = [one for one in sys.path if one]; from jupyterlab.labapp import main; main()'
{place}exec python3 -c "$start" --no-browser --allow-root --ip "$host" --port "${{RISEML_PORT:-8888}}" \\
  --ServerApp.port_retries=0 --ServerApp.root_dir="$PWD" --ServerApp.shutdown_no_activity_timeout={idle} \\
  --MappingKernelManager.cull_idle_timeout={idle} --MappingKernelManager.cull_interval={interval} \\
  --MappingKernelManager.cull_connected=True \\
  --TerminalManager.cull_inactive_timeout={idle} --TerminalManager.cull_interval={interval}
"""
"""JupyterLab ends itself: only JupyterLab knows whether a cell computes while no client is connected."""


@dataclass(frozen=True, slots=True)
class NamedOutputs:
    """An experiment or a set that the user named, with what its folder holds."""

    name: str  # `4`, `144`, `144.3`
    members: tuple[Experiment, ...]  # one, or all members of the set
    is_set: bool = False

    @property
    def folder(self) -> PurePosixPath:
        """The folder below the root of outputs."""
        folder = output_folder(self.members[0])
        return folder.parent if self.is_set else folder


def plan_tensorboard(outputs: Sequence[NamedOutputs], host: HostName | None, left_after: float) -> Plan:
    """Return the plan of one TensorBoard over these outputs.

    Args:
        outputs: what the user named, at least one.
        host: where the outputs are; None: all hosts have them.
        left_after: seconds without a client after which it ends.

    Raises:
        Refused: the logs of an experiment are neither in its output folder nor in a store that it names.
    """
    first = choose_environment(outputs)
    image = first.plan.image
    if first.plan.framework != "tensorflow":
        image = with_package(image, "tensorboard")
    store = _choose_store(outputs)
    if store:
        image = with_package(image, STORE_PACKAGE)
    resources = replace(_TENSORBOARD_RESOURCES, labels=() if host is None else ((HOST_LABEL, host),))
    name = JobName(CompanionKind.TENSORBOARD.value)
    return Plan(
        project=outputs[0].members[0].project,
        image=image,
        jobs=(PlannedJob(name, JobDuty.DECIDES, resources, Limits(), (_make_tensorboard_script(outputs),)),),
        framework="plain",
        policy=RunPolicy(store=store),
        companion=Companion(
            CompanionKind.TENSORBOARD,
            left_after,
            shows=tuple(output.name for output in outputs),
            reads=_drop_nested([output.folder for output in outputs]),
        ),
    )


def choose_environment(outputs: Sequence[NamedOutputs]) -> Experiment:
    """Return the experiment whose environment TensorBoard uses: one of TensorFlow, which has it, else the first."""
    members = [member for output in outputs for member in output.members]
    return next((member for member in members if member.plan.framework == "tensorflow"), members[0])


def plan_notebook(plan: Plan, resources: Resources, limits: Limits, idle_timeout: float) -> Plan:
    """Return the plan of a JupyterLab in the environment of a project's plan.

    Args:
        plan: what `train` would run at one point of the grid.
        resources: of `train`, or as the user asks.
        limits: of `train`.
        idle_timeout: seconds without anything to do after which it ends.

    Raises:
        Refused: a parameter would set a variable that JupyterLab reads, such as its token.
    """
    names = dict(plan.policy.variables)
    for parameter, _ in plan.parameters:
        variable = names.get(parameter, variable_name(parameter))
        if variable.startswith(JUPYTER_VARIABLES):
            raise Refused(
                f"the parameter {parameter} would set {variable}, which JupyterLab reads",
                f"name its variable: `variables: {{{parameter}: ...}}` in train",
            )
    idle = max(1, round(idle_timeout))
    script = _NOTEBOOK_SCRIPT.format(
        has_program=check_import("jupyterlab"),
        no_program=NO_PROGRAM,
        place=_OWN_PLACE,
        idle=idle,
        interval=min(60, idle),
    )
    name = JobName(CompanionKind.NOTEBOOK.value)
    return replace(
        plan,
        image=with_package(plan.image, "jupyterlab"),
        role_images=(),
        jobs=(PlannedJob(name, JobDuty.DECIDES, resources, limits, (script,)),),
        framework="plain",
        options=(),
        policy=replace(plan.policy, max_duration=None, idle_timeout=None, retry=NO_RETRY),
        companion=Companion(CompanionKind.NOTEBOOK),
    )


def with_package(image: Image, package: str) -> Image:
    """Return the environment with a step that installs a Python package unless it is installed already."""
    step = make_package_step(package)
    if step in image.install:
        return image
    digest = hashlib.sha256(f"{image.digest or image.base} {step}".encode()).hexdigest()
    return replace(image, install=(*image.install, step), digest=digest)


def name_run(experiment: Experiment, common: frozenset[tuple[str, str]] = frozenset()) -> str:
    """Return how TensorBoard shows an experiment: `144.3 lr=0.1`, as the name of a folder.

    Args:
        experiment: what is shown.
        common: parameters that are the same in its whole set; they are left out.
    """
    parts = [f"{name}={value}" for name, value in experiment.plan.parameters if (name, value) not in common]
    name = " ".join([experiment_name(experiment.number, experiment.sub), *parts])
    return _ODD.sub("_", name).encode()[:_LONGEST_NAME].decode(errors="ignore").strip()


def _make_tensorboard_script(outputs: Sequence[NamedOutputs]) -> str:
    logs = _find_logs(outputs)
    goes_on = any(member.state not in TERMINAL for output in outputs for member in output.members)
    packages = "tensorboard, boto3" if logs.stored else "tensorboard"
    return _TENSORBOARD_SCRIPT.format(
        has_program=check_import(packages),
        no_program=NO_PROGRAM,
        shows="\n".join(f"show {shlex.quote(name)} {shlex.quote(folder)}" for name, folder in logs.local),
        first=experiment_name(choose_environment(outputs).number, choose_environment(outputs).sub),
        packages="TensorBoard, or no boto3" if logs.stored else "TensorBoard",
        place=_OWN_PLACE,
        end=_end_with_store(logs, outputs, "note" if goes_on else "error")
        if logs.stored
        else _OUTPUTS_ALONE.format(
            level="note" if goes_on else "error",
            otherwise=":" if goes_on else f"exit {NO_LOGS}",
            names=", ".join(output.name for output in outputs),
        ),
    )


@dataclass(frozen=True, slots=True)
class _ShownLogs:
    """Where the logs of experiments are, with the names under which TensorBoard shows them."""

    local: tuple[tuple[str, str], ...]  # names, and folders below the root of outputs
    stored: tuple[tuple[str, str], ...]  # names, and addresses in a store, each once


def _find_logs(outputs: Sequence[NamedOutputs]) -> _ShownLogs:
    local: dict[tuple[str, str], None] = {}
    stored: dict[str, str] = {}
    for output in outputs:
        common = frozenset.intersection(*(frozenset(member.plan.parameters) for member in output.members))
        hidden = common if len(output.members) > 1 else frozenset()
        for member in output.members:
            written = _find_logdir(member)
            name = name_run(member, hidden)
            if is_in_store(written):
                stored.setdefault(written.rstrip("/"), output.name if output.is_set else name)
            else:
                local[name, str(output_folder(member) / written)] = None
    if stored:  # TensorBoard gets a list with commas
        local = dict.fromkeys((name.replace(",", "_"), folder) for name, folder in local)
    return _ShownLogs(tuple(local), tuple((name.replace(",", "_"), url) for url, name in stored.items()))


def _end_with_store(logs: _ShownLogs, outputs: Sequence[NamedOutputs], level: str) -> str:
    """Return the end of the script where a store has logs.

    TensorBoard takes names and places as one list, with commas between them: links in the working directory keep the
    folders of the host out of it.
    """
    names = ", ".join(output.name for output in outputs)
    places = [(name, f"./{name}") for name, _ in logs.local] + list(logs.stored)
    mapping = ",".join(f"{name}:{place}" for name, place in places)
    program = start_on_store([url for _, url in logs.stored], names, level)
    return _WITH_STORE.format(program=program, places=shlex.quote(mapping))


def _find_logdir(experiment: Experiment) -> str:
    """Return where TensorBoard's files are: a folder below the output, or an address in a store.

    Raises:
        Refused: the files are elsewhere, or TensorBoard cannot read their address.
    """
    written = dict(experiment.plan.options).get(LOGDIR_OPTION, "")
    name = experiment_name(experiment.number, experiment.sub)
    if is_in_store(written):
        if "," in written:
            raise Refused(
                f"experiment {name} has its logs at {written}, and TensorBoard takes no comma there beside others",
                f"`riseml tensorboard {name}` opens them while it runs",
            )
        return written
    if is_outside(written):
        raise Refused(
            f"experiment {name} has its logs at {written}, and this TensorBoard reads outputs and s3:// only",
            f"`riseml tensorboard {name}` opens them while it runs; `logdir: logs` is a folder below OUTPUT_DIR",
        )
    return written


def _choose_store(outputs: Sequence[NamedOutputs]) -> str:
    """Return the store whose keys a TensorBoard needs; empty: none.

    Raises:
        Refused: logs are in a store that their experiment does not name, or in several stores.
    """
    stores: dict[str, str] = {}
    for member in (member for output in outputs for member in output.members):
        if is_in_store(_find_logdir(member)):
            stores.setdefault(member.plan.policy.store, experiment_name(member.number, member.sub))
    if "" in stores:
        raise Refused(
            f"experiment {stores['']} has its logs in a store, and names none whose keys this TensorBoard could have",
            "`store: NAME` in `train` names one of the server's stores.yml (`riseml docs stores`)",
        )
    if len(stores) > 1:
        where = ", ".join(f"{name} in {store}" for store, name in stores.items())
        raise Refused(f"one TensorBoard has the keys of one store, and the logs are of several: {where}", "name fewer")
    return next(iter(stores), "")


def _drop_nested(folders: Sequence[PurePosixPath]) -> tuple[str, ...]:
    """Return the folders without those that are inside another one of them."""
    outermost = [
        folder for folder in folders if not any(folder.is_relative_to(other) and folder != other for other in folders)
    ]
    return tuple(dict.fromkeys(map(str, outermost)))
