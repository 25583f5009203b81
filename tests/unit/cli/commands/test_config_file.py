"""`init` and `validate`, which need no server."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from riseml.frameworks import registry
from riseml.frameworks.plain import Plain
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_init_writes_a_file_that_is_valid(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "My toaster!"
    place.mkdir()
    result = riseml("init", where=place)
    assert (result.code, result.err) == (0, "")
    said = (
        "Wrote riseml.yml for project My-toaster. `riseml train` runs it as it is; then put your program into `run`.\n"
    )
    assert result.out == said
    valid = riseml("validate", where=place)
    assert (valid.code, valid.err) == (0, "")


def test_init_takes_the_name_of_the_project_and_of_the_file(riseml: Riseml, tmp_path: Path) -> None:
    result = riseml("init", "-n", "lj_riseml", "--config-file", "other.yml", "--json", where=tmp_path)
    assert json.loads(result.out) == {"file": "other.yml", "old": None, "project": "lj_riseml"}
    assert "project: lj_riseml\n" in (tmp_path / "other.yml").read_text()
    assert riseml("validate", "--config-file", "other.yml", where=tmp_path).code == 0


PROGRAM = """\
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--name", required=True)
print(f"loss: {parser.parse_args().lr}")
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A project without a riseml.yml, with two programs."""
    place = tmp_path / "toaster"
    place.mkdir()
    (place / "train.py").write_text(PROGRAM)
    (place / "other.py").write_text("print(1)\n")
    (place / "requirements.txt").write_text("torch\n")
    return place


def test_init_shows_what_a_project_says_and_writes_a_file_that_fits(riseml: Riseml, code: Path) -> None:
    result = riseml("init", where=code)
    assert result.code == 0
    assert result.out.splitlines() == [
        "Read 3 files and ran none of them:",
        "",
        "  framework   pytorch                                  train.py:2 imports torch",
        "  install     pip install -r requirements.txt          requirements.txt:1 lists packages",
        "  run         python train.py --lr {{lr}} --name TODO  train.py:4 reads its arguments by argparse",
        "  parameters  lr = 0.1                                 train.py:4 1 of its arguments has a default",
        "  metrics     loss                                     train.py:6 prints them",
        "",
        "Wrote riseml.yml for project toaster. Replace TODO in it; then `riseml train` runs it.",
    ]
    assert result.err.splitlines() == [
        "note: train.py:5: --name is required: replace TODO in `run`",
        "note: there is no terminal to ask on, so that this is written as it is; --script takes another of 2 programs",
    ]
    assert riseml("validate", where=code).code == 0
    again = riseml("init", where=code)
    assert (again.code, again.out) == (4, "")
    assert "riseml.yml is already there" in again.err
    assert "`riseml init --convert`" in again.err


def test_y_asks_nothing_and_script_names_the_program(riseml: Riseml, code: Path) -> None:
    result = riseml("init", "-y", "--script", "./other.py", where=code, asks=True)
    assert (result.code, result.err) == (0, "")
    assert "  run        python other.py" in result.out
    assert json.loads(riseml("init", "--json", "-f", "x.yml", where=code, asks=True).out)["file"] == "x.yml"
    plain = riseml("init", "--framework", "plain", "-f", "plain.yml", where=code)
    assert "`riseml train` runs it as it is" in plain.out


def test_a_user_chooses_the_program_and_may_say_no(riseml: Riseml, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["7", "2", "other.py", "1"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    monkeypatch.setattr("typer.confirm", lambda text, *, err, default: text == "Write b.yml?")
    wrong = riseml("init", where=code, asks=True)
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "error: '7' is none of the programs")
    refused = riseml("init", where=code, asks=True)
    assert refused.code == 4
    assert "error: nothing was written\n" in refused.err
    assert not (code / "riseml.yml").exists()
    assert riseml("init", "-f", "b.yml", where=code, asks=True).code == 0
    assert "python other.py" in (code / "b.yml").read_text()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--script", "none.py"), 3, "there is no none.py in "),
        (("--script", "../x.py"), 2, "--script '../x.py' is no file of the project in "),
        (("--script", ""), 2, "--script '' is no file of the project in "),
        (("--script", "requirements.txt"), 2, "--script 'requirements.txt' is not a script or a notebook that riseml"),
        (("--script", "broken.py"), 2, "broken.py is not Python that riseml can read"),
        (("--script", "train.py", "--framework", "jax"), 2, "--script takes no --framework"),
        (("--script", "train.py", "--convert"), 2, "--convert takes no --script"),
        (("--framework", "caffe"), 2, "there is no starter riseml.yml for the framework 'caffe'"),
        (("--framework", ""), 2, "there is no starter riseml.yml for the framework ''"),
        (("--framework", "Jax"), 2, "use one of: plain, tensorflow, pytorch, jax, horovod, roles"),
    ],
)
def test_init_refuses_what_it_cannot_take(
    riseml: Riseml, code: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    (code / "broken.py").write_text("def f(:\n")
    result = riseml("init", *words, where=code)
    assert (result.code, result.out) == (status, "")
    assert said in result.err
    assert "Traceback" not in result.err
    assert not (code / "riseml.yml").exists()


def test_init_leaves_no_part_of_a_file_on_a_full_disk(riseml: Riseml, tmp_path: Path) -> None:
    place = tmp_path / "toaster"
    place.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        result = riseml("init", where=place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.code, result.out) == (4, "")
    assert result.err.startswith("error: cannot write riseml.yml: ")
    assert list(place.iterdir()) == []


def test_validate_says_that_train_would_refuse_a_framework(
    riseml: Riseml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "FRAMEWORKS", (Plain(),))
    train = "framework: tensorflow, tensorflow: {horovod: {workers: 2}}, image: x, run: y"
    (tmp_path / "riseml.yml").write_text(f"project: p\ntrain: {{{train}}}\n")
    result = riseml("validate", where=tmp_path)
    assert result.code == 0
    assert "cannot run the framework 'horovod'" in result.err


def test_validate_shows_every_problem_with_its_line(riseml: Riseml, folder: Path) -> None:
    (folder / "riseml.yml").write_text("project: a\ntrain:\n  image: x\n  rum: python x.py\n  concurrency: many\n")
    result = riseml("validate")
    assert (result.code, result.out) == (2, "")
    assert "    4 |   rum: python x.py\n      |   ^\n" in result.err
    assert "riseml.yml:5:" in result.err
    shapes = riseml("validate", "--json")
    assert shapes.code == 2
    assert {"file", "line", "column", "path", "problem", "hint", "severity"} == set(json.loads(shapes.out)[0])


def test_validate_needs_no_server(riseml: Riseml, fake_server: FakeServer) -> None:
    riseml("validate")
    assert fake_server.asked == []
