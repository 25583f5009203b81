"""Pictures, sound, tables and texts that a job reports: files below OUTPUT_DIR/media. With `reports` it is the whole
module `riseml` inside a job.

    import riseml
    riseml.report_image("samples", 400, picture)
    riseml.report_table("confusion", ["", "cat", "dog"], [["cat", 9, 1], ["dog", 2, 8]], view="matrix")

A report is one file, `media/NAME/STEP.ENDING`, which gets its name when it is complete. A job that writes such files
itself needs no call. Python 3.6 or newer, standard library only: pictures come as nested lists, as arrays or as objects
that can save themselves, and what they are is asked of the objects. Nothing here raises, and outside of a job it does
nothing. Where the package riseml is installed, it takes the place of this module.
"""

import importlib.machinery
import importlib.util
import json
import os
import shutil
import struct
import sys
import threading
import zlib

from riseml.job_programs.reports import print_problem, progress, report, report_result

TYPE_CHECKING = False  # type checkers take it for true; Python 3.6 has no such imports to lose time with
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_MEDIA = "media"  # the folder in OUTPUT_DIR
_LARGEST_MEDIA_STEP = 10**15 - 1  # as a report of metrics has it
_LONGEST_PART = 64  # characters of one part of a name
_MOST_PARTS = 4  # of a name, with `/` between them
_MOST_SIDE = 8192  # pixels
_MOST_BYTES = 64 << 20  # of a file
_MOST_ROWS = 5000
_MOST_COLUMNS = 100
_PICTURES = ("png", "jpg", "jpeg", "gif", "webp", "svg")
_SOUNDS = ("wav", "mp3", "ogg")
_VIEWS = ("table", "matrix", "curve")
_CHANNELS = (1, 3, 4)  # of a picture
_WITH_CHANNELS = 3  # dimensions
_BRIGHTEST = 255
_LOUDEST = 32767
_MOST_TELLS = 20  # different problems that one process prints
_printed_problems = set()  # type: set[str]
_tell_lock = threading.Lock()


def report_image(name: object, step: object, image: object) -> None:
    """Report a picture: `report_image("samples", 400, picture)`.

    Args:
        name: `samples`, `val/samples`.
        step: an integer.
        image: the path of a file; a picture of PIL or a figure of Matplotlib; or rows of pixels as nested lists or an
            array: height x width, or with 1, 3 or 4 channels last (or first, as PyTorch has them). Integers are 0 to
            255, fractions 0 to 1.
    """
    _write_media(name, step, lambda: _encode_picture(image))


def report_audio(name: object, step: object, audio: object, rate: int = 16000) -> None:
    """Report sound: the path of a file, or samples between -1 and 1, one row for each moment where there are channels.

    Args:
        name: `speech`.
        step: an integer.
        audio: as above.
        rate: samples in a second.
    """
    _write_media(name, step, lambda: _encode_sound(audio, int(rate)))


def report_table(
    name: object, columns: "Iterable[object]", rows: "Iterable[Iterable[object]]", step: object = 0, view: str = "table"
) -> None:
    """Report a table: `report_table("confusion", ["", "cat", "dog"], [["cat", 9, 1], ["dog", 2, 8]], view="matrix")`.

    Args:
        name: `confusion`.
        columns: their titles.
        rows: as many cells each.
        step: an integer.
        view: how the page shows it first: `table`; `matrix`, with shades, whose first column names the rows; `curve`,
            whose first column is x and each other one a line, as of precision over recall.
    """
    _write_media(name, step, lambda: _encode_table(columns, rows, view))


def report_text(name: object, text: object, step: object = 0) -> None:
    """Report a text, which the page shows as Markdown: `report_text("notes", "It **learns**.", 400)`."""
    _write_media(name, step, lambda: ("md", str(text).encode("utf-8", "replace")))


