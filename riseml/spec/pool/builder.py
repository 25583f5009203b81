"""Values that fit the schema of pool.yml to a `PoolSpec`, and the problems that a schema cannot see."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from riseml.names import HostName
from riseml.spec.pool.files import read_file_path, read_key_path
from riseml.spec.pool.types import HostSpec, Pairs, PoolSpec, Tls, Volume
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText, quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile
from riseml.states import Network

_HOSTS: KeyPath = ("hosts",)


def build_pool(file: SourceFile, folder: Path) -> PoolSpec:
    """The pool of a file in `folder`. It is of use only when `settled` has no error then; problems are added there."""
    network = file.value_at(("network",))
    value = file.value_at(_HOSTS)
    count = len(value) if isinstance(value, list) else 0
    urls = [_read_url(file, (*_HOSTS, index)) for index in range(count)]
    hosts = tuple(_host(file, index, url, folder) for index, url in enumerate(urls))
    _refuse_doubles(file, urls)
    pool = PoolSpec(
        hosts=hosts,
        output=_place(file, "output"),
        data=_place(file, "data"),
        network=PoolSpec(()).network if network is None else Network(network),
        registry=_registry(file),
    )
    _check_addresses(file, pool, urls)
    return pool


def _read_url(file: SourceFile, path: KeyPath) -> EngineUrl | None:
    text = file.value_at((*path, "url"))
    if text is None:
        return None
    try:
        return parse_engine_url(text)
    except BadText as bad:
        file.refuse((*path, "url"), bad.problem, bad.hint)
        return None


def _host(file: SourceFile, index: int, url: EngineUrl | None, folder: Path) -> HostSpec:
    path = (*_HOSTS, index)
    cpus = file.value_at((*path, "cpus"))
    tls = _tls(file, (*path, "tls"), folder)
    insecure = bool(file.value_at((*path, "insecure")))
    if url is not None:
        _check_tls(file, path, url)
        _check_ssh(file, path, url)
    return HostSpec(
        name=HostName(str(file.value_at((*path, "name")))),
        url="" if url is None else str(url),
        address=file.value_at((*path, "address")) or ("" if url is None else url.host),
        gpus=_gpus(file, (*path, "gpus")),
        labels=_pairs(file, (*path, "labels")),
        cpus=None if cpus is None else float(cpus),
        mem=file.memory_at((*path, "mem")),
        tls=tls,
        insecure=insecure,
        identity=read_key_path(file, (*path, "identity"), folder),
        known_hosts=read_file_path(file, (*path, "known_hosts"), folder, needed=False),
    )


def _tls(file: SourceFile, path: KeyPath, folder: Path) -> Tls | None:
    if file.value_at(path) is None:
        return None
    ca = read_file_path(file, (*path, "ca"), folder)
    cert = read_file_path(file, (*path, "cert"), folder)
    key = read_key_path(file, (*path, "key"), folder, plain=True)
    return Tls(ca or "", cert or "", key or "")


def _check_tls(file: SourceFile, path: KeyPath, url: EngineUrl) -> None:
    """Encryption goes with tcp, and tcp goes with encryption or says aloud that it has none."""
    host = file.value_at(path) or {}
    if url.scheme is not Scheme.TCP:
        for key in ("tls", "insecure"):
            if key in host:
                problem = f"goes with tcp:// only; this host is reached by {url.scheme.value}://"
                file.refuse_key((*path, key), problem, "leave it out")
        return
    insecure = file.value_at((*path, "insecure"))
    if "tls" in host and insecure:
        file.refuse_key((*path, "insecure"), "the host has `tls`; it cannot be without it as well", "keep one of them")
    elif "tls" not in host and not insecure and (*path, "insecure") not in file.bad:
        file.refuse(
            (*path, "url"),
            "there is no TLS: whoever reaches this port is root on the host",
            "add `tls: {ca, cert, key}`, or use ssh://; only for a network you trust wholly: `insecure: true`",
        )


def _check_ssh(file: SourceFile, path: KeyPath, url: EngineUrl) -> None:
    for key in ("identity", "known_hosts"):
        if url.scheme is not Scheme.SSH and key in (file.value_at(path) or {}):
            problem = f"goes with ssh:// only; this host is reached by {url.scheme.value}://"
            file.refuse_key((*path, key), problem, "leave it out")


def _gpus(file: SourceFile, path: KeyPath) -> tuple[str, ...]:
    found: dict[str, int] = {}
    for index in range(len(file.value_at(path) or ())):
        device = file.value_at((*path, index))
        if device in found:
            file.refuse((*path, index), f"the GPU {device} is there twice", "keep one of them")
        elif device is not None:
            found[device] = index
    return tuple(found)


def _pairs(file: SourceFile, path: KeyPath) -> Pairs:
    value = file.value_at(path) or {}
    found = ((name, file.value_at((*path, name))) for name in value)
    return tuple((name, text) for name, text in found if text is not None)


def _refuse_doubles(file: SourceFile, urls: list[EngineUrl | None]) -> None:
    """Two hosts of one name or of one engine: what runs would be counted and removed twice."""
    names: dict[Any, KeyPath] = {}
    engines: dict[Any, KeyPath] = {}
    for index, url in enumerate(urls):
        path = (*_HOSTS, index)
        name = file.value_at((*path, "name"))
        if name is not None and (first := names.setdefault(name, path)) != path:
            line = file.find_position((*first, "name")).line
            file.refuse((*path, "name"), f"the host on line {line} is called {name}, too", "give each its own name")
        same = None if url is None else _identity(url)
        if same is not None and (first := engines.setdefault(same, path)) != path:
            line = file.find_position((*first, "url")).line
            problem = f"the host on line {line} is the same engine"
            file.refuse((*path, "url"), problem, "an engine is one host: keep one of them")


def _identity(url: EngineUrl) -> tuple[Any, ...]:
    """What two urls of one engine have in common; another user is the same engine."""
    port = 22 if url.port is None and url.scheme is Scheme.SSH else url.port
    return url.scheme, url.host.lower(), port, url.socket


def _place(file: SourceFile, key: str) -> str | Volume | None:
    path: KeyPath = ("storage", key)
    value = file.value_at(path)
    if not isinstance(value, dict):
        return None if value is None else str(value)
    driver = file.value_at((*path, "driver")) or Volume("").driver
    return Volume(str(file.value_at((*path, "volume"))), driver, _pairs(file, (*path, "options")))


def _registry(file: SourceFile) -> str | None:
    """The registry. Docker takes a first part without a dot, a port or `localhost` for a name on its own hub."""
    text = file.value_at(("registry",))
    if text is None:
        return None
    host = text.split("/")[0]
    if not {".", ":"} & set(host) and host != "localhost":
        hint = f"write its whole name, or a port: `registry: {host}:5000/{text.partition('/')[2]}`"
        file.refuse(("registry",), f"Docker takes {quote_text(host)} for a name on its public hub", hint)
    return str(text)


def _check_addresses(file: SourceFile, pool: PoolSpec, urls: list[EngineUrl | None]) -> None:
    """Several hosts, and jobs on the hosts' own network, need an address that leads to each host."""
    if len(urls) == 1 and pool.network is not Network.HOST:
        return
    why = "other hosts cannot" if len(urls) > 1 else "on `network: host` jobs cannot"
    for index, (host, url) in enumerate(zip(pool.hosts, urls, strict=True)):
        path = (*_HOSTS, index)
        if url is None or (*path, "address") in file.bad:
            continue
        if not host.address:
            problem = f"is missing: {why} reach this one by its unix socket"
            file.refuse_key((*path, "address"), problem, "write its IP address or host name, `address: 192.0.2.11`")
        elif len(urls) > 1 and _is_loopback(host.address):
            at = (*path, "address" if file.value_at((*path, "address")) else "url")
            file.warn(at, f"other hosts cannot reach this one at {host.address}", "write `address: 192.0.2.11`")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() in ("localhost", "localhost.localdomain")
