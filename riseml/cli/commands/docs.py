"""`docs`: the pages that riseml brings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext
    from riseml.cli.docs_topics import DocsTopic


def show_docs(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", show_default=False, help="A page. Default: list all pages.")
    ] = None,
    *,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in your browser, with a search.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a page of the docs that riseml brings, or list them.

    A terminal shows the page in your pager (PAGER, else less). Anything else gets its Markdown: `riseml docs riseml-yml
    | grep retry`.
    """
    from riseml.cli.docs_topics import find_site_page, find_topic, list_topics

    command: CommandContext = context.obj
    page = None if topic is None else find_topic(topic)
    if open_page:
        _open_page(command, find_site_page(page), json=json)
    elif page is None:
        _list_topics(command, list_topics(), json=json)
    else:
        _show_page(command, page, json=json)


def _open_page(command: CommandContext, file: os.PathLike[str], *, json: bool) -> None:
    from riseml.cli.browser import LONGEST_OPENING, open_in_browser

    opened: wire.OpenedPage = {"path": os.fspath(file)}
    if json:
        command.printer.print_json(opened)
    else:
        command.printer.print_lines([opened["path"]])
    open_in_browser(f"file://{opened['path']}").join(LONGEST_OPENING)


def _list_topics(command: CommandContext, topics: tuple[DocsTopic, ...], *, json: bool) -> None:
    from riseml.cli.output.docs_view import list_docs_topics

    views: list[wire.DocsTopicView] = [
        {"topic": topic.name, "section": topic.section, "summary": topic.summary} for topic in topics
    ]
    if json:
        command.printer.print_json({"topics": views})
        return
    command.printer.print_lines(list_docs_topics(views, command.printer.style))
    command.printer.say("`riseml docs TOPIC` shows a page, and `riseml docs --open` all of them in your browser.")


def _show_page(command: CommandContext, page: DocsTopic, *, json: bool) -> None:
    text = page.read()
    if json:
        view: wire.DocsPage = {"topic": page.name, "summary": page.summary, "text": text}
        command.printer.print_json(view)
    elif not command.printer.live:
        command.printer.print_lines(text.splitlines())
    else:
        _show_on_terminal(command, page, text)


def _show_on_terminal(command: CommandContext, page: DocsTopic, text: str) -> None:
    from riseml.cli.docs_topics import list_topics
    from riseml.cli.output.docs_view import render_page

    names = {topic.file: topic.name for topic in list_topics()}

    def find_name(target: str) -> str | None:
        return names.get(page.file.parent.joinpath(target).resolve())

    command.printer.print_pages(render_page(text, find_name, command.printer.style), command.environ)
