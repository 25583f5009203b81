"""The plan that can be read, and TF_CONFIG by command: against a real server, on containers and on processes."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import Printer
from tests.support.rig import BASE, Rig, gang, single

SECRET = "geheim-4711"
ENVIRON = {"API_TOKEN": SECRET}
NAMES = ("master", "worker.1", "worker.2", "ps.1")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def riseml(rig: Rig, folder: Path, *words: str, live: bool = False) -> Result:
    """One command line in the project, against the rig's server."""
    printer = Printer(io.StringIO(), io.StringIO(), live=live)
    context = CommandContext(printer, {**rig.environ(), **ENVIRON}, folder, wait=lambda _: None)
    code = execute(words, context)
    assert isinstance(printer.out, io.StringIO)
    assert isinstance(printer.err, io.StringIO)
    return Result(code, printer.out.getvalue(), printer.err.getvalue())


def plan(rig: Rig, config: str, **fields: Any) -> Any:
    answer = rig.post("/v1/plans", rig.submission(config, **fields))
    assert answer.status_code == 200, answer.text
    return answer.json()


def write(folder: Path, config: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "riseml.yml").write_text(config)
    return folder


def cpus(rig: Rig) -> float:
    found: float = rig.get("/v1/system")["hosts"][0]["cpus"]
    return found


def test_the_run_follows_the_plan(rig: Rig) -> None:
    config = gang({}, run='printf "%s\\n" "$(env | sort)"', parameters={"lr": 0.1}, env={"MODE": "fast"})
    submission = rig.submission(config)
    shown = rig.post("/v1/plans", submission).json()
    (first,) = shown["experiments"]
    assert (shown["cached"], first["waits"], first["parameters"]) == (rig.host.contained, None, {"lr": "0.1"})
    assert rig.get("/v1/experiments", all=True)["experiments"] == [], "nothing is stored"
    done = rig.post("/v1/experiments", submission).json()
    assert (done["id"], done["output"]) == (first["id"], first["output"])
    rig.wait_closed(done["id"])
    after = rig.experiment(done["id"])
    lines = rig.lines(done["id"])
    for job in first["jobs"]:
        real = next(one for one in after["jobs"] if one["name"] == job["name"])
        assert job["host"] == real["host"] == rig.host.name
        printed = {line.partition(" ")[2] for line in lines if line.startswith(f"{done['id']}.{job['name']} ")}
        wanted = {f"{name}={value}" for name, value in job["environment"].items()}
        if job["name"] != "ps.1":  # it may have been stopped before it could speak
            assert wanted <= printed


def test_secrets_are_named_and_never_shown(shared_rig: Rig, tmp_path: Path) -> None:
    config = single("true", env=["API_TOKEN", "MODE=fast", "OUTPUT_DIR=/mine"])
    shown = plan(shared_rig, config, environment=ENVIRON)
    (job,) = shown["experiments"][0]["jobs"]
    assert job["passed_on"] == ["API_TOKEN"]
    assert "API_TOKEN" not in job["environment"]
    assert job["environment"]["MODE"] == "fast"
    assert job["environment"]["OUTPUT_DIR"] != "/mine"
    folder = write(tmp_path / "project", config)
    for words in (("train", "--dry-run"), ("train", "--dry-run", "--json")):
        result = riseml(shared_rig, folder, *words)
        assert result.code == 0
        assert "API_TOKEN" in result.out
        assert SECRET not in json.dumps(shown) + result.out + result.err


