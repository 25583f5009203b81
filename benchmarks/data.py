"""Data from an object store: riseml, obstore alone and other tools fetch many small files and a large one.

The store is OpenStack Swift with its S3 API on this machine. It uses most of both cores, so ratios say more than rates.
A contender that has not fetched everything makes the bench fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import obstore
from obstore.store import S3Store

from benchmarks import peers
from benchmarks.common import (
    BenchContext,
    Measure,
    Report,
    bar_at_most,
    interleave,
    median,
    print_progress,
    select_measures,
)
from benchmarks.engine import BASE
from benchmarks.home import Home, read_cpu_seconds, read_memory, write_project
from benchmarks.machine import make_environ
from tests.support.object_store import KEY, SECRET, ObjectStoreServer, run_object_store

_BUCKET = "bench"
_SMALL = (10_000, 200)  # files, in a smoke test the second number
_SMALL_SIZE = 2_000  # bytes of each
_LARGE = (5_000_000_000, 20_000_000)  # bytes, in a smoke test the second number; S3 accepts 5 GiB in one request
_BLOCK = 8 << 20
_AT_ONCE = 8  # requests at the same time; the AWS CLI keeps its own default, 10
_DEADLINE = 900.0
_MEMORY = 300.0  # MiB
_TIMES = 1.25  # times obstore alone
_EXTRA = 2.0  # seconds for the command and the start of a job
_CAUSE = "riseml computes two checksums of each file, and is timed with its command and the start of a job"
_PEAK = "the server's memory, at its highest"
RISEML = "riseml"
OBSTORE = "obstore alone"
AWS = "aws s3 cp"
RCLONE = "rclone copy"

_ALONE = """
import sys, os, obstore
from concurrent.futures import ThreadPoolExecutor
from obstore.store import S3Store
bucket, prefix, target, size = sys.argv[1], sys.argv[2], sys.argv[3], 8 << 20
store = S3Store(bucket, virtual_hosted_style_request=False, client_options={"allow_http": True})

