"""A profile as a flame graph: an SVG picture in which the width of each call is its part of the samples.

The picture has no script and loads nothing. A pointer on a call shows its name and its part.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from riseml.base.records import dataclass
from riseml.diagnosis.profile import Profile, ProfileStack

_WIDTH = 1200.0  # pixels
_ROW = 18  # pixels of one call
_HEAD = 44  # pixels above the calls
_LETTER = 6.6  # pixels of one letter
_NARROWEST = 0.5  # pixels of a call that is drawn
_COLOURS = ("#e8815c", "#eca25f", "#efc264", "#d9b55a", "#e39a74", "#f0b27a")


@dataclass(frozen=True, slots=True)
class _Box:
    """A call of the picture."""

    call: str
    depth: int  # from 0, the outermost
    start: int  # samples before it
    count: int  # samples in it


def draw_flame_graph(profile: Profile, title: str) -> str:
    """Return a profile as an SVG picture, the outermost calls at the top.

    Args:
        profile: to draw.
        title: the first line of the picture.
    """
    boxes = list(_find_boxes(profile.stacks))
    height = _HEAD + _ROW * (1 + max((box.depth for box in boxes), default=0)) + 10
    scale = _WIDTH / max(profile.count, 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" height="{height}"'
        f' viewBox="0 0 {_WIDTH:.0f} {height}" font-family="monospace" font-size="11">',
        f'<rect width="{_WIDTH:.0f}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="24" font-size="14">{_clean(title)}</text>',
    ]
    for box in boxes:
        if box.count * scale >= _NARROWEST:
            lines.append(_draw_box(box, scale, profile.count))
    return "\n".join([*lines, "</svg>", ""])


def _find_boxes(stacks: tuple[ProfileStack, ...]) -> Iterator[_Box]:
    """Yield the calls of sorted stacks; neighbours with the same calls below them are one box."""
    open_boxes: list[tuple[str, int]] = []  # call and start
    start = 0
    for stack in stacks:
        equal = 0
        while equal < min(len(open_boxes), len(stack.calls)) and open_boxes[equal][0] == stack.calls[equal]:
            equal += 1
        yield from _close_boxes(open_boxes, equal, start)
        open_boxes[equal:] = [(call, start) for call in stack.calls[equal:]]
        start += stack.count
    yield from _close_boxes(open_boxes, 0, start)


def _close_boxes(open_boxes: list[tuple[str, int]], first: int, end: int) -> Iterator[_Box]:
    for depth in range(first, len(open_boxes)):
        call, start = open_boxes[depth]
        yield _Box(call, depth, start, end - start)


def _draw_box(box: _Box, scale: float, whole: int) -> str:
    left = box.start * scale
    width = box.count * scale
    top = _HEAD + box.depth * _ROW
    letters = int((width - 6) / _LETTER)
    label = box.call if len(box.call) <= letters else f"{box.call[: letters - 2]}.." if letters > 3 else ""
    text = f'<text x="{left + 3:.1f}" y="{top + 13}">{_clean(label)}</text>' if label else ""
    colour = _COLOURS[sum(box.call.encode("utf-8", "replace")) % len(_COLOURS)]
    part = 100 * box.count / max(whole, 1)
    return (
        f'<g><title>{_clean(box.call)}: {part:.1f} % ({box.count} samples)</title><rect x="{left:.1f}" y="{top}"'
        f' width="{max(width - 0.5, _NARROWEST):.1f}" height="{_ROW - 1}" rx="2" fill="{colour}"/>{text}</g>'
    )


def _clean(text: str) -> str:
    return escape("".join(letter if letter.isprintable() else "?" for letter in text))
