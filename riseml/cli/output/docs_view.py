"""A page of the docs on a terminal, and the list of pages."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable

from riseml import wire
from riseml.cli.output.style import Style, paint

_WIDEST = 100  # columns of a page: longer lines are hard to read
_LEAST = 30  # columns that a summary has beside the names of topics
_LINK = re.compile(r"`[^`\n]*`|(!?)\[([^\]]*)\]\(([^)\s]+)\)")  # or code, in which nothing is a link
_BLOCK = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
_LANGUAGE = re.compile(r"^( *```).*$", re.MULTILINE)

FindTopic = Callable[[str], str | None]
"""Returns the topic that the target of a link is; None: it is no topic."""


def list_docs_topics(topics: Iterable[wire.DocsTopicView], style: Style) -> list[str]:
    """Return the lines of all topics, below their sections."""
    listed = list(topics)
    names = max((len(topic["topic"]) for topic in listed), default=0) + 4
    room = None if style.width is None else max(_LEAST, style.width - names)
    lines: list[str] = []
    section = ""
    for topic in listed:
        if topic["section"] != section:
            section = topic["section"]
            lines += ["", paint(f"{section}:", "1", colour=style.colour)]
        summary = [topic["summary"]] if room is None else textwrap.wrap(topic["summary"], room)
        lines.append(f"  {topic['topic']:<{names - 2}}{summary[0]}")
        lines += [" " * names + part for part in summary[1:]]
    return lines[1:]


def render_page(text: str, find_topic: FindTopic, style: Style) -> list[str]:
    """Return the lines of a page of Markdown as a terminal shows them. A link to another page names its command."""
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    names = ("h1", "h2", "h3", "h4", "strong", "item.bullet", "item.number", "table.header", "table.border")
    styles = {f"markdown.{name}": "bold" for name in names} | {"markdown.table.border": "none"}
    styles |= {
        "markdown.code": "cyan",
        "markdown.code_block": "cyan",
        "markdown.em": "none",
        "markdown.h1.border": "none",
    }
    written = io.StringIO()
    console = Console(
        file=written,
        width=min(style.width or _WIDEST, _WIDEST),
        force_terminal=True,
        color_system="standard" if style.colour else None,
        no_color=not style.colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        theme=Theme(styles, inherit=True),
    )
    console.print(Markdown(_name_links(text, find_topic), code_theme="ansi_dark", hyperlinks=False))
    return written.getvalue().rstrip("\n").split("\n")


def _name_links(text: str, find_topic: FindTopic) -> str:
    """Return a page with words in place of links and pictures; code stays as it is, but for its language."""
    parts = _BLOCK.split(text)
    parts[::2] = [_LINK.sub(lambda match: _describe_link(match, find_topic), part) for part in parts[::2]]
    parts[1::2] = [_LANGUAGE.sub(r"\1", part, count=1) for part in parts[1::2]]
    return "".join(parts)


def _describe_link(match: re.Match[str], find_topic: FindTopic) -> str:
    picture, text, target = match.groups()
    if target is None:
        return match[0]
    if picture:
        return f"(A picture: {text}.)"
    if target.startswith(("https://", "http://")):
        return f"{text} ({target})"
    topic = find_topic(target.partition("#")[0]) if not target.startswith("#") else None
    if topic is None:
        return str(text)
    command = f"`riseml docs {topic}`"
    return command if text.endswith(".md") else f"{text} ({command})"
