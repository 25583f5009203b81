"""The folders of gangs on the shared file system, which the server, the supervisors and all nodes see under one path.

<root>/<experiment>/a<attempt>/     one attempt of a gang
    gang.json                       what the supervisor needs; written last, so that without it there is no gang
    roles/ROLE.json                 command and variables of a role (secrets: for its owner alone); gone: removed
    code/ROLE/                      the project's files of a role
    submitting                      sbatch was called at least once
    job                             id of the Slurm job
    orders                          which roles are to end: a line each, only appended
    claim, state.json, verdict.json, ROLE.log, ROLE.exit, ROLE.use, ROLE.srun     see `gang_supervisor`
<root>/<experiment>/machines/       on which nodes the roles ran (`role_use`)

NFS shows a change of a file at the next open, and a new name perhaps a few seconds later.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from riseml.base.errors import EngineError
from riseml.base.folders import make_private_path
from riseml.base.names import JobName
from riseml.base.records import dataclass
from riseml.control.actions import Signal
from riseml.executors.slurm.gang_lines import is_host, is_port
from riseml.executors.supervision.job_files import (
    Check,
    is_count,
    is_text,
    is_time,
    keep_valid,
    read_bytes,
    read_record,
    says_no_record,
)
from riseml.executors.this_machine.removal import remove_tree
from riseml.job_programs import read_program
from riseml.model import JobKey

PROGRAMS = (
    *(
        Path(__file__).with_name(f"{name}.py")
        for name in ("gang_supervisor", "gang_roles", "gang_lines", "gang_records")
    ),
    *(Path(__file__).with_name(f"role_{name}.py") for name in ("wrapper", "use", "server")),
    *(
        Path(__file__).parents[1] / "supervision" / f"{name}.py"
        for name in ("command_runner", "event_reading", "output_log", "process_tree")
    ),
    Path(__file__).parents[2] / "job_programs" / "gang_rules.py",
)
"""The programs that run on nodes, where they are beside each other in the folder of the gang."""

_PROGRAM_IMPORT = re.compile(
    r"^from riseml\.(?:executors\.(?:slurm|supervision)|job_programs) import (.*)$", re.MULTILINE
)
_ATTEMPT = re.compile(r"a(\d{1,6})")
_MACHINES = "machines"
_LONGEST_ID = 100  # bytes of the id of a Slurm job
_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("started_at", "finished_at", "ran"), is_time),
    "exit_code": is_count,
    **dict.fromkeys(("port", "door"), is_port),
    **dict.fromkeys(("error", "outside", "ending"), is_text),
    **dict.fromkeys(("host", "node"), is_host),
}
"""What the records of a role hold, if the code of a job has not changed them."""


@dataclass(frozen=True, slots=True, order=True)
class GangKey:
    """One attempt of the gang of an experiment."""

    experiment: int  # id of the record
    attempt: int


class GangFolder:
    """One attempt of a gang, as files."""

    def __init__(self, key: GangKey, path: Path) -> None:
        self.key = key
        self.path = path

    def log_path(self, role: JobName) -> Path:
        """Return the file with the output of a role."""
        return self.path / f"{role}.log"

    def code_path(self, role: JobName) -> Path:
        """Return the folder in which a role runs."""
        return self.path / "code" / role

    @property
    def plan_path(self) -> Path:
        """The file that is written when the project's files of every role are there, and before a role begins."""
        return self.path / "gang.json"

    def make(self) -> None:
        """Make the folder, for this user alone."""
        for name in ("roles", "code"):
            make_private_path(self.path / name)

    def write_gang(self, plan: Mapping[str, Any], roles: Mapping[JobName, Mapping[str, Any]]) -> None:
        """Write the files that the supervisor and the roles read, and their programs."""
        for program in PROGRAMS:
            text = program.read_text(encoding="utf-8")
            self._replace(program.name, _PROGRAM_IMPORT.sub(r"import \1", text).encode())
        self._replace("event_reader.py", read_program("event_reader").encode())
        for role, order in roles.items():
            self._replace(f"roles/{role}.json", json.dumps(order).encode())
        with open(os.open(self.path / "orders", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)):
            pass
        self._replace("gang.json", json.dumps(plan).encode())

    def read_plan(self) -> dict[str, Any]:
        """Return what `write_gang` wrote; empty before it was complete."""
        return self._read("gang.json")

    def read_state(self) -> dict[str, Any]:
        """Return the latest record of the supervisor: its verdict, or its state; empty before it began.

        `job` is a text, and `roles` has the records of roles, without fields that are none of the supervisor's.
        """
        state = self._read("verdict.json") or self._read("state.json")
        if "roles" not in state:
            return keep_valid(state, {"job": is_text})
        roles = state["roles"]
        checked = (
            {name: keep_valid(record, _CHECKS) for name, record in roles.items()} if isinstance(roles, dict) else {}
        )
        return {**keep_valid(state, {"job": is_text}), "roles": checked}

    def find_state_stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Return a stamp that changes with the state. NFS checks for changes when a file is opened."""
        stamps = []
        for name in ("verdict.json", "state.json"):
            with suppress(OSError):
                file = os.open(self.path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                status = os.fstat(file)
                os.close(file)
                stamps.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(stamps)

    def has_role(self, role: JobName) -> bool:
        """Return True for a role that was not removed."""
        return (self.path / "roles" / f"{role}.json").exists()

    def read_exit(self, role: JobName) -> dict[str, Any]:
        """Return the end of a role as its wrapper wrote it; empty: it wrote none."""
        record = keep_valid(self._read(f"{role}.exit"), _CHECKS)
        return record if record.keys() >= {"exit_code", "finished_at"} else {}

    def read_use(self, role: JobName) -> dict[str, Any]:
        """Return what a role uses, as its wrapper wrote it last (`role_use`); empty: it wrote nothing yet."""
        return self._read(f"{role}.use")

    def list_roles(self) -> list[JobName]:
        """Return the roles that were not removed."""
        names = sorted(_list_names(self.path / "roles"))  # `glob` takes a folder that cannot be read for an empty one
        return [JobName(name.removesuffix(".json")) for name in names if name.endswith(".json")]

    def mark_submitting(self) -> bool:
        """Record that sbatch is about to be called; return True when it was called before."""
        try:
            os.close(os.open(self.path / "submitting", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return True
        return False

    def may_be_submitted(self) -> bool:
        """Return True when sbatch was called."""
        return (self.path / "submitting").exists()

    def write_job(self, job: str) -> None:
        """Note the id of the Slurm job."""
        self._replace("job", job.encode())

    def find_job(self) -> str:
        """Return the id of the Slurm job that claimed the gang, else of the one that was submitted, else nothing."""
        for name in ("claim", "job"):
            with suppress(OSError):
                job = read_bytes(self.path / name, _LONGEST_ID).decode("ascii", "replace").strip()
                if job:
                    return job
        return ""

    def find_life(self) -> int | None:
        """Return a number that changes as long as the supervisor lives; None before the gang was claimed."""
        try:
            return os.stat(self.path / "claim").st_mtime_ns
        except OSError:
            return None

    def order_stop(self, role: JobName, signal: Signal) -> None:
        """Order the supervisor to end a role. One write of a short line: two servers never mix theirs.

        It begins with the end of a line: a full disk may have cut off the order before it.

        Raises:
            OSError: the disk is full.
        """
        line = json.dumps({"role": role, "signal": "KILL" if signal is Signal.KILL else "TERM"})
        order = f"\n{line}\n".encode()
        file = os.open(self.path / "orders", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            if os.write(file, order) < len(order):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path / "orders"))
        finally:
            os.close(file)

    def remove_role(self, role: JobName) -> None:
        """Remove the files of a role, and the folder with the last one."""
        for path in (self.path / "roles" / f"{role}.json", self.log_path(role)):
            path.unlink(missing_ok=True)
        remove_tree(self.code_path(role))
        if not self.list_roles():
            remove_tree(self.path)

    def _read(self, name: str) -> dict[str, Any]:
        return _read_json(self.path / name)

    def _replace(self, name: str, content: bytes) -> None:
        fresh = self.path / f"{name}.new"
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
        fresh.replace(self.path / name)


class GangFolders:
    """The folders of all gangs of one server.

    Args:
        root: created when it is missing, for this user alone.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open_gang(self, key: GangKey) -> GangFolder:
        """Return the folder of a gang, which may not exist."""
        return GangFolder(key, self.root / str(key.experiment) / f"a{key.attempt}")

    def find_gang(self, key: JobKey) -> GangFolder:
        """Return the folder of the gang that a job belongs to."""
        return self.open_gang(GangKey(key.experiment, key.attempt))

    def list_experiments(self) -> list[int]:
        """Return the experiments that have a folder."""
        return sorted(int(name) for name in _list_names(self.root) if name.isdecimal())

    def list_gangs(self) -> Iterator[GangFolder]:
        """Yield every gang that has a folder."""
        for experiment in self.list_experiments():
            for name in sorted(_list_names(self.root / str(experiment))):
                match = _ATTEMPT.fullmatch(name)
                if match is not None:
                    yield self.open_gang(GangKey(experiment, int(match[1])))

    def make_experiment(self, experiment: int) -> None:
        """Make the folder of an experiment."""
        make_private_path(self.root / str(experiment) / _MACHINES)

    def list_machines(self, experiment: int) -> list[dict[str, Any]]:
        """Return on which nodes roles of an experiment ran, of all attempts, as their wrappers wrote it."""
        folder = self.root / str(experiment) / _MACHINES
        records = [_read_json(folder / name) for name in sorted(_list_names(folder)) if not name.endswith(".new")]
        return [record for record in records if record]

    def remove_experiment(self, experiment: int) -> None:
        """Remove the folder of an experiment, if it is there."""
        remove_tree(self.root / str(experiment))


@contextmanager
def translate_os_errors(subject: str) -> Iterator[None]:
    """Turn errors of the operating system into `EngineError`; a full disk, or a quota that is used up, lasts."""
    try:
        yield
    except OSError as error:
        path = error.filename2 or error.filename  # filename2 is the destination of a copy
        raise EngineError(
            f"{subject} cannot be used: {error.strerror}: {path}",
            "free some space, or change its owner",
            permanent=error.errno in (errno.ENOSPC, errno.EDQUOT),
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    """Return a record; empty without one. The code of a job can put anything in its place.

    Raises:
        EngineError: the file cannot be read now, which does not say that there is no record.
    """
    try:
        return read_record(path)
    except ValueError:
        return {}
    except OSError as error:
        if says_no_record(error):
            return {}
        raise EngineError(f"{path} cannot be read: {error.strerror}") from error


def _list_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
