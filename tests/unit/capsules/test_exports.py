"""Files that run an experiment without riseml, from its capsule alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from riseml import wire
from riseml.base.errors import UsageError
from riseml.capsules.compose_files import write_compose
from riseml.capsules.exported_run import ExportedFile, ExportedRun, describe_run, make_run, write_dockerfiles
from riseml.capsules.kubeflow_files import PYTORCHJOB, TFJOB, KubeflowKind, write_kubeflow
from riseml.capsules.shell_files import list_image_gaps, write_sh, write_slurm
from riseml.spec.config.types import Shell
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.capsules.kubeflow import make_schema
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.planning.test_capsule import SECRET, capsule_of, make

CONFIG = "project: toaster\ntrain: {image: base, env: {MODE: fast, TOKEN: x}, run: 'true'}\n"
LINES = """\
words=(a b); [[ ${#words[@]} == 2 ]] && echo "$RISEML_JOB $WORKER_INDEX {{worker_hosts}}" > {{output_dir}}/$RISEML_JOB
ls {{data_dir}}"""
SRUN = """\
#!/bin/sh
shift
at=0; pids=""
while [ $at -lt 3 ]; do SLURM_PROCID=$at setsid "$@" & pids="$pids $!"; at=$((at + 1)); done
trap 'for pid in $pids; do kill -- "-$pid" 2>/dev/null; done; exit 143' TERM
for pid in $pids; do wait "$pid"; done
"""

PYTHON = """\
#!/bin/sh
mkdir -p venv/bin
: > venv/bin/activate
"""
DOCKER = """\
#!/bin/sh
case "$1 $2" in
"wait "*) echo $$ > output/wait; exec sleep 600 ;;
"compose down") kill "$(cat output/wait)" ;;
"compose ps") echo container ;;
esac
"""


def add_environment(folder: Path) -> None:
    (folder / "venv" / "bin").mkdir(parents=True)
    (folder / "venv" / "bin" / "activate").write_text("")
    (folder / "venv" / ".complete").write_text("")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def run_of(capsule: wire.Capsule, config: str = "") -> ExportedRun:
    return make_run(capsule, config, f"{os.getuid()}:{os.getgid()}", has_code=False)


def small_run(*jobs: str, framework: str = "tensorflow") -> ExportedRun:
    plan = make_plan(*jobs)
    lines = tuple(
        replace(job, run=("sleep 600",) if job.name == "ps.1" else (LINES,), shell=Shell.AUTO) for job in plan.jobs
    )
    return run_of(capsule_of(make_experiment(4, replace(plan, jobs=lines, framework=framework))))


def read(files: Iterable[tuple[str, ExportedFile]], name: str) -> Any:
    return yaml.safe_load(dict(files)[name].text)


def write(files: Iterable[tuple[str, ExportedFile]], folder: Path) -> Path:
    for name, file in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
        path.chmod(0o755 if file.executable else 0o644)
    return folder


def test_compose_has_a_service_for_each_job_under_the_name_that_the_others_use() -> None:
    services = read(write_compose(run_of(capsule_of(make()), CONFIG)), "compose.yaml")["services"]
    assert list(services) == ["master", "worker-1", "ps-1"]
    cluster = json.loads(services["ps-1"]["environment"]["TF_CONFIG"])["cluster"]
    assert (cluster["ps"], cluster["worker"]) == (["ps-1:2224"], ["worker-1:2223"])
    assert services["master"]["environment"]["MODE"] == "fast", "it stands in the project's own riseml.yml"
    unknown = read(write_compose(run_of(capsule_of(make()))), "compose.yaml")["services"]["master"]["environment"]
    assert unknown["TOKEN"] is None, "compose passes it on"
    assert unknown["API_KEY"] == SECRET, "parameters are in the capsule"


@pytest.mark.parametrize(("kind", "framework"), [(TFJOB, "tensorflow"), (PYTORCHJOB, "pytorch")])
def test_a_manifest_is_valid_for_the_published_schema(kind: KubeflowKind, framework: str) -> None:
    jobs = ("master", "worker.1", "worker.2", *(["ps.1"] if kind is TFJOB else []))
    manifest = read(write_kubeflow(small_run(*jobs, framework=framework), kind), f"{kind.kind.lower()}.yaml")
    Draft202012Validator(make_schema(kind.kind, kind.specs)).validate(manifest)
    replicas = manifest["spec"][kind.specs]
    assert {name: one["replicas"] for name, one in replicas.items()}["Worker"] == 2
    (container,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert not {one["name"] for one in container["env"]} & kind.sets, "the operator sets them"
    for at in (0, 1):
        script = container["command"][-1].replace("exec /bin/sh", ": /bin/sh") + "\necho $RISEML_JOB $WORKER_INDEX"
        done = subprocess.run(
            ["sh", "-ec", script], env={"HOSTNAME": f"riseml-4-worker-{at}"}, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"worker.{at + 1} {at + 1}\n"
    assert f"riseml-4-worker-1:{2224}" in container["command"][-1]


def test_one_job_is_one_job_where_the_operator_makes_a_group_of_it() -> None:
    manifest = read(write_kubeflow(small_run("train", framework="pytorch"), PYTORCHJOB), "pytorchjob.yaml")
    (container,) = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    assert container["command"][-1].startswith("unset MASTER_ADDR MASTER_PORT RANK WORLD_SIZE\n")


def test_a_kind_of_jobs_is_for_its_framework() -> None:
    with pytest.raises(UsageError, match="is for pytorch") as refused:
        list(write_kubeflow(small_run("master", "worker.1"), PYTORCHJOB))
    assert refused.value.hint == "--tfjob, --compose, --slurm or --sh"


@pytest.mark.parametrize("written", ["", "plain"])  # by this version, and by an earlier one
def test_an_experiment_without_a_framework_has_none_for_kubeflow(written: str) -> None:
    capsule = capsule_of(make_experiment(4, replace(make_plan("train"), framework="plain")))
    assert capsule["framework"] == ""
    capsule["framework"] = written
    with pytest.raises(UsageError, match="this experiment has no framework"):
        list(write_kubeflow(run_of(capsule), TFJOB))


@pytest.mark.parametrize("kind", ["sh", "slurm"])
def test_scripts_run_all_jobs_and_end_with_those_that_decide(tmp_path: Path, kind: str) -> None:
    run = small_run("master", "worker.1", "ps.1")
    folder = write(write_sh(run) if kind == "sh" else write_slurm(run), tmp_path / "it's here")
    add_environment(folder)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "srun").write_text(SRUN)
    (tmp_path / "bin" / "srun").chmod(0o755)
    (tmp_path / "data" / "digits").mkdir(parents=True)
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "DATA_DIR": str(tmp_path / "data")}
    script = folder / ("run.sh" if kind == "sh" else "job.sbatch")
    done = subprocess.run(
        [script], env=environ, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stderr
    assert "digits" in done.stdout
    links = set(Path("/tmp").glob("riseml.*"))
    odd = tmp_path / "it's $HOME; a `b` \\"
    again = environ | {"OUTPUT_DIR": str(odd)}
    done = subprocess.run([script], env=again, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (odd / "master").read_text() == (folder / "output" / "master").read_text()
    wait_for("no link is left", lambda: not set(Path("/tmp").glob("riseml.*")) - links, DEADLINE)
    host = "127.0.0.1" if kind == "sh" else os.uname().nodename
    assert (folder / "output" / "master").read_text() == f"master 0 {host}:2222,{host}:2223\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("kind", ["sh", "compose"])
def test_a_signal_to_an_exported_script_ends_all_jobs(tmp_path: Path, kind: str, number: int, code: int) -> None:
    plan = make_plan("master", "ps.1")
    lines = ("echo $$ > {{output_dir}}/$RISEML_JOB; exec sleep 600",)
    plan = replace(plan, jobs=tuple(replace(job, run=lines) for job in plan.jobs))
    run = run_of(capsule_of(make_experiment(4, plan)))
    folder = write(write_sh(run) if kind == "sh" else write_compose(run), tmp_path / "here")
    add_environment(folder)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(DOCKER)
    (tmp_path / "bin" / "docker").chmod(0o755)
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    # The script ends by the trap only when the signal is not ignored, as it is below a background job of a shell.
    reset = f"import os, signal; signal.signal({int(number)}, signal.SIG_DFL); os.execv('./run.sh', ['./run.sh'])"
    jobs = [folder / "output" / name for name in (("master", "ps.1") if kind == "sh" else ("wait",))]
    with subprocess.Popen([sys.executable, "-c", reset], env=environ, cwd=folder, start_new_session=True) as process:
        wait_for("all jobs run", lambda: all(path.exists() and path.read_text() for path in jobs), DEADLINE)
        process.send_signal(number)
        try:
            ended = process.wait(DEADLINE)
        finally:
            process.kill()
    left = [pid for path in jobs if is_running(pid := int(path.read_text()))] if ended != code else []
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert (ended, left) == (code, [])
    wait_for("no job runs", lambda: not any(is_running(int(path.read_text())) for path in jobs), DEADLINE)


def test_a_script_imports_riseml_from_a_file_beside_the_project(tmp_path: Path) -> None:
    plan = make_plan("master")
    report = "python3 -c 'import riseml; riseml.report(loss=0.5); print(riseml.__file__)'"
    plan = replace(plan, jobs=tuple(replace(job, run=(report,)) for job in plan.jobs))
    files = dict(write_sh(run_of(capsule_of(make_experiment(4, plan)))))
    assert max(len(line) for line in files["jobs/master.sh"].text.splitlines()) < 1000
    assert "def report(" in files["code/.riseml/riseml.py"].text
    folder = write(files.items(), tmp_path / "it's here")
    add_environment(folder)
    done = subprocess.run([folder / "run.sh"], cwd=folder, capture_output=True, text=True, check=True)
    assert str(folder / "work" / "master" / ".riseml" / "riseml.py") in done.stdout
    for kind in (write_compose, write_slurm):
        assert "code/.riseml/riseml.py" in dict(kind(run_of(capsule_of(make_experiment(4, plan)))))


def test_an_export_brings_the_framework_that_the_image_brought() -> None:
    capsule = capsule_of(make_experiment(4, make_plan("master")))
    environment = capsule["environments"][0]
    for image, packages in (
        ("tensorflow/tensorflow:2.21.0", "tensorflow==2.21.0 tensorboard"),
        ("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "torch==2.6.0 numpy"),
    ):
        environment["image"] = image
        for files in (write_sh(run_of(capsule)), write_slurm(run_of(capsule))):
            assert f"python -m pip install {packages}\n" in dict(files)["install.sh"].text
        assert list_image_gaps(run_of(capsule)) == []
    environment.update({"image": "lab/own:1", "packages": None})
    assert list_image_gaps(run_of(capsule)) == ["lab/own:1"]
    environment["packages"] = ["torch==2.13.0+cpu", "x @ file:///x"]
    assert dict(write_sh(run_of(capsule)))["packages.txt"].text == "torch==2.13.0\n", "no index has a build of its own"


def test_the_install_steps_of_an_export_keep_what_the_image_brought() -> None:
    capsule = capsule_of(make_experiment(4, make_plan("master")))
    environment = capsule["environments"][0]
    environment.update({"packages": None, "image": "python:3.12-slim", "files": []})
    first = 'pip install "jax[cpu]==0.10.2"'
    environment["install"] = [first, "pip install flax"]
    text = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text
    brought, held, kept = (text.index(word) for word in ("jax[cpu]==", "ARG PIP_CONSTRAINT=/tmp/", "install flax"))
    assert brought < held < kept < text.index('RUN ["rm", "-f", "/tmp/.riseml-held.txt"]')
    assert "ENV " not in text, "jobs have no constraints"
    text = dict(write_sh(run_of(capsule)))["install.sh"].text
    assert text.index("jax[cpu]==") < text.index("PIP_CONSTRAINT=$(mktemp") < text.index("install flax")
    assert text.count("PIP_CONSTRAINT=$(mktemp") == 1
    environment["packages"] = ["jax==0.10.2"]
    text = dict(write_sh(run_of(capsule)))["install.sh"].text
    assert text.index('cp packages.txt "$PIP_CONSTRAINT"') < text.index("jax[cpu]==")
    assert text.count("PIP_CONSTRAINT=$(mktemp") == 1
    environment["install"] = []
    text = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text
    assert "CONSTRAINT" not in text
    assert ".riseml-held" not in text


def test_an_image_is_named_by_a_digest_only_where_a_registry_knows_it() -> None:
    capsule = capsule_of(make_experiment(4, make_plan("master")))
    environment = capsule["environments"][0]
    for digest, base in ((f"lab/x@sha256:{'a' * 64}", f"lab/x@sha256:{'a' * 64}"), (f"sha256:{'a' * 64}", "lab/x:1")):
        environment.update({"image": "lab/x:1", "digest": digest})
        text = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text
        assert f"\nFROM {base}\n" in text


def test_a_job_of_slurm_has_its_time_and_its_partition() -> None:
    capsule = capsule_of(make_experiment(4, make_plan("master")))
    capsule["config"] = "project: x\ntrain: {image: base, run: 'true', max_duration: 26h}\n"
    text = dict(write_slurm(run_of(capsule)))["job.sbatch"].text
    assert "\n#SBATCH --time=26:00:00\n" in text
    assert "\n##SBATCH --partition=NAME " in text
    text = dict(write_slurm(run_of(capsule), "gpu", "90"))["job.sbatch"].text
    assert "\n#SBATCH --time=90\n" in text
    assert "\n#SBATCH --partition=gpu\n" in text


def test_an_installation_that_failed_is_repeated_and_one_that_succeeded_is_not(tmp_path: Path) -> None:
    plan = make_plan("master")
    plan = replace(plan, jobs=tuple(replace(job, run=("true",)) for job in plan.jobs))
    capsule = capsule_of(make_experiment(4, plan))
    capsule["environments"][0]["install"] = [f"cat {tmp_path}/wheel"]
    folder = write(write_sh(run_of(capsule)), tmp_path / "here")
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    environ = {"PATH": os.environ["PATH"], "PYTHON": str(tmp_path / "python")}

    def run() -> int:
        return subprocess.run([folder / "run.sh"], env=environ, capture_output=True, check=False).returncode

    assert (run(), run()) == (1, 1), "there is no wheel yet"
    (tmp_path / "wheel").write_text("")
    assert run() == 0
    (tmp_path / "wheel").unlink()
    assert run() == 0


def test_a_capsule_with_names_that_riseml_does_not_write_is_refused() -> None:
    for change in ({"hostname": "../../x"}, {"variables": {"A=1; rm": "x"}}):
        capsule = capsule_of(make())
        capsule["jobs"][0]["launch"].update(change)  # type: ignore[typeddict-item]  # by name
        with pytest.raises(UsageError, match="does not write"):
            run_of(capsule)


@pytest.mark.parametrize("end", ["\n", "\r", "\x00", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u2029"], ids=ascii)
@pytest.mark.parametrize("name", ["project", "experiment", "riseml", "image"])
def test_a_capsule_whose_names_have_more_than_one_line_is_refused(name: str, end: str) -> None:
    capsule = capsule_of(make())
    named: Any = capsule["environments"][0] if name == "image" else capsule
    named[name] = f"p{end}---{end}kind:Pod"
    with pytest.raises(UsageError, match="does not write"):
        run_of(capsule)


def test_a_description_is_one_line_whatever_the_capsule_says() -> None:
    run = run_of(capsule_of(make()))
    run.capsule["project"] = "p\n---\x85kind: Pod\u2028#"
    assert describe_run(run).splitlines() == [describe_run(run)]


def test_an_image_of_a_capsule_is_not_a_directive_of_a_dockerfile() -> None:
    capsule = capsule_of(make())
    capsule["environments"][0]["image"] = "syntax=evil.example/frontend:1"
    first = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text.splitlines()[0]
    assert re.match(r"#\s*[A-Za-z][A-Za-z0-9]*\s*=", first) is None, "BuildKit would take it as a directive"


@pytest.mark.parametrize(
    ("folder", "is_foreign", "mounted"),
    [
        ("/srv/data", False, "/srv/data"),
        ("/home/ann/.ssh", True, "./data"),
        ("/srv/a}:/x:rw", False, "./data"),
        ("/srv/$HOME", False, "./data"),
    ],
)
def test_compose_mounts_a_folder_of_the_users_own_server_alone(folder: str, is_foreign: bool, mounted: str) -> None:  # noqa: FBT001  # a column of the table
    capsule = capsule_of(make())
    capsule["data"]["folder"] = folder
    run = make_run(capsule, "", "1:1", has_code=False, is_foreign=is_foreign)
    services = read(write_compose(run), "compose.yaml")["services"]
    assert services["master"]["volumes"][1] == f"${{RISEML_DATA:-{mounted}}}:/data:ro"


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 10**400])
def test_a_capsule_with_numbers_that_riseml_does_not_write_is_refused(number: float) -> None:
    capsule = capsule_of(make())
    capsule["jobs"][0]["cpus"] = number
    with pytest.raises(UsageError, match="does not write"):
        run_of(capsule)


def test_a_manifest_of_a_capsule_with_a_long_name_is_valid() -> None:
    capsule = capsule_of(make())
    capsule["experiment"] = "9" * 33 + "-" + "8" * 60
    run = run_of(capsule, CONFIG)
    manifest = read(write_kubeflow(run, TFJOB), "tfjob.yaml")
    Draft202012Validator(make_schema(TFJOB.kind, TFJOB.specs)).validate(manifest)
    assert len(f"{manifest['metadata']['name']}-evaluator-100") <= 63, "the name of a pod, and of its service"
