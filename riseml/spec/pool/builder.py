"""Build a `PoolSpec` from values that match the schema, and check the rules that a schema cannot express."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.spec.named_files import read_file_path, read_key_path
from riseml.spec.pool.slurm import read_slurm
from riseml.spec.pool.types import CacheSpec, DiskSpec, HostSpec, Pairs, PoolSpec, SlurmSpec, Tls, Volume
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText, quote_text
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile, read_section

_HOSTS: KeyPath = ("hosts",)


def build_pool(file: SourceFile, folder: Path) -> PoolSpec:
    """Return the pool of a file in `folder`. Problems go to `file`; with an error among them it is unusable."""
    value = file.value_at(_HOSTS)
    count = len(value) if isinstance(value, list) else 0
    urls = [_parse_url(file, (*_HOSTS, index)) for index in range(count)]
    hosts = tuple(_build_host(file, index, url, folder) for index, url in enumerate(urls))
    _refuse_duplicates(file, urls)
    engine, slurm = read_slurm(file, folder)
    pool = PoolSpec(
        hosts=hosts,
        output=_read_storage(file, "output") or _find_shared(slurm, "output"),
        data=_read_storage(file, "data") or _find_shared(slurm, "data"),
        data_cache=_read_cache(file, slurm),
        disk=_read_disk(file),
        network=file.read(("network",), Network) or PoolSpec(()).network,
        encrypted=_read_encrypted(file),
        registry=_read_registry(file),
        engine=engine,
        slurm=slurm,
    )
    _check_addresses(file, pool, urls)
    return pool


def _parse_url(file: SourceFile, path: KeyPath) -> EngineUrl | None:
    text = file.value_at((*path, "url"))
    if text is None:
        return None
    try:
        return parse_engine_url(text)
    except BadText as bad:
        file.refuse((*path, "url"), bad.problem, bad.hint)
        return None


def _build_host(file: SourceFile, index: int, url: EngineUrl | None, folder: Path) -> HostSpec:
    path = (*_HOSTS, index)
    tls = _build_tls(file, (*path, "tls"), folder)
    if url is not None:
        _check_tls(file, path, url)
        _check_ssh(file, path, url)
    return read_section(
        file,
        path,
        HostSpec,
        name=HostName(str(file.value_at((*path, "name")))),
        url="" if url is None else str(url),
        address=file.value_at((*path, "address")) or ("" if url is None else url.host),
        gpus=_read_gpus(file, (*path, "gpus")),
        labels=_read_pairs(file, (*path, "labels")),
        tls=tls,
        identity=read_key_path(file, (*path, "identity"), folder),
        known_hosts=read_file_path(file, (*path, "known_hosts"), folder, needed=False),
    )


def _build_tls(file: SourceFile, path: KeyPath, folder: Path) -> Tls | None:
    if file.value_at(path) is None:
        return None
    ca = read_file_path(file, (*path, "ca"), folder)
    cert = read_file_path(file, (*path, "cert"), folder)
    key = read_key_path(file, (*path, "key"), folder, plain=True)
    return Tls(ca or "", cert or "", key or "")


def _check_tls(file: SourceFile, path: KeyPath, url: EngineUrl) -> None:
    """Require `tls` or `insecure` for tcp, and refuse both for other schemes."""
    host = file.value_at(path) or {}
    if url.scheme is not Scheme.TCP:
        for key in ("tls", "insecure"):
            if key in host:
                problem = f"applies only to tcp://, and this host uses {url.scheme.value}://"
                file.refuse_key((*path, key), problem, "remove it")
        return
    insecure = file.value_at((*path, "insecure"))
    if "tls" in host and insecure:
        file.refuse_key((*path, "insecure"), "`insecure` contradicts `tls`", "keep one of them")
    elif "tls" not in host and not insecure and (*path, "insecure") not in file.bad:
        file.refuse(
            (*path, "url"),
            "without TLS, any client that reaches this port is root on the host",
            "add `tls: {ca, cert, key}`, or use ssh://; write `insecure: true` only in a network that you trust",
        )


def _check_ssh(file: SourceFile, path: KeyPath, url: EngineUrl) -> None:
    for key in ("identity", "known_hosts"):
        if url.scheme is not Scheme.SSH and key in (file.value_at(path) or {}):
            problem = f"applies only to ssh://, and this host uses {url.scheme.value}://"
            file.refuse_key((*path, key), problem, "remove it")


def _read_gpus(file: SourceFile, path: KeyPath) -> tuple[str, ...] | None:
    """Return the device ids that jobs may use; None: all of the host's."""
    if not isinstance(file.value_at(path), list):
        return None
    gpus: dict[str, KeyPath] = {}
    for inner, device in file.items_at(path).items():
        if gpus.setdefault(device, inner) != inner:
            file.refuse(inner, f"GPU {device} is listed twice", "keep one of them")
    return tuple(gpus)


