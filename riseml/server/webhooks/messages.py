"""The message to a webhook: the body in its format, and the headers with its signature. Pure."""

from __future__ import annotations

import hashlib
import hmac
import json

from riseml import __version__
from riseml.server.webhooks.notices import Notice
from riseml.server.webhooks.webhook_file import Webhook, WebhookFormat


def make_body(webhook: Webhook, notice: Notice, delivery: str) -> bytes:
    """Return the body. `delivery` is the same whenever this notice is sent to this webhook."""
    sentence = f"riseml: {notice.sentence}"
    match webhook.format:
        case WebhookFormat.JSON:
            body: object = {**notice.document, "delivery": delivery}
        case WebhookFormat.SLACK:
            body = {"text": _escape_markup(sentence)}
        case WebhookFormat.DISCORD:
            body = {"content": sentence, "allowed_mentions": {"parse": []}}
    return json.dumps(body).encode()


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


def _escape_markup(text: str) -> str:
    """Return a text in which Slack finds no link, no mention and no channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
