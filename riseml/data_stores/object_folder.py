"""A folder or a file of an object store, through obstore: S3, Google Cloud Storage, Azure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, InvalidPathError, PreconditionError
from obstore.store import AzureStore, GCSStore, S3Store

from riseml.base.errors import EngineError
from riseml.data_stores.remote import MOST_FILES, RemoteFile, SourceChanged, TransferInterrupted, check_names
from riseml.data_stores.store_errors import explain_store_error
from riseml.data_stores.store_file import FILE, Store
from riseml.spec.scalars.data_url import DataScheme, DataUrl

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, ObjectStore, RetryConfig, S3Config, S3Credential

_TIMEOUT = "60s"  # one request takes at most that long; a range is a few MiB
_CONNECT = "10s"
_PAGE = 1000  # objects of one answer
_ACCESS = {
    DataScheme.S3: "`endpoint` or `region`",
    DataScheme.GOOGLE: "`service_account` names no JSON file with a key, or `endpoint` is not an address",
    DataScheme.AZURE: "`account`, `account_key` or `endpoint`",
}
"""What may be wrong in an entry of stores.yml, so that obstore does not even try to connect."""


class ObjectFolder:
    """What is below an address in an object store."""

    def __init__(self, url: DataUrl, store: Store) -> None:
        self._url = url
        self._store = store
        self._objects = connect_store(url, store)

    def list_files(self) -> list[RemoteFile]:
        """Return every object below the address; the object itself when it is one."""
        try:
            files = self._list_folder() or self._find_object()
        except (BaseError, ValueError) as error:
            raise self._explain(error) from None
        if not files:
            raise EngineError(f"there is nothing at {self._url}", "check the name of the folder", permanent=True)
        check_names(self._url, files)
        return sorted(files, key=lambda file: file.path)

    def read(self, file: RemoteFile, start: int, stop: int) -> bytes:
        """Return a range of an object."""
        options: GetOptions = {"range": (start, stop)}
        if file.etag:  # a list need not have ETags
            options["if_match"] = file.etag
        try:
            answer = obstore.get(self._objects, file.key, options=options)
        except FileNotFoundError:
            raise SourceChanged(f"{self._url}: {file.path!a} is gone") from None
        except (BaseError, ValueError) as error:
            raise self._explain(error) from None
        try:
            meta = answer.meta
            data = answer.bytes().to_bytes()
        except (BaseError, ValueError):  # the store has answered, but the rest of its answer did not arrive
            raise TransferInterrupted(f"{self._url}: the connection broke") from None
        is_same = meta["size"] == file.size and (not file.etag or _strip(meta["e_tag"]) == _strip(file.etag))
        if not is_same or len(data) != stop - start:
            raise SourceChanged(f"{self._url}: {file.path!a} changed while it was fetched")
        return data

    def _list_folder(self) -> list[RemoteFile]:
        prefix = self._url.path
        files: list[RemoteFile] = []
        for page in obstore.list(self._objects, prefix or None, chunk_size=_PAGE):
            for meta in page:
                path = meta["path"].removeprefix(f"{prefix}/") if prefix else meta["path"]
                files.append(RemoteFile(path, meta["size"], meta["e_tag"] or "", meta["path"]))
            if len(files) > MOST_FILES:
                text = f"{self._url} has more than {MOST_FILES:,} objects"
                raise EngineError(text, "name a folder of it", permanent=True)
        return files

    def _find_object(self) -> list[RemoteFile]:
        if not self._url.names:
            return []
        try:
            meta = obstore.head(self._objects, self._url.path)
        except FileNotFoundError:
            return []
        return [RemoteFile(self._url.names[-1], meta["size"], meta["e_tag"] or "", meta["path"])]

    def _explain(self, error: Exception) -> EngineError:
        if isinstance(error, PreconditionError):
            return SourceChanged(f"{self._url} changed while it was fetched")
        if isinstance(error, (InvalidPathError, ValueError)):
            problem = f"{self._url} has an object with a name that no file can have"
            return EngineError(problem, "rename it in the store", permanent=True)
        return explain_store_error(self._url, self._store, str(error))


def _strip(etag: str | None) -> str:
    """Return an ETag without quotation marks: a store may use them in answers and not in lists."""
    return (etag or "").strip('"')


def connect_store(url: DataUrl, store: Store) -> ObjectStore:
    """Return obstore's client with every setting that it would otherwise take from variables of the server.

    Without keys no request is signed: obstore would ask the machine's metadata service for some.

    Raises:
        EngineError: what stores.yml says of the store can be no access (permanent).
    """
    insecure = store.endpoint.startswith("http://")
    client: ClientConfig = {"timeout": _TIMEOUT, "connect_timeout": _CONNECT, "allow_http": insecure}
    retry: RetryConfig = {"max_retries": 1, "retry_timeout": timedelta(seconds=20)}
    try:
        match url.scheme:
            case DataScheme.GOOGLE:
                return GCSStore(url.place, config=_google(store), client_options=client, retry_config=retry)
            case DataScheme.AZURE:
                return AzureStore(url.place, config=_azure(store), client_options=client, retry_config=retry)
            case _:
                return _connect_s3(url.place, store, client, retry)
    except (BaseError, ValueError):  # its text may have a part of a key
        text = f"{url}: what {FILE} has for the store {store.name} cannot be used: {_ACCESS[url.scheme]}"
        raise EngineError(text, f"change it in {FILE}", permanent=True) from None


def _connect_s3(bucket: str, store: Store, client: ClientConfig, retry: RetryConfig) -> ObjectStore:
    endpoint = store.endpoint or f"https://s3.{store.region}.amazonaws.com"
    config: S3Config = {"region": store.region, "endpoint": endpoint, "virtual_hosted_style_request": False}
    if not store.access_key_id:
        config["skip_signature"] = True
        return S3Store(bucket, config=config, client_options=client, retry_config=retry)

    def give_keys() -> S3Credential:
        return {
            "access_key_id": store.access_key_id,
            "secret_access_key": store.secret_access_key,
            "token": store.session_token or None,
            "expires_at": None,
        }

    config["skip_signature"] = False
    provided = give_keys  # otherwise obstore would combine these keys with a session token from the server's variables
    return S3Store(bucket, config=config, client_options=client, retry_config=retry, credential_provider=provided)


def _google(store: Store) -> GCSConfig:
    config: GCSConfig = {"base_url": store.endpoint} if store.endpoint else {}
    if store.service_account:
        return {**config, "service_account": store.service_account}
    return {**config, "skip_signature": True}


def _azure(store: Store) -> AzureConfig:
    config: AzureConfig = {"account_name": store.account}
    if store.endpoint:
        config["endpoint"] = store.endpoint
    if store.account_key:
        return {**config, "account_key": store.account_key}
    return {**config, "skip_signature": True}
