"""Engines over ssh: a real sshd in front of the real engine."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from riseml.base.errors import Unreachable
from riseml.base.names import HostName
from riseml.executors.transports.engine_client import Engine
from riseml.model import LogCursor
from riseml.spec.pool.types import HostSpec
from tests.real.transports.conftest import BASE, HASTE, Connect, Talker, refusal, ssh_url
from tests.real.transports.servers import (
    Listener,
    Relay,
    Sshd,
    find_tunnels,
    is_gone,
    listen_to_nothing,
    make_key,
    wait,
)
from tests.support.waiting import DEADLINE

HOLDER = """\
import sys
from pathlib import Path
from riseml.executors.transports.engine_client import Engine
from riseml.base.names import HostName
from riseml.spec.pool.types import HostSpec
url, identity, known_hosts, home = sys.argv[1:]
engine = Engine.of_host(HostSpec(HostName("far"), url, identity=identity, known_hosts=known_hosts), Path(home))
print(engine.version(), flush=True)
sys.stdin.read()
"""


def answers(engine: Engine) -> bool:
    """Return whether the engine answers."""
    try:
        return bool(engine.version())
    except Unreachable:
        return False


def test_an_engine_over_ssh_answers_through_one_process(far: Engine, engine_url: str) -> None:
    assert find_tunnels() == []
    assert far.version() == Engine(engine_url).version()
    assert not far.is_local
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(answers(far))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
    assert len(find_tunnels()) == 1
    far.close()
    assert find_tunnels() == []
    assert "closed" in refusal(far).message


def test_only_this_user_reaches_the_socket_and_nothing_is_left(far: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "tunnels"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "999999999-00.sock").touch()  # a server that was killed left it
    far.version()
    sockets = list(folder.iterdir())
    assert [path.name.split("-")[0] for path in sockets] == [str(os.getpid())]
    assert sockets[0].stat().st_mode & 0o777 == 0o600
    far.close()
    assert list(folder.iterdir()) == []


def test_a_folder_that_others_may_enter_is_not_used(far: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "tunnels"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    assert f"{folder} is not a folder of yours alone" in refusal(far).message


def test_a_home_with_a_long_or_an_odd_name_has_a_tunnel(sshd: Sshd, engine_url: str, tmp_path: Path) -> None:
    for name in ("x" * 100, "a %d b: c"):
        home = tmp_path / name
        home.mkdir()
        known_hosts = home / "known_hosts"
        known_hosts.write_bytes(sshd.known_hosts.read_bytes())
        engine = Engine.of_host(HostSpec(HostName("far"), ssh_url(sshd, engine_url), identity=str(sshd.identity)), home)
        assert engine.version()
        engine.close()


def test_a_log_comes_through(far: Engine, engine_url: str, talk: Callable[..., Talker]) -> None:
    lines = "".join(f"line {number}\n" for number in range(20_000)).encode()
    talker = talk(engine_url, BASE, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
    read = talker.executor(far).read_log(talker.key, LogCursor(), follow=True)
    assert b"".join(frame.data for frames in read for frame in frames) == lines


def test_a_tunnel_that_is_killed_is_opened_again(
    sshd: Sshd, engine_url: str, connect: Connect, talk: Callable[..., Talker]
) -> None:
    patience = replace(HASTE, ssh=replace(HASTE.ssh, first_delay=6.0))  # long enough to look at it while it is down
    url = ssh_url(sshd, engine_url)
    far = connect(url, patience, identity=str(sshd.identity), known_hosts=str(sshd.known_hosts))
    far.version()
    talker = talk(engine_url, BASE, "echo hello; exec sleep 600")
    log = talker.executor(far).read_log(talker.key, LogCursor(), follow=True)
    assert [frame.data for frame in next(log)] == [b"hello\n"]
    (tunnel,) = find_tunnels()
    tunnel.kill()
    with pytest.raises((Unreachable, StopIteration)):  # a cut stream may look like one that ended
        next(log)
    trouble = refusal(far)
    assert trouble.exit_code == 5
    assert "does not answer" in trouble.message or "no way to host far" in trouble.message
    wait("the tunnel is up again", lambda: answers(far))
    assert [one.pid for one in find_tunnels()] != [tunnel.pid]


def test_an_unknown_host_key_is_refused(sshd: Sshd, far: Engine) -> None:
    sshd.known_hosts.unlink()
    trouble = refusal(far)
    assert f"its host key is not pinned in {sshd.known_hosts}" in trouble.message
    assert "`riseml pool trust far`" in str(trouble.hint)
    assert f"`ssh-keyscan -p {sshd.port} 127.0.0.1 >> {sshd.known_hosts}`" in str(trouble.hint)
    sshd.pin(sshd.host_key)
    wait("the tunnel finds the pinned key", lambda: answers(far))


def test_another_host_key_is_refused(sshd: Sshd, far: Engine, tmp_path: Path) -> None:
    sshd.pin(make_key(tmp_path / "other"))
    trouble = refusal(far)
    assert f"its host key is not the one pinned in {sshd.known_hosts}" in trouble.message
    assert "fingerprint" in str(trouble.hint)


def test_the_known_hosts_of_the_user_do_not_count(
    sshd: Sshd, engine_url: str, connect: Connect, tmp_path: Path
) -> None:
    engine = connect(ssh_url(sshd, engine_url), identity=str(sshd.identity))
    assert f"not pinned in {tmp_path / 'home' / 'known_hosts'}" in refusal(engine).message


def test_a_key_that_the_host_does_not_know_is_refused(
    sshd: Sshd, engine_url: str, connect: Connect, tmp_path: Path
) -> None:
    key = make_key(tmp_path / "another")
    engine = connect(ssh_url(sshd, engine_url), identity=str(key), known_hosts=str(sshd.known_hosts))
    trouble = refusal(engine)
    assert f"{getpass.getuser()}@127.0.0.1 refuses the login (publickey)" in trouble.message
    assert f"ssh -i {key} -p {sshd.port} {getpass.getuser()}@127.0.0.1 true" in str(trouble.hint)


def test_a_missing_ssh_server_is_reported_and_found_later(sshd: Sshd, far: Engine) -> None:
    sshd.stop()
    assert "Connection refused" in refusal(far).message
    sshd.start()
    wait("the tunnel finds the sshd", lambda: answers(far))


def test_a_missing_engine_on_the_host_is_reported(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    url = f"ssh://127.0.0.1:{sshd.port}{tmp_path.parent}/none.sock"
    engine = connect(url, identity=str(sshd.identity), known_hosts=str(sshd.known_hosts))
    told = wait(
        "ssh says why", lambda: next((one for one in [refusal(engine)] if "cannot be opened" in one.message), None)
    )
    assert f"ssh gets in, but {tmp_path.parent}/none.sock on the host cannot be opened" in told.message
    assert "does Docker run there" in str(told.hint)


def test_a_missing_ssh_client_is_reported(far: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    trouble = refusal(far)
    assert "ssh cannot be started" in trouble.message
    assert "OpenSSH client" in str(trouble.hint)


def test_a_helper_of_ssh_that_lives_on_does_not_keep_a_dead_tunnel(
    far: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A ProxyCommand can do that: it keeps the pipe open that the tunnel reads."""
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nsleep 300 &\necho "$!" >> "$0.helpers"\necho "riseml: the tunnel is up"\nwait\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    assert "no such file or directory" in refusal(far).message  # it is up, and has created no socket
    (tunnel,) = find_tunnels()
    tunnel.kill()
    wait("another one is started", lambda: len((tmp_path / "bin" / "ssh.helpers").read_text().split()) > 1)
    far.close()
    for helper in (tmp_path / "bin" / "ssh.helpers").read_text().split():
        os.kill(int(helper), signal.SIGKILL)


