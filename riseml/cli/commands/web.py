"""`web`: the address of the web page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.errors import UsageError
from riseml.cli.commands.options import JsonOption

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

_LEAST_PORT = 1
_HIGHEST_PORT = 65_535


OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in your browser.")]
StopOption = Annotated[bool, typer.Option("--stop", help="Close the page, and end the session of every browser.")]
SessionsOption = Annotated[bool, typer.Option("--sessions", help="List the sessions of browsers.")]
EndOption = Annotated[
    str, typer.Option("--end", metavar="SESSION", show_default=False, help="End one session, which --sessions lists.")
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=_LEAST_PORT,
        max=_HIGHEST_PORT,
        metavar="N",
        show_default=False,
        help="Listen at this port of 127.0.0.1. Default: the port that the page had before, else a free one.",
    ),
]


def open_web_page(
    context: typer.Context,
    *,
    open_browser: OpenOption = False,
    port: PortOption = None,
    stop: StopOption = False,
    sessions: SessionsOption = False,
    end: EndOption = "",
    json: JsonOption = False,
) -> None:
    """Show your experiments in a browser.

    The server listens at 127.0.0.1 from this command on, and prints an address that lets one browser in, once.
    The page goes on when the server restarts; --stop closes it.
    """
    if (sessions or end) and (stop or open_browser or port is not None or (sessions and end)):
        raise UsageError("--sessions and --end take no other option", "leave the others out")
    if stop and (open_browser or port is not None):
        raise UsageError("--stop closes the page, so that it takes neither --open nor --port", "leave them out")
    command: CommandContext = context.obj
    with command.connect() as client:
        if client.address.socket is None:
            raise UsageError(
                f"{client.address} is not your own server, so this command cannot open its page",
                f"a team's server has its page at {client.address}: open it in a browser, and log in there;"
                " `--server local` opens the page of your own server",
            )
        if sessions or end:
            left = client.end_web_session(end) if end else client.list_web_sessions()
            _show_sessions(command, left, json=json)
            return
        page = client.close_web_page() if stop else client.open_web_page(port)
    if json:
        command.printer.print_json(page)
    elif stop:
        command.printer.print_lines(["The web page is closed."])
    else:
        _show_address(command, page)
    if open_browser:
        _open_in_browser(command, page)


def _show_sessions(command: CommandContext, sessions: wire.WebSessions, *, json: bool) -> None:
    from riseml.cli.output.text import clean_text

    if json:
        command.printer.print_json(sessions)
        return
    lines = [
        f"{session['id']}  opened {session['opened_at']}  until {session['until']}" for session in sessions["sessions"]
    ]
    command.printer.print_lines([*map(clean_text, lines)] or ["No browser has a session."])


def _show_address(command: CommandContext, view: wire.WebView) -> None:
    from riseml.cli.output.text import clean_text

    command.printer.print_lines([clean_text(str(view["url"]))])
    command.printer.say("The address lets one browser in, once, within ten minutes.")


def _open_in_browser(command: CommandContext, view: wire.WebView) -> None:
    """Open the address in the browser through a local page that only this user can read.

    That page stays in the home, because the browser may read it after this command has ended; its token works once. The
    next call removes it.

    Raises:
        UsageError: the address is not one of this machine.
    """
    from riseml.cli.browser import LONGEST_OPENING, open_in_browser
    from riseml.cli.companion import write_leading_page

    address = str(view["url"])
    folder = command.settings().home / "web"
    if not re.fullmatch(r"http://127\.0\.0\.1:[0-9]{1,5}/enter\?token=[\w-]+", address, re.ASCII):
        raise UsageError("the server answered with an address that is not one of this machine", "open no such page")
    for former in folder.glob("open-*.html"):
        former.unlink(missing_ok=True)
    page = write_leading_page(address, folder)
    open_in_browser(page.as_uri()).join(LONGEST_OPENING)
