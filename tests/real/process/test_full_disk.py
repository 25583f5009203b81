"""Builds that fill the disk of the server's home: it makes room and tries once more, and a failure says what it is."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.archives import find_digest, pack
from tests.support.disks import mount_disk, write_filling
from tests.support.rig import GO, Rig
from tests.support.root import need_root

ROOM = "The disk of this-machine and riseml's home and the cache of data was full: "
FULL = "No space left on device"


@contextmanager
def open_small_rig(mark: str) -> Iterator[Rig]:
    """Run a server whose home is on a disk of 128 MiB; an empty environment takes 10 of them."""
    need_root("only root mounts a small disk")
    with (
        TemporaryDirectory(prefix="riseml-disk-") as folder,  # a short path: it has a socket
        mount_disk(Path(folder), 128) as disk,
        Rig(disk / "home", None, RISEML_CLEAN_ABOVE=mark) as rig,
    ):
        yield rig


def list_environments(rig: Rig) -> list[str]:
    return [path.parent.name for path in (rig.home / "environments").glob("*/.ready")]


def test_a_build_that_finds_a_full_disk_gets_room_once() -> None:
    with open_small_rig("85") as rig:
        rig.submit(write_filling(25))
        assert rig.wait_closed("1")["state"] == "FINISHED"
        (unused,) = list_environments(rig)
        rig.submit(write_filling(30, GO))
        rig.wait_state("2", "RUNNING")
        (used,) = {*list_environments(rig)} - {unused}
        rig.submit(write_filling(35))
        assert rig.wait_closed("3")["state"] == "FINISHED"
        lines = [line.removeprefix("3.build ") for line in rig.lines("3")]
        room = lines.index(f"{ROOM}the server has removed 1 of what no experiment needs, and tries again")
        assert any(FULL in line for line in lines[:room])
        assert not any(FULL in line for line in lines[room:])
        assert used in list_environments(rig)
        assert unused not in list_environments(rig)
        disks = rig.get("/v1/leftovers", caches=True, days=0)["disks"]
        assert [(disk["removed"], disk["stuck"]) for disk in disks] == [(1, False)]

        rig.submit(write_filling(90))
        failed = rig.wait_closed("4")
        assert failed["state"] == "FAILED"
        assert "install step 1 failed with exit code 1" in failed["message"]
        assert [line for line in rig.lines("4") if line.startswith(f"4.build {ROOM}")] != []
        assert list_environments(rig) == [used]
        assert list((rig.home / "environments").glob("*.build")) == []

        rig.go_file("2").touch()
        assert rig.wait_closed("2")["state"] == "FINISHED"

        archive = pack({"riseml.yml": "project: large", "weights": secrets.token_hex(29_000_000)})
        with rig.client() as client:
            answers = [client.put(f"/v1/snapshots/{find_digest(archive)}", content=archive) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [503, 201], answers[0].text
        assert "the server has removed 1 of what no experiment needs: run the command again" in answers[0].text


def test_a_build_on_a_full_disk_from_which_nothing_may_go_fails_with_its_own_words() -> None:
    with open_small_rig("false") as rig:
        rig.submit(write_filling(120))
        failed = rig.wait_closed("1")
        assert failed["state"] == "FAILED"
        assert "install step 1 failed with exit code 1" in failed["message"]
        lines = rig.lines("1")
        assert any(FULL in line or "the disk was full" in line for line in lines)
        assert sum("Making a virtual environment" in line for line in lines) == 1, "it is not tried again"
