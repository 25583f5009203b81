"""A report: Markdown with charts, tables and media of runs in fenced blocks. Pure.

    ```chart
    runs: [4, 5]
    metric: loss
    ```

The Markdown becomes a flat list of pieces with tags of a fixed list, which each reader turns into elements or into
escaped HTML: HTML in the text is text, links lead to web addresses alone, and pictures are links.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import yaml

from riseml.base.errors import UsageError
from riseml.base.names import parse_id
from riseml.spec.scalars.texts import is_valid_text

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST_TEXT = 50_000
"""Characters of a report."""

MOST_BLOCKS = 50
"""Charts, tables and media of a report."""

MOST_RUNS = 50
"""Runs of one block."""

_MOST_COLUMNS = 50
_LONGEST_WORD = 300  # characters of a name, a column or a title
_LARGEST_STEP = 10**15 - 1
_MOST_NESTING = 20  # of Markdown
_MOST_KEPT = 16  # texts whose blocks are kept

BlockKind = Literal["text", "chart", "table", "media", "problem"]
PieceKind = Literal["open", "close", "text", "code", "fence", "break", "rule"]

_KEYS: Mapping[str, tuple[str, ...]] = {
    "chart": ("runs", "metric", "title"),
    "table": ("runs", "columns", "title"),
    "media": ("runs", "name", "step", "title"),
}
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "chart": ("runs", "metric"),
    "table": ("runs", "columns"),
    "media": ("runs", "name"),
}
_TAGS = frozenset(
    (
        *("p", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "ul", "ol", "li", "a"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    )
)
_LEAVES: Mapping[str, PieceKind] = {  # by the type of a token without others in it
    "text": "text",
    "softbreak": "text",
    "hardbreak": "break",
    "hr": "rule",
    "code_inline": "code",
    "fence": "fence",
    "code_block": "fence",
}
_MOST_BITS = 1024  # of a number: Python writes no number of any length in digits
_WEB = re.compile(r"(https?://|/(?![/\\])|#)", re.IGNORECASE)


class Piece(NamedTuple):
    """A part of a text: the begin or the end of an element, or characters."""

    kind: PieceKind
    tag: str = ""  # of `open` and `close`
    text: str = ""  # the characters
    href: str = ""  # of a link


class Block(NamedTuple):
    """A part of a report."""

    kind: BlockKind
    line: int  # of the text, from 1
    pieces: tuple[Piece, ...] = ()  # of `text`
    runs: tuple[str, ...] = ()  # IDs as they are written
    metric: str = ""
    columns: tuple[str, ...] = ()
    name: str = ""  # of media
    step: int | None = None  # of media; None: the last one
    title: str = ""
    problem: str = ""


@functools.lru_cache(maxsize=_MOST_KEPT)
def read_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks of a report; what is wrong becomes a block that says so. The last texts are kept.

    Raises:
        UsageError: the text is too long, or has too many charts, tables and media.
    """
    from markdown_it import MarkdownIt

    if len(text) > LONGEST_TEXT:
        raise UsageError(f"the report has {len(text):,} characters; at most {LONGEST_TEXT:,} are kept", "shorten it")
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MOST_NESTING}).enable(["table", "strikethrough"])
    blocks: list[Block] = []
    tokens: list[Token] = []
    for token in parser.parse(text):
        kind = token.info.strip() if token.type == "fence" else ""
        if kind not in _KEYS or token.level:
            tokens.append(token)
            continue
        _add_text(blocks, tokens)
        tokens = []
        blocks.append(_read_block(kind, token.content, token.map[0] + 1 if token.map else 1))
    _add_text(blocks, tokens)
    if sum(block.kind != "text" for block in blocks) > MOST_BLOCKS:
        raise UsageError(
            f"the report has more than {MOST_BLOCKS} charts, tables and media", "make two reports that link each other"
        )
    return tuple(blocks)


def check_report(text: str) -> None:
    """Check the text of a report.

    Raises:
        UsageError: it is empty or too long, or a block is wrong.
    """
    if not text.strip():
        raise UsageError("the report is empty", "write Markdown, with charts in blocks: ```chart")
    problems = [block for block in read_blocks(text) if block.kind == "problem"]
    if problems:
        more = f"; {len(problems) - 1} more blocks are wrong" if len(problems) > 1 else ""
        raise UsageError(f"line {problems[0].line}: {problems[0].problem}{more}", "correct the block, and save again")


