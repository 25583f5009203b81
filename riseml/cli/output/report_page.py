"""A report as one HTML file that needs no network: text, charts as SVG, tables, and pictures as data. Pure.

Every text is escaped; tags come from the server's pieces, of which only those of a fixed list are written. The file
says itself that nothing may be loaded and that no script may run.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from riseml.base.records import dataclass
from riseml.cli.output.chart import Chart, ChartSeries, has_points
from riseml.cli.output.svg_plot import draw_svg
from riseml.cli.output.text import clean_text, format_metric

if TYPE_CHECKING:
    from riseml import wire

MOST_CURVES = 50
"""Curves of one chart."""

PICTURES: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
}
"""Content types of pictures, by their endings."""

_TAGS = frozenset(
    (
        *("p", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "ul", "ol", "li", "a"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    )
)
_WEB = re.compile("https?://", re.IGNORECASE)
_STYLE = (
    "body{font:15px/1.55 system-ui,sans-serif;max-width:900px;margin:32px auto;padding:0 20px;color:#16191f}"
    "table{border-collapse:collapse;margin:12px 0}th,td{border:1px solid #e3e6eb;padding:4px 10px;text-align:left}"
    "pre{background:#f7f8fa;padding:10px;overflow:auto}img,svg{max-width:100%;height:auto}"
    "figure{display:inline-block;margin:8px 16px 8px 0;vertical-align:top}"
    "figcaption,.soft{color:#59616e;font-size:13px}"
)
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class MediaContent:
    """One file of media in an exported report."""

    run: str
    step: int
    ending: str  # `png`
    content: bytes


@dataclass(frozen=True, slots=True)
class BlockContent:
    """What a block of a report shows, as it was when the report was exported."""

    curves: Sequence[wire.Curve] = ()
    table: wire.TableView | None = None
    media: Sequence[MediaContent] = ()
    problem: str = ""  # why it shows nothing; empty: nothing went wrong


def make_report_page(report: wire.ReportView, contents: Sequence[BlockContent], moment: str) -> str:
    """Return the HTML file of a report. `contents` has an entry for each block."""
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{_escape(report['title'])}</title><style>{_STYLE}</style></head><body>",
    ]
    for block, content in zip(report["blocks"], contents, strict=True):
        lines += _list_block(block, content)
    lines.append(f'<p class="soft">riseml report {_escape(report["id"])}, version {report["version"]}, {moment}</p>')
    return "\n".join([*lines, "</body></html>", ""])


def describe_absent(count: int) -> str:
    """Return the sentence about runs that a reader does not see."""
    runs = "1 run" if count == 1 else f"{count} runs"
    return f"{runs} of this part {'is' if count == 1 else 'are'} not there, or not shared with you."


def _list_block(block: wire.ReportBlock, content: BlockContent) -> Iterator[str]:
    if block["kind"] == "text":
        yield "".join(_write_pieces(block["pieces"]))
        return
    if block["title"] and block["kind"] != "chart":
        yield f"<h3>{_escape(block['title'])}</h3>"
    if block["problem"] or content.problem:
        yield f'<p class="soft">{_escape(block["problem"] or content.problem)}</p>'
    elif block["kind"] == "chart":
        chart = _make_chart(block, content.curves)
        yield (
            draw_svg(chart)
            if has_points(chart)
            else f'<p class="soft">No run has {_escape(block["metric"])} so far.</p>'
        )
    elif content.table is not None:
        yield _write_table(content.table)
    else:
        yield from (_write_media(block["name"], media) for media in content.media)
        if not content.media:
            yield f'<p class="soft">No run has {_escape(block["name"])} so far.</p>'
    if block["absent"]:
        yield f'<p class="soft">{describe_absent(block["absent"])}</p>'


def _write_pieces(pieces: Sequence[wire.ReportPiece]) -> Iterator[str]:
    for piece in pieces:
        match piece["kind"]:
            case "open" | "close" if piece["tag"] in _TAGS:
                yield _write_tag(piece)
            case "code":
                yield f"<code>{_escape(piece['text'])}</code>"
            case "fence":
                yield f"<pre>{_escape(piece['text'])}</pre>"
            case "break":
                yield "<br>"
            case "rule":
                yield "<hr>"
            case "text":
                yield _escape(piece["text"])


def _write_tag(piece: wire.ReportPiece) -> str:
    if piece["kind"] == "close":
        return f"</{piece['tag']}>"
    if piece["tag"] == "a" and _WEB.match(piece["href"]):  # an address of the server leads nowhere in a file
        return f'<a href="{escape(piece["href"])}" rel="noopener noreferrer">'
    return f"<{piece['tag']}>"


def _make_chart(block: wire.ReportBlock, curves: Sequence[wire.Curve]) -> Chart:
    counted = any(step is None for curve in curves[:MOST_CURVES] for step in curve["step"])
    series = tuple(
        ChartSeries(
            clean_text(curve["id"]),
            tuple(
                (float(place if counted or step is None else step), mean)
                for place, (step, mean) in enumerate(zip(curve["step"], curve["mean"], strict=False), 1)
                if isinstance(mean, float)
            ),
        )
        for curve in curves[:MOST_CURVES]
    )
    title = clean_text(block["title"] or block["metric"])
    note = f"{MOST_CURVES} of {len(curves)} curves" if len(curves) > MOST_CURVES else ""
    return Chart(title, "report" if counted else "step", clean_text(block["metric"]), series, note=note)


def _write_table(table: wire.TableView) -> str:
    heads = "".join(f"<th>{_escape(name)}</th>" for name in ("ID", *table["columns"]))
    rows = "".join(
        f"<tr><td>{_escape(row['id'])}</td>{''.join(f'<td>{_write_cell(cell)}</td>' for cell in row['cells'])}</tr>"
        for row in table["rows"]
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _write_cell(cell: str | float | None) -> str:
    return _escape(format_metric(cell) if isinstance(cell, float) else str(cell or ""))


def _write_media(name: str, media: MediaContent) -> str:
    words = _escape(f"{name} of {media.run}, step {media.step}")
    caption = f"<figcaption>{words}</figcaption>"
    kind = PICTURES.get(media.ending)
    if kind is None:
        return f"<figure>{caption}<pre>{_escape(media.content.decode('utf-8', 'replace'))}</pre></figure>"
    data = base64.b64encode(media.content).decode()
    return f'<figure>{caption}<img alt="{words}" src="data:{kind};base64,{data}"></figure>'


def _escape(text: str) -> str:
    return escape("".join(character for character in text if character in "\n\t" or character.isprintable()))
