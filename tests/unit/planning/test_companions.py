"""What runs beside trainings, and what it can see."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import Refused
from riseml.base.names import HOST_LABEL, HostName
from riseml.base.states import NO_LOGS, NO_PROGRAM, CompanionKind, JobDuty, State
from riseml.model import Companion, Experiment, Image, Mount
from riseml.planning.companions import (
    NamedOutputs,
    name_run,
    plan_notebook,
    plan_tensorboard,
    with_package,
)
from riseml.planning.launch import LaunchTarget, StorageRoots, make_launch
from riseml.spec.config.types import Limits, Resources, RunPolicy
from riseml.spec.pool.types import Volume
from tests.support.waiting import DEADLINE
from tests.unit.control.simulation import make_experiment, make_plan

FOLDERS = LaunchTarget("5e7a", StorageRoots("/srv/output", "/srv/data", "/home/paul"))


def make_ended(number: int, framework: str = "tensorflow", **parameters: str) -> Experiment:
    plan = replace(make_plan("train"), framework=framework, parameters=tuple(parameters.items()))
    return replace(make_experiment(number, plan), state=State.FINISHED, snapshot="abc")


def make_set(number: int, *rates: str) -> NamedOutputs:
    members = [replace(make_ended(number, lr=rate, batch="32"), sub=at) for at, rate in enumerate(rates, 1)]
    return NamedOutputs(str(number), tuple(members), is_set=True)


def make_single(number: int, framework: str = "tensorflow") -> NamedOutputs:
    return NamedOutputs(str(number), (make_ended(number, framework),))


def make_companion(*outputs: NamedOutputs) -> Experiment:
    return make_experiment(9, plan_tensorboard(outputs, None, 60))


def test_a_run_is_named_by_its_id_and_what_its_set_varies() -> None:
    script = plan_tensorboard([make_set(144, "0.1", "1e-6"), make_single(7)], None, 60).jobs[0].run[0]
    assert "show '144.1 lr=0.1' paul/toaster/144/1\nshow '144.2 lr=1e-6' paul/toaster/144/2\n" in script
    assert "show 7 paul/toaster/7\n" in script


@pytest.mark.parametrize(
    ("value", "name"),
    [("a/../../b", "4 lr=a_.._.._b"), ("x'$(id)`{{lr}}\n", "4 lr=x___id____lr___"), ("ä ü", "4 lr=ä ü")],
)
def test_a_name_is_one_folder(value: str, name: str) -> None:
    assert name_run(make_ended(4, lr=value)) == name


def test_a_long_name_is_cut() -> None:
    assert len(name_run(make_ended(4, lr="x" * 1000))) == 120
    assert len(name_run(make_ended(4, lr="学" * 1000)).encode()) <= 120, "a name of a folder has at most 255 bytes"


def test_it_sees_the_named_outputs_and_nothing_else() -> None:
    companion = make_companion(
        make_set(144, "0.1", "0.2"), NamedOutputs("144.1", make_set(144, "0.1").members), make_single(7)
    )
    launch = make_launch(companion, companion.gang[0], FOLDERS)
    assert launch.mounts == (
        Mount("/srv/output/paul/toaster/144", "/outputs/paul/toaster/144", read_only=True),
        Mount("/srv/output/paul/toaster/7", "/outputs/paul/toaster/7", read_only=True),
    )
    assert launch.snapshot == ""
    assert dict(launch.environment)["RISEML_OUTPUTS"] == "/outputs"
    assert not {"OUTPUT_DIR", "DATA_DIR"} & dict(launch.environment).keys()


def test_a_volume_is_mounted_whole_and_read_only() -> None:
    volume = Volume("outputs")
    companion = make_companion(make_single(7))
    launch = make_launch(companion, companion.gang[0], replace(FOLDERS, roots=StorageRoots(volume, "/srv/data")))
    assert launch.mounts == (Mount("outputs", "/outputs", read_only=True, volume=volume),)


def test_a_process_reads_the_folders_where_they_are() -> None:
    companion = make_companion(make_single(7))
    launch = make_launch(companion, companion.gang[0], replace(FOLDERS, contained=False))
    assert dict(launch.environment)["RISEML_OUTPUTS"] == "/srv/output"


def test_it_runs_on_the_host_of_the_outputs() -> None:
    plan = plan_tensorboard([make_single(7)], HostName("gpu1"), 60)
    (job,) = plan.jobs
    assert (job.name, job.part, job.resources.labels) == ("tensorboard", JobDuty.DECIDES, ((HOST_LABEL, "gpu1"),))
    assert plan.companion == Companion(CompanionKind.TENSORBOARD, 60, ("7",), ("paul/toaster/7",))


def test_its_environment_is_that_of_an_experiment() -> None:
    """TensorFlow's images have TensorBoard; others get it by a step, unless it is there."""
    assert plan_tensorboard([make_single(7, "pytorch"), make_single(8)], None, 60).image == Image("base")
    (step,) = plan_tensorboard([make_single(7, "pytorch")], None, 60).image.install
    assert step.endswith("import tensorboard' 2>/dev/null || python3 -m pip install tensorboard")


