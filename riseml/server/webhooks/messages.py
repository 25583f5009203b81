"""What a webhook is sent: the body in its format, and the headers that sign it. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json

from riseml import __version__
from riseml.names import experiment_name
from riseml.server.webhooks.webhook_file import Webhook, WebhookFormat
from riseml.store.ends import ExperimentEnd
from riseml.terminal_text import plain_line

_LONGEST_MESSAGE = 1000  # characters


def make_body(webhook: Webhook, end: ExperimentEnd, delivery: str) -> bytes:
    """Return what is sent. `delivery` is the same whenever this end is sent to this webhook."""
    match webhook.format:
        case WebhookFormat.JSON:
            found: object = _make_document(end, delivery)
        case WebhookFormat.SLACK:
            found = {"text": _escape_markup(_make_sentence(end))}
        case WebhookFormat.DISCORD:
            found = {"content": _make_sentence(end), "allowed_mentions": {"parse": []}}
    return json.dumps(found).encode()


def make_headers(webhook: Webhook, body: bytes, delivery: str, moment: int) -> dict[str, str]:
    """Return the headers of a request that is sent at `moment`, in seconds since 1970."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"riseml/{__version__}",
        "Riseml-Delivery": delivery,
        "Riseml-Time": str(moment),
    }
    if webhook.secret:
        headers["Riseml-Signature"] = "sha256=" + sign(webhook.secret, moment, body)
    return headers


def sign(secret: str, moment: int, body: bytes) -> str:
    """Return HMAC-SHA256 in hex over the moment, a dot and the body, with the secret as UTF-8."""
    return hmac.new(secret.encode(), str(moment).encode() + b"." + body, hashlib.sha256).hexdigest()


def _make_document(end: ExperimentEnd, delivery: str) -> dict[str, object]:
    return {
        "event": "experiment.ended",
        "delivery": delivery,
        "experiment": {
            "id": experiment_name(end.number, end.sub),
            "user": end.user,
            "project": end.project,
            "state": end.state.value,
            "reason": end.reason,
            "message": _clean(end.message),
            "started_at": None if end.started_at is None else f"{end.started_at:%Y-%m-%dT%H:%M:%SZ}",
            "ended_at": f"{end.ended_at:%Y-%m-%dT%H:%M:%SZ}",
        },
    }


def _make_sentence(end: ExperimentEnd) -> str:
    took = ""
    if end.started_at is not None:
        took = f" after {max(0, int((end.ended_at - end.started_at).total_seconds()))} s"
    why = f": {_clean(end.message)}" if end.message else ""
    return f"riseml: experiment {experiment_name(end.number, end.sub)} of {end.project} {end.state.value}{took}{why}"


def _clean(text: str) -> str:
    """Return a message, which may quote a job, as one short line without codes of a terminal."""
    line = " ".join(plain_line(text).split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"


def _escape_markup(text: str) -> str:
    """Return a text in which Slack finds no link, no mention and no channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
