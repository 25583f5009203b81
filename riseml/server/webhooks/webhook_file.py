"""The file with the webhooks of a home: notify.yml. Only its user may read or write it, because it holds secrets."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from riseml.base.errors import UsageError
from riseml.base.folders import read_private_file
from riseml.base.records import dataclass
from riseml.base.states import TERMINAL, State
from riseml.base.text_yaml import is_nothing, load_texts, read_switch
from riseml.spec.config.types import NotifySection

FILE = "notify.yml"
"""The name of the file in RISEML_HOME."""

_LARGEST = 2**18  # bytes
_MOST = 20  # webhooks
_LONGEST_URL = 2000
_LONGEST_SECRET = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_KEYS = frozenset({"name", "url", "secret", "events", "projects", "format", "insecure"})
_REMARK = "remark"  # the event beside ends
_PRINTABLE = re.compile(r"[!-~]+")


class WebhookFormat(Enum):
    """What is sent."""

    JSON = "json"  # every field, for programs
    SLACK = "slack"  # one sentence for Slack, Mattermost, Rocket.Chat and others that read `text`
    DISCORD = "discord"  # one sentence for Discord


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that gets notices."""

    name: str  # for the log; a webhook with a new name is a new webhook, which gets only later ends
    url: str = field(repr=False)  # such addresses often contain a secret
    secret: str = field(default="", repr=False)  # signs what is sent; empty: not signed
    states: frozenset[State] = TERMINAL  # the states whose ends it gets from every project
    projects: frozenset[str] | None = None  # None: of all projects; on a team's server they are team projects
    format: WebhookFormat = WebhookFormat.JSON
    remarks: bool = False  # it gets the remarks about experiments of every project

    def wants(self, project: str | None, state: State, notify: NotifySection | None = None) -> bool:
        """Return True when this webhook gets the end: notify.yml chooses it, or the project asks for it."""
        is_asked = notify is not None and state in notify.ends and self._is_named(notify)
        return self._takes(project) and (state in self.states or is_asked)

    def wants_reached(self, project: str | None, notify: NotifySection | None) -> bool:
        """Return True when this webhook gets the milestones of a project."""
        return notify is not None and self._takes(project) and self._is_named(notify)

    def wants_remarks(self, project: str | None, notify: NotifySection | None) -> bool:
        """Return True when this webhook gets the remarks about an experiment."""
        is_asked = notify is not None and notify.remarks and self._is_named(notify)
        return self._takes(project) and (self.remarks or is_asked)

    def _takes(self, project: str | None) -> bool:
        return self.projects is None or project in self.projects

    def _is_named(self, notify: NotifySection) -> bool:
        return not notify.to or self.name in notify.to


def read_webhooks(home: Path) -> tuple[Webhook, ...]:
    """Return the webhooks of a home; none without the file.

    Raises:
        Refused: another user may read or write the file.
        UsageError: the file has a mistake; the message does not contain its values.
    """
    data = read_private_file(home / FILE, _LARGEST)
    return () if data is None else _parse(data)


def find_file_time(home: Path) -> datetime:
    """Return when the file was last changed; a new webhook in it gets the ends from then on."""
    return datetime.fromtimestamp((home / FILE).lstat().st_mtime, UTC)


def _parse(data: bytes) -> tuple[Webhook, ...]:
    try:
        document = load_texts(data)
    except ValueError:
        raise _make_mistake("it is not YAML") from None
    rows = document.get("webhooks") if isinstance(document, dict) and document.keys() == {"webhooks"} else None
    if not isinstance(rows, list) or len(rows) > _MOST:
        raise _make_mistake(f"it has one key, `webhooks`, with a list of at most {_MOST}")
    hooks = tuple(_parse_webhook(row, place) for place, row in enumerate(rows, 1))
    if len({hook.name for hook in hooks}) < len(hooks):
        raise _make_mistake("two webhooks have one name")
    return hooks


def _parse_webhook(row: Any, place: int) -> Webhook:
    if not isinstance(row, dict) or not {"name", "url"} <= row.keys() <= _KEYS:
        raise _make_mistake(f"webhook {place} needs name and url, and may have {', '.join(sorted(_KEYS))}")
    name = str(row["name"])
    url = str(row["url"])
    secret = "" if is_nothing(row.get("secret", "")) else str(row["secret"])
    if not _NAME.fullmatch(name):
        raise _make_mistake(f"the name of webhook {place} is not up to 40 letters a-z, digits and -")
    if len(secret) > _LONGEST_SECRET or (secret and not _PRINTABLE.fullmatch(secret)):
        raise _make_mistake(f"the secret of {name} is not up to {_LONGEST_SECRET} printable characters without spaces")
    _check_url(name, url, plain_is_allowed=read_switch(row.get("insecure")) is True)
    events = row.get("events", ["finished", "failed", "killed"])
    projects = row.get("projects", "")
    try:
        kind = WebhookFormat(row.get("format", "json"))
        states = frozenset(State(str(event).upper()) for event in events if event != _REMARK)
    except (ValueError, TypeError):
        raise _make_mistake(
            f"{name}: `format` is json, slack or discord, `events` a list of finished, failed, killed, remark"
        ) from None
    are_lists = isinstance(events, list) and (is_nothing(projects) or isinstance(projects, list))
    if not are_lists or not states <= TERMINAL:
        raise _make_mistake(
            f"{name}: `events` is a list of finished, failed, killed, remark, and `projects` a list of names"
        )
    names = None if is_nothing(projects) else frozenset(map(str, projects))
    return Webhook(name, url, secret, states, names, kind, _REMARK in events)


def _check_url(name: str, url: str, *, plain_is_allowed: bool) -> None:
    """Refuse texts that are not addresses, and addresses without TLS, unless they are on this machine or the user
    allows them."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable or len(url) > _LONGEST_URL or not _PRINTABLE.fullmatch(url) or "@" in parts.netloc:
        raise _make_mistake(f"the url of {name} is not an address such as https://hooks.example.org/services/x")
    if parts.scheme == "http" and not plain_is_allowed and not _is_loopback(parts.hostname or ""):
        raise _make_mistake(f"the url of {name} has no TLS: write https://, or `insecure: true` beside it")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _make_mistake(problem: str) -> UsageError:
    return UsageError(
        f"{FILE} cannot be used: {problem}", "`riseml docs monitoring` has an example; nothing is sent until then"
    )