def test_a_step_more_is_another_environment() -> None:
    image = Image("base", ("make",), ("Makefile",), "d1")
    found = with_package(image, "jupyterlab")
    assert (found.base, found.install[0], found.files) == ("base", "make", ("Makefile",))
    assert (
        len({found.reference, image.reference, with_package(replace(image, digest="d2"), "jupyterlab").reference}) == 3
    )


@pytest.mark.parametrize("logdir", ["/data/logs", "gs://bucket/logs"])
def test_logs_elsewhere_are_refused(logdir: str) -> None:
    experiment = make_ended(7)
    options = (*experiment.plan.options, ("logdir", logdir))
    elsewhere = replace(experiment, plan=replace(experiment.plan, options=options))
    with pytest.raises(Refused, match=f"experiment 7 has its logs at {logdir}"):
        plan_tensorboard([NamedOutputs("7", (elsewhere,))], None, 60)


def make_stored(number: int, url: str, store: str = "lab", **parameters: str) -> NamedOutputs:
    experiment = make_ended(number, **parameters)
    plan = replace(experiment.plan, options=(*experiment.plan.options, ("logdir", url)), policy=RunPolicy(store=store))
    return NamedOutputs(str(number), (replace(experiment, plan=plan),))


def test_logs_in_a_store_are_shown_beside_those_of_outputs(tmp_path: Path) -> None:
    outputs = [make_single(8), make_stored(7, "s3://runs/logs/", lr="1,2"), make_stored(9, "s3://runs/logs")]
    plan = plan_tensorboard(outputs, None, 60)
    assert plan.policy.store == "lab", "its jobs get the keys as those of the experiment did"
    assert plan.image.install[-1].endswith("import boto3' 2>/dev/null || python3 -m pip install boto3")
    (tmp_path / "paul/toaster/8").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\ncase "$2" in *import*boto3*sys.exit*) shift 2; printf "%s\\n" "$PWD" "$@" ;; esac\n')
    python.chmod(0o755)
    companion = make_experiment(5, plan)
    command = make_launch(companion, companion.gang[0], FOLDERS).command
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RISEML_OUTPUTS": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path / "work", capture_output=True, text=True, check=True)
    folder, order, found, *arguments = done.stdout.splitlines()
    assert Path(folder, "8").resolve() == tmp_path / "paul/toaster/8"
    assert json.loads(order) == {"urls": ["s3://runs/logs"], "names": "8, 7, 9", "level": "error"}
    assert (found, arguments[:2]) == ("", ["--logdir_spec", "8:./8,7 lr=1_2:s3://runs/logs"])


def test_logs_in_a_store_need_its_name_and_one_store_alone() -> None:
    with pytest.raises(Refused, match="experiment 7 has its logs in a store, and names none"):
        plan_tensorboard([make_stored(7, "s3://runs/logs", store="")], None, 60)
    with pytest.raises(Refused, match="several: 7 in lab, 9 in other"):
        plan_tensorboard([make_stored(7, "s3://runs/logs"), make_stored(9, "s3://runs/x", store="other")], None, 60)
    with pytest.raises(Refused, match="no comma"):
        plan_tensorboard([make_stored(7, "s3://runs/a,b")], None, 60)


