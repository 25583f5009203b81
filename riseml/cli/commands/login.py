"""`login`, `logout` and `context`: the servers of teams that this user works with."""

from __future__ import annotations

import ipaddress
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from riseml.base.errors import Refused, UsageError
from riseml.cli.commands.options import JsonOption
from riseml.cli.context import CommandContext
from riseml.cli.device_login import API_KEY, log_in_at_provider
from riseml.cli.help_text import add_subcommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from riseml import wire
    from riseml.client.contexts import Contexts, ServerContext
    from riseml.client.exchange import Address
    from riseml.client.server_trust import ShownCertificate

context_app = typer.Typer(help="Show the servers that you have logged in to, and choose one.")

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_STDIN = "-"
_LONGEST_LINE = 4096  # bytes of a key with what surrounds it

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A context; `local` is your own server.")]


def log_in(  # noqa: PLR0913  # one parameter for each option of the command
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the server is: https://gpu1:8443.")],
    *,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="URL", help="Where a standby of the server is; repeatable.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Call the context so. Default: the host of the URL.")
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option("--key-file", metavar="FILE", help="Read the key from FILE, or from standard input with `-`."),
    ] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option("--fingerprint", metavar="SHA256:...", help="Trust the server that shows this, without asking."),
    ] = None,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask; only with --fingerprint.")] = False,
    json: JsonOption = False,
) -> None:
    """Log in to a team's server: compare its fingerprint once, and give a key.

    A key comes from --key-file, or from standard input that is no terminal. Without one, you log in at your
    organisation's provider where the server has one: open the address that is printed, anywhere, and confirm the code.
    Otherwise a prompt asks for the key. It is kept in `config` of riseml's home, which you alone can read.
    """
    from riseml.client import contexts as store
    from riseml.client.server_client import Address, Client

    command: CommandContext = context.obj
    if yes and fingerprint is None:
        raise UsageError(
            "--yes trusts no server that nobody has compared",
            "give --fingerprint SHA256:..., which `riseml server init` has printed",
        )
    address = check_login_url(url)
    standbys = _check_standbys(address, also or [])
    path = store.find_context_file(command.settings())
    contexts = store.read_contexts(path)
    own_name = store.check_context_name(name or _choose_name(address))
    before = next((server for server in contexts.servers if server.name == own_name), None)
    if before is not None and address not in (before.url, *before.also):
        raise UsageError(
            f"the context {own_name} is {before.url}", f"choose another name: `riseml login {address} --name NAME`"
        )
    trusted = _trust_server(command, address, fingerprint, before)
    authority = trusted.authority if trusted else ""
    for standby in standbys:
        _compare_standby(command, standby, authority)
    key = _obtain_key(command, Address(None, address, authority=authority, also=standbys), key_file)
    with Client(Address(None, address, key, authority, standbys)) as client:
        caller: wire.CallerView = client.open_accounts().get_caller()
    pin = (trusted.fingerprint, trusted.authority) if trusted else ("", "")
    server = store.ServerContext(own_name, address, caller["user"], key, *pin, also=standbys)
    store.write_contexts(path, contexts.add(server))
    if json:
        command.printer.print_json({**_show_context(server, is_current=True), "role": caller["role"]})
    else:
        lines = [f"Logged in to {address} as {caller['user']} ({caller['role']})."]
        command.printer.print_lines([*lines, f"Commands go to {own_name} now; `riseml context use local` goes back."])


