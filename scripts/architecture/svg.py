"""A picture as SVG: boxes, lines with the number of imports, and a band of boxes that everything above imports.

The colours follow the reader's light or dark mode; the fonts are those of the reader's machine.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

from scripts.architecture.layout import Edge, Layout, arrange_boxes

BOX_WIDTH = 216
LINE = 15  # pixels from one line of text to the next
_CHARACTERS = 30  # in one line of a box; few enough for the widest of the fonts
_ROW_SPACE = 60  # between two rows of boxes; the lines bend there
_BAND_SPACE = 16  # between two boxes of the band
_MARGIN = 20
_HEAD = 44  # the height of a heading

_COLOURS = ("#3b82c4", "#c9700a", "#2f9e59", "#9159c9", "#cf4a4a", "#16908f", "#9a6b3f", "#b8518f")
_NO_IMPORT = "#8b949e"  # the colour of lines that are no imports
_STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #57606a }
  .title { font-size: 16px; font-weight: 600; fill: #1f2328 }
  .name { font-size: 14px; font-weight: 600; fill: #1f2328 }
  .place { font-size: 10px; font-family: ui-monospace, "DejaVu Sans Mono", monospace }
  .count { font-weight: 600; text-anchor: middle; stroke: #ffffff; stroke-width: 5px; paint-order: stroke }
  .ground { fill: #ffffff } .band { fill: #e9eef3 }
  .box { fill: #f6f8fa; stroke: #8b949e; stroke-width: 1.5px }
  .line { fill: none } .talk { stroke-dasharray: 5 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #9aa4af } .title, .name { fill: #e6edf3 } .count { stroke: #0d1117 }
    .ground { fill: #0d1117 } .band { fill: #1c232c } .box { fill: #161b22 }
  }
""".strip("\n")


@dataclass(frozen=True, slots=True)
class Picture:
    """What one picture shows."""

    title: str
    rows: Sequence[Sequence[str]]  # boxes, from the top down
    counts: Mapping[Edge, int]  # lines: imports from module to module
    texts: Mapping[str, Sequence[str]]  # paragraphs in each box
    band_title: str = ""
    band: Sequence[Sequence[str]] = ()  # rows of boxes without lines
    talks: Mapping[Edge, str] | None = None  # dashed lines that are no imports, with their label


@dataclass(frozen=True, slots=True)
class _Frame:
    """The places of a picture's boxes."""

    layout: Layout
    heights: tuple[int, ...]  # of the boxes in each row
    left: float  # of the layout

    def centre(self, name: str) -> float:
        return self.left + self.layout.centres[name]

    def _row_of(self, name: str) -> int:
        return next(index for index, row in enumerate(self.layout.rows) if name in row)

    def top(self, name: str) -> int:
        above = self.heights[: self._row_of(name)]
        return _MARGIN + _HEAD + sum(above) + len(above) * _ROW_SPACE

    def height(self, name: str) -> int:
        return self.heights[self._row_of(name)]

    def bottom(self, name: str) -> int:
        return self.top(name) + self.height(name)


def draw_picture(picture: Picture) -> str:
    """Return the picture as the text of an SVG file."""
    layout = arrange_boxes(picture.rows, (*picture.counts, *(picture.talks or {})), BOX_WIDTH)
    lines = {name: wrap_text(paragraphs) for name, paragraphs in picture.texts.items()}
    width = max(layout.width, _band_width(picture))
    heights = tuple(box_height(lines[name] for name in row) for row in picture.rows)
    frame = _Frame(layout, heights, _MARGIN + (width - layout.width) / 2)
    colours = _choose_colours(picture)
    parts = [f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 14}">{escape(picture.title)}</text>']
    parts += _draw_lines(picture, frame, colours)
    for name in (name for row in picture.rows for name in row):
        place = _Place(frame.centre(name), frame.top(name), frame.height(name))
        parts += _draw_box(name, lines[name], place, colours.get(name))
    bottom = frame.bottom(picture.rows[-1][0])
    if picture.band:
        parts += _draw_band(picture, lines, bottom + 30, width)
        bottom += 30 + _band_height(picture, lines)
    return wrap_svg(parts, round(width) + 2 * _MARGIN, bottom + _MARGIN)


def wrap_svg(parts: list[str], width: int, height: int) -> str:
    """Return the whole file around the parts of a picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<!-- drawn by scripts/architecture from the imports of the code; do not edit -->",
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="ground" width="{width}" height="{height}" rx="8"/>',
    )
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _choose_colours(picture: Picture) -> dict[str, str]:
    """Return one colour for each box from which lines go out."""
    sources = [name for row in picture.rows for name in row if any(name == source for source, _ in picture.counts)]
    return {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(sources)}


def wrap_text(paragraphs: Sequence[str]) -> list[str]:
    """Return the lines of a box."""
    return [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, _CHARACTERS)]


def box_height(texts: Iterable[Sequence[str]]) -> int:
    """Return the height that all these boxes need."""
    return 34 + LINE * max(len(text) for text in texts)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one box is."""

    centre: float
    top: int
    height: int


def _draw_box(name: str, lines: Sequence[str], place: _Place, colour: str | None = None) -> Iterator[str]:
    left = round(place.centre - BOX_WIDTH / 2)
    stroke = f' style="stroke: {colour}"' if colour else ""
    size = f'width="{BOX_WIDTH}" height="{place.height}"'
    yield f'<rect class="box" x="{left}" y="{place.top}" {size} rx="6"{stroke}/>'
    yield f'<text class="name" x="{left + 10}" y="{place.top + 20}">{escape(name)}</text>'
    for index, line in enumerate(lines):
        yield f'<text x="{left + 10}" y="{place.top + 38 + index * LINE}">{escape(line)}</text>'


