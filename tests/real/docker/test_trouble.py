"""Bad input and failures: one clear message, the right exit code, nothing left on the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.rig import Rig, gang, single


def test_an_image_that_does_not_exist(docker_rig: Rig) -> None:
    rig = docker_rig
    rig.submit(single("true", image="riseml-test/no-such-image:1"))
    found = rig.wait_closed("1")
    assert (found["state"], found["reason"], found["cause"]) == ("FAILED", "BUILD_FAILED", "build")
    assert "riseml-test/no-such-image:1" in found["message"]
    assert "check the spelling" in found["message"]
    assert rig.containers() == []


def test_an_install_step_that_fails(rig: Rig) -> None:
    rig.submit(single("true", install=["echo fine", "echo the output >&2; exit 3"]))
    found = rig.wait_closed("1")
    assert found["reason"] == "BUILD_FAILED"
    assert found["message"].startswith("install step 2 failed with exit code 3: echo the output >&2; exit 3")
    assert "the output" in found["last_lines"]
    ends = {job["id"]: (job["state"], job["reason"]) for job in found["jobs"]}
    assert ends == {"1.build": ("FAILED", "BUILD_FAILED"), "1.train": ("KILLED", "NOT_STARTED")}


def test_the_environment_is_built_once_and_code_does_not_change_it(rig: Rig) -> None:
    config = single("cat note.txt", install=["cat needs.txt", f"echo {rig.home}"])
    rig.submit(config, {"needs.txt": "one", "note.txt": "first"})
    assert rig.wait_closed("1")["state"] == "FINISHED"
    rig.submit(config, {"needs.txt": "one", "note.txt": "second"})
    assert rig.wait_closed("2")["jobs"][0]["reason"] == "CACHED"
    assert rig.lines("2.train") == ["2.train second"]
    rig.submit(config, {"needs.txt": "two", "note.txt": "third"})
    assert rig.wait_closed("3")["jobs"][0]["reason"] == "COMPLETED"


def test_an_install_step_reads_a_file_whose_name_is_not_ascii(rig: Rig) -> None:
    name = "größe/" + "ä" * 60 + ".txt"
    rig.submit(single("true", install=[f"cat {name} needs.txt # {rig.home}"]), {name: "eins\n", "needs.txt": "two\n"})
    rig.wait_closed("1")
    assert {"1.build eins", "1.build two"} <= set(rig.lines("1.build"))


def test_jobs_see_what_install_steps_made_in_the_project_folder(rig: Rig) -> None:
    make = (
        "mkdir -p lib/inner; echo made >lib/inner/file; echo made >note.txt; ln -s lib/inner link; chmod 700 lib/inner"
    )
    run = f"cat note.txt lib/inner/file link/file; echo job >>lib/inner/file # {rig.home}"
    for number in ("1", "2"):
        rig.submit(single(run, install=[f"{make} # {rig.home}"]), {"note.txt": "project\n"})
        assert rig.wait_closed(number)["state"] == "FINISHED"
        assert rig.lines(f"{number}.train") == [f"{number}.train {word}" for word in ("project", "made", "made")]


def test_killing_a_build_ends_it(rig: Rig) -> None:
    rig.submit(single("true", install=[f"echo begun; sleep 300 # {rig.home}"]))
    rig.wait("the build has begun", lambda: rig.lines("1.build", follow=False)[1:])
    rig.post("/v1/experiments/1/kill")
    assert rig.wait_closed("1")["state"] == "KILLED"


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


def test_an_experiment_that_can_never_fit_is_refused_with_the_reason(rig: Rig) -> None:
    answer = rig.post("/v1/experiments", rig.submission(single("true", resources={"cpus": 4096, "mem": "1GiB"})))
    assert answer.status_code == 403
    assert f"host {rig.host.name} has" in answer.json()["error"]["message"]


WRONG_REQUESTS = [
    ("GET", "/v1/experiments/99", 404, "there is no experiment 99"),
    ("GET", "/v1/experiments/x!", 400, "is not an experiment ID"),
    ("GET", "/v1/experiments/99/logs", 404, "there is no experiment 99"),
    ("GET", "/v1/experiments/other.1", 404, "there is no experiment other.1"),
    ("POST", "/v1/experiments/99/kill", 404, "there is no experiment 99"),
    ("GET", "/v1/nothing", 404, "no such address"),
    ("PUT", "/v1/snapshots/short", 400, "not the digest"),
    ("GET", "/v1/experiments?limit=0", 422, "limit"),
]


def test_each_wrong_request_has_one_shape(rig: Rig) -> None:
    with rig.client() as client:
        answers = {(method, path): client.request(method, path) for method, path, _, _ in WRONG_REQUESTS}
    found = [
        (method, path, answer.status_code, answer.json()["error"]["message"])
        for (method, path), answer in answers.items()
    ]
    assert [one[:3] for one in found] == [one[:3] for one in WRONG_REQUESTS]
    assert [one for one, wanted in zip(found, WRONG_REQUESTS, strict=True) if wanted[3] not in one[3]] == []


def test_all_problems_of_a_file_are_reported_at_once(rig: Rig) -> None:
    body = {"project": "t", "file": "riseml.yml", "config": "project: t\ntrain:\n  imag: x\n  rnu: true\n"}
    answer = rig.post("/v1/experiments", body)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["exit_code"] == 2
    assert len(error["problems"]) >= 2


def test_a_job_cannot_be_killed_alone(rig: Rig) -> None:
    rig.submit(single("sleep 60", stop_grace=1))
    assert rig.post("/v1/experiments/1.train/kill").status_code == 400
    rig.post("/v1/experiments/1/kill")
    rig.wait_closed("1")


def test_a_set_runs_its_grid(rig: Rig) -> None:
    rig.submit(single("echo {{lr}} $LR", parameters={"lr": [0.1, 0.2, 0.3]}, concurrency=2))
    found = rig.wait_closed("1")
    assert (found["type"], found["state"]) == ("set", "FINISHED")
    assert [member["id"] for member in found["experiments"]] == ["1.1", "1.2", "1.3"]
    assert sorted(line for line in rig.lines("1") if ".train " in line) == [
        "1.1.train 0.1 0.1",
        "1.2.train 0.2 0.2",
        "1.3.train 0.3 0.3",
    ]
    of_set = [entry for entry in rig.logs("1") if entry["type"] == "state" and entry["id"] == "1"]
    assert (of_set[0]["state"], of_set[-1]["state"]) == ("CREATED", "FINISHED")
    assert [entry["state"] for entry in of_set].count("RUNNING") == 1
    assert of_set[-1]["message"] == "3 of 3 finished"
