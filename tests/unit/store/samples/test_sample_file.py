"""The file of one job: its bounds, torn records, other formats, and kills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.store.samples.sample_rows import SIZE, Span
from riseml.store.samples.sample_store import SampleStore
from tests.unit.store.samples.filled_samples import HEADER, JOB, KEY, MOST, START, fill, path, sample, times


def test_minutes_are_kept_for_good_and_the_rest_has_a_bound(store: SampleStore, tmp_path: Path) -> None:
    days = 2
    fill(store, START, START + days * 86400, 10)
    store.close_experiment(4)
    assert path(tmp_path).stat().st_size == MOST + days * 1440 * SIZE
    first = store.read_rows(4, JOB, Span(START, START + 3600))
    assert [row.at for row in first] == list(range(START, START + 3600, 60))
    assert {row.amounts[0] for row in first} == {25.0}
    last_day = times(store, Span(START + (days - 1) * 86400, START + days * 86400))
    assert last_day == list(range(START + (days - 1) * 86400, START + days * 86400, 10))


def test_a_file_takes_little_room_for_a_short_job(store: SampleStore, tmp_path: Path) -> None:
    fill(store, START, START + 60)
    store.close_experiment(4)
    assert path(tmp_path).stat().st_blocks * 512 < 64 * 2**10


def test_a_server_that_was_killed_has_lost_nothing(store: SampleStore, tmp_path: Path) -> None:
    fill(store, START, START + 95)
    again = SampleStore(tmp_path / "samples")  # nothing was closed
    assert times(again) == list(range(START, START + 95))
    for at in range(START + 100, START + 130):
        again.add_sample(KEY, sample(at))
    again.close_experiment(4)
    again.close_experiment(4)
    assert times(again) == [*range(START, START + 95), *range(START + 100, START + 130)]
    assert path(tmp_path).stat().st_size == MOST + 3 * SIZE  # three minutes, each once


@given(cut=st.integers(1, SIZE - 1), damage=st.integers(0, SIZE - 1))
@settings(max_examples=50, deadline=None)
def test_a_torn_record_is_as_if_it_had_not_been_written(
    tmp_path_factory: pytest.TempPathFactory, cut: int, damage: int
) -> None:
    where = tmp_path_factory.mktemp("torn")
    store = SampleStore(where / "samples")
    fill(store, START, START + 150, 10)
    file = os.open(path(where), os.O_RDWR)
    os.ftruncate(file, MOST + 2 * SIZE - cut)  # the second minute is cut
    place = HEADER + (START + 140) % 3600 * SIZE + damage
    os.pwrite(file, bytes([os.pread(file, 1, place)[0] ^ 0xFF]), place)
    os.close(file)
    again = SampleStore(where / "samples")
    assert times(again) == list(range(START, START + 140, 10))
    for at in range(START + 180, START + 250, 10):
        again.add_sample(KEY, sample(at))
    assert path(where).stat().st_size % SIZE == MOST % SIZE


def test_a_file_in_another_format_is_not_read_and_is_replaced(store: SampleStore, tmp_path: Path) -> None:
    fill(store, START, START + 5)
    path(tmp_path).write_bytes(b"something else" * 1000)
    assert times(store) == []
    SampleStore(tmp_path / "samples").add_sample(KEY, sample(START))
    assert times(store) == [START]


def test_a_link_in_the_place_of_a_file_is_refused(store: SampleStore, tmp_path: Path) -> None:
    fill(store, START, START + 1)
    path(tmp_path).rename(tmp_path / "elsewhere")
    path(tmp_path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        store.add_sample(KEY, sample(START + 1))
