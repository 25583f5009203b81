"""Explain an error of a store in one sentence. The texts of stores are not trusted: only their codes are used."""

from __future__ import annotations

import re
from enum import Enum

from riseml.base.errors import EngineError
from riseml.data_stores.remote import SourceChanged, StoreUnavailable
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import WEB, DataUrl

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_REGION = re.compile(r"expecting '([a-z0-9-]{1,40})'")
_OWN_FILE = "stores.yml"
_DETAILS = "Debug source"  # obstore's words before what the libraries below it say
_UNTRUSTED = "InvalidCertificate"  # the word of its TLS library
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_WRONG_KEYS = frozenset(
    {"SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidToken", "ExpiredToken", "AuthenticationFailed"}
)
_WRONG_REGION = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"})
_BUSY = frozenset({408, 429})
_NO_RIGHT = frozenset({401, 403, 407})


class Purpose(Enum):
    """What the server does with an address: the word in messages, and the permission that it needs."""

    FETCH = ("fetched", "read it")
    SAVE = ("saved", "write and read there")


def explain_store_error(url: DataUrl, store: Store, text: str, purpose: Purpose = Purpose.FETCH) -> EngineError:
    """Return the error for what obstore said."""
    text, _, details = text.partition(_DETAILS)
    verb, right_to = purpose.value
    status = _STATUS.search(text)
    code = _CODE.search(text)
    number = int(status[1]) if status else 0
    name = code[1] if code else ""
    at = f" at {store.endpoint}" if store.endpoint else ""
    if name in _NO_BUCKET:
        return _refuse(f"{url} cannot be {verb}: there is no bucket {url.place}{at}", "check the name and the endpoint")
    if name in _WRONG_REGION or "redirect without LOCATION" in text:
        right = _REGION.search(text)
        hint = f"write `region: {right[1]}`" if right else "write the region of the bucket"
        return _refuse(
            f"{url} cannot be {verb}: {store.region} is not its region", f"{hint} for {store.name} in {_OWN_FILE}"
        )
    if name in _WRONG_KEYS or number == 401:
        suffix = f" ({name})" if name else ""
        return _refuse(
            f"{url} cannot be {verb}: the keys of the store {store.name} are wrong{suffix}",
            _name_place_of_keys(store),
        )
    if name == "RequestTimeTooSkewed":
        return _refuse(
            f"{url} cannot be {verb}: the clock of this machine and that of the store differ",
            "set the clock of this machine",
        )
    if number == 403 or (number == 412 and not store.access_key_id):
        return _refuse(
            f"{url} cannot be {verb}: the store {store.name} has no right to {right_to}",
            f"allow it at the store, or {_name_place_of_keys(store)}",
        )
    if not number and _UNTRUSTED in details:
        return explain_untrusted(url)
    if not number:
        return StoreUnavailable(f"{url}: the store{at} does not answer")
    return explain_status(url, number, purpose)


def explain_untrusted(url: DataUrl) -> EngineError:
    """Return the error for a certificate of an authority that this machine does not know."""
    text = f"{url}: this machine does not trust the server's certificate"
    return _refuse(text, "check the address, or start the riseml server with SSL_CERT_FILE=/path/to/your/authority.pem")


def explain_status(url: DataUrl, status: int, purpose: Purpose = Purpose.FETCH) -> EngineError:
    """Return the error for an HTTP status alone."""
    verb, _ = purpose.value
    if status >= 500 or status in _BUSY:
        return StoreUnavailable(f"{url}: the store answers {status}, so that it cannot be used now")
    if status in (404, 412):
        return SourceChanged(f"{url} changed while it was {verb}, or is gone")
    if 300 <= status < 400:
        return _refuse(
            f"{url} leads to another address ({status}), and riseml follows none", "name that address in riseml.yml"
        )
    if url.scheme in WEB and status in _NO_RIGHT:
        hint = "put the file where it can be read without keys, or into an object store: riseml sends web servers none"
        return _refuse(f"{url} cannot be {verb}: the server answers {status}", hint)
    hint = f"check the address, and what {_OWN_FILE} has for it"
    return _refuse(f"{url} cannot be {verb}: the store answers {status}", hint)


def _name_place_of_keys(store: Store) -> str:
    """Return where the user changes the keys of a store."""
    if store.passed_keys:
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to keys that it takes, and run it again"
    return f"change the keys in {_OWN_FILE}"


def _refuse(message: str, hint: str) -> EngineError:
    return EngineError(message, hint, permanent=True)