def _draw_band(picture: Picture, lines: Mapping[str, list[str]], top: int, width: float) -> Iterator[str]:
    height = _band_height(picture, lines)
    yield f'<rect class="band" x="{_MARGIN}" y="{top}" width="{round(width)}" height="{height}" rx="8"/>'
    yield f'<text class="name" x="{_MARGIN + _BAND_SPACE}" y="{top + 26}">{escape(picture.band_title)}</text>'
    y = top + _HEAD
    for row in picture.band:
        tall = box_height(lines[name] for name in row)
        used = len(row) * (BOX_WIDTH + _BAND_SPACE) - _BAND_SPACE
        first = _MARGIN + (width - used) / 2 + BOX_WIDTH / 2
        for index, name in enumerate(row):
            yield from _draw_box(name, lines[name], _Place(first + index * (BOX_WIDTH + _BAND_SPACE), y, tall))
        y += tall + _BAND_SPACE


def _band_width(picture: Picture) -> int:
    return max((len(row) for row in picture.band), default=0) * (BOX_WIDTH + _BAND_SPACE) + _BAND_SPACE


def _band_height(picture: Picture, lines: Mapping[str, list[str]]) -> int:
    return _HEAD + sum(box_height(lines[name] for name in row) + _BAND_SPACE for row in picture.band)


def _draw_lines(picture: Picture, frame: _Frame, colours: Mapping[str, str]) -> Iterator[str]:
    starts, ends = _spread_ports(frame)
    labels: list[str] = []
    for (source, target), count in picture.counts.items():
        colour = colours[source]
        if (source, target) in frame.layout.paths:
            start = starts[source, target]
            end = ends[source, target]
            yield _curve(_find_points(frame, (source, target), start, end), colour, count)
            yield arrow_head(end, frame.top(target), colour)
            labels.append(_label(start, frame.bottom(source) + 18, str(count), colour))
        else:
            yield from _draw_level_line(frame, (source, target), str(count), colour)
    for edge, label in (picture.talks or {}).items():
        yield from _draw_level_line(frame, edge, label, _NO_IMPORT, kind="line talk")
    yield from labels


def _spread_ports(frame: _Frame) -> tuple[dict[Edge, float], dict[Edge, float]]:
    """Return where each line leaves its source and where it meets its target, so that no two lines share a place."""
    starts: dict[Edge, float] = {}
    ends: dict[Edge, float] = {}
    paths = frame.layout.paths
    for name in {name for edge in paths for name in edge}:
        out = sorted((edge for edge in paths if edge[0] == name), key=lambda edge: frame.centre(paths[edge][1]))
        into = sorted((edge for edge in paths if edge[1] == name), key=lambda edge: frame.centre(paths[edge][-2]))
        left = frame.centre(name) - BOX_WIDTH / 2
        starts |= {edge: left + BOX_WIDTH * (index + 1) / (len(out) + 1) for index, edge in enumerate(out)}
        ends |= {edge: left + BOX_WIDTH * (index + 1) / (len(into) + 1) for index, edge in enumerate(into)}
    return starts, ends


def _find_points(frame: _Frame, edge: Edge, start: float, end: float) -> list[tuple[float, float]]:
    """Return the points through which a line goes: it enters and leaves each gap straight down."""
    source, *gaps, target = frame.layout.paths[edge]
    points = [(start, float(frame.bottom(source)))]
    for gap in gaps:
        points += [(frame.centre(gap), frame.top(gap)), (frame.centre(gap), frame.bottom(gap))]
    return [*points, (end, frame.top(target) - 7)]


def _curve(points: list[tuple[float, float]], colour: str, count: int) -> str:
    steps = [f"M {points[0][0]:.0f} {points[0][1]:.0f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        steps.append(f"C {x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}")
    thick = 1.5 + min(count, 30) / 12
    return f'<path class="line" d="{" ".join(steps)}" stroke="{colour}" stroke-width="{thick:.1f}"/>'


def arrow_head(x: float, y: float, colour: str) -> str:
    """Return the head of an arrow that points down to this place."""
    return f'<path d="M {x - 5:.0f} {y - 9:.0f} L {x + 5:.0f} {y - 9:.0f} L {x:.0f} {y:.0f} Z" fill="{colour}"/>'


def _label(x: float, y: float, text: str, colour: str) -> str:
    return f'<text class="count" x="{x:.0f}" y="{y:.0f}" style="fill: {colour}">{escape(text)}</text>'


def _draw_level_line(frame: _Frame, edge: Edge, label: str, colour: str, kind: str = "line") -> Iterator[str]:
    """Draw a line between two neighbours of one row: to the right above the middle, to the left below it."""
    source, target = edge
    right = frame.centre(source) < frame.centre(target)
    sign = 1 if right else -1
    x0 = frame.centre(source) + sign * BOX_WIDTH / 2
    x1 = frame.centre(target) - sign * BOX_WIDTH / 2
    y = frame.top(source) + frame.height(source) / 2 - sign * 10
    yield f'<path class="{kind}" d="M {x0:.0f} {y:.0f} H {x1 - sign * 8:.0f}" stroke="{colour}" stroke-width="1.5"/>'
    back = x1 - sign * 9
    yield f'<path d="M {back:.0f} {y - 5:.0f} L {back:.0f} {y + 5:.0f} L {x1:.0f} {y:.0f} Z" fill="{colour}"/>'
    yield _label((x0 + x1) / 2, y - 8 if right else y + 18, label, colour)