def log_out(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The context. Default: the current one.", show_default=False)
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Forget the key of a server. Its pinned certificate stays.

    A login at your organisation's provider ends at the server, too. A key itself stays valid: `riseml key revoke`
    ends it everywhere.
    """
    from dataclasses import replace

    from riseml.client.contexts import LOCAL, Contexts, find_context_file, read_contexts, write_contexts

    command: CommandContext = context.obj
    path = find_context_file(command.settings())
    contexts = read_contexts(path)
    chosen = name or contexts.current
    if chosen == LOCAL:
        raise UsageError("your own server has no key to forget", "`riseml context` shows where you have logged in")
    server = contexts.find(chosen)
    has_ended = _end_session(command, server)
    servers = tuple(replace(other, key="") if other is server else other for other in contexts.servers)
    write_contexts(path, Contexts(LOCAL if contexts.current == chosen else contexts.current, servers))
    if json:
        values = {"context": server.name, "had_key": bool(server.key), "session_ended": has_ended}
        command.printer.print_json(values)
        return
    lines = [f"There was no key of {server.url}."]
    if has_ended:
        lines = [f"Logged {server.user or 'a user'} out of {server.url}: the session has ended there."]
    elif server.key:
        lines = [f"Forgot the key of {server.user or 'a user'} at {server.url}."]
    if contexts.current == chosen:
        lines.append(f"Commands go to your own server now; `riseml login {server.url}` goes back.")
    command.printer.print_lines(lines)


def _end_session(command: CommandContext, server: ServerContext) -> bool:
    """End the session of a login at the provider. Return False for a key, and where the server did not end it."""
    from riseml.base.api_keys import SESSION_PREFIX
    from riseml.base.errors import RisemlError, Unauthenticated
    from riseml.client.server_client import Address, Client

    if not server.key.startswith(SESSION_PREFIX):
        return False
    try:
        with Client(Address(None, server.url, server.key, server.authority, server.also)) as client:
            accounts = client.open_accounts()
            accounts.end_session(accounts.get_caller()["key"])
    except Unauthenticated:
        return True  # it has ended already
    except RisemlError as error:
        command.printer.warn(
            f"the session has not ended at {server.url}: {error.message}; log in again and run `riseml session list`"
            " to end it, or it ends by itself after a while without use"
        )
        return False
    return True


@context_app.callback(invoke_without_command=True)
def list_contexts(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the servers that you have logged in to, and where commands go."""
    if context.invoked_subcommand is None:
        _print_contexts(context.obj, json=json)


@add_subcommand(context_app, "list", "riseml context list")
def list_all_contexts(context: typer.Context, *, json: JsonOption = False) -> None:
    """List the servers that you have logged in to, and where commands go."""
    _print_contexts(context.obj, json=json)


@add_subcommand(context_app, "use", "riseml context use gpu1", "riseml context use local")
def use_context(context: typer.Context, name: NameArgument, *, json: JsonOption = False) -> None:
    """Send commands to another server from now on."""
    from riseml.client.contexts import find_context_file, read_contexts, write_contexts

    command: CommandContext = context.obj
    path = find_context_file(command.settings())
    chosen = read_contexts(path).choose(name)
    write_contexts(path, chosen)
    if json:
        command.printer.print_json({"current": chosen.current})
    else:
        command.printer.print_lines([f"Commands go to {chosen.current} now."])


@add_subcommand(context_app, "show", "riseml context show gpu1")
def show_context(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The context. Default: the current one.", show_default=False)
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Show one context: address, user and fingerprint, and never the key."""
    from riseml.client.contexts import LOCAL

    command: CommandContext = context.obj
    contexts = _read_contexts(command)
    chosen = name or contexts.current
    fields = (
        _show_own(command, contexts)
        if chosen == LOCAL
        else _show_context(contexts.find(chosen), contexts.current == chosen)
    )
    if json:
        command.printer.print_json(fields)
    else:
        command.printer.print_lines(
            [f"{title.capitalize()}: {value}" for title, value in fields.items() if value != ""]
        )


@add_subcommand(context_app, "remove", "riseml context remove gpu1")
def remove_context(context: typer.Context, name: NameArgument, *, json: JsonOption = False) -> None:
    """Forget a server: its key and its pinned certificate."""
    from riseml.client.contexts import LOCAL, find_context_file, read_contexts, write_contexts

    command: CommandContext = context.obj
    if name == LOCAL:
        raise UsageError(f"{LOCAL} is your own server, which is always there", "`riseml context` lists the others")
    path = find_context_file(command.settings())
    left = read_contexts(path).remove(name)
    write_contexts(path, left)
    if json:
        command.printer.print_json({"removed": name, "current": left.current})
    else:
        command.printer.print_lines([f"Removed the context {name}. Commands go to {left.current}."])


def check_login_url(text: str) -> str:
    """Return the address of a server, as the contexts keep it.

    Raises:
        UsageError: it is no address of a server.
        Refused: keys would travel without TLS.
    """
    from riseml.client.exchange import is_loopback

    hint = "give an address such as https://gpu1:8443"
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        port = parts.port
    except ValueError:
        raise UsageError(f"{text!r} is not the address of a server", hint) from None
    is_whole = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0 or " " in text or not is_whole:
        raise UsageError(f"{text!r} is not the address of a server", hint)
    url = f"{parts.scheme}://{parts.netloc.lower()}"
    if parts.scheme == "http" and not is_loopback(url):
        raise Refused(f"{url} is not encrypted: a key is never sent without TLS", hint)
    return url


def _check_standbys(url: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses of standbys.

    Raises:
        UsageError: one is no address, or is there twice.
        Refused: keys would travel without TLS.
    """
    standbys = [check_login_url(text) for text in texts]
    twice = next((standby for standby in standbys if [url, *standbys].count(standby) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice", "give each address of the server once")
    return tuple(standbys)


def _compare_standby(command: CommandContext, url: str, authority: str) -> None:
    """Check that a standby shows the certificate of the same authority as its server.

    Raises:
        Refused: it does not.
    """
    from riseml.base.errors import Unreachable
    from riseml.client.server_trust import is_trusted, make_tls_context

    if not url.startswith("https://"):
        return
    try:
        is_same = is_trusted(url, make_tls_context(authority))
    except Unreachable:
        command.printer.say(f"{url} does not answer now: its certificate is compared when a command asks there.")
        return
    if not is_same:
        raise Refused(
            f"{url} shows a certificate that is not of the authority of the server, or not for this address",
            "a standby shares the home of its server, with its authority; `names` in server.yml has the names of both",
        )


def _trust_server(
    command: CommandContext, url: str, fingerprint: str | None, before: ServerContext | None
) -> ShownCertificate | None:
    """Return the certificate that is pinned from now on; None: the authorities of the system are trusted.

    Raises:
        UsageError: the fingerprint is none.
        Refused: the server shows another certificate than it should, or nobody can compare it.
    """
    from riseml.client.server_trust import is_trusted, make_tls_context, read_certificate

    if fingerprint is not None and _FINGERPRINT.fullmatch(fingerprint) is None:
        hint = "copy it as `riseml server init` has printed it: SHA256: and 43 characters"
        raise UsageError(f"{fingerprint!r} is not a fingerprint", hint)
    if not url.startswith("https://"):
        return None
    if fingerprint is None and (before is None or not before.authority) and is_trusted(url, make_tls_context()):
        command.printer.say(f"The certificate of {url} comes from an authority that this system trusts.")
        return None
    certificate = read_certificate(url)
    if not is_trusted(url, make_tls_context(certificate.authority)):
        names = ", ".join(certificate.names) or "no name"
        raise Refused(
            f"the certificate of {url} is not valid for this address: it is for {names}",
            "use one of these names; or the admin adds this one to `names` in server.yml",
        )
    if fingerprint is not None and fingerprint != certificate.fingerprint:
        message = (
            f"{url} shows {certificate.fingerprint}, not {fingerprint}: somebody may be between you and the server"
        )
        raise Refused(f"{message}; nothing was sent", "ask the admin for the fingerprint of the server")
    if fingerprint is None and (before is None or before.fingerprint != certificate.fingerprint):
        _ask_about(command, url, certificate, before.fingerprint if before else "")
    return certificate


def _ask_about(command: CommandContext, url: str, certificate: ShownCertificate, before: str) -> None:
    """Let the user compare the fingerprint of a server.

    Raises:
        Refused: nobody can, or the user says no.
    """
    if before:
        command.printer.warn(f"the authority of {url} has changed: you trusted {before}. Somebody may be in between.")
    command.printer.say(f"{url} shows the fingerprint {certificate.fingerprint}, which you have not compared yet.")
    if not command.asks:
        raise Refused(
            "nobody can compare the fingerprint: there is no terminal to ask on",
            f"ask the admin for it, and give it: --fingerprint {certificate.fingerprint}",
        )
    if not command.ask("Is it the one that the admin has given you?"):
        hint = "the admin sees it with `riseml server fingerprint`"
        raise Refused("the server is not trusted; nothing was sent", hint)


def _obtain_key(command: CommandContext, address: Address, key_file: str | None) -> str:
    """Return what lets the user in: the key that they give, or a session of their provider.

    Raises:
        Refused: the user or the provider has refused the login.
        UsageError, OSError: as `_read_key`.
    """
    if key_file is None and command.asks:
        from riseml.client.server_client import Client

        with Client(address) as client:
            secret = log_in_at_provider(command, client.open_accounts())
        if secret is not None:
            return secret
    return _read_key(command, address.url, key_file)


def _read_key(command: CommandContext, url: str, key_file: str | None) -> str:
    """Return the key that the user gives.

    Raises:
        UsageError: there is none, or it is none.
        OSError: the file cannot be read.
    """
    if key_file is not None and key_file != _STDIN:
        with Path(command.folder, key_file).expanduser().open("rb") as file:
            content = file.read(_LONGEST_LINE)
    elif key_file is None and command.asks:
        content = command.ask_for_secret(f"Key for {url}").encode()
    else:
        content = b"" if sys.stdin is None else sys.stdin.buffer.readline(_LONGEST_LINE)
    text = content.decode("utf-8", "replace").strip()
    if API_KEY.fullmatch(text) is None:
        hint = "an admin makes one with `riseml user create` or `riseml key create`"
        raise UsageError("this is not a key" if text else "there is no key", hint)
    return text


def _choose_name(url: str) -> str:
    """Return the name of a context without --name: the first part of the host's name, or its IP address."""
    host = urlsplit(url).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.partition(".")[0]
    return host.strip("[]").replace(":", "-").strip("-")


def _read_contexts(command: CommandContext) -> Contexts:
    from riseml.client.contexts import find_context_file, read_contexts

    return read_contexts(find_context_file(command.settings()))


def _show_context(server: ServerContext, is_current: bool) -> dict[str, str | bool]:  # noqa: FBT001 - a value that is shown
    return {
        "context": server.name,
        "current": is_current,
        "url": server.url,
        "also": ", ".join(server.also),
        "user": server.user,
        "key": bool(server.key),
        "fingerprint": server.fingerprint,
    }


def _show_own(command: CommandContext, contexts: Contexts) -> dict[str, str | bool]:
    from riseml.client.contexts import LOCAL

    where = str(command.settings().socket)
    return {
        "context": LOCAL,
        "current": contexts.current == LOCAL,
        "url": where,
        "also": "",
        "user": "",
        "key": False,
        "fingerprint": "",
    }


def _print_contexts(command: CommandContext, *, json: bool) -> None:
    from riseml.cli.output.tables import Column, build_table

    contexts = _read_contexts(command)
    servers = [_show_context(server, server.name == contexts.current) for server in contexts.servers]
    rows = [_show_own(command, contexts), *servers]
    if json:
        command.printer.print_json({"current": contexts.current, "contexts": rows})
        return
    cells = [
        ["*" if row["current"] else "", str(row["context"]), str(row["url"]), str(row["user"]), _say_key(row)]
        for row in rows
    ]
    command.printer.print_lines(
        build_table([Column(title) for title in ("", "NAME", "SERVER", "USER", "KEY")], cells, command.printer.style)
    )


def _say_key(row: dict[str, str | bool]) -> str:
    if not str(row["url"]).startswith("http"):
        return "-"
    return "yes" if row["key"] else "logged out"
