"""Which lines tell progress, and which do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.analysis.progress_lines import LINE_FORMS, read_bar, read_line


@pytest.mark.parametrize(
    ("name", "example"), [(form.name, example) for form in LINE_FORMS for example in form.examples]
)
def test_each_form_reads_its_examples(name: str, example: str) -> None:
    assert name in [reading.form for reading in read_line(example)]


@pytest.mark.parametrize(
    ("line", "readings"),
    [
        (" 45%|####5     | 450/1000 [02:13<02:43,  3.40it/s]", [("step", 450, 1000)]),
        ("\x1b[2K\x1b[1mEpoch 2:  10%|#| 10/100 [00:01<?, ?it/s]", [("step", 10, 100)]),
        ("Epoch 3/10:  45%|####| 45/100 [1:02:03<00:01, 33.00it/s]", [("epoch", 3, 10), ("step", 45, 100)]),
        ("Downloading:  10%|#  | 1.20M/12.0M [00:01<00:09, 1.20MB/s]", [("B", 1.2e6, 12e6)]),
        ("450/1000 [====>.........] - ETA: 1s", [("step", 450, 1000)]),
        ("\x1b[1m450/1000\x1b[0m \x1b[32m━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━━\x1b[0m 1s", [("step", 450, 1000)]),
        ("Epoch [3/10], Step [400/2000], Loss: 0.31", [("epoch", 3, 10), ("step", 400, 2000)]),
        ("iteration 1,200/20,000", [("step", 1200, 20000)]),
        ("Epoch 11/10", []),
        ("step 4/0", []),
        ("epoch 3", []),
        ("wrote runs/2026/07/31 of 2 files", []),
        ("450/1000", []),
        ("tests passed: 12/12", []),
        ("accuracy 45%", []),
        ("footstep 4/10", []),
    ],
)
def test_a_line_tells_how_much_is_done_or_nothing(line: str, readings: list[tuple[str, float, float]]) -> None:
    assert [(reading.unit, reading.amount, reading.of) for reading in read_line(line)] == readings


def test_an_open_line_tells_only_bars_that_show_their_own_end() -> None:
    assert read_line("Epoch 3/1", whole=False) == ()
    assert read_line(" 45%|##  | 450/100", whole=False) == ()
    assert len(read_line(" 45%|##  | 450/1000 [00:01<00:01, 1it/s]", whole=False)) == 1


@pytest.mark.parametrize("line", ["step 4/10", "Epoch 3/10", "loss 0.31", "10/20 files", "50% done"])
def test_a_line_without_a_bar_is_no_state_of_a_bar(line: str) -> None:
    assert read_bar(line) is None


@given(text=st.text(st.characters(codec="utf-8"), max_size=2000))
def test_every_reading_is_within_its_whole(text: str) -> None:
    for reading in (*read_line(text), *read_line(text, whole=False)):
        assert reading.of is None or 0 <= reading.amount <= reading.of
