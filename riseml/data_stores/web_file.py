"""One file of a web server. No redirect is followed: an allowed address could lead to one that is not allowed."""

from __future__ import annotations

import httpx

from riseml.base.errors import EngineError
from riseml.data_stores.remote import RemoteFile, SourceChanged, StoreUnavailable, TransferInterrupted
from riseml.data_stores.store_errors import explain_status, explain_untrusted
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import DataUrl

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_PLAIN = {"Accept-Encoding": "identity"}  # bytes as they are, so that ranges and sizes are those of the file
_OK = 200
_PART = 206
_WRONG_RANGE = 416
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"  # OpenSSL's code; httpx keeps it in the message of its ConnectError


class WebFile:
    """One file at an address."""

    def __init__(self, url: DataUrl, store: Store) -> None:
        del store  # it has no keys: web servers that need them are not supported
        self._url = url
        self._client = httpx.Client(timeout=_TIMEOUT, follow_redirects=False, headers=_PLAIN)

    def list_files(self) -> list[RemoteFile]:
        """Return the file."""
        try:
            with self._client.stream("GET", str(self._url)) as answer:
                size = self._check(answer).get("content-length", "")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._explain_silence(error) from None
        if (
            answer.status_code != _OK
            or not size.isdecimal()
            or answer.headers.get("content-encoding", "identity") != "identity"
        ):
            raise EngineError(f"{self._url}: the server does not say how large the file is", permanent=True)
        return [RemoteFile(self._url.names[-1], int(size), _read_mark(answer))]

    def read(self, file: RemoteFile, start: int, stop: int) -> bytes:
        """Return a range of the file."""
        headers = {} if (start, stop) == (0, file.size) else {"Range": f"bytes={start}-{stop - 1}"}
        data = bytearray()
        try:
            with self._client.stream("GET", str(self._url), headers=headers) as answer:
                self._check(answer)
                if headers and answer.status_code != _PART:
                    text = f"{self._url}: the server gives no parts of files, which large ones need"
                    raise EngineError(text, "put the file into an object store", permanent=True)
                for piece in answer.iter_raw():
                    data += piece
                    if len(data) > stop - start:
                        break
        except (httpx.HTTPError, httpx.InvalidURL):
            raise TransferInterrupted(f"{self._url}: the connection broke") from None
        if len(data) != stop - start or _read_mark(answer) != file.etag:
            raise SourceChanged(f"{self._url} changed while it was fetched")
        return bytes(data)

    def _explain_silence(self, error: Exception) -> EngineError:
        if _UNTRUSTED in str(error):
            return explain_untrusted(self._url)
        return StoreUnavailable(f"{self._url}: the server does not answer")

    def _check(self, answer: httpx.Response) -> httpx.Headers:
        if answer.status_code not in (_OK, _PART):
            if answer.status_code == httpx.codes.NOT_FOUND:
                raise EngineError(f"there is nothing at {self._url}", "check the address", permanent=True)
            raise (
                SourceChanged(f"{self._url} changed")
                if answer.status_code == _WRONG_RANGE
                else explain_status(self._url, answer.status_code)
            )
        return answer.headers


def _read_mark(answer: httpx.Response) -> str:
    """Return the header that changes with the content: the ETag, or the modification time."""
    headers = answer.headers
    return str(headers.get("etag") or headers.get("last-modified") or "")
