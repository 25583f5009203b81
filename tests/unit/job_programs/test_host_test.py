"""What the jobs of `system test` measure: products of matrices, memory and folders."""

from __future__ import annotations

import array
from typing import Any

from riseml.job_programs.host_test import count_wrong_rows, make_factors, measure_folder, measure_memory

SIZE = 48


def test_the_product_of_the_matrices_is_known_without_computing_it() -> None:
    left, right = make_factors(SIZE)
    product = array.array(
        "f",
        [
            sum(left[row * SIZE + at] * right[at * SIZE + column] for at in range(SIZE))
            for row in range(SIZE)
            for column in range(SIZE)
        ],
    )
    assert count_wrong_rows(product.tobytes(), SIZE) == 0
    product[5 * SIZE + 7] += 1
    assert count_wrong_rows(product.tobytes(), SIZE) == 1


def test_memory_and_folders_give_back_what_was_written(tmp_path: Any) -> None:
    assert measure_memory(0, 2)[1] == 0
    written, read, right = measure_folder(str(tmp_path), 2)
    assert written > 0
    assert read > 0
    assert right
    assert list(tmp_path.iterdir()) == []
