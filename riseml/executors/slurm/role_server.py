"""The server of one role: `python3 role_server.py FOLDER ROLE MAIN`, which the role's wrapper starts at the first call.

Standard input is the socket on which the wrapper has listened from the beginning. For each call there is a process:

1. The server sends a line with a random text, its challenge.
2. The caller sends one line of JSON: `request` (JSON as text), `nonce` (a random text of its own) and `proof` that it
   knows the token of the gang (`gang_lines.prove`). The token is in files of the user; it is never sent.
3. The server answers with one line: its own `proof`, and `error` (empty, `gone` or `closed`).
4. What follows are messages of `command_runner` for a command, and the bytes of the port for a port.

What is typed and printed is not encrypted on its way between two machines of the cluster, as with srun.

Everything ends with the role: the wrapper kills what is below it. MAIN is the pid of the role's main process.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import sys
import threading
from typing import Any

from riseml.executors.slurm import gang_lines
from riseml.executors.supervision import command_runner, process_tree

GONE = "gone"  # error: the role has ended
CLOSED = "closed"  # error: no process of the role listens on the port
_MOST_CALLS = 100  # calls at the same time; others wait
_PATIENCE = 20  # seconds for a caller to prove itself; others wait for its place meanwhile
_CONNECT = 5.0  # seconds to connect to a port of this node
_READ_SIZE = 1 << 16
_LISTENS = "0A"  # state of a TCP port in /proc/net/tcp
_PR_SET_PDEATHSIG = 1  # option of prctl(2)


class RoleServer:
    """The calls of one role.

    Args:
        listener: where calls come in.
        order: what the wrapper knows of the role.
        main: pid of the role's main process.
    """

    def __init__(self, listener: socket.socket, order: "dict[str, Any]", main: int) -> None:
        self._listener = listener
        self._order = order
        self._main = main
        self._wrapper = os.getppid()
        self._calls = set()  # type: set[int]

    def run(self) -> None:
        """Answer calls until the wrapper ends this process."""
        while True:
            while len(self._calls) >= _MOST_CALLS:
                self._calls.discard(os.waitpid(-1, 0)[0])
            connection = self._listener.accept()[0]
            self._reap_calls()
            pid = os.fork()
            if pid:
                self._calls.add(pid)
                connection.close()
                continue
            try:
                ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                self._listener.close()
                self._answer(connection)
            except (OSError, ValueError, KeyError) as error:
                print(f"a call failed: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(0)

    def _reap_calls(self) -> None:
        while self._calls:
            pid = os.waitpid(-1, os.WNOHANG)[0]
            if not pid:
                return
            self._calls.discard(pid)

    def _answer(self, connection: socket.socket) -> None:
        """Check a caller, and do what it asks."""
        signal.alarm(_PATIENCE)  # ends this process, even when an unknown caller sends a byte now and then
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        challenge = os.urandom(16).hex()
        connection.sendall(challenge.encode() + b"\n")
        call = json.loads(gang_lines.read_line(connection).decode())
        token = self._order["token"]
        if not gang_lines.is_proven(call["proof"], token, "caller", challenge, call["request"]):
            return
        signal.alarm(0)
        answer = {"proof": gang_lines.prove(token, "door", challenge, call["nonce"]), "error": ""}
        request = json.loads(call["request"])
        if "port" in request:
            self._open_port(connection, answer, request["port"])
        else:
            self._run_command(connection, answer, request)

    def _run_command(self, connection: socket.socket, answer: "dict[str, str]", request: "dict[str, Any]") -> None:
        try:
            order = command_runner.complete_order(request, self._order["workdir"], self._wrapper, self._main)
        except OSError:
            _send_line(connection, dict(answer, error=GONE))
            return
        _send_line(connection, answer)
        command_runner.CommandRunner(connection, order).run()

    def _open_port(self, connection: socket.socket, answer: "dict[str, str]", port: int) -> None:
        for address in find_listeners(process_tree.list_descendants(self._wrapper), port):
            try:
                inner = socket.create_connection((address, port), _CONNECT)
            except OSError:
                continue
            _send_line(connection, answer)
            copy_both_ways(connection, inner)
            return
        _send_line(connection, dict(answer, error=CLOSED))


def find_listeners(pids: "list[int]", port: int) -> "list[str]":
    """Return the addresses at which one of these processes listens on a TCP port. Others' ports are not the role's."""
    addresses = {}  # type: dict[str, str]
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        try:
            with open("/proc/net/" + name) as rows:
                for row in rows:
                    fields = row.split()
                    if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                        addresses["socket:[" + fields[9] + "]"] = _read_address(family, fields[1].rpartition(":")[0])
        except OSError:  # without IPv6
            continue
    return [addresses[name] for name in _list_sockets(pids) if name in addresses]


def _list_sockets(pids: "list[int]") -> "list[str]":
    names = []
    for pid in pids:
        folder = f"/proc/{pid}/fd/"
        try:
            for number in os.listdir(folder):
                names.append(os.readlink(folder + number))
        except OSError:  # it has ended, or is a setuid program of another user
            continue
    return names


def _read_address(family: int, text: str) -> str:
    """Return the address of a row of /proc/net/tcp, words of the machine's own byte order in hexadecimal."""
    words = [struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8)]
    address = socket.inet_ntop(family, b"".join(words))
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)


def copy_both_ways(first: socket.socket, second: socket.socket) -> None:
    """Copy until both sides have ended, in a process of its own: a connection that breaks ends it, and both break."""
    for connection in (first, second):
        connection.settimeout(None)
    back = threading.Thread(target=_copy, args=(second, first))
    back.start()
    _copy(first, second)
    back.join()
    first.close()
    second.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while True:
            data = source.recv(_READ_SIZE)
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)
    except OSError:
        for connection in (source, target):  # the kernel sends a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os._exit(0)


def _send_line(connection: socket.socket, answer: "dict[str, str]") -> None:
    connection.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Answer the calls of one role."""
    folder, role, main_process = sys.argv[1:4]
    with open(os.path.join(folder, "roles", role + ".json")) as file:
        order = json.load(file)
    listener = socket.socket(fileno=os.dup(0))
    listener.settimeout(None)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    RoleServer(listener, order, int(main_process)).run()


if __name__ == "__main__":
    main()
