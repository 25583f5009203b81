"""The stacks of a container's processes, through a helper container that shares its name space of processes.

The job gets no right and no program. The helper has py-spy and `file_printer` in an image of their own, and nothing
else: no shell, no network, a read-only file system, and of all capabilities SYS_PTRACE alone. It sees the processes of
this one job; the kernel lets no process of the job trace it, because that would need SYS_PTRACE. Memory, processor,
number of processes and time are bounded, and so is what the server reads of its answers. It runs nothing of the job.

py-spy reads the names of native functions from the libraries at their paths. So for those the helper has the image of
the job below both programs, which need no library of it and run nothing of it.
"""

from __future__ import annotations

import io
import platform
import secrets
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import docker

from riseml.base.errors import EngineError
from riseml.base.records import dataclass
from riseml.base.stream_messages import Channel, ChannelData
from riseml.diagnosis.process_rows import read_rows
from riseml.diagnosis.stacks import ProcessStacks
from riseml.executors.base import NotThere
from riseml.executors.docker.containers import container_name
from riseml.executors.docker.exec_codecs import FramedCodec
from riseml.executors.docker.exec_commands import create_exec
from riseml.executors.docker.file_printer import LONGEST_STAY, PROCESSORS, list_names, parse_blocks
from riseml.executors.docker.helper_container import send_archive
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.project_archive import WORKING_FOLDER
from riseml.executors.docker.tiny_program import import_programs, make_program_file
from riseml.executors.job_stacks import ProfileRequest, RecordedProfile, StackRequest, shorten_files
from riseml.executors.this_machine.spy import find_spy, read_spy_version
from riseml.executors.transports.engine_client import Engine
from riseml.job_programs.process_facts import (
    ENDED,
    LONGEST_COMMAND,
    MOST_DUMP,
    MOST_DUMPS,
    MOST_MEMORY,
    MOST_PROCESSES,
    PARALLEL,
    PATIENCE,
    PROFILE_START,
    WHOLE_PATIENCE,
    choose_options,
    choose_profile_options,
    explain_failure,
    find_most_files,
    find_rank,
    is_own_program,
    join_command,
    may_be_python,
    parse_stat,
)
from riseml.model import JobKey

REPOSITORY = "riseml/stacks"
_EDITION = 1  # counts the changes of `file_printer`
_SPY = "py-spy"
_PRINTER = "file-printer"
_CHUNK = 1 << 16
_MOST_FILES = 1 << 24  # bytes of /proc that are read at once
_MOST_SEEN = 4096  # processes of a job of which the state is read
_AT_ONCE = 512  # paths in one call
_FACTS = ("wchan", "environ", "limits", "fd")  # what is read of each process
_QUICK_PATIENCE = 15.0  # seconds to read files of /proc
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class ContainerStacks:
    """Reads the stacks of containers on one host; an implementation of `StackReader`."""

    helpers: Helpers

    def read_stacks(self, key: JobKey, request: StackRequest) -> tuple[ProcessStacks, ...]:
        with self._lend_calls(key, WHOLE_PATIENCE, native=request.native) as calls:
            return read_rows(key.job, calls.collect_rows(request), f"/{WORKING_FOLDER}")

    def record_profile(self, key: JobKey, request: ProfileRequest) -> RecordedProfile:
        with self._lend_calls(key, LONGEST_STAY, native=request.native) as calls:
            try:
                return calls.record_profile(request)
            except EngineError as error:
                raise EngineError(f"{key.job} could not be recorded: {error.message}", permanent=True) from error

    @contextmanager
    def _lend_calls(self, key: JobKey, seconds: float, *, native: bool) -> Iterator[_HelperCalls]:
        """Give the calls to a new helper beside a job, and remove the helper afterwards."""
        container = container_name(self.helpers.server, key)
        with self.helpers.engine.api(patient=True) as api:
            job_image = find_image(api, container)
            programs = read_programs(api)
            folder = f"/.riseml-{secrets.token_hex(8)}" if native else ""
            image = job_image if native else ensure_image(api, programs)
            with self.helpers.lend(api, "stacks", make_helper_request(image, container, folder)) as name:
                if folder:
                    send_archive(api, name, "/", _pack(folder, programs))
                api.start(name)
                yield _HelperCalls(self.helpers.engine, name, folder, seconds)


def find_image(api: docker.APIClient, container: str) -> str:
    """Return the id of the image of a running container.

    Raises:
        NotThere: it does not run.
    """
    inspection = api.inspect_container(container)
    if not inspection["State"]["Running"]:
        raise NotThere("the job does not run")
    return str(inspection["Image"])


