"""Answers the reports of Kubeflow's trainer protocol inside a job: a training that uses transformers needs no line for
riseml. Python 3.6 or newer, standard library only.

`python3 -IS trainer_relay.py SHELL OUTPUT`, from the shell of the script, whose pid is SHELL and whose stdout is the
descriptor OUTPUT. The program listens at a port of 127.0.0.1, prints the lines that set the variables of the protocol,
and goes on in the background until that shell has ended. Each report becomes lines on OUTPUT (`reports`).

A client posts what it knows, once in five seconds at most, with the token of the job:

    {"trainerStatus": {"progressPercentage": 45, "metrics": [{"name": "loss", "value": "0.15"}, ...], ...}}

A metric is sent again until it has another value: only a new value is reported. `current_step` is the step of a report,
and with `total_steps` the progress.

Nothing waits for this program: a client whose connection is refused goes on at once, and one without an answer after
five seconds. Whatever a client sends, the program holds some 100 kB of it for each of a few connections, and answers a
few requests in a second.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from riseml.job_programs.reports import print_problem, progress, send_metrics

TOKEN_FILE = "trainer_token"  # beside this program
MOST_BODY = 1 << 16  # bytes of a request
MOST_NAMES = 100  # metrics: the server keeps no more
MOST_REQUESTS = 10  # in a second
_MOST_HEAD = 1 << 14
_MOST_CONNECTIONS = 16
_PATIENCE = 5.0  # seconds that a connection may take
_CHECK = 0.2  # seconds between two looks at the shell, where no descriptor tells its end
_LONGEST_VALUE = 40  # characters
_LARGEST_STEP = 10**15 - 1  # that a report takes
_STEP = "current_step"
_OF = "total_steps"
_EPOCH = "current_epoch"  # beside `epoch` of the log
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 405: "Method Not Allowed", 413: "Payload Too Large"}


class TrainerStatus:
    """What a training has told so far."""

    def __init__(self) -> None:
        self.sent = {}  # type: dict[str, str]
        self.step = None  # type: int | None
        self.of = 0
        self.has_told = False  # of too many names

    def report(self, status: "dict[str, object]") -> None:
        """Print what is new in one report.

        Raises:
            ValueError: it has another form.
        """
        percentage = status.get("progressPercentage")
        if percentage is not None and (isinstance(percentage, bool) or not isinstance(percentage, (int, float))):
            raise ValueError("progressPercentage is not a number")
        values = _read_metrics(status.get("metrics"))
        self._note_progress(values, None if percentage is None else float(percentage))
        fresh = {}  # type: dict[str, object]
        for name, text in values.items():
            if self.sent.get(name) == text:
                continue
            if name not in self.sent and len(self.sent) >= MOST_NAMES:
                self._tell_names(name)
                continue
            self.sent[name] = text
            fresh[name] = text
        if fresh and self.step is not None:
            fresh["step"] = self.step
        if fresh:
            send_metrics(fresh)

    def _note_progress(self, values: "dict[str, str]", percentage: "float | None") -> None:
        """Take the progress out of the values."""
        values.pop(_EPOCH, None)
        step = _read_count(values.pop(_STEP, None))
        self.of = _read_count(values.pop(_OF, None)) or self.of
        if percentage == 100 and step is None and self.of:
            step = self.of
        if step is not None and step <= _LARGEST_STEP:
            self.step = step
        if step is not None and self.of:
            progress(min(step, self.of), self.of)
        elif percentage is not None and 0 <= percentage <= 100:
            progress(percentage, 100)

    def _tell_names(self, name: str) -> None:
        if not self.has_told:
            self.has_told = True
            print_problem(f"the training has more than {MOST_NAMES} metrics: {name[:200]!r} and others are left out")


def _read_metrics(entries: object) -> "dict[str, str]":
    """Return the metrics of a report by name.

    Raises:
        ValueError: it has another form.
    """
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise ValueError("metrics is not a list")
    values = {}  # type: dict[str, str]
    for entry in entries:
        name, text = (entry.get("name"), entry.get("value")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(text, str):
            raise ValueError("a metric has a name and a value, both texts")
        if len(text) <= _LONGEST_VALUE and _is_number(text):  # a client may also send words
            values[name] = text
    return values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_count(text: "str | None") -> "int | None":
    try:
        number = int(float(text or "nan"))
    except (ValueError, OverflowError):
        return None
    return number if number >= 0 else None


class Request:
    """One connection, and what has come over it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.data = b""
        self.deadline = time.monotonic() + _PATIENCE

    def read(self) -> bool:
        """Read what has come; False at its end."""
        try:
            piece = self.connection.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.data += piece
        return bool(piece)

    def answer(self, code: int, body: "dict[str, object]") -> None:
        """Answer, and close the connection."""
        content = json.dumps(body).encode()
        head = f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        with contextlib.suppress(OSError):
            self.connection.send(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        self.connection.close()


class TrainerRelay:
    """Answers requests until the shell of the job has ended.

    Args:
        listener: the socket.
        token: that each request has.
    """

    def __init__(self, listener: socket.socket, token: str) -> None:
        self.listener = listener
        self.expected = f"Bearer {token}".encode()
        self.status = TrainerStatus()
        self.requests = {}  # type: dict[int, Request]
        self.second = 0
        self.count = 0  # of requests in this second

    def follow(self, shell: int, end: int) -> None:
        """Answer requests until a shell has ended.

        Args:
            shell: its pid.
            end: a descriptor that is readable then; -1: there is none.
        """
        began = read_start(shell)
        while True:
            ready = self._wait([end] if end >= 0 else [])
            if end in ready or (end < 0 and read_start(shell) != began):
                return
            self._handle(ready)

    def _wait(self, ends: "list[int]") -> "list[int]":
        """Return the descriptors that are readable: of the listener, of requests and of the end of the shell."""
        is_late = self._is_late()
        sources = [] if is_late else [self.listener.fileno(), *self.requests]
        timeout = _CHECK if is_late or not ends else (1.0 if self.requests else None)
        return select.select(sources + ends, [], [], timeout)[0]

    def _handle(self, ready: "list[int]") -> None:
        """Read what has come, and close the connections that take too long."""
        for descriptor in ready:
            if descriptor == self.listener.fileno():
                self._accept()
            elif descriptor in self.requests:
                self._read(self.requests[descriptor])
        now = time.monotonic()
        for request in [request for request in self.requests.values() if request.deadline < now]:
            self._close(request)

    def _is_late(self) -> bool:
        """Return True when this second has had its requests."""
        second = int(time.monotonic())
        if second != self.second:
            self.second = second
            self.count = 0
        return self.count >= MOST_REQUESTS

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:  # the client has gone
            return
        self.count += 1
        connection.settimeout(0)
        if len(self.requests) >= _MOST_CONNECTIONS:
            self._close(next(iter(self.requests.values())))
        self.requests[connection.fileno()] = Request(connection)

    def _close(self, request: Request) -> None:
        self.requests.pop(request.connection.fileno(), None)
        request.connection.close()

    def _read(self, request: Request) -> None:
        descriptor = request.connection.fileno()
        is_open = request.read()
        head, separator, body = request.data.partition(b"\r\n\r\n")
        if separator or len(head) > _MOST_HEAD:
            answer = self._answer(head[:_MOST_HEAD], body)
            if answer is not None:
                del self.requests[descriptor]
                request.answer(*answer)
                return
        if not is_open:
            self._close(request)

    def _answer(self, head: bytes, body: bytes) -> "tuple[int, dict[str, object]] | None":
        """Return the answer to a request; None: it is not whole yet."""
        import hmac  # not before the job begins: it takes 10 ms

        line, *lines = head.split(b"\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        if not hmac.compare_digest(headers.get(b"authorization", b""), self.expected):
            return _refuse(401, "Unauthorized", "the request does not have the token of this job")
        if not line.startswith(b"POST "):
            return _refuse(405, "MethodNotAllowed", "only POST is known here")
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or len(length) > 9:
            return _refuse(400, "BadRequest", "the request has no Content-Length")
        if int(length) > MOST_BODY:
            return _refuse(413, "RequestEntityTooLarge", f"a report has {MOST_BODY} bytes at most")
        if len(body) < int(length):
            return None
        try:
            content = json.loads(body[: int(length)].decode())
            status = content["trainerStatus"]
            if not isinstance(status, dict):
                raise ValueError("trainerStatus is not a map")
            self.status.report(status)
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            return _refuse(400, "BadRequest", f"this is no report of a trainer: {problem!r:.200}")
        return 200, content


def _refuse(code: int, reason: str, message: str) -> "tuple[int, dict[str, object]]":
    """Return a failure in the form of Kubernetes."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}  # type: dict[str, object]
    return code, dict(status, message=message, reason=reason, code=code)


def read_start(pid: int) -> bytes:
    """Return when a process has started; empty: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return b""
    return b"" if fields[0] in (b"Z", b"X") else fields[19]


def list_variables(port: int, token_file: str, environment: "dict[str, str]") -> "dict[str, str]":
    """Return the variables of the protocol. A proxy of the job is not for them."""
    variables = {
        "KUBEFLOW_TRAINER_SERVER_URL": f"http://127.0.0.1:{port}",
        "KUBEFLOW_TRAINER_SERVER_TOKEN": token_file,
    }
    if any(environment.get(name) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")):
        exceptions = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
        variables["no_proxy"] = f"{exceptions},127.0.0.1" if exceptions else "127.0.0.1"
    return variables


def write_token(path: str) -> str:
    """Write a new token into a file of this user alone, and return it."""
    token = os.urandom(24).hex()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(token)
    return token


def main() -> None:
    """Listen, print the variables, and go on in the background."""
    shell, output = map(int, sys.argv[1:3])
    token_file = os.path.join(os.path.dirname(os.path.abspath(__file__)), TOKEN_FILE)
    token = write_token(token_file)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(_MOST_CONNECTIONS)
    listener.settimeout(0)
    variables = list_variables(listener.getsockname()[1], token_file, dict(os.environ))
    text = "".join("export {}='{}'\n".format(name, value.replace("'", "'\\''")) for name, value in variables.items())
    sys.stdout.flush()
    if os.fork():
        os.write(1, text.encode("utf-8", "surrogateescape"))
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # each process of a job gets SIGTERM
    os.dup2(output, 1)
    os.close(output)
    with contextlib.suppress(OSError):
        os.nice(5)
    end = -1
    with contextlib.suppress(AttributeError, OSError):  # Python before 3.9, or an engine that refuses the call
        end = os.pidfd_open(shell)
    TrainerRelay(listener, token).follow(shell, end)


def run() -> None:
    """Run the program; the training goes on without it when it fails."""
    try:
        main()
    except Exception as problem:  # noqa: BLE001  # a fault of the relay must not end the training
        print_problem(f"reports of the trainer are not read: {problem!r:.300}")


if __name__ == "__main__":
    run()
