"""Frames of terminals as an SVG that moves."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from scripts.moving_picture import Frame, draw_frames, shorten_pauses

SPACE = "{http://www.w3.org/2000/svg}"
PICTURE = Path(__file__).parents[3] / "docs/kill.svg"


def test_pauses_are_shortened_and_frames_that_are_replaced_at_once_left_out() -> None:
    frames = [Frame(0.0, ("a",)), Frame(0.05, ("b",)), Frame(9.0, ("b",)), Frame(20.0, ("c",)), Frame(20.5, ("d",))]
    shorter = shorten_pauses(frames, longest=1.0, shortest=0.1)
    assert shorter == [Frame(0.0, ("b",)), Frame(1.0, ("c",)), Frame(1.5, ("d",))]


def test_each_row_is_in_the_picture_once_and_each_frame_has_its_rows() -> None:
    frames = [Frame(0.0, ("$ <run>", "")), Frame(1.0, ("$ <run>", "\x1b[0;31mred\x1b[0m & \x1b[0;1mbold"))]
    root = ET.fromstring(draw_frames(frames, 20, "a < b", last=3.0))
    assert [title.text for title in root.iter(f"{SPACE}title")] == ["a < b"]
    rows = {row.get("id"): "".join(row.itertext()) for row in root.iter(f"{SPACE}text")}
    assert rows == {"r0": "$ <run>", "r1": "red & bold"}
    assert [part.get("class") for part in root.iter(f"{SPACE}tspan")] == [None, "c1", None, "b"]
    film = next(group for group in root.iter(f"{SPACE}g") if group.get("id") == "film")
    assert [[use.get("href") for use in group] for group in film] == [["#r0"], ["#r0", "#r1"]]
    style = "".join(root.itertext())
    assert re.findall(r"([\d.]+)%\{transform:translateY\((-\d+)px", style)[:2] == [("0.00", "-0"), ("25.00", "-58")]
    assert "prefers-reduced-motion:reduce" in style


def test_the_picture_of_the_readme_is_small_and_of_no_machine() -> None:
    text = PICTURE.read_text()
    assert len(text.encode()) < 150_000
    shown = "\n".join("".join(row.itertext()) for row in ET.fromstring(text).iter(f"{SPACE}text"))
    for words in ("riseml train", "kill -9 ", "Lost the riseml server", "step 12 of 12", "riseml plot 1 loss"):
        assert words in shown
    assert not re.search(r"/(tmp|root|home|work|Users)/", shown)
    assert not re.search(r"<script|https?://(?!www\.w3\.org/)|@font-face", text)
