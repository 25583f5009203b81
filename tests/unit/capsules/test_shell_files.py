"""Scripts that run an experiment without riseml: in a shell, or as a job of Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.capsules.compose_files import write_compose
from riseml.capsules.shell_files import list_image_gaps, write_sh, write_slurm
from tests.support.waiting import DEADLINE, wait_for
from tests.unit.capsules.exported_runs import add_environment, run_of, small_run, write
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.planning.test_capsule import capsule_of

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


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


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
