"""A relay between its own standard input and output and a port, as a command for a container.

It tries some addresses, prints `CONNECTED` when one answers, and copies both ways; it passes the end of one direction
on. It tries the next address at once when no program listens, and after 15 seconds when the program does not accept.
"""

from __future__ import annotations

from collections.abc import Sequence

CONNECTED = b"riseml: connected\n"
NO_TOOL = 97
"""The exit code of an image without any tool that can connect."""

_PYTHON = r"""
import os, socket, sys, threading
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

_PERL = r"""
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

_BASH = r"""
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

_CHOICE = r"""
port=$1; shift
has() { command -v "$1" >/dev/null 2>&1; }
if has python3; then exec python3 -c "$PYTHON_RELAY" "$port" "$@"; fi
if has python; then exec python -c "$PYTHON_RELAY" "$port" "$@"; fi
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


def make_relay(port: int, addresses: Sequence[str]) -> list[str]:
    """Return the command of a relay that tries these addresses in turn."""
    scripts = {"PYTHON_RELAY": _PYTHON, "PERL_RELAY": _PERL, "BASH_RELAY": _BASH}
    assignments = "".join(f"{name}=${number}; " for number, name in enumerate(scripts, 1))
    script = f"{assignments}shift {len(scripts)}\n{_CHOICE}"
    return ["/bin/sh", "-c", script, "sh", *scripts.values(), str(port), *addresses]
