"""Data that a riseml.yml names: fetched from a real S3 server, once, before the jobs get their places."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.object_store import SECRET, ObjectStoreServer, run_object_store
from tests.support.rig import BASE, Rig
from tests.support.secret_search import find_files_with


@functools.cache
def make_images() -> bytes:
    """Return several ranges of bytes. They are made when a test needs them: all workers import this module."""
    return os.urandom(1 << 20) * 20


def find_digest() -> str:
    """Return what `sha256sum` prints of the images."""
    return f"{hashlib.sha256(make_images()).hexdigest()}  -"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    """A store with the bucket `datasets`."""
    with run_object_store(tmp_path_factory.mktemp("store")) as server:
        server.put("datasets", {"mnist/train/images": make_images(), "mnist/labels.txt": b"0 1 2\n", "secret/x": b"x"})
        yield server


def allow(rig: Rig, *entries: dict[str, object]) -> None:
    """Write the stores.yml of a server."""
    path = rig.home / "stores.yml"
    path.write_text(json.dumps({"stores": list(entries)}))
    path.chmod(0o600)


def make_config(run: str | list[str], *data: tuple[str, str], **train: Any) -> str:
    """Return a riseml.yml whose one job reads this data: (address, folder)."""
    rows = [{"from": url, "to": folder} for url, folder in data]
    return json.dumps({"project": "toaster", "train": {"image": BASE, "run": run, "data": rows, **train}})


def read_lines(rig: Rig, name: str) -> list[str]:
    """Return what the job `train` of an experiment has printed."""
    head = f"{name}.train "
    return [line.removeprefix(head) for line in rig.lines(name) if line.startswith(head)]


def test_jobs_share_one_read_only_copy(rig: Rig, store: ObjectStoreServer) -> None:
    allow(rig, store.entry("lab", "s3://datasets/mnist", jobs=True))
    (rig.home / "data" / "mine").mkdir(parents=True)
    (rig.home / "data" / "mine" / "note").write_text("mine\n")
    run = [
        "ls {{data_dir}}",
        "cat {{data_dir}}/mnist/labels.txt {{data_dir}}/own/note",
        "sha256sum <$DATA_DIR/mnist/train/images",
        "echo $AWS_ENDPOINT_URL $AWS_ACCESS_KEY_ID ${#AWS_SECRET_ACCESS_KEY}",
        "awk '$2 ~ /^.data.mnist$/ {print $4}' /proc/mounts | cut -d, -f1",
    ]
    config = make_config(run, ("s3://datasets/mnist", "mnist"), ("data://mine", "own"), store="lab")
    mode = [] if rig.engine is None else ["ro"]
    for number in ("1", "2"):
        rig.submit(config)
        assert rig.wait_closed(number)["state"] == "FINISHED", rig.experiment(number)
        shown = read_lines(rig, number)
        assert shown == [
            "mnist",
            "own",
            "0 1 2",
            "mine",
            find_digest(),
            f"{store.endpoint} test:tester {len(SECRET)}",
            *mode,
        ]
    shown_variables = rig.get("/v1/experiments/1/environment")["jobs"]["train"]
    assert "AWS_SECRET_ACCESS_KEY" in shown_variables["hidden"]
    assert SECRET not in json.dumps(shown_variables)
    (kept,) = (rig.home / "data-cache" / "sets").iterdir()
    assert {path.stat().st_mode & 0o777 for path in (kept / "files").rglob("*")} == {0o555, 0o444}
    assert not find_files_with(SECRET, rig.home, "stores.yml"), "no file of the server has the secret"


def test_what_cannot_be_fetched_is_one_sentence(process_rig: Rig, store: ObjectStoreServer) -> None:
    rig = process_rig
    wrong = {
        "bucket": (store.entry("a", "s3://nowhere"), "s3://nowhere/x", "there is no bucket nowhere"),
        "keys": (
            store.entry("b", "s3://keys", secret_access_key="no"),
            "s3://keys/x",
            "the keys of the store b are wrong",
        ),
        "region": (store.entry("c", "s3://region", region="eu-1"), "s3://region/x", "eu-1 is not its region"),
        "folder": (
            store.entry("d", "s3://datasets"),
            "s3://datasets/nothing",
            "there is nothing at s3://datasets/nothing",
        ),
    }
    allow(rig, *(entry for entry, _, _ in wrong.values()))
    for _, url, _ in wrong.values():
        rig.submit(make_config("echo no", (url, "x")))
    for number, (_, _, sentence) in enumerate(wrong.values(), 1):
        found = rig.wait_closed(str(number))
        assert (found["state"], found["reason"]) == ("FAILED", "DATA_FAILED")
        build = next(job for job in found["jobs"] if job["name"] == "build")
        assert sentence in build["message"], build
        assert SECRET not in json.dumps(found)
    refused = rig.post("/v1/experiments/check", rig.submission(make_config("echo no", ("s3://private/x", "x"))))
    assert (refused.status_code, "no store of its stores.yml allows that" in refused.text) == (403, True)
    keys = rig.post("/v1/experiments/check", rig.submission(make_config("echo no", ("data://x", "x"), store="a")))
    assert (keys.status_code, "does not give the keys of a to jobs" in keys.text) == (403, True)


def test_names_are_kept_as_they_are_or_refused(process_rig: Rig, store: ObjectStoreServer) -> None:
    rig = process_rig
    names = ["with space", "ünï", "n" * 255, "a%20b+c", "-rf"]
    store.put("names", {f"good/{quote(name)}": name.encode() for name in names})
    store.put("names", {quote("bad/line\nbreak"): b"x", f"long/{'n' * 256}": b"x"})
    allow(rig, store.entry("lab", "s3://names"))
    rig.submit(make_config('cd $DATA_DIR/x; for name in *; do cat ./"$name"; echo; done', ("s3://names/good", "x")))
    assert rig.wait_closed("1")["state"] == "FINISHED", rig.experiment("1")
    assert sorted(read_lines(rig, "1")) == sorted(names)
    for number, (folder, name) in enumerate([("bad", "line"), ("long", "nnn")], 2):
        rig.submit(make_config("echo no", (f"s3://names/{folder}", "x")))
        found = rig.wait_closed(str(number))
        build = next(job for job in found["jobs"] if job["name"] == "build")
        assert (found["reason"], "no file can have" in build["message"]) == ("DATA_FAILED", True), build
        assert "\n" not in build["message"], name


@pytest.mark.parametrize("point", ["P31:2", "P32"])
def test_a_server_that_dies_in_a_fetch_leaves_nothing_half(
    tmp_path: Path, store: ObjectStoreServer, point: str
) -> None:
    with Rig(tmp_path / "home", None, RISEML_FAULT=point) as rig:
        allow(rig, store.entry("lab", "s3://datasets"))
        rig.submit(make_config("sha256sum <$DATA_DIR/mnist/train/images", ("s3://datasets/mnist", "mnist")))
        rig.wait("the server died", lambda: rig.process is not None and rig.process.poll() is not None)
        cache = rig.home / "data-cache"
        assert (list(cache.glob("sets/*")), list(cache.glob("uses/*"))) == ([], [])
        rig.environment.clear()
        rig.start()
        assert rig.wait_closed("1")["state"] == "FINISHED"
        assert read_lines(rig, "1") == [find_digest()]
        assert not list(cache.glob("parts/*"))
