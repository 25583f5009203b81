"""What the server notes of saved outputs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError, RisemlError
from riseml.base.names import HostName
from riseml.base.states import State
from riseml.data_stores.remote import StoreUnavailable
from riseml.data_stores.save_manifest import MANIFEST, read_manifest
from riseml.executors.base import WorkCancelled, ignore_report
from riseml.model import Lineage, Owner, World
from riseml.planning.launch import output_folder
from riseml.server.data.output_saver import OutputSaver
from riseml.spec.config.types import SaveSection
from tests.support.memory_executor import MemoryExecutor
from tests.support.memory_target import MemoryTarget
from tests.unit.control.simulation import START, change_policy, make_experiment, make_plan
from tests.unit.server.data.test_data_fetcher import make_fetcher

RUNNING = make_experiment(1, change_policy(make_plan("master"), save=SaveSection("s3://runs")), state=State.RUNNING)
H1, H2 = HostName("h1"), HostName("h2")
ENDED = replace(RUNNING, state=State.FINISHED)


def test_a_last_copy_that_a_user_gave_up_stays_given_up_when_the_server_starts_again(tmp_path: Path) -> None:
    _, hosts = make_fetcher(tmp_path)
    saver, world = OutputSaver("5e17e4", hosts), World((ENDED,))
    under_way = saver.read_note(ENDED)  # of a copy that ends after the user has given it up
    saver.give_up(RUNNING)
    assert saver.find_saves(world)[1].given_up == 0
    saver.give_up(ENDED)
    saver.notes.write(1, replace(under_way, trouble="the store does not answer"))
    later = OutputSaver("5e17e4", hosts)
    assert (later.find_saves(world)[1].given_up, later.read_note(ENDED).trouble) == (1, "the store does not answer")


def allow_saves(folder: Path, url: str) -> None:
    (folder / "stores.yml").write_text(json.dumps({"stores": [{"name": "lab", "saves": [url]}]}))
    (folder / "stores.yml").chmod(0o600)


class HalfFilled:
    """An experiment whose second attempt is on another host, and a store that goes away while its output is filled."""

    def __init__(self, folder: Path) -> None:
        _, hosts = make_fetcher(folder)
        allow_saves(folder, "s3://runs")
        self.target = MemoryTarget()
        self.saver = OutputSaver("5e17e4", hosts, lambda *_: self.target)
        owner = Owner("paul", os.geteuid(), os.getegid())
        section = SaveSection("s3://runs", restore=True)
        self.first = replace(RUNNING, owner=owner, plan=change_policy(RUNNING.plan, save=section))
        self.second = replace(self.first, jobs=tuple(replace(job, attempt=2) for job in self.first.jobs))
        self.output = folder / "output" / output_folder(self.first)

    def write(self) -> None:
        """Let the first attempt write its output."""
        self.saver.restore_output(self.first, H1, ignore_report)
        self.output.mkdir(parents=True, mode=0o700)
        for name in ("a", "b", "c"):
            (self.output / name).write_text(name)

    def fill_half(self) -> None:
        """Begin to fill the output of the second attempt: its host has nothing of the first one."""

        def refuse(method: str, key: str) -> None:
            if (method, key) == ("read", "b"):
                raise StoreUnavailable("the store answers 503")

        for path in self.output.iterdir():
            path.unlink()
        self.target.before = refuse
        with pytest.raises(StoreUnavailable):
            self.saver.restore_output(self.second, H2, ignore_report)
        self.target.before = lambda *_: None
        assert "b" not in self.list_output()

    def list_output(self) -> list[str]:
        return sorted(path.name for path in self.output.iterdir())

    def list_saved(self) -> list[str]:
        return [file.path for file in read_manifest(self.target.objects[MANIFEST], "s3://runs").files]


def test_an_output_that_is_not_filled_yet_takes_nothing_out_of_the_store(tmp_path: Path) -> None:
    half = HalfFilled(tmp_path)
    half.write()
    half.saver.save_output(half.first, H1, 1)
    half.fill_half()
    half.saver.save_output(half.second, H2, 0)
    assert (half.list_saved(), half.saver.read_note(half.first).last) == (["a", "b", "c"], 1)
    half.saver.restore_output(half.second, H2, ignore_report)
    assert half.list_output() == ["a", "b", "c"]
    (half.output / "d").write_text("d")
    half.saver.save_output(half.second, H2, 2)
    assert half.list_saved() == ["a", "b", "c", "d"]


def test_the_end_of_an_attempt_that_was_not_filled_leaves_the_store_as_it_is(tmp_path: Path) -> None:
    half = HalfFilled(tmp_path)
    half.write()
    half.saver.save_output(half.first, H1, 1)
    half.fill_half()
    half.saver.save_output(half.second, H2, 2)
    note = half.saver.read_note(half.second)
    assert (half.list_saved(), note.last, note.trouble) == (["a", "b", "c"], 2, "")


def test_an_end_that_was_never_copied_is_not_called_saved(tmp_path: Path) -> None:
    half = HalfFilled(tmp_path)
    half.write()
    half.saver.save_output(half.first, H1, 0)
    half.fill_half()
    with pytest.raises(EngineError, match="attempt 2 ended before its output was filled") as raised:
        half.saver.save_output(half.second, H2, 2)
    note = half.saver.read_note(half.second)
    assert (raised.value.permanent, note.last, half.list_saved()) == (True, 0, ["a", "b", "c"])
    assert note.trouble.startswith(raised.value.message)


def test_a_restoration_that_is_cancelled_ends_before_its_next_file(tmp_path: Path) -> None:
    half = HalfFilled(tmp_path)
    half.write()
    half.saver.save_output(half.first, H1, 1)
    half.fill_half()
    there, read = half.list_output(), []

    def cancel(method: str, key: str) -> None:
        read.append((method, key))
        half.saver.cancel_restore(1)

    half.target.before = cancel
    with pytest.raises(WorkCancelled):
        half.saver.restore_output(half.second, H2, ignore_report)
    assert ("read", MANIFEST) in read
    assert not {("read", name) for name in "abc"} & set(read)
    assert half.list_output() == there
    half.saver.save_output(half.second, H2, 2)
    assert half.list_saved() == ["a", "b", "c"]


def test_what_arrived_of_a_closed_experiment_is_forgotten(tmp_path: Path) -> None:
    _, hosts = make_fetcher(tmp_path)
    saver = OutputSaver("5e17e4", hosts)
    saver._moved |= {1: START, 2: START}
    assert saver.find_saves(World((RUNNING,)))[1].moved_at == START
    assert saver._moved == {1: START}


def test_a_server_that_cannot_note_it_says_so(tmp_path: Path) -> None:
    _, hosts = make_fetcher(tmp_path)
    (tmp_path / "saves").write_text("no folder")
    with pytest.raises(RisemlError, match="saves cannot be written: File exists"):
        OutputSaver("5e17e4", hosts).give_up(ENDED)


def test_a_failed_copy_is_noted_with_what_to_do(tmp_path: Path) -> None:
    _, hosts = make_fetcher(tmp_path)
    saver = OutputSaver("5e17e4", hosts)
    with pytest.raises(RisemlError) as raised:
        saver.save_output(ENDED, None, 1)
    assert raised.value.hint
    assert saver.read_note(ENDED).trouble == f"{raised.value.message} ({raised.value.hint})"


def test_a_trial_gets_the_files_of_its_parent_and_the_next_server_knows_it(tmp_path: Path) -> None:
    _, hosts = make_fetcher(tmp_path)
    owner = Owner("paul", os.geteuid(), os.getegid())
    lineage = Lineage(2, parent=3, parent_record=3, inherit=("model/**",))
    base = make_experiment(4, make_plan("master"), owner=owner)
    placed = tuple(replace(job, host=H1) for job in base.jobs)
    child = replace(base, plan=replace(base.plan, lineage=lineage), number=7, sub=4, jobs=placed)
    parent = replace(base, id=3, number=7, sub=3)
    source, target = (tmp_path / "output" / output_folder(one) for one in (parent, child))
    world, saver = World((child,)), OutputSaver("5e17e4", hosts)
    with pytest.raises(EngineError, match=r"7\.3, whose files this trial continues, has no output any more") as error:
        saver.inherit_output(child, parent, H1, ignore_report)
    assert error.value.permanent
    assert saver.find_inherited(world) == frozenset()
    (source / "model").mkdir(parents=True)
    for part in source.relative_to(tmp_path).parents:
        (tmp_path / part).chmod(0o700)
    for name in ("model/weights", "log", "riseml-configuration.yml", ".riseml"):
        (source / name).write_text(name)
    saver.inherit_output(child, parent, H1, ignore_report)
    assert [path.name for path in target.rglob("*")] == ["model", "weights"]
    later = OutputSaver("5e17e4", hosts)
    assert later.find_inherited(world) == frozenset({4})
    elsewhere = replace(child, jobs=tuple(replace(job, host=H2) for job in child.jobs))
    assert later.find_inherited(World((elsewhere,))) == (frozenset({4}) if hosts.shared_output else frozenset())
    first = replace(child, plan=replace(child.plan, lineage=Lineage(1)))
    assert later.find_inherited(World((first,))) == frozenset(), "it has no parent"


def test_a_child_gets_files_of_a_parent_on_another_host_that_shares_nothing(tmp_path: Path) -> None:
    _, hosts = make_fetcher(tmp_path)
    hosts.far = frozenset({H1, H2})
    base = make_experiment(4, make_plan("master"), number=7)
    lineage = Lineage(2, parent=3, parent_record=3)
    jobs = {host: tuple(replace(job, host=host) for job in base.jobs) for host in (H1, H2)}
    parent = replace(base, id=3, sub=3, jobs=jobs[H1])
    child = replace(base, plan=replace(base.plan, lineage=lineage), sub=4, jobs=jobs[H2])
    folders = {H1: tmp_path / "on-h1", H2: tmp_path / "on-h2"}
    for host, experiment in ((H1, parent), (H2, child)):
        folders[host].mkdir()
        executor = hosts.pool.executors[host]
        assert isinstance(executor, MemoryExecutor)
        executor.storages[f"{tmp_path}/output/{output_folder(experiment)}"] = folders[host]
    (folders[H1] / "weights").write_text("of the parent")
    OutputSaver("5e17e4", hosts).inherit_output(child, parent, H2, ignore_report)
    assert {path.name: path.read_text() for path in folders[H2].iterdir()} == {"weights": "of the parent"}
