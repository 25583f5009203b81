"""An engine whose disk fills with environments, images of their steps and layers of code: what is in use stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from riseml.base.names import CODE_REPOSITORY, STEP_REPOSITORY
from tests.chaos.dockerd import PrivateEngine, private_engine
from tests.support.disks import mount_ext4, write_filling
from tests.support.rig import GO, Rig
from tests.support.root import need_root

_ENVIRONMENT = "riseml/environment"


@pytest.fixture
def small_engine(engine_url: str) -> Iterator[PrivateEngine]:
    """An engine with the base image, which has 200 MB, on a disk of 600 MiB."""
    need_root("a private engine and a mount need root")
    with (
        TemporaryDirectory(prefix="riseml-disk-") as folder,  # a short path: it has sockets
        mount_ext4(Path(folder), 600) as disk,
        private_engine(disk, engine_url, live_restore=False) as engine,
    ):
        yield engine


def list_images(engine: PrivateEngine) -> dict[str, set[str]]:
    """Return the names of riseml's images by their repositories."""
    with engine.api() as api:
        names = [name.partition(":") for row in api.images() for name in row["RepoTags"] or ()]
    return {
        repository: {tag for found, _, tag in names if found == repository}
        for repository in (_ENVIRONMENT, STEP_REPOSITORY, CODE_REPOSITORY)
    }


def test_an_engine_whose_disk_fills_keeps_what_is_in_use(small_engine: PrivateEngine, tmp_path: Path) -> None:
    code = {"weights": "x" * 2_000_000}
    with Rig(tmp_path / "home", small_engine.url, RISEML_CLEAN_ABOVE="85", RISEML_BUILD_NETWORK="none") as rig:
        rig.submit(write_filling(90), code)
        assert rig.wait_closed("1")["state"] == "FINISHED"
        unused = list_images(small_engine)
        rig.submit(write_filling(60, GO), {"other": "y" * 2_000_000})
        rig.wait_state("2", "RUNNING")
        used = {name: images - unused[name] for name, images in list_images(small_engine).items()}
        assert all(len(images) == 1 for images in [*unused.values(), *used.values()])

        rig.submit(write_filling(110))
        assert rig.wait_closed("3")["state"] == "FINISHED", "room was made, in time or after the engine had refused"
        left = list_images(small_engine)
        assert {name: images & unused[name] for name, images in left.items()} == {name: set() for name in left}
        assert {name: images & used[name] for name, images in left.items()} == used
        (disk, _) = rig.get("/v1/leftovers", caches=True, days=0)["disks"]
        assert (disk["places"], disk["removed"], disk["stuck"]) == (["local"], 3, False)
        assert "the disk of local was above 85 %: 3 removed of what no experiment needs" in read_log(rig)

        rig.submit(write_filling(260))
        failed = rig.wait_closed("4")
        assert failed["state"] == "FAILED"
        assert "the disk of the host is full" in failed["message"] or "its disk was full" in failed["message"]
        told = [line for line in rig.lines("4") if line.startswith("4.build The disk of local was full")]
        assert told, f"{rig.lines('4')} {failed} {rig.last_words()}"
        assert {name: images & used[name] for name, images in list_images(small_engine).items()} == used
        rig.go_file("2").touch()
        assert rig.wait_closed("2")["state"] == "FINISHED"


def read_log(rig: Rig) -> str:
    return (rig.home / "server.log").read_text()