@pytest.mark.parametrize(
    ("answer", "files", "code", "said"),
    [
        (1, (), NO_PROGRAM, "error: the environment of experiment 7 has no TensorBoard: add it to train.install"),
        (0, (), NO_LOGS, "error: there are no files of TensorBoard (*tfevents*) in the output of 7, 8"),
        (0, ("paul/toaster/8/deep/events.out.tfevents.1",), 0, ""),
    ],
    ids=["no TensorBoard", "no files", "one has files"],
)
def test_the_script_says_what_is_missing(
    tmp_path: Path, answer: int, files: tuple[str, ...], code: int, said: str
) -> None:
    """With a TensorBoard that prints its arguments, and a folder per experiment."""
    for folder in ("work", "bin", "paul/toaster/7", "paul/toaster/8/deep"):
        (tmp_path / folder).mkdir(parents=True)
    for file in files:
        (tmp_path / file).touch()
    python = tmp_path / "bin" / "python3"
    python.write_text(f'#!/bin/sh\n[ "$1" != -c ] || exit {answer}\necho "$@"\n')
    python.chmod(0o755)
    companion = make_companion(make_single(7), make_single(8))
    command = make_launch(companion, companion.gang[0], FOLDERS).command
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "RISEML_OUTPUTS": str(tmp_path), "RISEML_PORT": "7777"}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path / "work", capture_output=True, text=True, process_group=0
    )
    assert (done.returncode, done.stderr.strip()) == (code, said)
    if code == 0:
        assert done.stdout.endswith("--host 127.0.0.1 --port 7777\n")
        (logs,) = (tmp_path / "work").iterdir()
        assert {link.name: link.resolve() for link in logs.iterdir()} == {
            name: tmp_path / "paul" / "toaster" / name for name in ("7", "8")
        }


def test_a_notebook_has_the_environment_and_the_mounts_of_the_project() -> None:
    plan = replace(make_plan("master", "worker.1", max_duration=60), parameters=(("lr", "0.1"),))
    notebook = make_experiment(9, plan_notebook(plan, Resources(gpus=1), Limits(), 1800))
    launch = make_launch(notebook, notebook.gang[0], FOLDERS)
    assert [mount.target for mount in launch.mounts] == ["/output", "/data"]
    assert dict(launch.environment)["LR"] == "0.1"
    assert launch.resources.gpus == 1
    assert "shutdown_no_activity_timeout=1800" in launch.command[-1]
    assert (notebook.plan.policy.max_duration, notebook.plan.policy.retry.max) == (None, 0)
    assert [job.name for job in notebook.gang] == ["notebook"]


def test_no_parameter_sets_what_jupyterlab_reads() -> None:
    plan = replace(make_plan("train"), parameters=(("jupyter_token", "5eed"),))
    with pytest.raises(Refused, match="the parameter jupyter_token would set JUPYTER_TOKEN"):
        plan_notebook(plan, Resources(), Limits(), 60)


def run_script(folder: Path, script: str) -> tuple[int, str]:
    """Run the script of a TensorBoard on outputs in a folder, and return the exit code and what it says."""
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "RISEML_OUTPUTS": str(folder)}
    done = subprocess.run(
        ["/bin/sh", "-ec", script], env=environ, cwd=folder, capture_output=True, text=True, timeout=DEADLINE
    )
    return done.returncode, done.stderr


def test_a_link_in_an_output_folder_is_not_followed(tmp_path: Path) -> None:
    output = tmp_path / "paul" / "toaster" / "7"
    output.mkdir(parents=True)
    (output / "everything").symlink_to("/")
    (tmp_path / "tensorboard.py").write_text("raise SystemExit('a module of the project')")
    script = plan_tensorboard([make_single(7)], None, 60).jobs[0].run[0]
    code, said = run_script(tmp_path, script.replace("import tensorboard", "import json"))
    assert (code, said) == (66, "error: there are no files of TensorBoard (*tfevents*) in the output of 7\n")
