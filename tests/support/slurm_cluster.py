"""A private Slurm cluster for tests, whose nodes share the files of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.waiting import DEADLINE, wait_for

_SCRIPTS = Path(__file__).parents[2] / "scripts" / "slurm"


class SlurmCluster:
    """The cluster in a folder, which `scripts/slurm/up` starts.

    Args:
        folder: with a short path, as it holds sockets.
        settings: variables of `scripts/slurm/up`.
    """

    name = "slurm"
    contained = False

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        up = [_SCRIPTS / "up", folder]
        programs = subprocess.run(
            up, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **settings}
        ).stdout
        self.environment = {"PATH": f"{programs.strip()}:{os.environ['PATH']}"}
        self.shared_folders: set[Path] = set()  # of all servers

    def list_addresses(self) -> set[str]:
        """Return the addresses of the nodes."""
        subnet = (self.folder / "subnet").read_text().strip()
        return {f"{subnet}.{10 + number}" for number in (1, 2, 3)}

    def down(self) -> None:
        """End the cluster."""
        subprocess.run([_SCRIPTS / "down", self.folder], check=True)

    def write_pool(self, home: Path, more: str = "", shared: Path | None = None) -> None:
        """Make the cluster the pool of a riseml home, with more keys of `slurm`.

        Args:
            home: of the server.
            more: keys, after a comma.
            shared: the shared folder; None: one beside the home.
        """
        shared = shared or home.with_name("shared")
        for folder in (home, shared):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "pool.yml").write_text(f"engine: slurm\nslurm: {{folder: {shared}{more}}}\n")
        self.shared_folders.add(shared)

    def list_jobs(self, server: str, *states: str) -> list[str]:
        """Return the ids of the Slurm jobs of a server; without states those that have not ended."""
        only = [f"--states={','.join(states)}"] if states else []
        rows = self.ask("squeue", "--noheader", "--format=%i %j", *only).splitlines()
        return [row.split()[0] for row in rows if row.split()[1].startswith(f"riseml-{server[:12]}-")]

    def ask(self, *command: str) -> str:
        """Return what a command of Slurm prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, check=True
        )
        return done.stdout

    def enter(self, user: str = "root") -> list[str]:
        """Return the words before a command that runs as a user beside the controller."""
        found = re.search(r"--net=\S+", (self.folder / "bin" / "sinfo").read_text())
        assert found is not None
        ids = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return ["nsenter", found[0], "setpriv", *ids, "env", f"SLURM_CONF={self.folder}/slurm.conf"]

    @contextmanager
    def mount_on(self, node: str, *options: str, at: str) -> Iterator[None]:
        """Let a node see something else at a path than this machine does; `options` are those of mount."""
        (first,) = psutil.Process(int((self.folder / "pids" / node).read_text())).children()
        inside = ["nsenter", f"--target={first.pid}", "--mount", "--pid"]
        subprocess.run([*inside, "mount", *options, at], check=True)
        try:
            yield
        finally:
            subprocess.run([*inside, "umount", "--lazy", at], check=True)

    def freeze(self) -> None:
        """Stop the controller: it takes connections, and answers nothing."""
        os.kill(self._controller(), signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the controller go on."""
        os.kill(self._controller(), signal.SIGCONT)

    def find_processes(self, word: str) -> list[psutil.Process]:
        """Return the processes with a word in their command line or in a variable."""
        found = []
        for process in psutil.process_iter():
            try:
                if any(word in part for part in (*process.cmdline(), *process.environ().values())):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def jobs(self, server: str, *, running: bool = False) -> list[str]:
        ghosts = [] if running else self.find_processes(f"gangs/{server[:12]}")
        return [*(f"Slurm job {job}" for job in self.list_jobs(server)), *(f"process {one.pid}" for one in ghosts)]

    def shared(self, server: str) -> list[str]:
        return [f"gangs/{path.name}" for root in self.shared_folders for path in root.glob(f"gangs/{server[:12]}/*")]

    def helpers(self, server: str) -> list[str]:
        return []

    def wait_idle(self) -> None:
        """Wait until every node has nothing to do."""
        wait_for("the nodes are idle", lambda: set(self.ask("sinfo", "-hNo", "%T").split()) == {"idle"}, DEADLINE)

    def clean_up(self, server: str) -> None:
        self.end_jobs(server)
        self.wait_idle()

    def end_jobs(self, server: str) -> None:
        """End the jobs of a server at once."""
        for job in self.list_jobs(server):
            self.ask("scancel", "--signal=KILL", job)

    def remove(self, server: str, job: str) -> None:
        raise AssertionError(f"Slurm removes gangs, and not {job} alone: no test of it may ask for that")

    def wait_end(self, server: str, job: str) -> None:
        wait_for("Slurm runs nothing of it", lambda: not self.list_jobs(server), DEADLINE)

    def close(self) -> None:
        pass

    def _controller(self) -> int:
        return int((self.folder / "pids" / "ctl").read_text())


@contextmanager
def running_cluster() -> Iterator[SlurmCluster]:
    """Give a cluster in a folder of its own, and end it."""
    with tempfile.TemporaryDirectory(prefix="rs") as folder:
        os.chmod(folder, 0o755)  # MUNGE requires that every user may enter the folder of its socket
        made = SlurmCluster(Path(folder, "c"))
        try:
            yield made
        finally:
            made.down()
