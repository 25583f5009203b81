"""Files that jobs wrote outside of OUTPUT_DIR: bounds, conflicts, and hosts and disks that fail meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError, Unreachable
from riseml.base.names import HostName, JobName
from riseml.executors.base import NotThere
from riseml.executors.capabilities import Capabilities
from riseml.executors.written_files import Unread, WrittenFile, WrittenRequest
from riseml.model import Capacity, JobKey, Owner
from riseml.planning.launch import output_folder
from riseml.planning.plan import first_jobs
from riseml.server.reconcile import output_collector
from riseml.server.reconcile.output_collector import CollectorParts, OutputCollector, WrittenTally
from riseml.server.written_lines import describe_written
from riseml.spec.config.loader import check_config
from riseml.spec.scalars.output_patterns import parse_output_pattern
from riseml.store.database import Database
from riseml.store.experiments import ExperimentStore
from riseml.store.insertion import NewExperiments
from riseml.store.logs.log_store import LogStore, read_all_lines
from riseml.store.projects.snapshots import SnapshotStore
from riseml.store.written_files import WrittenRecord, WrittenStore
from tests.support.memory_executor import MemoryExecutor
from tests.unit.control.simulation import START, change_policy, make_plan
from tests.unit.server.data.test_data_fetcher import make_fetcher

KEY = JobKey(1, JobName("train"), 1)


class Host(MemoryExecutor):
    """A host on which a job has written these files: names and contents, or what comes instead."""

    def __init__(self, *written: tuple[str, bytes] | WrittenFile | Unread | Exception) -> None:
        super().__init__(HostName("h1"), Capacity(1.0, 1024))
        self.written = written

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, written=self)

    def read_written(self, order: WrittenRequest) -> Iterator[WrittenFile | Unread]:
        for one in self.written:
            if isinstance(one, Exception):
                raise one
            if isinstance(one, tuple):
                path, data = one
                wanted = iter([data]) if order.wants(path) else None
                yield WrittenFile(path, len(data), 2_000_000_000, content=wanted)
            else:
                yield one


class Scene:
    """A collector, and an experiment whose one job has ended."""

    def __init__(self, folder: Path, *outputs: str) -> None:
        _, hosts = make_fetcher(folder)
        self.database = Database(f"sqlite:///{folder}/riseml.db")
        experiments, self.written = ExperimentStore(self.database), WrittenStore(self.database)
        self.logs = LogStore(folder / "logs")
        plan = change_policy(make_plan("train"), outputs=outputs)
        owner = Owner("paul", os.geteuid(), os.getegid())
        order = NewExperiments(owner, "toaster", "project: toaster", "", ((plan, first_jobs(plan)),))
        made = experiments.add_experiments(order, START)[0][0].experiment
        self.key = JobKey(made.id, JobName("train"), 1)
        self.output = folder / "output" / output_folder(made)
        self.output.mkdir(parents=True, mode=0o700)
        desk = CollectorParts(hosts, experiments, SnapshotStore(folder / "snapshots"), self.logs, self.written)
        self.collector = OutputCollector(desk)

    def collect(self, *written: tuple[str, bytes] | WrittenFile | Unread | Exception) -> WrittenRecord | None:
        self.collector.collect(Host(*written), self.key)
        return self.written.load_record(self.key)

    def lines(self) -> list[str]:
        return [line.text.decode() for line in read_all_lines(self.logs, self.key.experiment)]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, "*.pt", "runs")
    yield made
    made.database.close()


def test_the_line_that_keeps_lost_files_is_short_and_right(scene: Scene) -> None:
    many = [(f"{number}.csv", b"1") for number in range(9)]
    found = scene.collect(("a.pt", b"a"), ("logs dir/x", b"1"), ("[odd]/y", b"1"), *many)
    assert found is not None
    assert found.advice == '`outputs: ["*.pt", runs, "logs dir", "[[]odd]", "*.csv"]`'
    assert "11 new files (11 B) were not kept: logs dir/..., [odd]/..., 0.csv, 1.csv, 2.csv, ...; " in scene.lines()[1]
    scene.collect(("a.pt", b"other"))
    assert len(scene.lines()) == 2, "a repeated call says nothing again"
    assert (scene.output / "a.pt").read_bytes() == b"a"


ODD_NAMES = (
    "null",
    "123",
    "1e5",
    "true",
    "No",
    "~",
    "~tilde",
    "-rf",
    "#hash",
    "!bang",
    "&amp",
    "a: b",
    "a b",
    " x ",
    "[x].pt",
    "star*",
    "what?",
    "a$b.txt",
    "{{x}}.csv",
    "out{1,2}.csv",
    "line\nbreak.pt",
    "tab\tname",
    "quote'\".txt",
    "back\\slash",
    "\u00e9.txt",
    "%FF%FE.bin",
    "50%25.csv",
    "%25FF",
    "...",
    "x.",
    "\u2028",
    "\u0085.log",
    "@at",
    "`tick`",
    "%25",
    "a,b",
    "a]b",
    "0x1f",
    "2026-11-27",
    ".5",
)
"""Names of files as `WrittenFile.path` has them."""


@pytest.mark.parametrize("count", [1, 5, 6, len(ODD_NAMES)])
@pytest.mark.parametrize("below", ["", "/a/b.txt"])
def test_the_line_that_is_to_be_added_means_every_lost_file(count: int, below: str) -> None:
    for start in range(0, len(ODD_NAMES), count):
        paths = [f"{name}{below}" for name in ODD_NAMES[start : start + count]]
        tally = output_collector.WrittenTally(("asked.bin",))
        for path in paths:
            tally.note_lost(WrittenFile(path))
        record = tally.make_record()
        line = record.advice.strip("`")
        text = f"project: x\ntrain:\n  image: i\n  run: y\n  {line}\n"
        checked = check_config(text)
        assert checked.spec is not None, (line, checked.problems)
        assert "asked.bin" in checked.spec.train.policy.outputs
        order = WrittenRequest(KEY, tuple(map(parse_output_pattern, checked.spec.train.policy.outputs)))
        assert [path for path in paths if not order.wants(path)] == [], line
        assert all(sentence.isprintable() for sentence in describe_written([record]))


def test_files_that_are_wanted_and_cannot_be_kept_get_no_line_to_add(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_collector, "MOST_KEPT", 1)
    record = scene.collect(("a.pt", b"1"), ("b.pt", b"1"))
    assert record is not None
    assert (record.lost_files, record.lost_names, record.advice) == (1, ("b.pt",), "")


def test_what_riseml_owns_and_what_is_newer_stays(scene: Scene) -> None:
    (scene.output / "a.pt").write_text("newer")
    os.utime(scene.output / "a.pt", (10, 10))
    found = scene.collect(("a.pt", b"older"), ("runs/.riseml-part-0", b"x"), (".riseml/x.pt", b"x"), ("b.pt", b"b"))
    assert found is not None
    assert (found.kept_files, found.lost_files) == (1, 3)
    assert found.trouble == "OUTPUT_DIR has a newer a.pt"
    assert sorted(path.name for path in scene.output.iterdir()) == ["a.pt", "b.pt"]


def test_more_than_the_bounds_is_not_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_collector, "MOST_BYTES", 10)
    monkeypatch.setattr(output_collector, "MOST_KEPT", 2)
    found = scene.collect(("a.pt", b"123456789012"), ("b.pt", b"1"), ("c.pt", b"1"), ("d.pt", b"1"))
    assert found is not None
    assert (found.kept_files, found.lost_files, found.trouble) == (2, 2, "at most 10 B of a job are kept")


def test_a_file_that_ends_early_and_a_link_that_leads_out_are_left_out(scene: Scene) -> None:
    short = WrittenFile("a.pt", 5, 1, content=iter([b"123"]))
    found = scene.collect(short, WrittenFile("b.pt", target="/etc/passwd"), WrittenFile("c.pt", target="a.pt"))
    assert found is not None
    assert found.trouble == "a.pt changed while it was copied"
    assert [path.name for path in scene.output.iterdir()] == ["c.pt"]


@pytest.mark.parametrize("error", [Unreachable("it fails"), EngineError("it fails")])
def test_a_host_or_a_disk_that_fails_is_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Unreachable
) -> None:
    monkeypatch.setattr(output_collector, "_PATIENCE", -1.0)
    monkeypatch.setattr(output_collector, "_LONG_PATIENCE", -1.0)
    for _ in range(5):
        with pytest.raises(Unreachable):
            scene.collect(("a.pt", b"a"), error)
    found = scene.collect(("a.pt", b"a"), error)
    assert found is not None
    assert (found.kept_files, found.trouble) == (1, "it fails")
    assert scene.lines()[-1] == "riseml: not every file could be kept: it fails"


def test_a_host_that_was_away_for_long_still_has_the_files(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_collector, "_LONG_PATIENCE", -1.0)
    with pytest.raises(Unreachable):
        scene.collect(("a.pt", b"a"), Unreachable("away"))
    found = scene.collect(("a.pt", b"a"), ("runs/b", b"b"))
    assert found is not None
    assert (found.kept_files, found.trouble) == (2, "")


@pytest.mark.parametrize("written", [(), (NotThere("gone"),), (Unread("too much"),)])
def test_a_job_without_files_has_no_record(tmp_path: Path, written: tuple[Exception | Unread, ...]) -> None:
    scene = Scene(tmp_path)
    assert scene.collect(*written) is None
    assert scene.lines() == []
    scene.database.close()


def test_the_advised_line_names_the_files_of_the_home_folder_too() -> None:
    tally = WrittenTally(())
    for number in range(9):
        tally.note_lost(WrittenFile(f"{number}.pt", 1))
    for path in ("results/a", "results/b", "log.txt", "a{b}"):
        tally.note_lost(WrittenFile(path, 1, is_in_home=True))
    record = tally.make_record()
    assert (record.lost_files, record.advice) == (13, '`outputs: ["*.pt", "~/results", "~/log.txt"]`')
    line = json.loads(record.advice.strip("`").removeprefix("outputs: "))
    patterns = [parse_output_pattern(text) for text in line]
    assert [pattern.place.name for pattern in patterns] == ["FOLDER", "HOME", "HOME"]
