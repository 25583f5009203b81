"""Lines that are reports of metrics, and what is shown of them."""

from __future__ import annotations

import pytest

from riseml.store.logs.report_lines import split_report
from tests.unit.store.logs.log_frames import REPORT


@pytest.mark.parametrize(
    "text",
    [
        b'riseml.report {"loss": 1}',
        b'riseml.report {"loss":1,"acc" : 2.5e-3 , "step":-4}',
        b'riseml.report { "val/acc@0.5:mean-x.y": NaN, "b": -Infinity, "c": inf, "d": nan }',
        b'riseml.report {"step": 3}',
        'riseml.report {"损失": 1, "精度": 2, "val loss": 3, "1oss": 4}'.encode(),
        b'riseml.report {"\\u635f\\ud83d\\ude42": 1, "a \\"b\\" \\\\c": 2}',
        b'riseml.report {"' + "損".encode() * 64 + b'": 1}',
        b'\x1eriseml.report {"loss": 1}\r',
        b'[12] riseml.report {"loss": 1}',
        b'[12] \x1eriseml.report {"loss": 1}',
        b"riseml.report {" + b", ".join(b'"m%d": 1' % number for number in range(100)) + b"}",
    ],
)
def test_a_report_is_not_shown(text: bytes) -> None:
    shown, report = split_report(text)
    assert shown is None
    assert report == text[text.index(b"riseml") :]


@pytest.mark.parametrize(
    "text",
    [
        b"riseml.report {}",
        b'riseml.report {"loss": 1} ',
        b'riseml.report {"loss": 1}}',
        b'riseml.report {"loss": "1"}',
        b'riseml.report {"loss": 1,}',
        b"riseml.report {loss: 1}",
        b'riseml.report {"loss": true}',
        b'riseml.report {"lo\x1b[31mss": 1}',
        b'riseml.report {"": 1}',
        b'riseml.report {"a\\nb": 1}',
        b'riseml.report {"a\\u000ab": 1}',
        b'riseml.report {"\\ud83d": 1}',
        b'riseml.report {"\xc2\x9b31m": 1}',
        b'riseml.report {"\xe2\x80\xae": 1}',
        b'riseml.report {"\xff": 1}',
        b'riseml.report {"\xc0\x80": 1}',
        b'riseml.report {"st\\u0065p": 1.5}',
        b'riseml.report {"' + "損".encode() * 65 + b'": 1}',
        b'riseml.report {"a" b": 1}',
        b'riseml.report {"' + b"a" * 65 + b'": 1}',
        b'riseml.report {"loss": ' + b"9" * 400 + b"}",
        b'riseml.report {"loss": 0.' + b"9" * 41 + b"}",
        b'riseml.report {"step": 1.5, "loss": 1}',
        b'riseml.report {"step": ' + b"9" * 16 + b', "loss": 1}',
        b'riseml.report {"step": NaN, "loss": 1}',
        b'say riseml.report {"loss": 1}',
        b'[1 ] riseml.report {"loss": 1}',
        b"riseml.report {" + b", ".join(b'"m%d": 1' % number for number in range(102)) + b"}",
        b'riseml.report {"a": 1' + b" " * 100_000,
        b"riseml.report {" * 5_000,
    ],
)
def test_an_invalid_report_stays_a_line(text: bytes) -> None:
    assert split_report(text) == (text, None)


def test_a_report_may_end_a_line() -> None:
    assert split_report(b"\rstep 3 of 10\x1e" + REPORT) == (b"\rstep 3 of 10", REPORT)
