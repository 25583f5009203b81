"""The output of several processes in one stream: whole lines, each with the rank of its process."""

from __future__ import annotations

import io
import itertools
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from riseml.job_programs import rank_output
from riseml.job_programs.rank_output import HOLD_TIME, LONGEST_PIECE, CombinedOutput, copy_output
from tests.support.waiting import DEADLINE, wait_for


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (b"x" * 100_000 + b"\n", b"[3] " + b"x" * 100_000 + b"\n"),
        (b"y" * (LONGEST_PIECE + 10), b"[3] " + b"y" * (LONGEST_PIECE + 10) + b"\n"),
        (b"10%\r20%\rdone\r\n\nend", b"[3] 10%\r[3] 20%\r[3] done\r\n[3] \n[3] end\n"),
        (b"", b""),
    ],
)
def test_output_is_split_at_line_ends_and_carriage_returns_alone(tmp_path: Path, said: bytes, wanted: bytes) -> None:
    (tmp_path / "said").write_bytes(said)
    written = io.BytesIO()
    with (tmp_path / "said").open("rb") as source:
        copy_output(source, CombinedOutput(written), 3)
    assert written.getvalue() == wanted


def test_the_beginning_of_a_line_is_not_held_back_forever_and_stays_one_line() -> None:
    written, (told, tell) = io.BytesIO(), os.pipe()
    with os.fdopen(told, "rb") as source, os.fdopen(tell, "wb", buffering=0) as process:
        copy = threading.Thread(target=copy_output, args=(source, output := CombinedOutput(written), 0), daemon=True)
        copy.start()
        process.write(b"Continue? ")
        wait_for("the question", lambda: written.getvalue() == b"[0] Continue? ", DEADLINE)
        process.write(b"yes\n0%")
        wait_for("the count", lambda: written.getvalue().endswith(b"0%"), DEADLINE)
        output.write(b"[1] ", [b"epoch 1\n"])
        process.close()
        copy.join(DEADLINE)
    assert written.getvalue() == b"[0] Continue? yes\n[0] 0%\n[1] epoch 1\n"


def test_output_without_line_ends_is_held_back_from_its_first_byte_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of dots, of which the next one always comes soon."""
    written, dots, clock, shown = io.BytesIO(), iter([b"."] * 20 + [b""]), itertools.count(0.0, HOLD_TIME / 8), []

    def read(*_: int) -> bytes:
        shown.append(len(written.getvalue()))
        return next(dots)

    monkeypatch.setattr(rank_output, "os", SimpleNamespace(read=read))
    monkeypatch.setattr(rank_output, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    always = SimpleNamespace(register=lambda *_: None, poll=lambda _: [(0, 1)])
    monkeypatch.setattr(rank_output, "select", SimpleNamespace(poll=lambda: always, POLLIN=1))
    with open(os.devnull, "rb") as source:
        copy_output(source, CombinedOutput(written), 0)
    assert shown[10]
    assert written.getvalue() == b"[0] " + b"." * 20 + b"\n"
