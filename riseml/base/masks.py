"""Known secret values in text: found in the forms in which programs print them, and replaced by `***`. Pure.

The forms of a value are the value itself, base64 and base64url at each of the three places at which it can stand in
encoded text, the lines into which programs break the base64 of a long value, hexadecimal digits, percent-encoding with
digits of either case, and the escapes of JSON. Of a value with several lines each line has its forms, too, because a
log is read line by line. A text shorter than `LEAST_MASKED` is none: to mask it would hide ordinary words.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

LEAST_MASKED = 6  # bytes
MASK = b"***"

_ESCAPE = re.compile(b"%[0-9A-Fa-f]{1,2}")  # the last one of a text that goes on may lack a digit
_BITS = 6  # of a character of base64
_COLUMNS = (76, 64)  # after which programs break base64: base64(1) and MIME, openssl(1) and PEM

Span = tuple[int, int]
"""Where a text begins, and where it ends."""


class Masker:
    """The forms of some values.

    Args:
        values: that must not be seen.

    Example:
        >>> Masker(["hf_s3cret"]).mask_text("token=hf_s3cret")
        'token=***'
    """

    def __init__(self, values: Iterable[str]) -> None:
        self.values = frozenset(values)
        # the longest first: where a form begins with another one, it is found as a whole
        self._forms = sorted({form for value in self.values for form in list_forms(value)}, key=len, reverse=True)
        escaped = {form for value in self.values for form in list_escaped_forms(value)}
        self._escaped_forms = sorted(escaped, key=len, reverse=True)
        # a text without any of these has no form
        self._needles = _list_shortest(self._forms)
        self._escaped_needles = _list_shortest(self._escaped_forms)

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to mask."""
        return not self._forms

    def mask_text(self, text: str) -> str:
        """Return a text without the values."""
        data = text.encode("utf-8", "surrogateescape")
        return self.mask(data).decode("utf-8", "surrogateescape") if self.may_hold(data) else text

    def mask(self, data: bytes) -> bytes:
        """Return bytes without the values."""
        return replace_spans(data, self.find_spans(data))

    def may_hold(self, data: bytes) -> bool:
        """Return whether there is a value in these bytes."""
        if any(needle in data for needle in self._needles):
            return True
        if not self._escaped_needles or b"%" not in data:
            return False
        escaped = _raise_escapes(data)
        return any(needle in escaped for needle in self._escaped_needles)

    def find_spans(self, data: bytes) -> list[Span]:
        """Return where the values are, in order. Values that overlap are one span."""
        spans = [span for form in self._forms for span in _find_all(data, form)]
        if self._escaped_forms and b"%" in data:
            escaped = _raise_escapes(data)
            spans += [span for form in self._escaped_forms for span in _find_all(escaped, form)]
        spans.sort()
        merged: list[Span] = []
        for start, end in spans:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        return merged

    def find_open_start(self, data: bytes) -> int:
        """Return where a value may begin that these bytes do not end; their length when there is none."""
        first = min((_find_beginning(data, form) for form in self._forms), default=len(data))
        if not self._escaped_forms:
            return first
        longest = len(self._escaped_forms[0])
        before = data[:-longest]
        end = _raise_escapes(data[len(before) :])
        return min([first, *(len(before) + _find_beginning(end, form) for form in self._escaped_forms)])


def replace_spans(data: bytes, spans: Iterable[Span]) -> bytes:
    """Return bytes with `***` in place of each span."""
    pieces: list[bytes] = []
    position = 0
    for start, end in spans:
        pieces += (data[position:start], MASK)
        position = end
    return b"".join([*pieces, data[position:]])


def list_forms(value: str) -> set[bytes]:
    """Return the forms of one value without those that have escapes; none of a short one."""
    return {
        form
        for text in _list_texts(value)
        for form in _list_forms_of(text)
        if len(form) >= LEAST_MASKED and b"\n" not in form
    }


def list_escaped_forms(value: str) -> set[bytes]:
    """Return the forms of one value that have percent escapes, with digits in upper case; none of a short one."""
    return {form for text in _list_texts(value) for form in _encode_percents(text) if b"%" in form}


def _list_texts(value: str) -> set[bytes]:
    """Return a value and its lines, as far as they are long enough."""
    whole = value.encode("utf-8", "surrogateescape")
    texts = {whole, whole.rstrip(b"\r\n"), *whole.splitlines(), *(line.strip() for line in whole.splitlines())}
    return {text for text in texts if len(text) >= LEAST_MASKED and text.strip()}


def _list_shortest(forms: list[bytes]) -> list[bytes]:
    """Return the forms that have no other one in them."""
    return [form for form in forms if not any(other != form and other in form for other in forms)]


def _list_forms_of(text: bytes) -> Iterator[bytes]:
    yield text
    for encoded in _encode_base64(text):
        yield encoded
        yield encoded.translate(bytes.maketrans(b"+/", b"-_"))
    yield text.hex().encode()
    yield text.hex().upper().encode()
    yield from (form for form in _encode_percents(text) if b"%" not in form)
    decoded = text.decode("utf-8", "surrogateescape")
    for ascii_only in (True, False):
        escaped = json.dumps(decoded, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogateescape")
        yield escaped
        yield escaped.replace(b"/", b"\\/")


def _encode_base64(text: bytes) -> Iterator[bytes]:
    """Yield the text in base64 with and without padding, the part that is the same wherever the text stands, and the
    lines of a text that is encoded by itself.
    """
    whole = base64.b64encode(text)
    yield whole
    yield whole.rstrip(b"=")
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + text)
        first = -(-before * 8 // _BITS)
        last = (before + len(text)) * 8 // _BITS
        yield encoded[first:last]
    for encoded in (whole, base64.b64encode(text + b"\n")):  # `echo` prints a line
        for columns in _COLUMNS:
            if len(encoded) > columns:
                yield from (encoded[start : start + columns] for start in range(0, len(encoded), columns))


def _encode_percents(text: bytes) -> Iterator[bytes]:
    yield quote(text, safe="").encode()
    yield quote(text, safe="/").encode()
    yield quote_plus(text).encode()


def _raise_escapes(data: bytes) -> bytes:
    """Return bytes of the same length, with the digits of percent escapes in upper case."""
    return _ESCAPE.sub(lambda match: match[0].upper(), data)


def _find_beginning(data: bytes, form: bytes) -> int:
    """Return where a form may begin that these bytes do not end; their length when it does not."""
    at = max(0, len(data) - len(form) + 1)
    while (at := data.find(form[:1], at)) >= 0:
        if form.startswith(data[at:]):
            return at
        at += 1
    return len(data)


def _find_all(data: bytes, form: bytes) -> Iterator[Span]:
    at = data.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = data.find(form, at + 1)


NOTHING_MASKED = Masker(())