def test_a_plan_says_why_it_would_wait(shared_rig: Rig) -> None:
    rig = shared_rig
    size = cpus(rig)
    never = plan(rig, single("true", resources={"cpus": size + 1, "mem": "64MiB"}))["experiments"][0]
    assert never["waits"].startswith(f"it can never run: the job needs {size + 1:g} cpus, 64 MiB and 0 gpus; host")
    assert never["jobs"][0]["host"] is None
    hog = rig.submit(single("exec sleep 600", resources={"cpus": size - 0.5, "mem": "64MiB"}))
    rig.wait_state(hog["id"], "RUNNING")
    large = single("true", resources={"cpus": size, "mem": "64MiB"})
    waits = plan(rig, large)["experiments"][0]["waits"]
    assert waits.startswith("no room now; it is next, and room is kept for it; host ")
    assert waits.endswith(f": cpus: needs {size:g}, 0.5 free of {size:g} (held by {hog['id']})")
    small = single("true", resources={"cpus": 0.1, "mem": "64MiB"})
    assert plan(rig, small)["experiments"][0]["waits"] is None
    waiting = rig.submit(large)
    rig.wait_state(waiting["id"], "PENDING")
    assert plan(rig, small)["experiments"][0]["waits"] == (f"what is free is kept for {waiting['id']}, which is next")
    first = plan(rig, single("true", resources={"cpus": 0.1, "mem": "64MiB"}, priority=1))["experiments"][0]
    assert first["waits"] is None, "it goes before those that wait"
    for each in (waiting, hog):
        rig.post(f"/v1/experiments/{each['id']}/kill")
        rig.wait_closed(each["id"])


def test_a_grid_is_planned_whole(shared_rig: Rig, tmp_path: Path) -> None:
    config = single("go {{lr}} {{n}}", parameters={"lr": [0.1, 0.2], "n": [1, 2]}, concurrency=2)
    found = plan(shared_rig, config)["experiments"]
    first, second, third, fourth = [one["id"] for one in found]
    name = first.partition(".")[0]
    assert [first, second, third, fourth] == [f"{name}.{number}" for number in range(1, 5)]
    assert [one["jobs"][0]["run"] for one in found] == [["go 0.1 1"], ["go 0.1 2"], ["go 0.2 1"], ["go 0.2 2"]]
    later = f"train.concurrency: 2 of the set at the same time ({first}, {second} now)"
    assert [one["waits"] for one in found] == [None, None, later, later]
    result = riseml(shared_rig, write(tmp_path / "project", config), "train", "--dry-run")
    assert result.out.count("RISEML_JOB=train") == 1
    assert [line.split(maxsplit=1) for line in result.out.splitlines()[-4:]] == [
        ["EXP", "ID  PARAMS"],
        [second, "lr=0.1, n=2"],
        [third, "lr=0.2, n=1"],
        [fourth, "lr=0.2, n=2"],
    ]
    assert result.err.endswith("4 experiments; nothing was started.\n")


def test_a_plan_reads_well(docker_rig: Rig, tmp_path: Path) -> None:
    config = gang({}, run=["prepare", "train {{lr}}"], parameters={"lr": 0.1}, limits={"cpus": 1, "mem": "1GiB"})
    result = riseml(docker_rig, write(tmp_path / "project", config), "train", "--dry-run")
    peers = '"chief": ["master:2222"], "worker": ["worker-1:2222", "worker-2:2222"], "ps": ["ps-1:2222"]'
    head, jobs, run, variables = result.out.split("\n\n")
    assert head.splitlines() == [
        "Project: toaster",
        "Framework: tensorflow",
        "Image: riseml-test/base:py311 (cached)",
        "Experiment: 1, if it were submitted now",
        "Parameters: lr=0.1",
        f"Output: {docker_rig.home}/output/{docker_rig.environ().get('USER', 'root')}/toaster/1",
        "Starts: at once",
    ]
    assert [" ".join(line.split()) for line in jobs.splitlines()] == [
        "JOB PART HOST CPUS MEM GPUS SHM LIMITS",
        "master decides local 0.1 64 MiB 0 1024 MiB cpus 1, mem 1024 MiB",
        "worker.1 helps local 0.1 64 MiB 0 1024 MiB cpus 1, mem 1024 MiB",
        "worker.2 helps local 0.1 64 MiB 0 1024 MiB cpus 1, mem 1024 MiB",
        "ps.1 serves local 0.1 64 MiB 0 1024 MiB cpus 1, mem 1024 MiB",
    ]
    assert run.splitlines() == ["JOB  COMMAND", "all  prepare", "     train 0.1"]
    shown = variables.splitlines()
    assert shown[:2] == ["JOB       ENVIRONMENT", "all       DATA_DIR=/data"]
    assert shown[-5:] == [
        "worker.2  RISEML_JOB=worker.2",
        f'          TF_CONFIG={{"cluster": {{{peers}}}, "task": {{"type": "worker", "index": 1}}}}',
        "          WORKER_INDEX=2",
        "ps.1      RISEML_JOB=ps.1",
        f'          TF_CONFIG={{"cluster": {{{peers}}}, "task": {{"type": "ps", "index": 0}}}}',
    ]