def _read_pairs(file: SourceFile, path: KeyPath) -> Pairs:
    return tuple((str(place[-1]), text) for place, text in file.items_at(path).items())


def _refuse_duplicates(file: SourceFile, urls: list[EngineUrl | None]) -> None:
    """Refuse two hosts with one name or one engine: the server would count and remove the same jobs twice."""
    names: dict[Any, KeyPath] = {}
    engines: dict[Any, KeyPath] = {}
    for index, url in enumerate(urls):
        path = (*_HOSTS, index)
        name = file.value_at((*path, "name"))
        if name is not None and (first := names.setdefault(name, path)) != path:
            line = file.find_position((*first, "name")).line
            file.refuse((*path, "name"), f"the host on line {line} has the same name", "give each host its own name")
        same = None if url is None else _engine_identity(url)
        if same is not None and (first := engines.setdefault(same, path)) != path:
            line = file.find_position((*first, "url")).line
            problem = f"the host on line {line} is the same engine"
            file.refuse((*path, "url"), problem, "keep one of them")


def _engine_identity(url: EngineUrl) -> tuple[Any, ...]:
    """Return the same text for all URLs of one engine, whatever their user."""
    port = 22 if url.port is None and url.scheme is Scheme.SSH else url.port
    return url.scheme, url.host.lower(), port, url.socket


def _read_storage(file: SourceFile, key: str) -> str | Volume | None:
    path: KeyPath = ("storage", key)
    value = file.value_at(path)
    if not isinstance(value, dict):
        return None if value is None else str(value)
    name = str(file.value_at((*path, "volume")))
    return read_section(file, path, Volume, name=name, options=_read_pairs(file, (*path, "options")))


def _find_shared(slurm: SlurmSpec | None, name: str) -> str | None:
    """Return a folder that all nodes of a cluster share: they do not see riseml's home; None: there is no cluster."""
    return None if slurm is None else f"{slurm.folder}/{name}"


def _read_cache(file: SourceFile, slurm: SlurmSpec | None) -> CacheSpec:
    return read_section(file, ("data_cache",), CacheSpec, CacheSpec(folder=_find_shared(slurm, "data-cache")))


def _read_disk(file: SourceFile) -> DiskSpec | None:
    value = file.value_at(("disk", "clean_above"))
    if value is None:
        return None
    return DiskSpec(None if value is False else int(value))


def _read_encrypted(file: SourceFile) -> bool:
    """Return True when networks across hosts are encrypted. riseml encrypts nothing on the hosts' own network."""
    value = file.value_at(("encrypted",))
    if value and file.value_at(("network",)) == Network.HOST.value:
        problem = "riseml does not encrypt the network of the hosts"
        file.refuse_key(("encrypted",), problem, "remove it, or use `network: overlay`")
    return PoolSpec(()).encrypted if value is None else bool(value)


def _read_registry(file: SourceFile) -> str | None:
    """Return the registry. Docker reads a first part without dot or port, except `localhost`, as a name on its hub."""
    text = file.value_at(("registry",))
    if text is None:
        return None
    host = text.split("/")[0]
    if not {".", ":"} & set(host) and host != "localhost":
        hint = f"write the whole host name, or a port: `registry: {host}:5000/{text.partition('/')[2]}`"
        file.refuse(("registry",), f"Docker reads {quote_text(host)} as a name on Docker Hub", hint)
    return str(text)


def _check_addresses(file: SourceFile, pool: PoolSpec, urls: list[EngineUrl | None]) -> None:
    """Require an address of each host when there are several, or when jobs use the hosts' own network."""
    if len(urls) == 1 and pool.network is not Network.HOST:
        return
    why = "other hosts cannot" if len(urls) > 1 else "on `network: host` jobs cannot"
    for index, (host, url) in enumerate(zip(pool.hosts, urls, strict=True)):
        path = (*_HOSTS, index)
        if url is None or (*path, "address") in file.bad:
            continue
        if not host.address:
            problem = f"is missing: {why} reach this one through its unix socket"
            file.refuse_key((*path, "address"), problem, "write its IP address or host name, `address: 192.0.2.11`")
        elif len(urls) > 1 and _is_loopback(host.address):
            at = (*path, "address" if file.value_at((*path, "address")) else "url")
            file.warn(at, f"other hosts cannot reach this one at {host.address}", "write `address: 192.0.2.11`")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() in ("localhost", "localhost.localdomain")
