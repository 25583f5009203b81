"""Levels of lines, as programs really write them."""

from __future__ import annotations

import pytest

from riseml.store.logs.levels import LogLevel, has_level

LINES = {
    b"2026-08-31 07:23:46,120 - root - ERROR - it broke": "error",
    b"\x1b[31mERROR\x1b[0m: no space": "error",
    b"CRITICAL:root:gone": "error",
    b"E0831 07:23:46.120000  1 cuda.cc:4] no device": "error",
    b"2026-08-31 07:23:46.120943: E external/xla/cuda.cc:152] failed": "error",
    b"Traceback (most recent call last):": "error",
    b"ValueError: bad shape": "error",
    b"torch.cuda.OutOfMemoryError: CUDA out of memory": "error",
    b'{"level": "error", "msg": "x"}': "error",
    b"time=1 level=fatal msg=x": "error",
    b"[rank0]:[W831 07:23:46 ProcessGroup.cpp:1] WARNING: slow": "warning",
    b"WARNING:tensorflow:deprecated": "warning",
    b"/lib/x.py:3: UserWarning: use another": "warning",
    b"W0831 07:23:46.120000  1 x.cc:4] slow": "warning",
    b"INFO:root:begin": "info",
    b"2026-08-31 07:23:46.120943: I tensorflow/core/x.cc:1] oneDNN": "info",
    b"epoch 3 loss 0.2": "",
    b"Mean Absolute Error: 0.3": "",
    b"validation_ERROR=0.3 error 0.1, 0 errors": "",
    b"DEBUG:root:x": "",
    b'  File "train.py", line 3, in <module>': "",
}


@pytest.mark.parametrize(("line", "level"), LINES.items())
def test_the_level_of_a_line(line: bytes, level: str) -> None:
    order = ["error", "warning", "info"]
    expected = order[order.index(level) :] if level else []
    assert [one.value for one in LogLevel if has_level(line, one)] == expected


@pytest.mark.parametrize("level", LogLevel)
def test_only_the_beginning_of_a_long_line_counts(level: LogLevel) -> None:
    assert has_level(b"ERROR " + b"x" * 10_000_000, level)
    assert not has_level(b"level " * 1_000_000 + b" ERROR", level)