def read_programs(api: docker.APIClient) -> dict[str, bytes]:
    """Return the content of both programs, by their names.

    Raises:
        EngineError: the host has another kind of processor than the server.
    """
    arch = str(api.version()["Arch"])
    own = _MACHINES.get(platform.machine(), platform.machine())
    processor = PROCESSORS.get(arch)
    if processor is None or arch != own:
        raise EngineError(
            f"the host has another kind of processor ({arch}) than riseml's server ({own}), whose py-spy reads stacks",
            permanent=True,
        )
    return {_PRINTER: make_program_file(processor), _SPY: find_spy().read_bytes()}


def ensure_image(api: docker.APIClient, programs: Mapping[str, bytes]) -> str:
    """Make the image of both programs; return its name."""
    image = f"{REPOSITORY}:{read_spy_version()}-{_EDITION}"
    import_programs(api, image, programs)
    return image


def _pack(folder: str, programs: Mapping[str, bytes]) -> bytes:
    """Return a tar with programs in a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in programs.items():
            entry = tarfile.TarInfo(f"{folder.strip('/')}/{name}")
            entry.size = len(content)
            entry.mode = 0o555
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def make_helper_request(image: str, container: str, folder: str) -> dict[str, Any]:
    """Return the body of `POST /containers/create`.

    Args:
        image: that of both programs, or that of the job.
        container: whose processes it sees.
        folder: into which the programs are copied; empty: the image has them at its root.
    """
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": [f"{folder}/{_PRINTER}"],
        "User": "0:0",
        "WorkingDir": "/",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "PidMode": f"container:{container}",
            "NetworkMode": "none",
            "ReadonlyRootfs": not folder,  # the engine copies nothing into a container whose file system is read-only
            "CapDrop": ["ALL"],
            "CapAdd": ["SYS_PTRACE"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "Memory": MOST_MEMORY,
            "MemorySwap": MOST_MEMORY,
            "NanoCpus": 1_000_000_000,
            "PidsLimit": 64,
            "OomScoreAdj": 900,
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "LogConfig": {"Type": "none"},
        },
    }


class _HelperCalls:
    """The calls to one helper; several threads use it.

    Args:
        engine: of the host.
        helper: name of the container.
        folder: of both programs in it.
        seconds: until nothing more is read.
    """

    def __init__(self, engine: Engine, helper: str, folder: str, seconds: float) -> None:
        self._engine = engine
        self._helper = helper
        self._spy = f"{folder}/{_SPY}"
        self._printer = f"{folder}/{_PRINTER}"
        self._deadline = time.monotonic() + seconds

    def collect_rows(self, request: StackRequest) -> list[dict[str, Any]]:
        """Return the processes of the job as `job_programs.stack_reader` has them."""
        rows = self._list_rows()[:MOST_PROCESSES]
        self._add_facts(rows)
        yama = self._print_files(["/proc/sys/kernel/yama/ptrace_scope"])[0] or b""
        with ThreadPoolExecutor(PARALLEL, "read-stacks") as pool:
            list(pool.map(lambda row: self._add_stacks(row, request, yama.decode("ascii", "replace")), rows))
        size = 0
        rows = [row for row in rows if row["trouble"] != ENDED]
        for row in rows:
            size += len(row["dump"])
            if size > MOST_DUMPS:
                row.update(dump="", trouble=f"the stacks of the whole job are larger than {MOST_DUMPS >> 20} MiB")
        return rows

    def record_profile(self, request: ProfileRequest) -> RecordedProfile:
        """Return where the outermost Python process of the job and those below it are, for some seconds.

        Raises:
            EngineError: nothing could be recorded.
        """
        rows = self._list_rows()[:MOST_PROCESSES]
        self._add_facts(rows)
        row = next((row for row in rows if row["is_python"]), None)
        if row is None:
            raise EngineError("it runs no Python")
        command = [self._spy, "record", "--pid", str(row["pid"]), *choose_profile_options(**asdict(request))]
        deadline = min(self._deadline, time.monotonic() + request.seconds + PROFILE_START)
        output, errors, cut = self._run(command, MOST_DUMP, deadline)
        if cut or b"py-spy> Wrote" not in output:
            yama = self._print_files(["/proc/sys/kernel/yama/ptrace_scope"])[0] or b""
            reason = explain_failure(errors.decode("utf-8", "replace"), yama.decode("ascii", "replace"))
            raise EngineError(cut or reason or "it runs no Python")
        return RecordedProfile(shorten_files(output, f"/{WORKING_FOLDER}"), self._measure_processor())

    def _measure_processor(self) -> float:
        """Return the seconds of a core that the helper has taken."""
        with self._engine.api() as api:
            use = api.stats(self._helper, stream=False, one_shot=True)
        return float(use["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9

    def _list_rows(self) -> list[dict[str, Any]]:
        """Return the processes, those with low pids first, without those of the helper."""
        names = list_names(self._print_files(["/proc"])[0] or b"")
        pids = sorted(int(name) for name in names if name.isdigit())[:_MOST_SEEN]
        contents = self._print_files([f"/proc/{pid}/{file}" for pid in pids for file in ("stat", "cmdline")])
        rows = []
        for stat, cmdline in zip(contents[::2], contents[1::2], strict=False):
            words = cmdline or b""
            program = words.split(b"\0")[0].decode("ascii", "replace")
            if not stat or is_own_program(words) or program in (self._spy, self._printer):
                continue
            try:
                row: dict[str, Any] = parse_stat(stat)
            except ValueError:
                continue
            command = join_command(words, row["name"])
            rows.append({**row, "cmdline": words[:LONGEST_COMMAND], "command": command})
        return rows

    def _add_facts(self, rows: list[dict[str, Any]]) -> None:
        contents = self._print_files([f"/proc/{row['pid']}/{file}" for row in rows for file in _FACTS])
        contents += [None] * (len(_FACTS) * len(rows) - len(contents))
        unknown = [row for row in rows if not may_be_python(row["cmdline"], b"")]
        maps = self._print_files([f"/proc/{row['pid']}/maps" for row in unknown])
        without = {row["pid"] for row, text in zip(unknown, maps, strict=False) if not may_be_python(b"", text or None)}
        for at, row in enumerate(rows):
            channel, environ, limits, entries = contents[at * len(_FACTS) : (at + 1) * len(_FACTS)]
            row["wait_channel"] = (channel or b"").decode("ascii", "replace").replace("\0", "").strip("0 \n")
            row["rank"] = find_rank(environ or b"")
            row["open_files"] = sum(name.isdigit() for name in list_names(entries or b""))
            row["most_files"] = find_most_files(limits or b"")
            row.update(dump="", trouble="", is_python=row["pid"] not in without)

    def _add_stacks(self, row: dict[str, Any], request: StackRequest, yama: str) -> None:
        if not row["is_python"]:
            return
        options = choose_options(row["state"], native=request.native, variables=request.variables)
        patience = min(self._deadline, time.monotonic() + PATIENCE)
        output, errors, cut = self._run([self._spy, "dump", "--pid", str(row["pid"]), *options], MOST_DUMP, patience)
        if cut:
            row["trouble"] = cut
        elif output.startswith(b"["):
            row["dump"] = output.decode("utf-8", "replace")
        else:
            row["trouble"] = explain_failure(errors.decode("utf-8", "replace"), yama)

    def _print_files(self, paths: Sequence[str]) -> list[bytes | None]:
        """Return the content of files; None: it cannot be read."""
        contents: list[bytes | None] = []
        for at in range(0, len(paths), _AT_ONCE):
            part = paths[at : at + _AT_ONCE]
            deadline = min(self._deadline, time.monotonic() + _QUICK_PATIENCE)
            read = parse_blocks(self._run([self._printer, *part], _MOST_FILES, deadline)[0])
            contents += [*read, *([None] * (len(part) - len(read)))]
        return contents

    def _run(self, command: list[str], most: int, deadline: float) -> tuple[bytes, bytes, str]:
        """Run a command in the helper; return its output, its errors, and why the output is cut; empty: it is whole.

        What is cut off goes on until the helper is removed.
        """
        if time.monotonic() >= deadline:
            return b"", b"", "there was no time left for it"
        identity = create_exec(self._engine, self._helper, command, {}, has_terminal=False)
        stream, received = self._engine.open_stream(f"/exec/{identity}/start", {"Detach": False, "Tty": False})
        outputs = {Channel.OUTPUT: bytearray(), Channel.ERRORS: bytearray()}
        codec = FramedCodec()
        with stream:
            while True:
                for message in codec.decode(received):
                    if isinstance(message, ChannelData):
                        outputs[message.channel] += message.content
                if sum(map(len, outputs.values())) > most:
                    return _give(outputs, f"its stacks are larger than {most >> 20} MiB")
                stream.settimeout(max(0.001, deadline - time.monotonic()))
                try:
                    received = stream.recv(_CHUNK)
                except TimeoutError:
                    return _give(outputs, "its stacks could not be read in time")
                except OSError as error:
                    return _give(outputs, f"the engine ended the answer: {error}")
                if not received:
                    return _give(outputs, "")


def _give(outputs: Mapping[Channel, bytearray], cut: str) -> tuple[bytes, bytes, str]:
    return bytes(outputs[Channel.OUTPUT]), bytes(outputs[Channel.ERRORS]), cut
