"""Which files below OUTPUT_DIR/media are media, and as what they are sent."""

from __future__ import annotations

import pytest

from riseml.files.media_files import MediaFile, group_media, read_media_path
from riseml.job_programs.folder_paths import FileInfo


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("samples/400.png", MediaFile("samples", 400, "picture", "image/png")),
        ("val/samples/000400.JPG", MediaFile("val/samples", 400, "picture", "image/jpeg")),
        ("a b/1.svg", MediaFile("a b", 1, "picture", "text/plain; charset=utf-8")),
        ("page/1.html", MediaFile("page", 1, "text", "text/plain; charset=utf-8")),
        ("t/1.csv", MediaFile("t", 1, "table", "text/plain; charset=utf-8")),
        ("v/1.mp4", MediaFile("v", 1, "video", "video/mp4")),
        *((path, None) for path in ("400.png", "a/b.png", "a/-1.png", "a/1.exe", "a/1.js", "a/1.xhtml", "a/1", "a/1.")),
        *((path, None) for path in ("../1.png", "a/../1.png", ".a/1.png", "a//1.png", "/1.png", "a/1.png\n", "")),
        (f"a/{10**15}.png", None),
    ],
)
def test_a_path_says_what_a_file_is(path: str, file: MediaFile | None) -> None:
    assert read_media_path(path) == file


def test_files_are_grouped_by_name_and_kind_in_the_order_of_their_steps() -> None:
    def make(path: str, kind: str = "file") -> FileInfo:
        return FileInfo(path, kind, 1, 0, executable=False, target=None, etag="e")

    listed = [make("b/10.png"), make("b/9.png"), make("b/9.txt"), make("a", "folder"), make("a/1.wav"), make("x.png")]
    series, others = group_media([*listed, make("l/1.png", "link")])
    found = [(one.name, one.kind, [entry.file.step for entry in one.entries]) for one in series]
    assert found == [("a", "sound", [1]), ("b", "picture", [9, 10]), ("b", "text", [9])]
    assert others == 2, "a name without a step, and a link"