def test_an_image_is_cached_or_not(shared_docker_rig: Rig, tmp_path: Path) -> None:
    rig = shared_docker_rig
    missing = single("true", image="riseml-test/no-such-image:1")
    assert plan(rig, missing)["cached"] is False
    folder = write(tmp_path / "project", missing)
    out = riseml(rig, folder, "train", "--dry-run").out
    assert "Image: riseml-test/no-such-image:1 (will be fetched)\n" in out
    assert "Starts: at once, once the image is there\n" in out
    built = single("true", install=["true", f"echo {tmp_path}"])
    found = plan(rig, built)
    assert (found["cached"], found["image"].startswith("riseml/environment:")) == (False, True)
    write(folder, built)
    (folder / "more.txt").write_text("so that the server lacks this project's files")
    out = riseml(rig, folder, "train", "--dry-run").out
    assert "with 2 install steps (riseml knows whether it is cached once the project was synced)\n" in out
    submission = rig.submission(built)
    del submission["snapshot"]
    unknown = rig.post("/v1/plans", submission).json()
    assert (unknown["cached"], unknown["image"]) == (None, unknown["base"])


def test_a_plan_without_docker_says_what_replaces_the_image_and_what_is_refused(
    process_rig: Rig, tmp_path: Path
) -> None:
    folder = write(tmp_path / "project", single("true", install=["apt-get install -y git"]))
    shown = riseml(process_rig, folder, "train", "--dry-run").out
    assert re.search(
        rf"\nImage: {BASE}, replaced by a virtual environment with Python [\d.]+( \(will be made\))?\n", shown
    )
    refusal = (
        "install step 1 installs into the whole machine, which jobs without Docker may not: apt-get install -y git"
    )
    assert f"\nStarts: never: {refusal}\n" in shown
    for words in (["train"], ["train", "-d"]):
        result = riseml(process_rig, folder, *words)
        assert (result.code, result.err.splitlines()[0]) == (4, f"error: {refusal}")
    assert process_rig.get("/v1/experiments", all=True)["experiments"] == []


# --- tfconfig ---


def test_tf_config_prints_what_the_jobs_read(shared_rig: Rig, tmp_path: Path) -> None:
    rig = shared_rig
    says = 'echo "config $TF_CONFIG"; exec sleep 600'
    config = gang(dict.fromkeys(NAMES, says))
    folder = write(tmp_path / "project", config)
    running = rig.submit(config)
    name = running["id"]

    def find_configs() -> dict[str, Any] | None:
        lines = [line.split(" ", 2) for line in rig.lines(name, follow=False)]
        found = {job.partition(".")[2]: json.loads(text) for job, word, text in lines if word == "config"}
        return found if len(found) == len(NAMES) else None

    real = rig.wait("every job has printed its TF_CONFIG", find_configs)
    assert rig.get(f"/v1/experiments/{name}/tfconfig") == {"id": name, "configs": {job: real[job] for job in NAMES}}
    assert json.loads(riseml(rig, folder, "tfconfig", "--json").out) == real
    for words in ((f"{name}.worker.1",), (name, "worker.1")):
        result = riseml(rig, folder, "tfconfig", *words)
        assert (result.code, result.out.count("\n"), " " in result.out) == (0, 1, False)
        assert json.loads(result.out) == real["worker.1"]
    text = riseml(rig, folder, "tfconfig", f"{name}.worker.1", live=True).out
    assert text == json.dumps(real["worker.1"], indent=2) + "\n"
    workers = riseml(rig, folder, "tfconfig", f"{name}.worker").out
    assert [line for line in workers.splitlines() if line.startswith(name)] == [f"{name}.worker.1", f"{name}.worker.2"]
    rig.post(f"/v1/experiments/{name}/kill")
    rig.wait_closed(name)
    assert json.loads(riseml(rig, folder, "tfconfig", name, "--json").out) == real, "also once it has ended"


