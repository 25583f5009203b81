"""`riseml server backup` and `restore`: what is in the file, and whose home the restored one is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, Refused, RisemlError, StoreError
from riseml.base.settings import Settings
from riseml.server.home_backup import back_up_home, restore_home
from riseml.server.home_move import move_home
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.journal import ExperimentJournal, LastNumbers
from tests.unit.server.test_home_move import make_settings, start
from tests.unit.store.submissions import submit

FILES = ("logs/1", "capsules/1.json", "snapshots/contents/ab/cd", "variables.key", "pool.yml", "experiments.journal")
OTHERS = ("output/paul/x/1/model.pt", "data/set", "environments/x", "cache/y", "processes/1/train-a1/log", "server.log")


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path / "home")
    start(made)
    for name in (*FILES, *OTHERS):
        path = made.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return made


@pytest.fixture
def backup(home: Settings, tmp_path: Path) -> Path:
    back_up_home(home, tmp_path / "home.tar")
    return tmp_path / "home.tar"


def list_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_backup_has_what_cannot_be_made_again_and_is_private(home: Settings, backup: Path, tmp_path: Path) -> None:
    with tarfile.open(backup) as tar:
        assert set(tar.getnames()) == {"riseml-backup.json", "riseml.db", "server.id", *FILES}
    assert backup.stat().st_mode & 0o777 == 0o600
    restored = make_settings(tmp_path / "restored")
    assert not restore_home(restored, backup).owner
    assert list_files(restored.home) == {"riseml.db", "server.id", *FILES}
    assert (restored.home / "logs/1").read_bytes() == (home.home / "logs/1").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_backup_is_whole_while_the_store_is_written(home: Settings, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home.home / "riseml.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO facts VALUES ('later', 'x')")
        back_up_home(home, tmp_path / "home.tar")
        writer.execute("COMMIT")
    restored = make_settings(tmp_path / "restored")
    restore_home(restored, tmp_path / "home.tar")
    with closing(sqlite3.connect(restored.home / "riseml.db")) as reader:
        assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert reader.execute("SELECT count(*) FROM facts WHERE name = 'later'").fetchone() == (0,)


def test_what_is_restored_in_the_place_of_the_home_is_the_home(home: Settings, backup: Path) -> None:
    shutil.rmtree(home.home)
    assert restore_home(home, backup).owner
    start(home)


def test_the_numbers_of_outputs_that_are_there_are_not_given_again(home: Settings, backup: Path) -> None:
    outputs = [home.output / "paul" / name for name in ("x/7", "y/12", "y/.trash", "z/013")]
    shutil.rmtree(home.home)
    home = replace(home, output=home.home.with_name("outputs"))
    for path in outputs:
        (home.output / path.relative_to(path.parents[2])).mkdir(parents=True)
    restore_home(home, backup)
    last = ExperimentJournal(home.home / "experiments.journal").find_last()
    assert last == LastNumbers(0, {"paul": 12})
    with closing(Database(home.database)) as database:
        store = ExperimentStore(database)
        assert store.skip_numbers(last) is not None
        assert store.skip_numbers(last) is None
        assert (submit(store).number, submit(store).id) == (13, 2)


def test_what_is_restored_elsewhere_is_a_copy_until_it_is_moved(home: Settings, backup: Path, tmp_path: Path) -> None:
    restored = make_settings(tmp_path / "restored")
    assert not restore_home(restored, backup).owner
    with pytest.raises(StoreError, match=f"{restored.home} is a copy: its experiments belong to the home {home.home}"):
        start(restored)
    assert move_home(restored).retired
    start(restored)
    with pytest.raises(StoreError, match="is a copy"):
        start(home)


def _cut(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield from (data[:100], data[: len(data) // 2], b"", b"no tar at all" * 1000)


def test_a_file_that_is_no_whole_backup_makes_no_home(backup: Path, tmp_path: Path) -> None:
    restored = Settings(tmp_path / "restored", tmp_path / "output", tmp_path / "data")
    with pytest.raises(NotFound):
        restore_home(restored, tmp_path / "absent.tar")
    for content in _cut(backup):
        (tmp_path / "cut.tar").write_bytes(content)
        with pytest.raises(Refused):
            restore_home(restored, tmp_path / "cut.tar")
        assert not restored.home.exists()


def test_a_place_that_is_none_is_named_with_what_to_do(home: Settings, backup: Path, tmp_path: Path) -> None:
    restored = Settings(tmp_path / "restored", tmp_path / "output", tmp_path / "data")
    with pytest.raises(Refused, match="is a folder, not a backup"):
        restore_home(restored, tmp_path)
    for name in ("absent/home.tar", "home.tar/x"):
        with pytest.raises(Refused, match="cannot be written") as refused:
            back_up_home(home, tmp_path / name)
        assert refused.value.hint == "name a folder that is there, and in which you may write"
    nowhere = Settings(Path("/proc/nowhere/home"), tmp_path / "output", tmp_path / "data")
    with pytest.raises(Refused, match="/proc/nowhere/home cannot be restored"):
        restore_home(nowhere, backup)


FOREIGN = {
    "a path out of the home": ("../outside", tarfile.REGTYPE, {}),
    "an absolute path": ("/outside", tarfile.REGTYPE, {}),
    "a link": ("x", tarfile.SYMTYPE, {}),
    "a file of a petabyte without content": (
        "logs/9",
        tarfile.REGTYPE,
        {"GNU.sparse.map": f"{1 << 50},0", "GNU.sparse.size": str(1 << 50)},
    ),
    "a path with a NUL": ("x", tarfile.REGTYPE, {"path": "logs/a\0b"}),
    "the record of a process": ("processes/1/train-a1/state.json", tarfile.REGTYPE, {}),
    "the record of a gang": ("slurm/1/state.json", tarfile.REGTYPE, {}),
    "a write-ahead log": ("riseml.db-wal", tarfile.REGTYPE, {}),
}


@pytest.mark.parametrize("entry", FOREIGN)
def test_an_entry_that_no_backup_has_is_refused(backup: Path, tmp_path: Path, entry: str) -> None:
    name, kind, headers = FOREIGN[entry]
    with tarfile.open(backup, "a", format=tarfile.PAX_FORMAT) as tar:
        added = tarfile.TarInfo(name)
        added.type, added.linkname, added.pax_headers = kind, "/etc", headers
        tar.addfile(added)
    restored = Settings(tmp_path / "restored", tmp_path / "output", tmp_path / "data")
    with pytest.raises(Refused, match="has an entry that no backup has"):
        restore_home(restored, backup)
    assert not restored.home.exists()


def test_nothing_is_written_over(home: Settings, backup: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is there already"):
        back_up_home(home, backup)
    with pytest.raises(Refused, match="is in the home itself"):
        back_up_home(home, home.home / "home.tar")
    with pytest.raises(Refused, match="is not empty"):
        restore_home(home, backup)
    with pytest.raises(RisemlError, match="has no store"):
        back_up_home(make_settings(tmp_path / "empty"), tmp_path / "empty.tar")
    os.mkfifo(home.home / "logs" / "pipe")  # and no file is no part of a backup
    (home.home / "logs" / "gone").symlink_to("nowhere")
    back_up_home(home, tmp_path / "second.tar")
