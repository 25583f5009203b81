"""Capsules as the server wrote them last: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from riseml.store import capsules
from riseml.store.capsules import CapsuleStore


def read_state(store: CapsuleStore, experiment: int) -> str:
    capsule = store.load_capsule(experiment)
    assert capsule is not None
    return capsule["state"]


def test_the_last_capsule_of_each_experiment_is_loaded(tmp_path: Path) -> None:
    store = CapsuleStore(tmp_path / "capsules")
    assert store.load_capsule(4) is None
    for experiment, text in ((4, '{"state": "RUNNING"}'), (5, '{"state": "KILLED"}'), (4, '{"state": "FINISHED"}')):
        store.save_capsule(experiment, text)
    assert read_state(CapsuleStore(tmp_path / "capsules"), 4) == "FINISHED"
    assert read_state(store, 5) == "KILLED"


def test_a_server_that_dies_while_it_writes_leaves_the_capsule_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_: object) -> None:
        raise KeyboardInterrupt

    store = CapsuleStore(tmp_path)
    store.save_capsule(4, '{"state": "RUNNING"}')
    monkeypatch.setattr(capsules, "reach", die)
    with pytest.raises(KeyboardInterrupt):
        store.save_capsule(4, '{"state": "FINISHED"}')
    assert read_state(store, 4) == "RUNNING"


def test_a_damaged_capsule_is_none(tmp_path: Path) -> None:
    store = CapsuleStore(tmp_path)
    store.save_capsule(4, "{}")
    (name,) = os.listdir(tmp_path)
    (tmp_path / name).write_bytes(b'{"state": "\xff')
    assert store.load_capsule(4) is None
