"""What an executor gets to start one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from riseml.base.names import HostName, JobName, job_type
from riseml.base.states import State
from riseml.frameworks.base import Binding, Framework
from riseml.frameworks.registry import FRAMEWORKS
from riseml.job_programs import add_report_module
from riseml.job_programs.group_shell import wait_for_group
from riseml.model import Experiment, Image, InputFolder, Job, Launch, Lineage, Mount, Plan
from riseml.planning.launch import (
    LaunchTarget,
    StorageRoots,
    bind_job,
    find_planned_job,
    is_reserved,
    job_addresses,
    job_command,
    job_variables,
    make_launch,
    output_folder,
)
from riseml.planning.plan import make_next_attempt
from riseml.spec.config.parameters import FRAMEWORK_VARIABLES, RESERVED_VARIABLES, RISEML_VARIABLES, is_set_by_riseml
from riseml.spec.config.types import Limits, Resources, RunPolicy, Tracker
from riseml.spec.pool.types import Volume
from riseml.spec.scalars.placeholders import variable_name
from riseml.spec.scalars.role_names import list_role_variables
from tests.unit.control.simulation import change_policy, make_experiment, make_plan

HOST = LaunchTarget("5e7a", StorageRoots("/home/paul/output", "/home/paul/data", "/home/paul"))
BARE = replace(HOST, contained=False)
VOLUME = Volume("runs")
ON_VOLUME = replace(HOST, roots=replace(HOST.roots, output=VOLUME))
OUTPUT, DATA = "/home/paul/output/paul/toaster/4", "/home/paul/data"
DEFAULTS = {"PYTHONUNBUFFERED": "1", "HOME": "/tmp/home", "USER": "paul", "LOGNAME": "paul"}


def make(*jobs: str, **fields: object) -> Experiment:
    return make_experiment(4, make_plan(*jobs), **fields)


def job_of(experiment: Experiment, name: str) -> Job:
    return next(job for job in experiment.jobs if job.name == name)


def launch(experiment: Experiment, name: str, place: LaunchTarget = HOST) -> Launch:
    return make_launch(experiment, job_of(experiment, name), place)


def with_run(experiment: Experiment, *run: str) -> Experiment:
    jobs = tuple(replace(job, run=run) for job in experiment.plan.jobs)
    return replace(experiment, plan=replace(experiment.plan, jobs=jobs))


def with_parameters(experiment: Experiment, **parameters: str) -> Experiment:
    return replace(experiment, plan=replace(experiment.plan, parameters=tuple(parameters.items())))


def test_a_single_job_gets_these_variables() -> None:
    experiment = with_parameters(make("train"), lr="1e-6")
    assert dict(job_variables(bind_job(experiment, job_of(experiment, "train")))) == {
        **DEFAULTS,
        "LR": "1e-6",
        "OUTPUT_DIR": "/output",
        "DATA_DIR": "/data",
        "PROJECT_NAME": "toaster",
        "EXPERIMENT_ID": "4",
        "RISEML_JOB": "train",
        "RISEML_ATTEMPT": "1",
        "WORKER_INDEX": "0",
        "TOTAL_WORKERS": "1",
        "TINI_KILL_PROCESS_GROUP": "1",
    }


def test_a_job_without_a_container_sees_the_host() -> None:
    experiment = make("master", "ps.1")
    jobs = tuple(replace(job, address="127.0.0.1", port=20000 + at) for at, job in enumerate(experiment.jobs))
    found = dict(launch(replace(experiment, jobs=jobs), "ps.1", BARE).environment)
    assert (found["OUTPUT_DIR"], found["DATA_DIR"]) == (OUTPUT, DATA)
    assert (found["HOME"], found["RISEML_HOST"], found["RISEML_PORT"]) == ("/home/paul", "127.0.0.1", "20002")


@pytest.mark.parametrize("name", sorted(RISEML_VARIABLES | {"RISEML_HOST", "RISEML_PORT", "RISEML_ANYTHING"}))
@pytest.mark.parametrize("job", ["train", "master", "ps.1"])
def test_env_cannot_set_what_riseml_sets(job: str, name: str) -> None:
    """Nor what it leaves unset: a job alone that found a TF_CONFIG would wait for the others."""
    plain = make("train") if job == "train" else make("master", "ps.1")
    tried = replace(plain, environment=((name, "mine"), ("KEPT", "mine")))
    wanted = {**dict(job_variables(bind_job(plain, job_of(plain, job)))), "KEPT": "mine"}
    assert dict(job_variables(bind_job(tried, job_of(tried, job)))) == wanted


@pytest.mark.parametrize("name", ["HOME", "PYTHONUNBUFFERED", "PATH", "CUDA_VISIBLE_DEVICES", "TF_CPP_MIN_LOG_LEVEL"])
def test_env_replaces_defaults(name: str) -> None:
    experiment = make("train", environment=((name, "mine"),))
    assert dict(job_variables(bind_job(experiment, job_of(experiment, "train"))))[name] == "mine"


def test_a_parameter_wins_over_env() -> None:
    """`{{lr}}` and `$LR` never differ, and every point of a grid is what it says."""
    experiment = with_run(with_parameters(make("train", environment=(("LR", "9"),)), lr="0.1"), "train {{lr}} $LR")
    assert dict(job_variables(bind_job(experiment, job_of(experiment, "train"))))["LR"] == "0.1"
    assert job_command(bind_job(experiment, job_of(experiment, "train")))[-1] == "train 0.1 $LR"


def test_everything_that_riseml_sets_is_reserved() -> None:
    """The spec knows the same names: it warns of them, and takes none as a parameter."""
    experiment = make("master", "worker.1", "ps.1", "evaluator")
    jobs = tuple(replace(job, address="127.0.0.1", port=20000) for job in experiment.jobs)
    for framework in FRAMEWORKS:
        one = replace(experiment, jobs=jobs, plan=replace(experiment.plan, framework=framework.name))
        found = {name for job in one.jobs[1:] for name, _ in job_variables(bind_job(one, job))}
        roles = {job_type(job.name) for job in one.jobs[1:]} if framework.name == "roles" else set()
        assert all(is_set_by_riseml(name, framework.name, roles) for name in found - set(DEFAULTS))
        own = FRAMEWORK_VARIABLES.get(framework.name, frozenset()) | list_role_variables(roles)
        assert all(is_reserved(name) for name in found - set(DEFAULTS) - own)
    assert {name for name in RESERVED_VARIABLES if is_reserved(name)} == RISEML_VARIABLES
    assert set(DEFAULTS) <= RESERVED_VARIABLES


@pytest.mark.parametrize(
    ("parameter", "variable"),
    [("lr", "LR"), ("learning-rate", "LEARNING_RATE"), ("num_layers", "NUM_LAYERS"), ("Beta-2", "BETA_2")],
)
def test_a_parameter_names_its_variable(parameter: str, variable: str) -> None:
    experiment = with_parameters(make("train"), **{parameter: "1"})
    assert variable_name(parameter) == variable
    assert dict(job_variables(bind_job(experiment, job_of(experiment, "train"))))[variable] == "1"


def script_of(found: Launch) -> str:
    """Return the user's part of a job's script: the module for reports is written before it."""
    *shell, script = found.command
    trackers = ",".join(found.trackers)
    readers = (str(found.event_readers), "", trackers, *found.event_files) if found.event_readers else ()
    assert shell in (["/bin/sh", "-ec"], [*wait_for_group(("/bin/sh", "-ec", ""), readers)[:-1]])
    return script.removeprefix(add_report_module(""))


def test_folders_have_placeholders() -> None:
    experiment = with_run(make("train"), "a {{ output_dir }} {{data_dir}}")
    assert script_of(launch(experiment, "train")) == "a /output /data"
    assert script_of(launch(experiment, "train", BARE)) == f"a {OUTPUT} {DATA}"


def test_the_one_job_of_a_run_without_a_framework_has_one_name() -> None:
    experiment = with_run(make("train"), "go {{job_name}}")
    plan = replace(experiment.plan, framework="plain")
    found = launch(replace(experiment, plan=plan), "train")
    assert script_of(found) == "go train"
    assert dict(found.environment)["RISEML_JOB"] == "train"


def test_every_job_has_its_own_command() -> None:
    experiment = with_run(make("master", "worker.1", "ps.1"), "go {{job_name}} {{task_index}} '{{ps_hosts}}'")
    found = [script_of(launch(experiment, name)) for name in ("master", "worker.1", "ps.1")]
    assert found == ["go worker 0 'ps-1:2222'", "go worker 1 'ps-1:2222'", "go ps 0 'ps-1:2222'"]


@pytest.mark.parametrize(
    ("mem", "written", "shm"), [(64, None, 1024), (2048, None, 1024), (16384, None, 8192), (64, 128, 128)]
)
def test_shared_memory_is_half_of_the_memory(mem: int, written: int | None, shm: int) -> None:
    experiment = make_experiment(4, make_plan("train", resources={"train": Resources(1, mem)}))
    assert launch(replace(experiment, plan=change_policy(experiment.plan, shm_size=written)), "train").shm_size == shm


@pytest.mark.parametrize(("sub", "folder"), [(None, "paul/toaster/4"), (2, "paul/toaster/4/2")])
def test_output_folders_are_laid_out_as_in_riseml(sub: int | None, folder: str) -> None:
    assert str(output_folder(make("train", sub=sub))) == folder


def test_output_folders_of_two_experiments_differ() -> None:
    one = make("train")
    others = [replace(one, number=5), replace(one, sub=1), replace(one, sub=2), replace(one, project="other")]
    others.append(replace(one, owner=replace(one.owner, user="eve")))
    assert len({output_folder(each) for each in (one, *others)}) == 6


def test_a_launch_has_everything() -> None:
    experiment = make("master", "worker.1", sub=2, snapshot="c0de")
    addressed = (replace(job, address=f"10.213.0.{at}") for at, job in enumerate(experiment.jobs, 1))
    jobs = tuple(replace(job, gpus=("GPU-1",)) for job in addressed)
    found = launch(replace(experiment, jobs=jobs), "worker.1")
    assert found == Launch(
        key=found.key,
        server="5e7a",
        title="paul.4.2.worker.1",
        hostname="worker-1",
        image=Image("base"),
        command=wait_for_group(("/bin/sh", "-ec", add_report_module("true")), ("2", "", "tensorboard")),
        environment=job_variables(bind_job(replace(experiment, jobs=jobs), jobs[2])),
        resources=Resources(0.1, 64),
        limits=Limits(),
        shm_size=1024,
        owner=experiment.owner,
        snapshot="c0de",
        mounts=(Mount(f"{OUTPUT}/2", "/output"), Mount(DATA, "/data", read_only=True)),
        address="10.213.0.3",
        hosts=(("master", "10.213.0.2"), ("worker-1", "10.213.0.3")),
        gpus=("GPU-1",),
        event_readers=2,
        trackers=("tensorboard",),
    )
    assert (found.key.experiment, found.key.job, found.key.attempt) == (4, "worker.1", 1)


@pytest.mark.parametrize(
    ("policy", "readers", "patterns"),
    [
        (RunPolicy(), 1, ()),
        (RunPolicy(outputs=("runs", "~/x.pt", "/data/*.pt")), 1, ("runs",)),
        (RunPolicy(track=()), 0, ()),
        (RunPolicy(track=(Tracker.MLFLOW,)), 1, ()),
        (RunPolicy(track=(Tracker.KUBEFLOW, Tracker.MLFLOW)), 1, ()),
        (RunPolicy(track=(Tracker.KUBEFLOW,)), 0, ()),
    ],
)
def test_event_files_are_read_beside_a_job_unless_its_file_says_no(
    policy: RunPolicy, readers: int, patterns: tuple[str, ...]
) -> None:
    experiment = make("train")
    found = launch(replace(experiment, plan=replace(experiment.plan, policy=policy)), "train")
    assert (found.event_readers, found.event_files) == (readers, patterns)
    assert ("event_reader" in found.command[2]) is (readers > 0)
    files = [tracker for tracker in policy.track if tracker is not Tracker.KUBEFLOW]
    assert [(type(tracker), tracker) for tracker in found.trackers] == [(str, tracker) for tracker in files] * readers
    assert ("trainer_relay" in found.command[-1]) is (Tracker.KUBEFLOW in policy.track)


@pytest.mark.parametrize(
    ("jobs", "environment", "folder"),
    [
        (("train",), (), "/output/mlruns"),
        (("master", "worker.1"), (), "/output/mlruns/master"),
        (("train",), (("MLFLOW_TRACKING_URI", "http://there"),), "http://there"),
    ],
)
def test_runs_of_mlflow_have_a_folder_for_each_job(
    jobs: tuple[str, ...], environment: tuple[tuple[str, str], ...], folder: str
) -> None:
    experiment = make(*jobs)
    plain = dict(job_variables(bind_job(experiment, job_of(experiment, jobs[0]))))
    policy = RunPolicy(track=(Tracker.MLFLOW,))
    experiment = replace(experiment, plan=replace(experiment.plan, policy=policy), environment=environment)
    variables = dict(job_variables(bind_job(experiment, job_of(experiment, jobs[0]))))
    assert variables.items() - plain.items() == {("MLFLOW_TRACKING_URI", folder), ("MLFLOW_ALLOW_FILE_STORE", "true")}


@pytest.mark.parametrize(("own", "mode"), [((), "offline"), ((("WANDB_MODE", "online"),), "online")])
def test_runs_of_wandb_are_files_unless_env_says_otherwise(own: tuple[tuple[str, str], ...], mode: str) -> None:
    experiment = make("train")
    plan = replace(experiment.plan, policy=RunPolicy(track=(Tracker.WANDB,)))
    variables = dict(
        job_variables(bind_job(replace(experiment, plan=plan, environment=own), job_of(experiment, "train")))
    )
    assert (variables["WANDB_MODE"], variables["WANDB_DIR"]) == (mode, "/output")
    assert "WANDB_DIR" not in dict(job_variables(bind_job(experiment, job_of(experiment, "train"))))


def test_addresses_on_an_own_network_are_names() -> None:
    experiment = make("master", "worker.1")
    placed = replace(experiment, jobs=tuple(replace(job, address="10.213.0.2") for job in experiment.jobs))
    assert job_addresses(placed) == job_addresses(experiment) == {"master": "master:2222", "worker.1": "worker-1:2222"}


def test_a_job_knows_its_attempt() -> None:
    experiment = make("train")
    jobs = make_next_attempt(tuple(replace(job, state=State.FAILED, host=HostName("h1")) for job in experiment.jobs))
    again = replace(experiment, jobs=jobs)
    found = dict(job_variables(bind_job(again, job_of(again, "train"))))
    assert (found["RISEML_ATTEMPT"], found["OUTPUT_DIR"]) == ("2", "/output")
    assert launch(again, "train").key.attempt == 2
    assert job_of(again, "train").host is None


def test_a_trial_of_a_population_knows_its_generation_and_its_parent() -> None:
    experiment = replace(make("train"), number=144, sub=9)
    for lineage, expected in (
        (Lineage(1), {"RISEML_GENERATION": "1"}),
        (Lineage(2, parent=3, parent_record=70), {"RISEML_GENERATION": "2", "RISEML_PARENT": "144.3"}),
    ):
        trial = replace(experiment, plan=replace(experiment.plan, lineage=lineage))
        variables = dict(job_variables(bind_job(trial, job_of(trial, "train"))))
        names = ("RISEML_GENERATION", "RISEML_PARENT")
        assert {name: variables[name] for name in names if name in variables} == expected


@pytest.mark.parametrize(
    ("target", "path", "mount"),
    [
        (HOST, "/inputs/model/a/b", Mount("/home/paul/output/paul/toaster/4", "/inputs/model", read_only=True)),
        (BARE, "/home/paul/output/paul/toaster/4/a/b", None),
        (ON_VOLUME, "/inputs/model/paul/toaster/4/a/b", Mount("runs", "/inputs/model", read_only=True, volume=VOLUME)),
    ],
)
def test_a_job_finds_an_input_and_a_container_cannot_write_to_it(
    target: LaunchTarget, path: str, mount: Mount | None
) -> None:
    """The mount is the output that riseml itself has made: a part of it may be a link of a job to anywhere."""
    experiment = make("train")
    part = InputFolder("model", "paul/toaster/4", "a/b")
    whole = InputFolder("whole-set", "paul/toaster/144")
    started = launch(replace(experiment, plan=replace(experiment.plan, inputs=(part, whole))), "train", target)
    variables = dict(started.environment)
    assert variables["RISEML_INPUT_MODEL"] == path
    assert variables["RISEML_INPUT_WHOLE_SET"].endswith(("/144", "/inputs/whole-set"))
    mounted = [one for one in started.mounts if one.target.startswith("/inputs/")]
    assert mount in mounted if target.contained else started.environment and mount is None
    assert all(one.read_only for one in mounted)


def test_a_job_that_is_not_planned_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"experiment 4 has no job worker\.9"):
        find_planned_job(make("train"), JobName("worker.9"))


@pytest.mark.parametrize("name", [framework.name for framework in FRAMEWORKS])
def test_a_launch_binds_its_framework_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    framework = next(framework for framework in FRAMEWORKS if framework.name == name)
    original = type(framework).bind
    bound: list[JobName] = []

    def bind(self: Framework, plan: Plan, job: JobName, peers: Mapping[JobName, str]) -> Binding:
        bound.append(job)
        return original(self, plan, job, peers)

    monkeypatch.setattr(type(framework), "bind", bind)
    experiment = with_run(make("train"), "go {{job_name}}")
    launch(replace(experiment, plan=replace(experiment.plan, framework=name)), "train")
    assert bound == ["train"]
