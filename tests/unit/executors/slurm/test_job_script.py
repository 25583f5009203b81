"""The script of a gang, and the options of its steps."""

from __future__ import annotations

import pytest

from riseml.base.names import JobName
from riseml.executors.slurm.job_script import (
    JobScriptRequest,
    make_build_script,
    make_job_name,
    make_script,
    make_step_options,
)
from riseml.executors.slurm.shape import choose_shape, make_need
from riseml.model import NodeKind
from riseml.spec.config.types import Resources
from riseml.spec.pool.types import SlurmSpec

NODES = (NodeKind(3, 4, 4000, 2),)
FULL = SlurmSpec(
    "/shared/r",
    partition="gpu",
    account="lab",
    qos="high",
    constraint="a100&ib",
    reservation="course",
    time_limit=3600.0,
    setup=("module load cuda",),
    options=("--nice=100",),
    step_options=("--container-image=a.sqsh",),
    python="/usr/bin/python3",
)


def make_order(needs: dict[str, Resources], settings: SlurmSpec, max_duration: float | None = None) -> JobScriptRequest:
    """Return the order of a gang."""
    shape = choose_shape([make_need(JobName(name), need) for name, need in needs.items()], NODES)
    return JobScriptRequest("riseml-5e7a-4-1", "paul.4", "/shared/r/gangs/5e7a/4/a1", shape, settings, max_duration)


def test_every_setting_is_an_option_and_setup_comes_before_the_supervisor() -> None:
    script = make_script(make_order({"train": Resources(2, 512, 1)}, FULL))
    assert script.splitlines() == [
        "#!/bin/sh",
        "#SBATCH --job-name=riseml-5e7a-4-1",
        "#SBATCH --comment=paul.4",
        "#SBATCH --output=/shared/r/gangs/5e7a/4/a1/batch.log",
        "#SBATCH --open-mode=append",
        "#SBATCH --no-requeue",
        "#SBATCH --export=NONE",
        "#SBATCH --signal=B:USR1@60",
        "#SBATCH --chdir=/shared/r/gangs/5e7a/4/a1",
        "#SBATCH --time=60",
        "#SBATCH --qos=high",
        "#SBATCH --account=lab",
        "#SBATCH --reservation=course",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=1",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --mem=512M",
        "#SBATCH --gres=gpu:1",
        "#SBATCH --partition=gpu",
        "#SBATCH --constraint=a100&ib",
        "#SBATCH --nice=100",
        "module load cuda",
        "exec /usr/bin/python3 -S /shared/r/gangs/5e7a/4/a1/gang_supervisor.py /shared/r/gangs/5e7a/4/a1",
    ]


def test_equal_roles_are_tasks_and_others_are_components() -> None:
    equal = make_script(make_order({f"worker.{n}": Resources(3, 700, 1) for n in (1, 2)}, SlurmSpec("/r")))
    for option in ("ntasks=2", "cpus-per-task=3", "mem-per-cpu=234M", "gpus-per-task=1"):
        assert f"#SBATCH --{option}\n" in equal
    mixed = {"master": Resources(4, 512, 0), "ps.1": Resources(1, 64, 0)}
    head, tail = make_script(make_order(mixed, SlurmSpec("/r", partition="all"))).split("#SBATCH hetjob\n")
    assert "#SBATCH --cpus-per-task=4\n" in head
    assert tail.startswith("#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=1\n#SBATCH --mem-per-cpu=64M\n")
    assert "--partition=all" in head
    assert "--partition=all" in tail


@pytest.mark.parametrize(
    ("limit", "longest", "minutes"),
    [(None, None, None), (7200.0, None, 120), (None, 600.0, 15), (7200.0, 600.0, 15), (600.0, 7200.0, 10)],
)
def test_the_time_limit_is_the_shorter_one(limit: float | None, longest: float | None, minutes: int | None) -> None:
    script = make_script(make_order({"train": Resources(1, 64, 0)}, SlurmSpec("/r", time_limit=limit), longest))
    assert [line for line in script.splitlines() if "--time" in line] == (
        [] if minutes is None else [f"#SBATCH --time={minutes}"]
    )


def test_a_step_takes_exactly_its_share() -> None:
    order = make_order({"master": Resources(4, 512, 1), "ps.1": Resources(1, 64, 0)}, SlurmSpec("/r"))
    (master,), (ps,) = order.shape.components
    assert {"--cpus-per-task=4", "--exact", "--mem=512M", "--gres=gpu:1", "--het-group=0"} <= set(
        make_step_options(order.shape, master, order.settings)
    )
    assert {"--cpus-per-task=1", "--mem=64M", "--gres=none", "--het-group=1"} <= set(
        make_step_options(order.shape, ps, order.settings)
    )


def test_a_step_gets_the_options_that_the_user_adds() -> None:
    order = make_order({"train": Resources(1, 64, 0)}, FULL)
    options = make_step_options(order.shape, order.shape.components[0][0], order.settings)
    assert options[-1] == "--container-image=a.sqsh"


def test_a_name_is_of_one_server_experiment_and_attempt() -> None:
    assert make_job_name("5e7a" * 8, 4, 2) == "riseml-5e7a5e7a5e7a-4-2"


def test_a_job_that_makes_an_environment_has_the_settings_of_the_site_and_its_setup() -> None:
    script = make_build_script("riseml-build-5e7a", "/shared/r/environments/5e7a.build", FULL).splitlines()
    assert {"#SBATCH --partition=gpu", "#SBATCH --account=lab", "#SBATCH --qos=high", "#SBATCH --nodes=1"} <= set(
        script
    )
    assert {"#SBATCH --no-requeue", "#SBATCH --export=NONE", "#SBATCH --reservation=course"} <= set(script)
    folder = "/shared/r/environments/5e7a.build"
    assert script[-2:] == ["module load cuda", f"exec /usr/bin/python3 {folder}/environment_builder.py {folder}"]
