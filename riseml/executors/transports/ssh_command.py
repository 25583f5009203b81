"""The OpenSSH client's command line for a tunnel, and its last words explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from riseml.errors import UsageError
from riseml.spec.pool.types import HostSpec
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url

_OPTIONS = {
    "IgnoreUnknown": "KnownHostsCommand",  # older clients do not have it
    "BatchMode": "yes",  # nobody is there to type anything
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "KnownHostsCommand": "none",
    "VerifyHostKeyDNS": "no",
    "UpdateHostKeys": "no",
    "CheckHostIP": "no",
    "ExitOnForwardFailure": "yes",
    "StreamLocalBindUnlink": "yes",
    "StreamLocalBindMask": "0177",
    "ControlMaster": "no",  # a shared connection would not end with us
    "ControlPath": "none",
    "ControlPersist": "no",
    "RemoteCommand": "none",
    "LogLevel": "INFO",
    "PermitLocalCommand": "yes",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a tunnel leads. `known_hosts` has the pinned keys; without an `identity` ssh uses what it finds."""

    name: str
    url: EngineUrl
    known_hosts: Path
    identity: Path | None = None


def find_destination(spec: HostSpec, home: Path) -> Destination:
    """Where the tunnel of a host leads. `home` is riseml's: its known_hosts has the keys, unless the host has another.

    Raises:
        UsageError: the host is not reached over ssh.
    """
    url = parse_engine_url(spec.url)
    if url.scheme is not Scheme.SSH:
        raise UsageError(f"host {spec.name} is not reached over ssh, but at {url}", "only ssh has host keys to pin")
    known_hosts = Path(spec.known_hosts) if spec.known_hosts else home / "known_hosts"
    return Destination(spec.name, url, known_hosts, Path(spec.identity) if spec.identity else None)


def arguments(destination: Destination, socket: Path, word: str, timing: Mapping[str, int]) -> list[str]:
    """The command.

    Args:
        destination: where the tunnel leads.
        socket: its near end.
        word: what ssh says when the tunnel stands.
        timing: ssh's options for that, in seconds.
    """
    url = destination.url
    options = {**_OPTIONS, "UserKnownHostsFile": _quoted(destination.known_hosts), "LocalCommand": f"echo {word}"}
    options |= {name: str(value) for name, value in timing.items()}
    command = ["ssh", "-N", "-T", "-a", "-x", "-L", f"{socket}:{url.socket}"]
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    if destination.identity is not None:
        command += ["-o", f"IdentityFile={_quoted(destination.identity)}", "-o", "IdentitiesOnly=yes"]
    if url.port is not None:
        command += ["-p", str(url.port)]
    if url.user is not None:
        command += ["-l", url.user]
    return [*command, "--", url.host]


def explain_end(destination: Destination, words: Sequence[str], code: int) -> tuple[str, str]:
    """Why ssh has ended with this exit code, and what to do next; negative: a signal."""
    text = "\n".join(words)
    if "IDENTIFICATION HAS CHANGED" in text or ("host key for" in text and "has changed" in text):
        return _changed_key(destination)
    unknown = re.search(r"No (\S+ )?host key is known for (\S+)", text)
    if unknown is not None or "Host key verification failed" in text:
        return _unknown_key(destination, unknown[2] if unknown else "")
    if "UNPROTECTED PRIVATE KEY FILE" in text:
        return f"ssh does not use {destination.identity}: others may read it", f"chmod 600 {destination.identity}"
    refused = re.search(r"(\S+): Permission denied \(([^)]*)\)", text)
    if refused is not None:
        hint = f"try `ssh {_plain_options(destination)} true`: it must work without a question"
        return f"{refused[1]} does not let us in ({refused[2]})", hint
    if code < 0:
        return f"ssh was ended by signal {-code}", "it is started again"
    said = next((line for line in reversed(words) if _is_telling(line)), "")
    hint = f"try `ssh {_plain_options(destination)} true`"
    return f"ssh has ended with exit code {code}" + (f": {_shortened(said)}" if said else ""), hint


def explain_refused_socket(destination: Destination, words: Sequence[str]) -> tuple[str, str] | None:
    """The tunnel stands, and its far end does not open; None when ssh's last word is something else."""
    if not words or "open failed" not in words[-1]:
        return None
    socket = destination.url.socket
    hint = f"does Docker run there, and may this user use it? `ssh {_plain_options(destination)} ls -l {socket}`"
    return f"ssh gets in, but {socket} there cannot be opened ({_shortened(words[-1])})", hint


def _changed_key(destination: Destination) -> tuple[str, str]:
    return (
        f"its host key is not the one that is pinned in {destination.known_hosts}: another machine answers in its "
        "place, or it was set up anew",
        f"ask its owner for the fingerprint; only if it is right: `riseml pool trust {destination.name}`",
    )


def _unknown_key(destination: Destination, host: str) -> tuple[str, str]:
    url = destination.url
    whose = "its host key" if host in ("", url.host, f"[{url.host}]:{url.port}") else f"the host key of {host}"
    port = "" if url.port is None else f"-p {url.port} "
    return (
        f"{whose} is not pinned in {destination.known_hosts}",
        f"compare the fingerprint and pin it: `riseml pool trust {destination.name}`, or "
        f"`ssh-keyscan {port}{url.host} >> {destination.known_hosts}`",
    )


def _plain_options(destination: Destination) -> str:
    """How a person would call the host."""
    url = destination.url
    words = [] if destination.identity is None else ["-i", str(destination.identity)]
    words += [] if url.port is None else ["-p", str(url.port)]
    return " ".join([*words, url.host if url.user is None else f"{url.user}@{url.host}"])


def _is_telling(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(("Warning: Permanently added", "debug"))


def _shortened(line: str) -> str:
    return "".join(char for char in line.removeprefix("ssh: ").strip() if char.isprintable())[:200]


def _quoted(path: Path) -> str:
    """A path as ssh's options want it: one word, and none of its expansions."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'
