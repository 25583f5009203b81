"""`riseml self check` in a process of its own: it needs no server, and starts none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import plain_environ, run_riseml

NOTHING = "unix:///nowhere/docker.sock"


@pytest.mark.parametrize(
    ("engine", "executor", "outcome", "code"),
    [(NOTHING, None, "failed", 1), (NOTHING, "process", "note", 0), (NOTHING, "docker", "failed", 1)],
    ids=["an engine that does not answer", "jobs as processes", "jobs in containers"],
)
def test_each_requirement_has_a_line(
    engine: str, executor: str | None, outcome: str, code: int, tmp_path: Path
) -> None:
    chosen = {} if executor is None else {"RISEML_EXECUTOR": executor}
    environ = plain_environ(RISEML_HOME=str(tmp_path / "home"), DOCKER_HOST=engine, **chosen)
    result = run_riseml(["self", "check", "--json"], tmp_path, environ)
    findings = json.loads(result.stdout)["findings"]
    by_topic = {finding["topic"]: finding for finding in findings}
    assert list(by_topic) == ["system", "python", "disk", "clock", "cgroups", "driver", "engine"]
    assert by_topic["engine"]["outcome"] == outcome
    failed = [finding for finding in findings if finding["outcome"] == "failed"]
    assert result.returncode == (1 if failed else 0)
    assert code <= result.returncode, "other requirements of this machine may fail, too"
    assert "`riseml train --executor process`" in by_topic["engine"]["message"]
    assert not (tmp_path / "home").exists()


def test_people_get_a_table(tmp_path: Path) -> None:
    environ = plain_environ(RISEML_HOME=str(tmp_path / "home"), DOCKER_HOST=NOTHING)
    result = run_riseml(["self", "check"], tmp_path, environ)
    assert result.stdout.splitlines()[0].split() == ["CHECK", "OUTCOME", "FOUND"]
    assert " failed." in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("self", "Usage: riseml self"),
        ("self look", "no such command"),
        ("self check gpu1", "unexpected extra argument"),
    ],
)
def test_wrong_words(words: str, said: str, tmp_path: Path) -> None:
    result = run_riseml(words.split(), tmp_path, plain_environ(RISEML_HOME=str(tmp_path / "home")))
    assert said in result.stdout + result.stderr


def test_the_schemas_are_files_of_this_riseml(tmp_path: Path) -> None:
    environ = plain_environ(RISEML_HOME=str(tmp_path / "home"))
    listed = json.loads(run_riseml(["self", "schemas", "--json"], tmp_path, environ).stdout)["schemas"]
    titles = {row["file"]: json.loads(Path(row["schema"]).read_text())["title"] for row in listed}
    assert titles == {"riseml.yml": "riseml.yml", "pool.yml": "pool.yml", "server.yml": "server.yml"}
    assert listed[0]["schema"] in run_riseml(["self", "schemas"], tmp_path, environ).stdout
