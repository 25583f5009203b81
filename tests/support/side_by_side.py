"""How pytest-xdist spreads the tests over its workers: tests that share something stay together, long ones go first."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # xdist ships no types

_FIRST = (
    "tests/real/pool/",  # one group, which runs beside everything else
    "tests/real/frameworks/",  # another
    "tests/unit/control/test_laws.py",
    "tests/unit/server/webhooks/test_webhook_loop.py",  # waits, and so do the next two: others compute meanwhile
    "tests/unit/server/api/routes/test_pool_routes.py",
    "tests/unit/job_programs/test_rank_launcher.py",
    "tests/unit/spec/test_fuzz.py",  # the one that computes longest
    "tests/unit/",  # needs no image: runs while `scripts/test` prepares them
    "tests/chaos/",
    "tests/real/slurm/",
    "tests/real/web/",
    "tests/real/api/test_openapi.py",
    "tests/real/data/",
    "tests/real/e2e/",
    "tests/real/store/",
    "tests/real/process/",
    "tests/real/docker/",
)
"""Folders in the order in which their tests start; the others follow. Long tests start first, so that the workers end
at about the same time."""

_TOGETHER = (
    "tests/real/pool/",  # three engines, a bridge and network namespaces of this machine
    "tests/real/frameworks/",  # trainings, which slow each other down until Ray gives up
)
"""Folders whose tests one worker runs, one after the other."""

_FILES_TOGETHER = (
    "tests/unit/",  # many short tests: a file costs less than each of them alone
    "tests/exploits/test_archive_readers.py",  # mutants for the module
    "tests/exploits/test_archives.py",  # a server for the module
    "tests/real/api/test_openapi.py",  # a server for the module
    "tests/real/data/test_saving.py",  # an object store for the module
    "tests/real/data/test_stores.py",  # another
    "tests/real/e2e/test_train.py",  # a home for the module
    "tests/real/e2e/test_trouble.py",
    "tests/real/process/test_jobs.py",  # a virtual environment for the session
    "tests/real/slurm/",  # a cluster of three nodes for the session
    "tests/real/web/",  # a server and a browser for the module
    "tests/real/transports/test_tcp.py",  # an engine with TLS for the session
)
"""Files, or folders of files, whose tests share a fixture: one worker runs all tests of a file."""

_APART = ("tests/unit/control/test_laws.py",)
"""Files whose tests share nothing and are long, although `_FILES_TOGETHER` has their folder."""


_COMPILED = {"horovod_image", "horovod_pytorch_image"}
"""Fixtures with images that take minutes in a cache that is empty."""

PLACES = (*_FIRST, *_TOGETHER, *_FILES_TOGETHER, *_APART)
"""Every folder and file that this module names."""


class GroupedScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives each worker a group of tests at a time; a group is mostly one test."""

    def _split_scope(self, nodeid: str) -> str:
        return choose_group(nodeid)


def choose_group(nodeid: str) -> str:
    """Return the name of the group that a test belongs to: a folder, a file, or the test itself.

    Example:
        choose_group("tests/real/pool/test_loss.py::test_a_short_silence_costs_nothing")  # "tests/real/pool/"
    """
    for folder in _TOGETHER:
        if nodeid.startswith(folder):
            return folder
    if nodeid.startswith(_FILES_TOGETHER) and not nodeid.startswith(_APART):
        return nodeid.partition("::")[0]
    return nodeid


def sort_tests(items: list[pytest.Item]) -> None:
    """Sort the tests into the order in which groups are handed out.

    Within a folder those go last that need an image that is compiled; the order of the others stays.
    """
    items.sort(key=lambda item: (_rank(item.nodeid), _needs_compiled(item)))


def _needs_compiled(item: pytest.Item) -> bool:
    return not _COMPILED.isdisjoint(getattr(item, "fixturenames", ()))


def _rank(nodeid: str) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if nodeid.startswith(start)), len(_FIRST))
