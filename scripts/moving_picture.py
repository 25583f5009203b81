"""Frames of terminals as one SVG that moves by CSS alone: no script, no font and no address in it. Pure.

Each different row of text is in the file once. A frame is a list of references to rows; the frames are in one column,
and one animation moves the whole column, one frame at a time. Readers who prefer no motion see the last frame.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from riseml.base.records import dataclass

_CELL = 7.8  # units of a character
_ROW = 17  # units of a row
_EDGE = 12  # units around the text
_PALETTE = (
    "#6e7681",
    "#ff7b72",
    "#56d364",
    "#e3b341",
    "#79c0ff",
    "#d2a8ff",
    "#56d4dd",
    "#f0f6fc",
)  # black to white, as terminals number them


@dataclass(frozen=True, slots=True)
class Frame:
    """What the terminals show from one moment on."""

    at: float  # seconds since the beginning
    rows: tuple[str, ...]  # with their colours, as SGR codes


def shorten_pauses(frames: Sequence[Frame], longest: float, shortest: float) -> list[Frame]:
    """Return the frames without those that are replaced at once, and with no pause longer than `longest` seconds."""
    chosen: list[Frame] = []
    for frame in frames:
        if chosen and frame.at - chosen[-1].at < shortest:
            chosen[-1] = Frame(chosen[-1].at, frame.rows)
        elif not chosen or frame.rows != chosen[-1].rows:
            chosen.append(frame)
    shorter: list[Frame] = []
    moment = 0.0
    for number, frame in enumerate(chosen):
        if number:
            moment += min(longest, frame.at - chosen[number - 1].at)
        shorter.append(Frame(round(moment, 3), frame.rows))
    return shorter


def draw_frames(frames: Sequence[Frame], columns: int, title: str, last: float) -> str:
    """Return an SVG that shows the frames in turn, the last one for `last` seconds, and begins again.

    Args:
        frames: at least one; all have the same number of rows.
        columns: of the terminals.
        title: for readers who do not see it.
        last: seconds.
    """
    width = columns * _CELL + 2 * _EDGE
    height = len(frames[0].rows) * _ROW + 2 * _EDGE
    whole = frames[-1].at + last
    names: dict[str, str] = {}
    film: list[str] = []
    for number, frame in enumerate(frames):
        uses = []
        for at, row in enumerate(frame.rows):
            if row.strip():
                name = names.setdefault(row, f"r{len(names)}")
                uses.append(f'<use href="#{name}" y="{at * _ROW}"/>')
        film.append(f'<g transform="translate(0 {number * height})">{"".join(uses)}</g>')
    steps = (
        f"{100 * frame.at / whole:.2f}%{{transform:translateY(-{number * height}px)}}"
        for number, frame in enumerate(frames)
    )
    end = f"translateY(-{(len(frames) - 1) * height}px)"
    colours = "".join(f".c{number}{{fill:{colour}}}" for number, colour in enumerate(_PALETTE))
    rows = "\n".join(f'<text id="{name}" y="14">{_draw_row(row)}</text>' for row, name in names.items())
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" role="img">
<title>{html.escape(title)}</title>
<style>
text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}}
{colours}.b{{font-weight:bold}}.d{{opacity:.65}}
#film{{animation:film {whole:g}s step-end infinite}}
@keyframes film{{{"".join(steps)}100%{{transform:{end}}}}}
@media (prefers-reduced-motion:reduce){{#film{{animation:none;transform:{end}}}}}
</style>
<defs>
{rows}
</defs>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<svg x="{_EDGE}" y="{_EDGE}" width="{columns * _CELL:g}" height="{height - 2 * _EDGE}">
<g id="film">
{chr(10).join(film)}
</g>
</svg>
</svg>
"""


def _draw_row(row: str) -> str:
    """Return the parts of a row with their colours, each as wide as its characters are on a terminal."""
    text = Text.from_ansi(row)
    text.rstrip()
    console = Console(width=500, color_system="truecolor")
    parts: list[str] = []
    column = 0
    for segment in text.render(console, end=""):
        style = segment.style
        number = None if style is None or style.color is None else style.color.number
        words = [] if number is None or number >= 2 * len(_PALETTE) else [f"c{number % len(_PALETTE)}"]
        words += ["b"] if style is not None and style.bold else []
        words += ["d"] if style is not None and style.dim else []
        kind = f' class="{" ".join(words)}"' if words else ""
        place = f'x="{column * _CELL:g}" textLength="{segment.cell_length * _CELL:g}"'
        if segment.text.strip():
            parts.append(f"<tspan {place}{kind}>{html.escape(segment.text, quote=False)}</tspan>")
        column += segment.cell_length
    return "".join(parts)
