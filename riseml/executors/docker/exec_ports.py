"""Connections to a port of a container. No port is published on its host.

The server's machine reaches a container of its own engine at the container's address. For other containers, and for
programs that listen on 127.0.0.1 inside a container, riseml runs a small relay in the container with what the image
has: Python, Perl, bash or nc.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import Any

from docker.errors import APIError

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.base.stream_messages import Channel, ChannelData, CommandRequest, StreamMessage, WindowSize
from riseml.executors.base import NotThere, PortClosed
from riseml.executors.docker.containers import container_name
from riseml.executors.docker.exec_codecs import FramedCodec
from riseml.executors.docker.exec_commands import open_container_command
from riseml.executors.job_streams import JobStream, NoControl, RawCodec, StreamControl
from riseml.executors.transports.engine_client import Engine
from riseml.model import JobKey

CONNECTED = b"riseml: connected\n"
NO_TOOL = 97
"""The exit code of an image without any tool that can connect."""

_CONNECT_TIMEOUT = 2.0  # seconds to connect to a container of this machine
_RELAY_TIMEOUT = 20.0  # seconds until a relay has to answer
_CHUNK = 65536  # bytes
_MISSING = 404

# A relay runs in the working folder of a job, whose project may have a socket.py: Python looks there first.
_PYTHON_RELAY = r"""
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import os, socket, threading
port, addresses = int(sys.argv[1]), sys.argv[2:]
for address in addresses:
    try:
        connection = socket.create_connection((address, port), 15)
        break
    except OSError:
        continue
else:
    os._exit(98)
connection.settimeout(None)
def write(data):
    while data:
        data = data[os.write(1, data):]
def send():
    try:
        while True:
            data = os.read(0, 65536)
            if not data:
                break
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        os._exit(0)
write(b"riseml: connected\n")
thread = threading.Thread(target=send)
thread.daemon = True
thread.start()
try:
    while True:
        data = connection.recv(65536)
        if not data:
            break
        write(data)
except OSError:
    pass
os._exit(0)
"""

_PERL_RELAY = r"""
use strict; use IO::Socket::INET; use POSIX ();
my ($port, @addresses) = @ARGV; my $connection;
for (@addresses) { last if $connection = IO::Socket::INET->new(PeerAddr => $_, PeerPort => $port, Timeout => 15); }
POSIX::_exit(98) unless $connection;
syswrite STDOUT, "riseml: connected\n";
sub pass { my ($from, $to) = @_; my $data;
  while (sysread $from, $data, 65536) { my $at = 0;
    while ($at < length $data) {
      my $n = syswrite $to, $data, length($data) - $at, $at; return unless $n; $at += $n } } }
my $child = fork;
if (!$child) { pass(\*STDIN, $connection); shutdown($connection, 1); POSIX::_exit(0) }
pass($connection, \*STDOUT); kill 9, $child; POSIX::_exit(0);
"""

_BASH_RELAY = r"""
port=$1; shift
for address in "$@"; do
  if { exec 3<>"/dev/tcp/$address/$port"; } 2>/dev/null; then
    echo 'riseml: connected'
    cat <&0 >&3 &
    cat <&3
    kill -9 $! 2>/dev/null
    exit 0
  fi
done
exit 98
"""

_RELAY_CHOICE = r"""
port=$1; shift
has() { command -v "$1" >/dev/null 2>&1; }
if has python3; then exec python3 -ES -c "$PYTHON_RELAY" "$port" "$@"; fi
if has python; then exec python -ES -c "$PYTHON_RELAY" "$port" "$@"; fi
if has perl; then exec perl -e "$PERL_RELAY" "$port" "$@"; fi
if has bash && has cat; then exec bash -c "$BASH_RELAY" bash "$port" "$@"; fi
if has nc; then
  for address in "$@"; do
    if nc -z "$address" "$port" 2>/dev/null; then echo 'riseml: connected'; exec nc "$address" "$port"; fi
  done
  exit 98
fi
exit 97
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerAccess:
    """Opens streams into the containers of one server on one engine; an implementation of `JobAccess`."""

    engine: Engine
    server: str  # id of the server

    def open_command(self, key: JobKey, request: CommandRequest) -> JobStream:
        return open_container_command(self.engine, container_name(self.server, key), request)

    def open_port(self, key: JobKey, port: int) -> JobStream:
        name = container_name(self.server, key)
        addresses = _find_addresses(self.engine, name)
        for address in addresses if self.engine.is_local else ():
            try:
                connection = socket.create_connection((address, port), _CONNECT_TIMEOUT)
            except OSError as error:
                log.debug("port %d of %s at %s: %s", port, name, address, error)
                continue
            connection.settimeout(None)
            return JobStream(connection, RawCodec(), NoControl())
        return _open_relay(self.engine, name, port, tuple(dict.fromkeys(("127.0.0.1", *addresses))))


