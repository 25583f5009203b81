"""Bad input and failures: one clear message, the right exit code, nothing left on the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.rig import Rig, gang, single


def test_an_image_that_does_not_exist(shared_docker_rig: Rig) -> None:
    rig = shared_docker_rig
    found = rig.wait_closed(rig.submit(single("true", image="riseml-test/no-such-image:1"))["id"])
    assert (found["state"], found["reason"], found["cause"]) == ("FAILED", "BUILD_FAILED", "build")
    assert "riseml-test/no-such-image:1" in found["message"]
    names_spelling = "check the spelling" in found["message"]
    assert names_spelling is ("dial tcp" not in found["message"]), "an unresolved name is no spelling mistake"
    assert rig.containers() == []


def test_an_install_step_that_fails(shared_rig: Rig) -> None:
    name = shared_rig.submit(single("true", install=["echo fine", "echo the output >&2; exit 3"]))["id"]
    found = shared_rig.wait_closed(name)
    assert found["reason"] == "BUILD_FAILED"
    assert found["message"].startswith("install step 2 failed with exit code 3: echo the output >&2; exit 3")
    assert "the output" in found["last_lines"]
    ends = {job["id"]: (job["state"], job["reason"]) for job in found["jobs"]}
    assert ends == {f"{name}.build": ("FAILED", "BUILD_FAILED"), f"{name}.train": ("KILLED", "NOT_STARTED")}


def test_the_environment_is_built_once_and_code_does_not_change_it(shared_rig: Rig, tmp_path: Path) -> None:
    config = single("cat note.txt", install=["cat needs.txt", f"echo {tmp_path}"])

    def run(needs: str, note: str) -> dict[str, Any]:
        return shared_rig.wait_closed(shared_rig.submit(config, {"needs.txt": needs, "note.txt": note})["id"])

    assert run("one", "first")["state"] == "FINISHED"
    second = run("one", "second")
    assert second["jobs"][0]["reason"] == "CACHED"
    assert shared_rig.lines(f"{second['id']}.train") == [f"{second['id']}.train second"]
    assert run("two", "third")["jobs"][0]["reason"] == "COMPLETED"


def test_an_install_step_reads_a_file_whose_name_is_not_ascii(shared_rig: Rig, tmp_path: Path) -> None:
    path = "größe/" + "ä" * 60 + ".txt"
    config = single("true", install=[f"cat {path} needs.txt # {tmp_path}"])
    name = shared_rig.submit(config, {path: "eins\n", "needs.txt": "two\n"})["id"]
    shared_rig.wait_closed(name)
    assert {f"{name}.build eins", f"{name}.build two"} <= set(shared_rig.lines(f"{name}.build"))


def test_jobs_see_what_install_steps_made_in_the_project_folder(shared_rig: Rig, tmp_path: Path) -> None:
    rig = shared_rig
    make = (
        "mkdir -p lib/inner; echo made >lib/inner/file; echo made >note.txt; ln -s lib/inner link; chmod 700 lib/inner"
    )
    run = f"cat note.txt lib/inner/file link/file; echo job >>lib/inner/file # {tmp_path}"
    for _ in range(2):
        name = rig.submit(single(run, install=[f"{make} # {tmp_path}"]), {"note.txt": "project\n"})["id"]
        assert rig.wait_closed(name)["state"] == "FINISHED"
        *printed, changed = rig.lines(f"{name}.train")
        assert printed == [f"{name}.train {word}" for word in ("project", "made", "made")]
        assert "1 new file (9 B) was not kept: lib/" in changed, "the job has changed it"


def test_killing_a_build_ends_it(shared_rig: Rig, tmp_path: Path) -> None:
    name = shared_rig.submit(single("true", install=[f"echo begun; sleep 300 # {tmp_path}"]))["id"]
    shared_rig.wait("the build has begun", lambda: shared_rig.lines(f"{name}.build", follow=False)[1:])
    shared_rig.post(f"/v1/experiments/{name}/kill")
    assert shared_rig.wait_closed(name)["state"] == "KILLED"


def test_an_output_folder_that_cannot_be_made(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    rig = make_rig("home", RISEML_OUTPUT=str(tmp_path / "file" / "output"))
    rig.start()
    rig.submit(gang({}))
    found = rig.wait_closed("1")
    assert (found["state"], found["reason"]) == ("FAILED", "START_FAILED")
    assert "OUTPUT_DIR" in found["message"]
    assert "Not a directory" in found["message"]
    assert rig.containers() == []
    assert rig.networks() == []


def test_no_engine(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    rig = make_rig("home", DOCKER_HOST=f"unix://{tmp_path}/none.sock", RISEML_EXECUTOR="docker")
    rig.start()
    answer = rig.post("/v1/experiments", rig.submission(single("true")))
    assert answer.status_code == 503
    assert answer.json()["error"]["exit_code"] == 5
    assert "does not answer" in answer.json()["error"]["message"]
    assert rig.get("/v1/experiments", all=True) == {"experiments": []}


def test_an_experiment_that_can_never_fit_is_refused_with_the_reason(shared_rig: Rig) -> None:
    large = shared_rig.submission(single("true", resources={"cpus": 4096, "mem": "1GiB"}))
    answer = shared_rig.post("/v1/experiments", large)
    assert answer.status_code == 403
    assert f"host {shared_rig.host.name} has" in answer.json()["error"]["message"]


WRONG_REQUESTS = [
    ("GET", "/v1/experiments/9999", 404, "there is no experiment 9999"),
    ("GET", "/v1/experiments/x!", 400, "is not an experiment ID"),
    ("GET", "/v1/experiments/9999/logs", 404, "there is no experiment 9999"),
    ("GET", "/v1/experiments/other.1", 404, "there is no experiment other.1"),
    ("POST", "/v1/experiments/9999/kill", 404, "there is no experiment 9999"),
    ("GET", "/v1/nothing", 404, "no such address"),
    ("PUT", "/v1/snapshots/short", 400, "not the digest"),
    ("GET", "/v1/experiments?limit=0", 422, "limit"),
]


def test_each_wrong_request_has_one_shape(shared_rig: Rig) -> None:
    with shared_rig.client() as client:
        answers = {(method, path): client.request(method, path) for method, path, _, _ in WRONG_REQUESTS}
    found = [
        (method, path, answer.status_code, answer.json()["error"]["message"])
        for (method, path), answer in answers.items()
    ]
    assert [one[:3] for one in found] == [one[:3] for one in WRONG_REQUESTS]
    assert [one for one, wanted in zip(found, WRONG_REQUESTS, strict=True) if wanted[3] not in one[3]] == []


def test_all_problems_of_a_file_are_reported_at_once(shared_rig: Rig) -> None:
    body = {"project": "t", "file": "riseml.yml", "config": "project: t\ntrain:\n  imag: x\n  rnu: true\n"}
    answer = shared_rig.post("/v1/experiments", body)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["exit_code"] == 2
    assert len(error["problems"]) >= 2


def test_a_job_cannot_be_killed_alone(shared_rig: Rig) -> None:
    name = shared_rig.submit(single("sleep 60", stop_grace=1))["id"]
    assert shared_rig.post(f"/v1/experiments/{name}.train/kill").status_code == 400
    shared_rig.post(f"/v1/experiments/{name}/kill")
    shared_rig.wait_closed(name)


def test_a_set_runs_its_grid(shared_rig: Rig) -> None:
    rig = shared_rig
    name = rig.submit(single("echo {{lr}} $LR", parameters={"lr": [0.1, 0.2, 0.3]}, concurrency=2))["id"]
    found = rig.wait_closed(name)
    assert (found["type"], found["state"]) == ("set", "FINISHED")
    assert [member["id"] for member in found["experiments"]] == [f"{name}.1", f"{name}.2", f"{name}.3"]
    assert sorted(line for line in rig.lines(name) if ".train " in line) == [
        f"{name}.1.train 0.1 0.1",
        f"{name}.2.train 0.2 0.2",
        f"{name}.3.train 0.3 0.3",
    ]
    of_set = [entry for entry in rig.logs(name) if entry["type"] == "state" and entry["id"] == name]
    assert (of_set[0]["state"], of_set[-1]["state"]) == ("CREATED", "FINISHED")
    assert [entry["state"] for entry in of_set].count("RUNNING") == 1
    assert of_set[-1]["message"] == "3 of 3 finished"
