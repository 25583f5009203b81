"""`riseml forward`: ports of jobs on this machine."""

from __future__ import annotations

import hashlib
import http.client
import json
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from tests.real.streams.conftest import Hands
from tests.support.ports import find_free_port
from tests.support.rig import Rig, single
from tests.support.waiting import DEADLINE

SERVER = """
import hashlib, http.server, socket, struct, sys, threading
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):  # break the connection
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
    def do_POST(self):
        size = int(self.headers["Content-Length"])
        body = self.rfile.read(size)
        answer = hashlib.sha256(body).hexdigest().encode() + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # with the 5 of the library the kernel resets some of many connections at once
servers = [Server((host, int(port)), Echo) for host, port in map(str.split, sys.argv[1:])]
threads = [threading.Thread(target=server.serve_forever) for server in servers]
for thread in threads:
    thread.start()
print("listens", flush=True)
"""


class EchoJob:
    """A job with an HTTP server at two ports: one that its network reaches, one on its loopback."""

    def __init__(self, rig: Rig) -> None:
        self.open, self.inner = (8888, 9999) if rig.host.contained else (find_free_port(), find_free_port())
        run = f"exec python3 server.py '0.0.0.0 {self.open}' '127.0.0.1 {self.inner}'"
        self.name: str = rig.submit(single(run), {"server.py": SERVER})["id"]
        self.hands = Hands(rig, self.name)
        rig.wait("the job listens", lambda: f"{self.name}.train listens" in rig.lines(self.name, follow=False))

    @contextmanager
    def forward(self, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
        """Run `riseml forward`; give its process and the ports of this machine."""
        process = self.hands.start("forward", *words, "--json")
        assert process.stdout is not None
        try:
            shown = json.loads(process.stdout.readline())
            yield process, [int(one["address"].rpartition(":")[2]) for one in shown["forwards"]]
        finally:
            process.kill()
            print(process.communicate()[1].decode())  # pytest shows it when the test fails


def post(port: int, body: bytes) -> bool:
    """Return whether an echo of the body came back."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        connection.request("POST", "/", body)
        answer = connection.getresponse().read()
    finally:
        connection.close()
    return answer == hashlib.sha256(body).hexdigest().encode() + body


@pytest.mark.every_engine
def test_many_connections_reach_both_ports(shared_rig: Rig) -> None:
    rig, job = shared_rig, EchoJob(shared_rig)
    with job.forward(job.name, f"0:{job.open}", f"0:{job.inner}") as (process, (open_, inner)):
        bodies = [bytes([number]) * (number * 40_000) for number in range(1, 25)]
        with ThreadPoolExecutor(24) as pool:
            assert all(pool.map(post, [open_] * 24, bodies))
            assert all(pool.map(post, [inner] * 4, bodies[:4]))
            with pytest.raises(OSError), urllib.request.urlopen(f"http://127.0.0.1:{open_}/", timeout=DEADLINE):
                pass  # the job breaks this connection; the others go on
            assert post(open_, b"after it")
            rig.kill()
            late = pool.submit(post, open_, b"while no server runs")
            rig.start()
            assert late.result(DEADLINE)
        with socket.create_connection(("127.0.0.1", open_)) as silent:  # a connection that is open at the end
            silent.sendall(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=DEADLINE)
            assert (process.returncode, b"Interrupted." in err) == (130, True)
            with suppress(ConnectionResetError):
                assert silent.recv(10) == b""
    rig.wait("no relay is left", lambda: not any("RELAY" in line for line in job.hands.list_commands()))
    assert rig.experiment(job.name)["state"] == "RUNNING"


def test_what_cannot_be_forwarded_is_said_in_one_sentence(shared_rig: Rig) -> None:
    rig, job = shared_rig, EchoJob(shared_rig)
    call = job.hands.call
    code, _, err = call("forward", job.name, "7")
    assert (code, f"nothing listens on port 7 in {job.name}.train" in err) == (3, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = call("forward", job.name, f"{port}:{job.open}")
        assert (code, f"port {port} of this machine cannot be used: Address already in use" in err) == (4, True)
    assert call("forward", job.name, "70000")[0] == call("forward", job.name, "a:1")[0] == 2
    with job.forward(f"{job.name}.train", f"0:{job.open}") as (process, (port,)):
        rig.post(f"/v1/experiments/{job.name}/kill")
        rig.wait_closed(job.name)
        with socket.create_connection(("127.0.0.1", port)) as late:
            with suppress(ConnectionError):  # the command may be faster: it has closed the connection, and ends
                late.sendall(b"POST / HTTP/1.1\r\n\r\n")
            _, err_ = process.communicate(timeout=DEADLINE)
        assert (process.returncode, f"{job.name}.train has ended (KILLED)".encode() in err_) == (4, True)