def _write_media(name: object, step: object, encode: "Callable[[], tuple[str, Any]]") -> None:
    """Write one file: the ending and the content, which may be the path of a file."""
    if "RISEML_JOB" not in os.environ or not os.environ.get("OUTPUT_DIR"):
        return
    try:
        number = int(step)  # type: ignore[call-overload]  # what is no number is left out
        if not 0 <= number <= _LARGEST_MEDIA_STEP:
            raise ValueError("a step has 1 to 15 digits")
        folder = os.path.join(os.environ["OUTPUT_DIR"], _MEDIA, *_split_name(str(name)))
        ending, content = encode()
        os.makedirs(folder, exist_ok=True)
        part = os.path.join(folder, f".{os.getpid()}-{threading.get_ident()}.part")
        try:
            if isinstance(content, str):
                shutil.copyfile(content, part)
            else:
                with open(part, "wb") as file:
                    file.write(content)
            os.replace(part, os.path.join(folder, f"{number}.{ending}"))
        except BaseException:
            if os.path.exists(part):
                os.remove(part)
            raise
    except Exception as error:  # noqa: BLE001  # a report never ends a training
        _tell_media(str(name), error)


def _tell_media(name: str, error: Exception) -> None:
    with _tell_lock:
        text = f"{name[:80]!r} was not reported: {str(error) or type(error).__name__}"
        if text in _printed_problems or len(_printed_problems) >= _MOST_TELLS:
            return
        _printed_problems.add(text)
    print_problem(text)


def _split_name(name: str) -> "list[str]":
    parts = name.split("/")
    for part in parts:
        if not part.strip() or part.startswith(".") or len(part) > _LONGEST_PART or not part.isprintable():
            raise ValueError("the parts of a name have 1 to 64 printable characters, and begin with no dot")
    if len(parts) > _MOST_PARTS:
        raise ValueError("a name has at most four parts")
    return parts


def _choose_file(path: object, endings: "tuple[str, ...]") -> "tuple[str, str]":
    text = os.fspath(path)  # type: ignore[call-overload]  # as above
    ending = text.rpartition(".")[2].lower()
    if ending not in endings:
        raise ValueError("{!r} ends in none of {}".format(text, ", ".join(endings)))
    if os.path.getsize(text) > _MOST_BYTES:
        raise ValueError(f"{text!r} has more than 64 MiB")
    return ending, text


def _encode_picture(image: "Any") -> "tuple[str, Any]":
    if isinstance(image, (str, os.PathLike)):
        return _choose_file(image, _PICTURES)
    if hasattr(image, "savefig") or (hasattr(image, "save") and hasattr(image, "mode")):
        import io

        stream = io.BytesIO()
        if hasattr(image, "savefig"):
            image.savefig(stream, format="png")
        else:
            image.save(stream, format="PNG")
        return "png", stream.getvalue()
    height, width, channels, data = _read_pixels(_fetch_array(image))
    return "png", _make_png(height, width, channels, data)


def _fetch_array(array: "Any") -> "Any":
    """Return what a framework keeps on a device as an array of this process, or as it is."""
    for method in ("detach", "cpu", "numpy"):
        if callable(getattr(array, method, None)):
            array = getattr(array, method)()
    return array


def _read_pixels(image: "Any") -> "tuple[int, int, int, bytes]":
    """Return height, width, channels, and the bytes of all pixels, line by line."""
    shape = _find_shape(image)
    if len(shape) == _WITH_CHANNELS and shape[0] in _CHANNELS and shape[2] not in _CHANNELS:
        image = _put_channels_last(image)
        shape = (shape[1], shape[2], shape[0])
    channels = ((*shape, 1))[2] if len(shape) in (2, _WITH_CHANNELS) else 0
    if channels not in _CHANNELS or not 0 < shape[0] <= _MOST_SIDE or not 0 < shape[1] <= _MOST_SIDE:
        raise ValueError(f"a picture has height x width pixels of 1, 3 or 4 channels, not {shape}")
    if hasattr(image, "astype") and hasattr(image, "clip"):  # an array computes faster than a loop
        if str(image.dtype) != "uint8":
            image = (image * _find_scale(image.dtype.kind, float(image.max()))).clip(0, _BRIGHTEST).astype("uint8")
        return shape[0], shape[1], channels, image.tobytes()
    data = _flatten_pixels(image if len(shape) == _WITH_CHANNELS else [[(pixel,) for pixel in line] for line in image])
    if len(data) != shape[0] * shape[1] * channels:
        raise ValueError("the lines of the picture have different lengths")
    return shape[0], shape[1], channels, data