def make_relay(port: int, addresses: Sequence[str]) -> list[str]:
    """Return the command of a relay between its own standard input and output and a port.

    The relay tries the addresses in turn, prints `CONNECTED` when one answers, and copies both ways; it passes the end
    of one direction on. It tries the next address at once when no program listens, and after 15 seconds when the
    program does not accept.
    """
    scripts = {"PYTHON_RELAY": _PYTHON_RELAY, "PERL_RELAY": _PERL_RELAY, "BASH_RELAY": _BASH_RELAY}
    assignments = "".join(f"{name}=${number}; " for number, name in enumerate(scripts, 1))
    script = f"{assignments}shift {len(scripts)}\n{_RELAY_CHOICE}"
    return ["/bin/sh", "-c", script, "sh", *scripts.values(), str(port), *addresses]


def _find_addresses(engine: Engine, name: str) -> tuple[str, ...]:
    """Return the addresses of a running container. On the network of its host it has all addresses of the host."""
    with engine.api() as api:
        try:
            container: dict[str, Any] = api.inspect_container(name)
        except APIError as error:
            if error.status_code == _MISSING:
                raise NotThere("the job does not run") from error
            raise
    if not container["State"]["Running"]:
        raise NotThere("the job does not run")
    if container["HostConfig"]["NetworkMode"] == "host":
        return ("127.0.0.1",)
    networks: dict[str, Any] = container["NetworkSettings"]["Networks"] or {}
    return tuple(str(network["IPAddress"]) for network in networks.values() if network.get("IPAddress"))


def _open_relay(engine: Engine, name: str, port: int, addresses: tuple[str, ...]) -> JobStream:
    """Run a relay in the container, and return its stream once it has connected."""
    stream = open_container_command(engine, name, CommandRequest(tuple(make_relay(port, addresses))))
    codec = FramedCodec()
    try:
        stream.socket.settimeout(_RELAY_TIMEOUT)
        first = _read_greeting(stream, codec)
        stream.socket.settimeout(None)
    except (OSError, ValueError) as error:
        stream.socket.close()
        stream.control.end()
        raise EngineError(f"the relay to port {port} did not answer: {error}") from error
    if first is not None:
        return JobStream(stream.socket, _RelayCodec(codec, first), _RelayControl(stream.control))
    stream.socket.close()
    if stream.control.find_exit_code() == NO_TOOL:
        raise EngineError(
            f"port {port} needs a relay in the container, and its image has no python3, perl, bash or nc to run one",
            "add one of them to `install` in riseml.yml",
            permanent=True,
        )
    raise PortClosed(f"nothing listens on port {port} in the container", permanent=True)


def _read_greeting(stream: JobStream, codec: FramedCodec) -> bytes | None:
    """Return the bytes after the line that says that the relay has connected; None: the relay ended without it."""
    output = b""
    received = stream.received
    while len(output) < len(CONNECTED):
        received = received or stream.socket.recv(_CHUNK)
        if not received:
            return None
        pieces = codec.decode(received)
        output += b"".join(
            piece.content for piece in pieces if isinstance(piece, ChannelData) and piece.channel is Channel.OUTPUT
        )
        received = b""
    if not output.startswith(CONNECTED):
        raise ValueError(f"it said {output[:20]!r}")
    return output[len(CONNECTED) :]


class _RelayCodec:
    """The stream of a relay: its standard output comes from the port; its standard error does not."""

    def __init__(self, frames: FramedCodec, first: bytes) -> None:
        self._frames = frames
        self._first = first  # bytes that arrived together with the relay's greeting

    def decode(self, data: bytes) -> list[StreamMessage]:
        first, self._first = self._first, b""
        pieces: list[StreamMessage] = [ChannelData(Channel.OUTPUT, first)] if first else []
        return pieces + [
            message
            for message in self._frames.decode(data)
            if not isinstance(message, ChannelData) or message.channel is Channel.OUTPUT
        ]

    def encode(self, message: StreamMessage) -> bytes | None:
        return self._frames.encode(message)


class _RelayControl:
    """Ends a relay. A relay ends with its connections; a sweep ends one that does not."""

    def __init__(self, command: StreamControl) -> None:
        self._command = command

    def resize(self, size: WindowSize) -> None:
        """Do nothing."""

    def find_exit_code(self) -> int | None:
        return None

    def end(self) -> None:
        self._command.end()
