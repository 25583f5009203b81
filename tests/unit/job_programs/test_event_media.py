"""Pictures, sounds, texts and hyperparameters of event files become files that the page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionStartInfo
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.util.tensor_util import make_tensor_proto

from riseml.job_programs import event_media
from riseml.job_programs.event_media import MediaWriter, clean_name
from riseml.job_programs.event_reader import EventReader
from riseml.job_programs.event_records import Damaged, OtherValue
from tests.support.event_files import make_record

PNG = b"\x89PNG\r\n\x1a\nrest"
WAV = b"RIFFrest"
NAME = "events.out.tfevents.1795904189.host.7"


def make_tensor(tag: str, plugin: str, strings: list[bytes]) -> Summary:
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin))
    return Summary(value=[Summary.Value(tag=tag, tensor=make_tensor_proto(strings), metadata=metadata)])


def make_parameters() -> Summary:
    start = SessionStartInfo()
    start.hparams["lr"].number_value = 0.1
    start.hparams["name"].string_value = "a"
    start.hparams["deep"].bool_value = True
    content = HParamsPluginData(session_start_info=start).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="hparams", content=content))
    return Summary(value=[Summary.Value(tag="_hparams_/session_start_info", metadata=metadata)])


def pack(summary: Summary, step: int = 7) -> bytes:
    return make_record(Event(wall_time=1795904189, step=step, summary=summary).SerializeToString())


def list_files(folder: Path) -> dict[str, bytes]:
    media = folder / "media"
    return {str(path.relative_to(media)): path.read_bytes() for path in media.rglob("*") if path.is_file()}


def test_values_become_files_by_run_tag_and_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also those of PyTorch, a tag without metadata, and a file that the job has written itself."""
    old = [Summary.Value(tag="grid", image=Summary.Image(encoded_image_string=PNG)),
           Summary.Value(tag="speech", audio=Summary.Audio(encoded_audio_string=WAV)),
           Summary.Value(tag="odd", image=Summary.Image(encoded_image_string=b"<svg>"))]  # fmt: skip
    bare = make_tensor("samples", "images", [b"8", b"8", PNG])
    bare.value[0].ClearField("metadata")
    own = tmp_path / "media" / "train" / "own" / "7.png"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"mine")
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / NAME).write_bytes(
        pack(Summary(value=old))
        + pack(text_pb("note/text_summary", "losses fall"))
        + pack(make_tensor("samples", "images", [b"8", b"8", PNG, PNG + b"2"]))
        + pack(bare, 9)
        + pack(make_tensor("sound", "audio", [WAV, b"label"]))
        + pack(make_tensor("own", "images", [b"8", b"8", PNG]))
        + pack(make_tensor("weights", "histograms", [b"1"]))
        + pack(Summary(value=[Summary.Value(tag="loss", simple_value=1)]))
        + pack(make_parameters())
    )
    EventReader(str(tmp_path), 1, 0.0).read_new()
    out, errors = capfd.readouterr()
    assert (out.count("riseml.report"), errors) == (1, "")
    table = {"columns": ["name", "value"], "rows": [["deep", True], ["lr", 0.1], ["name", "a"]]}
    files = list_files(tmp_path)
    assert json.loads(files.pop("train/hparams/7.json")) == table
    assert files == {
        "train/grid/7.png": PNG,
        "train/speech/7.wav": WAV,
        "train/note/7.txt": b"losses fall",
        "train/samples/7.png": PNG,
        "train/samples/2/7.png": PNG + b"2",
        "train/samples/9.png": PNG,
        "train/sound/7.wav": WAV,
        "train/own/7.png": b"mine",
    }


@pytest.mark.parametrize("bound", ["MOST_MEDIA", "MOST_MEDIA_BYTES"])
def test_media_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(event_media, bound, 3 if bound == "MOST_MEDIA" else 3 * len(PNG))
    problems: list[str] = []
    writer = MediaWriter(str(tmp_path), lambda _, problem: problems.append(problem))
    for step in range(5):
        value = Summary.Value(tag="a", image=Summary.Image(encoded_image_string=PNG))
        writer.values.append(OtherValue(step, 1.0, value.SerializeToString()))
        writer.write_values("", 0.0)
    assert (len(list_files(tmp_path)), len(problems)) == (3, 2)


@given(st.text(max_size=300))
def test_a_name_stays_below_the_folder(text: str) -> None:
    name = clean_name(text)
    parts = name.split("/") if name else []
    assert len(parts) <= 4
    assert all(part and part.isprintable() and len(part) <= 64 and not part.startswith(".") for part in parts)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_value_are_refused_or_passed_over(data: bytes) -> None:
    writer = MediaWriter("/nowhere", lambda *_: None)
    writer.values.append(OtherValue(1, 1.0, data))
    try:
        writer.write_values("", 0.0)
    except Damaged:
        assert writer.values == []
