"""The file with the stores of a home, stores.yml. Only its user may read or write it, since it holds keys.

The server fetches an address only if a store of this file allows it: a riseml.yml names addresses, and may come from
another person.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from riseml.base.errors import EngineError, NotFound, Refused, UsageError
from riseml.base.folders import read_private_file
from riseml.base.records import dataclass
from riseml.base.text_yaml import is_nothing, load_texts, read_switch
from riseml.model import Environment
from riseml.spec.scalars.data_url import OBJECT_STORES, DataScheme, DataUrl, parse_data_url
from riseml.spec.scalars.texts import BadText

FILE = "stores.yml"
"""The name of the file in RISEML_HOME."""

DEFAULT_REGION = "us-east-1"

_LARGEST = 2**18  # bytes
_MOST = 50  # stores
_LONGEST = 4000  # characters of a value; a session token is the longest
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]+")
_TEXTS = ("endpoint", "region", "access_key_id", "secret_access_key", "session_token", "account", "account_key",
          "service_account")  # fmt: skip
_SWITCHES = ("insecure", "jobs", "passed_keys", "etag_is_md5")
_PASSED = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")  # and AWS_SESSION_TOKEN, where the keys need it
_KEYS = frozenset({"name", "urls", "saves", *_TEXTS, *_SWITCHES})
_HINT = "`riseml docs stores` has an example; nothing is fetched or saved until then"


@dataclass(frozen=True, slots=True)
class Store:
    """One store: the addresses that it allows, and the access to them."""

    name: str
    urls: tuple[DataUrl, ...]  # addresses that may be fetched, each with everything below it
    saves: tuple[DataUrl, ...] = ()  # addresses where outputs may be saved, each with everything below it
    endpoint: str = ""  # the server's address; empty: Amazon's, Google's or Azure's
    region: str = DEFAULT_REGION
    access_key_id: str = field(default="", repr=False)  # empty: requests are not signed
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    account: str = ""  # account of Azure
    account_key: str = field(default="", repr=False)
    service_account: str = field(default="", repr=False)  # service account of Google: path of its JSON file
    insecure: bool = False  # a connection without TLS is allowed
    jobs: bool = False  # jobs may get the keys
    passed_keys: bool = False  # each experiment passes on keys of its user; the entry has none
    etag_is_md5: bool = True  # False: the store encrypts with keys of its own, and its ETags prove nothing

    def list_variables(self) -> tuple[tuple[str, str], ...]:
        """Return the variables with which a job reaches this store by itself."""
        variables = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "S3_ENDPOINT": self.endpoint,
        }
        return tuple((name, value) for name, value in variables.items() if value)


def find_store(stores: tuple[Store, ...], url: DataUrl) -> Store:
    """Return the first store that allows an address.

    Raises:
        Refused: none does.
    """
    for store in stores:
        if any(allowed.includes(url) for allowed in store.urls):
            return store
    raise Refused(
        f"the server may not fetch {url}: no store of its {FILE} allows that",
        f"write a store with `urls: [{url}]` into {FILE} in RISEML_HOME (`riseml docs stores`)",
    )


def find_save_store(stores: tuple[Store, ...], url: DataUrl) -> Store:
    """Return the first store that allows outputs at an address.

    Raises:
        Refused: none does.
    """
    for store in stores:
        if any(allowed.includes(url) for allowed in store.saves):
            return store
    raise Refused(
        f"the server may not save outputs in {url}: no store of its {FILE} allows that",
        f"write `saves: [{url}]` beside a store in {FILE} in RISEML_HOME (`riseml docs stores`); `urls` is for reading",
    )


def find_job_store(stores: tuple[Store, ...], name: str) -> Store:
    """Return the store whose keys jobs may get.

    Raises:
        NotFound: there is no such store.
        Refused: it is not for jobs.
    """
    store = next((candidate for candidate in stores if candidate.name == name), None)
    if store is None:
        raise NotFound(f"train.store: the server's {FILE} has no store {name}", "`riseml docs stores` has an example")
    if not store.jobs:
        raise Refused(
            f"train.store: the server's {FILE} does not give the keys of {name} to jobs",
            f"write `jobs: true` beside {name} there, if every project that you run may have them",
        )
    return store


def check_passed(store: Store, passed: Collection[str]) -> None:
    """Refuse an experiment that does not pass on the keys of its user, where a store has none of its own.

    Args:
        store: that the experiment uses.
        passed: names of the variables whose values come from the user, and not from riseml.yml.

    Raises:
        Refused: it lacks one of them.
    """
    missing = [name for name in _PASSED if name not in passed]
    if store.passed_keys and missing:
        raise Refused(
            f"the store {store.name} of the server's {FILE} uses keys that the experiment passes on, and {missing[0]} "
            "is not passed on",
            f"write `env: [{', '.join(_PASSED)}]` into riseml.yml, without values, and set both in your shell",
        )


def add_passed_keys(store: Store, variables: Environment) -> Store:
    """Return a store with the keys among the variables of an experiment, where it has none of its own.

    Raises:
        EngineError: the keys are missing (permanent): the server erases them when the experiment is closed.
    """
    if not store.passed_keys:
        return store
    values = dict(variables)
    if not all(values.get(name) for name in _PASSED):
        raise EngineError(
            f"the keys that were passed on for the store {store.name} are not there: they are empty, or were erased "
            "when the experiment was closed",
            f"set {' and '.join(_PASSED)} in your shell: `riseml save ID --pass-keys` copies an output with them, and "
            "`riseml train` passes them on with a new experiment",
            permanent=True,
        )
    keys = [values[name] for name in _PASSED]
    token = values.get("AWS_SESSION_TOKEN", "")
    return replace(store, access_key_id=keys[0], secret_access_key=keys[1], session_token=token)


def read_stores(home: Path) -> tuple[Store, ...]:
    """Return the stores of a home; none without the file.

    Raises:
        Refused: another user may read or write the file.
        UsageError: the file has a mistake; the message names it without the file's values.
    """
    data = read_private_file(home / FILE, _LARGEST)
    return () if data is None else _parse(data)


def _parse(data: bytes) -> tuple[Store, ...]:
    try:
        document = load_texts(data)
    except ValueError:
        raise _make_mistake("it is not YAML") from None
    rows = document.get("stores") if isinstance(document, dict) and document.keys() == {"stores"} else None
    if not isinstance(rows, list) or len(rows) > _MOST:
        raise _make_mistake(f"it has one key, `stores`, with a list of at most {_MOST}")
    stores = tuple(_parse_store(row, place) for place, row in enumerate(rows, 1))
    if len({store.name for store in stores}) < len(stores):
        raise _make_mistake("two stores have one name")
    return stores


def _parse_store(row: Any, place: int) -> Store:
    if not isinstance(row, dict) or not {"name"} < row.keys() <= _KEYS or not row.keys() & {"urls", "saves"}:
        optional_keys = ", ".join(sorted(_KEYS - {"name", "urls", "saves"}))
        raise _make_mistake(f"store {place} needs name, and urls or saves or both, and may have {optional_keys}")
    name = str(row["name"])
    if not _NAME.fullmatch(name):
        raise _make_mistake(f"the name of store {place} is not up to 40 letters a-z, digits and -")
    texts: dict[str, Any] = {key: str(row[key]) for key in _TEXTS if not is_nothing(row.get(key, ""))}
    for key, text in texts.items():
        if not _PRINTABLE.fullmatch(text) or len(text) > _LONGEST:
            raise _make_mistake(f"{key} of {name} is not up to {_LONGEST} printable characters without spaces")
    switches: dict[str, Any] = {key: read_switch(row[key]) for key in _SWITCHES if key in row}
    if None in switches.values():
        raise _make_mistake(f"{name}: {', '.join(_SWITCHES)} are true or false")
    urls, saves = (_parse_urls(name, key, row[key]) if key in row else () for key in ("urls", "saves"))
    if not all(url.scheme in OBJECT_STORES for url in saves):
        raise _make_mistake(f"`saves` of {name}: outputs are saved in s3://, gs:// and az:// alone")
    store = Store(name, urls, saves, **texts, **switches)
    _check_store(store)
    return store


def _parse_urls(name: str, key: str, value: Any) -> tuple[DataUrl, ...]:
    if not isinstance(value, list) or not value:
        raise _make_mistake(f"`{key}` of {name} is a list of addresses such as s3://datasets/")
    urls = []
    for text in value:
        try:
            url = parse_data_url(str(text)) if not _is_web_root(str(text)) else _parse_web_root(str(text))
        except BadText as bad:
            raise _make_mistake(f"`{key}` of {name}: {bad.problem}") from None
        if url.scheme is DataScheme.DATA:
            raise _make_mistake(f"`{key}` of {name}: data:// needs no store")
        urls.append(url)
    return tuple(urls)


def _is_web_root(text: str) -> bool:
    return re.fullmatch(r"https?://[^/]+/?", text) is not None


def _parse_web_root(text: str) -> DataUrl:
    """Return the address of a whole web server, which no riseml.yml may name as data."""
    inner = parse_data_url(f"{text.removesuffix('/')}/x")
    return DataUrl(inner.scheme, inner.place, ())


def _check_store(store: Store) -> None:
    if bool(store.access_key_id) != bool(store.secret_access_key):
        raise _make_mistake(f"{store.name} needs both access_key_id and secret_access_key, or neither")
    urls = (*store.urls, *store.saves)
    if store.passed_keys and (store.access_key_id or any(url.scheme is not DataScheme.S3 for url in urls)):
        raise _make_mistake(f"{store.name}: `passed_keys` is for s3:// alone, and beside it there are no other keys")
    if any(url.scheme is DataScheme.GOOGLE for url in store.saves) and not store.service_account:
        raise _make_mistake(f"{store.name} needs `service_account`, the path of a JSON file, to save in gs://")
    if store.endpoint and len({url.scheme for url in urls if url.scheme in OBJECT_STORES}) > 1:
        raise _make_mistake(f"{store.name} has one endpoint for several kinds of stores: write a store for each")
    if any(url.scheme is DataScheme.AZURE for url in urls) and not store.account:
        raise _make_mistake(f"{store.name} needs `account`, the name of the storage account of az://")
    if store.endpoint:
        _check_endpoint(store, store.endpoint)
    for url in urls:
        if url.scheme is DataScheme.HTTP:
            _check_endpoint(store, str(url))
        if url.scheme not in OBJECT_STORES and store.access_key_id:
            raise _make_mistake(f"{store.name}: keys are for s3://, and {url.scheme.value}:// has none")


def _check_endpoint(store: Store, endpoint: str) -> None:
    """Refuse a text that is not an address, and an address without TLS, unless it is local or the user allows it."""
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        usable = None
    if not usable:
        raise _make_mistake(f"the endpoint of {store.name} is not an address such as https://minio.example.org:9000")
    if parts.scheme == "http" and not store.insecure and not _is_loopback(parts.hostname or ""):
        raise _make_mistake(f"{store.name} has an address without TLS: write https://, or `insecure: true` beside it")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _make_mistake(problem: str) -> UsageError:
    return UsageError(f"{FILE} cannot be used: {problem}", _HINT)