def fetch(one):
    path = os.path.join(target, one["path"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        for start in range(0, one["size"], size):
            file.write(obstore.get_range(store, one["path"], start=start, end=min(one["size"], start + size)))

with ThreadPoolExecutor(8) as pool:
    list(pool.map(fetch, [one for page in obstore.list(store, prefix) for one in page]))
"""


@dataclass(frozen=True, slots=True)
class _Load:
    """A set of objects that every contender fetches."""

    name: str  # of the measure
    prefix: str  # in the bucket
    files: int
    size: int  # bytes of all files together


@dataclass(slots=True)
class _StoreScene:
    """What the contenders share: the object store and its loads."""

    context: BenchContext
    store: ObjectStoreServer
    loads: tuple[_Load, ...]
    peak: list[float]  # MiB that the riseml server used at its highest, one value for each turn

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of the other tools."""
        remote = {"TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "true", "ENDPOINT": self.store.endpoint}
        environ = {name: value for name, value in make_environ().items() if not name.startswith("AWS_")}
        return {
            **environ,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.store.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "RCLONE_CONFIG": str(self.context.folder / "rclone.conf"),
            **{f"RCLONE_CONFIG_LAB_{name}": value for name, value in remote.items()},
        }


def run(context: BenchContext) -> Report:
    report = Report()
    count = context.rounds(_SMALL[0], _SMALL[1])
    size = context.rounds(_LARGE[0], _LARGE[1])
    loads = (
        _Load(f"{count:,} files of {_SMALL_SIZE:,} bytes", "small", count, count * _SMALL_SIZE),
        _Load(f"one file of {size / 1e9:g} GB", "large", 1, size),
    )
    (context.folder / "store").mkdir()
    with run_object_store(context.folder / "store") as store:
        _fill(store, loads)
        scene = _StoreScene(context, store, loads, [])
        results = interleave(1, _list_contenders(scene, report))
    for load in loads:
        report.add(load.name, *select_measures(results, load.name))
        report.add(f"{load.name}: processor time of the fetching process", *select_measures(results, _name_work(load)))
    report.add(_PEAK, Measure(RISEML, tuple(scene.peak), "MiB"))
    for load in loads:
        riseml_time, alone = (median(results[name][load.name]) for name in (RISEML, OBSTORE))
        requirement = (
            f"{load.name}: at most {_TIMES} x obstore alone, plus {_EXTRA:g} s of the command and the start of a job"
        )
        report.bars.append(bar_at_most(requirement, riseml_time, _TIMES * alone + _EXTRA, "s", _CAUSE))
    report.bars.append(bar_at_most(_PEAK, max(scene.peak), _MEMORY, "MiB"))
    return report


def _name_work(load: _Load) -> str:
    return f"{load.name}: processor"


def _fill(store: ObjectStoreServer, loads: tuple[_Load, ...]) -> None:
    """Put the objects into the store."""
    small, large = loads
    print_progress(f"  filling the store: {small.name}, {large.name}")
    store.put(_BUCKET, {})
    asyncio.run(_fill_small(store, small))
    login = {"X-Storage-User": KEY, "X-Storage-Pass": SECRET}
    with httpx.Client(base_url=store.endpoint, timeout=_DEADLINE) as client:
        token = client.get("/auth/v1.0", headers=login).raise_for_status().headers["X-Auth-Token"]
        headers = {"X-Auth-Token": token, "Content-Length": str(large.size)}
        address = f"/v1/AUTH_test/{_BUCKET}/{large.prefix}/file"
        client.put(address, content=_make_bytes(large.size), headers=headers).raise_for_status()


async def _fill_small(store: ObjectStoreServer, load: _Load) -> None:
    bucket = S3Store(
        _BUCKET,
        endpoint=store.endpoint,
        access_key_id=KEY,
        secret_access_key=SECRET,
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    free = asyncio.Semaphore(_AT_ONCE)

    async def put(number: int) -> None:
        async with free:
            path = f"{load.prefix}/{number % 100}/{number}"
            await obstore.put_async(bucket, path, os.urandom(_SMALL_SIZE))

    await asyncio.gather(*(put(number) for number in range(load.files)))


def _make_bytes(size: int) -> Iterator[bytes]:
    block = os.urandom(_BLOCK)
    for start in range(0, size, _BLOCK):
        yield block[: size - start]


def _list_contenders(scene: _StoreScene, report: Report) -> dict[str, Callable[[int], Mapping[str, float]]]:
    """Return the contenders. A tool that cannot be installed becomes a note in the report."""
    source = f"s3://{_BUCKET}/"
    contenders: dict[str, Callable[[int], Mapping[str, float]]] = {
        RISEML: lambda turn: _fetch_with_riseml(scene, turn),
        OBSTORE: lambda _: _run_tool(
            scene, lambda load, target: [sys.executable, "-c", _ALONE, _BUCKET, load.prefix, target]
        ),
    }
    aws = peers.make_tool("aws", "awscli")
    if aws is None:
        report.notes.append(f"{AWS}: not measured, awscli could not be installed")
    else:
        contenders[AWS] = lambda _: _run_tool(
            scene,
            lambda load, target: [aws, "s3", "cp", "--recursive", "--quiet", f"{source}{load.prefix}/", target],
        )
    if not peers.is_installed("rclone"):
        peers.install_package("rclone")
    if not peers.is_installed("rclone"):
        report.notes.append(f"{RCLONE}: not measured, not installed here")
    else:
        contenders[RCLONE] = lambda _: _run_tool(
            scene,
            lambda load, target: [
                *("rclone", "copy", "--transfers", str(_AT_ONCE), "--checkers", str(_AT_ONCE)),
                *(f"lab:{_BUCKET}/{load.prefix}", target),
            ],
        )
    return contenders


def _fetch_with_riseml(scene: _StoreScene, turn: int) -> dict[str, float]:
    """Measure from the command to the running job, with a server whose cache is empty."""
    times: dict[str, float] = {}
    home = Home(scene.context, f"home-{turn}", RISEML_EXECUTOR="process")
    with home:
        entry = scene.store.entry("lab", f"s3://{_BUCKET}")
        (home.folder / "stores.yml").write_text(json.dumps({"stores": [entry]}))
        (home.folder / "stores.yml").chmod(0o600)
        home.run("status")
        pid = int(home.server()["pid"])
        for load in scene.loads:
            project = write_project(scene.context.folder / load.prefix, _make_train_section(load))
            worked = read_cpu_seconds(pid)
            begun = time.time()
            experiment = home.train(project)
            times[load.name] = _wait_begun(home, experiment) - begun
            times[_name_work(load)] = read_cpu_seconds(pid) - worked
            ended = home.wait_closed(experiment)
            if ended["state"] != "FINISHED":
                raise RuntimeError(f"riseml: the job did not find {load.name}: {ended['reason']} {ended['message']}")
        scene.peak.append(read_memory(pid, "VmHWM"))
    _remove(home.folder)
    return times


def _wait_begun(home: Home, experiment: str) -> float:
    """Return when the client knew that the job ran or had ended, in seconds since 1970: the job is short."""
    with home.client() as client, client.stream("GET", f"/experiments/{experiment}/logs") as answer:
        for line in answer.iter_lines():
            entry = json.loads(line)
            is_job = entry["type"] == "state" and not entry["id"].endswith(".build")
            if is_job and entry["state"] in ("RUNNING", "FINISHED", "FAILED"):
                return time.time()
    raise RuntimeError(f"the log of experiment {experiment} ended before a job ran")


def _make_train_section(load: _Load) -> dict[str, object]:
    """Return the `train` section of a job that fails unless the number of files and their total size are right."""
    look = """find -L "$DATA_DIR/set" -type f -printf '%s\\n' | awk '{n++; s+=$1} END {printf "%d %.0f", n, s}'"""
    return {
        "image": BASE,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "data": [{"from": f"s3://{_BUCKET}/{load.prefix}", "to": "set"}],
        "run": f'test "$({look})" = "{load.files} {load.size}"',
    }


def _run_tool(scene: _StoreScene, make_command: Callable[[_Load, str], list[str]]) -> dict[str, float]:
    """Measure a tool from its start to its end.

    Raises:
        RuntimeError: the tool failed, or did not fetch everything.
    """
    times: dict[str, float] = {}
    target = scene.context.folder / "target"
    for load in scene.loads:
        _remove(target)
        target.mkdir()
        command = make_command(load, str(target))
        worked = _read_children_time()
        begun = time.perf_counter()
        process = subprocess.run(command, env=scene.environ, capture_output=True, timeout=_DEADLINE, check=False)
        times[load.name] = time.perf_counter() - begun
        times[_name_work(load)] = _read_children_time() - worked
        sizes = [path.stat().st_size for path in target.rglob("*") if path.is_file()]
        if process.returncode != 0 or (len(sizes), sum(sizes)) != (load.files, load.size):
            output = (process.stdout + process.stderr).decode(errors="replace")[-1000:]
            raise RuntimeError(
                f"{command[0]}: {len(sizes)} files of {load.name}, exit code {process.returncode}\n{output}"
            )
    _remove(target)
    return times


def _read_children_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _remove(folder: Path) -> None:
    """Remove a folder, including the read-only folders of a data cache."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
