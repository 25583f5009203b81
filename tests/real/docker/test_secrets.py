"""The values that `env` passes on are secret. To survive a restart, the server stores them sealed. The jobs have them.
They are nowhere else."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.real.api.test_dry_run import riseml
from tests.real.e2e.console import RISEML
from tests.support.hosts import Engine
from tests.support.rig import Rig, single
from tests.support.secret_search import read_files

pytestmark = pytest.mark.every_engine

CANARY = "canary-8f3a1c-secret"
ENVIRON = {"TOKEN": CANARY, "SAME": CANARY}
WITHOUT_END = ("/v1/changes",)
READS = (
    "status",
    "status -a -l",
    "status 1",
    "logs 1 --no-follow",
    "explain 1",
    "tfconfig 1",
    "env 1",
    "env -f riseml.yml",
    "monitor 1 --once",
    "train --dry-run",
    "pool",
    "system info",
    "validate",
)


def test_jobs_have_a_secret_and_nothing_else_has_it(rig: Rig, tmp_path: Path) -> None:
    begun = time.time()
    config = single(
        'test "$TOKEN" = "$SAME" && echo same; exec sleep 600',
        install=[f"echo {rig.home} # a step of its own"],
        env=["TOKEN", "SAME"],
        stop_grace=1,
    )
    rig.submit(config, environment=ENVIRON)
    rig.submit(single(["/no/such/command"], env=["TOKEN"]), environment=ENVIRON)
    rig.wait("it runs", lambda: "1.train same" in rig.lines("1.train", follow=False))
    for where, text in (*commands(rig, tmp_path, config), *answers(rig, config), *on_the_host(rig)):
        assert CANARY not in text, where
    found = stores(rig)
    assert {name for name, text in found.items() if CANARY in text} == set()
    assert '"TOKEN", "sealed:2:' in found["experiments.environment"], (
        "the first experiment keeps it for its next attempt"
    )
    reference = _image(rig)
    rig.post("/v1/experiments/1/kill")
    for name in ("1", "2"):
        rig.wait_closed(name)
        assert CANARY not in json.dumps([rig.experiment(name), rig.logs(name)])
    found = stores(rig)
    assert {name for name, text in found.items() if CANARY in text} == set(), "it is erased when the experiment closes"
    assert any(name.endswith("riseml-configuration.yml") for name in found), "else it was not looked at"
    for path in rig.home.glob("riseml.db*"):
        assert path.stat().st_mode & 0o077 == 0, path
    if isinstance(rig.host, Engine):
        events = list(rig.host.api.events(since=int(begun), until=int(time.time()), decode=True))
        assert rig.server_id() in str(events), "these are the events of this server"
        assert CANARY not in str(events)
        _assert_image_is_clean(rig.host.api, reference)


def commands(rig: Rig, folder: Path, config: str) -> Iterator[tuple[str, str]]:
    """Yield the output of every command that reads, as text and as JSON, and what `--debug` shows of an error."""
    project = folder / "project"
    project.mkdir()
    (project / "riseml.yml").write_text(config)
    rig.environment.update(ENVIRON)
    for line in READS:
        for words in (line.split(), [*line.split(), "--json"]):
            done = riseml(rig, project, *words)
            assert done.code == 0, (words, done.err)
            yield line, done.out + done.err
    wrong = [*RISEML, "--debug", "train", "--set", "train.resources.cpus=9999"]
    failed = subprocess.run(wrong, env=rig.environ(), cwd=project, capture_output=True, text=True, check=False)
    assert "Traceback" in failed.stderr, failed
    yield "--debug", failed.stdout + failed.stderr


def answers(rig: Rig, config: str) -> Iterator[tuple[str, str]]:
    """Yield the answers to every GET route of the OpenAPI description, and to requests that the server refuses."""
    with rig.client() as client:
        for path, verbs in client.get("/openapi.json").json()["paths"].items():
            if "get" in verbs and "events" not in path:
                params = {"follow": False} if path.endswith("/logs") else {}
                with client.stream("GET", path.replace("{name}", "1"), params=params) as answer:
                    parts = answer.iter_text()
                    yield path, next(parts) if path in WITHOUT_END else "".join(parts)
    right = rig.submission(config, environment=ENVIRON)
    refused = (
        {**right, "environment": {"TOKEN": [CANARY], "SAME": CANARY}},
        {**right, "environment": {"TOKEN": f"{CANARY}\0", "SAME": CANARY}},
        {**right, "environment": {"TOKEN": CANARY}},
        {**right, "config": config.replace("train", "trian")},
        {**right, "snapshot": "0" * 64},
    )
    for body in refused:
        answer = rig.post("/v1/experiments", body)
        assert answer.status_code >= 400, answer.text
        yield "an error", answer.text


def on_the_host(rig: Rig) -> Iterator[tuple[str, str]]:
    """Yield what other users see of the jobs: arguments and labels, without the environment."""
    yield (
        "the list of processes",
        subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout,
    )
    if isinstance(rig.host, Engine):
        found = rig.host.api.inspect_container(rig.host.find(rig.server_id(), "train"))
        assert CANARY in str(found["Config"]["Env"]), "else the search would find nothing anywhere"
        yield "docker inspect", str({**found, "Config": {**found["Config"], "Env": None}})


def stores(rig: Rig) -> dict[str, str]:
    """Return every file in RISEML_HOME, and each table of the store, as text."""
    found: dict[str, str] = {}
    for path, data in read_files(rig.home):
        if path.name not in ("riseml.db", "riseml.db-wal", "riseml.db-shm"):
            found[str(path.relative_to(rig.home))] = data.decode("latin-1")
    with closing(sqlite3.connect(rig.home / "riseml.db")) as store:
        for (table,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = store.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            for index, name in enumerate(names):
                found[f"{table}.{name}"] = "\n".join(str(row[index]) for row in rows)
    return found


def _image(rig: Rig) -> str:
    if not isinstance(rig.host, Engine):
        return ""
    found = rig.host.api.inspect_container(rig.host.find(rig.server_id(), "train"))
    return str(found["Config"]["Image"])


def _assert_image_is_clean(api: docker.APIClient, reference: str) -> None:
    assert CANARY not in json.dumps([api.history(reference), api.inspect_image(reference)])
    saved = io.BytesIO(b"".join(api.get_image(reference)))
    with tarfile.open(fileobj=saved) as image:
        small = [member for member in image if member.isfile() and member.size < 5_000_000]
        assert len(small) > 3
        for member in small:
            layer = image.extractfile(member)
            assert layer is not None
            assert CANARY.encode() not in layer.read(), member.name
    api.remove_image(reference)
