"""Fixtures of all tests: a real engine, PostgreSQL, and servers. Marks say which tests need an engine or PostgreSQL."""

from __future__ import annotations

import functools
import gc
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import docker
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings

from riseml.executors.process.watch import JobWatch
from riseml.executors.supervision.start import SupervisorStarter
from tests import CLEAN_ABOVE
from tests.support.rig import KeptRigs, Rig
from tests.support.side_by_side import GroupedScheduling, sort_tests
from tests.support.stores import open_database, start_postgres
from tests.support.waiting import DEADLINE

IMAGES = Path(__file__).parents[1] / "scripts" / "engine" / "images"
_MORE_IMAGES = (
    "tests/real/docker/test_tensorflow_reads_it.py",
    "tests/real/e2e/",
    "tests/real/frameworks/",
    "tests/real/pool/",
    "tests/real/streams/",
    "tests/real/web/test_board.py",
)
"""Folders and files whose tests use images with frameworks; the others use the small one alone."""

_FIXTURES_AND_MARKS = (("engine_url", pytest.mark.engine), ("postgres", pytest.mark.postgres))
_SLOW = [HealthCheck.too_slow]  # a machine that is busy with something else is no fault of a test
settings.register_profile("same-every-time", derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("few", settings.get_profile("same-every-time"), max_examples=20)
settings.register_profile("soak", database=None, deadline=None, suppress_health_check=_SLOW)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; commands are to hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same-every-time"))


def pytest_collection() -> None:
    """Collect without the garbage collector: it would go through a growing heap again and again, and find nothing."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Turn the garbage collector on again, which from now on leaves out what the modules of the tests hold."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests whose fixtures start or reach something real, so that `make unit` leaves them out.

    A parameter for which a fixture calls `getfixturevalue` carries its mark itself.
    """
    for item in items:
        for fixture, mark in _FIXTURES_AND_MARKS:
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
    sort_tests(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupedScheduling:
    """Choose how tests are spread when several run at once; pytest 9.2 ignores the groups of `--dist loadgroup`."""
    config.option.loadscopereorder = False  # the order is that of `sort_tests`
    return GroupedScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Provide the images of a test before its first fixture. In a new cache that takes minutes, in which tests that use
    the small image run already.
    """
    if item.get_closest_marker("engine") and item.nodeid.startswith(_MORE_IMAGES):
        provide_images("plain")


@functools.cache
def provide_images(name: str) -> None:
    """Provide an image or all of a kind, unless RISEML_TEST_IMAGES names others; wait while another process does so."""
    subprocess.run([IMAGES, *([] if os.environ.get("RISEML_TEST_IMAGES") else [name])], check=True)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of the person who runs it; the engine is named by `scripts/test`."""
    for name in [name for name in os.environ if name.startswith("RISEML_") and not name.startswith("RISEML_TEST_")]:
        if name != CLEAN_ABOVE:
            monkeypatch.delenv(name)


Closed = TypeVar("Closed", JobWatch, SupervisorStarter)


@pytest.fixture(autouse=True)
def close_executors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every watch of jobs and every starter of supervisors that a test opens in its own process: a user has 128
    inotify instances, which the engines of the tests need, too; and a starter has a process.
    """
    opened: list[JobWatch | SupervisorStarter] = []

    def note_opened(kind: type[Closed]) -> None:
        initialize = kind.__init__

        def initialize_and_note(each: Closed) -> None:
            initialize(each)
            opened.append(each)

        monkeypatch.setattr(kind, "__init__", initialize_and_note)

    note_opened(JobWatch)
    note_opened(SupervisorStarter)
    yield
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def engine_url() -> str:
    """The address of the engine that the tests use. It has the small image, or those of RISEML_TEST_IMAGES. Before a
    test of `_MORE_IMAGES` it gets all that are not compiled.

    Raises:
        OSError: no engine listens: `make test` starts one.
        docker.errors.DockerException: the engine does not answer.
    """
    url = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:  # first: the SDK leaks its socket when no engine listens
            door.connect(url.removeprefix("unix://"))
    with docker.APIClient(base_url=url, version="auto", timeout=DEADLINE) as api:
        api.ping()
    provide_images("base")
    return url


@pytest.fixture(scope="session")
def busybox_image(engine_url: str) -> str:
    """An image with the programs of busybox and Python, and no other."""
    subprocess.run([IMAGES, "busybox"], check=True)
    return "riseml-test/busybox:py311"


@pytest.fixture(scope="session")
def horovod_image(engine_url: str) -> str:
    """An image with Horovod and TensorFlow 2.15, which was compiled."""
    subprocess.run([IMAGES, "horovod"], check=True)
    return "riseml-test/horovod:0.28.1"


@pytest.fixture(scope="session")
def horovod_pytorch_image(engine_url: str) -> str:
    """An image with Horovod and PyTorch, which was compiled."""
    subprocess.run([IMAGES, "horovod-pytorch"], check=True)
    return "riseml-test/horovod-pytorch:0.28.1"


@pytest.fixture(scope="session")
def postgres() -> sa.Engine:
    """The tests' PostgreSQL, which is started when it does not run."""
    return sa.create_engine(start_postgres(), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


@pytest.fixture
def postgres_store(postgres: sa.Engine) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    with open_database(postgres) as address:
        yield address


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.engine), "process"])
def host(request: pytest.FixtureRequest) -> str | None:
    """Each executor in its turn: the address of an engine, or None for processes."""
    return None if request.param == "process" else str(request.getfixturevalue("engine_url"))


@pytest.fixture
def rig(tmp_path: Path, host: str | None) -> Iterator[Rig]:
    """A server with a home of its own on a real host; afterwards nothing of it may be left."""
    yield from _run(Rig(tmp_path / "home", host))


@pytest.fixture(scope="session")
def shared_environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with virtual environments that the servers of all workers share, by a link in the place of their own:
    to install PyTorch takes half a minute of processor time.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "environments"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def kept_rigs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptRigs]:
    """The servers that `shared_rig` hands out in this process."""
    kept = KeptRigs(tmp_path_factory)
    yield kept
    kept.close()


@pytest.fixture
def shared_rig(kept_rigs: KeptRigs, host: str | None) -> Iterator[Rig]:
    """A server on each executor in its turn, which tests use one after the other.

    A test names its experiments by the ids that it got. If it leaves anything on the host, its server ends with it.
    """
    yield kept_rigs.take(host)
    kept_rigs.give_back(host)


@pytest.fixture
def shared_docker_rig(kept_rigs: KeptRigs, engine_url: str) -> Iterator[Rig]:
    """The same on the engine alone, for what only containers have."""
    yield kept_rigs.take(engine_url)
    kept_rigs.give_back(engine_url)


@pytest.fixture
def docker_rig(tmp_path: Path, engine_url: str) -> Iterator[Rig]:
    """A server with a home of its own on the engine, for what only containers have."""
    yield from _run(Rig(tmp_path / "home", engine_url))


@pytest.fixture
def process_rig(tmp_path: Path) -> Iterator[Rig]:
    """The same without Docker."""
    yield from _run(Rig(tmp_path / "home", None))


@pytest.fixture
def make_rig(tmp_path: Path, host: str | None) -> Iterator[Callable[..., Rig]]:
    """Several servers, each with a home of its own."""
    made: list[Rig] = []

    def make(name: str, **environment: str) -> Rig:
        rig = Rig(tmp_path / name, host, **environment)
        made.append(rig)
        return rig

    yield make
    for rig in made:
        rig.clean_up()
        rig.__exit__()


def _run(rig: Rig) -> Iterator[Rig]:
    with rig:
        yield rig
        rig.clean_up()
