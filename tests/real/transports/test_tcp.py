"""Engines over TCP: mutual TLS with a real dockerd, and connections that die silently."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import docker
import psutil
import pytest

from riseml.base.errors import Unreachable
from riseml.base.settings import Settings
from riseml.executors.transports.engine_client import Engine
from riseml.executors.transports.routes import TcpTransport
from riseml.model import LogCursor
from riseml.server.hosts.choose_executor import check_executor
from riseml.spec.pool.types import Tls
from riseml.spec.scalars.engine_url import parse_engine_url
from tests.real.transports.conftest import BASE, HASTE, Connect, Talker, refusal
from tests.real.transports.servers import FarNetwork, Listener, Relay, TlsEngine, listen_to_nothing, wait
from tests.support.authority import Authority, Pair
from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE


@contextmanager
def serve_tls(pair: Pair, ca: str) -> Iterator[int]:
    """Run a server that shakes hands with this certificate and then closes; give its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_REQUIRED
    failures: list[str] = []

    def shake_hands() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return  # the listener was shut
            with plain:
                try:
                    context.wrap_socket(plain, server_side=True).close()
                except OSError as error:
                    failures.append(str(error))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=shake_hands)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def url_of(port: int, host: str = "127.0.0.1") -> str:
    """Return a tcp url."""
    return f"tcp://{host}:{port}"


def test_an_engine_over_tls_answers(tls_engine: TlsEngine, tls: Tls, connect: Connect) -> None:
    engine = connect(url_of(tls_engine.port), tls=tls)
    assert engine.version() == Engine(tls_engine.url).version()
    assert not engine.is_local


