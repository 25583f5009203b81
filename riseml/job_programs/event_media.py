"""Writes the pictures, sounds, texts and hyperparameters of TensorBoard's event files into files: a part of
`event_reader`. Python 3.6 or newer, standard library only.

What has the tag TAG in the run RUN at a step becomes `media/RUN/TAG/STEP.png` of the output, or `.jpg`, `.gif`, `.wav`
or `.txt`; hyperparameters are a table, `media/RUN/hparams/STEP.json`. Further pictures of one value are in folders 2, 3
and so on below. A file that the job itself has written there is left as it is.

    Value         1 tag, 4 image: 4 encoded; 6 audio: 4 encoded; 8 tensor, 9 metadata
    tensor        8 string_val (repeated)
    metadata      1 plugin_data: 1 plugin_name, 2 content
    content       of hparams: 3 session_start_info: 1 hparams (a map: 1 key, 2 value)
    value         2 number, 3 text, 4 boolean
"""

import json
import os
from collections.abc import Callable

from riseml.job_programs.event_records import MOST_TAGS, OtherValue, read_fields

MEDIA_FOLDER = "media"
MOST_MEDIA = 1000  # files
MOST_MEDIA_BYTES = 256 << 20  # of all of them
_MOST_OF_VALUE = 8  # pictures or sounds
_MOST_TEXT = 256 << 10  # bytes
_MOST_PARAMETERS = 1000
_MOST_PARTS = 4  # of a name
_LONGEST_PART = 64  # characters
_ENDINGS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif"), (b"RIFF", "wav"))
_TORCH_TEXT = "/text_summary"  # which PyTorch puts behind the tag of a text


class MediaWriter:
    """The media of one job.

    Args:
        folder: OUTPUT_DIR.
        tell_once: prints a problem, once for each key.
    """

    def __init__(self, folder: str, tell_once: "Callable[[str, str], None]") -> None:
        self.folder = os.path.join(folder, MEDIA_FOLDER)
        self.tell_once = tell_once
        self.plugins = {}  # type: dict[tuple[str, str], str]
        self.values = []  # type: list[OtherValue]
        self.written = set()  # type: set[str]
        self.size = 0

    def write_values(self, run: str, since: float) -> None:
        """Write what is in `values`, and forget them.

        Args:
            run: of their file.
            since: the time from which values are written, in seconds since 1970.

        Raises:
            Damaged: one of them is no value.
        """
        values, self.values = self.values, []
        for value in values:
            if value.at >= since and value.step >= 0:
                self._write_value(value, run)

    def _write_value(self, value: "OtherValue", run: str) -> None:
        tag, contents = self._read_value(value.data, run)
        for number, (ending, content) in enumerate(contents[:_MOST_OF_VALUE], 1):
            name = clean_name(f"{run}/{tag}" if number == 1 else f"{run}/{tag}/{number}")
            if name and not self._write_file(f"{name}/{value.step}.{ending}", content):
                return

    def _read_value(self, data: bytes, run: str) -> "tuple[str, list[tuple[str, bytes]]]":
        """Return the tag, and the ending and the content of each file."""
        fields = {}  # type: dict[int, bytes]
        for field, value in read_fields(data):
            if isinstance(value, bytes):
                fields[field] = value
        tag = fields.get(1, b"").decode("utf-8", "replace")
        blob = fields.get(4, fields.get(6))
        if blob is not None:
            return tag, _list_known(_list_bytes(blob, 4)[-1:])
        plugin, content = _read_metadata(fields.get(9, b""))
        key = (run, tag)
        if plugin and len(self.plugins) < MOST_TAGS:
            self.plugins.setdefault(key, plugin)
        plugin = self.plugins.get(key, plugin)
        if plugin == "hparams":
            return "hparams", _make_table(content)
        texts = _list_bytes(fields.get(8, b""), 8)
        if plugin == "text" and texts:
            text = b"\n".join(texts)[:_MOST_TEXT].decode("utf-8", "ignore")
            return tag[: -len(_TORCH_TEXT)] if tag.endswith(_TORCH_TEXT) else tag, [("txt", text.encode())]
        if plugin == "images":
            return tag, _list_known(texts[2:])  # behind width and height
        return tag, _list_known(texts[::2]) if plugin == "audio" else []  # each before its label

    def _write_file(self, name: str, content: bytes) -> bool:
        """Write a file; return False when no more are written."""
        path = os.path.join(self.folder, name)
        if name not in self.written and os.path.lexists(path):
            return True
        if len(self.written) >= MOST_MEDIA or self.size + len(content) > MOST_MEDIA_BYTES:
            self.tell_once("media", f"only {MOST_MEDIA} media, and {MOST_MEDIA_BYTES >> 20} MiB, become files")
            return False
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".new", "wb") as file:
                file.write(content)
            os.replace(path + ".new", path)
        except OSError as problem:
            self.tell_once("media", f"media of event files cannot be written: {problem.strerror}")
            return False
        self.written.add(name)
        self.size += len(content)
        return True


def clean_name(text: str) -> str:
    """Return a path below the folder of media that the page shows; empty: nothing is left of it."""
    parts = []  # type: list[str]
    for part in text.split("/"):
        plain = "".join(letter if letter.isprintable() else "_" for letter in part)[:_LONGEST_PART].strip()
        if plain:
            parts.append("_" + plain[1:] if plain.startswith(".") else plain)
    if len(parts) > _MOST_PARTS:
        parts[_MOST_PARTS - 1 :] = ["-".join(parts[_MOST_PARTS - 1 :])[:_LONGEST_PART]]
    return "/".join(parts)


def _list_bytes(message: bytes, number: int) -> "list[bytes]":
    return [value for field, value in read_fields(message) if field == number and isinstance(value, bytes)]


def _list_known(blobs: "list[bytes]") -> "list[tuple[str, bytes]]":
    """Return those whose kind is known by their first bytes, with the endings of their files."""
    return [(ending, blob) for blob in blobs for begin, ending in _ENDINGS if blob.startswith(begin)]


def _read_metadata(data: bytes) -> "tuple[str, bytes]":
    """Return the name and the data of a plugin; empty: there is none."""
    name = content = b""
    for plugin in _list_bytes(data, 1)[-1:]:
        for field, value in read_fields(plugin):
            if field == 1 and isinstance(value, bytes):
                name = value
            elif field == 2 and isinstance(value, bytes):
                content = value
    return name.decode("utf-8", "replace"), content


def _make_table(content: bytes) -> "list[tuple[str, bytes]]":
    """Return the table of hyperparameters; empty: the message has none."""
    rows = []  # type: list[list[str | float | bool | None]]
    for start in _list_bytes(content, 3):
        for entry in _list_bytes(start, 1)[:_MOST_PARAMETERS]:
            name = ""
            number = None  # type: str | float | bool | None
            for field, value in read_fields(entry):
                if field == 1 and isinstance(value, bytes):
                    name = value.decode("utf-8", "replace")
                elif field == 2 and isinstance(value, bytes):
                    number = _read_parameter(value)
            rows.append([name, number])
    rows.sort(key=lambda row: str(row[0]))
    table = {"columns": ["name", "value"], "rows": rows}
    return [("json", json.dumps(table, ensure_ascii=False).encode("utf-8", "replace"))] if rows else []


def _read_parameter(data: bytes) -> "str | float | bool | None":
    for field, value in read_fields(data):
        if field == 2 and isinstance(value, float):
            return value if value - value == 0 else str(value)
        if field == 3 and isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if field == 4:
            return bool(value)
    return None