def find_title(text: str) -> str:
    """Return the first heading of a report; empty: it has none."""
    for block in read_blocks(text):
        inside = False
        words = ""
        for piece in block.pieces:
            if piece.tag in ("h1", "h2"):
                if inside:
                    return words[:_LONGEST_WORD]
                inside = piece.kind == "open"
            elif inside:
                words += piece.text
    return ""


def _add_text(blocks: list[Block], tokens: Sequence[Token]) -> None:
    pieces = tuple(_list_pieces(tokens))
    if pieces:
        line = next((token.map[0] + 1 for token in tokens if token.map), 1)
        blocks.append(Block("text", line, pieces))


def _list_pieces(tokens: Sequence[Token]) -> Iterator[Piece]:
    for token in tokens:
        match token.type:
            case "inline":
                yield from _list_pieces(token.children or [])
            case kind if kind in _LEAVES:
                yield Piece(_LEAVES[kind], text="\n" if kind == "softbreak" else token.content)
            case "image":
                yield from _link(str(token.attrs.get("src", "")), token.content or "picture")
            case _ if token.tag in _TAGS and token.nesting and not token.hidden:
                href = _choose_address(str(token.attrs.get("href", ""))) if token.tag == "a" else ""
                yield Piece("open" if token.nesting > 0 else "close", token.tag, href=href)


def _link(address: str, words: str) -> Iterator[Piece]:
    """Yield a picture of the web as a link: a report loads nothing from elsewhere."""
    yield Piece("open", "a", href=_choose_address(address))
    yield Piece("text", text=words)
    yield Piece("close", "a")


def _choose_address(address: str) -> str:
    """Return the address of a link; empty: it leads to no web page."""
    return address if _WEB.match(address) else ""


def _read_block(kind: str, body: str, line: int) -> Block:
    try:
        return _check_block(kind, _parse_keys(kind, body), line)
    except UsageError as error:
        return Block("problem", line, problem=error.message)


def _parse_keys(kind: str, body: str) -> dict[str, object]:
    keys = ", ".join(_KEYS[kind])
    try:
        values = yaml.safe_load(body)
    except yaml.MarkedYAMLError as error:
        raise UsageError(f"{kind}: {error.problem or 'the block is no YAML'}") from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        raise UsageError(f"{kind}: the block is no YAML") from None
    if not isinstance(values, dict):
        raise UsageError(f"{kind}: write lines such as `runs: [4, 5]`; the keys are {keys}")
    for key in values:
        if key not in _KEYS[kind]:
            named = f"no key {key[:80]!r}" if isinstance(key, str) else "no such key"
            raise UsageError(f"{kind}: there is {named}; the keys are {keys}")
    for key in _NEEDED[kind]:
        if values.get(key) in (None, "", []):
            raise UsageError(f"{kind}: `{key}` is missing")
    return values


def _check_block(kind: str, values: Mapping[str, object], line: int) -> Block:
    runs = tuple(_read_words(kind, "runs", values["runs"], MOST_RUNS))
    for run in runs:
        parsed = parse_id(run)
        if parsed.job is not None:
            raise UsageError(f"{kind}: {run} is a job; name its experiment")
    columns = tuple(_read_words(kind, "columns", values["columns"], _MOST_COLUMNS)) if kind == "table" else ()
    metric, name, title = (_read_word(kind, key, values.get(key, "")) for key in ("metric", "name", "title"))
    step = values.get("step")
    if step is not None and (not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= _LARGEST_STEP):
        raise UsageError(f"{kind}: `step` is a number of at most 15 digits")
    return Block(
        kind,  # type: ignore[arg-type]  # `_KEYS` has these kinds alone
        line,
        runs=runs,
        metric=metric,
        columns=columns,
        name=name,
        step=step,
        title=title,
    )


def _read_words(kind: str, key: str, value: object, most: int) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if len(values) > most:
        raise UsageError(f"{kind}: `{key}` has {len(values):,} values; at most {most} are shown")
    return [_read_word(kind, key, each) for each in values]


def _read_word(kind: str, key: str, value: object) -> str:
    is_huge = isinstance(value, int) and value.bit_length() > _MOST_BITS
    if isinstance(value, bool) or is_huge or not isinstance(value, (str, int, float)):
        raise UsageError(f"{kind}: `{key}` is a text of at most {_LONGEST_WORD} characters, or a list of such")
    word = str(value)
    if len(word) > _LONGEST_WORD:
        raise UsageError(f"{kind}: `{key}` has {len(word):,} characters; at most {_LONGEST_WORD} are shown")
    if not is_valid_text(word):
        raise UsageError(f"{kind}: `{key}` contains an invalid character (NUL or half a surrogate pair)")
    return word
