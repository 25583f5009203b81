"""Wrong input and failures: one clear message with the next step, the right exit code, nothing left over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.e2e.console import Console, write
from tests.support.rig import gang, single

Project = Callable[..., Path]


def test_an_engine_that_does_not_answer_is_named(make_console: Callable[..., Console], tmp_path: Path) -> None:
    console = make_console(DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    write(console.where, single("true"))
    result = console.run("train")
    assert result.code == 5
    error, hint = result.err.splitlines()
    assert error.startswith("error: ")
    assert "does not answer" in error
    assert f"{tmp_path}/none.sock" in error
    assert hint.startswith("hint: ")
    assert console.ask("status", "-a") == {"experiments": []}


def test_an_image_that_does_not_exist_fails_the_experiment(console: Console, project: Project) -> None:
    project(single("true", image="riseml-test/no-such-image:1"))
    result = console.run("train")
    assert result.code == 1
    end = result.out[result.out.rindex("Experiment ") :].splitlines()[0]
    assert f"FAILED: {result.id}.build: " in end
    assert "riseml-test/no-such-image:1" in end
    assert ("check the spelling" in end) is ("dial tcp" not in end), "an unresolved name is no spelling mistake"


def test_a_failed_install_step_fails_the_experiment_with_its_output(console: Console, project: Project) -> None:
    project(single("true", install=["echo fine", "echo the output >&2; exit 3"]))
    result = console.run("train")
    assert result.code == 1
    assert "the output" in result.lines("build")
    end = result.out[result.out.rindex("Experiment ") :]
    assert "install step 2 failed with exit code 3: echo the output >&2; exit 3" in end
    assert "exit code 1" not in end, "which riseml itself has chosen"
    assert f"Last lines of {result.id}.build:\n" in end
    assert "\n  the output\n" in end


def test_a_missing_run_command_fails_the_experiment_with_127(console: Console, project: Project) -> None:
    project(single("no-such-command --epochs 3"))
    result = console.run("train")
    assert result.code == 1
    end = result.out[result.out.rindex("Experiment ") :]
    assert f"{result.id}.train: exit code 127 (command not found)" in end
    assert "no-such-command" in end


@pytest.mark.parametrize("place", ["{tmp}/file/output", "/sys/riseml"], ids=["a file is in the way", "no permission"])
def test_an_output_folder_that_cannot_be_made_is_named(
    make_console: Callable[..., Console], tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    console = make_console(RISEML_OUTPUT=place.format(tmp=tmp_path))
    write(console.where, gang({}))
    result = console.run("train")
    assert result.code == 1
    end = result.out[result.out.rindex("Experiment ") :]
    assert "OUTPUT_DIR" in end
    assert place.format(tmp=tmp_path) in end
    assert console.leftovers() == []


@pytest.mark.parametrize("verb", ["validate", "train", "logs", "kill"])
def test_a_command_outside_of_a_project_names_the_next_step(console: Console, tmp_path: Path, verb: str) -> None:
    result = console.run(verb)
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: ")
    assert f"there is no riseml.yml in {tmp_path}" in result.err
    assert "hint: " in result.err


@pytest.mark.parametrize("verb", ["validate", "train"])
@pytest.mark.parametrize(
    "content",
    [
        b"project: [a\ntrain: {\n",
        b"project: \xff\n",
        b"\x00\x01",
        b"",
        b"- a\n",
        b"a: &a [*a]\n",
        b"!!python/name:os.system x\n",
    ],
    ids=["no end", "no UTF-8", "control characters", "empty", "a list", "a loop", "a tag"],
)
def test_a_riseml_yml_that_cannot_be_parsed_is_named_with_its_position(
    console: Console, tmp_path: Path, verb: str, content: bytes
) -> None:
    (tmp_path / "riseml.yml").write_bytes(content)
    result = console.run(verb)
    assert (result.code, result.out) == (2, "")
    assert "riseml.yml:" in result.err
    assert len(result.err.splitlines()) <= 12


@pytest.mark.parametrize("verb", ["validate", "train"])
def test_every_problem_of_a_file_is_shown(console: Console, project: Project, verb: str) -> None:
    project("project: t!\ntrain:\n  imag: x\n  resources: {cpus: many, mem: 4}\n  run: python {{lr}}\n")
    result = console.run(verb)
    assert (result.code, result.out) == (2, "")
    for place in ("riseml.yml:1:", "riseml.yml:3:3:", "riseml.yml:4:", "riseml.yml:5:"):
        assert place in result.err
    assert "image" in result.err
    assert result.err.splitlines()[-1].startswith("riseml.yml has ")


@pytest.mark.parametrize("words", ["logs 99", "status 99", "monitor 99", "kill 99", "logs 99.worker.1"])
def test_an_unknown_experiment_is_named(console: Console, words: str) -> None:
    result = console.run(*words.split())
    assert (result.code, result.out) == (3, "")
    assert "there is no experiment 99" in result.err
    assert "hint: " in result.err


def test_resources_that_no_host_has_are_refused(console: Console, project: Project) -> None:
    project(single("true", resources={"cpus": 4096, "mem": "1GiB"}))
    result = console.run("train")
    assert result.code == 4
    assert "4096" in result.err
