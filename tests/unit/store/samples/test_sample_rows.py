"""Samples as rows of a file: what a record can hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from riseml.model import Sample
from riseml.store.samples.sample_rows import make_row, pack_row, unpack_rows
from tests.unit.store.samples.filled_samples import START


def test_odd_values_are_kept_within_what_a_record_holds() -> None:
    huge = Sample(datetime.fromtimestamp(START, UTC), 1e300, 2**80, 0, gpu=float("inf"))
    (row,) = unpack_rows(pack_row(make_row(huge, 10**9)))
    assert row.attempt == 2**16 - 1
    assert row.amounts[0] == pytest.approx(3e38)
    assert row.amounts[2] == 0.0
