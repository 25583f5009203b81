"""A file without a framework: one job that knows of no peers."""

from __future__ import annotations

from riseml.base.names import JobName
from riseml.base.states import JobDuty
from riseml.frameworks.plain import Plain
from riseml.spec.config.types import Resources, Spec, Train
from tests.unit.frameworks.layouts import gang, make_experiment, script, variables

RESOURCES = Resources(cpus=4, mem=1024)
TRAIN = Train(("cd /", "echo {{worker_hosts}} {{task_index}}"), image="base", resources=RESOURCES)


def test_one_job_decides_with_all_resources() -> None:
    (role,) = Plain().roles(TRAIN)
    assert (role.name, role.part, role.resources) == ("train", JobDuty.DECIDES, RESOURCES)
    assert Plain().image(TRAIN) is None, "riseml.yml names the image"


def test_the_job_is_the_only_worker() -> None:
    experiment = make_experiment(Spec("toaster", TRAIN))
    (job,) = gang(experiment)
    own = variables(experiment, "train")
    assert (own["WORKER_INDEX"], own["TOTAL_WORKERS"]) == ("0", "1")
    places = Plain().bind(experiment.plan, job.name, {JobName("train"): "h1:2222"}).placeholders
    assert places == {
        "job_name": "train",
        "task_index": "0",
        "worker_hosts": "h1:2222",
        "ps_hosts": "",
        "worker_index": "0",
        "num_workers": "1",
    }
    assert script(experiment, "train").endswith("\necho train:2222 0")
