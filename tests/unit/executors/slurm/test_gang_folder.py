"""The folder of a gang, as the server writes and reads it, and the programs in it, which run on nodes."""

from __future__ import annotations

import ast
import errno
import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.base.names import JobName
from riseml.control.actions import Signal
from riseml.executors.slurm import gang_folder
from riseml.executors.slurm.gang_folder import PROGRAMS, GangFolder, GangFolders, GangKey
from riseml.executors.slurm.gang_records import read_orders, write_record
from riseml.model import JobKey
from tests.support.waiting import DEADLINE, wait_for

MASTER, WORKER = JobName("master"), JobName("worker.1")


def make_gang(root: Path) -> GangFolder:
    """Return the folder of a gang of two roles."""
    folder = GangFolders(root).open_gang(GangKey(4, 2))
    folder.make()
    folder.write_gang({"token": "t"}, {MASTER: {"environment": {"KEY": "secret"}}, WORKER: {}})
    return folder


def test_only_the_user_reads_what_a_role_gets(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    assert stat.S_IMODE((folder.path / "roles" / "master.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_no_group_replaces_what_a_node_runs(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        folder = make_gang(tmp_path / "shared" / "gangs")
        GangFolders(tmp_path / "shared" / "gangs").make_experiment(5)
    finally:
        os.umask(before)
    for one in (*folder.path.parents, *(tmp_path / "shared" / "gangs" / "5" / "machines").parents):
        if one.is_relative_to(tmp_path / "shared"):
            assert stat.S_IMODE(one.stat().st_mode) == 0o700, one


def test_a_gang_is_found_again_and_goes_with_its_last_role(tmp_path: Path) -> None:
    folder, folders = make_gang(tmp_path), GangFolders(tmp_path)
    assert [one.key for one in folders.list_gangs()] == [GangKey(4, 2)]
    assert folders.find_gang(JobKey(4, MASTER, 2)).list_roles() == [MASTER, WORKER]
    folder.remove_role(MASTER)
    assert folder.list_roles() == [WORKER]
    folder.remove_role(WORKER)
    assert not folder.path.exists()
    assert folders.list_experiments() == [4]
    folders.remove_experiment(4)
    assert folders.list_experiments() == []


def test_the_job_that_has_claimed_the_gang_is_the_job_of_the_gang(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    assert folder.find_job() == ""
    assert not folder.mark_submitting()
    assert folder.mark_submitting()
    folder.write_job("12")
    assert folder.find_job() == "12"
    (folder.path / "claim").write_text("13")
    assert folder.find_job() == "13"


def test_orders_are_appended(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    folder.order_stop(MASTER, Signal.TERM)
    folder.order_stop(WORKER, Signal.KILL)
    orders, end = read_orders(str(folder.path), 0)
    assert orders == [{"role": "master", "signal": "TERM"}, {"role": "worker.1", "signal": "KILL"}]
    assert read_orders(str(folder.path), end) == ([], end)


def test_an_order_that_a_full_disk_has_cut_off_spoils_no_other_one(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    with (folder.path / "orders").open("a") as file:
        file.write('{"role": "mas')
    assert read_orders(str(folder.path), 0) == ([], 0)
    folder.order_stop(MASTER, Signal.KILL)
    orders, _ = read_orders(str(folder.path), 0)
    assert orders == [{"role": "master", "signal": "KILL"}]


def test_a_verdict_that_waits_for_room_on_the_disk_shows_that_its_supervisor_lives(tmp_path: Path) -> None:
    claim, blocked = tmp_path / "claim", tmp_path / "verdict.json.new"
    claim.touch()
    os.utime(claim, (1, 1))
    blocked.mkdir()  # the verdict cannot be written, as on a full disk
    writer = threading.Thread(target=write_record, args=(str(tmp_path), "verdict.json", {"done": True}), daemon=True)
    writer.start()
    wait_for("a sign of life", lambda: claim.stat().st_mtime > 1, DEADLINE)
    blocked.rmdir()
    writer.join(DEADLINE)
    assert json.loads((tmp_path / "verdict.json").read_text()) == {"done": True}


def test_a_half_written_record_counts_as_none(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    (folder.path / "state.json").write_text('{"roles": ')
    assert folder.read_state() == {}
    (folder.path / "verdict.json").write_text('{"done": true}')
    assert folder.read_state() == {"done": True}


@pytest.mark.parametrize("problem", [errno.EIO, errno.EMFILE, errno.ESTALE])
def test_a_record_that_cannot_be_read_now_is_not_missing(
    tmp_path: Path, problem: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """riseml would take the running gang for one that has vanished."""

    def refuse(_: Path) -> dict[str, object]:
        raise OSError(problem, os.strerror(problem))

    folder = make_gang(tmp_path)
    monkeypatch.setattr(gang_folder, "read_record", refuse)
    for read in (folder.read_plan, folder.read_state):
        with pytest.raises(EngineError, match="cannot be read"):
            read()


def test_what_a_job_puts_in_the_place_of_a_record_counts_as_none(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    path = folder.path / "state.json"
    for content in ("[1]", "[" * 100_000, "{", "\0"):
        path.write_text(content)
        assert folder.read_state() == {}
    path.unlink()
    os.mkfifo(path)
    assert folder.read_state() == {}
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 33)  # bytes that take no room on the disk
    assert folder.read_state() == {}


def test_the_server_reads_no_value_of_a_node_but_hosts_and_ports(tmp_path: Path) -> None:
    folder = make_gang(tmp_path)
    bad = {"host": "$(id)", "node": "-oProxyCommand=id", "port": 70_000, "door": "8"}
    good = {"host": "fd00::7", "node": "node-3", "port": 7, "door": 8}
    write_record(str(folder.path), "state.json", {"roles": {MASTER: bad, WORKER: good}})
    assert folder.read_state()["roles"] == {MASTER: {}, WORKER: good}


NAMES = [program.stem for program in PROGRAMS]


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_program_is_written_for_python_3_6(program: Path) -> None:
    ast.parse(program.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("name", NAMES)
def test_a_program_on_the_shared_folder_imports_nothing_but_the_standard_library(name: str, tmp_path: Path) -> None:
    folder = GangFolders(tmp_path).open_gang(GangKey(4, 1))
    folder.make()
    folder.write_gang({"token": "t"}, {JobName("train"): {"token": "t"}})
    imported: set[str] = set()
    for node in ast.walk(ast.parse((folder.path / f"{name}.py").read_text())):
        imported |= {part.name for part in node.names} if isinstance(node, ast.Import) else set()
        imported |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert imported - set(NAMES) <= set(sys.stdlib_module_names)