def test_tf_config_of_a_file(shared_docker_rig: Rig, tmp_path: Path) -> None:
    rig = shared_docker_rig
    folder = write(tmp_path / "project", gang({}, env=["API_TOKEN", "NOT_SET_ANYWHERE"]))
    found = json.loads(riseml(rig, folder, "tfconfig", "-f", "riseml.yml", "--json").out)
    assert list(found) == list(NAMES)
    changed = ("--set", "train.tensorflow.distributed.worker=2")
    one = json.loads(riseml(rig, folder, "tfconfig", "-f", "riseml.yml", "master", *changed).out)
    assert one["cluster"]["worker"] == ["worker-1:2222"]
    shown = riseml(rig, folder, "tfconfig", "-f", "riseml.yml").out
    assert shown.startswith('master\n{\n  "cluster": {\n')
    assert "\n\nworker.1\n{\n" in shown


ALONE = "a single job gets none, nor does a job outside a TensorFlow cluster; `riseml env` shows what it gets"


def test_a_job_alone_has_no_tf_config(shared_docker_rig: Rig, tmp_path: Path) -> None:
    rig = shared_docker_rig
    folder = write(tmp_path / "project", single("true"))
    assert riseml(rig, folder, "tfconfig", "-f", "riseml.yml").out == f"train\nnone: {ALONE}\n"
    assert riseml(rig, folder, "tfconfig", "-f", "riseml.yml", "--json").out == '{"train": null}\n'
    result = riseml(rig, folder, "tfconfig", "-f", "riseml.yml", "train")
    assert (result.code, result.out) == (3, "")
    assert "train gets no TF_CONFIG" in result.err


REFUSED = (
    (("4",), 3, "there is no experiment 4"),
    (("4", "master", "x"), 2, "'x' is one word too many"),
    (("nonsense",), 2, "'nonsense' is not an experiment ID"),
    (("-f", "riseml.yml", "worker.7"), 3, "there is no job worker.7"),
    (("-p", "lr=1"), 2, "-p and --set change a file, not an experiment"),
    (("-f", "riseml.yml", "--set", "train.image="), 2, "riseml.yml has"),
    ((), 3, "project toaster has no experiment yet"),
)


def test_what_tfconfig_refuses(docker_rig: Rig, tmp_path: Path) -> None:
    folder = write(tmp_path / "project", gang({}))
    for words, code, said in REFUSED:
        result = riseml(docker_rig, folder, "tfconfig", *words)
        assert (result.code, result.out) == (code, ""), words
        assert said in result.err, words


def test_a_set_has_no_tf_config(shared_docker_rig: Rig, tmp_path: Path) -> None:
    rig = shared_docker_rig
    config = single("true", parameters={"lr": [1, 2]})
    name = rig.submit(config)["id"]
    rig.wait_closed(name)
    folder = write(tmp_path / "project", config)
    result = riseml(rig, folder, "tfconfig", name)
    assert (result.code, f"{name} is a set" in result.err, f"{name}.1" in result.err) == (2, True, True)
    assert json.loads(riseml(rig, folder, "tfconfig", f"{name}.2", "--json").out) == {"train": None}
