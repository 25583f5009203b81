"""The samples of jobs: three resolutions, unknown amounts, and clocks that go back."""

from __future__ import annotations

from pathlib import Path

from riseml.base.names import JobName
from riseml.store.samples.sample_rows import ALWAYS, SIZE, Span, resample_rows
from riseml.store.samples.sample_store import SampleStore
from tests.unit.store.samples.filled_samples import JOB, KEY, MOST, START, fill, path, sample, times


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


def test_a_clock_that_is_set_back_harms_nothing(store: SampleStore) -> None:
    fill(store, START + 7200, START + 7300, 10)
    fill(store, START, START + 120, 10)
    fill(store, START + 7300, START + 7500, 10)
    store.close_experiment(4)
    assert times(store, Span(START + 7200, START + 7500)) == list(range(START + 7200, START + 7500, 10))


def test_minutes_alone_are_read_with_those_that_are_not_written_yet(store: SampleStore) -> None:
    fill(store, START, START + 210)
    found = store.read_minutes(4, JOB, ALWAYS)
    assert [(row.at - START, row.amounts[0]) for row in found] == [(0, 29.5), (60, 29.5), (120, 29.5), (180, 14.5)]
    assert [row.at - START for row in store.read_minutes(4, JOB, Span(START + 60, START + 180))] == [60, 120]
    store.close_experiment(4)
    assert [row.at for row in store.read_minutes(4, JOB, ALWAYS)] == [row.at for row in found]
    assert store.read_minutes(5, JOB, ALWAYS) == []
