"""Pictures, sound, tables and texts that a job reports: the files that they become, and what is left out in words."""

from __future__ import annotations

import json
import struct
import wave
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import riseml
from riseml.files.media_files import read_media_path
from riseml.job_programs import media_reports
from tests.unit.job_programs.test_reports import INSIDE, run


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder OUTPUT_DIR of a job that this process takes itself for."""
    monkeypatch.setenv("RISEML_JOB", "train")
    monkeypatch.setenv("OUTPUT_DIR", str(tmp_path))
    monkeypatch.setattr(media_reports, "_printed_problems", set())
    return tmp_path


def read_png(path: Path) -> tuple[int, int, int, bytes]:
    """Return width, height, kind of colour and the bytes of all pixels of a PNG file without filters."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        chunks[kind] = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + chunks[kind])
        at += size + 12
    width, height, _, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    lines = zlib.decompress(chunks[b"IDAT"])
    line = len(lines) // height
    assert all(lines[at * line] == 0 for at in range(height))
    return width, height, colour, b"".join(lines[at * line + 1 : (at + 1) * line] for at in range(height))


GREY = bytes((0, 255, 51, 102, 153, 204))  # 3 x 2 pixels
RED = bytes((255, 0, 0)) * 6


class Tensor:
    """What PyTorch has: an array behind `detach` and `cpu`."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array


class Saved:
    """What PIL has: a picture with a mode that saves itself."""

    mode = "L"

    def save(self, stream: Any, format: str) -> None:  # as PIL has it
        stream.write(media_reports._make_png(2, 3, 1, GREY))
        assert format == "PNG"


@pytest.mark.parametrize(
    ("image", "colour", "pixels"),
    [
        ([[0, 255, 51], [102, 153, 204]], 0, GREY),
        ([[0.0, 1.0, 0.2], [0.4, 0.6, 0.8]], 0, GREY),
        ([[-4, 900, 51], [102, 153, 204]], 0, GREY),
        ([[[255, 0, 0]] * 3] * 2, 2, RED),
        ([[(255, 0, 0, 255)] * 3] * 2, 6, bytes((255, 0, 0, 255)) * 6),
        ([[[255] * 5] * 6, [[0] * 5] * 6, [[0] * 5] * 6], 2, bytes((255, 0, 0)) * 30),  # channels first
        (np.frombuffer(GREY, "uint8").reshape(2, 3), 0, GREY),
        (np.frombuffer(GREY, "uint8").reshape(2, 3) / 255, 0, GREY),
        (Tensor(np.array([[[1.0]], [[0.0]], [[0.0]]]).repeat(6, 1).repeat(5, 2)), 2, bytes((255, 0, 0)) * 30),
        ([[True, False, True]] * 2, 0, bytes((255, 0, 255)) * 2),
        (Saved(), 0, GREY),
    ],
)
def test_a_picture_is_a_png_of_its_pixels(output: Path, image: object, colour: int, pixels: bytes) -> None:
    riseml.report_image("val/samples", 400, image)
    width, height, *rest = read_png(output / "media/val/samples/400.png")
    assert rest == [colour, pixels]
    assert width * height * {0: 1, 2: 3, 6: 4}[colour] == len(pixels)
    assert [path.name for path in output.rglob("*") if path.is_file()] == ["400.png"], "nothing unfinished stays"


def test_files_sound_tables_and_texts_become_files_of_media(output: Path) -> None:
    (output / "there.JPG").write_bytes(b"jpeg")
    riseml.report_image("photo", 1, output / "there.JPG")
    riseml.report_audio("tone", 2, [0.0, 1.0, -2.0], rate=8000)
    riseml.report_audio("stereo", np.int64(2), np.zeros((4, 2)))
    cells: list[list[object]] = [["cat", np.float32(0.5), float("nan")], ["dog", None, True]]
    riseml.report_table("confusion", ["", "p", "r"], cells, view="matrix")
    riseml.report_text("notes", "It **learns**: \u00e4\n", 3)
    found = {str(path.relative_to(output / "media")) for path in (output / "media").rglob("*") if path.is_file()}
    assert found == {"photo/1.jpg", "tone/2.wav", "stereo/2.wav", "confusion/0.json", "notes/3.md"}
    assert all(read_media_path(path) is not None for path in found), "the server lists each"
    with wave.open(str(output / "media/tone/2.wav")) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (8000, 1)
        assert struct.unpack("<3h", sound.readframes(3)) == (0, 32767, -32767)
    table = json.loads((output / "media/confusion/0.json").read_text())
    assert table == {"columns": ["", "p", "r"], "rows": [["cat", 0.5, "nan"], ["dog", None, True]], "view": "matrix"}
    assert (output / "media/notes/3.md").read_text() == "It **learns**: \u00e4\n"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: riseml.report_image("../up", 1, [[1]]), "the parts of a name have 1 to 64 printable characters"),
        (lambda: riseml.report_image("a//b", 1, [[1]]), "the parts of a name have 1 to 64 printable characters"),
        (lambda: riseml.report_image("a/b/c/d/e", 1, [[1]]), "a name has at most four parts"),
        (lambda: riseml.report_image("a", -1, [[1]]), "a step has 1 to 15 digits"),
        (lambda: riseml.report_image("a", "x", [[1]]), "invalid literal for int()"),
        (lambda: riseml.report_image("a", 1, "no.bmp"), "ends in none of png, jpg, jpeg, gif, webp, svg"),
        (lambda: riseml.report_image("a", 1, "no.png"), "No such file or directory"),
        (
            lambda: riseml.report_image("a", 1, [[[1, 2]] * 2] * 2),
            "a picture has height x width pixels of 1, 3 or 4 channels",
        ),
        (lambda: riseml.report_image("a", 1, [[1, 2], [3]]), "the lines of the picture have different lengths"),
        (lambda: riseml.report_audio("a", 1, []), "the sound has no samples"),
        (lambda: riseml.report_audio("a", 1, "x.png"), "ends in none of wav, mp3, ogg"),
        (lambda: riseml.report_audio("a", 1, ["loud"]), "could not convert string to float"),
        (lambda: riseml.report_table("a", [], []), "a table has at most 5,000 rows, and 1 to 100 columns"),
        (lambda: riseml.report_table("a", ["x"], [[1, 2]]), "each row has as many cells as there are columns, 1"),
        (lambda: riseml.report_table("a", ["x"], [[1]], view="pie"), "there is no view 'pie'"),
        (lambda: riseml.report_text("a\n", "text"), "the parts of a name have 1 to 64 printable characters"),
    ],
)
def test_what_is_no_media_is_said_once_and_ends_nothing(
    output: Path, capfd: pytest.CaptureFixture[str], call: Callable[[], None], words: str
) -> None:
    call()
    call()
    said = capfd.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not [path for path in output.rglob("*") if path.is_file()]


def test_a_job_without_the_package_reports_media_and_a_program_outside_of_one_nothing(tmp_path: Path) -> None:
    program = (
        "import riseml\n"
        "riseml.report(step=1, loss=2)\n"
        "riseml.report_image('a', 1, [[0, 255]])\n"
        "riseml.report_text('b', 'text', 2)\n"
    )
    lines, errors = run(tmp_path, program, {**INSIDE, "OUTPUT_DIR": str(tmp_path / "out")})
    assert (len(lines), errors) == (1, "")
    assert read_png(tmp_path / "out/media/a/1.png") == (2, 1, 0, b"\x00\xff")
    assert (tmp_path / "out/media/b/2.md").read_text() == "text"
    outside = {"PATH": INSIDE["PATH"], "OUTPUT_DIR": str(tmp_path / "none")}
    assert run(tmp_path, program, outside) == ([], "")
    assert not (tmp_path / "none").exists()
