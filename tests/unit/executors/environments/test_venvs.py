"""The virtual environments of a host: which there are, which are complete, and which may be removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.executors.environments.makers import BUILD_SUFFIX, PACKAGES, READY
from riseml.model import Image
from tests.support.builds import make_build_request, make_environments
from tests.support.waiting import DEADLINE, wait_for


def test_a_folder_that_vanishes_while_environments_are_listed_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").write_bytes(b"12345")
    monkeypatch.setattr(Path, "glob", lambda *_: [tmp_path / "gone", tmp_path / "made"])
    monkeypatch.setattr(os, "walk", lambda folder: [(str(folder), [], ["temporary", "file"])])
    found = list(make_environments(tmp_path).list_environments("5e17e4", frozenset()))
    assert [(one.identity, one.size) for one in found] == [("made", 5)]


def make_folder(root: Path, name: str, *, ready: bool = True) -> Path:
    """Make the folder of an environment with a Python."""
    (root / name / "bin").mkdir(parents=True)
    (root / name / "bin" / "python").touch()
    if ready:
        (root / name / READY).touch()
    return root / name


def test_an_environment_is_present_when_it_is_complete_and_has_its_python(tmp_path: Path) -> None:
    environments = make_environments(tmp_path)
    folder = make_folder(tmp_path, environments.find_folder("ab12").name, ready=False)
    assert not environments.observe_environment("ab12").present
    (folder / READY).touch()
    assert environments.observe_environment("ab12").present
    (folder / "bin" / "python").unlink()
    assert not environments.observe_environment("ab12").present, "its Python was removed from the machine"


def test_each_environment_has_a_folder_of_its_own_which_another_server_finds_again(tmp_path: Path) -> None:
    first, second = make_environments(tmp_path), make_environments(tmp_path)
    assert first.find_folder("ab12") == second.find_folder("ab12")
    assert first.find_folder("ab12") != first.find_folder("cd34")


def test_an_environment_that_an_experiment_needs_stays_complete(tmp_path: Path) -> None:
    environments = make_environments(tmp_path)
    folder = make_folder(tmp_path, "ab12")
    asked: list[bool] = []

    def is_needed() -> bool:
        asked.append((folder / READY).exists())
        return True

    with pytest.raises(EngineError, match="an experiment needs the environment ab12"):
        environments.remove_environment("ab12", is_needed)
    assert asked == [False], "no job can begin with it while that is asked"
    assert (folder / READY).exists()
    environments.remove_environment("ab12")
    assert not folder.exists()
    environments.remove_environment("ab12")


def test_an_environment_that_is_being_made_is_not_removed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, "ab12", ready=False)
    folder.with_suffix(BUILD_SUFFIX).mkdir()
    with pytest.raises(EngineError, match="is being made"):
        make_environments(tmp_path).remove_environment("ab12")
    assert folder.exists()


@pytest.mark.parametrize("name", ["../outside", ".", "..", "/etc"])
def test_nothing_but_a_folder_of_an_environment_is_removed(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "environments").mkdir()
    make_environments(tmp_path / "environments").remove_environment(name)
    assert (tmp_path / "outside").exists()
    assert (tmp_path / "environments").exists()


def test_packages_are_known_from_the_build_and_else_unknown(tmp_path: Path) -> None:
    environments = make_environments(tmp_path)
    assert environments.list_packages("ab12") is None
    folder = make_folder(tmp_path, environments.find_folder("ab12").name)
    (folder / PACKAGES).write_text("numpy==2.0\n")
    assert environments.list_packages("ab12") == ("numpy==2.0",)


def test_a_step_that_needs_root_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    environments = make_environments(tmp_path / "environments")
    image = Image("python:3.11", ("apt-get install -y gcc",))
    review = environments.review_environment(image)
    assert "Python" in review.replaced_by
    assert review.refusal
    with pytest.raises(EngineError) as raised:
        environments.ensure_environment(make_build_request(image))
    assert raised.value.message == review.refusal
    assert not (tmp_path / "environments").exists()


def test_a_build_that_begins_later_is_looked_for_again(tmp_path: Path) -> None:
    environments = make_environments(tmp_path)
    environments.end_unwanted_builds(frozenset())
    request = make_build_request(Image("python:3.11", ("pip install numpy",), digest="ab12"))
    folder = environments.find_folder(request.image.reference)
    make_folder(tmp_path, folder.name)
    environments.ensure_environment(request)
    left = folder.with_suffix(BUILD_SUFFIX)
    left.mkdir()
    environments.end_unwanted_builds(frozenset())
    wait_for("the build to be ended", lambda: not left.exists(), DEADLINE)
