"""A copy of data that counts as whole is on the disk of its host: it is whole after a power cut.

The disk is a file behind a loop device. A copy of that file is what a machine finds that lost its power at this moment:
what the kernel had in memory alone is not in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import docker
import pytest

from riseml.base.errors import EngineError
from riseml.base.names import FETCHED_VOLUME
from riseml.data_stores.copy_set import Batch, check_copy, pack_batch
from riseml.data_stores.data_cache import FileRow
from riseml.executors.capabilities import DataVolume
from riseml.executors.docker import labels
from riseml.executors.docker.data_volumes import EngineData, sync_volume
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.transports.engine_client import Engine
from riseml.model import Mount
from riseml.spec.pool.types import Volume
from tests.support.rig import BASE
from tests.support.root import need_root
from tests.support.waiting import DEADLINE

pytestmark = pytest.mark.every_engine

SERVER = uuid.uuid4().hex
FILES = {**{f"many/{n}": os.urandom(1000) for n in range(200)}, "large": os.urandom(5 << 20)}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The file behind a disk with an empty file system."""
    need_root("a disk of its own needs root: it is a loop device")
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", path], check=True)
    yield path


@contextmanager
def attach(disk: Path) -> Iterator[str]:
    """Give the loop device of a disk."""
    device = subprocess.run(["losetup", "--find", "--show", disk], check=True, capture_output=True, text=True)
    try:
        yield device.stdout.strip()
    finally:
        subprocess.run(["losetup", "--detach", device.stdout.strip()], check=True)


@contextmanager
def hold_volume(url: str, device: str) -> Iterator[DataVolume]:
    """Give a volume on a device that stays mounted, as the disk of a host does: its end would write it, too."""
    volume = DataVolume(f"{FETCHED_VOLUME}{SERVER[:8]}-{uuid.uuid4().hex[:8]}", "k1")
    own = {labels.SERVER: SERVER, labels.DATA: volume.key}
    with docker.APIClient(base_url=url, version="auto", timeout=DEADLINE) as api, ExitStack() as removal:
        options = {"type": "ext4", "device": device}
        api.create_volume(volume.name, driver="local", driver_opts=options, labels=own)
        removal.callback(api.remove_volume, volume.name)
        config = api.create_host_config(binds=[f"{volume.name}:/held"])
        held = api.create_container(BASE, ["sleep", "600"], host_config=config, labels={labels.SERVER: SERVER})
        removal.callback(api.remove_container, held["Id"], force=True)
        api.start(held["Id"])
        yield volume


def read_after_power_cut(disk: Path) -> dict[str, bytes]:
    """Return the files of the disk as a machine finds them that loses its power now."""
    cut, folder = disk.with_name("cut"), disk.with_name("found")
    shutil.copyfile(disk, cut)
    folder.mkdir()
    subprocess.run(["mount", "-o", "loop", cut, folder], check=True)
    try:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and "lost+found" not in path.parts
        }
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_copy_is_whole_after_a_power_cut(engine_url: str, disk: Path, tmp_path: Path) -> None:
    source = tmp_path / "set"
    for path, content in FILES.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(content)
    rows = [FileRow(path, len(content), 0, sha256(content).hexdigest()) for path, content in FILES.items()]
    helpers = Helpers(Engine(engine_url), SERVER, HelperRegistry())
    data = EngineData(helpers)
    with attach(disk) as device, hold_volume(engine_url, device) as volume:
        data.write_tar(volume, pack_batch(source, Batch(rows, len(rows)), lambda _: None))
        check_copy((piece for piece in data.read_tar(volume)), rows, lambda _: None)
        assert read_after_power_cut(disk) == FILES
        other = Mount(volume.name, "/elsewhere", volume=Volume(volume.name))
        with helpers.engine.api() as api, pytest.raises(EngineError, match="to its disk: No such file or directory"):
            sync_volume(api, helpers, other)
