"""The client of the HTTP door (see `wire`): one method an endpoint, every call with a deadline, every refusal an error.

It knows nothing about how a server is started, and it prints nothing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar, cast
from urllib.parse import quote

from riseml.errors import Unreachable
from riseml.exchange import Address, Exchange, Lost, make_error, read_address

if TYPE_CHECKING:
    from riseml import wire

Found = TypeVar("Found")

__all__ = ["Address", "Client", "LogQuery", "RetryPolicy", "make_error", "read_address"]

_SLOW_ANSWER = 120.0  # seconds; a plan asks the hosts, an upload is stored and listed
_SILENCE = 45.0  # three heartbeats of a log stream
_REPEATS = 3  # of a request that is harmless to repeat


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What to read of a log. `since`: nothing older (RFC 3339). `tail`: of what is there already, the last lines that
    jobs printed, at most so many, and no change of state.

    `batch`: lines that stand together come as one entry, which is several times quicker for everybody.
    """

    follow: bool = True
    tail: int | None = None
    since: str | None = None
    batch: bool = False


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a server that is lost is waited for: `limit` seconds without news, with growing waits between."""

    limit: float = 60.0
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)


class Client:
    """Talks to one server. Use it in a `with` block, so that its connections are closed.

    Every method raises a `RisemlError`: what the server refused with, or `Unreachable`.
    """

    def __init__(self, address: Address, patience: RetryPolicy | None = None) -> None:
        self.address = address
        self._patience = patience or RetryPolicy()
        self._exchange = Exchange(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client can still be used, and opens new ones."""
        self._exchange.close()

    def server(self) -> wire.ServerView:
        """Who answers."""
        return cast("wire.ServerView", self._exchange.ask("GET", "/server"))

    def stop_server(self) -> wire.ServerView:
        """Ask the server to end; training goes on."""
        return cast("wire.ServerView", self._exchange.ask("POST", "/server/stop"))

    def has_snapshot(self, digest: str) -> bool:
        """True when the server has these files already."""
        with self._exchange.request("HEAD", f"/snapshots/{digest}") as response:
            if response.status_code == 404:
                return False
            self._exchange.check(response)
            return True

    def put_snapshot(self, digest: str, pieces: Iterable[bytes]) -> None:
        """Send the tar of a project."""
        with self._exchange.request("PUT", f"/snapshots/{digest}", timeout=_SLOW_ANSWER, content=pieces) as response:
            self._exchange.check(response)

    def plan(self, submission: wire.Submission) -> wire.PlanView:
        """What `submit` would do."""
        return cast("wire.PlanView", self._exchange.ask("POST", "/plans", timeout=_SLOW_ANSWER, json=submission))

    def check(self, submission: wire.Submission) -> None:
        """Raise what `submit` would be refused with, as far as that is known without the project's files."""
        with self._exchange.request("POST", "/experiments/check", timeout=_SLOW_ANSWER, json=submission) as response:
            self._exchange.check(response)

    def submit(self, submission: wire.Submission) -> wire.ExperimentView:
        """Run it. With a `key` in it, a request whose answer was lost is repeated; that never makes two experiments."""
        for turn in range(_REPEATS if "key" in submission else 1):
            try:
                answer = self._exchange.ask("POST", "/experiments", timeout=_SLOW_ANSWER, json=submission)
                return cast("wire.ExperimentView", answer)
            except Lost as error:
                self.close()
                lost = error
                self._patience.wait(0.2 * 2**turn)
        raise lost

    def experiments(
        self, *, ended: bool = False, project: str | None = None, limit: int | None = None
    ) -> list[wire.ExperimentView]:
        """The running ones, with `ended` all; the newest is the last."""
        asked = {"all": "true" if ended else None, "project": project, "limit": limit}
        answer = cast("wire.ExperimentList", self._exchange.ask("GET", "/experiments", params=_given(asked)))
        return answer["experiments"]

    def experiment(self, identity: str) -> wire.ExperimentView:
        """One experiment or set."""
        return cast("wire.ExperimentView", self._exchange.ask("GET", f"/experiments/{quote(identity, safe='')}"))

    def kill(self, identity: str) -> wire.ExperimentView:
        """End it. The answer comes before the end does."""
        return cast("wire.ExperimentView", self._exchange.ask("POST", f"/experiments/{quote(identity, safe='')}/kill"))

    def samples(self, identity: str) -> wire.Samples:
        """How its jobs are doing."""
        return cast("wire.Samples", self._exchange.ask("GET", f"/experiments/{quote(identity, safe='')}/samples"))

    def tf_configs(self, identity: str) -> wire.TfConfigs:
        """The TF_CONFIG of each of its jobs."""
        return cast("wire.TfConfigs", self._exchange.ask("GET", f"/experiments/{quote(identity, safe='')}/tfconfig"))

    def explain(self, identity: str) -> wire.ExplanationView:
        """Why it waits, or runs where it runs."""
        path = f"/experiments/{quote(identity, safe='')}/explain"
        return cast("wire.ExplanationView", self._exchange.ask("GET", path))

    def system(self) -> wire.SystemView:
        """The server and its hosts."""
        return cast("wire.SystemView", self._exchange.ask("GET", "/system"))

    def pool(self) -> wire.PoolView:
        """The pool and its hosts."""
        return cast("wire.PoolView", self._exchange.ask("GET", "/pool"))

    def check_pool(self) -> list[wire.PoolFinding]:
        """Look whether the hosts do what the pool needs. Takes some seconds."""
        return cast("wire.PoolFindings", self._exchange.ask("POST", "/pool/check", timeout=_SLOW_ANSWER))["findings"]

    def join_pool(self) -> list[wire.PoolMember]:
        """Make one swarm of the hosts. Takes some seconds."""
        return cast("wire.PoolMembers", self._exchange.ask("POST", "/pool/join", timeout=_SLOW_ANSWER))["members"]

    def host_keys(self, name: str) -> wire.HostKeys:
        """The keys that the host shows to ssh now. Takes some seconds."""
        path = f"/pool/hosts/{quote(name, safe='')}/keys"
        return cast("wire.HostKeys", self._exchange.ask("GET", path, timeout=_SLOW_ANSWER))

    def pin_host(self, name: str, fingerprints: Sequence[str]) -> wire.HostKeys:
        """Pin those of its keys that have these fingerprints."""
        path = f"/pool/hosts/{quote(name, safe='')}/keys"
        asked = {"fingerprint": list(fingerprints)}
        return cast("wire.HostKeys", self._exchange.ask("POST", path, params=asked, timeout=_SLOW_ANSWER))

    def drain_host(self, name: str) -> wire.HostView:
        """Give the host nothing new."""
        return cast("wire.HostView", self._exchange.ask("POST", f"/pool/hosts/{quote(name, safe='')}/drain"))

    def resume_host(self, name: str) -> wire.HostView:
        """Let the host take new jobs again."""
        return cast("wire.HostView", self._exchange.ask("POST", f"/pool/hosts/{quote(name, safe='')}/resume"))

    def leftovers(self, asked: Mapping[str, str], *, remove: bool = False) -> wire.LeftoversView:
        """What no experiment owns; with `remove` it is removed. `asked` are the route's own parameters."""
        method, path = ("POST", "/leftovers/remove") if remove else ("GET", "/leftovers")
        return cast("wire.LeftoversView", self._exchange.ask(method, path, timeout=_SLOW_ANSWER, params=asked))

    def logs(
        self, identity: str, query: LogQuery | None = None, on_cut: Callable[[int], None] | None = None
    ) -> Iterator[wire.Entry]:
        """The log (see `LogQuery`); when following, until its `end` entry, which comes when nothing of the experiment
        runs; its containers are removed meanwhile. Heartbeats are left out.

        A stream that is cut is taken up again where it was: nothing is lost, nothing repeated. `on_cut` hears of each
        such moment, with the number of vain tries so far; it may start the server again.

        Raises:
            Unreachable: no news for too long. The experiment goes on.
        """
        query = query or LogQuery()
        cursor, vigil = "", _Vigil(self._patience)
        while True:
            cut: Unreachable | None = None
            try:
                for entry in self._read_log(identity, query, cursor):
                    cursor = entry["cursor"] or cursor
                    vigil.end()
                    if entry["type"] != "ping":
                        yield entry
                    if entry["type"] == "end":
                        return
                if not query.follow:
                    return
            except Unreachable as error:
                cut = error
            self.close()
            vigil.wait(cut, on_cut)

    def persist(self, ask: Callable[[], Found], on_cut: Callable[[int], None] | None = None) -> Found:
        """What a harmless question finds out, also when the server is away for a moment; `on_cut` as in `logs`.

        Raises:
            Unreachable: no news for too long.
        """
        vigil = _Vigil(self._patience)
        while True:
            try:
                return ask()
            except Unreachable as error:
                self.close()
                vigil.wait(error, on_cut)

    def _read_log(self, identity: str, query: LogQuery, cursor: str) -> Iterator[wire.Entry]:
        """One connection's worth of the log."""
        asked = {
            "follow": str(query.follow).lower(),
            "cursor": cursor or None,
            "tail": None if cursor else query.tail,
            "since": query.since,
            "batch": "true" if query.batch else None,
            "closed": "false",
        }
        path = f"/experiments/{quote(identity, safe='')}/logs"
        with self._exchange.request("GET", path, timeout=_SILENCE, params=_given(asked)) as response:
            self._exchange.check(response)
            for line in _lines(response.iter_bytes()):
                yield cast("wire.Entry", json.loads(line))


class _Vigil:
    """Waiting for a server that is lost: since when, and how often it was tried in vain."""

    def __init__(self, patience: RetryPolicy) -> None:
        self._patience = patience
        self.end()

    def end(self) -> None:
        """There is news."""
        self._tries, self._since = 0, self._patience.clock()

    def wait(self, error: Unreachable | None, on_cut: Callable[[int], None] | None) -> None:
        """Wait before the next try; longer each time, and not for ever: then `error` is raised."""
        if error is not None and self._patience.clock() - self._since > self._patience.limit:
            raise error
        if on_cut is not None:
            on_cut(self._tries)
        self._patience.wait(min(2.0, 0.1 * 2**self._tries) if self._tries else 0)
        self._tries += 1


def _given(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end with a newline byte, and nothing else: text may hold any other separator of lines."""
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        yield from filter(None, whole)
