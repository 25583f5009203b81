"""Outputs that experiments save in a real S3 server: while they run, at their end, and for another attempt."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.data.test_stores import allow, read_lines
from tests.support.command import run_riseml
from tests.support.object_store import KEY, SECRET, ObjectStoreServer, run_object_store
from tests.support.rig import BASE, GO, Rig
from tests.support.secret_search import find_files_with
from tests.support.waiting import DEADLINE

LARGE = 20 << 20  # bytes: several parts
PLACE = "s3://runs/lab"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    """A store with the bucket `runs`."""
    with run_object_store(tmp_path_factory.mktemp("store")) as server:
        server.put("runs", {})
        yield server


def make_config(run: str | list[str], *, to: str = PLACE, retry: int = 0, **save: Any) -> str:
    """Return a riseml.yml whose one job saves its output."""
    section = {"to": to, "every": "1h", **save}
    train = {"image": BASE, "run": run, "save": section, "retry": retry, "resources": {"cpus": 0.1, "mem": "64MiB"}}
    return json.dumps({"project": "toaster", "train": train})


def read_saved(rig: Rig, name: str = "1") -> dict[str, Any]:
    """Return what the server says of a saved output."""
    found: dict[str, Any] = rig.get(f"/v1/experiments/{name}/saved")
    return found


def save_now(rig: Rig, name: str = "1") -> dict[str, Any]:
    """Let the server copy an output, and return what is saved then."""
    assert rig.post(f"/v1/experiments/{name}/save").status_code == 200

    def look() -> dict[str, Any] | None:
        found = read_saved(rig, name)
        return found if found["state"] != "saving" else None

    return rig.wait(f"the output of {name} is copied", look)


def read_objects(store: ObjectStoreServer, place: str) -> dict[str, bytes]:
    """Return what the manifest of an output names, by path, each proven by its checksum."""
    bucket, _, folder = place.removeprefix("s3://").partition("/")
    manifest = json.loads(store.get(bucket, f"{folder}/riseml-saved.json"))
    found = {}
    for one in manifest["files"]:
        data = store.get(bucket, f"{folder}/{one['key']}")
        assert (len(data), hashlib.sha256(data).hexdigest()) == (one["size"], one["sha256"]), one
        found[one["path"]] = data
    return found


def test_an_output_is_saved_while_its_job_runs_and_at_its_end(rig: Rig, store: ObjectStoreServer) -> None:
    allow(rig, store.entry("lab", saves=["s3://runs"]))
    to = f"{PLACE}/{'process' if rig.engine is None else 'docker'}"
    run = [
        "mkdir -p $OUTPUT_DIR/checkpoints/a",
        "echo one >$OUTPUT_DIR/checkpoints/a/model",
        f"head -c {LARGE} /dev/urandom >$OUTPUT_DIR/checkpoints/large",
        "echo no >$OUTPUT_DIR/scratch",
        "echo '{}' >$OUTPUT_DIR/result.json",
        "ln -s /etc/passwd $OUTPUT_DIR/checkpoints/link",
        GO,
        "echo two >$OUTPUT_DIR/checkpoints/a/model",
        "echo new >$OUTPUT_DIR/checkpoints/b",
    ]
    rig.submit(make_config(run, to=to, every="1s", only=["checkpoints/**", "*.json"]))

    def find_whole_copy() -> dict[str, Any] | None:
        """Return what is saved between two copies."""
        found = read_saved(rig)
        return found if len(found["manifest"]) == 3 and found["state"] == "waiting" else None

    objects = read_objects(store, rig.wait("its files are saved", find_whole_copy)["place"])
    assert (objects["checkpoints/a/model"], len(objects["checkpoints/large"])) == (b"one\n", LARGE)
    assert sorted(objects) == ["checkpoints/a/model", "checkpoints/large", "result.json"]
    rig.go_file("1").touch()
    rig.wait_closed("1")
    done = read_saved(rig)
    assert (done["state"], done["trouble"], done["missing"]) == ("saved", "", 0)
    assert done["left_out"] == [{"path": "checkpoints/link", "why": "it is a link, and a store has none"}]
    objects = read_objects(store, done["place"])
    large = objects.pop("checkpoints/large")
    assert objects == {"checkpoints/a/model": b"two\n", "checkpoints/b": b"new\n", "result.json": b"{}\n"}
    shown = {one["path"]: (one["size"], one["sha256"], one["url"]) for one in done["manifest"]}
    assert shown["checkpoints/large"] == (
        LARGE,
        hashlib.sha256(large).hexdigest(),
        f"{to}/{done['place'][len(to) + 1 :]}/checkpoints/large",
    )
    assert rig.experiment("1")["saved"]["files"] == 4
    assert not find_files_with(SECRET, rig.home, "stores.yml"), "no file of the server has the secret"


def test_what_may_not_or_cannot_be_saved_is_one_sentence(process_rig: Rig, store: ObjectStoreServer) -> None:
    rig = process_rig
    wrong = [
        (store.entry("a", saves=["s3://nowhere"]), "s3://nowhere/x", "there is no bucket nowhere"),
        (store.entry("b", saves=["s3://runs/b"], secret_access_key="no"), "s3://runs/b", "the keys of the store b"),
        (store.entry("c", saves=["s3://runs/c"], region="eu-1"), "s3://runs/c", "eu-1 is not its region"),
    ]
    allow(rig, *(entry for entry, _, _ in wrong), store.entry("read", "s3://runs/read"))
    for _, to, _ in wrong:
        rig.submit(make_config("echo x >$OUTPUT_DIR/model", to=to))
    for number, (_, _, sentence) in enumerate(wrong, 1):
        assert rig.wait_closed(str(number))["state"] == "FINISHED", "a store holds up no training"
        found = read_saved(rig, str(number))
        assert (found["state"], "model" in found["missing_paths"]) == ("incomplete", True), found
        assert sentence in found["trouble"], found
        assert SECRET not in json.dumps(found)
    refused = rig.post("/v1/experiments/check", rig.submission(make_config("true", to="s3://runs/read")))
    assert (refused.status_code, "`urls` is for reading" in refused.text) == (403, True)
    allow(rig, store.entry("a", saves=["s3://runs/b"]))
    assert save_now(rig, "2")["state"] == "saved", "what was not saved is saved later"


class EventDecision:
    """A relay to a store, which breaks off after a number of bytes."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._passing: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        self.left: float = float("inf")  # bytes that still pass
        self.port = 0

    def __enter__(self) -> EventDecision:
        self._thread.start()
        assert self._ready.wait(DEADLINE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _connect(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        far_in, far_out = await asyncio.open_connection("127.0.0.1", self._target)
        there = asyncio.ensure_future(self._copy(near_in, far_out, counts=True))
        back = asyncio.ensure_future(self._copy(far_in, near_out, counts=False))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (there, back):
                one.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            for writer in (near_out, far_out):
                writer.transport.abort()
            self._passing.discard(task)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, counts: bool) -> None:
        while data := await source.read(65536):
            if counts:
                self.left -= len(data)
                if self.left < 0:
                    return
            target.write(data)
            await target.drain()


def test_a_store_that_dies_in_the_middle_holds_up_no_job_and_has_all_of_it_later(
    process_rig: Rig, store: ObjectStoreServer
) -> None:
    rig = process_rig
    with EventDecision(int(store.endpoint.rpartition(":")[2])) as gate:
        entry = store.entry("lab", saves=["s3://runs"], endpoint=f"http://127.0.0.1:{gate.port}")
        allow(rig, entry)
        run = [
            f"head -c {LARGE} /dev/urandom >$OUTPUT_DIR/a",
            f"head -c {LARGE} /dev/urandom >$OUTPUT_DIR/b",
            GO,
            "echo end",
        ]
        gate.left = LARGE
        rig.submit(make_config(run, to=f"{PLACE}/gate", every="1s"))
        rig.wait("the store is missed", lambda: read_saved(rig)["trouble"])
        missed = read_saved(rig)
        assert (missed["files"], missed["missing"] > 0) == (0, True), missed
        rig.go_file("1").touch()
        rig.wait_state("1", "FINISHED")
        assert not rig.experiment("1")["closed"], "the end waits for the copy"
        gate.left = float("inf")
        rig.wait_closed("1")
        found = read_saved(rig)
        assert (found["state"], found["trouble"], found["missing"]) == ("saved", "", 0), found
    objects = read_objects(store, found["place"])
    output = Path(rig.experiment("1")["output"])
    assert {name: (output / name).read_bytes() for name in ("a", "b")} == {name: objects[name] for name in ("a", "b")}


def test_a_user_gives_up_the_last_copy_and_takes_it_later(process_rig: Rig, store: ObjectStoreServer) -> None:
    rig = process_rig
    allow(rig, store.entry("lab", saves=["s3://runs"], endpoint="http://127.0.0.1:1"))
    rig.submit(make_config("echo x >$OUTPUT_DIR/model", to=f"{PLACE}/given-up"))
    rig.wait_state("1", "FINISHED")
    rig.wait("the store is missed", lambda: read_saved(rig)["trouble"])
    assert not rig.experiment("1")["closed"]
    assert rig.post("/v1/experiments/1/kill").status_code == 200
    assert rig.wait_closed("1")["state"] == "FINISHED"
    assert read_saved(rig)["state"] == "incomplete"
    allow(rig, store.entry("lab", saves=["s3://runs"]))
    found = save_now(rig)
    assert read_objects(store, found["place"])["model"] == b"x\n"


def save_with_keys_of_the_shell(rig: Rig, store: ObjectStoreServer, keys: dict[str, str]) -> None:
    """Copy the output of an experiment that is closed, whose keys the server has erased."""
    (rig.go_file("1").parent / "later").write_bytes(b"more\n")
    cases: list[tuple[list[str], dict[str, str], int, str]] = [
        ([], keys, 5, "`riseml save ID --pass-keys` copies"),
        (["--pass-keys"], {}, 2, "AWS_ACCESS_KEY_ID is not set"),
        (["--pass-keys"], {**keys, "AWS_SECRET_ACCESS_KEY": "other"}, 5, "the keys of the store mine are wrong"),
        (["--pass-keys"], keys, 0, "later"),
    ]
    for options, shell, code, text in cases:
        done = run_riseml(["save", "1", *options], rig.home, {**rig.environ(), **shell})
        assert (done.returncode, text in done.stdout + done.stderr) == (code, True), done
    assert read_objects(store, read_saved(rig)["place"])["later"] == b"more\n"


def test_keys_that_the_user_passes_on_fetch_and_save(process_rig: Rig, store: ObjectStoreServer) -> None:
    rig = process_rig
    store.put("datasets", {"mnist/labels": b"0 1 2\n"})
    entry = {"name": "mine", "urls": ["s3://datasets"], "saves": ["s3://runs"], "endpoint": store.endpoint}
    allow(rig, {**entry, "passed_keys": True})
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    found: dict[str, Any] = json.loads(make_config("cp $DATA_DIR/x/labels $OUTPUT_DIR/", to=f"{PLACE}/passed"))
    found["train"]["data"] = [{"from": "s3://datasets/mnist", "to": "x"}]
    for env in (["NAME=x"], keys, ["AWS_ACCESS_KEY_ID", f"AWS_SECRET_ACCESS_KEY={SECRET}"]):
        found["train"]["env"] = env
        refused = rig.post("/v1/experiments/check", rig.submission(json.dumps(found), environment=keys))
        assert (refused.status_code, "is not passed on" in refused.text) == (403, True), refused.text
    for values, end in ((keys, "FINISHED"), ({**keys, "AWS_SECRET_ACCESS_KEY": "other"}, "FAILED")):
        found["train"]["env"] = list(keys)
        name = str(rig.submit(json.dumps(found), environment=values)["id"])
        closed = rig.wait_closed(name)
        assert closed["state"] == end, closed
    save_with_keys_of_the_shell(rig, store, keys)
    (build,) = (job["message"] for job in closed["jobs"] if job["name"] == "build")
    assert "the keys of the store mine are wrong" in build
    assert "set AWS_ACCESS_KEY_ID" in build
    assert read_objects(store, read_saved(rig)["place"])["labels"] == b"0 1 2\n"

    rig.wait("no file of the server has the secret", lambda: not find_files_with(SECRET, rig.home, "snapshots"))


RESTORED = [
    'if [ "$RISEML_ATTEMPT" = 1 ]; then mkdir $OUTPUT_DIR/deep; echo saved >$OUTPUT_DIR/deep/model',
    "echo x >$OUTPUT_DIR/x",
    GO,
    "rm -r $OUTPUT_DIR/deep $OUTPUT_DIR/x $OUTPUT_DIR/go; exit 3; fi",
    "cat $OUTPUT_DIR/deep/model $OUTPUT_DIR/x",
]
"""The first attempt loses what it has made, as one does whose host is replaced; the second one finds it again."""


def test_another_attempt_begins_with_what_was_saved(rig: Rig, store: ObjectStoreServer) -> None:
    allow(rig, store.entry("lab", saves=["s3://runs"]))
    to = f"{PLACE}/again-{'process' if rig.engine is None else 'docker'}"
    rig.submit(make_config("\n".join(RESTORED), to=to, retry=1, restore=True))
    rig.wait_state("1", "RUNNING")
    rig.wait("the model is saved", lambda: "deep/model" in {one["path"] for one in save_now(rig)["manifest"]})
    rig.wait("all of it is saved", lambda: "x" in {one["path"] for one in save_now(rig)["manifest"]})
    rig.go_file("1").touch()
    found = rig.wait_closed("1")
    assert found["state"] == "FINISHED", (found, rig.lines("1"))
    assert read_lines(rig, "1") == ["saved", "x"]
    restored = read_saved(rig)["restored"]
    assert (restored["attempt"], restored["files"]) == (2, 2), restored