def test_an_ssh_that_does_not_get_through_is_ended_and_started_again(
    sshd: Sshd, engine_url: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$$" >> "$0.started"\nexec sleep 300\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    far = connect(ssh_url(sshd, engine_url), replace(HASTE, ssh=replace(HASTE.ssh, connect=1, login=0)))
    assert "ssh did not get through within 1 s" in refusal(far).message
    started = tmp_path / "bin" / "ssh.started"
    wait("ssh is started again", lambda: len(started.read_text().split()) > 1)
    first = int(started.read_text().split()[0])
    assert not psutil.pid_exists(first)
    assert "ssh did not get through within 1 s" in refusal(far).message, "callers do not wait for the second attempt"
    far.close()
    assert not any(psutil.pid_exists(int(pid)) for pid in started.read_text().split())


def test_the_tunnel_of_a_killed_server_ends(sshd: Sshd, engine_url: str, tmp_path: Path) -> None:
    arguments = [ssh_url(sshd, engine_url), str(sshd.identity), str(sshd.known_hosts), str(tmp_path / "home")]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip()
        (tunnel,) = find_tunnels(holder.pid)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        wait("the tunnel is gone", lambda: not tunnel.is_running())


def test_the_tunnel_of_a_server_that_ends_ends(sshd: Sshd, engine_url: str, tmp_path: Path) -> None:
    arguments = [ssh_url(sshd, engine_url), str(sshd.identity), str(sshd.known_hosts), str(tmp_path / "home")]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline().strip()
        (tunnel,) = find_tunnels(holder.pid)
        holder.stdin.close()
        holder.wait()
        wait("the tunnel is gone", lambda: not tunnel.is_running())


def test_a_silent_connection_ends_and_is_opened_again(sshd: Sshd, engine_url: str, connect: Connect) -> None:
    with Relay("127.0.0.1:0", f"127.0.0.1:{sshd.port}") as relay:
        sshd.known_hosts.write_text(sshd.known_hosts.read_text().replace(str(sshd.port), str(relay.port)))
        url = ssh_url(sshd, engine_url, relay.port)
        engine = connect(url, HASTE, identity=str(sshd.identity), known_hosts=str(sshd.known_hosts))
        assert engine.version()
        events = Listener()
        events.listen(listen_to_nothing(engine))
        relay.freeze()
        assert events.ended.wait(DEADLINE)
        assert refusal(engine)
        relay.thaw()
        wait("it answers again", lambda: answers(engine))


def test_tunnels_that_end_leave_nothing_behind(far: Engine) -> None:
    process = psutil.Process()
    far.version()
    before = (process.num_fds(), process.num_threads())
    for _ in range(50):
        (tunnel,) = find_tunnels()
        tunnel.kill()
        wait("it is gone", partial(is_gone, tunnel))
        wait("the tunnel is up again", lambda: answers(far) and len(find_tunnels()) == 1)
    wait("no more files are open", lambda: process.num_fds() <= before[0])
    wait("no more threads run", lambda: process.num_threads() <= before[1])
