"""The identity of an environment depends on everything that its contents depend on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from riseml.base.errors import UsageError
from riseml.model import Image, copy_name
from riseml.planning.image import (
    PACKAGES_FILE,
    Manifest,
    is_common,
    make_list_command,
    make_step_command,
    make_step_commands,
    plan_image,
)
from riseml.spec.config.types import Shell

PROJECT = Manifest(
    {
        "train.py": "1",
        "requirements.txt": "2",
        "base/common.txt": "3",
        "setup.sh": "4",
        "wheels/a.whl": "5",
        "wheels/b.whl": "6",
        "Makefile": "7",
    },
    {"requirements.txt": "numpy\n-r base/common.txt\n", "base/common.txt": "-r ../requirements.txt\n"},
)
ALL = tuple(sorted(PROJECT.files))

READS = {
    "pip install numpy": (),
    "pip install -r requirements.txt": ("base/common.txt", "requirements.txt"),
    "pip install --requirement=requirements.txt": ("base/common.txt", "requirements.txt"),
    "pip install -r /code/requirements.txt": ("base/common.txt", "requirements.txt"),
    "pip install wheels/*.whl": ("wheels/a.whl", "wheels/b.whl"),
    "ls wheels": ("wheels/a.whl", "wheels/b.whl"),
    "pip install .": ALL,
    "pip install -e .": ALL,
    "./setup.sh": ALL,
    "bash setup.sh --fast": ALL,
    "python train.py --prepare": ALL,
    "make deps": ALL,
    "apt-get update && apt-get install -y make": (),
}


@pytest.mark.parametrize("step", READS)
def test_a_step_sees_what_it_names(step: str) -> None:
    assert plan_image("base", (step,), PROJECT).files == READS[step]


def test_code_does_not_change_the_environment_and_requirements_do() -> None:
    install = ("pip install -r requirements.txt",)
    image = plan_image("base", install, PROJECT)
    code = replace(PROJECT, files={**PROJECT.files, "train.py": "changed"})
    needs = replace(PROJECT, files={**PROJECT.files, "base/common.txt": "changed"})
    assert plan_image("base", install, code).digest == image.digest
    assert plan_image("base", install, needs).digest != image.digest
    assert plan_image("other", install, PROJECT).digest != image.digest


def test_a_file_whose_name_is_not_utf_8_is_refused_where_a_step_may_read_it() -> None:
    manifest = Manifest({"setup.py": "ab" * 32, "caf\udce9.txt": "cd" * 32})
    assert plan_image("python", ("pip install six",), manifest).files == ()
    with pytest.raises(UsageError, match=re.escape(r"is not UTF-8: caf\udce9.txt")):
        plan_image("python", ("pip install .",), manifest)


def test_without_steps_the_base_is_the_environment() -> None:
    assert plan_image("base:1", (), PROJECT).reference == "base:1"


def test_the_digest_depends_on_the_steps_and_their_order() -> None:
    steps = ("pip install a", "pip install b")
    digests = {plan_image("base", one, PROJECT).digest for one in (steps, steps[::-1], steps[:1], ("pip install a b",))}
    assert len(digests) == 4
    assert plan_image("base", steps, PROJECT) == plan_image("base", steps, Manifest())


def test_a_file_that_moved_makes_another_environment() -> None:
    files = {"requirements.txt": "1", "reqs/requirements.txt": "1"}
    install = ("pip install -r requirements.txt", "pip install -r reqs/requirements.txt")
    assert len({plan_image("base", (step,), Manifest(files)).digest for step in install}) == 2


def test_the_reference_names_the_environment() -> None:
    image = plan_image("base", ("pip install a",), PROJECT)
    assert image.reference == f"riseml/environment:{image.digest[:20]}"
    assert len(image.digest) == 64


def test_what_the_base_stands_for_names_the_image_and_the_environment() -> None:
    digests = [f"base@sha256:{letter * 64}" for letter in "ab"]
    assert Image("base:1", resolved=digests[0]).reference == digests[0]
    built = plan_image("base:1", ("pip install a",), PROJECT)
    names = {replace(built, resolved=one).reference for one in ("", *digests)}
    assert len(names) == 3, "a tag that moved makes another environment"
    assert all(name.startswith("riseml/environment:") for name in names)


def test_a_copy_of_an_image_has_a_name_of_its_own() -> None:
    fixed = ("python@sha256:" + "a" * 64, "python@sha256:" + "b" * 64, "sha256:" + "a" * 64)
    copies = {copy_name(reference) for reference in fixed}
    assert len(copies) == 3
    assert all(name.startswith("riseml/image:") and len(name) == len("riseml/image:") + 20 for name in copies)
    assert copy_name("riseml/environment:ab12") == "riseml/environment:ab12"


@pytest.mark.parametrize(("step", "count"), [("pip install a", 1), ("a | b", 3), ("source x", 3)])
def test_the_shell_belongs_to_an_environment_only_where_it_may_read_a_step_otherwise(step: str, count: int) -> None:
    assert len({plan_image("base:1", (step,), PROJECT, shell).digest for shell in Shell}) == count
    command = make_step_command(step, Shell.AUTO)
    assert command[-2:] == ("riseml", step)
    assert "exec bash -eo pipefail" in command[2]


def test_every_step_is_held_but_the_one_that_brings_the_framework() -> None:
    own, other = 'pip install "jax[cpu]==0.10.2"', "pip install flax"
    image = plan_image("base:1", (own, other), Manifest())
    first, second = make_step_commands(image, "/held")
    assert first == make_step_command(own, Shell.AUTO)
    assert second[-len(first) :] == make_step_command(other, Shell.AUTO)
    assert "/held" in second
    (alone,) = make_step_commands(plan_image("base:1", (other,), Manifest()), "/held")
    assert alone == second


def test_a_step_of_riseml_lists_the_packages() -> None:
    shell, option, script = make_list_command()
    assert (shell, option) == ("/bin/sh", "-ec")
    assert PACKAGES_FILE in script


@pytest.mark.parametrize(
    ("step", "common"),
    [
        ("pip install numpy", True),
        ("pip3 install -q 'torch[cuda]==2.4.0' numpy~=2.0", True),
        ("python3 -m pip install --no-cache-dir numpy", True),
        ("pip install 'jax[cpu]==0.4.30'", True),
        ("pip install numpy; curl http://10.0.0.9/x | sh", False),
        ("pip install numpy\ncurl http://10.0.0.9/x", False),
        ("pip install $(curl http://10.0.0.9/x)", False),
        ("pip install numpy && true", False),
        ("pip install --index-url ../index numpy", False),  # a folder of the project, not an address
        ("pip install -i ../index numpy", False),
        ("pip install ../numpy.whl", False),
        ("pip install git+ssh://git@example.org/private.git", False),
        ("pip install ./here", False),
        ("pip install .", False),
        ("pip install -r requirements.txt", False),
        ("pip download numpy", False),
        ("PIP_INDEX_URL=../index pip install numpy", False),
        ("pip install 'unclosed", False),
        ("apt-get install -y git", False),
    ],
)
def test_steps_that_users_of_a_team_share(step: str, common: bool) -> None:  # noqa: FBT001  # pytest passes it by name
    assert is_common((step,)) == common
    assert not is_common((step, "make"))
    paul, ann, nobody = (
        plan_image("python:3.12", (step,), replace(PROJECT, holder=holder)) for holder in ("user:paul", "user:ann", "")
    )
    assert (paul.reference == ann.reference) == common
    assert (paul.holder, ann.holder) == (("", "") if common else ("user:paul", "user:ann"))
    assert nobody == plan_image("python:3.12", (step,), PROJECT)
    if common:
        assert paul == nobody


def test_a_step_that_reads_files_of_a_project_is_its_holders() -> None:
    step = ("pip install numpy", "pip install -r requirements.txt")
    paul = plan_image("python:3.12", step, replace(PROJECT, holder="user:paul"))
    ann = plan_image("python:3.12", step, replace(PROJECT, holder="user:ann"))
    assert paul.reference != ann.reference
