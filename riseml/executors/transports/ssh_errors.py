"""Why ssh ended, or why the engine's socket behind a tunnel does not open: ssh's words, each with its explanation.

ssh has one exit code (255) for all its own failures, so its messages are the only source. The tunnel runs it with
LC_ALL=C, and the messages are those of OpenSSH 8 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from riseml.executors.transports.diagnosis import Diagnosis
from riseml.executors.transports.ssh_command import Destination, show_options

_LONGEST_LINE = 200  # characters of ssh's own words in a message
_BORING_LINES = ("Warning: Permanently added", "debug")


def _explain_changed_key(destination: Destination, _: re.Match[str]) -> Diagnosis:
    return Diagnosis(
        f"its host key is not the one pinned in {destination.known_hosts}: another machine answers in its "
        "place, or the host was installed again",
        f"ask its owner for the fingerprint; only if it is right: `riseml pool trust {destination.name}`",
    )


def _explain_unknown_key(destination: Destination, match: re.Match[str]) -> Diagnosis:
    url = destination.url
    host = match["host"] or ""
    key = "its host key" if host in ("", url.host, f"[{url.host}]:{url.port}") else f"the host key of {host}"
    port = "" if url.port is None else f"-p {url.port} "
    return Diagnosis(
        f"{key} is not pinned in {destination.known_hosts}",
        f"compare the fingerprint and pin it: `riseml pool trust {destination.name}`, or "
        f"`ssh-keyscan {port}{url.host} >> {destination.known_hosts}`",
    )


def _explain_open_identity(destination: Destination, _: re.Match[str]) -> Diagnosis:
    identity = destination.identity
    return Diagnosis(f"ssh does not use {identity}: other users may read it", f"chmod 600 {identity}")


def _explain_refused_login(destination: Destination, match: re.Match[str]) -> Diagnosis:
    return Diagnosis(
        f"{match['login']} refuses the login ({match['methods']})",
        f"try `ssh {show_options(destination)} true`: it must work without a question",
    )


_EXPLANATIONS: tuple[tuple[re.Pattern[str], Callable[[Destination, re.Match[str]], Diagnosis]], ...] = (
    (re.compile(r"IDENTIFICATION HAS CHANGED|host key for .* has changed"), _explain_changed_key),
    (re.compile(r"No (\S+ )?host key is known for (?P<host>\S+)"), _explain_unknown_key),
    (re.compile(r"(?P<host>)Host key verification failed"), _explain_unknown_key),
    (re.compile(r"UNPROTECTED PRIVATE KEY FILE"), _explain_open_identity),
    (re.compile(r"(?P<login>\S+): Permission denied \((?P<methods>[^)]*)\)"), _explain_refused_login),
)
"""What ssh's words mean; the first pattern that is found counts."""


def explain_ssh_end(destination: Destination, lines: Sequence[str], code: int) -> Diagnosis:
    """Return why ssh ended.

    Args:
        destination: where the tunnel leads.
        lines: what ssh printed last.
        code: its exit code; negative: the signal that ended it.
    """
    text = "\n".join(lines)
    for pattern, explain in _EXPLANATIONS:
        match = pattern.search(text)
        if match is not None:
            return explain(destination, match)
    if code < 0:
        return Diagnosis(f"ssh was ended by signal {-code}", "riseml starts it again")
    last = next((line for line in reversed(lines) if line.strip() and not line.startswith(_BORING_LINES)), "")
    hint = f"try `ssh {show_options(destination)} true`"
    return Diagnosis(f"ssh ended with exit code {code}" + (f": {_shorten(last)}" if last else ""), hint)


def explain_refused_socket(destination: Destination, lines: Sequence[str]) -> Diagnosis | None:
    """Return why the engine's socket does not open although the tunnel is up; None when ssh's last line is about
    something else.
    """
    if not lines or "open failed" not in lines[-1]:
        return None
    socket = destination.url.socket
    return Diagnosis(
        f"ssh gets in, but {socket} on the host cannot be opened ({_shorten(lines[-1])})",
        f"does Docker run there, and may this user use it? `ssh {show_options(destination)} ls -l {socket}`",
    )


def _shorten(line: str) -> str:
    return "".join(char for char in line.removeprefix("ssh: ").strip() if char.isprintable())[:_LONGEST_LINE]
