"""Which objects may be removed, and the reason that users read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from riseml.base.record_files import HeldRecord
from riseml.executors.capabilities import InventoryItem, InventoryKind
from riseml.server.data.leftover_judge import CleanRequest, LeftoverJudge
from riseml.store.usage import LastUses

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=2)
SERVER = "a" * 32
USED = LastUses(frozenset({4}), {3: OLD}, {"used": None, "spare": OLD}, {"code": None, "old": OLD})
REQUEST = CleanRequest(caches=True, idle=timedelta(days=1))
JUDGE = LeftoverJudge(SERVER, USED, REQUEST, NOW)
SINCE = "not used since 2026-11-25"


def make_item(kind: InventoryKind, reference: str = "", **fields: object) -> InventoryItem:
    """Return an object that this server made two days ago."""
    item = InventoryItem(kind, reference, reference, SERVER, reference=reference, made_at=OLD)
    return replace(item, **fields)  # type: ignore[arg-type]  # the fields, by name


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (make_item(InventoryKind.CONTAINER, experiment=4), ""),
        (make_item(InventoryKind.CONTAINER, experiment=3), "its experiment has ended, or was never stored"),
        (make_item(InventoryKind.NETWORK), "belongs to no experiment"),
        (make_item(InventoryKind.NETWORK, made_at=NOW), ""),
        (make_item(InventoryKind.ENVIRONMENT, "used"), ""),
        (make_item(InventoryKind.ENVIRONMENT, "spare"), SINCE),
        (make_item(InventoryKind.ENVIRONMENT, "other"), SINCE),
        (make_item(InventoryKind.ENVIRONMENT, "other", server=""), ""),
        (make_item(InventoryKind.CODE, "code"), ""),
        (make_item(InventoryKind.CODE, "old"), SINCE),
        (make_item(InventoryKind.CODE, "other"), "no experiment has used it"),
        (make_item(InventoryKind.CONTAINER, server="b" * 32, experiment=3), ""),
    ],
)
def test_an_object_of_a_host_may_go_when_nothing_needs_it(item: InventoryItem, why: str) -> None:
    assert JUDGE.judge_item(item) == why


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (replace(REQUEST, caches=False), ""),
        (replace(REQUEST, idle=timedelta(days=3)), ""),
        (replace(REQUEST, idle=timedelta(days=2)), SINCE),
    ],
)
def test_a_cache_goes_when_the_user_asks_for_it_and_it_was_idle(request_: CleanRequest, why: str) -> None:
    assert replace(JUDGE, request=request_).judge_item(make_item(InventoryKind.ENVIRONMENT, "spare")) == why


@pytest.mark.parametrize(("running", "why"), [(False, "of server bbbbbbbb"), (True, "of server bbbbbbbb, and it runs")])
def test_objects_of_another_server_go_when_the_user_names_it(*, running: bool, why: str) -> None:
    judge = replace(JUDGE, request=replace(REQUEST, foreign="b" * 8))
    assert judge.judge_item(make_item(InventoryKind.CONTAINER, server="b" * 32, running=running)) == why


@pytest.mark.parametrize(
    ("digest", "used_at", "why"),
    [
        ("code", OLD, ""),
        ("old", OLD, SINCE),
        ("old", NOW, ""),
        ("other", OLD, "no experiment has used it"),
        ("other", NOW - timedelta(minutes=59), ""),
    ],
)
def test_the_files_of_a_project_wait_an_hour_for_their_experiment(digest: str, used_at: datetime, why: str) -> None:
    assert JUDGE.judge_snapshot(digest, used_at) == why


@pytest.mark.parametrize(
    ("experiment", "age", "why"),
    [
        (4, timedelta(days=2), ""),
        (3, timedelta(days=2), SINCE),
        (9, timedelta(days=2), "belongs to no experiment"),
        (9, timedelta(minutes=9), ""),
        (None, timedelta(days=2), "incomplete file"),
    ],
)
def test_a_record_goes_after_its_experiment(experiment: int | None, age: timedelta, why: str) -> None:
    assert JUDGE.judge_record(HeldRecord("x", experiment, 1, (NOW - age).timestamp())) == why
