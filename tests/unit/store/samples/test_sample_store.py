"""The samples of a job in a file: three resolutions, bounds, torn records, clocks that go back, and kills."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.base.names import JobName
from riseml.model import JobKey, Sample, Traffic
from riseml.store.samples.sample_rows import ALWAYS, SIZE, Span, make_row, pack_row, resample_rows, unpack_rows
from riseml.store.samples.sample_store import SampleStore

JOB = JobName("worker.1")
KEY = JobKey(4, JOB, 1)
START = 1_788_000_000  # a full hour
HEADER = 16  # bytes
MOST = HEADER + (3600 + 8640) * SIZE  # bytes without minutes


def sample(at: float, cpu: float = 50.0) -> Sample:
    """Return a sample of one moment."""
    return Sample(datetime.fromtimestamp(at, UTC), cpu, 2**30, 2**34, traffic=Traffic(disk_read=7.0))


def fill(store: SampleStore, start: int, stop: int, step: int = 1) -> None:
    """Add a sample for each step; its CPU is the number of the second in its minute."""
    for at in range(start, stop, step):
        store.add_sample(KEY, sample(at, at % 60))


@pytest.fixture
def store(tmp_path: Path) -> SampleStore:
    return SampleStore(tmp_path / "samples")


def path(tmp_path: Path) -> Path:
    return tmp_path / "samples/4/worker.1.samples"


def times(store: SampleStore, span: Span = ALWAYS) -> list[int]:
    return [row.at for row in store.read_rows(4, JOB, span)]


def test_what_was_kept_is_read_and_what_a_host_does_not_tell_is_nan(store: SampleStore, tmp_path: Path) -> None:
    store.add_sample(KEY, sample(START + 0.9, 37.5))
    (row,) = store.read_rows(4, JOB, ALWAYS)
    assert (row.at, row.attempt) == (START, 1)
    assert [repr(value) for value in row.amounts[:4]] == ["37.5", "1073741824.0", "17179869184.0", "nan"]
    assert row.amounts[8] == 7.0
    assert store.read_rows(4, JobName("ps.1"), ALWAYS) == store.read_rows(5, JOB, ALWAYS) == []
    assert path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_older_samples_become_means_of_ten_seconds_and_of_minutes(store: SampleStore, tmp_path: Path) -> None:
    fill(store, START, START + 5400)
    found = store.read_rows(4, JOB, ALWAYS)
    fine = [row for row in found if row.at >= START + 1800]
    assert [row.at for row in fine] == list(range(START + 1800, START + 5400))
    tens = [row for row in found if row.at < START + 1800]
    assert [row.at for row in tens] == list(range(START, START + 1800, 10))
    assert {row.amounts[0] for row in tens} == {4.5, 14.5, 24.5, 34.5, 44.5, 54.5}
    assert path(tmp_path).stat().st_size == MOST + 89 * SIZE
    means = list(resample_rows(store.read_rows(4, JOB, Span(START + 600, START + 720)), START, 60))
    assert [(row.at - START, row.amounts[0]) for row in means] == [(600, 29.5), (660, 29.5)]


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


def test_a_clock_that_is_set_back_harms_nothing(store: SampleStore) -> None:
    fill(store, START + 7200, START + 7300, 10)
    fill(store, START, START + 120, 10)
    fill(store, START + 7300, START + 7500, 10)
    store.close_experiment(4)
    assert times(store, Span(START + 7200, START + 7500)) == list(range(START + 7200, START + 7500, 10))


def test_odd_values_are_kept_within_what_a_record_holds() -> None:
    huge = Sample(datetime.fromtimestamp(START, UTC), 1e300, 2**80, 0, gpu=float("inf"))
    (row,) = unpack_rows(pack_row(make_row(huge, 10**9)))
    assert row.attempt == 2**16 - 1
    assert row.amounts[0] == pytest.approx(3e38)
    assert row.amounts[2] == 0.0


def test_minutes_alone_are_read_with_those_that_are_not_written_yet(store: SampleStore) -> None:
    fill(store, START, START + 210)
    found = store.read_minutes(4, JOB, ALWAYS)
    assert [(row.at - START, row.amounts[0]) for row in found] == [(0, 29.5), (60, 29.5), (120, 29.5), (180, 14.5)]
    assert [row.at - START for row in store.read_minutes(4, JOB, Span(START + 60, START + 180))] == [60, 120]
    store.close_experiment(4)
    assert [row.at for row in store.read_minutes(4, JOB, ALWAYS)] == [row.at for row in found]
    assert store.read_minutes(5, JOB, ALWAYS) == []
