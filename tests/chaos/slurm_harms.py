"""What a test does to a private Slurm cluster: its controller, its nodes and their network die, hang and come back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.slurm_cluster import SlurmCluster
from tests.support.waiting import DEADLINE, wait_for

_SCRIPTS = Path(__file__).parents[2] / "scripts" / "slurm"


class HarmedCluster(SlurmCluster):
    """A cluster of three nodes, numbered from 1."""

    def end_controller(self, number: int = signal.SIGKILL) -> None:
        """End the controller, and return when it is gone."""
        self._end(int((self.folder / "pids" / "ctl").read_text()), number)

    def start_controller(self) -> None:
        """Start the controller, and return when it answers."""
        subprocess.run([_SCRIPTS / "controller", self.folder, self._namespace()], check=True)
        wait_for("the controller answers", self._answers, DEADLINE)

    def kill_slurmd(self, node: int) -> None:
        """Kill the daemon of a node; what it has started goes on."""
        self._end(self._find_slurmd(node).pid, signal.SIGKILL)

    def start_slurmd(self, node: int) -> None:
        """Start the daemon of a node that is on."""
        enter = ["nsenter", f"--target={self._find_node(node)}", "--mount", "--uts", "--net", "--pid"]
        with (self.folder / "log" / "out").open("ab") as log:
            subprocess.Popen(
                ["setsid", *enter, "slurmd", "-D", "-N", f"n{node}"],
                env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def power_off(self, node: int) -> None:
        """Kill every process of a node, as a power cut does: none of them can tell the other nodes."""
        self.cut_link(node)
        self._end(self._find_node(node), signal.SIGKILL)

    def power_on(self, node: int) -> None:
        """Start a node that is off."""
        subprocess.run([_SCRIPTS / "node", self.folder, str(node), self._namespace()], check=True)
        self.mend_link(node)

    def cut_link(self, node: int) -> None:
        """Cut a node off from the controller and the other nodes; its files stay shared."""
        self._set_link(node, "down")

    def mend_link(self, node: int) -> None:
        """Connect a node again."""
        self._set_link(node, "up")

    def resume_nodes(self, seconds: float) -> None:
        """During this time, resume every node that the controller drains, as an administrator does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._resume_nodes()
            threading.Event().wait(1.0)

    def wait_idle(self) -> None:
        """Bring everything back that is away, and wait until every node has nothing to do."""
        self.thaw()
        for node in (1, 2, 3):
            self.mend_link(node)
            if not _lives(int((self.folder / "pids" / f"n{node}").read_text())):
                self.power_on(node)
            elif self._look_for_slurmd(node) is None:
                self.start_slurmd(node)
        wait_for("every node is ready", lambda: self._resume_nodes() == {"idle"}, DEADLINE)

    def _resume_nodes(self) -> set[str]:
        """Tell the nodes that the controller has given up to take jobs; return the states in which they were."""
        states = dict(line.split() for line in self.ask("sinfo", "-hNo", "%N %T").splitlines())
        for name, state in states.items():
            if state.startswith(("drain", "down")):
                with suppress(subprocess.CalledProcessError):
                    self.ask("scontrol", "update", f"nodename={name}", "state=resume")
        return set(states.values())

    def find_first_node(self, server: str) -> int:
        """Return the node on which the supervisor of the one gang of a server runs."""
        return int(self.ask("squeue", "-hj", self.find_job(server), "-o", "%B").strip().removeprefix("n"))

    def find_other_node(self, server: str) -> int:
        """Return a node on which the same gang has roles, and not its supervisor."""
        nodes = {path.read_text() for path in self._list_states(server)}
        places = {int(name) for text in nodes for name in re.findall(r'"node": "n(\d)"', text)}
        return min(places - {self.find_first_node(server)})

    def find_job(self, server: str) -> str:
        """Return the id of the one job of a server that has not ended."""
        (job,) = set(self.list_jobs(server))
        return job

    def _answers(self) -> bool:
        try:
            return bool(self.ask("squeue", "--noheader", "--states=all") or True)
        except subprocess.CalledProcessError:
            return False

    def _find_node(self, node: int) -> int:
        """Return the first process of a node; without it, all others of the node end."""
        (outer,) = psutil.Process(int((self.folder / "pids" / f"n{node}").read_text())).children()
        return outer.pid

    def _find_slurmd(self, node: int) -> psutil.Process:
        found = self._look_for_slurmd(node)
        assert found is not None, f"n{node} has no slurmd"
        return found

    def _look_for_slurmd(self, node: int) -> psutil.Process | None:
        words, conf = ["-D", "-N", f"n{node}"], str(self.folder / "slurm.conf")
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.cmdline()[1:] == words and process.environ().get("SLURM_CONF") == conf:
                    return process
        return None

    def _list_states(self, server: str) -> list[Path]:
        return [path for root in self.shared_folders for path in root.glob(f"gangs/{server[:12]}/*/*/state.json")]

    def _set_link(self, node: int, state: str) -> None:
        words = ["ip", "-n", f"{self._namespace()}-ctl", "link", "set", f"v{node}", state]
        subprocess.run(words, check=True)

    def _namespace(self) -> str:
        (line,) = [
            line for line in (self.folder / "slurm.conf").read_text().splitlines() if line.startswith("ClusterName=")
        ]
        return line.partition("=")[2]

    def _end(self, process: int, number: int) -> None:
        """Signal a process, and wait until it has ended; its parent may collect it later."""
        os.kill(process, number)
        wait_for("the process ends", lambda: not _lives(process), DEADLINE)


def _lives(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