def _put_channels_last(image: "Any") -> "Any":
    if hasattr(image, "transpose") and hasattr(image, "astype"):
        return image.transpose(1, 2, 0)
    return [[list(pixel) for pixel in zip(*lines)] for lines in zip(*image)]  # noqa: B905  # Python 3.6 has no `strict`


def _flatten_pixels(lines: "Any") -> bytes:
    values = [value for line in lines for pixel in line for value in pixel]
    kind = "b" if all(isinstance(value, bool) for value in values) else "i"
    scale = _find_scale("f" if any(isinstance(value, float) for value in values) else kind, max(values))
    return bytes(min(_BRIGHTEST, max(0, int(value * scale))) for value in values)


def _find_scale(kind: str, largest: float) -> int:
    """Return by what values become 0 to 255: fractions are 0 to 1, unless a larger one says otherwise."""
    return _BRIGHTEST if kind == "b" or (kind == "f" and largest <= 1) else 1


def _find_shape(array: "Any") -> "tuple[int, ...]":
    if hasattr(array, "shape"):
        return tuple(int(size) for size in array.shape)
    shape = []
    while isinstance(array, (list, tuple)):
        shape.append(len(array))
        array = array[0] if array else None
    return tuple(shape)


def _make_png(height: int, width: int, channels: int, data: bytes) -> bytes:
    """Return the PNG file of 8 bits for each channel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    size = width * channels
    lines = b"".join(b"\0" + data[at : at + size] for at in range(0, height * size, size))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 6)) + chunk(b"IEND", b"")


def _encode_sound(audio: "Any", rate: int) -> "tuple[str, Any]":
    if isinstance(audio, (str, os.PathLike)):
        return _choose_file(audio, _SOUNDS)
    import array
    import io
    import wave

    audio = _fetch_array(audio)
    rows = audio.tolist() if hasattr(audio, "tolist") else list(audio)
    if not rows:
        raise ValueError("the sound has no samples")
    channels = len(rows[0]) if isinstance(rows[0], (list, tuple)) else 1
    if not 1 <= channels <= 8:  # channels
        raise ValueError(f"sound has 1 to 8 channels, not {channels}: a row is a moment")
    values = [value for row in rows for value in row] if isinstance(rows[0], (list, tuple)) else rows
    if 2 * len(values) > _MOST_BYTES:
        raise ValueError("the sound has more than 64 MiB")
    samples = array.array("h", (int(max(-1.0, min(1.0, float(value))) * _LOUDEST) for value in values))
    if sys.byteorder == "big":
        samples.byteswap()
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return "wav", stream.getvalue()


def _encode_table(columns: "Iterable[object]", rows: "Iterable[Iterable[object]]", view: str) -> "tuple[str, bytes]":
    if view not in _VIEWS:
        raise ValueError("there is no view {!r}: there are {}".format(view, ", ".join(_VIEWS)))
    titles = [str(title) for title in columns]
    cells = [[_make_cell(cell) for cell in row] for row in rows]
    if len(cells) > _MOST_ROWS or not 0 < len(titles) <= _MOST_COLUMNS:
        raise ValueError("a table has at most 5,000 rows, and 1 to 100 columns")
    if any(len(row) != len(titles) for row in cells):
        raise ValueError(f"each row has as many cells as there are columns, {len(titles)}")
    return "json", json.dumps({"columns": titles, "rows": cells, "view": view}).encode()


def _make_cell(value: "Any") -> "str | float | bool | None":
    if hasattr(value, "item"):  # a number of NumPy
        value = value.item()
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has no nan
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _become_installed() -> None:
    """Let the installed package riseml take the place of this module, with these functions if it has none."""
    folder = os.path.dirname(os.path.abspath(__file__))
    elsewhere = [path for path in sys.path if os.path.abspath(path or os.curdir) != folder]
    spec = importlib.machinery.PathFinder.find_spec("riseml", elsewhere)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    own = sys.modules["riseml"]
    sys.modules["riseml"] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  # a broken package: reports work without it
        sys.modules["riseml"] = own
        print_problem("a report was left out: " + repr(error))
        return
    functions = (report, report_result, progress, report_image, report_audio, report_table, report_text)
    for function in functions:
        if not hasattr(module, function.__name__):
            setattr(module, function.__name__, function)


if __name__ == "riseml":  # as a job imports it
    _become_installed()
