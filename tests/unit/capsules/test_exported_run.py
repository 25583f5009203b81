"""What an export takes from a capsule: names, images and install steps, and nothing that riseml does not write."""

from __future__ import annotations

import re
from typing import Any

import pytest

from riseml.base.errors import UsageError
from riseml.capsules.exported_run import describe_run, write_dockerfiles
from riseml.capsules.shell_files import write_sh
from tests.unit.capsules.exported_runs import run_of
from tests.unit.control.simulation import make_experiment, make_plan
from tests.unit.planning.test_capsule import capsule_of, make


def test_the_install_steps_of_an_export_keep_what_the_image_brought() -> None:
    capsule = capsule_of(make_experiment(4, make_plan("master")))
    environment = capsule["environments"][0]
    environment.update({"packages": None, "image": "python:3.12-slim", "files": []})
    first = 'pip install "jax[cpu]==0.10.2"'
    environment["install"] = [first, "pip install flax"]
    text = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text
    brought, held, kept = (text.index(word) for word in ("jax[cpu]==", "ARG PIP_CONSTRAINT=/tmp/", "install flax"))
    assert brought < held < kept < text.index('RUN ["rm", "-f", "/tmp/.riseml-held.txt"]')
    assert "ENV " not in text, "jobs have no constraints"
    text = dict(write_sh(run_of(capsule)))["install.sh"].text
    assert text.index("jax[cpu]==") < text.index("PIP_CONSTRAINT=$(mktemp") < text.index("install flax")
    assert text.count("PIP_CONSTRAINT=$(mktemp") == 1
    environment["packages"] = ["jax==0.10.2"]
    text = dict(write_sh(run_of(capsule)))["install.sh"].text
    assert text.index('cp packages.txt "$PIP_CONSTRAINT"') < text.index("jax[cpu]==")
    assert text.count("PIP_CONSTRAINT=$(mktemp") == 1
    environment["install"] = []
    text = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text
    assert "CONSTRAINT" not in text
    assert ".riseml-held" not in text


def test_an_image_is_named_by_a_digest_only_where_a_registry_knows_it() -> None:
    capsule = capsule_of(make_experiment(4, make_plan("master")))
    environment = capsule["environments"][0]
    for digest, base in ((f"lab/x@sha256:{'a' * 64}", f"lab/x@sha256:{'a' * 64}"), (f"sha256:{'a' * 64}", "lab/x:1")):
        environment.update({"image": "lab/x:1", "digest": digest})
        text = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text
        assert f"\nFROM {base}\n" in text


def test_a_capsule_with_names_that_riseml_does_not_write_is_refused() -> None:
    for change in ({"hostname": "../../x"}, {"variables": {"A=1; rm": "x"}}):
        capsule = capsule_of(make())
        capsule["jobs"][0]["launch"].update(change)  # type: ignore[typeddict-item]  # by name
        with pytest.raises(UsageError, match="does not write"):
            run_of(capsule)


@pytest.mark.parametrize("end", ["\n", "\r", "\x00", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u2029"], ids=ascii)
@pytest.mark.parametrize("name", ["project", "experiment", "riseml", "image"])
def test_a_capsule_whose_names_have_more_than_one_line_is_refused(name: str, end: str) -> None:
    capsule = capsule_of(make())
    named: Any = capsule["environments"][0] if name == "image" else capsule
    named[name] = f"p{end}---{end}kind:Pod"
    with pytest.raises(UsageError, match="does not write"):
        run_of(capsule)


def test_a_description_is_one_line_whatever_the_capsule_says() -> None:
    run = run_of(capsule_of(make()))
    run.capsule["project"] = "p\n---\x85kind: Pod\u2028#"
    assert describe_run(run).splitlines() == [describe_run(run)]


def test_an_image_of_a_capsule_is_not_a_directive_of_a_dockerfile() -> None:
    capsule = capsule_of(make())
    capsule["environments"][0]["image"] = "syntax=evil.example/frontend:1"
    first = dict(write_dockerfiles(run_of(capsule)))["environment-0.dockerfile"].text.splitlines()[0]
    assert re.match(r"#\s*[A-Za-z][A-Za-z0-9]*\s*=", first) is None, "BuildKit would take it as a directive"


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 10**400])
def test_a_capsule_with_numbers_that_riseml_does_not_write_is_refused(number: float) -> None:
    capsule = capsule_of(make())
    capsule["jobs"][0]["cpus"] = number
    with pytest.raises(UsageError, match="does not write"):
        run_of(capsule)