def test_docker_s_variables_lead_to_an_engine_over_tls(tls_engine: TlsEngine, tls: Tls, tmp_path: Path) -> None:
    """DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, as Docker's command line takes them."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "ca.pem").symlink_to(tls.ca)
    settings = Settings(tmp_path, tmp_path, tmp_path, url_of(tls_engine.port), folder, executor="docker")
    with pytest.raises(Unreachable) as without:
        check_executor(settings)
    assert "the engine requires a certificate from riseml, and got none" in without.value.message
    (folder / "cert.pem").symlink_to(tls.cert)
    with pytest.raises(Unreachable, match=r"key\.pem"):
        check_executor(settings)
    (folder / "key.pem").symlink_to(tls.key)
    check_executor(settings)


def test_a_log_comes_through_tls(
    tls_engine: TlsEngine, tls: Tls, connect: Connect, talk: Callable[..., Talker]
) -> None:
    lines = "".join(f"line {number}\n" for number in range(5_000)).encode()
    script = "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done"
    talker = talk(tls_engine.url, TlsEngine.image, script)
    read = talker.executor(connect(url_of(tls_engine.port), tls=tls)).read_log(talker.key, LogCursor(), follow=True)
    assert b"".join(frame.data for frames in read for frame in frames) == lines


def test_a_foreign_authority_is_refused(
    tls_engine: TlsEngine, tls: Tls, stranger: Authority, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names a bundle that would accept it."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", tls.ca)
    monkeypatch.setenv("SSL_CERT_FILE", tls.ca)
    trouble = refusal(connect(url_of(tls_engine.port), tls=replace(tls, ca=stranger.ca)))
    assert f"the engine's certificate is not signed by {stranger.ca}" in trouble.message
    assert "another machine answers in its place" in str(trouble.hint)


def test_the_environment_does_not_replace_the_authority_of_the_pool(
    tls_engine: TlsEngine, tls: Tls, stranger: Authority, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", stranger.ca)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert connect(url_of(tls_engine.port), tls=tls).version()


def test_a_certificate_for_another_name_is_refused(tls_engine: TlsEngine, tls: Tls, connect: Connect) -> None:
    trouble = refusal(connect(url_of(tls_engine.port, "localhost"), tls=tls))
    assert "the engine's certificate is not for localhost" in trouble.message
    assert "subjectAltName" in str(trouble.hint)


def test_a_certificate_for_another_address_is_refused(authority: Authority, tls: Tls, connect: Connect) -> None:
    with serve_tls(authority.sign("elsewhere", ("192.0.2.1", "elsewhere.example.org")), tls.ca) as port:
        assert "the engine's certificate is not for 127.0.0.1" in refusal(connect(url_of(port), tls=tls)).message


def test_an_expired_certificate_is_refused(authority: Authority, tls: Tls, connect: Connect) -> None:
    with serve_tls(authority.sign("expired", ("127.0.0.1",), -timedelta(hours=1)), tls.ca) as port:
        assert "the engine's certificate has expired" in refusal(connect(url_of(port), tls=tls)).message


def test_a_self_signed_certificate_is_refused(stranger: Authority, tls: Tls, connect: Connect) -> None:
    with serve_tls(stranger.sign("impostor", ("127.0.0.1",)), tls.ca) as port:
        assert f"is not signed by {tls.ca}" in refusal(connect(url_of(port), tls=tls)).message


def test_the_engine_refuses_a_foreign_certificate(
    tls_engine: TlsEngine, tls: Tls, stranger: Authority, connect: Connect
) -> None:
    pair = stranger.sign("foreign")
    trouble = refusal(connect(url_of(tls_engine.port), tls=Tls(tls.ca, pair.cert, pair.key)))
    assert f"the engine refuses riseml's certificate {pair.cert}" in trouble.message
    assert "--tlscacert" in str(trouble.hint)


def test_the_engine_refuses_an_expired_certificate(
    tls_engine: TlsEngine, tls: Tls, authority: Authority, connect: Connect
) -> None:
    pair = authority.sign("old", life=-timedelta(hours=1))
    trouble = refusal(connect(url_of(tls_engine.port), tls=Tls(tls.ca, pair.cert, pair.key)))
    assert f"the engine refuses riseml's certificate {pair.cert}" in trouble.message


def test_the_engine_refuses_a_client_without_a_certificate(tls_engine: TlsEngine, tls: Tls) -> None:
    class Nameless(TcpTransport):
        def connect(self, version: str, timeout: float) -> docker.APIClient:
            client = super().connect(version, timeout)
            client.cert = None
            return client

    url = url_of(tls_engine.port)
    engine = Engine(url, Nameless(parse_engine_url(url), replace(tls, cert="", key=""), HASTE.tcp), HASTE)
    trouble = refusal(engine)
    assert "the engine requires a certificate from riseml, and got none" in trouble.message


def test_files_that_do_not_belong_together_are_named(
    tls_engine: TlsEngine, tls: Tls, authority: Authority, connect: Connect, tmp_path: Path
) -> None:
    other = authority.sign("other")
    trouble = refusal(connect(url_of(tls_engine.port), tls=replace(tls, key=other.key)))
    assert f"{other.key} is not the key of {tls.cert}" in trouble.message
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage\n")
    trouble = refusal(connect(url_of(tls_engine.port), tls=replace(tls, ca=str(garbage))))
    assert f"{garbage}" in trouble.message
    trouble = refusal(connect(url_of(tls_engine.port), tls=replace(tls, ca=str(tmp_path / "none.pem"))))
    assert "none.pem" in trouble.message


def test_plain_http_to_a_tls_port_and_tls_to_a_plain_port_are_reported(
    tls_engine: TlsEngine, tls: Tls, engine_url: str, connect: Connect
) -> None:
    trouble = refusal(connect(url_of(tls_engine.port), insecure=True))
    assert f"{url_of(tls_engine.port)} speaks TLS only" in trouble.message
    with Relay("127.0.0.1:0", engine_url.removeprefix("unix://")) as relay:
        assert connect(url_of(relay.port), insecure=True).version()
        assert f"port {relay.port} does not speak TLS" in refusal(connect(url_of(relay.port), tls=tls)).message


def test_a_port_without_a_server_refuses_the_connection(connect: Connect, tls: Tls) -> None:
    trouble = refusal(connect(url_of(find_free_port()), tls=tls))
    assert "does not answer: connection refused" in trouble.message
    assert "is the host up" in str(trouble.hint)


@pytest.mark.parametrize("secured", ["plain", "tls"])
def test_a_host_that_stops_answering_costs_bounded_time_and_leaks_nothing(
    secured: str, tls_engine: TlsEngine, tls: Tls, connect: Connect
) -> None:
    """A frozen relay accepts connections and sends nothing."""
    target = f"127.0.0.1:{tls_engine.port}" if secured == "tls" else f"{tls_engine.folder}/docker.sock"
    patience = replace(HASTE, quick=0.05)
    process = psutil.Process()
    with Relay("127.0.0.1:0", target) as relay:
        fields = {"tls": tls} if secured == "tls" else {"insecure": True}
        engine = connect(url_of(relay.port), patience, **fields)
        calm = connect(url_of(relay.port), **fields)
        assert calm.version()
        relay.freeze()
        assert "timed out" in refusal(engine).message
        before = (process.num_fds(), process.num_threads())
        for _ in range(50):
            assert "timed out" in refusal(engine).message
        with pytest.raises(Unreachable), engine.stream() as api:
            api.ping()
        wait("no more files are open", lambda: process.num_fds() <= before[0])
        wait("no more threads run", lambda: process.num_threads() <= before[1])
        relay.thaw()
        assert calm.version()


def test_followers_end_when_the_network_drops_everything(
    far_network: FarNetwork, engine_url: str, connect: Connect, talk: Callable[..., Talker]
) -> None:
    """Neither FIN nor RST arrives: only keepalive notices. The log and the events end, and calls fail in time."""
    network = far_network
    with Relay(f"{network.there}:0", engine_url.removeprefix("unix://"), network.name) as relay:
        engine = connect(url_of(relay.port, network.there), replace(HASTE, quick=2.0), insecure=True)
        talker = talk(engine_url, BASE, "echo hello; exec sleep 600")
        frames, events = Listener(), Listener()
        log = talker.executor(engine).read_log(talker.key, LogCursor(), follow=True)
        frames.listen(log)
        events.listen(listen_to_nothing(engine))
        wait("the log has begun", lambda: frames.heard)
        network.drop()
        assert frames.ended.wait(DEADLINE)
        assert events.ended.wait(DEADLINE)
        assert refusal(engine)
        network.heal()
        wait("the engine answers again", lambda: _answers(engine))


def _answers(engine: Engine) -> bool:
    try:
        return bool(engine.version())
    except Unreachable:
        return False


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("unix:///nowhere/docker.sock", "no such file or directory"),
        ("tcp://", "tcp"),
        ("ssh://user@somewhere", "as a host of its pool"),
    ],
)
def test_an_engine_of_which_only_the_url_is_known_is_reported(url: str, words: str) -> None:
    assert words in refusal(Engine(url)).message
